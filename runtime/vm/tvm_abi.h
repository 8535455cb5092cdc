/* tvm_abi.h: what machine code of stock modules calls by name, with the names and signatures of tvm-ffi and TVM. These
 * functions carry no context, so the error that is raised and the runtime that works are kept for each thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_VM_TVM_ABI_H
#define LATHE_VM_TVM_ABI_H
#include "pool.h"

typedef int (*vm_safe_call)(void *self, const lathe_value *args, int32_t n, lathe_value *result);

/* What a library's __tvm_ffi__library_ctx points at. */
typedef struct vm_abi_library {
    /* A function of the library's imports, borrowed; NULL: none. */
    struct lathe_object *(*lookup)(struct vm_abi_library *library, const char *name);
} vm_abi_library;

/* Calls machine code; what it raised becomes the error. */
int32_t vm_abi_call(vm_safe_call function, void *self, vm_pool *pool, const lathe_value *args, int32_t n,
                    lathe_value *result, lathe_error *error);
/* Raises `error` for machine code that called a function of ours; returns what such a function returns. */
int vm_abi_raise(const lathe_error *error);
/* The functions that a library wants to find in its variables "__NAME"; NULL behind the last. */
const char *vm_abi_variable(size_t i, void **out_address);
#endif
