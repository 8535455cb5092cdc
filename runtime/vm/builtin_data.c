/* builtin_data.c: memory, tensors, tuples, closures, and what the machine is like.
 * SPDX-License-Identifier: Apache-2.0 */
#include "builtin.h"

#include "boundary.h"
#include "error.h"
#include "jit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- memory --- */

/* The machine, which bytecode hands over as a pointer. */
static int32_t want_machine(vm_machine *m, const lathe_value *args, lathe_error *error)
{
    return args[0].type == LATHE_POINTER && args[0].u.v_pointer == m
               ? LATHE_OK
               : vm_fail(error, LATHE_E_ARGUMENT, "argument 0 is %s, not the machine", vm_type_name(args[0].type));
}

static int32_t want_global(const lathe_value *args, int32_t i, lathe_error *error)
{
    vm_bytes scope;
    int32_t status = vm_want_text(args, i, &scope, error);
    if (status == LATHE_OK && scope.size != 0 && !vm_text_is(scope, "global"))
        return vm_fail(error, LATHE_E_UNSUPPORTED, "the memory scope %.*s; only global is supported",
                       vm_text_shown(scope), (const char *)scope.data);
    return status;
}

/* (machine, shape, device, dtype, scope) */
int32_t vm_builtin_alloc_storage(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result,
                                 lathe_error *error)
{
    const int64_t *dims;
    int64_t device;
    size_t rank, bytes;
    vm_target target;
    int32_t status = vm_want_count(n, 4, 5, error);
    if (status == LATHE_OK)
        status = want_machine(m, args, error);
    if (status == LATHE_OK)
        status = vm_want_dims(args, 1, &dims, &rank, error);
    if (status == LATHE_OK)
        status = vm_want_int(args, 2, &device, error);
    if (status == LATHE_OK)
        status = vm_want_type(args, 3, LATHE_DTYPE, error);
    if (status == LATHE_OK && n == 5)
        status = want_global(args, 4, error);
    if (status == LATHE_OK)
        status = vm_machine_target(m, device, &target, error);
    if (status != LATHE_OK)
        return status;
    if (!vm_bytes_of(args[3].u.v_dtype, dims, rank, &bytes))
        return vm_fail(error, LATHE_E_SHAPE, "a storage of shape %s: a dimension below 0, or more than memory can hold",
                       vm_dims_name(dims, rank).text);
    return vm_storage_new(target.allocator, bytes, result, error);
}

/* (storage, offset, shape, dtype, and in some versions a scope) */
int32_t vm_builtin_alloc_tensor(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result,
                                lathe_error *error)
{
    const int64_t *dims;
    int64_t offset;
    size_t rank;
    (void)m;
    int32_t status = vm_want_count(n, 4, 5, error);
    if (status == LATHE_OK && !vm_value_is_storage(&args[0]))
        return vm_fail(error, LATHE_E_ARGUMENT, "argument 0 is %s, not a storage", vm_type_name(args[0].type));
    if (status == LATHE_OK)
        status = vm_want_int(args, 1, &offset, error);
    if (status == LATHE_OK)
        status = vm_want_dims(args, 2, &dims, &rank, error);
    if (status == LATHE_OK)
        status = vm_want_type(args, 3, LATHE_DTYPE, error);
    if (status == LATHE_OK && n == 5)
        status = want_global(args, 4, error);
    return status == LATHE_OK
               ? vm_storage_tensor(&args[0], offset, dims, rank, args[3].u.v_dtype, result, error)
               : status;
}

/* --- tensors --- */

int32_t vm_builtin_copy(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result, lathe_error *error)
{
    (void)m;
    int32_t status = vm_want_count(n, 1, 1, error);
    if (status == LATHE_OK)
        *result = lathe_retain(&args[0]);
    return status;
}

int32_t vm_builtin_null_value(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result,
                              lathe_error *error)
{
    (void)m, (void)args, (void)result;
    return vm_want_count(n, 0, 0, error);
}

static int32_t want_own_tensor(const lathe_value *args, int32_t i, vm_tensor **out, lathe_error *error)
{
    int32_t status = vm_want_type(args, i, LATHE_TENSOR, error);
    *out = (vm_tensor *)(void *)args[i].u.v_object;
    return status;
}

int32_t vm_builtin_reshape(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result, lathe_error *error)
{
    vm_tensor *t, *view;
    const int64_t *dims;
    size_t rank, before, after;
    (void)m;
    int32_t status = vm_want_count(n, 2, 2, error);
    if (status == LATHE_OK)
        status = want_own_tensor(args, 0, &t, error);
    if (status == LATHE_OK)
        status = vm_want_dims(args, 1, &dims, &rank, error);
    if (status != LATHE_OK)
        return status;
    if (!vm_bytes_of(t->t.dtype, dims, rank, &after) ||
        !vm_bytes_of(t->t.dtype, t->t.shape, (size_t)t->t.ndim, &before) || before != after)
        return vm_fail(error, LATHE_E_SHAPE, "a tensor of shape %s cannot become %s",
                       vm_dims_name(t->t.shape, (size_t)t->t.ndim).text, vm_dims_name(dims, rank).text);
    status = vm_tensor_new(t->t.data, t->t.device, t->t.dtype, dims, rank, &t->head, &view, error);
    if (status != LATHE_OK)
        return status;
    view->t.byte_offset = t->t.byte_offset;
    view->borrowed = vm_tensor_is_borrowed(&args[0]);
    *result = vm_value_of(view);
    return LATHE_OK;
}

/* (tensor, device type, device id) */
int32_t vm_builtin_to_device(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result,
                             lathe_error *error)
{
    const lathe_dltensor *t;
    int64_t type, id;
    int32_t status = vm_want_count(n, 3, 3, error);
    if (status == LATHE_OK)
        status = vm_want_tensor(args, 0, &t, error);
    if (status == LATHE_OK)
        status = vm_want_int(args, 1, &type, error);
    if (status == LATHE_OK)
        status = vm_want_int(args, 2, &id, error);
    if (status != LATHE_OK)
        return status;
    if (t->device.type == type && t->device.id == id) {
        *result = lathe_retain(&args[0]);
        return LATHE_OK;
    }
    lathe_device device = {type >= 0 && type <= INT32_MAX ? (int32_t)type : -1,
                           id >= 0 && id <= INT32_MAX ? (int32_t)id : -1};
    vm_allocator *a = vm_machine_allocator(m, device);
    if (!a)
        return vm_fail(error, LATHE_E_ARGUMENT, "the machine was not initialized for %s", vm_device_name(device).text);
    return vm_tensor_copy(&m->module.rt->devices, t, a, result, error);
}

/* (from, to) */
int32_t vm_builtin_copy_from_to(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result,
                                lathe_error *error)
{
    const lathe_dltensor *from, *to;
    (void)result;
    int32_t status = vm_want_count(n, 2, 2, error);
    if (status == LATHE_OK)
        status = vm_want_tensor(args, 0, &from, error);
    if (status == LATHE_OK)
        status = vm_want_tensor(args, 1, &to, error);
    if (status == LATHE_OK && vm_tensor_is_borrowed(&args[1]))
        return vm_fail(error, LATHE_E_ARGUMENT, "argument 1 is the caller's, and only read");
    return status == LATHE_OK ? vm_tensor_copy_to(&m->module.rt->devices, from, to, error) : status;
}

int32_t vm_builtin_read_if_cond(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result,
                                lathe_error *error)
{
    const lathe_dltensor *t;
    uint8_t bytes[8] = {0}, any = 0;
    size_t size;
    int64_t number;
    int32_t status = vm_want_count(n, 1, 1, error);
    if (status == LATHE_OK && vm_value_to_int(&args[0], &number)) {
        *result = (lathe_value){.type = LATHE_BOOL, .u.v_int = number != 0};
        return LATHE_OK;
    }
    if (status == LATHE_OK)
        status = vm_want_tensor(args, 0, &t, error);
    if (status != LATHE_OK)
        return status;
    const uint8_t code = t->dtype.code;
    bool whole = code == MODULE_DTYPE_INT || code == MODULE_DTYPE_UINT || code == MODULE_DTYPE_BOOL;
    if (!whole || !vm_bytes_of(t->dtype, t->shape, (size_t)t->ndim, &size) || size == 0 || size > 8 ||
        size != (t->dtype.bits + 7u) / 8)
        return vm_fail(error, LATHE_E_SHAPE, "a condition of %s%s; it must be one bool or integer",
                       vm_dtype_name(t->dtype).text, vm_dims_name(t->shape, (size_t)t->ndim).text);
    status = vm_tensor_read(&m->module.rt->devices, t, bytes, size, error);
    for (size_t i = 0; i < size; i++)
        any |= bytes[i];
    if (status == LATHE_OK)
        *result = (lathe_value){.type = LATHE_BOOL, .u.v_int = any != 0};
    return status;
}

int32_t vm_builtin_ensure_zero_offset(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result,
                                      lathe_error *error)
{
    const lathe_dltensor *t;
    int32_t status = vm_want_count(n, 1, 1, error);
    if (status == LATHE_OK)
        status = vm_want_tensor(args, 0, &t, error);
    if (status != LATHE_OK)
        return status;
    if (t->byte_offset == 0) {
        *result = lathe_retain(&args[0]);
        return LATHE_OK;
    }
    vm_allocator *a = vm_machine_allocator(m, t->device);
    return vm_tensor_copy(&m->module.rt->devices, t, a ? a : vm_machine_host(m), result, error);
}

/* --- tuples --- */

int32_t vm_builtin_make_tuple(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result,
                              lathe_error *error)
{
    (void)m;
    return vm_array_new(args, (size_t)n, result, error);
}

static int32_t element(const lathe_value *args, int32_t n, lathe_value **out, lathe_error *error)
{
    int64_t i;
    int32_t status = vm_want_count(n, 2, 2, error);
    if (status == LATHE_OK)
        status = vm_want_type(args, 0, LATHE_ARRAY, error);
    if (status == LATHE_OK)
        status = vm_want_int(args, 1, &i, error);
    if (status != LATHE_OK)
        return status;
    vm_array *a = (vm_array *)(void *)args[0].u.v_object;
    if (i < 0 || i >= a->size)
        return vm_fail(error, LATHE_E_SHAPE, "element %" PRId64 " of a tuple of %" PRId64, i, a->size);
    *out = &a->data[i];
    return LATHE_OK;
}

int32_t vm_builtin_tuple_getitem(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result,
                                 lathe_error *error)
{
    lathe_value *at = NULL;
    (void)m;
    int32_t status = element(args, n, &at, error);
    if (status == LATHE_OK)
        *result = lathe_retain(at);
    return status;
}

/* The element is let go where no one else reads the tuple any more. */
int32_t vm_builtin_tuple_reset_item(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result,
                                    lathe_error *error)
{
    lathe_value *at = NULL;
    (void)m, (void)result;
    int32_t status = element(args, n, &at, error);
    if (status == LATHE_OK)
        lathe_release(at);
    return status;
}

/* --- closures --- */

/* A function with its last arguments. */
struct bound {
    vm_function f;
    lathe_value function, last; /* last: an array */
};

static void destroy_bound(void *self)
{
    struct bound *b = self;
    lathe_release(&b->function);
    lathe_release(&b->last);
    vm_function_destroy(self);
}

static int32_t call_bound(vm_function *self, const lathe_value *args, int32_t n, lathe_value *result,
                          lathe_error *error)
{
    const struct bound *b = (struct bound *)(void *)self;
    const vm_array *last = (const vm_array *)(const void *)b->last.u.v_object;
    if (n > INT32_MAX - (int32_t)last->size)
        return vm_fail(error, LATHE_E_ARGUMENT, "%d arguments are too many", n);
    size_t total = (size_t)n + (size_t)last->size;
    lathe_value *all = malloc((total + 1) * sizeof *all);
    if (!all)
        return vm_no_memory(error, total * sizeof *all);
    if (n > 0)
        memcpy(all, args, (size_t)n * sizeof *all);
    if (last->size > 0)
        memcpy(all + n, last->data, (size_t)last->size * sizeof *all);
    int32_t status = vm_call(&b->function, all, (int32_t)total, result, error);
    free(all);
    return status;
}

/* (function, values...): a closure may outlive the call, so that borrowed tensors among the values are copied. */
int32_t vm_builtin_make_closure(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result,
                                lathe_error *error)
{
    int32_t status = vm_want_count(n, 1, INT32_MAX, error);
    if (status == LATHE_OK)
        status = vm_want_type(args, 0, LATHE_FUNCTION, error);
    if (status != LATHE_OK)
        return status;
    struct bound *b = vm_function_new(sizeof *b, call_bound, NULL, destroy_bound);
    if (!b)
        return vm_no_memory(error, sizeof *b);
    b->function = lathe_retain(&args[0]);
    status = vm_array_new(args + 1, (size_t)n - 1, &b->last, error);
    if (status == LATHE_OK)
        status = vm_boundary_out(m, &b->last, error);
    if (status == LATHE_OK)
        *result = vm_value_of(b);
    else
        vm_object_release(&b->f.head);
    return status;
}

/* (machine, closure, arguments...) */
int32_t vm_builtin_invoke_closure(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result,
                                  lathe_error *error)
{
    int32_t status = vm_want_count(n, 2, INT32_MAX, error);
    if (status == LATHE_OK)
        status = want_machine(m, args, error);
    return status == LATHE_OK ? vm_call(&args[1], args + 2, n - 2, result, error) : status;
}

/* (function, arguments..., shape): the dimensions of the shape become arguments. */
int32_t vm_builtin_call_tir_dyn(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result,
                                lathe_error *error)
{
    const int64_t *dims;
    size_t rank;
    (void)m;
    int32_t status = vm_want_count(n, 2, INT32_MAX, error);
    if (status == LATHE_OK)
        status = vm_want_dims(args, n - 1, &dims, &rank, error);
    if (status != LATHE_OK)
        return status;
    size_t plain = (size_t)n - 2, total = plain + rank;
    if (total > INT32_MAX)
        return vm_fail(error, LATHE_E_ARGUMENT, "%zu arguments are too many", total);
    lathe_value *all = malloc((total + 1) * sizeof *all);
    if (!all)
        return vm_no_memory(error, total * sizeof *all);
    if (plain > 0)
        memcpy(all, args + 1, plain * sizeof *all);
    for (size_t i = 0; i < rank; i++)
        all[plain + i] = vm_value_int(dims[i]);
    status = vm_call(&args[0], all, (int32_t)total, result, error);
    free(all);
    return status;
}

/* --- the machine that runs this --- */

/* (bytes of a vector, vector registers) */
int32_t vm_builtin_has_vectors(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result,
                               lathe_error *error)
{
    int64_t bytes, registers;
    (void)m;
    int32_t status = vm_want_count(n, 2, 2, error);
    if (status == LATHE_OK)
        status = vm_want_int(args, 0, &bytes, error);
    if (status == LATHE_OK)
        status = vm_want_int(args, 1, &registers, error);
    if (status != LATHE_OK)
        return status;
    jit_machine has = jit_this_machine();
    *result = vm_value_int(bytes <= has.vector_bytes && registers <= has.vector_regs);
    return LATHE_OK;
}
