/* SPDX-License-Identifier: Apache-2.0 */
/* libtvm_ffi, found when it is first needed. A library that was loaded before libtvm_ffi would keep weak symbols at
 * NULL for good, so every name is looked up in the process at its first use; the bindings load and answer without it.
 */
#ifndef LATHE_TVM_FFI_API_H
#define LATHE_TVM_FFI_API_H
#include <stdbool.h>
#include <tvm/ffi/c_api.h>

#include "tvm_ffi_api.def"

typedef struct tvm_ffi_api {
#define X(name, result, params) result(*name) params;
    TVM_FFI_API(X)
#undef X
} tvm_ffi_api;

/* The functions of the loaded libtvm_ffi; NULL while the process has none. Any thread. */
const tvm_ffi_api *tvm_ffi(void);

/* The object behind a handle: what follows its header. */
static inline const void *tvm_ffi_cell(const TVMFFIObject *o)
{
    return (const char *)o + sizeof(TVMFFIObject);
}
#endif
