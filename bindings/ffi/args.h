/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments and results of exported functions: checked against the row's text (*_functions.def), so that every wrong
 * call gets one sentence that names function, argument and what was expected. */
#ifndef LATHE_FFI_ARGS_H
#define LATHE_FFI_ARGS_H
#include <stddef.h>
#include <stdint.h>

#include "tvm_ffi_api.h"

typedef struct ffi_arg {
    bool given;             /* false: left out or None */
    int64_t i;              /* integers and handles */
    const DLTensor *tensor; /* dram: not a handle */
    TVMFFIObject *object;   /* owner of the tensor (NULL: a borrowed view), or the recorder, the module, the list */
    const char *bytes;      /* str, bytes, key as bytes: `size` bytes, terminated */
    size_t size;
} ffi_arg;

enum { FFI_MAX_ARGS = 12 };

typedef struct ffi_row {
    const char *name, *result, *args, *doc;
    int (*run)(const struct ffi_row *row, const ffi_arg *a, TVMFFIAny *result);
} ffi_row;

/* Checks arity, kinds and ranges, then runs the row. The calling convention of tvm-ffi. (libffi has an ffi_call.) */
int ffi_call_row(const ffi_row *row, const TVMFFIAny *args, int32_t n, TVMFFIAny *result);
/* {"type_schema": "...", "doc": "..."} of a row; returns the length, writes at most `size` bytes. */
size_t ffi_metadata(const ffi_row *row, char *out, size_t size);
int ffi_return_metadata(const ffi_row *row, TVMFFIAny *result);
/* Makes the row a global function of libtvm_ffi under the prefix and its name. */
int ffi_register(const char *prefix, const ffi_row *row);

/* Raises: the message starts with the row's name. Returns -1. Without libtvm_ffi the message is kept for
 * vta_ffi_last_error. */
int ffi_raise(const ffi_row *row, const char *kind, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
const char *ffi_last_error(void); /* of this thread; "" when none */

/* The text of a str, in out->bytes, valid as long as v; false: v is none. */
bool ffi_text(const TVMFFIAny *v, ffi_arg *out);

int ffi_return_int(TVMFFIAny *result, int64_t v);
int ffi_return_str(const ffi_row *row, TVMFFIAny *result, const char *s, size_t n);

#define FFI_EXPORT __attribute__((visibility("default")))
/* What a library module has for a function: the call, its metadata and its text, by the names that tvm-ffi looks for.
 * `row` is the address of an ffi_row. */
#define FFI_DEFINE(id, row)                                                                                   \
    FFI_EXPORT int __tvm_ffi_##id(void *self, const TVMFFIAny *args, int32_t n, TVMFFIAny *result);           \
    int __tvm_ffi_##id(void *self, const TVMFFIAny *args, int32_t n, TVMFFIAny *result)                       \
    {                                                                                                         \
        (void)self;                                                                                           \
        return ffi_call_row(row, args, n, result);                                                            \
    }                                                                                                         \
    FFI_EXPORT int __tvm_ffi__metadata_##id(void *self, const TVMFFIAny *args, int32_t n, TVMFFIAny *result); \
    int __tvm_ffi__metadata_##id(void *self, const TVMFFIAny *args, int32_t n, TVMFFIAny *result)             \
    {                                                                                                         \
        (void)self, (void)args, (void)n;                                                                      \
        return ffi_return_metadata(row, result);                                                              \
    }                                                                                                         \
    FFI_EXPORT int __tvm_ffi__doc_##id(void *self, const TVMFFIAny *args, int32_t n, TVMFFIAny *result);      \
    int __tvm_ffi__doc_##id(void *self, const TVMFFIAny *args, int32_t n, TVMFFIAny *result)                  \
    {                                                                                                         \
        (void)self, (void)args, (void)n;                                                                      \
        return ffi_return_str(row, result, (row)->doc, strlen((row)->doc));                                   \
    }
#endif
