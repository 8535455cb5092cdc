/* make.c: values that a program makes to hand them over: shapes, tuples, and tensors in memory of a device.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime.h"

#include <stdlib.h>
#include <string.h>

/* Lists of nothing may be NULL. */
static int32_t check_list(const void *list, size_t n, const char *what, lathe_error *error)
{
    return list || n == 0 ? LATHE_OK : vm_fail(error, LATHE_E_ARGUMENT, "%zu %s at NULL", n, what);
}

int32_t lathe_shape_new(const int64_t *dims, size_t n, lathe_value *out, lathe_error *error)
{
    int64_t *to;
    *out = (lathe_value){0};
    int32_t status = check_list(dims, n, "dimensions", error);
    if (status == LATHE_OK)
        status = vm_shape_new(n, &to, out, error);
    if (status == LATHE_OK && n > 0)
        memcpy(to, dims, n * sizeof *dims);
    return status;
}

const int64_t *lathe_shape_of(const lathe_value *v, size_t *out_n)
{
    const vm_shape *s = v->type == LATHE_SHAPE ? (const vm_shape *)(const void *)v->u.v_object : NULL;
    *out_n = s ? s->size : 0;
    return s ? s->data : NULL;
}

/* What is borrowed may be gone while the tuple is not. */
int32_t lathe_array_new(const lathe_value *elements, size_t n, lathe_value *out, lathe_error *error)
{
    *out = (lathe_value){0};
    int32_t status = check_list(elements, n, "elements", error);
    for (size_t i = 0; i < n && status == LATHE_OK; i++)
        if (elements[i].type == LATHE_DLTENSOR || elements[i].type == LATHE_RAW_STRING)
            status = vm_fail(error, LATHE_E_ARGUMENT, "element %zu is %s, which the tuple cannot own: lathe_tensor_new "
                             "makes one that it can", i, vm_type_name(elements[i].type));
    return status == LATHE_OK ? vm_array_new(elements, n, out, error) : status;
}

static int32_t check_tensor(lathe_dtype dtype, const int64_t *dims, int32_t ndim, size_t *out_bytes, lathe_error *error)
{
    if (ndim < 0 || dtype.bits == 0 || dtype.lanes == 0)
        return vm_fail(error, LATHE_E_ARGUMENT, "a tensor of %d dimensions, of elements of %d bits", ndim, dtype.bits);
    int32_t status = check_list(dims, (size_t)ndim, "dimensions", error);
    if (status == LATHE_OK && !vm_bytes_of(dtype, dims, (size_t)ndim, out_bytes))
        status = vm_fail(error, LATHE_E_SHAPE, "more than memory can hold, or less than nothing: %s",
                         vm_dims_name(dims, (size_t)ndim).text);
    return status;
}

int32_t lathe_tensor_new(lathe_runtime *rt, lathe_device device, lathe_dtype dtype, const int64_t *dims, int32_t ndim,
                         const void *data, lathe_value *out, lathe_error *error)
{
    lathe_device_api api;
    size_t bytes;
    void *zeros = NULL;
    *out = (lathe_value){0};
    int32_t status = check_tensor(dtype, dims, ndim, &bytes, error);
    if (status == LATHE_OK)
        status = vm_devices_get(&rt->devices, device.type, &api, error);
    if (status != LATHE_OK)
        return status;
    vm_allocator *a = vm_allocator_new(&api, device, VM_ALLOCATE_NAIVE, &rt->head);
    if (!data)
        zeros = calloc(1, bytes + 1);
    if (!a || (!data && !zeros))
        status = vm_no_memory(error, bytes);
    else
        status = vm_tensor_from_bytes(&rt->devices, (vm_bytes){data ? data : zeros, bytes}, dims, (size_t)ndim, dtype,
                                      a, out, error);
    free(zeros);
    vm_object_release((lathe_object *)(void *)a); /* the tensor's storage keeps it */
    return status;
}
