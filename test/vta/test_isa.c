/* test_isa.c: encode and decode as properties over random configurations and fields; the published bit positions.
 * SPDX-License-Identifier: Apache-2.0 */
#include "vta_test.h"

static const int64_t opcodes[] = {VTA_LOAD, VTA_STORE, VTA_GEMM, VTA_FINISH, VTA_ALU};

static int64_t *member(vta_fields *f, const vta_field *layout)
{
    return (int64_t *)(void *)((char *)f + layout->member);
}

static vta_fields random_fields(const vta_geometry *g, int64_t opcode, uint64_t *random)
{
    vta_field layout[VTA_MAX_FIELDS];
    vta_fields f = {.opcode = opcode};
    uint32_t n = vta_insn_layout(g, opcode, layout);
    for (uint32_t i = 1; i < n; i++) {
        uint64_t raw = test_random(random) | (uint64_t)test_random(random) << 32;
        *member(&f, &layout[i]) = vta_field_least(&layout[i]) + (int64_t)(raw & (((uint64_t)1 << layout[i].bits) - 1));
    }
    return f;
}

static void what_is_encoded_is_decoded(void **state)
{
    uint64_t random = 1;
    (void)state;
    for (size_t k = 0; k < N(test_configs); k++) {
        const vta_config c = test_config(test_configs[k]);
        vta_geometry g;
        assert_int_equal(vta_config_check(&c, &g, NULL), VTA_OK);
        for (uint32_t round = 0; round < 2000; round++) {
            vta_fields f = random_fields(&g, opcodes[round % N(opcodes)], &random), back;
            vta_insn insn = test_encode(&g, f);
            assert_true(vta_decode(&g, &insn, &back));
            assert_memory_equal(&f, &back, sizeof f);
            vta_uop_fields u = {test_below(&random, g.depth[VTA_MEM_ACC]), test_below(&random, g.depth[VTA_MEM_INP]),
                                test_below(&random, g.depth[VTA_MEM_WGT])},
                           v;
            vta_uop_decode(&g, test_uop(&g, u.dst, u.src, u.wgt), &v);
            assert_memory_equal(&u, &v, sizeof u);
        }
    }
}

/* A word whose unused bits are 0 comes back as it was. */
static void what_is_decoded_is_encoded(void **state)
{
    uint64_t random = 2;
    (void)state;
    for (size_t k = 0; k < N(test_configs); k++) {
        const vta_config c = test_config(test_configs[k]);
        vta_geometry g;
        assert_int_equal(vta_config_check(&c, &g, NULL), VTA_OK);
        for (uint32_t round = 0; round < 2000; round++) {
            vta_insn insn, back;
            vta_fields f;
            vta_field_error e;
            vta_field layout[VTA_MAX_FIELDS];
            uint64_t used[2] = {0, 0};
            for (int w = 0; w < 2; w++)
                insn.word[w] =
                    (uint64_t)test_random(&random) << 40 ^ (uint64_t)test_random(&random) << 20 ^ test_random(&random);
            uint32_t n = vta_insn_layout(&g, (int64_t)(insn.word[0] & 7), layout);
            assert_int_equal(vta_decode(&g, &insn, &f), n > 0);
            if (n == 0)
                continue;
            for (uint32_t i = 0; i < n; i++) {
                uint64_t bits = (((uint64_t)1 << layout[i].bits) - 1) << layout[i].bit;
                assert_int_equal(used[layout[i].word] & bits, 0); /* fields do not overlap */
                used[layout[i].word] |= bits;
            }
            assert_true(vta_encode(&g, &f, &back, &e));
            assert_int_equal(back.word[0], insn.word[0] & used[0]);
            assert_int_equal(back.word[1], insn.word[1] & used[1]);
        }
    }
}

static void what_does_not_fit_is_refused(void **state)
{
    vta_config c = vta_config_default();
    vta_geometry g;
    uint64_t random = 3;
    (void)state;
    assert_int_equal(vta_config_check(&c, &g, NULL), VTA_OK);
    for (size_t o = 0; o < N(opcodes); o++) {
        vta_field layout[VTA_MAX_FIELDS];
        uint32_t n = vta_insn_layout(&g, opcodes[o], layout);
        for (uint32_t i = 1; i < n; i++) {
            const int64_t wrong[] = {vta_field_least(&layout[i]) - 1, vta_field_most(&layout[i]) + 1};
            for (size_t w = 0; w < N(wrong); w++) {
                vta_fields f = random_fields(&g, opcodes[o], &random);
                vta_insn insn;
                vta_field_error e = {NULL, 0, 0, 0};
                *member(&f, &layout[i]) = wrong[w];
                assert_false(vta_encode(&g, &f, &insn, &e));
                assert_string_equal(e.field, layout[i].name);
                assert_int_equal(e.value, wrong[w]);
            }
        }
    }
    vta_fields none = {.opcode = 5};
    vta_insn insn;
    vta_field_error e;
    assert_false(vta_encode(&g, &none, &insn, &e));
    assert_string_equal(e.field, "opcode");
}

typedef struct position {
    const char *field;
    int low, high;
} position;

/* --- the published C structures ----------------------------------------------------------------------------------- */

/* X(name, preset, U, A, I, W): the default; factors of dst in the first word, one, two, and of ALU three. */
#define LAYOUTS(X)                                        \
    X(plain, "1x16_i8w8a32_15_15_18_17", 13, 11, 11, 10)  \
    X(one, "8x1_i8w16a32_10_10_10_12", 8, 7, 7, 9)        \
    X(tiny, "4x4_i4w2a16_12_12_12_12", 10, 7, 9, 10)      \
    X(two, "1x16_i8w8a32_7_15_18_13", 5, 7, 11, 10)       \
    X(three, "1x16_i8w8a32_4_15_18_13", 2, 7, 11, 10)

#define BITS(name, bits, sign) uint64_t name : (bits);
#define SET(name, bits, sign)  s.name = (uint64_t)fields->name & (((uint64_t)1 << (bits)) - 1);

/* An instruction as the C compiler packs bit-fields of 64 bits. */
#define PACK(OWN)                                                       \
    struct {                                                            \
        VTA_HEAD_FIELDS(BITS) VTA_LOOP_FIELDS(BITS) OWN(BITS)           \
    } s = {0};                                                          \
    VTA_HEAD_FIELDS(SET) VTA_LOOP_FIELDS(SET) OWN(SET)                  \
    _Static_assert(sizeof s == 16, "an instruction is two words");      \
    memcpy(words, &s, sizeof s);
#define X(name, preset, U_, A_, I_, W_)                             \
    static void pack_##name(const vta_fields *fields, uint64_t words[2]) \
    {                                                               \
        enum { U = (U_), A = (A_), I = (I_), W = (W_) };            \
        if (fields->opcode == VTA_GEMM) {                           \
            PACK(VTA_GEMM_FIELDS)                                   \
        } else {                                                    \
            PACK(VTA_ALU_FIELDS)                                    \
        }                                                           \
    }
LAYOUTS(X)
#undef X

static void fields_are_packed_as_bit_fields_are(void **state)
{
    static const struct {
        const char *preset;
        int32_t depths[4];
        void (*pack)(const vta_fields *f, uint64_t out[2]);
    } all[] = {
#define X(name, preset, U, A, I, W) {preset, {U, A, I, W}, pack_##name},
        LAYOUTS(X)
#undef X
    };
    uint64_t random = 4;
    (void)state;
    for (size_t k = 0; k < N(all); k++) {
        const vta_config c = test_config(all[k].preset);
        vta_geometry g;
        assert_int_equal(vta_config_check(&c, &g, NULL), VTA_OK);
        const int32_t depths[4] = {g.log_depth[VTA_MEM_UOP], g.log_depth[VTA_MEM_ACC], g.log_depth[VTA_MEM_INP],
                                   g.log_depth[VTA_MEM_WGT]};
        assert_memory_equal(depths, all[k].depths, sizeof depths);
        for (uint32_t round = 0; round < 200; round++) {
            vta_fields f = random_fields(&g, round % 2 ? VTA_GEMM : VTA_ALU, &random);
            const vta_insn insn = test_encode(&g, f);
            uint64_t words[2];
            all[k].pack(&f, words);
            if (words[0] != insn.word[0] || words[1] != insn.word[1])
                fail_msg("%s, opcode %d: 0x%016llx 0x%016llx, in C 0x%016llx 0x%016llx", all[k].preset, (int)f.opcode,
                         (unsigned long long)insn.word[0], (unsigned long long)insn.word[1],
                         (unsigned long long)words[0], (unsigned long long)words[1]);
        }
    }
}

/* Bit positions as they are published for the default configuration. */
static void check_positions(int64_t opcode, const position *at, size_t n)
{
    vta_config c = vta_config_default();
    vta_geometry g;
    vta_field layout[VTA_MAX_FIELDS];
    assert_int_equal(vta_config_check(&c, &g, NULL), VTA_OK);
    assert_int_equal(vta_insn_layout(&g, opcode, layout), n);
    for (size_t i = 0; i < n; i++) {
        int low = layout[i].word * 64 + layout[i].bit;
        assert_string_equal(layout[i].name, at[i].field);
        assert_int_equal(low, at[i].low);
        assert_int_equal(low + layout[i].bits - 1, at[i].high);
    }
}

#define HEAD \
    {"opcode", 0, 2}, {"pop_prev_dep", 3, 3}, {"pop_next_dep", 4, 4}, {"push_prev_dep", 5, 5}, {"push_next_dep", 6, 6}
#define LOOPS {"reset_reg", 7, 7}, {"uop_bgn", 8, 20}, {"uop_end", 21, 34}, {"iter_out", 35, 48}, {"iter_in", 49, 62}

static void fields_lie_where_published(void **state)
{
    static const position memory[] = {HEAD,
                                      {"memory_type", 7, 9},
                                      {"sram_base", 10, 25},
                                      {"dram_base", 26, 57},
                                      {"y_size", 64, 79},
                                      {"x_size", 80, 95},
                                      {"x_stride", 96, 111},
                                      {"y_pad_0", 112, 115},
                                      {"y_pad_1", 116, 119},
                                      {"x_pad_0", 120, 123},
                                      {"x_pad_1", 124, 127}};
    static const position gemm[] = {HEAD,
                                    LOOPS,
                                    {"dst_factor_out", 64, 74},
                                    {"dst_factor_in", 75, 85},
                                    {"src_factor_out", 86, 96},
                                    {"src_factor_in", 97, 107},
                                    {"wgt_factor_out", 108, 117},
                                    {"wgt_factor_in", 118, 127}};
    static const position alu[] = {HEAD,
                                   LOOPS,
                                   {"dst_factor_out", 64, 74},
                                   {"dst_factor_in", 75, 85},
                                   {"src_factor_out", 86, 96},
                                   {"src_factor_in", 97, 107},
                                   {"alu_opcode", 108, 110},
                                   {"use_imm", 111, 111},
                                   {"imm", 112, 127}};
    (void)state;
    check_positions(VTA_LOAD, memory, N(memory));
    check_positions(VTA_STORE, memory, N(memory));
    check_positions(VTA_GEMM, gemm, N(gemm));
    check_positions(VTA_ALU, alu, N(alu));
    check_positions(VTA_FINISH, gemm, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_encoded_is_decoded),
        cmocka_unit_test(what_is_decoded_is_encoded),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(fields_lie_where_published),
        cmocka_unit_test(fields_are_packed_as_bit_fields_are),
    };
    return cmocka_run_group_tests_name("isa", tests, NULL, NULL);
}
