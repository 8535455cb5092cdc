/* jit.h: from the C source of a module to functions in this process: which compiler, which flags, the cache of what it
 * made, the shared object that is loaded. Private to the virtual machine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_VM_JIT_H
#define LATHE_VM_JIT_H
#include "lathe_vm.h"

#include <stdbool.h>

/* What the machine that this program runs on has: bytes of a vector register (0: none; 16, 32, 64) and their number. */
typedef struct jit_machine {
    uint32_t vector_bytes, vector_regs;
} jit_machine;
jit_machine jit_this_machine(void);

/* A compiled source: a loaded shared object. */
typedef struct jit_library jit_library;

/* Compiles `source` (size bytes) as a whole, or takes it from the cache, and loads it. `name` is for messages and,
 * without ".so", for the names of kept files. Two threads or two processes that ask for the same source at once compile
 * it once. */
int32_t jit_compile(const lathe_options *options, const char *name, const char *source, size_t size,
                    jit_library **out, lathe_error *error);
/* Is there a compiler to compile with? true also where that cannot be told. */
bool jit_has_compiler(const lathe_options *options);
/* The address of a symbol; NULL: there is none. */
void *jit_symbol(const jit_library *library, const char *name);
/* What it was opened by: who opens that gets the same library, as long as it is loaded. */
const char *jit_path(const jit_library *library);
void jit_unload(jit_library *library);

/* Calls function(addresses[0], ..., addresses[n - 1]), n pointers, no result (libffi). */
int32_t jit_call_bare(void *function, void *const *addresses, uint32_t n, lathe_error *error);
#endif
