/* pool.h: threads that share the parts of a kernel. The caller works too; parts are taken one by one, so that a slow
 * processor takes fewer. Threads are started by the first call that has something for them. A pool that is busy, and
 * one in a process that was forked from the pool's own, leave all parts to the caller.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_VM_POOL_H
#define LATHE_VM_POOL_H
#include "lathe_vm.h"

typedef struct vm_pool vm_pool;

enum { VM_POOL_MAX = 1024 };

/* workers: with the caller; 0: as many as this process may use processors. NULL: no memory. */
vm_pool *vm_pool_new(uint32_t workers);
/* Not while it works. */
void vm_pool_free(vm_pool *p);
void vm_pool_resize(vm_pool *p, uint32_t workers);
uint32_t vm_pool_workers(vm_pool *p);
/* Calls work(context, part) for each part of 0..parts-1, on any threads, and returns when all have returned. */
void vm_pool_run(vm_pool *p, void (*work)(void *context, uint32_t part), void *context, uint32_t parts);
#endif
