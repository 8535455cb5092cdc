/* test_cycle.c: the cycle model on streams short enough to be timed by hand; what stages wait for; deadlocks by name;
 * timelines as text; the model as a device.
 *
 * On the default configuration the first of N instructions reaches its queue at cycle 16 + 2 + 2 N + 1 (latency,
 * command, two beats each, one cycle to queue it), each further one a cycle later.
 * SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdio.h>

#include "vta_test.h"
#include "workloads.h"

enum { MOST = 16, LATENCY = 16, COMMAND = 2, ISSUE = 2, FILL = 7 };

static const vta_cycle_options chisel = {.profile = VTA_CYCLE_CHISEL};
static const vta_cycle_options hls = {.profile = VTA_CYCLE_HLS};

static uint64_t first_arrival(uint32_t n)
{
    return LATENCY + COMMAND + 2 * n + 1;
}

static vta_geometry default_geometry(void)
{
    vta_config c = vta_config_default();
    vta_geometry g;
    assert_int_equal(vta_config_check(&c, &g, NULL), VTA_OK);
    return g;
}

static vta_status try_time(const vta_cycle_options *o, const vta_fields *fields, uint32_t n, vta_cycle_report *r,
                           vta_error *e)
{
    vta_config c = vta_config_default();
    vta_geometry g = default_geometry();
    vta_insn insns[MOST];
    vta_field_error bad;
    assert_true(n <= MOST);
    for (uint32_t i = 0; i < n; i++)
        assert_true(vta_encode(&g, &fields[i], &insns[i], &bad));
    return vta_cycle_time(&c, o, insns, n, r, e);
}

static void assert_consistent(const vta_cycle_report *r)
{
    uint64_t end_of[VTA_STAGE_COUNT] = {0}, last_start = 0;
    for (int i = 0; i < VTA_STAGE_COUNT; i++) {
        const vta_stage_cycles *s = &r->stage[i];
        assert_int_equal(s->busy + s->wait_token + s->wait_dram + s->wait_fetch + s->idle, r->cycles);
    }
    for (uint32_t i = 0; i < r->n_spans; i++) {
        const vta_span *s = &r->spans[i];
        assert_true(s->ready <= s->start && s->start <= s->end && s->end <= r->cycles);
        assert_true(s->start >= last_start && s->start >= end_of[s->stage]);
        last_start = s->start;
        end_of[s->stage] = s->end;
    }
}

static void time_fields(const vta_cycle_options *o, const vta_fields *fields, uint32_t n, vta_cycle_report *r)
{
    vta_error e = {VTA_OK, ""};
    if (try_time(o, fields, n, r, &e) != VTA_OK)
        fail_msg("%s", e.text);
    assert_consistent(r);
}

static vta_span span_of(const vta_cycle_report *r, uint32_t insn)
{
    for (uint32_t i = 0; i < r->n_spans; i++)
        if (r->spans[i].insn == insn && r->spans[i].stage != VTA_STAGE_NONE)
            return r->spans[i];
    fail_msg("no span for instruction %u", insn);
    return r->spans[0];
}

static uint64_t length_of(const vta_cycle_report *r, uint32_t insn)
{
    vta_span s = span_of(r, insn);
    return s.end - s.start;
}

static vta_fields finish(void)
{
    return (vta_fields){.opcode = VTA_FINISH};
}

static vta_fields load(enum vta_mem m, int64_t x, int64_t y)
{
    return (vta_fields){.opcode = VTA_LOAD, .memory_type = m, .x_size = x, .y_size = y, .x_stride = x};
}

static vta_fields gemm(int64_t uops, int64_t outer, int64_t inner)
{
    return (vta_fields){.opcode = VTA_GEMM, .uop_end = uops, .iter_out = outer, .iter_in = inner};
}

static vta_fields alu(int64_t n, bool immediate)
{
    return (vta_fields){.opcode = VTA_ALU, .uop_end = 1, .iter_out = n, .iter_in = 1, .use_imm = immediate};
}

/* --- durations ---------------------------------------------------------------------------------------------------- */

static void finish_alone(void **state)
{
    (void)state;
    vta_cycle_report r;
    const vta_fields f[] = {finish()};
    time_fields(NULL, f, 1, &r);
    assert_int_equal(r.cycles, first_arrival(1) + ISSUE);
    assert_int_equal(r.stage[VTA_STAGE_NONE].busy, COMMAND + 2 + 1);
    assert_int_equal(r.stage[VTA_STAGE_NONE].wait_dram, LATENCY);
    assert_int_equal(r.stage[VTA_STAGE_NONE].idle, ISSUE);
    assert_int_equal(r.stage[VTA_STAGE_COMPUTE].wait_fetch, first_arrival(1));
    assert_int_equal(r.stage[VTA_STAGE_COMPUTE].busy, ISSUE);
    assert_int_equal(r.stage[VTA_STAGE_LOAD].idle, r.cycles);
    assert_int_equal(r.dram_beats, 2);
    vta_cycle_release(&r);
}

static void compute_takes_its_micro_ops(void **state)
{
    (void)state;
    vta_cycle_report r;
    const vta_fields f[] = {gemm(3, 5, 7), alu(20, true), alu(20, false), gemm(0, 5, 7), finish()};
    time_fields(&chisel, f, 5, &r);
    assert_int_equal(length_of(&r, 0), 3 * 5 * 7 + FILL);
    assert_int_equal(length_of(&r, 1), 20 + FILL);
    assert_int_equal(length_of(&r, 2), 2 * 20 + FILL);
    assert_int_equal(length_of(&r, 3), ISSUE);
    assert_int_equal(r.cycles, first_arrival(5) + 3 * 5 * 7 + 20 + 40 + 3 * FILL + 2 * ISSUE);
    vta_cycle_release(&r);

    time_fields(&hls, f, 5, &r);
    assert_int_equal(length_of(&r, 1), 2 * 20 + FILL);
    assert_int_equal(length_of(&r, 2), 2 * 20 + FILL);
    vta_cycle_release(&r);

    vta_cycle_options old = chisel;
    old.gemm_interval = 4, old.alu_interval = 5, old.unit_fill = 3;
    time_fields(&old, f, 5, &r);
    assert_int_equal(length_of(&r, 0), 4 * 3 * 5 * 7 + 3);
    assert_int_equal(length_of(&r, 1), 5 * 20 + 3);
    assert_int_equal(length_of(&r, 2), 5 * 20 + 3);
    vta_cycle_release(&r);
}

static void transfers_take_beats_and_commands(void **state)
{
    (void)state;
    vta_cycle_report r;
    vta_fields aligned = load(VTA_MEM_INP, 256, 1), crossing = aligned, rows = load(VTA_MEM_INP, 4, 8);
    crossing.dram_base = 64; /* 1024 bytes before a multiple of the longest burst: three commands for 4096 bytes */
    rows.x_stride = 32;
    const vta_fields f[] = {aligned, crossing, rows, finish()};
    time_fields(&chisel, f, 4, &r);
    assert_int_equal(length_of(&r, 0), ISSUE + LATENCY + 512 + 2 * COMMAND);
    assert_int_equal(length_of(&r, 1), ISSUE + LATENCY + 512 + 3 * COMMAND);
    assert_int_equal(length_of(&r, 2), ISSUE + LATENCY + 8 * (8 + COMMAND));
    assert_int_equal(r.stage[VTA_STAGE_LOAD].busy, 3 * ISSUE + 512 + 512 + 64 + (2 + 3 + 8) * COMMAND);
    assert_int_equal(r.stage[VTA_STAGE_LOAD].wait_dram, 3 * LATENCY);
    assert_int_equal(r.dram_beats, 512 + 512 + 64 + 4 * 2);
    vta_cycle_release(&r);

    time_fields(&hls, f, 4, &r); /* each row waits for its own data */
    assert_int_equal(length_of(&r, 2), ISSUE + 8 * (LATENCY + 8));
    vta_cycle_release(&r);

    vta_cycle_options wide = chisel;
    wide.bus_bits = 512, wide.burst_beats = 16, wide.latency = 40, wide.command_cycles = 1;
    time_fields(&wide, f, 4, &r);
    assert_int_equal(length_of(&r, 0), ISSUE + 40 + 4096 / 64 + 4);
    vta_cycle_release(&r);
}

static void padding_hides_behind_waiting(void **state)
{
    (void)state;
    vta_cycle_report r;
    vta_fields few = load(VTA_MEM_INP, 1, 1), many = few, only = load(VTA_MEM_INP, 1, 0);
    few.y_pad_0 = 4;
    many.y_pad_0 = many.y_pad_1 = many.x_pad_0 = many.x_pad_1 = 15;
    only.y_pad_0 = 3;
    const vta_fields f[] = {few, many, only, finish()};
    time_fields(&chisel, f, 4, &r);
    assert_int_equal(length_of(&r, 0), ISSUE + LATENCY + 2 + COMMAND);
    assert_int_equal(length_of(&r, 1), ISSUE + 2 + COMMAND + 31 * 31 - 1);
    assert_int_equal(length_of(&r, 2), ISSUE + 3);
    vta_cycle_release(&r);
}

static void stores_have_a_port_of_their_own(void **state)
{
    (void)state;
    vta_cycle_report r;
    vta_fields store = {.opcode = VTA_STORE, .memory_type = VTA_MEM_OUT, .x_size = 4, .y_size = 2, .x_stride = 8};
    const vta_fields f[] = {load(VTA_MEM_WGT, 32, 1), store, finish()};
    time_fields(&chisel, f, 3, &r);
    assert_int_equal(length_of(&r, 1), ISSUE + 2 * (4 + 4 * 3)); /* command and acknowledge; 3 cycles an element */
    assert_int_equal(length_of(&r, 0), ISSUE + LATENCY + 32 * 32 + 4 * COMMAND);
    vta_cycle_release(&r);
    time_fields(&hls, f, 3, &r);
    assert_int_equal(length_of(&r, 1), ISSUE + 2 * (LATENCY + 8));
    vta_cycle_release(&r);
}

static void half_a_beat_is_a_beat(void **state)
{
    (void)state;
    vta_cycle_report r;
    vta_fields crossing = load(VTA_MEM_UOP, 2, 1);
    crossing.dram_base = 1;
    const vta_fields f[] = {load(VTA_MEM_UOP, 3, 1), crossing, finish()};
    time_fields(&chisel, f, 3, &r);
    assert_int_equal(length_of(&r, 0), ISSUE + LATENCY + 2 + COMMAND);
    assert_int_equal(length_of(&r, 1), ISSUE + LATENCY + 2 + COMMAND);
    vta_cycle_release(&r);
}

/* A weight transfer of two bursts, and a load by the compute stage that is asked for while the first one moves: micro-
 * ops go before weights, accumulators after them. */
static void the_read_port_has_priorities(void **state)
{
    (void)state;
    vta_cycle_report r;
    const uint64_t start = first_arrival(3), first_end = start + ISSUE + LATENCY + 256 + COMMAND;
    const vta_fields uop[] = {load(VTA_MEM_WGT, 16, 1), load(VTA_MEM_UOP, 2, 1), finish()};
    time_fields(&chisel, uop, 3, &r);
    assert_int_equal(span_of(&r, 1).end, first_end + 1 + COMMAND);
    assert_int_equal(span_of(&r, 0).end, first_end + 1 + COMMAND + 256 + COMMAND);
    vta_cycle_release(&r);

    const vta_fields acc[] = {load(VTA_MEM_WGT, 16, 1), load(VTA_MEM_ACC, 1, 1), finish()};
    time_fields(&chisel, acc, 3, &r);
    assert_int_equal(span_of(&r, 0).end, first_end + 256 + COMMAND);
    assert_int_equal(span_of(&r, 1).end, first_end + 256 + COMMAND + 8 + COMMAND);
    assert_int_equal(r.stage[VTA_STAGE_COMPUTE].wait_dram,
                     span_of(&r, 1).end - span_of(&r, 1).start - ISSUE - 8 - COMMAND);
    vta_cycle_release(&r);
}

/* --- tokens and queues -------------------------------------------------------------------------------------------- */

static void a_token_carries_the_end_of_its_push(void **state)
{
    (void)state;
    vta_cycle_report r;
    vta_fields first = load(VTA_MEM_INP, 4, 1), second = gemm(1, 4, 1);
    first.push_next_dep = 1;
    second.pop_prev_dep = 1;
    const vta_fields f[] = {first, second, finish()};
    time_fields(&chisel, f, 3, &r);
    const uint64_t start = first_arrival(3), loaded = start + ISSUE + LATENCY + 8 + COMMAND;
    assert_int_equal(span_of(&r, 0).start, start);
    assert_int_equal(span_of(&r, 0).end, loaded);
    assert_int_equal(span_of(&r, 1).ready, start + 1);
    assert_int_equal(span_of(&r, 1).start, loaded);
    assert_int_equal(r.cycles, loaded + 4 + FILL + ISSUE);
    assert_int_equal(r.stage[VTA_STAGE_COMPUTE].wait_token, loaded - start - 1);
    vta_cycle_release(&r);
}

/* A load of the whole weight memory, three tokens pushed to it meanwhile, and three pops behind it. */
static void three_tokens(vta_fields f[8])
{
    f[0] = load(VTA_MEM_WGT, 1024, 1);
    for (int i = 1; i <= 3; i++) {
        f[i] = load(VTA_MEM_UOP, 0, 0);
        f[i].push_prev_dep = 1;
        f[3 + i] = load(VTA_MEM_INP, 0, 0);
        f[3 + i].pop_next_dep = 1;
    }
    f[7] = finish();
}

static void token_queues_saturate(void **state)
{
    (void)state;
    vta_cycle_report r;
    vta_fields f[8];
    vta_error e;
    three_tokens(f);
    vta_cycle_options two = chisel;
    time_fields(&chisel, f, 8, &r);
    assert_int_equal(r.lost_tokens, 0);
    vta_cycle_release(&r);

    two.token_queue = 2; /* Chisel counts no further: the third is lost */
    assert_int_equal(try_time(&two, f, 8, &r, &e), VTA_DEADLOCK);
    assert_non_null(strstr(e.text, "; load at instruction 6 (load) for a token from compute; 1 tokens were lost at 2"));

    two = hls;
    two.token_queue = 2; /* HLS waits for room, until the long load is over */
    time_fields(&two, f, 8, &r);
    assert_int_equal(r.lost_tokens, 0);
    assert_true(r.stage[VTA_STAGE_COMPUTE].wait_token > 1024 * 32);
    assert_int_equal(span_of(&r, 7).start, span_of(&r, 4).start);
    vta_cycle_release(&r);
}

static void a_full_token_queue_can_deadlock(void **state)
{
    (void)state;
    vta_cycle_report r;
    vta_error e;
    vta_fields f[] = {gemm(1, 1, 1), gemm(1, 1, 1), finish()};
    vta_cycle_options one = hls;
    f[0].push_next_dep = f[1].push_next_dep = 1;
    one.token_queue = 1;
    assert_int_equal(try_time(&one, f, 3, &r, &e), VTA_DEADLOCK);
    assert_non_null(strstr(e.text, "; compute at instruction 1 (gemm) for room for a token to store"));
}

/* Loads that wait for a token from a compute instruction behind them: fine in a long queue, fatal in a short one. */
static void a_short_queue_can_deadlock(void **state)
{
    (void)state;
    vta_cycle_report r;
    vta_error e;
    vta_fields f[5], token = load(VTA_MEM_UOP, 0, 0);
    for (int i = 0; i < 3; i++)
        f[i] = load(VTA_MEM_INP, 0, 0);
    f[0].pop_next_dep = 1;
    token.push_prev_dep = 1;
    f[3] = token;
    f[4] = finish();
    vta_cycle_options two = chisel;
    time_fields(&chisel, f, 5, &r);
    vta_cycle_release(&r);
    two.insn_queue = 2;
    assert_int_equal(try_time(&two, f, 5, &r, &e), VTA_DEADLOCK);
    assert_non_null(strstr(e.text, "; load at instruction 0 (load) for a token from compute; "
                                   "fetch at instruction 2 for room in the queue of load"));
}

static void fetch_waits_for_room(void **state)
{
    (void)state;
    vta_cycle_report r;
    vta_fields f[] = {gemm(1, 1000, 1), gemm(1, 10, 1), gemm(1, 10, 1), finish()};
    vta_cycle_options one = chisel;
    one.insn_queue = 1;
    time_fields(&one, f, 4, &r);
    uint64_t first_end = first_arrival(4) + 1000 + FILL;
    assert_int_equal(span_of(&r, 1).ready, first_end + 1);
    assert_int_equal(r.stage[VTA_STAGE_NONE].wait_token, 1000 + FILL + 2 * (10 + FILL));
    assert_int_equal(r.stage[VTA_STAGE_COMPUTE].wait_fetch, first_arrival(4) + 3);
    vta_cycle_release(&r);
}

static void each_waiting_stage_is_named(void **state)
{
    (void)state;
    vta_cycle_report r;
    vta_error e;
    vta_fields f[] = {
        load(VTA_MEM_INP, 1, 1), gemm(1, 1, 1), {.opcode = VTA_STORE, .memory_type = VTA_MEM_OUT}, finish()};
    f[0].pop_next_dep = f[1].pop_prev_dep = f[1].pop_next_dep = f[2].pop_prev_dep = 1;
    assert_int_equal(try_time(&chisel, f, 4, &r, &e), VTA_DEADLOCK);
    assert_string_equal(e.text, "deadlock at cycle 30; load at instruction 0 (load) for a token from compute; "
                                "compute at instruction 1 (gemm) for a token from load and a token from store; "
                                "store at instruction 2 (store) for a token from compute");
    assert_null(r.spans);
}

/* --- bad input ---------------------------------------------------------------------------------------------------- */

static void expect_fault(const vta_fields *f, const char *part)
{
    vta_cycle_report r;
    vta_error e;
    const vta_fields both[] = {*f, finish()};
    assert_int_equal(try_time(&chisel, both, 2, &r, &e), VTA_FAULT);
    if (!strstr(e.text, part))
        fail_msg("'%s' does not contain '%s'", e.text, part);
}

static void bad_streams_are_refused(void **state)
{
    (void)state;
    vta_config c = vta_config_default();
    vta_cycle_report r;
    vta_error e;
    vta_fields f = load(VTA_MEM_OUT, 1, 1);
    expect_fault(&f, "instruction 0: load of memory 4");
    f = load((enum vta_mem)7, 1, 1);
    expect_fault(&f, "memory 7");
    f = (vta_fields){.opcode = VTA_STORE, .memory_type = VTA_MEM_ACC, .x_size = 1, .y_size = 1};
    expect_fault(&f, "store of memory 3");
    f = load(VTA_MEM_INP, 65535, 65535);
    expect_fault(&f, "elements up to 4294836225 of a scratchpad with 2048");
    expect_fault(&(vta_fields){.opcode = VTA_FINISH}, "instruction 1 stands behind finish");
    f = load(VTA_MEM_INP, 1, 1);
    f.push_prev_dep = 1;
    expect_fault(&f, "instruction 0: the load stage has no previous stage");
    f = (vta_fields){.opcode = VTA_STORE, .pop_next_dep = 1};
    expect_fault(&f, "instruction 0: the store stage has no next stage");
    vta_insn unknown[] = {{{5, 0}}};
    assert_int_equal(vta_cycle_time(&c, NULL, unknown, 1, &r, &e), VTA_FAULT);
    assert_non_null(strstr(e.text, "instruction 0: there is no operation 5"));
    f = gemm(1, 1, 1);
    assert_int_equal(try_time(&chisel, &f, 1, &r, &e), VTA_BAD_ARGUMENT);
    assert_non_null(strstr(e.text, "has no finish"));
    assert_int_equal(try_time(&chisel, &f, 0, &r, &e), VTA_BAD_ARGUMENT);
}

/* 2^41 operations, 2^16 cycles each, 64 times. */
static void time_does_not_wrap(void **state)
{
    (void)state;
    enum { GEMMS = 64 };
    vta_config c = vta_config_default();
    vta_geometry g = default_geometry();
    vta_cycle_report r;
    vta_error e;
    vta_cycle_options o = chisel;
    vta_insn insns[GEMMS + 1];
    o.gemm_interval = 65536;
    for (int i = 0; i < GEMMS; i++)
        insns[i] = test_encode(&g, gemm(8192, 16383, 16383));
    insns[GEMMS] = test_encode(&g, finish());
    assert_int_equal(vta_cycle_time(&c, &o, insns, GEMMS + 1, &r, &e), VTA_UNSUPPORTED);
    assert_non_null(strstr(e.text, "2^62 cycles"));
    assert_int_equal(vta_cycle_time(&c, &o, insns + GEMMS - 1, 2, &r, &e), VTA_OK);
    assert_int_equal(r.stage[VTA_STAGE_COMPUTE].busy, 8192ull * 16383 * 16383 * 65536 + FILL + ISSUE);
    vta_cycle_release(&r);
}

static void bad_options_are_refused(void **state)
{
    (void)state;
    vta_cycle_report r;
    vta_error e;
    const vta_fields f = finish();
    vta_cycle_options o = chisel;
    o.bus_bits = 48;
    assert_int_equal(try_time(&o, &f, 1, &r, &e), VTA_BAD_ARGUMENT);
    assert_non_null(strstr(e.text, "bus of 48 bits"));
    o = chisel;
    o.burst_beats = 3;
    assert_int_equal(try_time(&o, &f, 1, &r, &e), VTA_BAD_ARGUMENT);
    o = chisel;
    o.gemm_interval = 65537;
    assert_int_equal(try_time(&o, &f, 1, &r, &e), VTA_BAD_ARGUMENT);
    assert_non_null(strstr(e.text, "65537 cycles"));
    o = chisel;
    o.command_cycles = UINT32_MAX;
    assert_int_equal(try_time(&o, &f, 1, &r, &e), VTA_BAD_ARGUMENT);
    o = chisel;
    o.profile = (vta_cycle_profile)2;
    assert_int_equal(try_time(&o, &f, 1, &r, &e), VTA_BAD_ARGUMENT);
    vta_config c = vta_config_default();
    c.log_acc_buff_size = 20;
    vta_insn insn = {{VTA_FINISH, 0}};
    assert_int_equal(vta_cycle_time(&c, NULL, &insn, 1, &r, &e), VTA_BAD_CONFIG);
    c = vta_config_default();
    strcpy(c.target, "nowhere");
    assert_int_equal(vta_cycle_time(&c, NULL, &insn, 1, &r, &e), VTA_BAD_CONFIG);
}

static vta_status run_on(vta_device *d, const vta_fields *fields, uint32_t n, uint32_t wait, vta_error *e)
{
    vta_memory m;
    vta_field_error bad;
    assert_int_equal(d->driver->alloc(d->self, n * sizeof(vta_insn), true, &m, e), VTA_OK);
    for (uint32_t i = 0; i < n; i++)
        assert_true(vta_encode(&d->geometry, &fields[i], (vta_insn *)m.host + i, &bad));
    vta_status status = d->driver->run(d->self, m.phys, n, wait, e);
    d->driver->free(d->self, &m);
    return status;
}

/* --- whole layers ------------------------------------------------------------------------------------------------- */

static stream layer_stream(const vta_geometry *g, const conv_layer *l)
{
    stream s;
    stream_init(&s, g, 1024);
    conv_emit(&s, &(conv_task){.layer = l, .epilogue = EPILOGUE_QUANTISED, .shift = 8, .least = -128, .most = 127});
    stream_finish(&s);
    return s;
}

static void layers_add_up_and_come_out_the_same(void **state)
{
    (void)state;
    vta_config c = vta_config_default();
    vta_geometry g = default_geometry();
    for (int i = 0; i < RESNET18_LAYERS; i++) {
        stream s = layer_stream(&g, &resnet18_layers[i]);
        for (int profile = 0; profile < 2; profile++) {
            vta_cycle_report a, b;
            const vta_cycle_options *o = profile ? &hls : &chisel;
            assert_int_equal(vta_cycle_time(&c, o, s.insns, s.n_insns, &a, NULL), VTA_OK);
            assert_int_equal(vta_cycle_time(&c, o, s.insns, s.n_insns, &b, NULL), VTA_OK);
            assert_consistent(&a);
            assert_int_equal(a.cycles, b.cycles);
            assert_int_equal(a.n_spans, b.n_spans);
            assert_int_equal(a.n_spans, s.n_insns + (s.n_insns + 127) / 128);
            for (uint32_t j = 0; j < a.n_spans; j++) {
                assert_int_equal(a.spans[j].insn, b.spans[j].insn);
                assert_int_equal(a.spans[j].stage, b.spans[j].stage);
                assert_int_equal(a.spans[j].start, b.spans[j].start);
                assert_int_equal(a.spans[j].end, b.spans[j].end);
            }
            assert_true(a.cycles >= a.stage[VTA_STAGE_COMPUTE].busy);
            vta_cycle_release(&a);
            vta_cycle_release(&b);
        }
        stream_release(&s);
    }
}

/* The product of the published instruction trace: the recorder merges flags as the run-time does, and the time is that
 * of bringing 256 MiB of weights in rows of 256 bytes. */
static void a_product_is_bound_by_memory(void **state)
{
    (void)state;
    enum { POP_PREV = 1, POP_NEXT = 2, PUSH_PREV = 4, PUSH_NEXT = 8 };
    static const struct {
        uint32_t insn;
        int opcode, flags;
    } trace[] = {
        {0, VTA_LOAD, 0},
        {1, VTA_GEMM, PUSH_PREV},
        {2, VTA_LOAD, POP_NEXT},
        {3, VTA_LOAD, PUSH_NEXT},
        {4, VTA_LOAD, POP_PREV},
        {5, VTA_GEMM, PUSH_PREV},
        {8, VTA_GEMM, POP_PREV | PUSH_PREV},
        {3074, VTA_GEMM, POP_PREV | PUSH_PREV | PUSH_NEXT},
        {3075, VTA_STORE, POP_PREV | PUSH_PREV},
        {3076, VTA_LOAD, POP_NEXT},
        {3077, VTA_LOAD, PUSH_NEXT},
        {3078, VTA_LOAD, POP_PREV | POP_NEXT},
        {3079, VTA_FINISH, 0},
    };
    const uint64_t beats = 1024ull * 1024 * 32, commands = 1024 * 1024 * COMMAND;
    vta_config c = vta_config_default();
    vta_geometry g = default_geometry();
    stream s;
    vta_cycle_report r;
    stream_init(&s, &g, 0);
    product_emit(&s, &(product_task){.m = 1024, .n = 1024});
    stream_finish(&s);
    assert_int_equal(s.n_insns, 3080);
    for (size_t i = 0; i < N(trace); i++) {
        vta_fields f;
        vta_decode(&g, &s.insns[trace[i].insn], &f);
        int64_t flags = f.pop_prev_dep | f.pop_next_dep << 1 | f.push_prev_dep << 2 | f.push_next_dep << 3;
        assert_int_equal(f.opcode, trace[i].opcode);
        assert_int_equal(flags, trace[i].flags);
    }
    assert_int_equal(vta_cycle_time(&c, NULL, s.insns, s.n_insns, &r, NULL), VTA_OK);
    assert_consistent(&r);
    assert_true(r.cycles > beats + commands && (double)r.cycles < 1.05 * (double)(beats + commands));
    vta_cycle_release(&r);
    stream_release(&s);
}

/* Streams of any stages and flags: the model hangs when the simulator does, and leaves the tokens that it leaves. */
static void tokens_agree_with_the_simulator(void **state)
{
    (void)state;
    vta_config c = vta_config_default();
    vta_device d, sim = vta_sim_device(test_sim(&c, NULL));
    uint64_t seed = 7;
    uint32_t done = 0, hung = 0;
    assert_int_equal(vta_cycle_device(&c, NULL, &chisel, &d, NULL), VTA_OK);
    for (int round = 0; round < 3000; round++) {
        vta_fields f[MOST];
        vta_error e = {VTA_OK, ""}, sim_error = {VTA_OK, ""};
        uint32_t n = 2 + test_below(&seed, MOST - 2);
        for (uint32_t i = 0; i + 1 < n; i++) {
            const vta_fields kinds[] = {load(VTA_MEM_INP, 0, 0), gemm(1, 3, 1), {.opcode = VTA_STORE}, alu(9, true)};
            f[i] = kinds[test_below(&seed, 4)];
            enum vta_stage stage = vta_stage_of(&f[i]);
            f[i].pop_prev_dep = stage != VTA_STAGE_LOAD && test_below(&seed, 4) == 0;
            f[i].pop_next_dep = stage != VTA_STAGE_STORE && test_below(&seed, 4) == 0;
            f[i].push_prev_dep = stage != VTA_STAGE_LOAD && test_below(&seed, 3) == 0;
            f[i].push_next_dep = stage != VTA_STAGE_STORE && test_below(&seed, 3) == 0;
        }
        f[n - 1] = finish();
        f[n - 1].pop_prev_dep = test_below(&seed, 2);
        vta_status status = run_on(&d, f, n, UINT32_MAX, &e);
        if (run_on(&sim, f, n, UINT32_MAX, &sim_error) != status)
            fail_msg("the model: %s; the simulator: %s", e.text, sim_error.text);
        if (status == VTA_OK) {
            done++;
            assert_consistent(vta_cycle_last(&d));
            continue;
        }
        assert_int_equal(status, VTA_DEADLOCK);
        assert_memory_equal(e.text, "deadlock at cycle", 17); /* found by the model, not behind it */
        hung++;
        d.driver->reset(d.self);
        sim.driver->reset(sim.self);
    }
    assert_true(done > 300 && hung > 300);
    vta_device_destroy(&d);
    vta_device_destroy(&sim);
}

/* Every tested geometry, on ports from narrower than an element to wider than many. */
static void all_configurations_are_timed(void **state)
{
    (void)state;
    for (size_t i = 0; i < N(test_configs); i++) {
        vta_config c = test_config(test_configs[i]);
        vta_geometry g;
        assert_int_equal(vta_config_check(&c, &g, NULL), VTA_OK);
        uint64_t last = UINT64_MAX;
        for (uint32_t bus = 8; bus <= 1024; bus *= 2) {
            vta_cycle_options o = chisel;
            vta_cycle_report r;
            vta_insn insns[8];
            uint32_t n = 0;
            o.bus_bits = bus;
            for (int m = VTA_MEM_UOP; m <= VTA_MEM_ACC; m++)
                insns[n++] = test_encode(&g, load((enum vta_mem)m, g.depth[m] < 64 ? g.depth[m] : 64, 1));
            vta_fields store = load(VTA_MEM_OUT, 16, 1);
            store.opcode = VTA_STORE;
            insns[n++] = test_encode(&g, store);
            insns[n++] = test_encode(&g, finish());
            assert_int_equal(vta_cycle_time(&c, &o, insns, n, &r, NULL), VTA_OK);
            assert_consistent(&r);
            assert_true(r.cycles < last);
            last = r.cycles;
            vta_cycle_release(&r);
        }
    }
}

/* --- timelines ---------------------------------------------------------------------------------------------------- */

static char *text_of(size_t (*print)(const vta_geometry *, const vta_cycle_report *, const vta_insn *, char *, size_t),
                     const vta_geometry *g, const vta_cycle_report *r, const vta_insn *insns)
{
    size_t n = print(g, r, insns, NULL, 0);
    char *text = malloc(n + 1);
    assert_non_null(text);
    assert_int_equal(print(g, r, insns, text, n + 1), n);
    assert_int_equal(strlen(text), n);
    char cut[101];
    memset(cut, 'x', sizeof cut);
    assert_int_equal(print(g, r, insns, cut, 100), n);
    assert_int_equal(cut[100], 'x');
    assert_memory_equal(cut, text, 99);
    return text;
}

static void timelines_hold_every_span(void **state)
{
    (void)state;
    vta_config c = vta_config_default();
    vta_geometry g = default_geometry();
    stream s = layer_stream(&g, &resnet18_layers[1]);
    vta_cycle_report r;
    assert_int_equal(vta_cycle_time(&c, NULL, s.insns, s.n_insns, &r, NULL), VTA_OK);
    char *text = text_of(vta_cycle_chrome_trace, &g, &r, s.insns);
    json_error_t error;
    json_t *root = json_loads(text, 0, &error), *events = json_object_get(root, "traceEvents"), *event;
    assert_non_null(root);
    size_t i;
    uint32_t spans = 0, pushes = 0, starts = 0, ends = 0;
    json_int_t cycles[VTA_STAGE_COUNT] = {0};
    json_array_foreach(events, i, event)
    {
        const char *phase = json_string_value(json_object_get(event, "ph"));
        starts += *phase == 's';
        ends += *phase == 'f';
        if (*phase != 'X')
            continue;
        spans++;
        cycles[json_integer_value(json_object_get(event, "tid"))] += json_integer_value(json_object_get(event, "dur"));
    }
    for (uint32_t j = 0; j < s.n_insns; j++) {
        vta_fields f;
        vta_decode(&g, &s.insns[j], &f);
        pushes += (uint32_t)(f.push_prev_dep + f.push_next_dep);
    }
    assert_int_equal(spans, r.n_spans);
    assert_int_equal(starts, pushes); /* the stream leaves no token behind */
    assert_int_equal(ends, pushes);
    const vta_stage_cycles *compute = &r.stage[VTA_STAGE_COMPUTE];
    assert_int_equal(cycles[VTA_STAGE_COMPUTE], compute->busy + compute->wait_dram);
    json_decref(root);
    free(text);

    text = text_of(vta_cycle_svg, &g, &r, s.insns);
    assert_memory_equal(text, "<svg ", 5);
    assert_string_equal(text + strlen(text) - 7, "</svg>\n");
    free(text);
    vta_cycle_release(&r);
    stream_release(&s);
}

/* --- as a device -------------------------------------------------------------------------------------------------- */

static void a_device_counts_cycles_and_keeps_tokens(void **state)
{
    (void)state;
    vta_config c = vta_config_default();
    vta_device d;
    vta_error e;
    char text[1000];
    assert_int_equal(vta_cycle_device(&c, NULL, &chisel, &d, &e), VTA_OK);
    assert_null(vta_cycle_last(&d));
    vta_fields gives[] = {load(VTA_MEM_INP, 0, 0), finish()}, takes[] = {load(VTA_MEM_UOP, 0, 0), finish()};
    gives[0].push_next_dep = takes[0].pop_prev_dep = 1;
    assert_int_equal(run_on(&d, takes, 2, UINT32_MAX, &e), VTA_DEADLOCK);
    assert_int_equal(run_on(&d, gives, 2, UINT32_MAX, &e), VTA_OK);
    uint64_t cycles = vta_cycle_last(&d)->cycles;
    assert_int_equal(cycles, first_arrival(2) + 1 + ISSUE);
    assert_int_equal(run_on(&d, takes, 2, UINT32_MAX, &e), VTA_OK);
    cycles += vta_cycle_last(&d)->cycles;
    assert_int_equal(run_on(&d, gives, 2, 10, &e), VTA_TIMEOUT);
    assert_non_null(strstr(e.text, "26 cycles, 10 were allowed"));
    d.driver->reset(d.self);
    assert_int_equal(run_on(&d, takes, 2, UINT32_MAX, &e), VTA_DEADLOCK);

    size_t n = d.driver->counters(d.self, text, sizeof text);
    assert_int_equal(n, strlen(text));
    assert_int_equal(d.driver->counters(d.self, NULL, 0), n);
    json_t *root = json_loads(text, 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(root, "cycle_count")), cycles);
    assert_int_equal(json_integer_value(json_object_get(root, "insn_counter")), 4);
    json_decref(root);
    d.driver->clear_counters(d.self);
    d.driver->counters(d.self, text, sizeof text);
    assert_non_null(strstr(text, "\"cycle_count\": 0}"));
    vta_device_destroy(&d);

    vta_cycle_options bad = chisel;
    bad.bus_bits = 3;
    assert_int_equal(vta_cycle_device(&c, NULL, &bad, &d, &e), VTA_BAD_ARGUMENT);
}

/* Behind the run-time: an empty synchronisation is four instructions, and a token may stay for the next run. */
static void the_run_time_drives_it(void **state)
{
    (void)state;
    vta_config c = vta_config_default();
    vta_device d;
    vta_context *context;
    vta_error e = {VTA_OK, ""};
    const vta_context_options o = {.max_insns = 256, .max_uops = 256};
    assert_int_equal(vta_cycle_device(&c, NULL, NULL, &d, &e), VTA_OK);
    size_t bytes = vta_context_bytes(&d, &o);
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    assert_int_equal(vta_context_init(memory, bytes, &d, &o, &context, &e), VTA_OK);
    assert_int_equal(vta_synchronize(context, UINT32_MAX), VTA_OK);
    assert_int_equal(vta_cycle_last(&d)->n_spans, 4 + 1);
    assert_int_equal(vta_dep_push(context, VTA_STAGE_LOAD, VTA_STAGE_COMPUTE), VTA_OK);
    assert_int_equal(vta_synchronize(context, UINT32_MAX), VTA_OK);
    assert_int_equal(vta_dep_pop(context, VTA_STAGE_LOAD, VTA_STAGE_COMPUTE), VTA_OK);
    assert_int_equal(vta_synchronize(context, UINT32_MAX), VTA_OK);
    assert_int_equal(vta_synchronize(context, 10), VTA_TIMEOUT);
    vta_context_destroy(context);
    free(memory);
    vta_device_destroy(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finish_alone),
        cmocka_unit_test(compute_takes_its_micro_ops),
        cmocka_unit_test(transfers_take_beats_and_commands),
        cmocka_unit_test(half_a_beat_is_a_beat),
        cmocka_unit_test(padding_hides_behind_waiting),
        cmocka_unit_test(stores_have_a_port_of_their_own),
        cmocka_unit_test(the_read_port_has_priorities),
        cmocka_unit_test(a_token_carries_the_end_of_its_push),
        cmocka_unit_test(token_queues_saturate),
        cmocka_unit_test(a_full_token_queue_can_deadlock),
        cmocka_unit_test(a_short_queue_can_deadlock),
        cmocka_unit_test(fetch_waits_for_room),
        cmocka_unit_test(each_waiting_stage_is_named),
        cmocka_unit_test(bad_streams_are_refused),
        cmocka_unit_test(time_does_not_wrap),
        cmocka_unit_test(bad_options_are_refused),
        cmocka_unit_test(layers_add_up_and_come_out_the_same),
        cmocka_unit_test(a_product_is_bound_by_memory),
        cmocka_unit_test(tokens_agree_with_the_simulator),
        cmocka_unit_test(all_configurations_are_timed),
        cmocka_unit_test(timelines_hold_every_span),
        cmocka_unit_test(a_device_counts_cycles_and_keeps_tokens),
        cmocka_unit_test(the_run_time_drives_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
