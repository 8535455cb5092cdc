/* machine_test.h: what tests of the machine share: modules that vm.py keeps in the fuzz targets' corpora, and calls.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MACHINE_TEST_H
#define MACHINE_TEST_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lathe_vm.h"

/* The module of test/vm/cases/NAME.case. */
static inline const char *module_path(const char *name, char out[400])
{
    const char *top = getenv("LATHE_SOURCE");
    (void)snprintf(out, 400, "%s/test/fuzz/corpus/vm_module/%s", top ? top : ".", name);
    return out;
}

/* Kernels are compiled once for all runs of the tests. */
static inline lathe_options test_options(uint32_t workers, char cache[400])
{
    const char *build = getenv("LATHE_BUILD");
    (void)snprintf(cache, 400, "%s/test/vm-cache", build ? build : "build");
    return (lathe_options){.size = sizeof(lathe_options), .workers = workers, .cache_dir = cache};
}

/* Calls hand it an error that is called e. */
#define must(call)                                                    \
    do {                                                              \
        if ((call) != LATHE_OK)                                       \
            fail_msg("%s", e.message);                                \
    } while (0)

static inline lathe_value integer(int64_t i)
{
    return (lathe_value){.type = LATHE_INT, .u.v_int = i};
}

/* A machine on `device` and the CPU. */
static inline int32_t make_machine(const lathe_value *library, int32_t device, int64_t allocator, lathe_value *vm,
                                   lathe_error *error)
{
    lathe_value none, args[6] = {integer(device), integer(0), integer(allocator), integer(1), integer(0),
                                 integer(allocator)};
    int32_t status = lathe_call_named(library, "vm_load_executable", NULL, 0, vm, error);
    if (status == LATHE_OK)
        status = lathe_call_named(vm, "vm_initialization", args, 6, &none, error);
    return status;
}

/* A vector of 4 floats, in memory of the test. */
typedef struct four {
    _Alignas(64) float at[4];
    int64_t dims[1];
    lathe_dltensor tensor;
    lathe_value value;
} four;

static inline void four_set(four *f, float first)
{
    for (int i = 0; i < 4; i++)
        f->at[i] = first + (float)i;
    f->dims[0] = 4;
    f->tensor = (lathe_dltensor){f->at, {LATHE_CPU, 0}, 1, {2, 32, 1}, f->dims, NULL, 0};
    f->value = (lathe_value){.type = LATHE_DLTENSOR, .u.v_tensor = &f->tensor};
}

static inline float element(const lathe_value *v, size_t i)
{
    const lathe_dltensor *t = lathe_tensor_of(v);
    return t ? ((const float *)(const void *)((const char *)t->data + t->byte_offset))[i] : -1e30F;
}
#endif
