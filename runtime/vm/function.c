/* function.c: functions as values, called from either side.
 * SPDX-License-Identifier: Apache-2.0 */
#include "function.h"

#include "error.h"

/* How machine code calls a function of ours. */
static int from_machine_code(void *self, const lathe_value *args, int32_t n, lathe_value *result)
{
    vm_function *f = self;
    lathe_error error;
    if (f->call(f, args, n, result, &error) == LATHE_OK)
        return 0;
    lathe_release(result);
    return vm_abi_raise(&error);
}

void *vm_function_new(size_t size, vm_call_function call, lathe_object *owner, void (*destroy)(void *self))
{
    vm_function *f = vm_object_new(size, LATHE_FUNCTION, destroy ? destroy : vm_function_destroy);
    if (!f)
        return NULL;
    f->safe_call = from_machine_code;
    f->call = call;
    f->owner = owner;
    if (owner)
        vm_object_retain(owner);
    return f;
}

void vm_function_destroy(void *self)
{
    vm_object_release(((vm_function *)self)->owner);
}

int32_t vm_call(const lathe_value *function, const lathe_value *args, int32_t n, lathe_value *result,
                lathe_error *error)
{
    *result = (lathe_value){0};
    if (function->type != LATHE_FUNCTION)
        return vm_fail(error, LATHE_E_ARGUMENT, "%s is called, which is not a function", vm_type_name(function->type));
    vm_function *f = (vm_function *)(void *)function->u.v_object;
    if (f->safe_call != from_machine_code)
        return vm_abi_call(f->safe_call, f, NULL, args, n, result, error);
    int32_t status = f->call(f, args, n, result, error);
    if (status != LATHE_OK)
        lathe_release(result);
    return status;
}

/* --- arguments --- */

int32_t vm_want_count(int32_t n, int32_t least, int32_t most, lathe_error *error)
{
    if (n >= least && n <= most)
        return LATHE_OK;
    if (least == most)
        return vm_fail(error, LATHE_E_ARGUMENT, "%d arguments are given, %d taken", n, least);
    if (most == INT32_MAX)
        return vm_fail(error, LATHE_E_ARGUMENT, "%d arguments are given, at least %d taken", n, least);
    return vm_fail(error, LATHE_E_ARGUMENT, "%d arguments are given, %d to %d taken", n, least, most);
}

static int32_t unwanted(const lathe_value *args, int32_t i, const char *wanted, lathe_error *error)
{
    return vm_fail(error, LATHE_E_ARGUMENT, "argument %d is %s, not %s", i, vm_type_name(args[i].type), wanted);
}

int32_t vm_want_int(const lathe_value *args, int32_t i, int64_t *out, lathe_error *error)
{
    return vm_value_to_int(&args[i], out) ? LATHE_OK : unwanted(args, i, "an int", error);
}

int32_t vm_want_text(const lathe_value *args, int32_t i, vm_bytes *out, lathe_error *error)
{
    *out = vm_value_text(&args[i]);
    return out->data ? LATHE_OK : unwanted(args, i, "a string", error);
}

int32_t vm_want_tensor(const lathe_value *args, int32_t i, const lathe_dltensor **out, lathe_error *error)
{
    *out = lathe_tensor_of(&args[i]);
    return *out ? LATHE_OK : unwanted(args, i, "a tensor", error);
}

int32_t vm_want_dims(const lathe_value *args, int32_t i, const int64_t **dims, size_t *n, lathe_error *error)
{
    *dims = NULL, *n = 0;
    return vm_value_dims(&args[i], dims, n) ? LATHE_OK : unwanted(args, i, "a shape", error);
}

int32_t vm_want_type(const lathe_value *args, int32_t i, int32_t type, lathe_error *error)
{
    return args[i].type == type ? LATHE_OK : unwanted(args, i, vm_type_name(type), error);
}
