/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a module file: what is loaded has a machine that can be made, described and given back. Machine code is
 * never loaded from memory, and no source is compiled before a call. */
#include "lathe_vm.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void describe(const lathe_value *vm)
{
    const char *name;
    lathe_dtype type;
    int32_t n = 0, rank;
    int64_t shape[4];
    if (lathe_function_arity(vm, "main", &n, NULL) != LATHE_OK)
        return;
    for (int32_t i = 0; i < n; i++)
        if (lathe_function_parameter(vm, "main", i, &name, &type, &rank, shape, 4, NULL) != LATHE_OK)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    lathe_runtime *rt;
    lathe_value module, load = {0}, vm = {0};
    lathe_error e = {0};
    if (lathe_runtime_create(NULL, &rt, &e) != LATHE_OK)
        return 0;
    int32_t status = lathe_LoadFromBytes(rt, "fuzz", data, size, &module, &e);
    if (status != e.code || (status == LATHE_OK) != (module.type == LATHE_MODULE))
        abort();
    if (status == LATHE_OK && lathe_GetFunction(&module, "vm_load_executable", &load, &e) == LATHE_OK &&
        lathe_call(&load, NULL, 0, &vm, &e) == LATHE_OK)
        describe(&vm);
    lathe_release(&vm);
    lathe_release(&load);
    lathe_release(&module);
    lathe_runtime_destroy(rt);
    return 0;
}
