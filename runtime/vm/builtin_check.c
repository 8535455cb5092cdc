/* builtin_check.c: what a function checks of its arguments. Each check ends with the context that it was written with,
 * which goes into the message.
 * SPDX-License-Identifier: Apache-2.0 */
#include "builtin.h"

#include "error.h"

#include <inttypes.h>

int32_t vm_builtin_wrong(const lathe_value *context, lathe_error *error)
{
    vm_bytes said = vm_value_text(context);
    lathe_error what;
    if (!error || said.size == 0)
        return LATHE_E_SHAPE;
    what = *error;
    return vm_fail(error, LATHE_E_SHAPE, "%.700s (%.*s)", what.message, said.size < 200 ? (int)said.size : 200,
                   (const char *)said.data);
}

static int32_t wrong_type(const lathe_value *v, const char *wanted, const lathe_value *context, lathe_error *error)
{
    (void)vm_fail(error, LATHE_E_SHAPE, "%s is given where %s is taken", vm_type_name(v->type), wanted);
    return vm_builtin_wrong(context, error);
}

static int32_t check_rank(size_t rank, int64_t wanted, const int64_t *dims, const lathe_value *context,
                          lathe_error *error)
{
    if (wanted == -1 || (int64_t)rank == wanted)
        return LATHE_OK;
    (void)vm_fail(error, LATHE_E_SHAPE, "the shape %s has %zu dimensions, not %" PRId64, vm_dims_name(dims, rank).text,
                  rank, wanted);
    return vm_builtin_wrong(context, error);
}

int32_t vm_builtin_check_tensor_info(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result,
                                     lathe_error *error)
{
    int64_t rank;
    (void)m, (void)result;
    int32_t status = vm_want_count(n, 3, 4, error);
    if (status == LATHE_OK)
        status = vm_want_int(args, 1, &rank, error);
    if (status == LATHE_OK && n == 4)
        status = vm_want_type(args, 2, LATHE_DTYPE, error);
    if (status != LATHE_OK)
        return status;
    const lathe_dltensor *t = lathe_tensor_of(&args[0]);
    if (!t)
        return wrong_type(&args[0], "a tensor", &args[n - 1], error);
    status = check_rank((size_t)t->ndim, rank, t->shape, &args[n - 1], error);
    if (status != LATHE_OK || n == 3 || vm_dtype_is_any(args[2].u.v_dtype) || vm_dtype_is(t->dtype, args[2].u.v_dtype))
        return status;
    (void)vm_fail(error, LATHE_E_SHAPE, "the tensor has elements of %s, not %s", vm_dtype_name(t->dtype).text,
                  vm_dtype_name(args[2].u.v_dtype).text);
    return vm_builtin_wrong(&args[n - 1], error);
}

int32_t vm_builtin_check_shape_info(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result,
                                    lathe_error *error)
{
    int64_t rank;
    const int64_t *dims;
    size_t has;
    (void)m, (void)result;
    int32_t status = vm_want_count(n, 3, 3, error);
    if (status == LATHE_OK)
        status = vm_want_int(args, 1, &rank, error);
    if (status != LATHE_OK)
        return status;
    if (args[0].type != LATHE_SHAPE)
        return wrong_type(&args[0], "a shape", &args[2], error);
    (void)vm_value_dims(&args[0], &dims, &has);
    return check_rank(has, rank, dims, &args[2], error);
}

int32_t vm_builtin_check_prim_value_info(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result,
                                         lathe_error *error)
{
    (void)m, (void)result;
    int32_t status = vm_want_count(n, 3, 3, error);
    if (status == LATHE_OK)
        status = vm_want_type(args, 1, LATHE_DTYPE, error);
    if (status != LATHE_OK)
        return status;
    lathe_dtype wanted = args[1].u.v_dtype;
    bool good;
    switch (wanted.code) {
    case MODULE_DTYPE_INT:
    case MODULE_DTYPE_UINT:
    case MODULE_DTYPE_BOOL: good = args[0].type == LATHE_INT || args[0].type == LATHE_BOOL; break;
    case MODULE_DTYPE_HANDLE: good = args[0].type == LATHE_POINTER ||
                                   args[0].type == LATHE_NONE || wanted.bits == 0; break;
    default: good = args[0].type == LATHE_FLOAT || args[0].type == LATHE_INT; break;
    }
    return good ? LATHE_OK : wrong_type(&args[0], vm_dtype_name(wanted).text, &args[2], error);
}

int32_t vm_builtin_check_tuple_info(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result,
                                    lathe_error *error)
{
    int64_t size;
    (void)m, (void)result;
    int32_t status = vm_want_count(n, 3, 3, error);
    if (status == LATHE_OK)
        status = vm_want_int(args, 1, &size, error);
    if (status != LATHE_OK)
        return status;
    if (args[0].type != LATHE_ARRAY)
        return wrong_type(&args[0], "a tuple", &args[2], error);
    if ((int64_t)lathe_array_size(&args[0]) == size)
        return LATHE_OK;
    (void)vm_fail(error, LATHE_E_SHAPE, "the tuple has %zu elements, not %" PRId64, lathe_array_size(&args[0]), size);
    return vm_builtin_wrong(&args[2], error);
}

int32_t vm_builtin_check_func_info(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result,
                                   lathe_error *error)
{
    (void)m, (void)result;
    int32_t status = vm_want_count(n, 2, 2, error);
    if (status != LATHE_OK || args[0].type == LATHE_FUNCTION)
        return status;
    return wrong_type(&args[0], "a function", &args[1], error);
}
