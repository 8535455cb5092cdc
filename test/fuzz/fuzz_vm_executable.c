/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an executable. What the verifier passes must run without a fault, whatever it does: functions that have
 * no jump back and call only functions behind them, so that they end, are called with numbers and a tensor. */
#include "executable.h"
#include "lathe_vm.h"
#include "module_kinds.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_PARAMS = 8, MOST_CODE = 2000 };

/* Memory of the CPU is that of the fuzzer, which a number in a file must not fill: shape heaps are small, and storages
 * lie on the modest device below. */
static bool is_modest(const vm_executable *x, const int64_t *w)
{
    const char *name = x->functions[w[2]].name;
    if (strcmp(name, "vm.builtin.alloc_shape_heap") == 0)
        return w[3] != 2 || (vm_arg_kind(w[5]) == MODULE_ARG_IMMEDIATE && vm_arg_value(w[5]) < 1 << 20);
    if (strcmp(name, "vm.builtin.alloc_storage") == 0)
        return w[3] < 4 || (vm_arg_kind(w[6]) == MODULE_ARG_IMMEDIATE && vm_arg_value(w[6]) == 0);
    return true;
}

static bool ends(const vm_executable *x, uint32_t i)
{
    const vm_func *f = &x->functions[i];
    if (f->kind != MODULE_FUNC_VM || f->params > MOST_PARAMS || x->instructions > MOST_CODE)
        return false;
    for (uint32_t pc = f->start; pc < f->end; pc++) {
        const int64_t *w = x->code[pc];
        bool back = (w[0] == MODULE_GOTO && w[1] <= 0) || (w[0] == MODULE_IF && w[2] <= 0);
        if (back)
            return false;
        /* Closures may be called by other names: no functions as values, and no calls of other code. */
        for (int64_t k = 0; w[0] == MODULE_CALL && k < w[3]; k++)
            if (vm_arg_kind(w[4 + k]) == MODULE_ARG_FUNCTION)
                return false;
        if (w[0] == MODULE_CALL && (x->functions[w[2]].kind == MODULE_FUNC_VM || !is_modest(x, w)))
            return false;
    }
    return true;
}

static int32_t modest_alloc(void *user, int32_t id, size_t bytes, size_t align, void **out)
{
    (void)user, (void)id;
    *out = bytes > 1 << 20 ? NULL : aligned_alloc(align, (bytes + align - 1) / align * align);
    return *out ? LATHE_OK : LATHE_E_MEMORY;
}

static void modest_free(void *user, int32_t id, void *p)
{
    (void)user, (void)id;
    free(p);
}

static int32_t modest_copy(void *user, const void *from, size_t from_offset, lathe_device a, void *to, size_t to_offset,
                           lathe_device b, size_t bytes)
{
    (void)user, (void)a, (void)b;
    memcpy((char *)to + to_offset, (const char *)from + from_offset, bytes);
    return LATHE_OK;
}

static void call_all(const lathe_value *vm, const vm_executable *x)
{
    float numbers[4] = {1, 2, 3, 4};
    int64_t dims[2] = {2, 2};
    lathe_dltensor t = {numbers, {LATHE_CPU, 0}, 2, {2, 32, 1}, dims, NULL, 0};
    lathe_value args[MOST_PARAMS], function, result;
    for (int i = 0; i < MOST_PARAMS; i++)
        args[i] = i % 2 == 0 ? (lathe_value){.type = LATHE_DLTENSOR, .u.v_tensor = &t}
                             : (lathe_value){.type = LATHE_INT, .u.v_int = i};
    for (uint32_t i = 0; i < x->function_count; i++) {
        if (!ends(x, i) || lathe_GetFunction(vm, x->functions[i].name, &function, NULL) != LATHE_OK)
            continue;
        (void)lathe_call(&function, args, (int32_t)x->functions[i].params, &result, NULL);
        lathe_release(&result);
        lathe_release(&function);
    }
}

static void run(lathe_runtime *rt, const vm_executable *x, vm_module *module)
{
    const lathe_device_api modest = {.name = "modest", .type = LATHE_EXT_DEV, .alloc = modest_alloc,
                                     .free = modest_free, .copy = modest_copy};
    lathe_value library = vm_value_of(module), load = {0}, vm = {0}, init = {0}, none = {0}, devices[6];
    const int64_t numbers[6] = {LATHE_EXT_DEV, 0, 2, LATHE_CPU, 0, 1};
    for (int i = 0; i < 6; i++)
        devices[i] = vm_value_int(numbers[i]);
    if (lathe_device_register(rt, &modest, NULL) == LATHE_OK &&
        lathe_GetFunction(&library, "vm_load_executable", &load, NULL) == LATHE_OK &&
        lathe_call(&load, NULL, 0, &vm, NULL) == LATHE_OK &&
        lathe_GetFunction(&vm, "vm_initialization", &init, NULL) == LATHE_OK &&
        lathe_call(&init, devices, 6, &none, NULL) == LATHE_OK)
        call_all(&vm, x);
    lathe_release(&init);
    lathe_release(&vm);
    lathe_release(&load);
    lathe_release(&library);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    lathe_runtime *rt;
    vm_executable x;
    vm_module *module;
    lathe_error e = {0};
    vm_bytes bytes = {data, size};
    if (vm_executable_read(bytes, &x, &e) != LATHE_OK) {
        if (e.code == LATHE_OK || e.message[0] == 0)
            abort();
        return 0;
    }
    if (lathe_runtime_create(NULL, &rt, NULL) == LATHE_OK) {
        if (vm_executable_module(rt, NULL, bytes, &module, NULL) == LATHE_OK)
            run(rt, &x, module);
        lathe_runtime_destroy(rt);
    }
    vm_executable_free(&x);
    return 0;
}
