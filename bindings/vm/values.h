/* SPDX-License-Identifier: Apache-2.0 */
/* Values of tvm-ffi and values of the machine: numbers and strings have the same layout on both sides; tensors are lent
 * to the machine for a call, and its results are handed over without a copy by DLPack. */
#ifndef LATHE_FFI_VALUES_H
#define LATHE_FFI_VALUES_H
#include "lathe_vm.h"
#include "tvm_ffi_api.h"

/* Tells libtvm_ffi the type of modules; once, before all else. 0, or -1: raised. */
int values_register(void);

/* Raises the machine's error; returns -1. */
int values_raise(const lathe_error *error);

/* Argument i as the machine takes it. *out owns something only when *out_owned. 0, or -1: raised. */
int values_in(const TVMFFIAny *arg, int32_t i, lathe_value *out, bool *out_owned);
/* A result of the machine; takes it over in any case. 0, or -1: raised. */
int values_out(lathe_value *v, TVMFFIAny *result);
/* The machine's value in an object that values_out made of a module; NULL: another object. */
const lathe_value *values_module(const TVMFFIObject *object);
#endif
