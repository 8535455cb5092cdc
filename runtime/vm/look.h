/* look.h: texts that functions of an executable give, without running anything.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_VM_LOOK_H
#define LATHE_VM_LOOK_H
#include "executable.h"

/* *out lies in the file. LATHE_E_NAME: there is no such function; LATHE_E_FORMAT: it does something else, too. */
int32_t vm_look(const vm_executable *x, const char *function, vm_bytes *out, lathe_error *error);
#endif
