/* test_rt_stream.c: the instruction streams that the run-time builds: the published trace line by line, merging of
 * dependencies, what closes a stream, serial mode, full queues, the dump and the static check of tokens.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime_test.h"

#define L VTA_STAGE_LOAD
#define C VTA_STAGE_COMPUTE
#define S VTA_STAGE_STORE

static void expect_line(rig *b, const vta_insn *insns, uint32_t i, const uint32_t *base, const char *wanted)
{
    char line[160];
    print_insn(&b->device.geometry, &insns[i], base, line);
    if (strcmp(line, wanted) != 0)
        fail_msg("instruction %u: '%s', wanted '%s'", i, line, wanted);
}

/* The stream that ran last, lines against `wanted`; DRAM addresses absolute, so the tests that use this load nothing.
 */
static void expect_stream(rig *b, const spy *s, const char *const *wanted, uint32_t count)
{
    static const uint32_t base[VTA_MEM_COUNT];
    for (uint32_t i = 0; i < s->count && i < count; i++)
        expect_line(b, s->insns, i, base, wanted[i]);
    assert_int_equal(s->count, count);
}

/* --- the published trace ------------------------------------------------------------------------------------------ */

static const kernel_text reset_gemm = {{{1024, 1, 0, 0}}, 1, {{.mode = VTA_MODE_GEMM, .reset_out = 1}}};
static const kernel_text update_gemm = {{{1024, 1, 0, 1}}, 1, {{.mode = VTA_MODE_GEMM}}};

/* C[m] = sum over n of A[n] * B[m][n], tiles of 1 x 16 x 16: what the listing of the matrix multiply calls. */
static void queue_gemm(rig *b, vta_buffer A, vta_buffer B, vta_buffer out, uint32_t n)
{
    good(b, push_text(b, VTA_MODE_GEMM, &reset_gemm));
    push(b, C, L);
    for (uint32_t ko = 0; ko < n; ko++) {
        pop(b, C, L);
        load(b, VTA_MEM_INP, A, 0, ko, 1, 1, 1);
        load(b, VTA_MEM_WGT, B, 0, ko, 1, 1024, n);
        push(b, L, C);
        pop(b, L, C);
        good(b, push_text(b, VTA_MODE_GEMM, &update_gemm));
        push(b, C, L);
    }
    push(b, C, S);
    pop(b, C, L);
    pop(b, C, S);
    store(b, out, 0, 0, 1024, 1, 1024);
    good(b, vta_synchronize(b->c, 1u << 31));
}

static void fill_bytes(int8_t *p, size_t count, uint32_t seed)
{
    for (size_t i = 0; i < count; i++)
        p[i] = (int8_t)(next_random(&seed) >> 3);
}

/* Compares `out` (1024 tiles of 16) with the product. */
static void check_gemm(const int8_t *A, const int8_t *B, const int8_t *out, uint32_t n)
{
    for (uint32_t m = 0; m < 1024; m++)
        for (uint32_t o = 0; o < 16; o++) {
            int32_t sum = 0;
            for (uint32_t k = 0; k < n; k++)
                for (uint32_t i = 0; i < 16; i++)
                    sum += A[k * 16 + i] * B[(((size_t)m * n + k) * 16 + o) * 16 + i];
            if (out[m * 16 + o] != (int8_t)sum)
                fail_msg("row %u lane %u: %d, wanted %d", m, o, out[m * 16 + o], (int8_t)sum);
        }
}

static void gemm_buffers(rig *b, uint32_t n, vta_buffer *A, vta_buffer *B, vta_buffer *out)
{
    *A = buffer(b, n * 16);
    *B = buffer(b, (size_t)1024 * n * 256);
    *out = buffer(b, 1024 * 16);
    fill_bytes((int8_t *)host(b, *A), n * 16, 1);
    fill_bytes((int8_t *)host(b, *B), (size_t)1024 * n * 256, 2);
}

static void makes_the_published_trace(void **state)
{
    const uint32_t n = 1024;
    rig b;
    (void)state;
    board_open(&b, "sim", NULL);
    spy *s = board_spy(&b);
    vta_buffer A, B, out;
    gemm_buffers(&b, n, &A, &B, &out);
    queue_gemm(&b, A, B, out, n);
    assert_int_equal(s->runs, 1);
    assert_int_equal(s->count, 3080);
    const vta_geometry *g = &b.device.geometry;
    const uint32_t base[VTA_MEM_COUNT] = {dram_base(g, &s->insns[0]),    dram_base(g, &s->insns[3]),
                                          dram_base(g, &s->insns[2]),    0,
                                          dram_base(g, &s->insns[3075]), 0};
    uint32_t i = 0;
    char line[160];
    expect_line(&b, s->insns, i++, base, "LOAD UOP sram 0, dram 0, x=1, y=1, stride=1");
    expect_line(&b, s->insns, i++, base, "GEMM reset uop[0,1) iter 1024x1 dst 1,0 src 0,0 wgt 0,0 P<");
    for (uint32_t ko = 0; ko < n; ko++) {
        sprintf(line, "LOAD INP sram 0, dram %u, x=1, y=1, stride=1 p>", ko);
        expect_line(&b, s->insns, i++, base, line);
        sprintf(line, "LOAD WGT sram 0, dram %u, x=1, y=1024, stride=1024 P>", ko);
        expect_line(&b, s->insns, i++, base, line);
        if (ko == 0)
            expect_line(&b, s->insns, i++, base, "LOAD UOP sram 1, dram 1, x=1, y=1, stride=1 p<");
        sprintf(line, "GEMM uop[1,2) iter 1024x1 dst 1,0 src 0,0 wgt 1,0 %sP<%s", ko > 0 ? "p<" : "",
                ko + 1 == n ? "P>" : "");
        expect_line(&b, s->insns, i++, base, line);
    }
    expect_line(&b, s->insns, i++, base, "STORE OUT sram 0, dram 0, x=1024, y=1, stride=1024 p<P<");
    expect_line(&b, s->insns, i++, base, "NOP LOAD INP p>");
    expect_line(&b, s->insns, i++, base, "NOP LOAD INP P>");
    expect_line(&b, s->insns, i++, base, "NOP LOAD UOP p<p>");
    expect_line(&b, s->insns, i++, base, "FINISH");
    assert_int_equal(i, 3080);
    check_gemm((int8_t *)host(&b, A), (int8_t *)host(&b, B), (int8_t *)host(&b, out), n);
    const vta_counters *k = vta_sim_counters(b.sim);
    assert_int_equal(k->inp_load_nbytes, 16 * n);
    assert_int_equal(k->wgt_load_nbytes, 256 * n * 1024);
    assert_int_equal(k->uop_load_nbytes, 8);
    assert_int_equal(k->out_store_nbytes, 16 * 1024);
    assert_int_equal(k->gemm_counter, 1024 * n);
    vta_tokens t = {0};
    assert_int_equal(vta_check_tokens(g, s->insns, s->count, &t, NULL), VTA_OK);
    board_close(&b);
}

/* --- dependencies ------------------------------------------------------------------------------------------------- */

static void an_empty_stream_has_four_instructions(void **state)
{
    static const char *const wanted[] = {"NOP STORE UOP P<", "NOP LOAD INP P>", "NOP LOAD UOP p<p>", "FINISH"};
    rig b;
    (void)state;
    board_open(&b, "sim", NULL);
    spy *s = board_spy(&b);
    good(&b, vta_synchronize(b.c, 1000));
    expect_stream(&b, s, wanted, 4);
    board_close(&b);
}

static void merges_dependencies_as_published(void **state)
{
    static const char *const wanted[] = {
        "NOP STORE UOP P<",                       /* the push has nothing to lean on */
        "NOP LOAD UOP p>",                        /* the pop is committed before its stage pushes */
        "NOP LOAD UOP P>",                        /* and a NOP of LOAD takes no push */
        "NOP LOAD UOP P>",    "NOP STORE UOP p<", /* the pop asked for twice: the first committed */
        "NOP STORE UOP p<P<",                     /* a NOP of STORE takes a push */
        "NOP LOAD INP P>",    "NOP LOAD UOP p<p>", "FINISH"};
    rig b;
    (void)state;
    board_open(&b, "sim", NULL);
    spy *s = board_spy(&b);
    push(&b, S, C);
    pop(&b, S, C);
    push(&b, C, S);
    push(&b, C, S);
    pop(&b, C, S);
    pop(&b, C, S);
    good(&b, vta_synchronize(b.c, 1000));
    expect_stream(&b, s, wanted, sizeof wanted / sizeof *wanted);
    board_close(&b);
}

static void refuses_pairs_without_a_queue(void **state)
{
    static const int pairs[][2] = {{1, 3}, {3, 1}, {1, 1}, {2, 2}, {0, 1}, {2, 0}, {4, 2}, {2, -1}, {2, 7}};
    rig b;
    (void)state;
    board_open(&b, "sim", NULL);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        enum vta_stage from = (enum vta_stage)pairs[i][0], to = (enum vta_stage)pairs[i][1];
        refused(&b, vta_dep_push(b.c, from, to), VTA_BAD_ARGUMENT, "no dependency queue");
        refused(&b, vta_dep_pop(b.c, from, to), VTA_BAD_ARGUMENT, "no dependency queue");
    }
    const vta_insn *insns;
    assert_int_equal(vta_queued(b.c, &insns), 0);
    board_close(&b);
}

static void serial_mode_links_neighbors(void **state)
{
    static const char *const wanted[] = {
        "LOAD INP sram 0, dram 0, x=1, y=1, stride=1 P>",
        "LOAD UOP sram 0, dram 0, x=1, y=1, stride=1 p<",
        "ALU add uop[0,1) iter 1x1 dst 0,0 src 0,0 imm 1 5 P>",
        "STORE OUT sram 0, dram 0, x=1, y=1, stride=1 p<P<",
        "NOP LOAD UOP p>",
        "NOP LOAD UOP P<",
        "NOP LOAD INP p>",
        "NOP LOAD INP P>",
        "NOP LOAD UOP p<",
        "FINISH",
    };
    rig b;
    (void)state;
    board_open(&b, "sim", NULL);
    spy *s = board_spy(&b);
    vta_buffer data = buffer(&b, 64);
    assert_int_equal(vta_context_debug(b.c, VTA_DEBUG_FORCE_SERIAL), 0);
    load(&b, VTA_MEM_INP, data, 0, 0, 1, 1, 1);
    alu(&b, VTA_ALU_ADD, 1, 0, 0, true, 5);
    store(&b, data, 0, 0, 1, 1, 1);
    good(&b, vta_synchronize(b.c, 1000));
    const vta_geometry *g = &b.device.geometry;
    const uint32_t base[VTA_MEM_COUNT] = {dram_base(g, &s->insns[1]), 0, dram_base(g, &s->insns[0]), 0,
                                          dram_base(g, &s->insns[3]), 0};
    for (uint32_t i = 0; i < s->count; i++) {
        char line[160];
        print_insn(g, &s->insns[i], base, line);
        assert_string_equal(line, wanted[i]);
    }
    assert_int_equal(s->count, sizeof wanted / sizeof *wanted);
    assert_int_equal(vta_context_debug(b.c, 0), VTA_DEBUG_FORCE_SERIAL);
    board_close(&b);
}

/* --- full queues -------------------------------------------------------------------------------------------------- */

static void a_full_queue_runs_what_it_has(void **state)
{
    const uint32_t n = 300;
    const vta_context_options small = {.max_insns = 256};
    rig b;
    (void)state;
    board_open(&b, "sim", &small);
    spy *s = board_spy(&b);
    vta_buffer A, B, out;
    gemm_buffers(&b, n, &A, &B, &out);
    queue_gemm(&b, A, B, out, n);
    assert_true(s->runs > 4);
    check_gemm((int8_t *)host(&b, A), (int8_t *)host(&b, B), (int8_t *)host(&b, out), n);
    board_close(&b);
}

/* Tokens given before a run closes by itself and taken after: load runs ahead by `ahead` tiles. */
static void tokens_outlive_a_full_queue(void **state)
{
    const vta_context_options small = {.max_insns = 256};
    const uint32_t ahead = 7, tiles = 400;
    rig b;
    (void)state;
    board_open(&b, "sim", &small);
    spy *s = board_spy(&b);
    vta_buffer in = buffer(&b, tiles * 16), wgt = buffer(&b, 256), out = buffer(&b, tiles * 16);
    fill_bytes((int8_t *)host(&b, in), tiles * 16, 5);
    for (int i = 0; i < 256; i++)
        ((int8_t *)host(&b, wgt))[i] = i / 16 == i % 16; /* the identity */
    load(&b, VTA_MEM_WGT, wgt, 0, 0, 1, 1, 1);
    for (uint32_t i = 0; i < tiles + ahead; i++) {
        if (i < tiles) {
            load(&b, VTA_MEM_INP, in, i, i, 1, 1, 1);
            push(&b, L, C);
        }
        if (i < ahead)
            continue;
        uint32_t tile = i - ahead;
        kernel_text reset = {{{0}}, 1, {{.mode = VTA_MODE_GEMM, .reset_out = 1, .dst = tile}}};
        kernel_text update = {{{0}}, 1, {{.mode = VTA_MODE_GEMM, .dst = tile, .src = tile}}};
        pop(&b, L, C);
        good(&b, push_text(&b, VTA_MODE_GEMM, &reset));
        good(&b, push_text(&b, VTA_MODE_GEMM, &update));
    }
    push(&b, C, S);
    pop(&b, C, S);
    store(&b, out, 0, 0, tiles, 1, tiles);
    good(&b, vta_synchronize(b.c, 1000));
    assert_true(s->runs > 4);
    assert_memory_equal(host(&b, in), host(&b, out), tiles * 16);
    vta_tokens t = {0};
    assert_int_equal(vta_check_tokens(&b.device.geometry, s->insns, s->count, &t, NULL), VTA_OK);
    board_close(&b);
}

static void too_many_open_tokens_are_refused(void **state)
{
    rig b;
    (void)state;
    board_open(&b, "sim", NULL);
    for (int i = 0; i < 40; i++)
        push(&b, L, C);
    refused(&b, vta_synchronize(b.c, 1000), VTA_BAD_STATE, "40 tokens from load");
    good(&b, vta_synchronize(b.c, 1000));
    board_close(&b);
}

/* What was logged, and how often. */
typedef struct heard {
    int lines;
    char last[400];
} heard;

static void hear(void *user, const char *text)
{
    heard *h = (heard *)user;
    h->lines++;
    snprintf(h->last, sizeof h->last, "%s", text);
}

static void expect_left(rig *b, int32_t l2g, int32_t g2l, int32_t s2g, int32_t g2s)
{
    vta_tokens t = {-1, -1, -1, -1};
    vta_left_tokens(b->c, &t);
    if (t.l2g != l2g || t.g2l != g2l || t.s2g != s2g || t.g2s != g2s)
        fail_msg("left: %d %d %d %d", t.l2g, t.g2l, t.s2g, t.g2s);
}

static void left_tokens_are_told(void **state)
{
    rig b;
    heard h = {0, ""};
    const vta_context_options o = {.log = hear, .log_user = &h};
    (void)state;
    board_open(&b, "sim", &o);
    push(&b, L, C);
    pop(&b, L, C);
    good(&b, vta_synchronize(b.c, 1000));
    expect_left(&b, 0, 0, 0, 0);
    assert_int_equal(h.lines, 0);
    for (int i = 0; i < 2; i++)
        push(&b, L, C);
    push(&b, C, L);
    push(&b, C, S);
    good(&b, vta_synchronize(b.c, 1000));
    expect_left(&b, 2, 1, 0, 1);
    assert_int_equal(h.lines, 1);
    assert_string_equal(h.last, "vta: warning: synchronize: tokens were pushed and not popped: 2 from load to compute, "
                                "1 from compute to load, 1 from compute to store; they stay\n");
    good(&b, vta_synchronize(b.c, 1000)); /* they are there, as they were */
    expect_left(&b, 2, 1, 0, 1);
    assert_int_equal(h.lines, 1);
    for (int i = 0; i < 2; i++)
        pop(&b, L, C);
    pop(&b, C, L);
    pop(&b, C, S);
    good(&b, vta_synchronize(b.c, 1000));
    expect_left(&b, 0, 0, 0, 0);
    push(&b, S, C);
    good(&b, vta_synchronize(b.c, 1000));
    expect_left(&b, 0, 0, 1, 0);
    assert_int_equal(h.lines, 2);
    vta_context_debug(b.c, VTA_DEBUG_FORCE_SERIAL); /* flags are rewritten: nothing is left */
    push(&b, S, C);
    good(&b, vta_synchronize(b.c, 1000));
    board_close(&b);
}

static void left_tokens_are_refused_when_asked_for(void **state)
{
    rig b;
    heard h = {0, ""};
    vta_context_options o = {.log = hear, .log_user = &h, .left_tokens = VTA_LEFT_ERROR};
    (void)state;
    board_open(&b, "sim", &o);
    spy *s = board_spy(&b);
    push(&b, C, L);
    refused(&b, vta_synchronize(b.c, 1000), VTA_BAD_STATE, "pushed and not popped: 1 from compute to load");
    assert_int_equal(s->runs, 0);
    good(&b, vta_synchronize(b.c, 1000)); /* it is gone with the stream */
    assert_int_equal(h.lines, 0);
    board_close(&b);
    o.left_tokens = VTA_LEFT_IGNORE;
    board_open(&b, "sim", &o);
    push(&b, C, L);
    good(&b, vta_synchronize(b.c, 1000));
    expect_left(&b, 0, 1, 0, 0);
    assert_int_equal(h.lines, 0);
    board_close(&b);
}

/* Runs that a full queue causes leave tokens for what comes: nobody is warned. */
static void tokens_between_runs_are_not_left(void **state)
{
    rig b;
    heard h = {0, ""};
    const vta_context_options o = {
        .max_insns = 256, .log = hear, .log_user = &h, .left_tokens = VTA_LEFT_ERROR};
    (void)state;
    board_open(&b, "sim", &o);
    spy *s = board_spy(&b);
    vta_buffer in = buffer(&b, 16);
    for (int i = 0; i < 400; i++) {
        push(&b, C, L); /* given before a run, taken after it */
        push(&b, L, C);
        load(&b, VTA_MEM_INP, in, 0, 0, 1, 1, 1);
        pop(&b, C, L);
        load(&b, VTA_MEM_INP, in, 0, 0, 1, 1, 1);
        pop(&b, L, C);
        alu(&b, VTA_ALU_ADD, 1, 0, 0, true, 1);
    }
    good(&b, vta_synchronize(b.c, 100000));
    assert_true(s->runs > 4);
    expect_left(&b, 0, 0, 0, 0);
    assert_int_equal(h.lines, 0);
    board_close(&b);
}

/* The functional simulator counts work: what no hardware could do in so many cycles is not begun. */
static void patience_is_counted_in_work(void **state)
{
    static const vta_uop one = {.mode = VTA_MODE_ALU, .alu_opcode = VTA_ALU_ADD, .use_imm = 1, .imm = 1};
    rig b;
    vta_uop gemm = {.mode = VTA_MODE_GEMM};
    (void)state;
    board_open(&b, "sim", NULL);
    kernel_text small = {{{100, 1, 1, 0}}, 1, {one}};
    good(&b, push_text(&b, VTA_MODE_ALU, &small));
    good(&b, vta_synchronize(b.c, 106)); /* micro-ops, ALU, three for tokens, FINISH */
    good(&b, push_text(&b, VTA_MODE_ALU, &small));
    refused(&b, vta_synchronize(b.c, 100), VTA_TIMEOUT, "(alu): its stage has come to 102 cycles at least, 100 were");
    good(&b, vta_synchronize(b.c, 100)); /* the queue is empty again */
    kernel_text huge = {{{16383, 0, 0, 0}, {16383, 0, 0, 0}}, 1, {gemm}};
    for (int i = 0; i < 1000; i++)
        good(&b, push_text(&b, VTA_MODE_GEMM, &huge));
    refused(&b, vta_synchronize(b.c, 1u << 20), VTA_TIMEOUT, "(gemm): its stage has come to 2684026");
    board_close(&b);
}

static void a_deadlock_is_reported_and_leaves_nothing(void **state)
{
    rig b;
    (void)state;
    board_open(&b, "sim", NULL);
    spy *s = board_spy(&b);
    pop(&b, L, C);
    refused(&b, vta_synchronize(b.c, 1000), VTA_DEADLOCK, "");
    assert_int_equal(s->resets, 1);
    good(&b, vta_synchronize(b.c, 1000));
    board_close(&b);
}

/* --- check and dump ----------------------------------------------------------------------------------------------- */

static void checks_tokens_statically(void **state)
{
    rig b;
    vta_error e = {VTA_OK, ""};
    vta_tokens t = {0};
    const vta_insn *insns;
    (void)state;
    board_open(&b, "sim", NULL);
    const vta_geometry *g = &b.device.geometry;
    push(&b, C, L);
    pop(&b, C, S);
    push(&b, S, C);
    uint32_t count = vta_queued(b.c, &insns);
    assert_int_equal(vta_check_tokens(g, insns, count, &t, &e), VTA_DEADLOCK);
    assert_string_equal(e.text, "instruction 1 takes a token from g2s, and none before it gave one");
    t = (vta_tokens){.g2s = 1};
    assert_int_equal(vta_check_tokens(g, insns, count, &t, &e), VTA_DEADLOCK);
    assert_string_equal(e.text, "1 tokens are left in g2l at the end");
    assert_true(t.g2l == 1 && t.s2g == 1 && t.g2s == 0 && t.l2g == 0);
    vta_discard(b.c);
    assert_int_equal(vta_queued(b.c, &insns), 0);
    board_close(&b);
}

typedef struct text {
    char data[8192];
    size_t length;
} text;

static void append_text(void *user, const char *line)
{
    text *t = (text *)user;
    size_t n = strlen(line);
    assert_true(t->length + n < sizeof t->data);
    memcpy(t->data + t->length, line, n + 1);
    t->length += n;
}

static const char wanted_dump[] = "There are 2 uops\n"
                                  "[0000]\t acc=0, inp=0, wgt=0\n"
                                  "[0001]\t acc=3, inp=4, wgt=5\n"
                                  "There are 10 instructions\n"
                                  "INSTRUCTION 0: LOAD UOP\n"
                                  "\tdep - pop prev: 0, pop next: 0, push prev: 0, push next: 0\n"
                                  "\tDRAM: 0x@UOP0@, SRAM:0x0000\n"
                                  "\ty: size=1, pad=[0, 0]\n"
                                  "\tx: size=1, stride=1, pad=[0, 0]\n"
                                  "\tl2g_queue = 0, g2l_queue = 0\n"
                                  "\ts2g_queue = 0, g2s_queue = 0\n"
                                  "INSTRUCTION 1: ALU - shr imm\n"
                                  "\tdep - pop prev: 0, pop next: 0, push prev: 1, push next: 0\n"
                                  "\treset_out: 0\n"
                                  "\trange (0, 1)\n"
                                  "\touter loop - iter: 1, dst: 0, src: 0\n"
                                  "\tinner loop - iter: 7, dst: 1, src: 0\n"
                                  "\timm: -3\n"
                                  "\tl2g_queue = 0, g2l_queue = 1\n"
                                  "\ts2g_queue = 0, g2s_queue = 0\n"
                                  "INSTRUCTION 2: NOP-MEMORY-STAGE\n"
                                  "\tdep - pop prev: 0, pop next: 1, push prev: 0, push next: 0\n"
                                  "\tl2g_queue = 0, g2l_queue = 0\n"
                                  "\ts2g_queue = 0, g2s_queue = 0\n";

/* Replaces addresses, which differ from run to run, in place. */
static void hide_addresses(char *s)
{
    for (char *p = s; (p = strstr(p, "DRAM: 0x")) != NULL;) {
        p += 8;
        char *end = strchr(p, ',');
        memmove(p + 6, end, strlen(end) + 1);
        memcpy(p, "@UOP0@", 6);
    }
}

static void dumps_in_the_published_form(void **state)
{
    static text got;
    const vta_context_options o = {.log = append_text, .log_user = &got};
    const kernel_text gemm = {{{2, 5, 6, 7}, {3, 8, 9, 10}}, 1, {{.dst = 3, .src = 4, .wgt = 5}}};
    rig b;
    (void)state;
    memset(&got, 0, sizeof got);
    board_open(&b, "sim", &o);
    vta_context_debug(b.c, VTA_DEBUG_DUMP_INSN | VTA_DEBUG_DUMP_UOP);
    alu(&b, VTA_ALU_SHR, 7, 0, 0, true, -3);
    push(&b, C, L);
    pop(&b, C, L);
    push(&b, L, C); /* commits the pop; the push needs a NOP of its own */
    pop(&b, L, C);
    good(&b, push_text(&b, VTA_MODE_GEMM, &gemm));
    vta_buffer out = buffer(&b, 16);
    store(&b, out, 0, 0, 1, 1, 1);
    good(&b, vta_synchronize(b.c, 1000));
    hide_addresses(got.data);
    if (strncmp(got.data, wanted_dump, sizeof wanted_dump - 1) != 0)
        fail_msg("%.*s", (int)sizeof wanted_dump, got.data);
    static const char gemm_part[] =
        "GEMM\n\tdep - pop prev: 0, pop next: 0, push prev: 0, push next: 0\n\treset_out: 0\n\trange (1, 2)\n"
        "\touter loop - iter: 2, wgt: 7, inp: 6, acc: 5\n\tinner loop - iter: 3, wgt: 10, inp: 9, acc: 8\n";
    const char *const parts[] = {
        gemm_part,
        "STORE:\n\tdep - pop prev: 0, pop next: 0, push prev: 1, push next: 0\n",
        "NOP-COMPUTE-STAGE\n\tdep - pop prev: 1, pop next: 1, push prev: 0, push next: 0\n",
        "FINISH\n\tdep - pop prev: 0, pop next: 0, push prev: 0, push next: 0\n",
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strstr(got.data, parts[i]))
            fail_msg("no '%s' in\n%s", parts[i], got.data);
    board_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(makes_the_published_trace),
        cmocka_unit_test(an_empty_stream_has_four_instructions),
        cmocka_unit_test(merges_dependencies_as_published),
        cmocka_unit_test(refuses_pairs_without_a_queue),
        cmocka_unit_test(serial_mode_links_neighbors),
        cmocka_unit_test(a_full_queue_runs_what_it_has),
        cmocka_unit_test(tokens_outlive_a_full_queue),
        cmocka_unit_test(too_many_open_tokens_are_refused),
        cmocka_unit_test(left_tokens_are_told),
        cmocka_unit_test(left_tokens_are_refused_when_asked_for),
        cmocka_unit_test(tokens_between_runs_are_not_left),
        cmocka_unit_test(patience_is_counted_in_work),
        cmocka_unit_test(a_deadlock_is_reported_and_leaves_nothing),
        cmocka_unit_test(checks_tokens_statically),
        cmocka_unit_test(dumps_in_the_published_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
