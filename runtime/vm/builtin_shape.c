/* builtin_shape.c: shapes at run time: the shape heap, an int64 tensor with the extents that a call has met; matching
 * values against it, and making shapes and numbers from it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "builtin.h"

#include "error.h"

#include <inttypes.h>
#include <string.h>

static const lathe_dtype int64 = {MODULE_DTYPE_INT, 64, 1};

/* The slots of a shape heap; `at` is None where a function needs none. */
struct heap {
    int64_t *slots;
    int64_t size;
};

static int32_t heap_of(const lathe_value *args, int32_t i, struct heap *out, lathe_error *error)
{
    const lathe_dltensor *t = lathe_tensor_of(&args[i]);
    *out = (struct heap){0};
    if (args[i].type == LATHE_NONE)
        return LATHE_OK;
    if (!t || t->ndim != 1 || !vm_dtype_is(t->dtype, int64) || !vm_device_is_host(t->device.type) ||
        (uintptr_t)vm_tensor_data(t) % sizeof(int64_t) != 0)
        return vm_fail(error, LATHE_E_ARGUMENT, "argument %d is not a shape heap, an int64 tensor of the CPU", i);
    *out = (struct heap){(int64_t *)(void *)vm_tensor_data(t), t->shape[0]};
    return LATHE_OK;
}

static int32_t slot(const struct heap *h, int64_t i, int64_t **out, lathe_error *error)
{
    if (i < 0 || i >= h->size)
        return vm_fail(error, LATHE_E_FORMAT, "slot %" PRId64 " of a shape heap of %" PRId64, i, h->size);
    *out = &h->slots[i];
    return LATHE_OK;
}

int32_t vm_builtin_alloc_shape_heap(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result,
                                    lathe_error *error)
{
    int64_t size;
    int32_t status = vm_want_count(n, 2, 2, error);
    if (status == LATHE_OK)
        status = vm_want_int(args, 1, &size, error);
    if (status == LATHE_OK)
        status = vm_tensor_alloc(vm_machine_host(m), &size, 1, int64, result, error);
    if (status == LATHE_OK)
        memset(lathe_tensor_of(result)->data, 0, (size_t)size * sizeof size);
    return status;
}

/* args: code and operand. `what` names the number in messages. */
static int32_t match(const struct heap *h, const lathe_value *args, int64_t value, const char *what,
                     const lathe_value *context, lathe_error *error)
{
    int64_t code, operand, *at = NULL;
    int32_t status = vm_want_int(args, 0, &code, error);
    if (status == LATHE_OK)
        status = vm_want_int(args, 1, &operand, error);
    if (status != LATHE_OK || code == MODULE_MATCH_NOTHING)
        return status;
    if (code == MODULE_MATCH_IMMEDIATE) {
        if (value == operand)
            return LATHE_OK;
        (void)vm_fail(error, LATHE_E_SHAPE, "%s is %" PRId64 ", not %" PRId64, what, value, operand);
        return vm_builtin_wrong(context, error);
    }
    if (code != MODULE_MATCH_STORE && code != MODULE_MATCH_LOADED)
        return vm_fail(error, LATHE_E_FORMAT, "code %" PRId64 " of a match is not known", code);
    status = slot(h, operand, &at, error);
    if (status != LATHE_OK)
        return status;
    if (code == MODULE_MATCH_STORE)
        *at = value;
    if (*at == value)
        return LATHE_OK;
    (void)vm_fail(error, LATHE_E_SHAPE, "%s is %" PRId64 ", but elsewhere it is %" PRId64, what, value, *at);
    return vm_builtin_wrong(context, error);
}

int32_t vm_builtin_match_shape(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result,
                               lathe_error *error)
{
    struct heap h;
    const int64_t *dims;
    int64_t wanted;
    size_t rank;
    (void)m, (void)result;
    int32_t status = vm_want_count(n, 4, INT32_MAX, error);
    if (status == LATHE_OK)
        status = vm_want_dims(args, 0, &dims, &rank, error);
    if (status == LATHE_OK)
        status = heap_of(args, 1, &h, error);
    if (status == LATHE_OK)
        status = vm_want_int(args, 2, &wanted, error);
    if (status != LATHE_OK)
        return status;
    if (wanted < 0 || wanted > n || n != wanted * 2 + 4)
        return vm_fail(error, LATHE_E_FORMAT, "%d arguments cannot match %" PRId64 " dimensions", n, wanted);
    if ((int64_t)rank != wanted) {
        (void)vm_fail(error, LATHE_E_SHAPE, "the shape %s has %zu dimensions, not %" PRId64,
                      vm_dims_name(dims, rank).text, rank, wanted);
        return vm_builtin_wrong(&args[n - 1], error);
    }
    for (size_t i = 0; i < rank && status == LATHE_OK; i++) {
        char what[32] = "dimension ";
        size_t at = 10;
        for (size_t ten = i >= 10 ? 10 : 1; ten; ten /= 10)
            what[at++] = (char)('0' + i / ten % 10);
        what[at] = 0;
        status = match(&h, args + 3 + 2 * i, dims[i], what, &args[n - 1], error);
    }
    return status;
}

int32_t vm_builtin_match_prim_value(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result,
                                    lathe_error *error)
{
    struct heap h;
    int64_t value;
    (void)m, (void)result;
    int32_t status = vm_want_count(n, 5, 5, error);
    if (status == LATHE_OK)
        status = vm_want_int(args, 0, &value, error);
    if (status == LATHE_OK)
        status = heap_of(args, 1, &h, error);
    return status == LATHE_OK ? match(&h, args + 2, value, "the value", &args[4], error) : status;
}

static int32_t make(const struct heap *h, const lathe_value *args, int64_t *out, lathe_error *error)
{
    int64_t code, operand, *at = NULL;
    int32_t status = vm_want_int(args, 0, &code, error);
    if (status == LATHE_OK)
        status = vm_want_int(args, 1, &operand, error);
    if (status != LATHE_OK)
        return status;
    *out = operand;
    if (code == MODULE_MAKE_IMMEDIATE)
        return LATHE_OK;
    if (code != MODULE_MAKE_LOADED)
        return vm_fail(error, LATHE_E_FORMAT, "code %" PRId64 " of a made shape is not known", code);
    status = slot(h, operand, &at, error);
    if (status == LATHE_OK)
        *out = *at;
    return status;
}

int32_t vm_builtin_make_shape(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result,
                              lathe_error *error)
{
    struct heap h;
    int64_t rank, *dims = NULL;
    (void)m;
    int32_t status = vm_want_count(n, 2, INT32_MAX, error);
    if (status == LATHE_OK)
        status = heap_of(args, 0, &h, error);
    if (status == LATHE_OK)
        status = vm_want_int(args, 1, &rank, error);
    if (status == LATHE_OK && (rank < 0 || rank > n || n != rank * 2 + 2))
        return vm_fail(error, LATHE_E_FORMAT, "%d arguments cannot make %" PRId64 " dimensions", n, rank);
    if (status == LATHE_OK)
        status = vm_shape_new((size_t)rank, &dims, result, error);
    for (int64_t i = 0; status == LATHE_OK && i < rank; i++)
        status = make(&h, args + 2 + 2 * i, &dims[i], error);
    return status;
}

int32_t vm_builtin_make_prim_value(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result,
                                   lathe_error *error)
{
    struct heap h;
    int64_t value;
    (void)m;
    int32_t status = vm_want_count(n, 3, 3, error);
    if (status == LATHE_OK)
        status = heap_of(args, 0, &h, error);
    if (status == LATHE_OK)
        status = make(&h, args + 1, &value, error);
    if (status == LATHE_OK)
        *result = vm_value_int(value);
    return status;
}

int32_t vm_builtin_shape_of(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result, lathe_error *error)
{
    const lathe_dltensor *t;
    int64_t *dims;
    (void)m;
    int32_t status = vm_want_count(n, 1, 1, error);
    if (status == LATHE_OK)
        status = vm_want_tensor(args, 0, &t, error);
    if (status == LATHE_OK)
        status = vm_shape_new((size_t)t->ndim, &dims, result, error);
    if (status == LATHE_OK && t->ndim > 0)
        memcpy(dims, t->shape, (size_t)t->ndim * sizeof *dims);
    return status;
}

int32_t vm_builtin_tensor_to_shape(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result,
                                   lathe_error *error)
{
    const lathe_dltensor *t;
    int64_t *dims;
    int32_t status = vm_want_count(n, 1, 1, error);
    if (status == LATHE_OK)
        status = vm_want_tensor(args, 0, &t, error);
    if (status != LATHE_OK)
        return status;
    if (t->ndim != 1 || t->dtype.code != MODULE_DTYPE_INT || t->dtype.lanes != 1 ||
        (t->dtype.bits != 64 && t->dtype.bits != 32))
        return vm_fail(error, LATHE_E_SHAPE, "a shape comes from a vector of int64 or int32, not %s%s",
                       vm_dtype_name(t->dtype).text, vm_dims_name(t->shape, (size_t)t->ndim).text);
    size_t rank = (size_t)t->shape[0], each = t->dtype.bits / 8;
    status = vm_shape_new(rank, &dims, result, error);
    if (status == LATHE_OK)
        status = vm_tensor_read(&m->module.rt->devices, t, dims, rank * each, error);
    for (size_t i = rank; status == LATHE_OK && each == 4 && i-- > 0;) {
        int32_t narrow;
        memcpy(&narrow, (const char *)dims + i * 4, 4);
        dims[i] = narrow;
    }
    return status;
}
