/* SPDX-License-Identifier: Apache-2.0 */
/* The machine of portable modules as tvm-ffi functions: each row of lathe_functions.def is a symbol of this library
 * (`tvm_ffi.load_module`) and, once the library is loaded behind libtvm_ffi, a global function under `lathe.`; so is
 * the loader through which tvm-ffi, and with it TVM, takes modules of Lathe. */
#include "args.h"
#include "lathe_functions.def"
#include "loader.h"
#include "values.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>


/* --- the runtime of this process: made by `configure`, or by the first function that needs it --- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static lathe_runtime *runtime;

/* NULL: raised. options: NULL where any runtime will do. */
static lathe_runtime *get_runtime(const ffi_row *row, const lathe_options *options)
{
    lathe_error error;
    int32_t status = LATHE_OK;
    pthread_mutex_lock(&lock);
    bool late = runtime && options;
    if (!runtime)
        status = lathe_runtime_create(options, &runtime, &error);
    lathe_runtime *rt = late ? NULL : runtime;
    pthread_mutex_unlock(&lock);
    if (late)
        (void)ffi_raise(row, "RuntimeError", "the machine has its options already: call this before all others");
    else if (status != LATHE_OK)
        (void)values_raise(&error);
    return rt;
}

static int run_configure(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    (void)result;
    const lathe_options options = {.size = sizeof options, .workers = (uint32_t)a[0].i, .no_jit = a[1].i != 0,
                                   .trace = (int32_t)(a[2].i > 2 ? 2 : a[2].i),
                                   .cache_dir = a[3].bytes, .compiler = a[4].bytes, .keep_sources = a[5].bytes};
    return get_runtime(row, &options) ? 0 : -1;
}

static int run_set_workers(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    lathe_error error;
    lathe_runtime *rt = get_runtime(row, NULL);
    (void)result;
    if (!rt)
        return -1;
    return lathe_set_workers(rt, (uint32_t)a[0].i, &error) == LATHE_OK ? 0 : values_raise(&error);
}

/* --- modules --- */

static int run_LoadFromFile(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    lathe_error error;
    lathe_value module;
    lathe_runtime *rt = get_runtime(row, NULL);
    if (!rt)
        return -1;
    if (strlen(a[0].bytes) != a[0].size)
        return ffi_raise(row, "ValueError", "the path has a zero in it");
    if (lathe_LoadFromFile(rt, a[0].bytes, &module, &error) != LATHE_OK)
        return values_raise(&error);
    return values_out(&module, result);
}

static const lathe_value *want_module(const ffi_row *row, const ffi_arg *a)
{
    const lathe_value *module = values_module(a->object);
    if (!module)
        (void)ffi_raise(row, "TypeError", "argument 1 (module) is not a module of this library");
    return module;
}

static int run_GetFunction(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    lathe_error error;
    lathe_value function;
    const lathe_value *module = want_module(row, &a[0]);
    if (!module)
        return -1;
    if (lathe_GetFunction(module, a[1].bytes, &function, &error) != LATHE_OK)
        return values_raise(&error);
    return values_out(&function, result);
}

static int run_devices(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    enum { MOST = 32, DIGITS = 12 };
    const lathe_value *module = want_module(row, &a[0]);
    int32_t types[MOST];
    char text[MOST * DIGITS] = "";
    size_t at = 0;
    if (!module)
        return -1;
    const int32_t n = lathe_module_devices(module, types, MOST);
    for (int32_t i = 0; i < n && i < MOST; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%d", i ? " " : "", types[i]);
    return ffi_return_str(row, result, text, at);
}

static int run_source(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    const lathe_value *module = want_module(row, &a[0]);
    const char *text = module ? lathe_source(module) : NULL;
    if (!module)
        return -1;
    return ffi_return_str(row, result, text ? text : "", text ? strlen(text) : 0);
}

static int run_my_device(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    lathe_runtime *rt = get_runtime(row, NULL);
    return rt ? loader_load(rt, a[0].bytes, a[0].size, result) : -1;
}

/* --- exports --- */

#define ROW(id, result_, args_, doc_) {#id, result_, args_, doc_, run_##id},
static const ffi_row rows[] = {LATHE_FUNCTIONS(ROW)};
static const ffi_row loader_rows[] = {LATHE_LOADERS(ROW)};
enum row_index {
#define X(id, result_, args_, doc_) ROW_##id,
    LATHE_FUNCTIONS(X)
#undef X
};

#define X(id, result_, args_, doc_) FFI_DEFINE(id, &rows[ROW_##id])
LATHE_FUNCTIONS(X)
#undef X

__attribute__((constructor)) static void register_on_load(void)
{
    int rc = tvm_ffi() ? values_register() : -1;
    for (size_t i = 0; rc == 0 && i < sizeof rows / sizeof *rows; i++)
        rc = ffi_register("lathe.", &rows[i]);
    for (size_t i = 0; rc == 0 && i < sizeof loader_rows / sizeof *loader_rows; i++)
        rc = ffi_register("ffi.Module.load_from_bytes.", &loader_rows[i]);
}
