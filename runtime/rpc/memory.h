/* memory.h: the memory that a client may name. The addresses that a client sees are made up: they only name a block and
 * a place in it. They are never used twice, and blocks do not touch, so no address reaches another block or this
 * process.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_RPC_MEMORY_H
#define LATHE_RPC_MEMORY_H
#include "wire.h"

enum { RPC_DEVICES_MAX = 8 };

typedef struct rpc_block {
    uint64_t base, size; /* as the client sees it */
    void *real;          /* what the device's functions take */
    lathe_device device;
    bool owned; /* allocated here; else of a result that a handle holds */
    uint64_t charged; /* what of the limit it takes: the size in whole steps of its alignment */
} rpc_block;

typedef struct rpc_memory {
    lathe_device_api devices[RPC_DEVICES_MAX];
    uint32_t n_devices;
    rpc_block *blocks; /* by base */
    size_t count, capacity, most;
    uint64_t next, used, limit;
} rpc_memory;

void rpc_memory_init(rpc_memory *m, uint64_t limit, size_t most_blocks);
void rpc_memory_free(rpc_memory *m);
/* The CPU's rows are there from the beginning. */
void rpc_memory_add_device(rpc_memory *m, const lathe_device_api *row);
/* LATHE_E_UNSUPPORTED. */
int32_t rpc_memory_device(rpc_memory *m, lathe_device device, const lathe_device_api **out, lathe_error *error);

int32_t rpc_memory_alloc(rpc_memory *m, lathe_device device, uint64_t size, uint64_t align, uint64_t *out,
                         lathe_error *error);
/* LATHE_E_NAME: no such block, or not the client's. */
int32_t rpc_memory_release(rpc_memory *m, uint64_t base, lathe_error *error);
/* Memory of a result becomes visible; and no longer. */
int32_t rpc_memory_show(rpc_memory *m, lathe_device device, void *real, uint64_t size, uint64_t *out,
                        lathe_error *error);
void rpc_memory_hide(rpc_memory *m, uint64_t base);

/* The block and the offset in it where `size` bytes of a tensor begin; LATHE_E_ARGUMENT. */
int32_t rpc_memory_find(rpc_memory *m, const rpc_tensor *t, uint64_t size, rpc_block *out, uint64_t *out_offset,
                        lathe_error *error);
/* Between a block and memory of this process. */
int32_t rpc_memory_write(rpc_memory *m, const rpc_block *to, uint64_t offset, const void *from, size_t n,
                         lathe_error *error);
int32_t rpc_memory_read(rpc_memory *m, const rpc_block *from, uint64_t offset, void *to, size_t n,
                        lathe_error *error);
int32_t rpc_memory_copy(rpc_memory *m, const rpc_block *from, uint64_t from_offset, const rpc_block *to,
                        uint64_t to_offset, uint64_t n, lathe_error *error);
#endif
