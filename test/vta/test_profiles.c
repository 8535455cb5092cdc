/* test_profiles.c: what hardware profiles refuse, and accumulators that are written again.
 * SPDX-License-Identifier: Apache-2.0 */
#include "stream.h"

/* One instruction that profiles take or refuse; `takes` has a bit for each. */
static void by_profile(vta_fields (*make)(const bench *b), uint32_t takes)
{
    for (int p = VTA_COMPATIBLE; p <= VTA_INTELFOCL; p++) {
        bench b;
        bench_open(&b, "pynq", (vta_profile)p);
        put_uop(&b, 0, 0, 1, 0);
        for (int i = 0; i < 16; i++)
            words(&b, IN + 64)[i] = -5;
        good(&b, load(&b, VTA_MEM_UOP, 0, 0, 1, 1));
        good(&b, load(&b, VTA_MEM_ACC, 0, IN, 4, 1));
        if (takes >> p & 1)
            good(&b, make(&b));
        else
            fault(&b, make(&b), p == VTA_CHISEL || p == VTA_HLS || p == VTA_INTELFOCL ? "" : "never");
        bench_close(&b);
    }
}

enum { C = 1 << VTA_COMPATIBLE, H = 1 << VTA_HLS, S = 1 << VTA_CHISEL, I = 1 << VTA_INTELFOCL };

static vta_fields make_mul(const bench *b)
{
    (void)b;
    return alu(VTA_ALU_MUL, 1, true, 3);
}

static vta_fields make_acc8(const bench *b)
{
    return load(b, VTA_MEM_ACC_8BIT, 0, IN, 1, 1);
}

static vta_fields make_shift_16(const bench *b)
{
    (void)b;
    return alu(VTA_ALU_SHR, 1, true, 16);
}

static vta_fields make_shift_minus_16(const bench *b)
{
    (void)b;
    return alu(VTA_ALU_SHR, 1, true, -16);
}

static vta_fields make_shift_32(const bench *b)
{
    (void)b;
    return alu(VTA_ALU_SHR, 1, true, 32);
}

static vta_fields make_tensor_shift_left(const bench *b)
{
    (void)b;
    return alu(VTA_ALU_SHR, 1, false, 0); /* by -5 */
}

static vta_fields make_wgt_pad(const bench *b)
{
    vta_fields f = load(b, VTA_MEM_WGT, 0, IN, 1, 1);
    f.x_pad_1 = 1;
    return f;
}

static vta_fields make_acc_pad(const bench *b)
{
    vta_fields f = load(b, VTA_MEM_ACC, 0, IN, 1, 1);
    f.y_pad_0 = 1;
    return f;
}

static vta_fields make_uop_rows(const bench *b)
{
    return load(b, VTA_MEM_UOP, 0, 0, 1, 2);
}

static vta_fields make_uop_2048(const bench *b)
{
    return load(b, VTA_MEM_UOP, 2048, 0, 1, 1);
}

static vta_fields make_empty(const bench *b)
{
    (void)b;
    return alu(VTA_ALU_ADD, 0, true, 1);
}

static vta_fields make_no_rows(const bench *b)
{
    return load(b, VTA_MEM_INP, 0, IN, 1, 0);
}

/* A load does not reach OUT. */
static vta_fields make_store_after_load(const bench *b)
{
    return store(b, 0, OUT, 1);
}

static void profiles_refuse_what_hardware_does_otherwise(void **state)
{
    (void)state;
    by_profile(make_mul, C | I);
    by_profile(make_acc8, C | I);
    by_profile(make_shift_16, C | S | I);
    by_profile(make_shift_minus_16, C | H | S | I);
    by_profile(make_shift_32, C);
    by_profile(make_tensor_shift_left, C | H | I);
    by_profile(make_wgt_pad, C | S);
    by_profile(make_acc_pad, C | H | S);
    by_profile(make_uop_rows, C);
    by_profile(make_uop_2048, C | H | I);
    by_profile(make_empty, C);
    by_profile(make_no_rows, C);
    by_profile(make_store_after_load, C);
}

static void hardware_stores_what_the_last_operation_wrote(void **state)
{
    (void)state;
    for (int p = VTA_HLS; p <= VTA_INTELFOCL; p++) {
        bench b;
        bench_open(&b, "pynq", (vta_profile)p);
        put_uop(&b, 0, 0, 0, 0);
        words(&b, IN)[0] = 3;
        bytes(&b, IN2)[0] = 1;
        good(&b, load(&b, VTA_MEM_UOP, 0, 0, 1, 1));
        good(&b, load(&b, VTA_MEM_ACC, 0, IN, 1, 1));
        good(&b, alu(VTA_ALU_ADD, 1, true, 4));
        good(&b, store(&b, 0, OUT, 1));
        assert_int_equal(bytes(&b, OUT)[0], 7);
        good(&b, load(&b, VTA_MEM_ACC, 0, IN, 1, 1)); /* OUT still holds 7 */
        fault(&b, store(&b, 0, OUT, 1), "element 0, lane 0: OUT holds 7, the accumulator 3");
        vta_fields reset = {.opcode = VTA_GEMM, .uop_end = 1, .iter_out = 1, .iter_in = 1, .reset_reg = 1};
        good(&b, reset);
        fault(&b, store(&b, 0, OUT, 1), p == VTA_CHISEL ? "OUT holds 7, the accumulator 0" : "OUT holds 3");
        good(&b, alu(VTA_ALU_ADD, 1, true, 0));
        good(&b, store(&b, 0, OUT, 1));
        assert_int_equal(bytes(&b, OUT)[0], 0);
        bench_close(&b);
    }
}

static void profiles_refuse_configurations(void **state)
{
    static const struct {
        const char *config;
        uint32_t takes;
    } cases[] = {{"1x16_i8w8a32_15_15_18_17", C | H | S | I},
                 {"4x8_i8w8a32_15_16_16_18", C | H | S},
                 {"1x16_i8w8a32_15_14_18_17", C | I},
                 {"1x16_i8w4a32_15_15_17_17", C | H | S}};
    (void)state;
    for (size_t k = 0; k < N(cases); k++)
        for (int p = VTA_COMPATIBLE; p <= VTA_INTELFOCL; p++) {
            const vta_config c = test_config(cases[k].config);
            const vta_sim_options o = {.profile = (vta_profile)p};
            vta_sim *s;
            vta_status status = vta_sim_create(&c, &o, &s, NULL);
            assert_int_equal(status, cases[k].takes >> p & 1 ? VTA_OK : VTA_UNSUPPORTED);
            vta_sim_destroy(s);
        }
    bench b; /* Chisel's ALU has one row */
    bench_open(&b, "2x16_i8w8a32_15_15_18_17", VTA_CHISEL);
    fault(&b, alu(VTA_ALU_ADD, 1, true, 0), "the first of 2 rows");
    bench_close(&b);
}

/* The GEMM of 16 products into one accumulator after the other: reported, and refused when asked. */
static void accumulators_written_again(void **state)
{
    const vta_config c = vta_config_default();
    (void)state;
    for (uint32_t asked = 0; asked <= 4; asked++) {
        const vta_sim_options o = {.acc_distance = asked};
        vta_sim *s = test_sim(&c, &o);
        const vta_geometry *g = vta_sim_geometry(s);
        vta_error e = {VTA_OK, ""};
        vta_fields f = {.opcode = VTA_GEMM, .uop_end = 1, .iter_out = 4, .iter_in = 3, .dst_factor_in = 1};
        vta_insn apart = test_encode(g, f); /* 0 1 2 0 1 2 0 1 2 0 1 2 */
        assert_int_equal(vta_sim_acc_distance(s), 0);
        assert_int_equal(vta_sim_execute(s, &apart, 0, &e), asked < 3 ? VTA_OK : VTA_FAULT);
        assert_int_equal(vta_sim_acc_distance(s), 3);
        if (asked >= 3)
            assert_non_null(strstr(e.text, "operation 3 (outer 1, inner 0, micro-op 0): distance to the last write"));
        f.dst_factor_in = 0;
        f.dst_factor_out = 1;
        vta_insn again = test_encode(g, f); /* 0 0 0 1 1 1 */
        assert_int_equal(vta_sim_execute(s, &again, 0, &e), asked < 1 ? VTA_OK : VTA_FAULT);
        assert_int_equal(vta_sim_acc_distance(s), 1);
        vta_sim_destroy(s);
    }
}

/* The memory of distances must not take other micro-ops for the ones it knows. */
static void distances_follow_the_micro_ops(void **state)
{
    bench b;
    (void)state;
    bench_open(&b, "pynq", VTA_COMPATIBLE);
    put_uop(&b, 0, 0, 0, 0);
    put_uop(&b, 4, 1, 0, 0);
    put_uop(&b, 8, 2, 0, 0);
    put_uop(&b, 12, 2, 0, 0);
    vta_fields f = {.opcode = VTA_GEMM, .uop_end = 2, .iter_out = 2, .iter_in = 1};
    good(&b, load(&b, VTA_MEM_UOP, 0, 0, 2, 1));
    good(&b, f);
    good(&b, f);
    assert_int_equal(vta_sim_acc_distance(b.sim), 2);
    good(&b, load(&b, VTA_MEM_UOP, 0, 8, 2, 1));
    good(&b, f);
    assert_int_equal(vta_sim_acc_distance(b.sim), 1);
    bench_close(&b);
}

/* Narrow accumulators: an operation takes the 16 bits of the immediate and wraps its result. */
static void immediates_are_wider_than_accumulators(void **state)
{
    static const struct {
        enum vta_alu_opcode op;
        int64_t imm;
        int8_t result; /* of -5 */
    } all[] = {{VTA_ALU_MIN, 300, -5}, {VTA_ALU_MAX, 300, 44},    {VTA_ALU_MIN, -300, -44}, {VTA_ALU_ADD, 300, 39},
               {VTA_ALU_SHR, 300, -1}, {VTA_ALU_SHR, 256, -1},    {VTA_ALU_SHR, -256, 0},   {VTA_ALU_MUL, 300, 36},
               {VTA_ALU_MAX, 127, 127}, {VTA_ALU_MIN, -128, -128}};
    (void)state;
    for (size_t i = 0; i < N(all); i++)
        for (int p = VTA_COMPATIBLE; p <= VTA_CHISEL; p++) {
            bench b;
            int8_t got[16];
            const vta_fields f = alu(all[i].op, 1, true, all[i].imm);
            bench_open(&b, "1x16_i8w8a8_13_13_13_13", (vta_profile)p);
            put_uop(&b, 0, 0, 1, 0);
            memset(words(&b, IN), -5, 16);
            good(&b, load(&b, VTA_MEM_UOP, 0, 0, 1, 1));
            good(&b, load(&b, VTA_MEM_ACC, 0, IN, 1, 1));
            if (p == VTA_COMPATIBLE) {
                good(&b, f);
                assert_int_equal(vta_sim_scratchpad(b.sim, VTA_MEM_ACC, 0, 1, got, NULL), VTA_OK);
                assert_int_equal(got[0], all[i].result);
                assert_int_equal(got[15], all[i].result);
            } else if (all[i].op != VTA_ALU_MUL && (all[i].imm > 127 || all[i].imm < -128)) {
                fault(&b, f, "does not fit accumulators of 8 bits");
            }
            bench_close(&b);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profiles_refuse_what_hardware_does_otherwise),
        cmocka_unit_test(hardware_stores_what_the_last_operation_wrote),
        cmocka_unit_test(profiles_refuse_configurations),
        cmocka_unit_test(immediates_are_wider_than_accumulators),
        cmocka_unit_test(accumulators_written_again),
        cmocka_unit_test(distances_follow_the_micro_ops),
    };
    return cmocka_run_group_tests_name("profiles", tests, NULL, NULL);
}
