/* boundary.c: values that enter and leave a machine.
 * SPDX-License-Identifier: Apache-2.0 */
#include "boundary.h"

#include "abi/package.h"
#include "error.h"

static int32_t check_tensor(vm_machine *m, const lathe_dltensor *t, size_t *bytes, lathe_error *error)
{
    lathe_device_api api;
    if (!t || t->ndim < 0 || (t->ndim > 0 && !t->shape))
        return vm_fail(error, LATHE_E_ARGUMENT, "a tensor without a shape");
    if (!vm_bytes_of(t->dtype, t->shape, (size_t)t->ndim, bytes))
        return vm_fail(error, LATHE_E_SHAPE, "a tensor of shape %s: a dimension below 0, or more than memory can hold",
                       vm_dims_name(t->shape, (size_t)t->ndim).text);
    if (*bytes > 0 && !t->data)
        return vm_fail(error, LATHE_E_ARGUMENT, "a tensor without data");
    if (!vm_tensor_is_dense(t))
        return vm_fail(error, LATHE_E_SHAPE, "a tensor whose elements do not lie without gaps");
    return vm_devices_get(&m->module.rt->devices, t->device.type, &api, error);
}

static bool is_aligned(const lathe_dltensor *t, size_t bytes)
{
    return !vm_device_is_host(t->device.type) || (uintptr_t)vm_tensor_data(t) % package_value_align(bytes) == 0;
}

static int32_t wrap(const lathe_dltensor *t, lathe_value *out, lathe_error *error)
{
    vm_tensor *wrapped;
    int32_t status = vm_tensor_new(t->data, t->device, t->dtype, t->shape, (size_t)t->ndim, NULL, &wrapped, error);
    if (status != LATHE_OK)
        return status;
    wrapped->t.byte_offset = t->byte_offset;
    wrapped->borrowed = true;
    *out = vm_value_of(wrapped);
    return LATHE_OK;
}

static int32_t enter(vm_machine *m, const lathe_value *arg, bool copy, lathe_value *out, lathe_error *error)
{
    size_t bytes;
    switch (arg->type) {
    case LATHE_DLTENSOR: {
        const lathe_dltensor *t = arg->u.v_tensor;
        int32_t status = check_tensor(m, t, &bytes, error);
        if (status != LATHE_OK)
            return status;
        if (!copy && is_aligned(t, bytes))
            return wrap(t, out, error);
        vm_allocator *a = vm_machine_allocator(m, t->device);
        return vm_tensor_copy(&m->module.rt->devices, t, a ? a : vm_machine_host(m), out, error);
    }
    case LATHE_RAW_STRING: return vm_string_new(vm_value_text(arg), out, error);
    default:
        if (arg->type < LATHE_NONE || (arg->type > LATHE_SMALL_STRING && arg->type < LATHE_OBJECT) ||
            (arg->type > LATHE_RAW_STRING && arg->type < LATHE_SMALL_STRING))
            return vm_fail(error, LATHE_E_ARGUMENT, "a value of type %d, which is not taken", arg->type);
        *out = lathe_retain(arg);
        return LATHE_OK;
    }
}

int32_t vm_boundary_in(vm_machine *m, const lathe_value *arg, lathe_value *out, lathe_error *error)
{
    return enter(m, arg, false, out, error);
}

int32_t vm_boundary_keep(vm_machine *m, const lathe_value *arg, lathe_value *out, lathe_error *error)
{
    return enter(m, arg, true, out, error);
}

static int32_t own(vm_machine *m, lathe_value *v, uint32_t depth, lathe_error *error);

/* Elements change in place: nobody else sees an array that a running call has made. */
static int32_t own_elements(vm_machine *m, vm_array *a, uint32_t depth, lathe_error *error)
{
    int32_t status = LATHE_OK;
    for (int64_t i = 0; i < a->size && status == LATHE_OK; i++)
        status = own(m, &a->data[i], depth + 1, error);
    return status;
}

static int32_t own(vm_machine *m, lathe_value *v, uint32_t depth, lathe_error *error)
{
    lathe_value copy = {0};
    if (depth > 64)
        return vm_fail(error, LATHE_E_UNSUPPORTED, "a result of tuples in tuples more than 64 deep");
    if (v->type == LATHE_ARRAY)
        return own_elements(m, (vm_array *)(void *)v->u.v_object, depth, error);
    if (!vm_tensor_is_borrowed(v))
        return LATHE_OK;
    const lathe_dltensor *t = lathe_tensor_of(v);
    vm_allocator *a = vm_machine_allocator(m, t->device);
    int32_t status = vm_tensor_copy(&m->module.rt->devices, t, a ? a : vm_machine_host(m), &copy, error);
    if (status == LATHE_OK)
        vm_value_set(v, copy);
    return status;
}

int32_t vm_boundary_out(vm_machine *m, lathe_value *v, lathe_error *error)
{
    return own(m, v, 0, error);
}
