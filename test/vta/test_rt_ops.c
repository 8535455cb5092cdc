/* test_rt_ops.c: the published instruction tests, through the run-time on the functional simulator: load and store,
 * padding, matrix multiplication with one and two virtual threads, every ALU operation, ReLU, shift and scale; for
 * several shapes of the device. Wanted numbers come from the definitions, in plain loops.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime_test.h"

static const char *const presets[] = {"1x16_i8w8a32_15_15_18_17", "2x16_i8w8a32_15_15_18_17",
                                      "4x16_i8w8a32_15_15_18_17", "4x8_i8w8a32_15_16_16_18",
                                      "1x16_i8w4a32_15_15_17_17", "1x8_i8w8a32_15_14_16_16",
                                      "2x8_i8w8a32_15_15_16_17",  "1x32_i8w8a32_15_15_18_17",
                                      "2x32_i8w8a32_15_15_18_17", "2x16_i8w4a32_15_15_17_17",
                                      "1x64_i8w8a32_15_15_18_17"};
enum { N_PRESETS = sizeof presets / sizeof *presets };

/* Runs a test on a fresh device of every shape. */
static void on_all(void (*test)(rig *))
{
    for (int i = 0; i < N_PRESETS; i++) {
        rig b;
        board_open(&b, presets[i], NULL);
        test(&b);
        board_close(&b);
    }
}

static uint32_t acc_lanes(const rig *b)
{
    return b->device.geometry.lanes[VTA_MEM_ACC];
}

/* A buffer of `tiles` accumulators with values between two bounds; also as plain numbers. */
static vta_buffer random_acc(rig *b, uint32_t tiles, int32_t least, int32_t most, uint32_t seed, int32_t **out)
{
    uint32_t count = tiles * acc_lanes(b);
    vta_buffer a = buffer(b, count * 4);
    int32_t *p = (int32_t *)host(b, a);
    for (uint32_t i = 0; i < count; i++)
        p[i] = random_between(&seed, least, most);
    *out = p;
    return a;
}

static void store_and_run(rig *b, vta_buffer out, uint32_t tiles)
{
    push(b, VTA_STAGE_COMPUTE, VTA_STAGE_STORE);
    pop(b, VTA_STAGE_COMPUTE, VTA_STAGE_STORE);
    store(b, out, 0, 0, tiles, 1, tiles);
    good(b, vta_synchronize(b->c, 1u << 31));
}

static void check_out(rig *b, vta_buffer out, uint32_t count, const int32_t *wanted)
{
    const int8_t *got = (const int8_t *)host(b, out);
    for (uint32_t i = 0; i < count; i++)
        if (got[i] != (int8_t)wanted[i])
            fail_msg("element %u: %d, wanted %d", i, got[i], (int8_t)wanted[i]);
}

/* --- load and store ----------------------------------------------------------------------------------------------- */

static void save_load_out(rig *b)
{
    int32_t *a;
    vta_buffer in = random_acc(b, 36, 1, 9, 1, &a), out = buffer(b, 36 * acc_lanes(b));
    load(b, VTA_MEM_ACC, in, 0, 0, 6, 6, 6);
    alu(b, VTA_ALU_SHR, 36, 0, 0, true, 0);
    store_and_run(b, out, 36);
    check_out(b, out, 36 * acc_lanes(b), a);
    const vta_counters *k = vta_sim_counters(b->sim);
    assert_int_equal(k->acc_load_nbytes, 36 * acc_lanes(b) * 4);
    assert_int_equal(k->alu_counter, 36);
    assert_int_equal(k->out_store_nbytes, 36 * acc_lanes(b));
    assert_int_equal(k->uop_load_nbytes, 4);
}

/* Loads 3 x 5 tiles out of 4 x 7 with these pads; the accumulators before the call hold rubbish. */
static void padded_load(rig *b, uint32_t y0, uint32_t y1, uint32_t x0, uint32_t x1, uint32_t stride)
{
    const uint32_t h = 3, w = 5, lanes = acc_lanes(b), height = y0 + h + y1, width = x0 + w + x1;
    const uint32_t depth = b->device.geometry.depth[VTA_MEM_ACC];
    if (3 + height * width > depth)
        return; /* the smaller devices have no room for the widest */
    uint32_t seed = 3;
    int32_t *a;
    vta_buffer in = random_acc(b, 2 * stride + w + 2, -128, 127, y0 * 7 + x1, &a);
    int32_t *dirty;
    vta_buffer rubbish = random_acc(b, depth, 1, 100, next_random(&seed), &dirty);
    vta_transfer t = {.memory = VTA_MEM_ACC, .sram_index = 3, .dram_offset = 2, .x_size = w, .y_size = h};
    t.x_stride = stride;
    t.x_pad_before = x0;
    t.x_pad_after = x1;
    t.y_pad_before = y0;
    t.y_pad_after = y1;
    load(b, VTA_MEM_ACC, rubbish, 0, 0, depth, 1, depth);
    good(b, vta_load(b->c, in, &t));
    good(b, vta_synchronize(b->c, 1u << 31));
    int32_t *got = (int32_t *)malloc((size_t)depth * lanes * 4);
    vta_error e = {VTA_OK, ""};
    assert_int_equal(b->device.driver->scratchpad(b->device.self, VTA_MEM_ACC, 0, depth, got, &e), VTA_OK);
    for (uint32_t i = 0; i < depth * lanes; i++) {
        uint32_t tile = i / lanes, y = (tile - 3) / width, x = (tile - 3) % width;
        int32_t wanted = dirty[i];
        if (tile >= 3 && tile < 3 + height * width)
            wanted = y < y0 || y >= y0 + h || x < x0 || x >= x0 + w
                         ? 0
                         : a[(2 + (y - y0) * stride + x - x0) * lanes + i % lanes];
        if (got[i] != wanted)
            fail_msg("pads y %u %u x %u %u, stride %u: element %u lane %u is %d, wanted %d", y0, y1, x0, x1, stride,
                     tile, i % lanes, got[i], wanted);
    }
    free(got);
    good(b, vta_buffer_free(b->c, in));
    good(b, vta_buffer_free(b->c, rubbish));
}

/* The published ones, and then those that no single instruction can do. */
static void padded_loads(rig *b)
{
    static const uint32_t pads[][4] = {{2, 0, 0, 0},   {0, 2, 0, 0},   {0, 0, 2, 0},  {0, 0, 0, 2},    {1, 1, 1, 1},
                                       {0, 0, 0, 0},   {15, 15, 9, 9}, {16, 0, 0, 0}, {0, 16, 0, 0},   {0, 0, 16, 0},
                                       {0, 0, 0, 16},  {40, 0, 3, 1},  {0, 47, 1, 2}, {33, 31, 2, 0},  {3, 2, 40, 41},
                                       {0, 0, 31, 60}, {5, 6, 90, 0},  {9, 9, 0, 70}, {20, 20, 20, 20}};
    for (size_t i = 0; i < sizeof pads / sizeof *pads; i++)
        padded_load(b, pads[i][0], pads[i][1], pads[i][2], pads[i][3], 7);
    padded_load(b, 0, 0, 0, 0, 70000); /* a stride of more than 16 bits */
    padded_load(b, 17, 2, 1, 18, 70000);
}

static void far_strides(rig *b)
{
    const uint32_t stride = 66000, bytes = acc_lanes(b);
    int32_t *a;
    vta_buffer in = random_acc(b, 4, -100, 100, 9, &a), out = buffer(b, (size_t)(3 * stride + 1) * bytes);
    load(b, VTA_MEM_ACC, in, 0, 0, 4, 1, 4);
    alu(b, VTA_ALU_ADD, 4, 0, 0, true, 1);
    push(b, VTA_STAGE_COMPUTE, VTA_STAGE_STORE);
    pop(b, VTA_STAGE_COMPUTE, VTA_STAGE_STORE);
    store(b, out, 0, 0, 1, 4, stride);
    good(b, vta_synchronize(b->c, 1u << 31));
    const int8_t *got = (const int8_t *)host(b, out);
    for (uint32_t y = 0; y < 4; y++)
        for (uint32_t i = 0; i < bytes; i++)
            assert_int_equal(got[(size_t)y * stride * bytes + i], (int8_t)(a[y * bytes + i] + 1));
}

/* --- matrix multiplication ---------------------------------------------------------------------------------------- */

enum { O = 4, M = 4 }; /* tiles of C: o x m; one tile along the sum */

/* Lane i of packed elements of `width` bits. */
static void set_lane(uint8_t *p, uint32_t width, uint32_t i, int32_t value)
{
    if (width == 8) {
        p[i] = (uint8_t)value;
        return;
    }
    uint32_t shift = i * width % 8, mask = (1u << width) - 1;
    p[i * width / 8] = (uint8_t)((p[i * width / 8] & ~(mask << shift)) | ((uint32_t)value & mask) << shift);
}

typedef struct gemm_data {
    vta_buffer A, B, C;
    int32_t wanted[O * M * 64];
} gemm_data;

static int32_t requantised(int32_t v)
{
    v >>= 8;
    v = v < 0 ? 0 : v;
    return v > 127 ? 127 : v;
}

static void make_gemm(rig *b, gemm_data *d)
{
    const vta_geometry *g = &b->device.geometry;
    const uint32_t rows = g->batch, n = g->block_in, ww = g->width[VTA_MEM_WGT];
    static int32_t A[O][64], B[M][64 * 64];
    uint32_t seed = 11;
    d->A = buffer(b, O * g->elem_bytes[VTA_MEM_INP]);
    d->B = buffer(b, M * g->elem_bytes[VTA_MEM_WGT]);
    d->C = buffer(b, O * M * g->elem_bytes[VTA_MEM_OUT]);
    uint8_t *pa = (uint8_t *)host(b, d->A), *pb = (uint8_t *)host(b, d->B);
    for (uint32_t o = 0; o < O; o++)
        for (uint32_t i = 0; i < rows * n; i++)
            set_lane(pa + o * g->elem_bytes[VTA_MEM_INP], 8, i, A[o][i] = random_between(&seed, -128, 127));
    for (uint32_t m = 0; m < M; m++)
        for (uint32_t i = 0; i < n * n; i++) {
            B[m][i] = random_between(&seed, -(1 << (ww - 1)), (1 << (ww - 1)) - 1);
            set_lane(pb + m * g->elem_bytes[VTA_MEM_WGT], ww, i, B[m][i]);
        }
    for (uint32_t o = 0; o < O; o++)
        for (uint32_t m = 0; m < M; m++)
            for (uint32_t r = 0; r < rows; r++)
                for (uint32_t c = 0; c < n; c++) {
                    int32_t sum = 0;
                    for (uint32_t k = 0; k < n; k++)
                        sum += A[o][r * n + k] * B[m][c * n + k];
                    d->wanted[(o * M + m) * rows * n + r * n + c] = requantised(sum);
                }
}

/* Kernels over `rows` x M accumulators from `acc` on, inputs from `inp`, weights from `wgt`. */
static void push_gemm(rig *b, uint32_t rows, uint32_t acc, uint32_t inp, uint32_t wgt)
{
    const kernel_text reset = {
        {{rows, M, 0, 0}, {M, 1, 0, 0}}, 1, {{.mode = VTA_MODE_GEMM, .reset_out = 1, .dst = acc}}};
    const kernel_text update = {
        {{rows, M, 1, 0}, {M, 1, 0, 1}}, 1, {{.mode = VTA_MODE_GEMM, .dst = acc, .src = inp, .wgt = wgt}}};
    good(b, push_text(b, VTA_MODE_GEMM, &reset));
    good(b, push_text(b, VTA_MODE_GEMM, &update));
}

static void push_requantise(rig *b, uint32_t rows, uint32_t acc)
{
    alu(b, VTA_ALU_SHR, rows * M, acc, acc, true, 8);
    alu(b, VTA_ALU_MAX, rows * M, acc, acc, true, 0);
    alu(b, VTA_ALU_MIN, rows * M, acc, acc, true, 127);
}

static void queue_gemm(rig *b, const gemm_data *d)
{
    load(b, VTA_MEM_INP, d->A, 0, 0, O, 1, O);
    load(b, VTA_MEM_WGT, d->B, 0, 0, M, 1, M);
    push(b, VTA_STAGE_LOAD, VTA_STAGE_COMPUTE);
    pop(b, VTA_STAGE_LOAD, VTA_STAGE_COMPUTE);
    push_gemm(b, O, 0, 0, 0);
    push_requantise(b, O, 0);
    store_and_run(b, d->C, O * M);
}

static void gemm_default(rig *b)
{
    gemm_data d;
    make_gemm(b, &d);
    queue_gemm(b, &d);
    check_out(b, d.C, O * M * acc_lanes(b), d.wanted);
    const vta_geometry *g = &b->device.geometry;
    const vta_counters *k = vta_sim_counters(b->sim);
    assert_int_equal(k->inp_load_nbytes, O * g->elem_bytes[VTA_MEM_INP]); /* 64, 1024, 20, 256, 16, 48 by default */
    assert_int_equal(k->wgt_load_nbytes, M * g->elem_bytes[VTA_MEM_WGT]);
    assert_int_equal(k->acc_load_nbytes, 0);
    assert_int_equal(k->uop_load_nbytes, 20);
    assert_int_equal(k->out_store_nbytes, O * M * acc_lanes(b));
    assert_int_equal(k->gemm_counter, 16);
    assert_int_equal(k->alu_counter, 48);
}

/* Two virtual threads, each with half of the rows and its own part of every scratchpad. */
static void gemm_smt(rig *b)
{
    const enum vta_stage L = VTA_STAGE_LOAD, C = VTA_STAGE_COMPUTE, S = VTA_STAGE_STORE;
    gemm_data d;
    make_gemm(b, &d);
    for (uint32_t t = 0; t < 2; t++) {
        load(b, VTA_MEM_INP, d.A, 2 * t, 2 * t, 2, 1, 2);
        load(b, VTA_MEM_WGT, d.B, M * t, 0, M, 1, M);
        push(b, L, C);
    }
    for (uint32_t t = 0; t < 2; t++) {
        pop(b, L, C);
        push_gemm(b, 2, 2 * M * t, 2 * t, M * t);
        push_requantise(b, 2, 2 * M * t);
        push(b, C, S);
    }
    for (uint32_t t = 0; t < 2; t++) {
        pop(b, C, S);
        store(b, d.C, 2 * M * t, 2 * M * t, 2 * M, 1, 2 * M);
    }
    good(b, vta_synchronize(b->c, 1u << 31));
    check_out(b, d.C, O * M * acc_lanes(b), d.wanted);
}

/* --- ALU ---------------------------------------------------------------------------------------------------------- */

static int32_t apply(uint32_t op, int32_t x, int32_t y)
{
    switch (op) {
    case VTA_ALU_MIN: return x < y ? x : y;
    case VTA_ALU_MAX: return x > y ? x : y;
    case VTA_ALU_ADD: return x + y;
    case VTA_ALU_MUL: return x * y;
    default: return y >= 0 ? x >> y : (int32_t)((uint32_t)x << -y);
    }
}

/* 8 x 8 tiles: an operation with an immediate, or with 64 tiles more. */
static void one_alu(rig *b, uint32_t op, bool use_imm, int32_t imm)
{
    int32_t *a, *c, wanted[64 * 64];
    uint32_t count = 64 * acc_lanes(b);
    vta_buffer left = random_acc(b, 64, -16, 15, 21 + op, &a), right = random_acc(b, 64, -16, 15, 31 + op, &c);
    vta_buffer out = buffer(b, count);
    vta_counters before = *vta_sim_counters(b->sim);
    load(b, VTA_MEM_ACC, left, 0, 0, 64, 1, 64);
    if (!use_imm)
        load(b, VTA_MEM_ACC, right, 64, 0, 8, 8, 8);
    alu(b, op, 64, 0, use_imm ? 0 : 64, use_imm, imm);
    store_and_run(b, out, 64);
    for (uint32_t i = 0; i < count; i++)
        wanted[i] = apply(op, a[i], use_imm ? imm : c[i]);
    check_out(b, out, count, wanted);
    const vta_counters *k = vta_sim_counters(b->sim);
    assert_int_equal(k->acc_load_nbytes - before.acc_load_nbytes, (use_imm ? 1 : 2) * count * 4);
    assert_int_equal(k->alu_counter - before.alu_counter, 64);
    assert_int_equal(k->out_store_nbytes - before.out_store_nbytes, count);
    good(b, vta_buffer_free(b->c, left));
    good(b, vta_buffer_free(b->c, right));
    good(b, vta_buffer_free(b->c, out));
}

static void alu_list(rig *b)
{
    for (int32_t imm = 1; imm <= 4; imm++) {
        one_alu(b, VTA_ALU_SHR, true, -imm); /* left */
        one_alu(b, VTA_ALU_SHR, true, imm);
        one_alu(b, VTA_ALU_MAX, true, imm);
        one_alu(b, VTA_ALU_MIN, true, imm);
        one_alu(b, VTA_ALU_ADD, true, imm);
    }
    one_alu(b, VTA_ALU_MAX, false, 0);
    one_alu(b, VTA_ALU_MIN, false, 0);
    one_alu(b, VTA_ALU_ADD, false, 0);
    one_alu(b, VTA_ALU_MUL, false, 0);
    one_alu(b, VTA_ALU_SHR, false, 0);
    one_alu(b, VTA_ALU_MUL, true, -3);
    one_alu(b, VTA_ALU_ADD, true, -32768);
}

static void relu(rig *b)
{
    int32_t *a, wanted[80 * 64];
    uint32_t count = 80 * acc_lanes(b);
    vta_buffer in = random_acc(b, 80, -256, 255, 41, &a), out = buffer(b, count);
    load(b, VTA_MEM_ACC, in, 0, 0, 10, 8, 10);
    alu(b, VTA_ALU_MAX, 80, 0, 0, true, 0);
    alu(b, VTA_ALU_MIN, 80, 0, 0, true, 127);
    store_and_run(b, out, 80);
    for (uint32_t i = 0; i < count; i++)
        wanted[i] = a[i] < 0 ? 0 : a[i] > 127 ? 127 : a[i];
    check_out(b, out, count, wanted);
}

static void shift_and_scale(rig *b)
{
    for (int32_t shift = 0; shift < 8; shift++) {
        int32_t *a, wanted[16 * 64], scale = 1 + shift % 4;
        uint32_t count = 16 * acc_lanes(b);
        vta_buffer in = random_acc(b, 16, -10, 10, 51 + (uint32_t)shift, &a), out = buffer(b, count);
        load(b, VTA_MEM_ACC, in, 0, 0, 8, 2, 8);
        alu(b, VTA_ALU_ADD, 16, 0, 0, true, shift);
        alu(b, VTA_ALU_SHR, 16, 0, 0, true, scale);
        store_and_run(b, out, 16);
        for (uint32_t i = 0; i < count; i++)
            wanted[i] = (a[i] + shift) >> scale;
        check_out(b, out, count, wanted);
    }
}

/* --- other devices ------------------------------------------------------------------------------------------------ */

/* A context on the rig's device anew. */
static void open_on(rig *b, vta_device d)
{
    vta_error e = {VTA_OK, ""};
    b->device = d;
    size_t bytes = vta_context_bytes(&b->device, NULL);
    b->memory = aligned_alloc(64, bytes);
    if (vta_context_init(b->memory, bytes, &b->device, NULL, &b->c, &e) != VTA_OK)
        fail_msg("%s", e.text);
}

static void gemm_works_on_strict_profiles(void **state)
{
    static const vta_profile profiles[] = {VTA_HLS, VTA_CHISEL, VTA_INTELFOCL};
    (void)state;
    for (int i = 0; i < 3; i++) {
        const vta_sim_options so = {.profile = profiles[i], .seed = 1};
        vta_config config = vta_config_default();
        vta_error e;
        rig b;
        if (vta_sim_create(&config, &so, &b.sim, &e) != VTA_OK)
            fail_msg("%s", e.text);
        open_on(&b, vta_sim_device(b.sim));
        gemm_default(&b);
        board_close(&b);
    }
}

static void gemm_works_on_the_cycle_model(void **state)
{
    const vta_sim_options so = {.seed = 1};
    const vta_cycle_options co = {.profile = VTA_CYCLE_CHISEL};
    vta_config config = vta_config_default();
    vta_device d;
    vta_error e;
    gemm_data data;
    rig b;
    (void)state;
    if (vta_cycle_device(&config, &so, &co, &d, &e) != VTA_OK)
        fail_msg("%s", e.text);
    open_on(&b, d);
    make_gemm(&b, &data);
    queue_gemm(&b, &data);
    check_out(&b, data.C, O * M * acc_lanes(&b), data.wanted);
    const vta_cycle_report *r = vta_cycle_last(&b.device);
    assert_true(r && r->cycles > 16 + 48 && r->cycles < 2000); /* micro-ops; a hundred instructions' worth of time */
    board_close(&b);
}

#define ON_ALL(test)                       \
    static void test##_works(void **state) \
    {                                      \
        (void)state;                       \
        on_all(test);                      \
    }
ON_ALL(save_load_out)
ON_ALL(padded_loads)
ON_ALL(far_strides)
ON_ALL(gemm_default)
ON_ALL(gemm_smt)
ON_ALL(alu_list)
ON_ALL(relu)
ON_ALL(shift_and_scale)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(save_load_out_works),
        cmocka_unit_test(padded_loads_works),
        cmocka_unit_test(far_strides_works),
        cmocka_unit_test(gemm_default_works),
        cmocka_unit_test(gemm_smt_works),
        cmocka_unit_test(alu_list_works),
        cmocka_unit_test(relu_works),
        cmocka_unit_test(shift_and_scale_works),
        cmocka_unit_test(gemm_works_on_strict_profiles),
        cmocka_unit_test(gemm_works_on_the_cycle_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
