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

/* A kernel of n addresses that is ready to be called (abi/module.h): by libffi, or in its packed form where the source
 * has no other one, or the library no libffi. */
typedef struct jit_kernel jit_kernel;
/* shares: the bare form takes part and parts behind the addresses, and returns a status; else neither. */
int32_t jit_kernel_find(const jit_library *library, const char *symbol, uint32_t n, bool shares, jit_kernel **out,
                        lathe_error *error);
/* Does it take a part, and the number of parts? */
bool jit_kernel_shares(const jit_kernel *k);
/* Is it called by libffi? */
bool jit_kernel_is_bare(const jit_kernel *k);
/* *ended: the kernel's own status. LATHE_OK, or LATHE_E_MEMORY: it was not called. */
int32_t jit_kernel_call(const jit_kernel *k, void *const *addresses, uint32_t part, uint32_t parts, int32_t *ended);
void jit_kernel_free(jit_kernel *k);
#endif
