/* packed.c: my_gemm of gemm.c as a function of tvm-ffi's C ABI, __tvm_ffi_my_gemm(A, B, C): what is sent to a remote
 * device. Tensors of the accelerator come with their buffers as data pointers, which nobody follows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "gemm.c"

#include "lathe_vm.h"

int __tvm_ffi_my_gemm(void *self, const lathe_value *args, int32_t n, lathe_value *result);
int __tvm_ffi_my_gemm(void *self, const lathe_value *args, int32_t n, lathe_value *result)
{
    void *data[3];
    (void)self;
    (void)result;
    if (n != 3)
        return -1;
    for (int i = 0; i < 3; i++) {
        if (args[i].type != LATHE_DLTENSOR || args[i].u.v_tensor->device.type != LATHE_EXT_DEV)
            return -1;
        data[i] = args[i].u.v_tensor->data;
    }
    return my_gemm(data[0], data[1], data[2]);
}
