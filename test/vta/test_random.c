/* test_random.c: random programs, on the simulator at every level and on the reference: same results, same faults.
 * SPDX-License-Identifier: Apache-2.0 */
#include "reference.h"
#include "seeds.h"
#include "vta_test.h"

#include <stdio.h>

enum { DRAM_BYTES = 1 << 17, UOP_WORDS = 1024, INSNS = 60 };

typedef struct fixture {
    vta_sim *sim;
    vta_geometry g;
    vta_memory dram;
    reference ref;
    uint64_t random;
} fixture;

/* A factor whose product with the last of `n` iterations stays below a quarter of the depth; now and then any. */
static int64_t factor(fixture *f, uint32_t n, uint32_t depth)
{
    if (test_below(&f->random, 60) == 0)
        return test_below(&f->random, depth);
    return test_below(&f->random, 4) == 0 ? 0 : test_below(&f->random, n > 1 ? depth / 4 / (n - 1) + 1 : depth);
}

static void random_loops(fixture *f, vta_fields *i)
{
    static const uint32_t extents[] = {0, 1, 1, 2, 3, 5, 8, 17};
    const uint32_t *depth = f->g.depth, uops = depth[VTA_MEM_UOP] < UOP_WORDS ? depth[VTA_MEM_UOP] : UOP_WORDS;
    uint32_t src = i->opcode == VTA_GEMM ? depth[VTA_MEM_INP] : depth[VTA_MEM_ACC];
    i->iter_out = extents[test_below(&f->random, N(extents))];
    i->iter_in = extents[test_below(&f->random, N(extents))];
    i->uop_bgn = test_below(&f->random, uops);
    i->uop_end = i->uop_bgn + test_below(&f->random, 9);
    if (i->uop_end > uops && test_below(&f->random, 10))
        i->uop_end = uops;
    i->reset_reg = i->opcode == VTA_GEMM && test_below(&f->random, 5) == 0;
    i->dst_factor_out = factor(f, (uint32_t)i->iter_out, depth[VTA_MEM_ACC]);
    i->dst_factor_in = factor(f, (uint32_t)i->iter_in, depth[VTA_MEM_ACC]);
    i->src_factor_out = factor(f, (uint32_t)i->iter_out, src);
    i->src_factor_in = factor(f, (uint32_t)i->iter_in, src);
    if (i->opcode == VTA_GEMM) {
        i->wgt_factor_out = factor(f, (uint32_t)i->iter_out, depth[VTA_MEM_WGT]);
        i->wgt_factor_in = factor(f, (uint32_t)i->iter_in, depth[VTA_MEM_WGT]);
    } else {
        static const int64_t imms[] = {0, 1, -1, 8, -8, 31, 32, -31, -32, 127, 32767, -32768};
        i->alu_opcode = test_below(&f->random, 40) ? test_below(&f->random, 5) : 5;
        i->use_imm = test_below(&f->random, 2);
        i->imm = imms[test_below(&f->random, N(imms))];
    }
}

static void random_transfer(fixture *f, vta_fields *i)
{
    i->memory_type = i->opcode == VTA_STORE ? VTA_MEM_OUT : test_below(&f->random, VTA_MEM_COUNT);
    if (i->memory_type == VTA_MEM_OUT && i->opcode == VTA_LOAD)
        i->memory_type = VTA_MEM_ACC;
    uint32_t depth = f->g.depth[i->memory_type], bytes = f->g.elem_bytes[i->memory_type];
    uint32_t first = (uint32_t)(f->dram.phys / bytes), room = DRAM_BYTES / bytes;
    i->x_size = test_below(&f->random, 9);
    i->y_size = test_below(&f->random, 5);
    i->x_stride = test_below(&f->random, 12);
    if (i->opcode == VTA_LOAD) {
        i->y_pad_0 = test_below(&f->random, 3);
        i->y_pad_1 = test_below(&f->random, 3);
        i->x_pad_0 = test_below(&f->random, 3);
        i->x_pad_1 = test_below(&f->random, 3);
    }
    uint32_t rows = (uint32_t)(i->y_pad_0 + i->y_size + i->y_pad_1),
             row = (uint32_t)(i->x_pad_0 + i->x_size + i->x_pad_1);
    uint32_t span = 13 * 5;
    i->sram_base = test_below(&f->random, depth > rows * row ? depth - rows * row + 1 : 1);
    i->dram_base = first + test_below(&f->random, room > span ? room - span : 1);
    if (test_below(&f->random, 40) == 0)
        i->dram_base = first + room - test_below(&f->random, 8); /* over the end, row by row */
    if (test_below(&f->random, 40) == 0)
        i->sram_base = depth - test_below(&f->random, 8);
    if (i->memory_type == VTA_MEM_UOP) { /* from the part of DRAM that holds micro-ops that make sense */
        i->dram_base = first;
        i->x_size = 1 + test_below(&f->random, UOP_WORDS < depth ? UOP_WORDS : depth);
        i->y_size = 1;
        i->y_pad_0 = i->y_pad_1 = i->x_pad_0 = i->x_pad_1 = i->sram_base = 0;
    }
}

/* The first instructions fill the scratchpads, so that there are no zeros for errors to hide in. */
static vta_insn filling_insn(fixture *f, enum vta_mem m)
{
    uint32_t depth = f->g.depth[m], room = DRAM_BYTES / f->g.elem_bytes[m];
    uint32_t x = m == VTA_MEM_UOP ? UOP_WORDS : room / 2, y = 1;
    x = x < depth ? x : depth;
    if (m != VTA_MEM_UOP)
        y = depth / x;
    const vta_fields i = {.opcode = VTA_LOAD,
                          .memory_type = m,
                          .dram_base = (int64_t)(f->dram.phys / f->g.elem_bytes[m]),
                          .x_size = x,
                          .y_size = y,
                          .x_stride = y > 1 ? (room - x) / (y - 1) : x};
    return test_encode(&f->g, i);
}

static vta_insn random_insn(fixture *f)
{
    static const int64_t opcodes[] = {VTA_LOAD, VTA_LOAD, VTA_LOAD, VTA_GEMM, VTA_GEMM, VTA_ALU, VTA_ALU, VTA_STORE};
    vta_fields i = {.opcode = opcodes[test_below(&f->random, N(opcodes))]};
    if (i.opcode == VTA_LOAD || i.opcode == VTA_STORE)
        random_transfer(f, &i);
    else
        random_loops(f, &i);
    return test_encode(&f->g, i);
}

/* Random bytes, micro-ops of small indices in front. */
static void fill_dram(fixture *f)
{
    uint8_t *p = f->dram.host;
    const uint32_t *depth = f->g.depth;
    for (size_t i = 0; i < DRAM_BYTES; i++)
        p[i] = (uint8_t)test_random(&f->random);
    for (size_t i = 0; i < UOP_WORDS; i++) {
        uint32_t word =
            test_uop(&f->g, test_below(&f->random, depth[VTA_MEM_ACC] / 2),
                     test_below(&f->random, depth[VTA_MEM_INP] / 2), test_below(&f->random, depth[VTA_MEM_WGT] / 2));
        memcpy(p + 4 * i, &word, 4);
    }
}

static void compare_scratchpad(const fixture *f, enum vta_mem m)
{
    const uint32_t lanes = f->g.lanes[m], width = f->g.width[m], depth = f->g.depth[m];
    uint8_t *bytes = malloc((size_t)depth * f->g.elem_bytes[m]);
    assert_int_equal(vta_sim_scratchpad(f->sim, m, 0, depth, bytes, NULL), VTA_OK);
    for (size_t i = 0; i < (size_t)depth * lanes; i++) {
        uint64_t raw = reference_bits(bytes, i / lanes * f->g.elem_bits[m] + i % lanes * width, width);
        int64_t expected = f->ref.cell[m == VTA_MEM_OUT ? VTA_MEM_ACC : m][i];
        if (reference_signed(raw, width) != reference_signed((uint64_t)expected, width))
            fail_msg("memory %d, element %zu, lane %zu: %lld, expected %lld", m, i / lanes, i % lanes,
                     (long long)reference_signed(raw, width), (long long)expected);
    }
    free(bytes);
}

static void run_program(const vta_config *c, vta_sim_level level, uint64_t seed, uint32_t *faults)
{
    const vta_sim_options o = {.level = level};
    fixture f = {.random = seed};
    f.sim = test_sim(c, &o);
    f.g = *vta_sim_geometry(f.sim);
    assert_int_equal(vta_dram_alloc(vta_sim_dram(f.sim), DRAM_BYTES, &f.dram, NULL), VTA_OK);
    fill_dram(&f);
    reference_init(&f.ref, &f.g, f.dram.phys, f.dram.host, DRAM_BYTES);
    for (uint32_t i = 0; i < INSNS; i++) {
        vta_insn insn = i <= VTA_MEM_ACC ? filling_insn(&f, (enum vta_mem)i) : random_insn(&f);
        vta_error e = {VTA_OK, ""};
        bool good = reference_execute(&f.ref, insn.word);
        vta_status status = vta_sim_execute(f.sim, &insn, i, &e);
        if (status != (good ? VTA_OK : VTA_FAULT))
            fail_msg("program %llu, instruction %u: %s", (unsigned long long)seed, i, e.text);
        *faults += !good;
    }
    for (int m = VTA_MEM_UOP; m <= VTA_MEM_OUT; m++)
        compare_scratchpad(&f, (enum vta_mem)m);
    assert_memory_equal(f.dram.host, f.ref.dram, DRAM_BYTES);
    reference_free(&f.ref);
    vta_sim_destroy(f.sim);
}

static void random_programs(void **state)
{
    (void)state;
    for (size_t k = 0; k < N(test_configs); k++) {
        const vta_config c = test_config(test_configs[k]);
        uint32_t faults = 0, programs = 0;
        for (int level = VTA_SIM_SCALAR; level <= VTA_SIM_VNNI; level++) {
            const vta_sim_options o = {.level = (vta_sim_level)level};
            vta_sim *probe;
            if (vta_sim_create(&c, &o, &probe, NULL) == VTA_UNSUPPORTED)
                continue;
            vta_sim_destroy(probe);
            for (uint64_t seed = 0; seed < seeds(3, 8, 80); seed++, programs++)
                run_program(&c, (vta_sim_level)level, seed * 8 + k, &faults);
        }
        printf("%s: %u programs, %u instructions of them at fault\n", test_configs[k], programs, faults);
        assert_true(programs > 0 && faults > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_programs)};
    return cmocka_run_group_tests_name("random programs", tests, NULL, NULL);
}
