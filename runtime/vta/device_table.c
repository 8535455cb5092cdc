/* device_table.c: the device as a table of memory functions, in the style of device_api.ext_dev; buffers as pointers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "context.h"
#include "vta_runtime.h"

_Static_assert(sizeof(void *) >= sizeof(vta_buffer), "a buffer handle travels as a pointer: 64-bit hosts");

void *vta_buffer_to_pointer(vta_buffer b)
{
    return (void *)(uintptr_t)b;
}

vta_buffer vta_buffer_from_pointer(const void *p)
{
    return (vta_buffer)(uintptr_t)p;
}

static vta_status api_alloc(vta_context *c, size_t bytes, size_t alignment, void **out)
{
    vta_buffer b = 0;
    *out = NULL;
    vta_status s = VTA_OK;
    if (alignment > VTA_PAGE_BYTES) {
        s = vta_context_enter(c);
        return s != VTA_OK ? s
                           : vta_context_leave(c, vta_fail(&c->error, VTA_BAD_ARGUMENT,
                                                           "alloc: alignment %zu; buffers are aligned to %u", alignment,
                                                           VTA_PAGE_BYTES));
    }
    s = vta_buffer_alloc(c, bytes, &b);
    *out = vta_buffer_to_pointer(b);
    return s;
}

static vta_status api_free(vta_context *c, void *data)
{
    return vta_buffer_free(c, vta_buffer_from_pointer(data));
}

static vta_status api_copy(vta_context *c, const void *from, size_t from_offset, vta_side from_side, void *to,
                           size_t to_offset, vta_side to_side, size_t bytes)
{
    vta_buffer source = vta_buffer_from_pointer(from), target = vta_buffer_from_pointer(to);
    if (from_side == VTA_SIDE_DEVICE && to_side == VTA_SIDE_DEVICE)
        return vta_buffer_copy(c, source, from_offset, target, to_offset, bytes);
    if (from_side == VTA_SIDE_DEVICE)
        return vta_buffer_read(c, source, from_offset, (char *)to + to_offset, bytes);
    if (to_side == VTA_SIDE_DEVICE)
        return vta_buffer_write(c, target, to_offset, (const char *)from + from_offset, bytes);
    vta_status s = vta_context_enter(c);
    return s != VTA_OK ? s
                       : vta_context_leave(c, vta_fail(&c->error, VTA_BAD_ARGUMENT,
                                                       "copy: neither side is on the device; use memcpy"));
}

static vta_status api_sync(vta_context *c)
{
    vta_status s = vta_context_enter(c);
    if (s != VTA_OK)
        return s;
    if (c->queue.count > 0)
        s = vta_queue_synchronize(c, c->options.wait_cycles, &c->error);
    return vta_context_leave(c, s);
}

const vta_device_api *vta_ext_dev_api(void)
{
    static const vta_device_api api = {"ext_dev", 12, 1, api_alloc, api_free, api_copy, api_sync};
    return &api;
}
