/* SPDX-License-Identifier: Apache-2.0 */
/* What the bindings export besides the functions of vta_functions.def. */
#ifndef LATHE_VTA_FFI_H
#define LATHE_VTA_FFI_H

#ifdef __cplusplus
extern "C" {
#endif

/* Registers every function as a global of libtvm_ffi (bare name and `vta.`); may be called again. 0, or -1: libtvm_ffi
 * is not in the process, or its error is raised. A library that is loaded after libtvm_ffi does it by itself. */
int vta_ffi_register(void);

/* The message of the last failed call on this thread, for callers without libtvm_ffi; "" when there is none. */
const char *vta_ffi_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
