/* packed.c: my_gemm of gemm.c as a function of tvm-ffi's C ABI, __tvm_ffi_my_gemm(A, B, C): what is sent to a remote
 * device. Tensors of the accelerator come with their buffers as data pointers, which nobody follows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "gemm.c"

#include "lathe_vm.h"

/* The tensor of an argument: borrowed, or behind the header of an object. */
static const lathe_dltensor *tensor_of(const lathe_value *v)
{
    enum { OBJECT_HEADER = 24 };
    if (v->type == LATHE_DLTENSOR)
        return v->u.v_tensor;
    return v->type == LATHE_TENSOR ? (const lathe_dltensor *)(const void *)((const char *)v->u.v_object + OBJECT_HEADER)
                                   : 0;
}

int __tvm_ffi_my_gemm(void *self, const lathe_value *args, int32_t n, lathe_value *result);
int __tvm_ffi_my_gemm(void *self, const lathe_value *args, int32_t n, lathe_value *result)
{
    void *data[3];
    (void)self;
    (void)result;
    if (n != 3)
        return -1;
    for (int i = 0; i < 3; i++) {
        const lathe_dltensor *t = tensor_of(&args[i]);
        if (!t || t->device.type != LATHE_EXT_DEV)
            return -1;
        data[i] = t->data;
    }
    return my_gemm(data[0], data[1], data[2]);
}
