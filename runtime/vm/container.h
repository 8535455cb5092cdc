/* container.h: the tree of modules in a file (abi/module.h): kinds, bytes and children, checked.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_VM_CONTAINER_H
#define LATHE_VM_CONTAINER_H
#include "reader.h"

enum { VM_CONTAINER_MODULES = 1024 };

typedef struct vm_entry {
    vm_bytes kind, content; /* in the bytes that were read */
    size_t first_child, children; /* in vm_container.children */
} vm_entry;

typedef struct vm_container {
    vm_entry *entries; /* entry 0 is the root */
    uint64_t *children; /* each larger than its parent */
    size_t count;
} vm_container;

/* `bytes` begins with the container and may go on behind it. */
int32_t vm_container_read(vm_bytes bytes, vm_container *out, lathe_error *error);
void vm_container_free(vm_container *c);
#endif
