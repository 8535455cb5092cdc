/* memory.c: blocks in a sorted list, and the rows of the CPU's memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include "memory.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, ALIGN = 64, ALIGN_MOST = PAGE };

/* --- the CPU --- */

static int32_t host_alloc(void *user, int32_t id, size_t bytes, size_t align, void **out)
{
    (void)user;
    (void)id;
    if (align < ALIGN)
        align = ALIGN;
    size_t rounded = bytes > SIZE_MAX - align ? 0 : (bytes + align - 1) / align * align;
    *out = rounded == 0 && bytes > 0 ? NULL : aligned_alloc(align, rounded ? rounded : align);
    if (*out)
        memset(*out, 0, rounded ? rounded : align); /* nothing of this process is to be read there */
    return *out ? LATHE_OK : LATHE_E_MEMORY;
}

static void host_free(void *user, int32_t id, void *p)
{
    (void)user;
    (void)id;
    free(p);
}

static int32_t host_copy(void *user, const void *from, size_t from_offset, lathe_device from_device, void *to,
                         size_t to_offset, lathe_device to_device, size_t bytes)
{
    (void)user;
    (void)from_device;
    (void)to_device;
    memmove((char *)to + to_offset, (const char *)from + from_offset, bytes);
    return LATHE_OK;
}

void rpc_memory_init(rpc_memory *m, uint64_t limit, size_t most_blocks)
{
    static const lathe_device_api rows[] = {
        {.name = "cpu", .type = LATHE_CPU, .alloc = host_alloc, .free = host_free, .copy = host_copy},
        {.name = "my_device", .type = LATHE_MY_DEVICE, .alloc = host_alloc, .free = host_free, .copy = host_copy},
    };
    *m = (rpc_memory){.limit = limit, .most = most_blocks, .next = UINT64_C(1) << 32};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        rpc_memory_add_device(m, &rows[i]);
}

void rpc_memory_add_device(rpc_memory *m, const lathe_device_api *row)
{
    if (m->n_devices < RPC_DEVICES_MAX)
        m->devices[m->n_devices++] = *row;
}

int32_t rpc_memory_device(rpc_memory *m, lathe_device device, const lathe_device_api **out, lathe_error *error)
{
    for (uint32_t i = 0; i < m->n_devices; i++) {
        *out = &m->devices[i];
        if ((*out)->type == device.type && device.id == 0)
            return LATHE_OK;
    }
    *out = NULL;
    return rpc_fail(error, LATHE_E_UNSUPPORTED, "this server has no device of type %d with number %d", device.type,
                    device.id);
}

static void free_block(rpc_memory *m, const rpc_block *b)
{
    const lathe_device_api *api;
    if (b->owned && rpc_memory_device(m, b->device, &api, NULL) == LATHE_OK)
        api->free(api->user, b->device.id, b->real);
}

void rpc_memory_free(rpc_memory *m)
{
    for (size_t i = 0; i < m->count; i++)
        free_block(m, &m->blocks[i]);
    free(m->blocks);
    m->blocks = NULL;
    m->count = m->capacity = 0;
}

/* --- blocks --- */

/* The number of the block whose base is the last one not above `at`; count: none. */
static size_t block_at(const rpc_memory *m, uint64_t at)
{
    size_t low = 0, high = m->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->blocks[middle].base <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low == 0 ? m->count : low - 1;
}

static int32_t room_for_block(rpc_memory *m, lathe_error *error)
{
    if (m->count >= m->most)
        return rpc_fail(error, LATHE_E_REFUSED, "%zu tensors are held already: free some", m->count);
    if (m->count < m->capacity)
        return LATHE_OK;
    size_t capacity = m->capacity ? m->capacity * 2 : 64;
    rpc_block *blocks = realloc(m->blocks, capacity * sizeof *blocks);
    if (!blocks)
        return rpc_fail(error, LATHE_E_MEMORY, "no memory for another tensor");
    m->blocks = blocks;
    m->capacity = capacity;
    return LATHE_OK;
}

static uint64_t add_block(rpc_memory *m, lathe_device device, void *real, uint64_t size, bool owned)
{
    const uint64_t base = m->next;
    m->next += (size + PAGE - 1) / PAGE * PAGE + PAGE;
    m->blocks[m->count++] = (rpc_block){base, size, real, device, owned, 0};
    return base;
}

int32_t rpc_memory_alloc(rpc_memory *m, lathe_device device, uint64_t size, uint64_t align, uint64_t *out,
                         lathe_error *error)
{
    const lathe_device_api *api;
    void *real = NULL;
    *out = 0;
    int32_t status = rpc_memory_device(m, device, &api, error);
    if (status != LATHE_OK)
        return status;
    if (align > ALIGN_MOST || (align & (align - 1)) != 0)
        return rpc_fail(error, LATHE_E_ARGUMENT, "an alignment of %llu bytes", (unsigned long long)align);
    const uint64_t step = align < ALIGN ? ALIGN : align; /* as much as is taken for it: at least one step */
    const uint64_t charged = size > UINT64_MAX - step ? size : (size / step + (size % step != 0 || size == 0)) * step;
    if (charged > m->limit - m->used)
        return rpc_fail(error, LATHE_E_REFUSED,
                        "%llu bytes more than %llu: a session may hold %llu (--max-memory); free some",
                        (unsigned long long)charged, (unsigned long long)m->used, (unsigned long long)m->limit);
    status = room_for_block(m, error);
    if (status != LATHE_OK)
        return status;
    if (size > SIZE_MAX / 2 || api->alloc(api->user, device.id, (size_t)size, (size_t)align, &real) != LATHE_OK)
        return rpc_fail(error, LATHE_E_MEMORY, "no %llu bytes of memory on %s", (unsigned long long)size, api->name);
    m->used += charged;
    *out = add_block(m, device, real, size, true);
    m->blocks[m->count - 1].charged = charged;
    return LATHE_OK;
}

static void remove_block(rpc_memory *m, size_t i)
{
    memmove(&m->blocks[i], &m->blocks[i + 1], (m->count - i - 1) * sizeof *m->blocks);
    m->count--;
}

int32_t rpc_memory_release(rpc_memory *m, uint64_t base, lathe_error *error)
{
    size_t i = block_at(m, base);
    if (i == m->count || m->blocks[i].base != base || !m->blocks[i].owned)
        return rpc_fail(error, LATHE_E_NAME, "no tensor's memory begins at 0x%llx", (unsigned long long)base);
    free_block(m, &m->blocks[i]);
    m->used -= m->blocks[i].charged;
    remove_block(m, i);
    return LATHE_OK;
}

int32_t rpc_memory_show(rpc_memory *m, lathe_device device, void *real, uint64_t size, uint64_t *out,
                        lathe_error *error)
{
    *out = 0;
    int32_t status = room_for_block(m, error);
    if (status == LATHE_OK)
        *out = add_block(m, device, real, size, false);
    return status;
}

void rpc_memory_hide(rpc_memory *m, uint64_t base)
{
    size_t i = block_at(m, base);
    if (i < m->count && m->blocks[i].base == base && !m->blocks[i].owned)
        remove_block(m, i);
}

int32_t rpc_memory_find(rpc_memory *m, const rpc_tensor *t, uint64_t size, rpc_block *out, uint64_t *out_offset,
                        lathe_error *error)
{
    size_t i = block_at(m, t->data);
    const rpc_block *b = i < m->count ? &m->blocks[i] : NULL;
    if (!b || t->data - b->base > b->size)
        return rpc_fail(error, LATHE_E_ARGUMENT, "0x%llx is in no tensor's memory", (unsigned long long)t->data);
    uint64_t at = t->data - b->base, left = b->size - at;
    if (t->byte_offset > left || size > left - t->byte_offset)
        return rpc_fail(error, LATHE_E_ARGUMENT, "%llu bytes from byte %llu on of a tensor that has %llu",
                        (unsigned long long)size, (unsigned long long)(at + t->byte_offset),
                        (unsigned long long)b->size);
    *out = *b;
    *out_offset = at + t->byte_offset;
    return LATHE_OK;
}

/* --- copies --- */

static const lathe_device host = {LATHE_CPU, 0};

/* The row that moves bytes of a block; `status` and its error go on. */
static int32_t moved(int32_t status, const lathe_device_api *api, lathe_error *error)
{
    return status == LATHE_OK ? status : rpc_fail(error, status, "%s cannot move these bytes", api->name);
}

int32_t rpc_memory_write(rpc_memory *m, const rpc_block *to, uint64_t offset, const void *from, size_t n,
                         lathe_error *error)
{
    const lathe_device_api *api;
    int32_t status = rpc_memory_device(m, to->device, &api, error);
    if (status != LATHE_OK || n == 0)
        return status;
    return moved(api->copy(api->user, from, 0, host, to->real, (size_t)offset, to->device, n), api, error);
}

int32_t rpc_memory_read(rpc_memory *m, const rpc_block *from, uint64_t offset, void *to, size_t n, lathe_error *error)
{
    const lathe_device_api *api;
    int32_t status = rpc_memory_device(m, from->device, &api, error);
    if (status != LATHE_OK || n == 0)
        return status;
    return moved(api->copy(api->user, from->real, (size_t)offset, from->device, to, 0, host, n), api, error);
}

int32_t rpc_memory_copy(rpc_memory *m, const rpc_block *from, uint64_t from_offset, const rpc_block *to,
                        uint64_t to_offset, uint64_t n, lathe_error *error)
{
    const lathe_device_api *api, *other;
    int32_t status = rpc_memory_device(m, from->device, &api, error);
    if (status == LATHE_OK)
        status = rpc_memory_device(m, to->device, &other, error);
    if (status != LATHE_OK || n == 0)
        return status;
    if (api->alloc == host_alloc) /* the row that knows both sides is the device's */
        api = other;
    return moved(api->copy(api->user, from->real, (size_t)from_offset, from->device, to->real, (size_t)to_offset,
                           to->device, (size_t)n),
                 api, error);
}
