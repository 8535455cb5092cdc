/* SPDX-License-Identifier: Apache-2.0 */
/* Modules of Lathe in a host that knows only tvm-ffi: the C source that they import becomes machine code. */
#ifndef LATHE_FFI_LOADER_H
#define LATHE_FFI_LOADER_H
#include "lathe_vm.h"
#include "tvm_ffi_api.h"

/* Compiles the source in the bytes of a source module (abi/module.h), and loads what comes of it as tvm-ffi loads a
 * library. *result gets a module that has its functions, its kind "my_device", and its source; where
 * liblathe_ffi_module.so is missing or for another version of tvm-ffi, the library itself. 0, or -1: raised. */
int loader_load(lathe_runtime *rt, const char *bytes, size_t size, TVMFFIAny *result);
#endif
