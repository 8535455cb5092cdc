/* memory.h: the device table, allocators, storages, and the tensors in them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_VM_MEMORY_H
#define LATHE_VM_MEMORY_H
#include "value.h"

#include <pthread.h>

enum { VM_ALIGN = 64, VM_DEVICES_MAX = 32 };
enum vm_allocator_kind { VM_ALLOCATE_NAIVE = 1, VM_ALLOCATE_POOLED = 2 };

/* The device table of a runtime. Rows are replaced and added, never taken away. */
typedef struct vm_devices {
    pthread_mutex_t lock;
    lathe_device_api rows[VM_DEVICES_MAX];
    uint32_t count;
} vm_devices;

void vm_devices_init(vm_devices *d);
void vm_devices_free(vm_devices *d);
int32_t vm_devices_add(vm_devices *d, const lathe_device_api *row, lathe_error *error);
/* The row of a type, copied; LATHE_E_UNSUPPORTED. */
int32_t vm_devices_get(const vm_devices *d, int32_t type, lathe_device_api *out, lathe_error *error);
/* Is the memory of that type of device that of this process? */
bool vm_device_is_host(int32_t type);
/* "cpu:0" */
vm_name vm_device_name(lathe_device device);

/* An allocator of one device, an object: storages keep it. `owner` (the runtime) is kept. */
typedef struct vm_allocator vm_allocator;
vm_allocator *vm_allocator_new(const lathe_device_api *api, lathe_device device, enum vm_allocator_kind kind,
                               lathe_object *owner);
/* Gives back what it keeps for later, and keeps nothing from here on. The caller's reference stays. */
void vm_allocator_close(vm_allocator *a);
lathe_device vm_allocator_device(const vm_allocator *a);

/* Memory of one tensor or several; an object of type LATHE_OBJECT. */
int32_t vm_storage_new(vm_allocator *a, size_t bytes, lathe_value *out, lathe_error *error);
/* A tensor in a storage, at a byte offset. */
int32_t vm_storage_tensor(const lathe_value *storage, int64_t offset, const int64_t *dims, size_t n,
                          lathe_dtype dtype, lathe_value *out, lathe_error *error);
bool vm_value_is_storage(const lathe_value *v);

/* A tensor with a storage of its own. */
int32_t vm_tensor_alloc(vm_allocator *a, const int64_t *dims, size_t n, lathe_dtype dtype, lathe_value *out,
                        lathe_error *error);
/* A copy of a tensor without gaps, in memory of `a`. */
int32_t vm_tensor_copy(const vm_devices *d, const lathe_dltensor *from, vm_allocator *a, lathe_value *out,
                       lathe_error *error);
/* The bytes of a tensor into another one that has as many, both without gaps. */
int32_t vm_tensor_copy_to(const vm_devices *d, const lathe_dltensor *from, const lathe_dltensor *to,
                          lathe_error *error);
/* The same from bytes of this process; they must be as many as the tensor has. */
int32_t vm_tensor_from_bytes(const vm_devices *d, vm_bytes bytes, const int64_t *dims, size_t n, lathe_dtype dtype,
                             vm_allocator *a, lathe_value *out, lathe_error *error);
/* Bytes of a tensor to this process. */
int32_t vm_tensor_read(const vm_devices *d, const lathe_dltensor *from, void *to, size_t bytes, lathe_error *error);
#endif
