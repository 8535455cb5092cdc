/* test_rt_kernels.c: micro-op kernels (recording rules, the two-level memory, where micro-ops lie) and buffers: every
 * refusal by its message, and sums of kernels larger than their memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime_test.h"

static uint32_t count_of(rig *b, int64_t opcode, int64_t memory)
{
    const vta_insn *insns;
    uint32_t count = vta_queued(b->c, &insns), found = 0;
    for (uint32_t i = 0; i < count; i++) {
        vta_fields f;
        vta_decode(&b->device.geometry, &insns[i], &f);
        found += f.opcode == opcode && (opcode != VTA_LOAD || f.memory_type == memory);
    }
    return found;
}

/* --- recording rules ---------------------------------------------------------------------------------------------- */

typedef struct step {
    char what; /* b: begin, p: push, e: end, s: a nested push, r: return 7 */
    uint32_t a[4];
    vta_uop u;
} step;

typedef struct steps {
    rig *b;
    step s[8];
} steps;

static int run_steps(void *closure)
{
    const steps *all = (const steps *)closure;
    for (const step *s = all->s; s->what; s++) {
        vta_error e;
        switch (s->what) {
        case 'b': vta_uop_loop_begin(s->a[0], s->a[1], s->a[2], s->a[3], &e); break;
        case 'p': vta_uop_push(&s->u, NULL); break;
        case 'e': vta_uop_loop_end(&e); break;
        case 's': vta_push(all->b->c, VTA_MODE_GEMM, NULL, run_steps, closure, 0); break;
        default: return 7;
        }
    }
    return 0;
}

#define GEMM(...)                              \
    {                                          \
        'p', {0},                              \
        {                                      \
            .mode = VTA_MODE_GEMM, __VA_ARGS__ \
        }                                      \
    }
#define ALU(...)                              \
    {                                         \
        'p', {0},                             \
        {                                     \
            .mode = VTA_MODE_ALU, __VA_ARGS__ \
        }                                     \
    }
#define BEGIN(...) {'b', {__VA_ARGS__}, {0}}
#define END        {'e', {0}, {0}}
#define OTHER(c)   {(c), {0}, {0}}

static void enforces_the_recording_rules(void **state)
{
    static const struct {
        vta_status status;
        const char *part;
        step s[8];
    } cases[] = {
        {VTA_BAD_STATE, "no micro-op was pushed", {BEGIN(4, 1, 1, 1), END}},
        {VTA_BAD_STATE, "this is the third", {BEGIN(2), BEGIN(2), BEGIN(2), GEMM(.dst = 0), END, END, END}},
        {VTA_BAD_STATE, "before the first micro-op", {GEMM(.dst = 0), BEGIN(2), END}},
        {VTA_BAD_STATE, "after the end of a loop", {BEGIN(2), END, GEMM(.dst = 0)}},
        {VTA_BAD_STATE, "no loop is open", {GEMM(.dst = 0), END}},
        {VTA_BAD_STATE, "1 loops were begun and not ended", {BEGIN(2), GEMM(.dst = 0)}},
        {VTA_BAD_ARGUMENT, "without iterations", {BEGIN(0, 1, 1, 1), GEMM(.dst = 0), END}},
        {VTA_BAD_STATE, "mode 1 in a kernel of mode 0", {ALU(.dst = 0)}},
        {VTA_BAD_STATE, "reset_out 1 after 0", {GEMM(.dst = 0), GEMM(.dst = 1, .reset_out = 1)}},
        {VTA_BAD_STATE, "of the two micro-ops before", {GEMM(.dst = 5), GEMM(.dst = 5)}},
        {VTA_BAD_STATE, "of the two micro-ops before", {GEMM(.dst = 5), GEMM(.dst = 6), GEMM(.dst = 5)}},
        {VTA_BAD_FIELD, "dst_index is 2048", {GEMM(.dst = 2048)}},
        {VTA_BAD_FIELD, "src_index is 4096", {GEMM(.src = 4096)}},
        {VTA_BAD_FIELD, "wgt_index is 1024", {GEMM(.wgt = 1024)}},
        {VTA_BAD_FIELD, "reset_out is 2", {GEMM(.reset_out = 2)}},
        {VTA_BAD_ARGUMENT, "reach dst_index 2048", {BEGIN(1025, 1, 0, 0), GEMM(.dst = 1024), END}},
        {VTA_BAD_ARGUMENT, "reach src_index 2050", {BEGIN(3, 0, 5, 0), BEGIN(2, 0, 3, 0), GEMM(.src = 2037), END, END}},
        {VTA_BAD_ARGUMENT, "reach wgt_index 1029", {BEGIN(2, 0, 0, 6), GEMM(.wgt = 1023), END}},
        {VTA_BAD_STATE, "this thread records another kernel", {OTHER('s'), GEMM(.dst = 0)}},
        {VTA_BAD_STATE, "returned 7", {GEMM(.dst = 0), OTHER('r')}},
        {VTA_BAD_FIELD, "dst_factor_out is 5000", {BEGIN(1, 5000, 0, 0), GEMM(.dst = 0), END}},
        {VTA_BAD_FIELD,
         "a loop of 16384 iterations",
         {BEGIN(16384, 0, 0, 0), BEGIN(16384, 0, 0, 0), GEMM(.dst = 0), END, END}},
    };
    static const struct {
        vta_status status;
        const char *part;
        step s[8];
    } alu_cases[] = {
        {VTA_BAD_STATE, "mode 0 in a kernel of mode 1", {GEMM(.dst = 0)}},
        {VTA_BAD_STATE, "one operation", {ALU(.dst = 0, .alu_opcode = 1), ALU(.dst = 1, .alu_opcode = 2)}},
        {VTA_BAD_STATE,
         "one operation",
         {ALU(.dst = 0, .use_imm = 1, .imm = 1), ALU(.dst = 1, .use_imm = 1, .imm = 2)}},
        {VTA_BAD_ARGUMENT, "no ALU operation 5", {ALU(.alu_opcode = 5)}},
        {VTA_BAD_FIELD, "imm is 32768", {ALU(.use_imm = 1, .imm = 32768)}},
        {VTA_BAD_FIELD, "imm is -32769", {ALU(.use_imm = 1, .imm = -32769)}},
        {VTA_BAD_FIELD, "use_imm 3", {ALU(.use_imm = 3)}},
        {VTA_BAD_ARGUMENT, "reach src_index 2048", {BEGIN(2, 0, 1, 0), ALU(.src = 2047), END}},
    };
    rig b;
    const vta_insn *insns;
    (void)state;
    board_open(&b, "sim", NULL);
    steps k = {.b = &b};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memcpy(k.s, cases[i].s, sizeof k.s);
        refused(&b, vta_push(b.c, VTA_MODE_GEMM, &text_site, run_steps, &k, sizeof k), cases[i].status, cases[i].part);
    }
    for (size_t i = 0; i < sizeof alu_cases / sizeof *alu_cases; i++) {
        memcpy(k.s, alu_cases[i].s, sizeof k.s);
        refused(&b, vta_push(b.c, VTA_MODE_ALU, &text_site, run_steps, &k, sizeof k), alu_cases[i].status,
                alu_cases[i].part);
    }
    refused(&b, vta_push(b.c, VTA_MODE_GEMM, NULL, NULL, NULL, 0), VTA_BAD_ARGUMENT, "recorder missing");
    refused(&b, vta_push(b.c, (vta_mode)2, NULL, run_steps, &k, sizeof k), VTA_BAD_ARGUMENT, "mode 2");
    assert_int_equal(vta_queued(b.c, &insns), 0);
    board_close(&b);
}

static void uops_belong_into_a_recorder(void **state)
{
    const vta_uop u = {0};
    vta_error e = {VTA_OK, ""};
    (void)state;
    assert_int_equal(vta_uop_push(&u, &e), VTA_BAD_STATE);
    assert_non_null(strstr(e.text, "uop_push: this thread records no kernel"));
    assert_int_equal(vta_uop_loop_begin(1, 0, 0, 0, &e), VTA_BAD_STATE);
    assert_int_equal(vta_uop_loop_end(NULL), VTA_BAD_STATE);
}

static int too_many(void *closure)
{
    (void)closure;
    for (uint32_t i = 0; i < 8193; i++)
        vta_uop_push(&(vta_uop){.mode = VTA_MODE_ALU, .dst = i % 2000, .src = i % 2000}, NULL);
    return 0;
}

static void a_kernel_fits_its_memory(void **state)
{
    rig b;
    (void)state;
    board_open(&b, "sim", NULL);
    refused(&b, vta_push(b.c, VTA_MODE_ALU, NULL, too_many, NULL, 0), VTA_BAD_ARGUMENT, "more than 8192 micro-ops");
    board_close(&b);
}

/* --- memory of kernels -------------------------------------------------------------------------------------------- */

typedef struct counted {
    uint32_t dst;
    int32_t imm;
} counted;

static int recorded; /* calls of record_counted; kernels must not be recorded twice */

static int record_counted(void *closure)
{
    const counted *k = (const counted *)closure;
    recorded++;
    return vta_uop_push(&(vta_uop){VTA_MODE_ALU, 0, k->dst, k->dst, 0, VTA_ALU_ADD, 1, k->imm}, NULL) != VTA_OK;
}

static void remembers_by_site_and_shares_by_content(void **state)
{
    static const char sites[2] = {0};
    counted five = {0, 5}, six = {0, 6}, other = {1, 5};
    rig b;
    (void)state;
    board_open(&b, "sim", NULL);
    recorded = 0;
    for (int i = 0; i < 3; i++) {
        good(&b, vta_push(b.c, VTA_MODE_ALU, &sites[0], record_counted, &five, sizeof five));
        good(&b, vta_push(b.c, VTA_MODE_ALU, &sites[0], record_counted, &other, sizeof other));
        good(&b, vta_push(b.c, VTA_MODE_ALU, &sites[1], record_counted, &five, sizeof five));
    }
    assert_int_equal(recorded, 3);                            /* two closures at one site, one at the other */
    assert_int_equal(count_of(&b, VTA_LOAD, VTA_MEM_UOP), 2); /* equal contents lie there once */
    good(&b, vta_push(b.c, VTA_MODE_ALU, NULL, record_counted, &five, sizeof five));
    good(&b, vta_push(b.c, VTA_MODE_ALU, NULL, record_counted, &five, sizeof five));
    assert_int_equal(recorded, 5); /* without a site: each time */
    assert_int_equal(count_of(&b, VTA_LOAD, VTA_MEM_UOP), 2);
    good(&b, vta_push(b.c, VTA_MODE_ALU, &sites[0], record_counted, &six, sizeof six));
    assert_int_equal(count_of(&b, VTA_LOAD, VTA_MEM_UOP), 3); /* another immediate is another content */
    assert_int_equal(count_of(&b, VTA_ALU, 0), 12);
    good(&b, vta_synchronize(b.c, 1000));
    good(&b, vta_push(b.c, VTA_MODE_ALU, &sites[0], record_counted, &six, sizeof six));
    assert_int_equal(recorded, 6);
    assert_int_equal(count_of(&b, VTA_LOAD, VTA_MEM_UOP), 1); /* no launch relies on what the one before left */
    board_close(&b);
}

static int record_other(void *closure)
{
    counted k = *(const counted *)closure;
    k.imm += 1;
    return record_counted(&k);
}

/* Two recorders at one site with one closure are two kernels. */
static void recorder_is_part_of_the_name(void **state)
{
    static const char site = 0;
    counted five = {0, 5};
    rig b;
    (void)state;
    board_open(&b, "sim", NULL);
    recorded = 0;
    for (int i = 0; i < 3; i++) {
        good(&b, vta_push(b.c, VTA_MODE_ALU, &site, record_counted, &five, sizeof five));
        good(&b, vta_push(b.c, VTA_MODE_ALU, &site, record_other, &five, sizeof five));
    }
    assert_int_equal(recorded, 2);
    assert_int_equal(count_of(&b, VTA_LOAD, VTA_MEM_UOP), 2);
    board_close(&b);
}

static void forgets_all_when_full(void **state)
{
    static const char site = 0;
    const vta_context_options o = {.max_kernels = 8, .max_uops = 64};
    rig b;
    (void)state;
    board_open(&b, "sim", &o);
    recorded = 0;
    vta_buffer out = buffer(&b, 100 * 16), zeros = buffer(&b, 100 * 64);
    load(&b, VTA_MEM_ACC, zeros, 0, 0, 100, 1, 100);
    for (int round = 0; round < 3; round++)
        for (uint32_t i = 0; i < 100; i++) {
            counted k = {i, (int32_t)i};
            good(&b, vta_push(b.c, VTA_MODE_ALU, &site, record_counted, &k, sizeof k));
        }
    assert_int_equal(recorded, 300);
    push(&b, VTA_STAGE_COMPUTE, VTA_STAGE_STORE);
    pop(&b, VTA_STAGE_COMPUTE, VTA_STAGE_STORE);
    store(&b, out, 0, 0, 100, 1, 100);
    good(&b, vta_synchronize(b.c, 1000));
    for (int i = 0; i < 100; i++)
        assert_int_equal(((int8_t *)host(&b, out))[i * 16], (int8_t)(3 * i));
    board_close(&b);
}

/* --- micro-op memory ---------------------------------------------------------------------------------------------- */

enum { ROWS = 2000, MOST_BIG = 12 }; /* accumulators from ROWS on hold what the kernels add */

/* Adds accumulator ROWS + *closure to all of ROWS: only the micro-ops say which one it is. */
static int record_big(void *closure)
{
    const uint32_t which = *(const uint32_t *)closure;
    for (uint32_t row = 0; row < ROWS; row++)
        if (vta_uop_push(&(vta_uop){VTA_MODE_ALU, 0, row, ROWS + which, 0, VTA_ALU_ADD, 0, 0}, NULL) != VTA_OK)
            return 1;
    return 0;
}

/* `kernels` of 2000 micro-ops each, pushed in an order with returns, between two synchronisations. */
static void run_big(rig *b, int kernels, int pushes)
{
    static const char site = 0;
    int32_t sum = 0;
    vta_buffer out = buffer(b, ROWS * 16), in = buffer(b, (ROWS + MOST_BIG) * 64);
    for (int i = 0; i < MOST_BIG * 16; i++)
        ((int32_t *)host(b, in))[ROWS * 16 + i] = 1 + i / 16;
    load(b, VTA_MEM_ACC, in, 0, 0, ROWS + MOST_BIG, 1, ROWS + MOST_BIG);
    for (int i = 0; i < pushes; i++) {
        uint32_t which = (uint32_t)(i < kernels ? i : i * 7 % kernels);
        good(b, vta_push(b->c, VTA_MODE_ALU, &site, record_big, &which, sizeof which));
        sum += 1 + (int32_t)which;
    }
    push(b, VTA_STAGE_COMPUTE, VTA_STAGE_STORE);
    pop(b, VTA_STAGE_COMPUTE, VTA_STAGE_STORE);
    store(b, out, 0, 0, ROWS, 1, ROWS);
    good(b, vta_synchronize(b->c, 1u << 31));
    for (int i = 0; i < ROWS * 16; i++)
        if (((int8_t *)host(b, out))[i] != (int8_t)sum)
            fail_msg("%d kernels: row %d is %d, wanted %d", kernels, i / 16, ((int8_t *)host(b, out))[i], (int8_t)sum);
    good(b, vta_buffer_free(b->c, out));
    good(b, vta_buffer_free(b->c, in));
}

static void kernels_larger_in_sum_than_their_memory(void **state)
{
    rig b;
    (void)state;
    board_open(&b, "sim", NULL);
    spy *s = board_spy(&b);
    run_big(&b, 4, 8);
    assert_int_equal(vta_sim_counters(b.sim)->uop_load_nbytes, 4 * ROWS * 4); /* they fit: each loaded once */
    for (int kernels = 5; kernels <= MOST_BIG; kernels++)
        run_big(&b, kernels, 3 * kernels);
    assert_int_equal(s->runs, 9);
    board_close(&b);
}

static void a_full_log_runs_what_it_has(void **state)
{
    const vta_context_options o = {.max_uops = 5000};
    rig b;
    (void)state;
    board_open(&b, "sim", &o);
    spy *s = board_spy(&b);
    run_big(&b, 8, 24);
    assert_true(s->runs > 4);
    board_close(&b);
}

/* A caller may load micro-op memory itself; what lay there is loaded again before it is used. */
static void gives_way_to_loads_of_micro_ops(void **state)
{
    int32_t got[2 * 16];
    vta_error e;
    rig b;
    (void)state;
    board_open(&b, "sim", NULL);
    vta_buffer uops = buffer(&b, 16), zeros = buffer(&b, 2 * 64);
    ((uint32_t *)host(&b, uops))[0] = 1; /* another accumulator */
    load(&b, VTA_MEM_ACC, zeros, 0, 0, 2, 1, 2);
    alu(&b, VTA_ALU_ADD, 1, 0, 0, true, 5);
    load(&b, VTA_MEM_UOP, uops, 0, 0, 1, 1, 1);
    alu(&b, VTA_ALU_ADD, 1, 0, 0, true, 5);
    good(&b, vta_synchronize(b.c, 1000));
    assert_int_equal(b.device.driver->scratchpad(b.device.self, VTA_MEM_ACC, 0, 2, got, &e), VTA_OK);
    assert_true(got[0] == 10 && got[16] == 0);
    board_close(&b);
}

/* Loops that move nothing are cut into parts of 16383. */
static void cuts_loops_that_move_nothing(void **state)
{
    const kernel_text outer = {{{40000, 0, 0, 0}, {3, 1, 0, 0}}, 1, {{VTA_MODE_ALU, 0, 0, 0, 0, VTA_ALU_ADD, 1, 1}}};
    const kernel_text inner = {{{20000, 0, 0, 0}}, 1, {{VTA_MODE_ALU, 0, 7, 7, 0, VTA_ALU_ADD, 1, 2}}};
    int32_t got[8 * 16];
    vta_error e;
    rig b;
    (void)state;
    board_open(&b, "sim", NULL);
    vta_buffer zeros = buffer(&b, 8 * 64);
    load(&b, VTA_MEM_ACC, zeros, 0, 0, 8, 1, 8);
    good(&b, push_text(&b, VTA_MODE_ALU, &outer));
    good(&b, push_text(&b, VTA_MODE_ALU, &inner));
    assert_int_equal(count_of(&b, VTA_ALU, 0), 3 + 2);
    good(&b, vta_synchronize(b.c, 1u << 31));
    assert_int_equal(b.device.driver->scratchpad(b.device.self, VTA_MEM_ACC, 0, 8, got, &e), VTA_OK);
    for (int i = 0; i < 8 * 16; i++)
        assert_int_equal(got[i], i < 3 * 16 ? 40000 : i < 7 * 16 ? 0 : 40000);
    board_close(&b);
}

/* --- transfers and buffers ---------------------------------------------------------------------------------------- */

static void refuses_transfers_that_do_not_fit(void **state)
{
    static const struct {
        vta_transfer t;
        const char *part;
    } loads[] = {
        {{.memory = VTA_MEM_OUT, .x_size = 1, .y_size = 1}, "memory type 4"},
        {{.memory = (enum vta_mem)6, .x_size = 1, .y_size = 1}, "memory type 6"},
        {{.memory = (enum vta_mem) - 1, .x_size = 1, .y_size = 1}, "memory type -1"},
        {{.memory = VTA_MEM_INP, .x_size = 2049, .y_size = 1}, "the scratchpad holds 2048"},
        {{.memory = VTA_MEM_INP, .sram_index = 2047, .x_size = 2, .y_size = 1}, "the scratchpad holds 2048"},
        {{.memory = VTA_MEM_INP, .x_size = 1, .y_size = 1, .x_pad_after = 4000000000u}, "the scratchpad holds 2048"},
        {{.memory = VTA_MEM_INP, .x_size = 0, .y_size = 1, .y_pad_before = 1}, "needs at least one element"},
        {{.memory = VTA_MEM_UOP, .x_size = 1, .y_size = 1, .x_pad_after = 1}, "loaded without padding"},
        {{.memory = VTA_MEM_INP, .dram_offset = 4, .x_size = 1, .y_size = 1},
         "reaches element 4 (16 bytes each); the buffer has 4"},
        {{.memory = VTA_MEM_INP, .x_size = 2, .y_size = 2, .x_stride = 3}, "reaches element 4"},
        {{.memory = VTA_MEM_WGT, .x_size = 1, .y_size = 1}, "the buffer has 0"},
        {{.memory = VTA_MEM_INP, .dram_offset = UINT32_MAX, .x_size = 1, .y_size = 2, .x_stride = UINT32_MAX},
         "reaches"},
    };
    rig b;
    const vta_insn *insns;
    (void)state;
    board_open(&b, "sim", NULL);
    vta_buffer data = buffer(&b, 64);
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++)
        refused(&b, vta_load(b.c, data, &loads[i].t), VTA_BAD_ARGUMENT, loads[i].part);
    vta_transfer t = {.memory = VTA_MEM_INP, .x_size = 1, .y_size = 1};
    refused(&b, vta_store(b.c, data, &t), VTA_BAD_ARGUMENT, "only OUT (4) is stored");
    t.memory = VTA_MEM_OUT;
    t.x_pad_before = 1;
    refused(&b, vta_store(b.c, data, &t), VTA_BAD_ARGUMENT, "padding belongs to loads");
    assert_int_equal(vta_queued(b.c, &insns), 0);
    load(&b, VTA_MEM_INP, data, 0, 0, 0, 5, 99999); /* nothing: a NOP */
    assert_int_equal(vta_queued(b.c, &insns), 1);
    good(&b, vta_synchronize(b.c, 1000));
    board_close(&b);
}

static void knows_its_buffers(void **state)
{
    rig a, b;
    vta_buffer old[300];
    uint8_t bytes[64] = {1, 2, 3};
    (void)state;
    board_open(&a, "sim", NULL);
    board_open(&b, "sim", NULL);
    vta_buffer mine = buffer(&a, 64), foreign = buffer(&b, 64);
    assert_int_not_equal(mine, foreign);
    refused(&a, vta_buffer_free(a.c, foreign), VTA_BAD_HANDLE, "is of another device");
    refused(&a, vta_buffer_free(a.c, 0), VTA_BAD_HANDLE, "is not a buffer");
    refused(&a, vta_buffer_free(a.c, (vta_buffer)(uintptr_t)bytes), VTA_BAD_HANDLE, "is not a buffer");
    refused(&a, vta_load(a.c, foreign, &(vta_transfer){.memory = VTA_MEM_INP}), VTA_BAD_HANDLE, "another device");
    assert_null(vta_buffer_cpu_ptr(a.c, foreign));
    assert_int_equal(vta_buffer_bytes(a.c, foreign), 0);
    assert_int_equal(vta_buffer_bytes(a.c, mine), 64);
    good(&a, vta_buffer_free(a.c, mine));
    refused(&a, vta_buffer_free(a.c, mine), VTA_BAD_HANDLE, "was freed");
    refused(&a, vta_buffer_read(a.c, mine, 0, bytes, 1), VTA_BAD_HANDLE, "was freed");
    refused(&a, vta_read_barrier(a.c, mine, 8, 0, 1), VTA_BAD_HANDLE, "was freed");
    for (int i = 0; i < 300; i++) { /* handles never come again */
        old[i] = buffer(&a, 1);
        for (int k = 0; k < i; k++)
            assert_int_not_equal(old[i], old[k]);
        good(&a, vta_buffer_free(a.c, old[i]));
    }
    mine = buffer(&a, 64);
    refused(&a, vta_buffer_write(a.c, mine, 60, bytes, 5), VTA_BAD_ARGUMENT, "bytes 60 to 65");
    refused(&a, vta_buffer_read(a.c, mine, SIZE_MAX, bytes, 2), VTA_BAD_ARGUMENT, "lie outside");
    refused(&a, vta_write_barrier(a.c, mine, 32, 0, 17), VTA_BAD_ARGUMENT, "lie outside");
    refused(&a, vta_write_barrier(a.c, mine, UINT32_MAX, UINT32_MAX, UINT32_MAX), VTA_BAD_ARGUMENT, "lie outside");
    good(&a, vta_write_barrier(a.c, mine, 4, 0, 64)); /* a nibble counts as a byte */
    good(&a, vta_buffer_write(a.c, mine, 3, bytes, 3));
    vta_buffer second = buffer(&a, 32);
    good(&a, vta_buffer_copy(a.c, mine, 3, second, 30, 2));
    assert_memory_equal((uint8_t *)host(&a, second) + 30, bytes, 2);
    refused(&a, vta_buffer_copy(a.c, mine, 0, second, 0, 33), VTA_BAD_ARGUMENT, "of 32 bytes");
    load(&a, VTA_MEM_INP, mine, 0, 0, 1, 1, 1);
    refused(&a, vta_buffer_free(a.c, mine), VTA_BAD_STATE, "synchronize first");
    good(&a, vta_buffer_read(a.c, mine, 0, bytes, 1)); /* queued loads only read it */
    store(&a, second, 0, 0, 1, 1, 1);
    refused(&a, vta_buffer_read(a.c, second, 0, bytes, 1), VTA_BAD_STATE,
            "written by queued instructions; synchronize");
    refused(&a, vta_buffer_copy(a.c, second, 0, mine, 0, 1), VTA_BAD_STATE, "written by queued");
    good(&a, vta_buffer_read(a.c, mine, 0, bytes, 1));
    good(&a, vta_synchronize(a.c, 1000));
    good(&a, vta_buffer_read(a.c, second, 0, bytes, 1));
    good(&a, vta_buffer_free(a.c, mine));
    board_close(&a);
    board_close(&b);
}

static void maps_host_memory(void **state)
{
    rig b;
    (void)state;
    board_open(&b, "sim", NULL);
    int32_t *memory = (int32_t *)aligned_alloc(64, 4096);
    vta_buffer in, out = buffer(&b, 64);
    for (int i = 0; i < 1024; i++)
        memory[i] = i;
    good(&b, vta_buffer_map(b.c, memory, 4096, &in));
    assert_ptr_equal(host(&b, in), memory);
    memory[64] = -7; /* written before it runs, seen when it runs */
    load(&b, VTA_MEM_ACC, in, 0, 4, 4, 1, 4);
    push(&b, VTA_STAGE_COMPUTE, VTA_STAGE_STORE);
    pop(&b, VTA_STAGE_COMPUTE, VTA_STAGE_STORE);
    store(&b, out, 0, 0, 4, 1, 4);
    good(&b, vta_synchronize(b.c, 1000));
    for (int i = 0; i < 64; i++)
        assert_int_equal(((int8_t *)host(&b, out))[i], i == 0 ? -7 : 64 + i);
    good(&b, vta_buffer_free(b.c, in));
    free(memory);
    board_close(&b);
}

static void runs_out_of_buffers(void **state)
{
    const vta_context_options o = {.max_buffers = 3};
    vta_buffer h[3], more;
    rig b;
    (void)state;
    board_open(&b, "sim", &o);
    for (int i = 0; i < 3; i++)
        h[i] = buffer(&b, 10);
    refused(&b, vta_buffer_alloc(b.c, 10, &more), VTA_NO_MEMORY, "all 3 buffers are in use");
    assert_int_equal(more, 0);
    good(&b, vta_buffer_free(b.c, h[1]));
    more = buffer(&b, 0); /* an empty tensor */
    refused(&b, vta_buffer_free(b.c, h[1]), VTA_BAD_HANDLE, "was freed");
    board_close(&b);
}

/* --- the context -------------------------------------------------------------------------------------------------- */

static void keeps_its_first_error(void **state)
{
    rig b;
    vta_error e;
    const vta_insn *insns;
    (void)state;
    board_open(&b, "sim", NULL);
    vta_buffer data = buffer(&b, 64), other = buffer(&b, 64);
    load(&b, VTA_MEM_INP, data, 0, 0, 1, 1, 1);
    assert_int_equal(vta_dep_push(b.c, VTA_STAGE_LOAD, VTA_STAGE_STORE), VTA_BAD_ARGUMENT);
    assert_int_equal(vta_buffer_write(b.c, data, 0, &e, 1), VTA_BAD_ARGUMENT); /* refused because of the first */
    assert_int_equal(vta_buffer_free(b.c, 5), VTA_BAD_HANDLE);
    assert_int_equal(vta_buffer_free(b.c, other), VTA_OK); /* what is owned can be given back */
    assert_int_equal(vta_synchronize(b.c, 1000), VTA_BAD_ARGUMENT);
    assert_int_equal(vta_context_last_error(b.c, &e), VTA_BAD_ARGUMENT);
    assert_non_null(strstr(e.text, "from stage 1 to 3"));
    assert_int_equal(vta_context_last_error(b.c, &e), VTA_OK);
    assert_int_equal(vta_queued(b.c, &insns), 1); /* what was queued before stays */
    good(&b, vta_synchronize(b.c, 1000));
    board_close(&b);
}

static void needs_memory_as_stated(void **state)
{
    const vta_context_options small = {.max_insns = 256, .max_uops = 64, .max_kernels = 8, .max_buffers = 3},
                              wrong = {.max_insns = 20};
    rig b;
    vta_context *c;
    vta_error e;
    (void)state;
    board_open(&b, "sim", &small);
    size_t bytes = vta_context_bytes(&b.device, &small);
    assert_true(bytes < 16384); /* upstream's two queues are 32 MiB each */
    char *memory = (char *)aligned_alloc(64, bytes + 64);
    assert_int_equal(vta_context_init(memory, bytes - 1, &b.device, &small, &c, &e), VTA_BAD_ARGUMENT);
    assert_int_equal(vta_context_init(memory + 8, bytes, &b.device, &small, &c, &e), VTA_BAD_ARGUMENT);
    assert_int_equal(vta_context_init(NULL, bytes, &b.device, &small, &c, &e), VTA_BAD_ARGUMENT);
    assert_int_equal(vta_context_init(memory, bytes, NULL, &small, &c, &e), VTA_BAD_HANDLE);
    assert_int_equal(vta_context_init(memory, bytes, &b.device, &wrong, &c, &e), VTA_BAD_ARGUMENT);
    assert_null(c);
    assert_int_equal(vta_context_bytes(&b.device, &wrong), 0);
    assert_int_equal(vta_context_init(memory, bytes, &b.device, &small, &c, &e), VTA_OK);
    assert_ptr_equal(vta_context_device(c), &b.device);
    vta_context_destroy(c);
    free(memory);
    board_close(&b);
    assert_int_equal(vta_synchronize(NULL, 1), VTA_BAD_HANDLE);
}

/* Device memory that runs out after `left` allocations; everything taken must be given back. */
typedef struct miser {
    const vta_driver *driver;
    void *self;
    int left, live;
} miser;

static vta_status miser_alloc(void *self, size_t bytes, bool cached, vta_memory *out, vta_error *e)
{
    miser *m = (miser *)self;
    if (m->left-- <= 0)
        return vta_fail(e, VTA_NO_MEMORY, "none of %zu bytes", bytes);
    m->live++;
    return m->driver->alloc(m->self, bytes, cached, out, e);
}

static void miser_free(void *self, const vta_memory *memory)
{
    miser *m = (miser *)self;
    m->live--;
    m->driver->free(m->self, memory);
}

static void survives_every_failed_allocation(void **state)
{
    static const vta_driver driver = {.name = "miser", .alloc = miser_alloc, .free = miser_free};
    rig b;
    vta_error e;
    vta_context *c;
    (void)state;
    board_open(&b, "sim", NULL);
    size_t bytes = vta_context_bytes(&b.device, NULL);
    void *memory = aligned_alloc(64, bytes);
    for (int left = 0; left <= 4; left++) {
        miser m = {b.device.driver, b.device.self, left, 0};
        vta_device d = b.device;
        vta_buffer h;
        d.driver = &driver;
        d.self = &m;
        vta_status s = vta_context_init(memory, bytes, &d, NULL, &c, &e);
        assert_int_equal(s, left < 2 ? VTA_NO_MEMORY : VTA_OK);
        assert_true(s == VTA_OK || (c == NULL && strstr(e.text, "none of")));
        for (int i = 0; i < 3 && s == VTA_OK; i++)
            s = vta_buffer_alloc(c, 10, &h);
        assert_int_equal(s, VTA_NO_MEMORY);
        vta_context_destroy(c);
        assert_int_equal(m.live, 0);
    }
    free(memory);
    board_close(&b);
}

/* Micro-ops by hand, in rows: hardware loads one row at a time. */
static void micro_ops_in_rows(void **state)
{
    static const struct {
        uint32_t x_stride, loads;
    } all[] = {{4, 1}, {5, 4}, {0, 4}};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        rig b;
        uint32_t got[16];
        (void)state;
        board_open(&b, "sim", NULL);
        spy *s = board_spy(&b);
        vta_buffer in = buffer(&b, 64 * 4);
        for (uint32_t i = 0; i < 64; i++)
            ((uint32_t *)host(&b, in))[i] = 100 + i;
        load(&b, VTA_MEM_UOP, in, 0, 3, 4, 4, all[k].x_stride);
        good(&b, vta_synchronize(b.c, 1000));
        assert_int_equal(s->count - 4, all[k].loads); /* the tail: three for tokens, FINISH */
        assert_int_equal(vta_sim_scratchpad(b.sim, VTA_MEM_UOP, 0, 16, got, NULL), VTA_OK);
        for (uint32_t i = 0; i < 16; i++)
            assert_int_equal(got[i], 103 + i / 4 * all[k].x_stride + i % 4);
        board_close(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(micro_ops_in_rows),
        cmocka_unit_test(enforces_the_recording_rules),
        cmocka_unit_test(uops_belong_into_a_recorder),
        cmocka_unit_test(a_kernel_fits_its_memory),
        cmocka_unit_test(remembers_by_site_and_shares_by_content),
        cmocka_unit_test(recorder_is_part_of_the_name),
        cmocka_unit_test(forgets_all_when_full),
        cmocka_unit_test(kernels_larger_in_sum_than_their_memory),
        cmocka_unit_test(a_full_log_runs_what_it_has),
        cmocka_unit_test(gives_way_to_loads_of_micro_ops),
        cmocka_unit_test(cuts_loops_that_move_nothing),
        cmocka_unit_test(refuses_transfers_that_do_not_fit),
        cmocka_unit_test(knows_its_buffers),
        cmocka_unit_test(maps_host_memory),
        cmocka_unit_test(runs_out_of_buffers),
        cmocka_unit_test(keeps_its_first_error),
        cmocka_unit_test(needs_memory_as_stated),
        cmocka_unit_test(survives_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
