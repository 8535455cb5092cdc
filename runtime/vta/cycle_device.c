/* cycle_device.c: a functional simulator and the cycle model as one device: a run is timed, then executed, so that a
 * stream which hangs or takes too long changes nothing.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "cycle.h"
#include "text.h"

typedef struct cycle_device {
    vta_device sim;
    vta_dram *dram;
    vta_cycle_options options;
    uint64_t tokens[VTA_TOKEN_QUEUES]; /* they stay from run to run, as on hardware */
    uint64_t cycles;
    vta_cycle_report last;
    bool ran;
} cycle_device;

static vta_status device_alloc(void *self, size_t bytes, bool cached, vta_memory *out, vta_error *e)
{
    cycle_device *d = self;
    return d->sim.driver->alloc(d->sim.self, bytes, cached, out, e);
}

static void device_free(void *self, const vta_memory *m)
{
    cycle_device *d = self;
    d->sim.driver->free(d->sim.self, m);
}

static vta_status device_map(void *self, void *host, size_t bytes, vta_memory *out, vta_error *e)
{
    cycle_device *d = self;
    return d->sim.driver->map(d->sim.self, host, bytes, out, e);
}

static void device_unmap(void *self, const vta_memory *m)
{
    cycle_device *d = self;
    d->sim.driver->unmap(d->sim.self, m);
}

static vta_status device_run(void *self, uint64_t phys, uint32_t count, uint32_t wait_cycles, vta_error *e)
{
    cycle_device *d = self;
    vta_cycle_report report;
    uint64_t tokens[VTA_TOKEN_QUEUES];
    const vta_insn *insns = vta_dram_at(d->dram, phys, (size_t)count * VTA_INSN_BYTES);
    if (!insns)
        return vta_fail(e, VTA_FAULT, "%u instructions at address 0x%llx do not lie in one allocation", count,
                        (unsigned long long)phys);
    memcpy(tokens, d->tokens, sizeof tokens);
    vta_status status = vta_cycle_time_from(&d->sim.config, &d->options, insns, count, tokens, &report, e);
    if (status != VTA_OK)
        return status;
    if (report.cycles > wait_cycles)
        status = vta_fail(e, VTA_TIMEOUT, "the stream takes %llu cycles, %u were allowed",
                          (unsigned long long)report.cycles, wait_cycles);
    else
        status = d->sim.driver->run(d->sim.self, phys, count, UINT32_MAX, e); /* it has been timed */
    if (status != VTA_OK) {
        vta_cycle_release(&report);
        return status;
    }
    vta_cycle_release(&d->last);
    d->last = report;
    d->ran = true;
    d->cycles += report.cycles;
    memcpy(d->tokens, tokens, sizeof tokens);
    return VTA_OK;
}

static void device_reset(void *self)
{
    cycle_device *d = self;
    d->sim.driver->reset(d->sim.self);
    memset(d->tokens, 0, sizeof d->tokens);
}

static vta_status device_scratchpad(void *self, enum vta_mem m, uint32_t index, uint32_t count, void *out, vta_error *e)
{
    cycle_device *d = self;
    return d->sim.driver->scratchpad(d->sim.self, m, index, count, out, e);
}

/* The simulator's object with one more member before its closing brace. */
static size_t device_counters(void *self, char *out, size_t size)
{
    cycle_device *d = self;
    vta_text t = {out, size, d->sim.driver->counters(d->sim.self, out, size) - 1};
    vta_put(&t, ", \"cycle_count\": %llu}", (unsigned long long)d->cycles);
    return t.length;
}

static void device_clear(void *self)
{
    cycle_device *d = self;
    d->sim.driver->clear_counters(d->sim.self);
    d->cycles = 0;
}

static void device_skip_exec(void *self, bool on)
{
    cycle_device *d = self;
    d->sim.driver->skip_exec(d->sim.self, on);
}

static void device_destroy(void *self)
{
    cycle_device *d = self;
    vta_device_destroy(&d->sim);
    vta_cycle_release(&d->last);
    free(d);
}

static const vta_driver cycle_driver = {
    .name = "cycle",
    .alloc = device_alloc,
    .free = device_free,
    .map = device_map,
    .unmap = device_unmap,
    .run = device_run,
    .reset = device_reset,
    .scratchpad = device_scratchpad,
    .counters = device_counters,
    .clear_counters = device_clear,
    .skip_exec = device_skip_exec,
    .destroy = device_destroy,
};

vta_status vta_cycle_device(const vta_config *c, const vta_sim_options *so, const vta_cycle_options *co,
                            vta_device *out, vta_error *e)
{
    vta_sim *sim;
    memset(out, 0, sizeof *out);
    cycle_device *d = calloc(1, sizeof *d);
    if (!d)
        return vta_fail(e, VTA_NO_MEMORY, "no memory for a device");
    const vta_insn finish = {{VTA_FINISH, 0}}; /* timed once, so that bad options show here */
    vta_status status = vta_cycle_time(c, co, &finish, 1, &d->last, e);
    vta_cycle_release(&d->last);
    if (status == VTA_OK)
        status = vta_sim_create(c, so, &sim, e);
    if (status != VTA_OK) {
        free(d);
        return status;
    }
    d->sim = vta_sim_device(sim);
    d->dram = vta_sim_dram(sim);
    if (co)
        d->options = *co;
    *out = (vta_device){&cycle_driver, d, d->sim.config, d->sim.geometry};
    return VTA_OK;
}

const vta_cycle_report *vta_cycle_last(const vta_device *d)
{
    const cycle_device *self = d->self;
    return d->driver == &cycle_driver && self->ran ? &self->last : NULL;
}
