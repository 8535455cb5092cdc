/* function.h: functions as values: an object with tvm-ffi's calling convention in front, and behind it one of ours,
 * which has errors as values.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_VM_FUNCTION_H
#define LATHE_VM_FUNCTION_H
#include "tvm_abi.h"
#include "value.h"

typedef struct vm_function vm_function;
/* args are borrowed; *result is None before; what it holds after a failure, the caller gives back. */
typedef int32_t (*vm_call_function)(vm_function *self, const lathe_value *args, int32_t n, lathe_value *result,
                                    lathe_error *error);

/* What the functions of one kind begin with. */
struct vm_function {
    lathe_object head;
    vm_safe_call safe_call;
    void *cpp_call; /* NULL: it is not made in C++ */
    vm_call_function call;
    lathe_object *owner; /* the module that it keeps alive; may be NULL */
};

/* A function object of `size` bytes that begins with vm_function. `destroy` calls vm_function_destroy last. */
void *vm_function_new(size_t size, vm_call_function call, lathe_object *owner, void (*destroy)(void *self));
void vm_function_destroy(void *self);

/* A function of ours or another's. */
int32_t vm_call(const lathe_value *function, const lathe_value *args, int32_t n, lathe_value *result,
                lathe_error *error);

/* Checks of arguments for functions of ours. LATHE_E_ARGUMENT. */
int32_t vm_want_count(int32_t n, int32_t least, int32_t most, lathe_error *error);
int32_t vm_want_int(const lathe_value *args, int32_t i, int64_t *out, lathe_error *error);
int32_t vm_want_text(const lathe_value *args, int32_t i, vm_bytes *out, lathe_error *error);
int32_t vm_want_tensor(const lathe_value *args, int32_t i, const lathe_dltensor **out, lathe_error *error);
int32_t vm_want_dims(const lathe_value *args, int32_t i, const int64_t **dims, size_t *n, lathe_error *error);
int32_t vm_want_type(const lathe_value *args, int32_t i, int32_t type, lathe_error *error);
#endif
