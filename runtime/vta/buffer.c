/* buffer.c: device memory behind handles. A handle holds no address: bit 62 (no user address of today's 64-bit machines
 * has it), the context's serial, the slot's generation and its index; so one that was freed, or is of another context,
 * is known as such and never comes again.
 * SPDX-License-Identifier: Apache-2.0 */
#include "context.h"

enum { INDEX_BITS = 18, GENERATION_BITS = 24, SERIAL_BITS = 20 };
enum { NONE = UINT32_MAX >> 1, LAST_GENERATION = (1 << GENERATION_BITS) - 1 };

static vta_buffer handle_of(const vta_context *c, uint32_t index)
{
    uint64_t serial = c->serial & ((1u << SERIAL_BITS) - 1);
    return UINT64_C(1) << 62 | serial << (INDEX_BITS + GENERATION_BITS) |
           (uint64_t)c->buffers.slots[index].generation << INDEX_BITS | index;
}

/* Appends a slot to the free list; one whose generations are used up is retired. */
static void put_free(vta_context *c, uint32_t index)
{
    vta_buffers *b = &c->buffers;
    if (b->slots[index].generation == LAST_GENERATION)
        return;
    b->slots[index].generation++;
    b->slots[index].next_free = NONE;
    if (b->first_free == NONE)
        b->first_free = index;
    else
        b->slots[b->last_free].next_free = index;
    b->last_free = index;
}

void vta_buffer_lay_out(vta_context *c)
{
    c->buffers.first_free = c->buffers.last_free = NONE;
    for (uint32_t i = 0; i < c->buffers.most; i++)
        put_free(c, i);
}

vta_buffer_slot *vta_buffer_find(vta_context *c, vta_buffer b, vta_error *e)
{
    uint32_t index = (uint32_t)(b & ((1u << INDEX_BITS) - 1));
    vta_buffer_slot *slot = index < c->buffers.most ? &c->buffers.slots[index] : NULL;
    if (slot && slot->live && handle_of(c, index) == b)
        return slot;
    uint64_t serial = b >> (INDEX_BITS + GENERATION_BITS) ^ UINT64_C(1) << SERIAL_BITS;
    if (serial == (c->serial & ((1u << SERIAL_BITS) - 1)) && slot)
        vta_fail(e, VTA_BAD_HANDLE, "buffer 0x%llx was freed", (unsigned long long)b);
    else if (b >> 62 == 1)
        vta_fail(e, VTA_BAD_HANDLE, "buffer 0x%llx is of another device", (unsigned long long)b);
    else
        vta_fail(e, VTA_BAD_HANDLE, "0x%llx is not a buffer of this device; take one from buffer_alloc",
                 (unsigned long long)b);
    return NULL;
}

static vta_status take_slot(vta_context *c, const vta_memory *m, size_t bytes, bool mapped, vta_buffer *out)
{
    uint32_t index = c->buffers.first_free;
    vta_buffer_slot *slot = &c->buffers.slots[index];
    c->buffers.first_free = slot->next_free;
    slot->memory = *m;
    slot->bytes = bytes;
    slot->used = slot->written = 0;
    slot->live = true;
    slot->mapped = mapped;
    c->buffers.live++;
    *out = handle_of(c, index);
    return VTA_OK;
}

static vta_status create(vta_context *c, void *host, size_t bytes, vta_buffer *out)
{
    const vta_driver *driver = c->device->driver;
    vta_memory m;
    if (c->buffers.first_free == NONE)
        return vta_fail(&c->error, VTA_NO_MEMORY, "all %u buffers are in use; raise max_buffers", c->buffers.most);
    vta_status s = host ? driver->map(c->device->self, host, bytes, &m, &c->error)
                        : driver->alloc(c->device->self, bytes, true, &m, &c->error);
    return s == VTA_OK ? take_slot(c, &m, bytes, host != NULL, out) : s;
}

vta_status vta_buffer_alloc(vta_context *c, size_t bytes, vta_buffer *out)
{
    *out = 0;
    vta_status s = vta_context_enter(c);
    if (s != VTA_OK)
        return s;
    return vta_context_leave(c, create(c, NULL, bytes ? bytes : 1, out)); /* an empty tensor has a buffer, too */
}

vta_status vta_buffer_map(vta_context *c, void *host, size_t bytes, vta_buffer *out)
{
    *out = 0;
    vta_status s = vta_context_enter(c);
    if (s != VTA_OK)
        return s;
    if (!c->device->driver->map) /* no error to keep: the caller has another way */
        return vta_context_leave(c, VTA_UNSUPPORTED);
    if (!host || bytes == 0)
        return vta_context_leave(c, vta_fail(&c->error, VTA_BAD_ARGUMENT, "buffer_map: there is no memory to map"));
    s = create(c, host, bytes, out);
    if (s == VTA_UNSUPPORTED)
        c->error.status = VTA_OK;
    return vta_context_leave(c, s);
}

static void release(vta_context *c, vta_buffer_slot *slot)
{
    const vta_driver *driver = c->device->driver;
    if (slot->mapped)
        driver->unmap(c->device->self, &slot->memory);
    else
        driver->free(c->device->self, &slot->memory);
    slot->live = false;
    c->buffers.live--;
    put_free(c, (uint32_t)(slot - c->buffers.slots));
}

void vta_buffer_release_all(vta_context *c)
{
    for (uint32_t i = 0; i < c->buffers.most; i++)
        if (c->buffers.slots[i].live)
            release(c, &c->buffers.slots[i]);
}

vta_status vta_buffer_free(vta_context *c, vta_buffer b)
{
    vta_error second; /* does not replace the one that is pending */
    if (!c)
        return VTA_BAD_HANDLE;
    pthread_mutex_lock(&c->lock);
    vta_error *e = c->error.status == VTA_OK ? &c->error : &second;
    vta_buffer_slot *slot = vta_buffer_find(c, b, e);
    vta_status s = slot ? VTA_OK : VTA_BAD_HANDLE;
    if (slot && slot->used == c->queue.serial)
        s = vta_fail(e, VTA_BAD_STATE, "buffer 0x%llx is used by queued instructions; synchronize first",
                     (unsigned long long)b);
    else if (slot)
        release(c, slot);
    return vta_context_leave(c, s);
}

size_t vta_buffer_bytes(vta_context *c, vta_buffer b)
{
    if (!c)
        return 0;
    pthread_mutex_lock(&c->lock);
    const vta_buffer_slot *slot = vta_buffer_find(c, b, NULL);
    size_t bytes = slot ? slot->bytes : 0;
    pthread_mutex_unlock(&c->lock);
    return bytes;
}

void *vta_buffer_cpu_ptr(vta_context *c, vta_buffer b)
{
    if (!c)
        return NULL;
    pthread_mutex_lock(&c->lock);
    const vta_buffer_slot *slot = vta_buffer_find(c, b, NULL);
    void *host = slot ? slot->memory.host : NULL;
    pthread_mutex_unlock(&c->lock);
    return host;
}

static vta_buffer_slot *find_range(vta_context *c, vta_buffer b, size_t offset, size_t bytes)
{
    vta_buffer_slot *slot = vta_buffer_find(c, b, &c->error);
    if (slot && (offset > slot->bytes || bytes > slot->bytes - offset)) {
        vta_fail(&c->error, VTA_BAD_ARGUMENT, "bytes %zu to %zu lie outside of buffer 0x%llx of %zu bytes", offset,
                 offset + bytes, (unsigned long long)b, slot->bytes);
        return NULL;
    }
    return slot;
}

/* A range to be read by the CPU: what the device is still to write there is not there yet. */
static vta_buffer_slot *find_source(vta_context *c, vta_buffer b, size_t offset, size_t bytes)
{
    vta_buffer_slot *slot = find_range(c, b, offset, bytes);
    if (slot && slot->written == c->queue.serial) {
        vta_fail(&c->error, VTA_BAD_STATE, "buffer 0x%llx is written by queued instructions; synchronize first",
                 (unsigned long long)b);
        return NULL;
    }
    return slot;
}

static void flush(vta_context *c, const vta_buffer_slot *slot, size_t offset, size_t bytes)
{
    if (c->device->driver->flush)
        c->device->driver->flush(c->device->self, &slot->memory, offset, bytes);
}

static void invalidate(vta_context *c, const vta_buffer_slot *slot, size_t offset, size_t bytes)
{
    if (c->device->driver->invalidate)
        c->device->driver->invalidate(c->device->self, &slot->memory, offset, bytes);
}

vta_status vta_buffer_write(vta_context *c, vta_buffer to, size_t offset, const void *from, size_t bytes)
{
    vta_status s = vta_context_enter(c);
    if (s != VTA_OK)
        return s;
    vta_buffer_slot *slot = find_range(c, to, offset, bytes);
    if (!slot)
        return vta_context_leave(c, c->error.status);
    if (bytes > 0) {
        memcpy((char *)slot->memory.host + offset, from, bytes);
        flush(c, slot, offset, bytes);
        c->buffers.to_device += bytes;
    }
    return vta_context_leave(c, VTA_OK);
}

vta_status vta_buffer_read(vta_context *c, vta_buffer from, size_t offset, void *to, size_t bytes)
{
    vta_status s = vta_context_enter(c);
    if (s != VTA_OK)
        return s;
    vta_buffer_slot *slot = find_source(c, from, offset, bytes);
    if (!slot)
        return vta_context_leave(c, c->error.status);
    if (bytes > 0) {
        invalidate(c, slot, offset, bytes);
        memcpy(to, (const char *)slot->memory.host + offset, bytes);
        c->buffers.from_device += bytes;
    }
    return vta_context_leave(c, VTA_OK);
}

vta_status vta_buffer_copy(vta_context *c, vta_buffer from, size_t from_offset, vta_buffer to, size_t to_offset,
                           size_t bytes)
{
    vta_status s = vta_context_enter(c);
    if (s != VTA_OK)
        return s;
    vta_buffer_slot *source = find_source(c, from, from_offset, bytes);
    vta_buffer_slot *target = source ? find_range(c, to, to_offset, bytes) : NULL;
    if (!target)
        return vta_context_leave(c, c->error.status);
    if (bytes > 0) {
        invalidate(c, source, from_offset, bytes);
        memmove((char *)target->memory.host + to_offset, (const char *)source->memory.host + from_offset, bytes);
        flush(c, target, to_offset, bytes);
        c->buffers.within += bytes;
    }
    return vta_context_leave(c, VTA_OK);
}

/* Cache maintenance over [start, start + extent) elements of `elem_bits`. */
static vta_status barrier(vta_context *c, vta_buffer b, uint32_t elem_bits, uint32_t start, uint32_t extent,
                          uint32_t skip, void (*act)(vta_context *, const vta_buffer_slot *, size_t, size_t))
{
    vta_status s = vta_context_enter(c);
    if (s != VTA_OK)
        return s;
    uint64_t elem = elem_bits / 8 + (elem_bits % 8 != 0);
    vta_buffer_slot *slot = find_range(c, b, (size_t)(start * elem), (size_t)(extent * elem));
    if (!slot)
        return vta_context_leave(c, c->error.status);
    if (!(c->debug & skip) && extent > 0)
        act(c, slot, (size_t)(start * elem), (size_t)(extent * elem));
    return vta_context_leave(c, VTA_OK);
}

vta_status vta_write_barrier(vta_context *c, vta_buffer b, uint32_t elem_bits, uint32_t start, uint32_t extent)
{
    return barrier(c, b, elem_bits, start, extent, VTA_DEBUG_SKIP_WRITE_BARRIER, invalidate);
}

vta_status vta_read_barrier(vta_context *c, vta_buffer b, uint32_t elem_bits, uint32_t start, uint32_t extent)
{
    return barrier(c, b, elem_bits, start, extent, VTA_DEBUG_SKIP_READ_BARRIER, flush);
}
