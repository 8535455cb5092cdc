/* jit_load.h: a shared object in memory becomes functions in this process.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_VM_JIT_LOAD_H
#define LATHE_VM_JIT_LOAD_H
#include "jit.h"
#include "jit_file.h"

/* Loads the bytes themselves: a copy that no other process can reach. `folder`: a private one, for systems without
 * files in memory. `program` is the compiler that made it, `name` the module, for messages. `hold` is closed with the
 * library; -1: nothing. LATHE_E_COMPILER: no whole shared object, or one for another machine. */
int32_t jit_load(const jit_bytes *object, const char *folder, const char *program, const char *name,
                 jit_library **out, lathe_error *error);
/* A file that is open as long as the library is loaded. */
void jit_load_hold(jit_library *library, int fd);
#endif
