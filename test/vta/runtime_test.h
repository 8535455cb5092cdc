/* runtime_test.h: what the tests of the run-time share: a simulated device with a context, ALU and GEMM kernels in one
 * call, and streams printed one instruction per line, with flags p (pop), P (push), < (previous), > (next).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_TEST_H
#define RUNTIME_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vta.h"

typedef struct rig {
    vta_sim *sim;
    vta_device device;
    void *memory;
    vta_context *c;
} rig;

static inline void board_open(rig *b, const char *preset, const vta_context_options *o)
{
    vta_config config;
    vta_error e = {VTA_OK, ""};
    vta_sim_options so = {.seed = 1};
    assert_int_equal(vta_config_preset(preset, &config, &e), VTA_OK);
    if (vta_sim_create(&config, &so, &b->sim, &e) != VTA_OK)
        fail_msg("%s", e.text);
    b->device = vta_sim_device(b->sim);
    size_t bytes = vta_context_bytes(&b->device, o);
    b->memory = aligned_alloc(64, bytes);
    assert_non_null(b->memory);
    if (vta_context_init(b->memory, bytes, &b->device, o, &b->c, &e) != VTA_OK)
        fail_msg("%s", e.text);
}

static inline void board_close(rig *b)
{
    vta_context_destroy(b->c);
    free(b->memory);
    vta_device_destroy(&b->device);
}

/* Fails with the context's message when s is not VTA_OK. */
static inline void good(rig *b, vta_status s)
{
    vta_error e = {VTA_OK, ""};
    if (s == VTA_OK)
        return;
    vta_context_last_error(b->c, &e);
    fail_msg("%s: %s", vta_status_text(s), e.text);
}

/* The call was refused with this status and a message that holds `part`; the context works again. */
static inline void refused(rig *b, vta_status s, vta_status wanted, const char *part)
{
    vta_error e = {VTA_OK, ""};
    vta_context_last_error(b->c, &e);
    if (s != wanted || e.status != wanted || !strstr(e.text, part))
        fail_msg("'%s' (%s), wanted '%s' (%s)", e.text, vta_status_text(s), part, vta_status_text(wanted));
}

/* A kernel of any loops and micro-ops, as closure. */
typedef struct kernel_text {
    uint32_t loops[2][4]; /* extent 0: none */
    uint32_t n_uops;
    vta_uop uops[40];
} kernel_text;

static inline int record_text(void *closure)
{
    const kernel_text *k = (const kernel_text *)closure;
    int loops = 0;
    for (int i = 0; i < 2 && k->loops[i][0] > 0; i++, loops++)
        vta_uop_loop_begin(k->loops[i][0], k->loops[i][1], k->loops[i][2], k->loops[i][3], NULL);
    for (uint32_t i = 0; i < k->n_uops; i++)
        vta_uop_push(&k->uops[i], NULL);
    while (loops-- > 0)
        vta_uop_loop_end(NULL);
    return 0;
}

static const char text_site = 0;

static inline vta_status push_text(rig *b, vta_mode mode, const kernel_text *k)
{
    kernel_text copy = *k;
    return vta_push(b->c, mode, &text_site, record_text, &copy, sizeof copy);
}

/* `extent` accumulators from dst on: op with an immediate, or with those from src on. */
static inline void alu(rig *b, uint32_t op, uint32_t extent, uint32_t dst, uint32_t src, bool use_imm, int32_t imm)
{
    kernel_text k = {.n_uops = 1};
    if (extent > 1)
        memcpy(k.loops[0], (uint32_t[]){extent, 1, use_imm ? 0 : 1, 0}, sizeof k.loops[0]);
    k.uops[0] = (vta_uop){VTA_MODE_ALU, 0, dst, src, 0, op, use_imm, imm};
    good(b, push_text(b, VTA_MODE_ALU, &k));
}

static inline void load(rig *b, enum vta_mem m, vta_buffer from, uint32_t sram, uint32_t dram, uint32_t x, uint32_t y,
                        uint32_t stride)
{
    vta_transfer t = {
        .memory = m, .sram_index = sram, .dram_offset = dram, .x_size = x, .y_size = y, .x_stride = stride};
    good(b, vta_load(b->c, from, &t));
}

static inline void store(rig *b, vta_buffer to, uint32_t sram, uint32_t dram, uint32_t x, uint32_t y, uint32_t stride)
{
    vta_transfer t = {.memory = VTA_MEM_OUT};
    t.sram_index = sram;
    t.dram_offset = dram;
    t.x_size = x;
    t.y_size = y;
    t.x_stride = stride;
    good(b, vta_store(b->c, to, &t));
}

static inline void push(rig *b, enum vta_stage from, enum vta_stage to)
{
    good(b, vta_dep_push(b->c, from, to));
}

static inline void pop(rig *b, enum vta_stage from, enum vta_stage to)
{
    good(b, vta_dep_pop(b->c, from, to));
}

static inline vta_buffer buffer(rig *b, size_t bytes)
{
    vta_buffer handle;
    good(b, vta_buffer_alloc(b->c, bytes, &handle));
    return handle;
}

static inline void *host(rig *b, vta_buffer handle)
{
    return vta_buffer_cpu_ptr(b->c, handle);
}

/* The physical address of a buffer, from the instruction that a load of it makes. */
static inline uint32_t dram_base(const vta_geometry *g, const vta_insn *insn)
{
    vta_fields f;
    vta_decode(g, insn, &f);
    return (uint32_t)f.dram_base;
}

/* One instruction as `LOAD INP sram 0, dram 0, x=1, y=1, stride=1 p<P>`; DRAM addresses in elements from `base[memory]`
 * on. */
static inline size_t print_insn(const vta_geometry *g, const vta_insn *insn, const uint32_t base[VTA_MEM_COUNT],
                                char out[160])
{
    static const char *const memories[] = {"UOP", "WGT", "INP", "ACC", "OUT", "ACC8", "?", "?"};
    static const char *const operations[] = {"min", "max", "add", "shr", "mul", "?", "?", "?"};
    vta_fields f;
    int n = 0;
    vta_decode(g, insn, &f);
#define I(x) ((int)f.x)
    if ((f.opcode == VTA_LOAD || f.opcode == VTA_STORE) && f.x_size == 0) {
        n = sprintf(out, "NOP %s %s", f.opcode == VTA_LOAD ? "LOAD" : "STORE", memories[f.memory_type]);
    } else if (f.opcode == VTA_LOAD || f.opcode == VTA_STORE) {
        n = sprintf(out, "%s %s sram %d, dram %d, x=%d, y=%d, stride=%d", f.opcode == VTA_LOAD ? "LOAD" : "STORE",
                    memories[f.memory_type], I(sram_base), (int)((uint32_t)f.dram_base - base[f.memory_type]),
                    I(x_size), I(y_size), I(x_stride));
        if (f.x_pad_0 || f.x_pad_1 || f.y_pad_0 || f.y_pad_1)
            n += sprintf(out + n, ", pad x %d %d y %d %d", I(x_pad_0), I(x_pad_1), I(y_pad_0), I(y_pad_1));
    } else if (f.opcode == VTA_GEMM) {
        n = sprintf(out, "GEMM%s uop[%d,%d) iter %dx%d dst %d,%d src %d,%d wgt %d,%d", f.reset_reg ? " reset" : "",
                    I(uop_bgn), I(uop_end), I(iter_out), I(iter_in), I(dst_factor_out), I(dst_factor_in),
                    I(src_factor_out), I(src_factor_in), I(wgt_factor_out), I(wgt_factor_in));
    } else if (f.opcode == VTA_ALU) {
        n = sprintf(out, "ALU %s uop[%d,%d) iter %dx%d dst %d,%d src %d,%d imm %d %d", operations[f.alu_opcode],
                    I(uop_bgn), I(uop_end), I(iter_out), I(iter_in), I(dst_factor_out), I(dst_factor_in),
                    I(src_factor_out), I(src_factor_in), I(use_imm), I(imm));
    } else {
        n = sprintf(out, "FINISH");
    }
#undef I
    n += sprintf(out + n, "%s%s%s%s%s",
                 f.pop_prev_dep || f.pop_next_dep || f.push_prev_dep || f.push_next_dep ? " " : "",
                 f.pop_prev_dep ? "p<" : "", f.pop_next_dep ? "p>" : "", f.push_prev_dep ? "P<" : "",
                 f.push_next_dep ? "P>" : "");
    return (size_t)n;
}

/* What ran last: the tests' device keeps a copy of each stream. */
typedef struct spy {
    const vta_driver *driver;
    void *self;
    vta_sim *sim;
    vta_insn *insns;
    uint32_t count, runs, resets;
} spy;

static inline vta_status spy_run(void *self, uint64_t phys, uint32_t count, uint32_t wait, vta_error *e)
{
    spy *s = (spy *)self;
    s->insns = (vta_insn *)realloc(s->insns, count * sizeof *s->insns);
    memcpy(s->insns, vta_dram_at(vta_sim_dram(s->sim), phys, count * sizeof *s->insns), count * sizeof *s->insns);
    s->count = count;
    s->runs++;
    return s->driver->run(s->self, phys, count, wait, e);
}

static inline vta_status spy_alloc(void *self, size_t bytes, bool cached, vta_memory *out, vta_error *e)
{
    return ((spy *)self)->driver->alloc(((spy *)self)->self, bytes, cached, out, e);
}

static inline void spy_free(void *self, const vta_memory *m)
{
    ((spy *)self)->driver->free(((spy *)self)->self, m);
}

static inline void spy_reset(void *self)
{
    ((spy *)self)->resets++;
    ((spy *)self)->driver->reset(((spy *)self)->self);
}

static inline void spy_destroy(void *self)
{
    spy *s = (spy *)self;
    s->driver->destroy(s->self);
    free(s->insns);
    free(s);
}

/* Puts a spy between the board's device and its context; before board_open's context is used. */
static inline spy *board_spy(rig *b)
{
    static const vta_driver driver = {.name = "spy",
                                      .alloc = spy_alloc,
                                      .free = spy_free,
                                      .run = spy_run,
                                      .reset = spy_reset,
                                      .destroy = spy_destroy};
    spy *s = (spy *)calloc(1, sizeof *s);
    s->driver = b->device.driver;
    s->self = b->device.self;
    s->sim = b->sim;
    b->device.driver = &driver;
    b->device.self = s;
    return s;
}

/* A small generator of test data. */
static inline uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static inline int32_t random_between(uint32_t *state, int32_t least, int32_t most)
{
    return least + (int32_t)(next_random(state) % (uint32_t)(most - least + 1));
}

#endif
