/* context.c: a run-time context's life: its layout in the caller's memory, its lock, its pending error.
 * SPDX-License-Identifier: Apache-2.0 */
#include "context.h"

#include <stdatomic.h>
#include <stdio.h>

enum { ALIGN = 64, LEAST_INSNS = 256, MOST_INSNS = 1 << 24, MOST_UOPS = 1 << 24, MOST_KERNELS = 1 << 20 };
enum { MOST_BUFFERS = 1 << 18, CLOSURE_WORDS = 8 };

static void log_to_stderr(void *user, const char *text)
{
    (void)user;
    fputs(text, stderr);
}

static vta_context_options resolve(const vta_context_options *given)
{
    vta_context_options o = {0};
    if (given)
        o = *given;
    o.max_insns = o.max_insns ? o.max_insns : 65536;
    o.max_uops = o.max_uops ? o.max_uops : 65536;
    o.max_kernels = o.max_kernels ? o.max_kernels : 4096;
    o.max_buffers = o.max_buffers ? o.max_buffers : 4096;
    o.wait_cycles = o.wait_cycles ? o.wait_cycles : 1u << 31;
    o.log = o.log ? o.log : log_to_stderr;
    return o;
}

static bool in_range(const vta_context_options *o)
{
    return o->max_insns >= LEAST_INSNS && o->max_insns <= MOST_INSNS && o->max_uops <= MOST_UOPS &&
           o->max_kernels <= MOST_KERNELS && o->max_buffers <= MOST_BUFFERS &&
           (unsigned)o->left_tokens <= VTA_LEFT_IGNORE;
}

static void *take(char *memory, size_t *used, size_t count, size_t bytes)
{
    size_t at = *used;
    *used = (at + count * bytes + ALIGN - 1) / ALIGN * ALIGN;
    return memory ? memory + at : NULL;
}

/* Lays *c and its arrays out from `memory` on (NULL: only counts) and returns the bytes. */
static size_t lay_out(const vta_context_options *o, char *memory, vta_context *c)
{
    size_t used = 0;
    vta_kernels *k = &c->kernels;
    k->slots = 2;
    while (k->slots < 2 * o->max_kernels)
        k->slots *= 2;
    k->most = o->max_kernels;
    k->max_log = o->max_uops;
    k->max_pool = o->max_uops + CLOSURE_WORDS * o->max_kernels;
    c->queue.most = o->max_insns;
    c->buffers.most = o->max_buffers;
    take(memory, &used, 1, sizeof *c);
    c->queue.insns = (vta_insn *)take(memory, &used, o->max_insns, sizeof *c->queue.insns);
    k->kernels = (vta_kernel *)take(memory, &used, k->most, sizeof *k->kernels);
    k->sites = (vta_site *)take(memory, &used, k->most, sizeof *k->sites);
    k->by_content = (uint32_t *)take(memory, &used, k->slots, sizeof *k->by_content);
    k->by_site = (uint32_t *)take(memory, &used, k->slots, sizeof *k->by_site);
    k->pool = (uint32_t *)take(memory, &used, k->max_pool, sizeof *k->pool);
    k->log = (uint32_t *)take(memory, &used, k->max_log, sizeof *k->log);
    c->buffers.slots = (vta_buffer_slot *)take(memory, &used, o->max_buffers, sizeof *c->buffers.slots);
    return used;
}

size_t vta_context_bytes(const vta_device *d, const vta_context_options *o)
{
    (void)d;
    vta_context_options resolved = resolve(o);
    vta_context counted = {0};
    return in_range(&resolved) ? lay_out(&resolved, NULL, &counted) : 0;
}

/* Contexts made so far in this process. It makes handles of different contexts differ, and couples them in no way. */
static atomic_uint made;

vta_status vta_context_init(void *memory, size_t bytes, vta_device *d, const vta_context_options *o, vta_context **out,
                            vta_error *e)
{
    *out = NULL;
    vta_context_options resolved = resolve(o);
    if (!d || !d->driver)
        return vta_fail(e, VTA_BAD_HANDLE, "context: there is no device");
    if (d->geometry.depth[VTA_MEM_UOP] == 0 || d->geometry.depth[VTA_MEM_UOP] > VTA_MOST_UOPS)
        return vta_fail(e, VTA_BAD_CONFIG, "context: the device has %u micro-ops; 1 to %d",
                        d->geometry.depth[VTA_MEM_UOP], VTA_MOST_UOPS);
    if (!in_range(&resolved))
        return vta_fail(e, VTA_BAD_ARGUMENT,
                        "context: max_insns must lie between %d and %d, max_uops be at most %d, max_kernels %d, "
                        "max_buffers %d; left_tokens be one of its values",
                        LEAST_INSNS, MOST_INSNS, MOST_UOPS, MOST_KERNELS, MOST_BUFFERS);
    size_t needed = vta_context_bytes(d, o);
    if (!memory || (uintptr_t)memory % ALIGN || bytes < needed)
        return vta_fail(e, VTA_BAD_ARGUMENT, "context: %zu bytes aligned to %d are needed, %zu at %p were given",
                        needed, ALIGN, bytes, memory);
    memset(memory, 0, needed);
    vta_context *c = (vta_context *)memory;
    lay_out(&resolved, (char *)memory, c);
    c->device = d;
    c->geometry = &d->geometry;
    c->options = resolved;
    c->serial = atomic_fetch_add(&made, 1);
    c->queue.serial = 1;
    vta_status s = d->driver->alloc(d->self, (size_t)resolved.max_insns * VTA_INSN_BYTES, true, &c->queue.memory, e);
    if (s != VTA_OK)
        return s;
    s = d->driver->alloc(d->self, (size_t)resolved.max_uops * VTA_UOP_BYTES, true, &c->kernels.memory, e);
    if (s != VTA_OK || pthread_mutex_init(&c->lock, NULL) != 0) {
        d->driver->free(d->self, &c->queue.memory);
        if (s != VTA_OK)
            return s;
        d->driver->free(d->self, &c->kernels.memory);
        return vta_fail(e, VTA_NO_MEMORY, "context: no mutex");
    }
    vta_buffer_lay_out(c);
    vta_queue_lay_out(c);
    c->kernels.log_start = c->kernels.log_next = 1;
    c->kernels.sram_start = c->kernels.sram_next = c->geometry->depth[VTA_MEM_UOP];
    *out = c;
    return VTA_OK;
}

void vta_context_destroy(vta_context *c)
{
    if (!c)
        return;
    const vta_device *d = c->device;
    vta_buffer_release_all(c);
    d->driver->free(d->self, &c->queue.memory);
    d->driver->free(d->self, &c->kernels.memory);
    pthread_mutex_destroy(&c->lock);
}

size_t vta_context_counters(vta_context *c, char *out, size_t size)
{
    const vta_device *d = c->device;
    vta_tokens left;
    const size_t n = d->driver->counters ? d->driver->counters(d->self, out, size) : 0;
    if (n == 0 || n >= size)
        return n;
    vta_left_tokens(c, &left);
    pthread_mutex_lock(&c->lock);
    const vta_buffers *b = &c->buffers;
    const int more = snprintf(out + n - 1, size - (n - 1), /* before the closing brace */
                              ", \"left_tokens\": %d, \"buffers\": %u, \"to_device_nbytes\": %llu, "
                              "\"from_device_nbytes\": %llu, \"within_device_nbytes\": %llu}",
                              left.l2g + left.g2l + left.s2g + left.g2s, b->live, (unsigned long long)b->to_device,
                              (unsigned long long)b->from_device, (unsigned long long)b->within);
    pthread_mutex_unlock(&c->lock);
    return n - 1 + (size_t)(more > 0 ? more : 0);
}

void vta_context_clear_counters(vta_context *c)
{
    if (c->device->driver->clear_counters)
        c->device->driver->clear_counters(c->device->self);
    pthread_mutex_lock(&c->lock);
    c->buffers.to_device = c->buffers.from_device = c->buffers.within = 0;
    pthread_mutex_unlock(&c->lock);
}

vta_device *vta_context_device(const vta_context *c)
{
    return c ? c->device : NULL;
}

uint32_t vta_context_debug(vta_context *c, uint32_t flags)
{
    if (!c)
        return 0;
    pthread_mutex_lock(&c->lock);
    uint32_t before = c->debug;
    c->debug = flags;
    pthread_mutex_unlock(&c->lock);
    return before;
}

vta_status vta_context_last_error(vta_context *c, vta_error *out)
{
    if (!c)
        return vta_fail(out, VTA_BAD_HANDLE, "there is no context");
    pthread_mutex_lock(&c->lock);
    vta_status s = c->error.status;
    if (out)
        *out = c->error;
    memset(&c->error, 0, sizeof c->error);
    c->told = false;
    pthread_mutex_unlock(&c->lock);
    return s;
}

void vta_discard(vta_context *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->capturing = false;
    vta_queue_clear(c);
    pthread_mutex_unlock(&c->lock);
}
