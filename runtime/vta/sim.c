/* sim.c: the functional simulator as an object: creation, scratchpads, profiles, and the simulator
 * as a device.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sim.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>

/* --- profiles --- */

/* Shift counts: HLS takes the low five bits as a signed number. Chisel takes the low five bits as the count and the
 * immediate field's sign as the direction, so that counts out of accumulators only go right. */
const sim_caps *vta_sim_caps(vta_profile p)
{
    static const sim_caps all[] = {
        [VTA_COMPATIBLE] = {.mul = true,
                            .acc8 = true,
                            .pad_wgt = true,
                            .pad_acc = true,
                            .uop_2d = true,
                            .alu_batch = true,
                            .empty_range = true},
        [VTA_HLS] = {.strict = true,
                     .shift_least = -16,
                     .shift_most = 15,
                     .tensor_least = -16,
                     .tensor_most = 15,
                     .pad_acc = true,
                     .alu_batch = true,
                     .reset_writes = true},
        [VTA_CHISEL] = {.strict = true,
                        .shift_least = -31,
                        .shift_most = 31,
                        .tensor_least = 0,
                        .tensor_most = 31,
                        .pad_wgt = true,
                        .pad_acc = true,
                        .uop_depth = 2048},
        [VTA_INTELFOCL] = {.strict = true,
                           .mul = true,
                           .acc8 = true,
                           .shift_least = -31,
                           .shift_most = 31,
                           .tensor_least = -31,
                           .tensor_most = 31,
                           .alu_batch = true,
                           .reset_writes = true},
    };
    return &all[p];
}

vta_status vta_sim_check_profile(vta_profile p, const vta_geometry *g, vta_error *e)
{
    const uint32_t *w = g->width;
    if ((p == VTA_HLS || p == VTA_CHISEL) && g->log_depth[VTA_MEM_INP] != g->log_depth[VTA_MEM_ACC])
        return vta_fail(
            e, VTA_UNSUPPORTED,
            "this hardware decodes micro-ops otherwise when the scratchpads of inputs (%u) and accumulators "
            "(%u) differ in depth",
            g->depth[VTA_MEM_INP], g->depth[VTA_MEM_ACC]);
    if (p == VTA_INTELFOCL && (w[VTA_MEM_INP] != 8 || w[VTA_MEM_WGT] != 8 || w[VTA_MEM_ACC] != 32 ||
                               (g->block_in != 16 && g->block_in != 32)))
        return vta_fail(e, VTA_UNSUPPORTED,
                        "intelfocl has 8-bit inputs and weights, 32-bit accumulators, blocks of 16 "
                        "or 32");
    return VTA_OK;
}

/* --- creation --- */

static void *zeroed(size_t n, size_t size)
{
    void *p = NULL;
    if (posix_memalign(&p, 64, n * size + 64) != 0) /* vectors may read past the end, never write */
        return NULL;
    return memset(p, 0, n * size + 64);
}

static bool allocate(vta_sim *s)
{
    const uint32_t *depth = s->g.depth;
    size_t acc = depth[VTA_MEM_ACC];
    s->uop_words = zeroed(depth[VTA_MEM_UOP], sizeof *s->uop_words);
    s->uops = zeroed(depth[VTA_MEM_UOP], sizeof *s->uops);
    s->inp = zeroed((size_t)depth[VTA_MEM_INP] * s->inp_lanes, sizeof *s->inp);
    s->wgt = zeroed((size_t)depth[VTA_MEM_WGT] * s->wgt_lanes, s->wide_wgt ? 2 : 1);
    s->acc = zeroed(acc * s->acc_lanes, sizeof *s->acc);
    s->last_write = zeroed(acc, sizeof *s->last_write);
    s->dram = vta_dram_create(s->o.dram_bytes ? s->o.dram_bytes : (uint64_t)1 << 30);
    if (s->caps->strict) {
        s->out = zeroed(acc * s->acc_lanes, sizeof *s->out);
        s->out_valid = zeroed(acc, sizeof *s->out_valid);
    }
    return s->uop_words && s->uops && s->inp && s->wgt && s->acc && s->last_write && s->dram &&
           (!s->caps->strict || (s->out && s->out_valid));
}

static void set_shape(vta_sim *s)
{
    s->quads = (s->g.block_in + 3) / 4;
    s->inp_lanes = s->g.batch * 4 * s->quads;
    s->wgt_lanes = s->g.block_out * 4 * s->quads;
    s->wide_wgt = s->g.width[VTA_MEM_WGT] > 8;
    s->acc_lanes = s->g.batch * s->g.block_out;
    for (int64_t op = 0; op <= VTA_ALU; op++)
        s->n_layout[op] = vta_insn_layout(&s->g, op, s->layout[op]);
    s->n_uop_layout = vta_uop_layout(&s->g, s->uop_layout);
}

vta_status vta_sim_create(const vta_config *c, const vta_sim_options *o, vta_sim **out, vta_error *e)
{
    static const vta_sim_options plain;
    vta_geometry g;
    *out = NULL;
    vta_status status = vta_config_check(c, &g, e);
    o = o ? o : &plain;
    if (status != VTA_OK || (status = vta_sim_check_profile(o->profile, &g, e)) != VTA_OK)
        return status;
    const sim_kernels *kernels = vta_sim_kernels(o->level, &g);
    if (!kernels)
        return vta_fail(e, VTA_UNSUPPORTED, "this CPU, or a tile of %u lanes, has not the level asked for",
                        g.block_out);
    vta_sim *s = calloc(1, sizeof *s);
    if (!s)
        return vta_fail(e, VTA_NO_MEMORY, "no memory for a simulator");
    s->config = *c;
    s->g = g;
    s->o = *o;
    s->caps = vta_sim_caps(o->profile);
    s->kernels = kernels;
    s->random = o->seed;
    s->most_work = UINT64_MAX;
    set_shape(s);
    if (!allocate(s)) {
        vta_sim_destroy(s);
        return vta_fail(e, VTA_NO_MEMORY, "no memory for a simulator's scratchpads");
    }
    *out = s;
    return VTA_OK;
}

void vta_sim_destroy(vta_sim *s)
{
    if (!s)
        return;
    for (int q = 0; q < VTA_STAGE_COUNT; q++)
        free(s->queue[q].insn);
    vta_dram_destroy(s->dram);
    free(s->uop_words);
    free(s->uops);
    free(s->inp);
    free(s->wgt);
    free(s->acc);
    free(s->last_write);
    free(s->out);
    free(s->out_valid);
    free(s);
}

void vta_sim_reset(vta_sim *s)
{
    const uint32_t *depth = s->g.depth;
    const size_t acc = depth[VTA_MEM_ACC];
    memset(s->uop_words, 0, depth[VTA_MEM_UOP] * sizeof *s->uop_words);
    memset(s->uops, 0, depth[VTA_MEM_UOP] * sizeof *s->uops);
    memset(s->inp, 0, (size_t)depth[VTA_MEM_INP] * s->inp_lanes * sizeof *s->inp);
    memset(s->wgt, 0, (size_t)depth[VTA_MEM_WGT] * s->wgt_lanes * (s->wide_wgt ? 2 : 1));
    memset(s->acc, 0, acc * s->acc_lanes * sizeof *s->acc);
    if (s->out) {
        memset(s->out, 0, acc * s->acc_lanes * sizeof *s->out);
        memset(s->out_valid, 0, acc * sizeof *s->out_valid);
    }
    memset(s->tokens, 0, sizeof s->tokens);
    memset(&s->counters, 0, sizeof s->counters);
    s->least_distance = 0;
    s->uop_generation++;
    s->random = s->o.seed;
}

/* --- state --- */

const vta_geometry *vta_sim_geometry(const vta_sim *s)
{
    return &s->g;
}

vta_dram *vta_sim_dram(vta_sim *s)
{
    return s->dram;
}

vta_status vta_sim_scratchpad(vta_sim *s, enum vta_mem m, uint32_t index, uint32_t count, void *out, vta_error *e)
{
    if (m == VTA_MEM_ACC_8BIT || (uint32_t)m >= VTA_MEM_COUNT)
        return vta_fail(e, VTA_BAD_ARGUMENT, "memory type %d is not a scratchpad", (int)m);
    if (index > s->g.depth[m] || count > s->g.depth[m] - index)
        return vta_fail(e, VTA_BAD_ARGUMENT, "elements %u to %llu of a scratchpad of %u", index,
                        (unsigned long long)index + count, s->g.depth[m]);
    vta_sim_pack(s, m, index, count, out);
    return VTA_OK;
}

const vta_counters *vta_sim_counters(const vta_sim *s)
{
    return &s->counters;
}

void vta_sim_clear_counters(vta_sim *s)
{
    memset(&s->counters, 0, sizeof s->counters);
}

void vta_sim_set_skip_exec(vta_sim *s, bool skip)
{
    s->o.skip_exec = skip;
}

uint32_t vta_sim_acc_distance(const vta_sim *s)
{
    return s->least_distance;
}

size_t vta_counters_print(const vta_counters *c, char *out, size_t size)
{
    vta_text t = {out, size, 0};
#define X(member, key) vta_put(&t, "%s\"" key "\": %llu", t.length ? ", " : "{", (unsigned long long)c->member);
    VTA_COUNTERS(X)
#undef X
    vta_put(&t, "}");
    return t.length;
}

/* --- as a device --- */

static vta_status device_alloc(void *self, size_t bytes, bool cached, vta_memory *out, vta_error *e)
{
    (void)cached;
    return vta_dram_alloc(((vta_sim *)self)->dram, bytes, out, e);
}

static void device_free(void *self, const vta_memory *m)
{
    (void)vta_dram_release(((vta_sim *)self)->dram, m, NULL);
}

static vta_status device_map(void *self, void *host, size_t bytes, vta_memory *out, vta_error *e)
{
    return vta_dram_map(((vta_sim *)self)->dram, host, bytes, out, e);
}

/* A functional simulator knows no cycles, but what a stage does takes some number of them on any hardware. */
static vta_status device_run(void *self, uint64_t phys, uint32_t count, uint32_t wait_cycles, vta_error *e)
{
    vta_sim *s = self;
    const vta_insn *insns = vta_dram_at(s->dram, phys, (size_t)count * VTA_INSN_BYTES);
    if (!insns)
        return vta_fail(e, VTA_FAULT, "%u instructions at 0x%llx lie in no one allocation", count,
                        (unsigned long long)phys);
    return vta_sim_run_within(s, insns, count, wait_cycles, e);
}

static vta_status device_scratchpad(void *self, enum vta_mem m, uint32_t index, uint32_t count, void *out, vta_error *e)
{
    return vta_sim_scratchpad(self, m, index, count, out, e);
}

static size_t device_counters(void *self, char *out, size_t size)
{
    return vta_counters_print(vta_sim_counters(self), out, size);
}

static void device_clear(void *self)
{
    vta_sim_clear_counters(self);
}

static void device_skip_exec(void *self, bool on)
{
    vta_sim_set_skip_exec(self, on);
}

/* After a failed run: scratchpads and counters stay. */
static void device_reset(void *self)
{
    vta_sim *s = self;
    memset(s->tokens, 0, sizeof s->tokens);
}

static void device_destroy(void *self)
{
    vta_sim_destroy(self);
}

vta_device vta_sim_device(vta_sim *s)
{
    static const vta_driver driver = {
        .name = "sim",
        .alloc = device_alloc,
        .free = device_free,
        .map = device_map,
        .unmap = device_free,
        .run = device_run,
        .reset = device_reset,
        .scratchpad = device_scratchpad,
        .counters = device_counters,
        .clear_counters = device_clear,
        .skip_exec = device_skip_exec,
        .destroy = device_destroy,
    };
    return (vta_device){&driver, s, s->config, s->g};
}
