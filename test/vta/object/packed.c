/* packed.c: a function of buffer handles as one of tvm-ffi's C ABI, __tvm_ffi_NAME: what is sent to a remote device.
 * SOURCE has the function, NAME is its name, COUNT the number of its arguments, 3 or 4. Tensors of the accelerator come
 * with their buffers as data pointers, which nobody follows.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOURCE
#define SOURCE "gemm.c"
#define NAME my_gemm
#define COUNT 3
#endif
#include SOURCE

#include "lathe_vm.h"

#define JOINED(a, b) a##b
#define PACKED(name) JOINED(__tvm_ffi_, name)

/* The tensor of an argument: borrowed, or behind the header of an object. */
static const lathe_dltensor *tensor_of(const lathe_value *v)
{
    enum { OBJECT_HEADER = 24 };
    if (v->type == LATHE_DLTENSOR)
        return v->u.v_tensor;
    return v->type == LATHE_TENSOR ? (const lathe_dltensor *)(const void *)((const char *)v->u.v_object + OBJECT_HEADER)
                                   : 0;
}

int PACKED(NAME)(void *self, const lathe_value *args, int32_t n, lathe_value *result);
int PACKED(NAME)(void *self, const lathe_value *args, int32_t n, lathe_value *result)
{
    void *data[COUNT];
    (void)self;
    (void)result;
    if (n != COUNT)
        return -1;
    for (int i = 0; i < COUNT; i++) {
        const lathe_dltensor *t = tensor_of(&args[i]);
        if (!t || t->device.type != LATHE_EXT_DEV)
            return -1;
        data[i] = t->data;
    }
#if COUNT == 3
    return NAME(data[0], data[1], data[2]);
#else
    return NAME(data[0], data[1], data[2], data[3]);
#endif
}
