/* SPDX-License-Identifier: Apache-2.0 */
/* lathe_tensor.h: tensors as lathe.h and lathe_vm.h take and give them. The layout is that of DLPack 1.x, so a DLTensor
 * or a DLManagedTensorVersioned of another library can be passed after a cast. */
#ifndef LATHE_TENSOR_H
#define LATHE_TENSOR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lathe_dtype { /* of DLPack: int 0, uint 1, float 2, handle 3, bfloat 4, bool 6 */
    uint8_t code, bits;
    uint16_t lanes;
} lathe_dtype;

typedef struct lathe_device {
    int32_t type, id; /* the CPU: 1, 0 */
} lathe_device;

/* DLTensor */
typedef struct lathe_dltensor {
    void *data;
    lathe_device device;
    int32_t ndim;
    lathe_dtype dtype;
    int64_t *shape;
    int64_t *strides; /* elements; NULL: without gaps */
    uint64_t byte_offset;
} lathe_dltensor;

/* DLManagedTensorVersioned: a tensor that owns its memory. Who has it calls deleter, once. */
typedef struct lathe_managed_tensor {
    struct {
        uint32_t major, minor;
    } version;
    void *manager_ctx;
    void (*deleter)(struct lathe_managed_tensor *self);
    uint64_t flags;
    lathe_dltensor dl_tensor;
} lathe_managed_tensor;

#ifdef __cplusplus
}
#endif
#endif
