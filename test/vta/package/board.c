/* board.c: a board's device, which reaches none of the program's memory: the simulator without `map` (BOARD_MAPS=N: it
 * succeeds N times), and with caches that it checks: what the device reads was flushed, what the CPU reads was
 * invalidated. Stands for vta_host.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vta.h"

static vta_device device;
static vta_driver driver;
static unsigned flushed, invalidated, allocated;

static void note_flush(void *self, const vta_memory *m, size_t offset, size_t bytes)
{
    (void)self;
    flushed += offset + bytes <= m->bytes;
}

static void note_invalidate(void *self, const vta_memory *m, size_t offset, size_t bytes)
{
    (void)self;
    invalidated += offset + bytes <= m->bytes;
}

static vta_status (*give)(void *self, size_t bytes, bool cached, vta_memory *out, vta_error *e);

static vta_status count_alloc(void *self, size_t bytes, bool cached, vta_memory *out, vta_error *e)
{
    allocated++;
    return give(self, bytes, cached, out, e);
}

static vta_status (*map)(void *self, void *host, size_t bytes, vta_memory *out, vta_error *e);
static long maps; /* so many succeed */

static vta_status count_map(void *self, void *host, size_t bytes, vta_memory *out, vta_error *e)
{
    if (maps-- > 0)
        return map(self, host, bytes, out, e);
    e->status = VTA_UNSUPPORTED;
    return e->status;
}

static void report(void)
{
    fprintf(stderr, "%u allocated, %s, %s\n", allocated, flushed >= 8 ? "flushed" : "NOT FLUSHED",
            invalidated >= 4 ? "invalidated" : "NOT INVALIDATED");
}

vta_device *vta_host_acquire(const vta_config *c, vta_error *e)
{
    const vta_sim_options o = {.seed = 9};
    vta_sim *sim;
    if (device.driver)
        return &device;
    if (vta_sim_create(c, &o, &sim, e) != VTA_OK)
        return NULL;
    device = vta_sim_device(sim);
    driver = *device.driver;
    give = driver.alloc;
    maps = getenv("BOARD_MAPS") ? strtol(getenv("BOARD_MAPS"), NULL, 10) : 0;
    map = driver.map;
    driver.map = maps > 0 ? count_map : NULL;
    driver.alloc = count_alloc;
    driver.flush = note_flush;
    driver.invalidate = note_invalidate;
    device.driver = &driver;
    atexit(report);
    return &device;
}

void vta_host_release(vta_device *d, const vta_error *e)
{
    (void)d;
    if (e->status != VTA_OK)
        fprintf(stderr, "%s\n", e->text);
}
