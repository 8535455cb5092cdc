/* stream.h: small streams by hand, for the tests of the simulator.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STREAM_H
#define STREAM_H

#include "vta_test.h"

enum { MOST = 64, DRAM_BYTES = 1 << 16 };

/* A stream in the making, on a simulator. */
typedef struct bench {
    vta_sim *sim;
    const vta_geometry *g;
    vta_memory dram;
    vta_insn insn[MOST];
    uint32_t n;
    vta_error e;
} bench;

static inline void bench_open(bench *b, const char *config, vta_profile profile)
{
    const vta_config c = test_config(config);
    const vta_sim_options o = {.profile = profile};
    memset(b, 0, sizeof *b);
    b->sim = test_sim(&c, &o);
    b->g = vta_sim_geometry(b->sim);
    assert_int_equal(vta_dram_alloc(vta_sim_dram(b->sim), DRAM_BYTES, &b->dram, NULL), VTA_OK);
}

static inline void bench_close(bench *b)
{
    vta_sim_destroy(b->sim);
}

static inline void add(bench *b, vta_fields f)
{
    assert_true(b->n < MOST);
    b->insn[b->n++] = test_encode(b->g, f);
}

/* Element number in DRAM of byte `offset`. */
static inline int64_t element(const bench *b, enum vta_mem m, uint32_t offset)
{
    return (int64_t)((b->dram.phys + offset) / b->g->elem_bytes[m]);
}

static inline vta_fields load(const bench *b, enum vta_mem m, uint32_t sram, uint32_t offset, uint32_t x, uint32_t y)
{
    return (vta_fields){.opcode = VTA_LOAD,
                        .memory_type = m,
                        .sram_base = sram,
                        .dram_base = element(b, m, offset),
                        .x_size = x,
                        .y_size = y,
                        .x_stride = x};
}

static inline vta_fields store(const bench *b, uint32_t sram, uint32_t offset, uint32_t x)
{
    vta_fields f = load(b, VTA_MEM_OUT, sram, offset, x, 1);
    f.opcode = VTA_STORE;
    return f;
}

/* op over accumulators [0, n): micro-op 0 is (0, src, 0). */
static inline vta_fields alu(enum vta_alu_opcode op, uint32_t n, bool use_imm, int64_t imm)
{
    return (vta_fields){.opcode = VTA_ALU,
                        .uop_end = 1,
                        .iter_out = 1,
                        .iter_in = n,
                        .dst_factor_in = n > 1,
                        .src_factor_in = n > 1,
                        .alu_opcode = op,
                        .use_imm = use_imm,
                        .imm = imm};
}

static const vta_fields finish = {.opcode = VTA_FINISH};

static inline void put_uop(bench *b, uint32_t offset, int64_t dst, int64_t src, int64_t wgt)
{
    uint32_t word = test_uop(b->g, dst, src, wgt);
    memcpy((char *)b->dram.host + offset, &word, 4);
}

static inline void run(bench *b)
{
    vta_status s = vta_sim_run(b->sim, b->insn, b->n, &b->e);
    b->n = 0;
    if (s != VTA_OK)
        fail_msg("%s", b->e.text);
}

static inline void run_fails(bench *b, vta_status status, const char *part)
{
    vta_status s = vta_sim_run(b->sim, b->insn, b->n, &b->e);
    b->n = 0;
    assert_int_equal(s, status);
    if (!strstr(b->e.text, part))
        fail_msg("'%s' does not contain '%s'", b->e.text, part);
}

static inline int32_t *words(bench *b, uint32_t offset)
{
    return (int32_t *)(void *)((char *)b->dram.host + offset);
}

static inline int8_t *bytes(bench *b, uint32_t offset)
{
    return (int8_t *)b->dram.host + offset;
}

enum { IN = 4096, IN2 = 16384, OUT = 32768 }; /* offsets in DRAM; micro-ops at 0 */

static inline void fault(bench *b, vta_fields f, const char *part)
{
    vta_insn insn = test_encode(b->g, f);
    assert_int_equal(vta_sim_execute(b->sim, &insn, 17, &b->e), VTA_FAULT);
    assert_int_equal(b->e.status, VTA_FAULT);
    if (!strstr(b->e.text, part) || strncmp(b->e.text, "instruction 17 (", 16) != 0)
        fail_msg("'%s' does not contain '%s'", b->e.text, part);
}

static inline void good(bench *b, vta_fields f)
{
    vta_insn insn = test_encode(b->g, f);
    if (vta_sim_execute(b->sim, &insn, 0, &b->e) != VTA_OK)
        fail_msg("%s", b->e.text);
}

#endif
