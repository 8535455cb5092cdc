/* stored.h: tensors as TVM stores them in files.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_VM_STORED_H
#define LATHE_VM_STORED_H
#include "reader.h"

enum { VM_STORED_RANK = 64 };

typedef struct vm_stored {
    size_t rank;
    lathe_dtype dtype;
    vm_bytes data; /* in the file: as many bytes as the shape has */
    int64_t dims[VM_STORED_RANK];
} vm_stored;

int32_t vm_stored_read(vm_reader *r, vm_stored *out, lathe_error *error);
#endif
