/* cycle.c: how long a stream takes. Fetch, load, compute and store are four actors with clocks of their own; they meet
 * at the instruction queues, the token queues and the memory's read port. The actor whose next step comes first is
 * advanced, so that every step sees what came before it. Only fields are looked at, never data.
 *
 *   fetch --queues--> load <-tokens-> compute <-tokens-> store        steps of a stage: start, each burst, end
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cycle.h"

#include <stdio.h>
#include <stdlib.h>

#define NEVER       UINT64_MAX
#define MOST_CYCLES ((uint64_t)1 << 62) /* beyond, no step could be added without wrapping around */

/* --- profiles ----------------------------------------------------------------------------------------------------- */

/* What the two published implementations do differently; docs/explanation/vta-cycle.md says where each number comes
 * from. */
typedef struct profile {
    uint32_t alu_immediate, alu_tensor; /* cycles per ALU micro-op */
    uint32_t read_command, write_command;
    uint32_t store_element; /* cycles to read an element from the scratchpad before its beats can leave */
    uint32_t token_queue;
    bool row_latency; /* a row is asked for when the one before it has come */
    bool push_waits;  /* a full token queue holds the stage; else the token is lost */
} profile;

static const profile profiles[] = {
    [VTA_CYCLE_CHISEL] = {1, 2, 2, 4, 1, 255, false, false},
    [VTA_CYCLE_HLS] = {2, 2, 0, 0, 0, 8, true, true},
};

enum {
    DEFAULT_FILL = 7, /* GEMM and ALU: from the first micro-op's issue to its result, and back to idle */
    ISSUE = 2,        /* a stage's own states around an instruction that does nothing, or only moves data */
    DEFAULT_LATENCY = 16,
    DEFAULT_INSN_QUEUE = 512,
    MAX_BUS_BITS = 4096,
    MAX_BURST_BEATS = 65536,
    MAX_OPTION_CYCLES = 65536 /* a GEMM has at most 2^42 operations */
};

/* --- state -------------------------------------------------------------------------------------------------------- */

/* An instruction, decoded to what takes time. */
typedef struct op {
    uint64_t arrival, cycles; /* cycles: of GEMM, ALU and what does nothing; 0: moves data */
    uint32_t insn;
    uint8_t opcode, memory;
    unsigned flags;
    uint32_t base, stride, rows, row_elements, element_bytes, pads; /* in elements of `memory` */
} op;

typedef enum phase { WAITS, MOVES, ENDS } phase;

typedef struct stage {
    phase phase;
    op *ring;
    uint32_t head, queued;
    uint64_t free;       /* end of the instruction before */
    uint64_t start, end; /* of the one that runs */
    uint64_t available;  /* when the next burst's data can come, if the port is free */
    uint64_t work;       /* cycles in which the running instruction's bursts hold the port */
    uint32_t row, offset /* bytes of the row that have moved */;
    uint32_t span;
} stage;

typedef struct fetch {
    uint32_t next, burst_end; /* instructions that are queued, and those that have come from memory */
    uint64_t clock;
    uint32_t span;
    uint32_t blocked; /* the stage whose queue is full; 0: none */
    bool finish;      /* FINISH has been queued */
} fetch;

enum { READ_PORT, WRITE_PORT, PORTS };

typedef struct model {
    const profile *profile;
    vta_cycle_options options; /* resolved: what is used */
    uint32_t bus_bytes, burst_bytes, alu_immediate, alu_tensor;
    vta_geometry geometry;
    vta_field layout[VTA_ALU + 1][VTA_MAX_FIELDS];
    uint32_t n_fields[VTA_ALU + 1];
    const vta_insn *insns;
    uint32_t count, ring_size;
    uint64_t now, port_free[PORTS], tokens[VTA_TOKEN_QUEUES];
    uint64_t given[VTA_TOKEN_QUEUES]; /* when a queue that was empty got a token */
    fetch fetch;
    stage stage[VTA_STAGE_COUNT]; /* [0] is not used */
    vta_cycle_report *report;
} model;

static const char *const stage_names[VTA_STAGE_COUNT] = {"fetch", "load", "compute", "store"};

static uint64_t max64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t min64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

int vta_token_queue_of(enum vta_stage s, enum vta_dep_flag flag)
{
    static const int8_t queues[VTA_STAGE_COUNT][VTA_DEP_FLAGS] = {
        [VTA_STAGE_NONE] = {-1, -1, -1, -1},
        [VTA_STAGE_LOAD] = {-1, VTA_COMPUTE_TO_LOAD, -1, VTA_LOAD_TO_COMPUTE},
        [VTA_STAGE_COMPUTE] = {VTA_LOAD_TO_COMPUTE, VTA_STORE_TO_COMPUTE, VTA_COMPUTE_TO_LOAD, VTA_COMPUTE_TO_STORE},
        [VTA_STAGE_STORE] = {VTA_COMPUTE_TO_STORE, -1, VTA_STORE_TO_COMPUTE, -1},
    };
    return queues[s][flag];
}

unsigned vta_dep_flags(const vta_fields *f)
{
    return (unsigned)f->pop_prev_dep << VTA_POP_PREV | (unsigned)f->pop_next_dep << VTA_POP_NEXT |
           (unsigned)f->push_prev_dep << VTA_PUSH_PREV | (unsigned)f->push_next_dep << VTA_PUSH_NEXT;
}

/* --- decoding ----------------------------------------------------------------------------------------------------- */

/* LOAD and STORE: geometry of the transfer, checked against the scratchpad so that no stream can ask for more bursts
 * than a scratchpad holds. */
static vta_status decode_transfer(const model *m, const vta_fields *f, op *o, vta_error *e)
{
    if (f->x_size == 0) {
        o->cycles = ISSUE;
        return VTA_OK;
    }
    bool ok = f->opcode == VTA_LOAD ? f->memory_type < VTA_MEM_COUNT && f->memory_type != VTA_MEM_OUT
                                    : f->memory_type == VTA_MEM_OUT;
    if (!ok)
        return vta_fail(e, VTA_FAULT, "instruction %u: %s of memory %d", o->insn,
                        f->opcode == VTA_LOAD ? "load" : "store", (int)f->memory_type);
    uint64_t rows = (uint64_t)(f->y_pad_0 + f->y_size + f->y_pad_1);
    uint64_t columns = (uint64_t)(f->x_pad_0 + f->x_size + f->x_pad_1);
    uint64_t end = (uint64_t)f->sram_base + rows * columns;
    if (end > m->geometry.depth[f->memory_type])
        return vta_fail(e, VTA_FAULT, "instruction %u: elements up to %llu of a scratchpad with %u", o->insn,
                        (unsigned long long)end, m->geometry.depth[f->memory_type]);
    o->base = (uint32_t)f->dram_base;
    o->stride = (uint32_t)f->x_stride;
    o->rows = (uint32_t)f->y_size;
    o->row_elements = (uint32_t)f->x_size;
    o->element_bytes = m->geometry.elem_bytes[f->memory_type];
    o->pads = (uint32_t)(rows * columns - (uint64_t)(f->y_size * f->x_size));
    return VTA_OK;
}

static vta_status decode(const model *m, uint32_t index, op *o, enum vta_stage *out_stage, vta_error *e)
{
    const vta_insn *in = &m->insns[index];
    vta_fields f = {0};
    uint32_t opcode = in->word[0] & 7u;
    if (opcode > VTA_ALU)
        return vta_fail(e, VTA_FAULT, "instruction %u: there is no operation %u", index, opcode);
    for (uint32_t i = 0; i < m->n_fields[opcode]; i++)
        vta_field_get(&m->layout[opcode][i], in->word, &f);
    enum vta_stage s = *out_stage = vta_stage_of(&f);
    *o = (op){.insn = index, .opcode = (uint8_t)opcode, .memory = (uint8_t)f.memory_type, .flags = vta_dep_flags(&f)};
    for (int flag = 0; flag < VTA_DEP_FLAGS; flag++)
        if (o->flags >> flag & 1 && vta_token_queue_of(s, (enum vta_dep_flag)flag) < 0)
            return vta_fail(e, VTA_FAULT, "instruction %u: the %s stage has no %s stage", index, stage_names[s],
                            s == VTA_STAGE_LOAD ? "previous" : "next");
    if (opcode == VTA_LOAD || opcode == VTA_STORE)
        return decode_transfer(m, &f, o, e);
    uint64_t uops = f.uop_end > f.uop_bgn ? (uint64_t)(f.uop_end - f.uop_bgn) : 0;
    uint64_t n = (uint64_t)(f.iter_out * f.iter_in) * uops;
    if (opcode == VTA_FINISH || n == 0)
        o->cycles = ISSUE;
    else if (opcode == VTA_GEMM)
        o->cycles = n * m->options.gemm_interval + m->options.unit_fill;
    else
        o->cycles = n * (f.use_imm ? m->alu_immediate : m->alu_tensor) + m->options.unit_fill;
    return VTA_OK;
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

/* The next burst of the running transfer: bytes up to the end of its row or to a multiple of the longest burst. */
static uint32_t burst_length(const model *m, const op *o, const stage *s, uint64_t *out_address)
{
    uint64_t element = (uint32_t)(o->base + s->row * o->stride);
    *out_address = element * o->element_bytes + s->offset;
    uint64_t left = (uint64_t)o->row_elements * o->element_bytes - s->offset;
    return (uint32_t)min64(left, m->burst_bytes - *out_address % m->burst_bytes);
}

static uint64_t beats_of(const model *m, uint64_t address, uint32_t bytes)
{
    return (address + bytes - 1) / m->bus_bytes - address / m->bus_bytes + 1;
}

static void move_burst(model *m, enum vta_stage which)
{
    stage *s = &m->stage[which];
    const op *o = &s->ring[s->head];
    uint64_t address;
    uint32_t bytes = burst_length(m, o, s, &address);
    uint64_t beats = beats_of(m, address, bytes), cost = beats + m->options.command_cycles;
    int port = READ_PORT;
    if (which == VTA_STAGE_STORE) {
        port = WRITE_PORT;
        cost = beats + m->profile->write_command +
               (uint64_t)m->profile->store_element * ((bytes + o->element_bytes - 1) / o->element_bytes);
    }
    m->report->dram_beats += beats;
    m->report->spans[s->span].beats += (uint32_t)beats;
    s->work += cost;
    s->available = m->port_free[port] = m->now + cost;
    s->offset += bytes;
    if (s->offset == (uint64_t)o->row_elements * o->element_bytes) {
        s->offset = 0;
        s->row++;
        s->available += m->profile->row_latency ? m->options.latency : 0;
    }
    if (s->row == o->rows) {
        s->phase = ENDS; /* padding is written while no data come: the scratchpad takes a beat or an element a cycle */
        s->end = max64(m->now + cost, s->start + ISSUE + s->work + o->pads);
    }
}

/* --- stages ------------------------------------------------------------------------------------------------------- */

static bool tokens_there(const model *m, enum vta_stage which, const op *o)
{
    for (int flag = VTA_POP_PREV; flag <= VTA_POP_NEXT; flag++)
        if (o->flags >> flag & 1 && m->tokens[vta_token_queue_of(which, (enum vta_dep_flag)flag)] == 0)
            return false;
    return true;
}

static bool room_for_tokens(const model *m, enum vta_stage which, const op *o)
{
    if (!m->profile->push_waits)
        return true;
    for (int flag = VTA_PUSH_PREV; flag <= VTA_PUSH_NEXT; flag++)
        if (o->flags >> flag & 1 &&
            m->tokens[vta_token_queue_of(which, (enum vta_dep_flag)flag)] >= m->options.token_queue)
            return false;
    return true;
}

static void start_op(model *m, enum vta_stage which)
{
    stage *s = &m->stage[which];
    const op *o = &s->ring[s->head];
    vta_stage_cycles *c = &m->report->stage[which];
    int last = 0;
    for (int flag = VTA_POP_PREV, seen = 0; flag <= VTA_POP_NEXT; flag++) {
        const int queue = vta_token_queue_of(which, (enum vta_dep_flag)flag);
        if (!(o->flags >> flag & 1))
            continue;
        m->tokens[queue]--;
        last = !seen++ || m->given[queue] > m->given[last] ? queue : last;
    }
    uint64_t had_work = max64(s->free, o->arrival);
    c->wait_fetch += had_work - s->free;
    c->wait_token += m->now - had_work;
    s->start = m->now;
    s->span = m->report->n_spans++;
    m->report->spans[s->span] = (vta_span){.insn = o->insn,
                                           .stage = (uint8_t)which,
                                           .queue = (uint8_t)last,
                                           .ready = o->arrival,
                                           .start = m->now,
                                           .waited = m->now - had_work};
    s->row = s->offset = 0;
    s->work = 0;
    bool moves = o->cycles == 0 && o->rows > 0;
    s->phase = moves ? MOVES : ENDS;
    bool asks = which != VTA_STAGE_STORE || m->profile->row_latency;
    s->available = s->start + ISSUE + (asks ? m->options.latency : 0);
    s->end = s->start + (o->cycles ? o->cycles : ISSUE + o->pads);
}

static void end_op(model *m, enum vta_stage which)
{
    stage *s = &m->stage[which];
    const op *o = &s->ring[s->head];
    vta_stage_cycles *c = &m->report->stage[which];
    for (int flag = VTA_PUSH_PREV; flag <= VTA_PUSH_NEXT; flag++) {
        if (!(o->flags >> flag & 1))
            continue;
        uint64_t *tokens = &m->tokens[vta_token_queue_of(which, (enum vta_dep_flag)flag)];
        if (*tokens == 0)
            m->given[vta_token_queue_of(which, (enum vta_dep_flag)flag)] = m->now;
        if (*tokens < m->options.token_queue)
            (*tokens)++;
        else
            m->report->lost_tokens++;
    }
    uint64_t busy = o->cycles ? o->cycles : ISSUE + s->work + o->pads;
    c->busy += busy;
    c->wait_dram += s->end - s->start - busy;
    c->wait_token += m->now - s->end;
    m->report->spans[s->span].end = s->end;
    m->report->spans[s->span].work = busy;
    s->free = m->now;
    s->phase = WAITS;
    s->head = (s->head + 1) % m->ring_size;
    s->queued--;
}

/* --- fetch -------------------------------------------------------------------------------------------------------- */

/* A burst of instructions has come: they go to the queues one a cycle, as far as there is room. */
static vta_status queue_insns(model *m, vta_error *e)
{
    fetch *f = &m->fetch;
    vta_stage_cycles *c = &m->report->stage[VTA_STAGE_NONE];
    if (f->blocked)
        c->wait_token += m->now - f->clock;
    f->clock = max64(f->clock, m->now);
    f->blocked = 0;
    while (f->next < f->burst_end) {
        op o;
        enum vta_stage which = VTA_STAGE_NONE;
        vta_status status = decode(m, f->next, &o, &which, e);
        if (status != VTA_OK)
            return status;
        stage *s = &m->stage[which];
        if (s->queued == m->options.insn_queue) {
            f->blocked = which;
            return VTA_OK;
        }
        if (which == VTA_STAGE_COMPUTE && f->finish)
            return vta_fail(e, VTA_FAULT, "instruction %u stands behind finish", f->next);
        f->finish |= o.opcode == VTA_FINISH;
        o.arrival = ++f->clock;
        s->ring[(s->head + s->queued++) % m->ring_size] = o;
        c->busy++;
        f->next++;
    }
    m->report->spans[f->span].end = f->clock;
    return VTA_OK;
}

/* The next burst is asked for when all instructions of the one before are queued. */
static vta_status fetch_burst(model *m, vta_error *e)
{
    fetch *f = &m->fetch;
    vta_stage_cycles *c = &m->report->stage[VTA_STAGE_NONE];
    uint32_t per_burst = m->burst_bytes < VTA_INSN_BYTES ? 1 : m->burst_bytes / VTA_INSN_BYTES;
    f->burst_end = (uint32_t)min64(m->count, (uint64_t)f->next + per_burst);
    uint64_t beats = beats_of(m, 0, (f->burst_end - f->next) * VTA_INSN_BYTES);
    uint64_t cost = beats + m->options.command_cycles;
    f->span = m->report->n_spans++;
    m->report->spans[f->span] = (vta_span){
        .insn = f->next, .stage = VTA_STAGE_NONE, .beats = (uint32_t)beats, .ready = f->clock, .start = m->now};
    m->report->dram_beats += beats;
    c->wait_dram += m->now - f->clock;
    c->busy += cost;
    m->port_free[READ_PORT] = f->clock = m->now + cost;
    return queue_insns(m, e);
}

static bool fetch_done(const model *m)
{
    return m->fetch.next == m->count;
}

/* --- time --------------------------------------------------------------------------------------------------------- */

/* When an actor's next step can be made, given what has been done so far; NEVER: it waits for another. *rank orders
 * steps of one time: ends, then starts, then bursts by the memory's fixed priority (fetch, uop, inp, wgt, acc). */
static uint64_t next_step(const model *m, enum vta_stage which, uint32_t *rank)
{
    if (which == VTA_STAGE_NONE) {
        const fetch *f = &m->fetch;
        *rank = f->blocked ? 1 : 8;
        if (f->blocked)
            return m->stage[f->blocked].queued < m->options.insn_queue ? max64(m->now, f->clock) : NEVER;
        return fetch_done(m) ? NEVER : max64(f->clock + m->options.latency, m->port_free[READ_PORT]);
    }
    static const uint8_t priority[VTA_MEM_COUNT] = {
        [VTA_MEM_UOP] = 9,  [VTA_MEM_INP] = 10,      [VTA_MEM_WGT] = 11,
        [VTA_MEM_ACC] = 12, [VTA_MEM_ACC_8BIT] = 12, [VTA_MEM_OUT] = 13,
    };
    const stage *s = &m->stage[which];
    const op *o = &s->ring[s->head];
    switch (s->phase) {
    case WAITS:
        *rank = 2;
        if (s->queued == 0 || !tokens_there(m, which, o))
            return NEVER;
        return max64(m->now, max64(s->free, o->arrival));
    case MOVES:
        *rank = priority[o->memory];
        return max64(s->available, m->port_free[which == VTA_STAGE_STORE ? WRITE_PORT : READ_PORT]);
    case ENDS: *rank = 0; return room_for_tokens(m, which, o) ? max64(m->now, s->end) : NEVER;
    }
    return NEVER;
}

static vta_status step(model *m, enum vta_stage which, vta_error *e)
{
    if (which == VTA_STAGE_NONE)
        return m->fetch.blocked ? queue_insns(m, e) : fetch_burst(m, e);
    switch (m->stage[which].phase) {
    case WAITS: start_op(m, which); break;
    case MOVES: move_burst(m, which); break;
    case ENDS: end_op(m, which); break;
    }
    return VTA_OK;
}

static bool all_done(const model *m)
{
    for (int i = VTA_STAGE_LOAD; i < VTA_STAGE_COUNT; i++)
        if (m->stage[i].queued)
            return false;
    return fetch_done(m);
}

/* What one actor waits for, as a clause of the message; nothing when it has no more to do. */
static size_t describe_wait(const model *m, enum vta_stage which, char *out, size_t size)
{
    static const char *const operations[] = {
#define X(id, code, text) [code] = text,
        VTA_OPCODES(X)
#undef X
    };
    static const enum vta_stage neighbor[VTA_STAGE_COUNT][2] = {
        [VTA_STAGE_LOAD] = {VTA_STAGE_NONE, VTA_STAGE_COMPUTE},
        [VTA_STAGE_COMPUTE] = {VTA_STAGE_LOAD, VTA_STAGE_STORE},
        [VTA_STAGE_STORE] = {VTA_STAGE_COMPUTE, VTA_STAGE_NONE},
    };
    if (which == VTA_STAGE_NONE)
        return m->fetch.blocked ? (size_t)snprintf(out, size, "; fetch at instruction %u for room in the queue of %s",
                                                   m->fetch.next, stage_names[m->fetch.blocked])
                                : 0;
    const stage *s = &m->stage[which];
    if (s->queued == 0)
        return 0;
    const op *o = &s->ring[s->head];
    size_t n = (size_t)snprintf(out, size, "; %s at instruction %u (%s) for", stage_names[which], o->insn,
                                operations[o->opcode]);
    const char *join = "";
    for (int flag = 0; flag < VTA_DEP_FLAGS && n < size; flag++) {
        if (!(o->flags >> flag & 1))
            continue;
        uint64_t tokens = m->tokens[vta_token_queue_of(which, (enum vta_dep_flag)flag)];
        const char *what = NULL;
        if (s->phase == WAITS && flag <= VTA_POP_NEXT && tokens == 0)
            what = "a token from";
        else if (s->phase == ENDS && flag >= VTA_PUSH_PREV && tokens >= m->options.token_queue)
            what = "room for a token to";
        if (!what)
            continue;
        n += (size_t)snprintf(out + n, size - n, "%s %s %s", join, what, stage_names[neighbor[which][flag & 1]]);
        join = " and";
    }
    return n;
}

static vta_status deadlock(const model *m, vta_error *e)
{
    static const enum vta_stage order[] = {VTA_STAGE_LOAD, VTA_STAGE_COMPUTE, VTA_STAGE_STORE, VTA_STAGE_NONE};
    char text[360] = "";
    size_t n = 0;
    for (size_t i = 0; i < sizeof order / sizeof *order && n < sizeof text; i++)
        n += describe_wait(m, order[i], text + n, sizeof text - n);
    if (m->report->lost_tokens && n < sizeof text)
        snprintf(text + n, sizeof text - n, "; %llu tokens were lost at %u", (unsigned long long)m->report->lost_tokens,
                 m->options.token_queue);
    return vta_fail(e, VTA_DEADLOCK, "deadlock at cycle %llu%s", (unsigned long long)max64(m->now, m->fetch.clock),
                    text);
}

static vta_status run(model *m, vta_error *e)
{
    while (!all_done(m)) {
        uint64_t best = NEVER;
        uint32_t best_rank = 0;
        enum vta_stage which = VTA_STAGE_NONE;
        for (int i = 0; i < VTA_STAGE_COUNT; i++) {
            uint32_t rank = 0;
            uint64_t when = next_step(m, (enum vta_stage)i, &rank);
            if (when < best || (when == best && when != NEVER && rank < best_rank)) {
                best = when;
                best_rank = rank;
                which = (enum vta_stage)i;
            }
        }
        if (best == NEVER)
            return deadlock(m, e);
        if (best > MOST_CYCLES)
            return vta_fail(e, VTA_UNSUPPORTED, "the stream takes more than 2^62 cycles");
        m->now = best;
        vta_status status = step(m, which, e);
        if (status != VTA_OK)
            return status;
    }
    return m->fetch.finish ? VTA_OK
                           : vta_fail(e, VTA_BAD_ARGUMENT, "the stream of %u instructions has no finish", m->count);
}

/* --- entry -------------------------------------------------------------------------------------------------------- */

static bool power_of_two(uint32_t v, uint32_t most)
{
    return v != 0 && v <= most && (v & (v - 1)) == 0;
}

/* Options with the target's and the profile's values in place of zeroes. */
static vta_status resolve(const vta_config *c, const vta_cycle_options *o, model *m, vta_error *e)
{
    static const vta_cycle_options none;
    vta_cycle_options *r = &m->options;
    vta_target target = {0};
    *r = o ? *o : none;
    if ((unsigned)r->profile > VTA_CYCLE_HLS)
        return vta_fail(e, VTA_BAD_ARGUMENT, "there is no profile %u of the cycle model", (unsigned)r->profile);
    m->profile = &profiles[r->profile];
    if ((!r->bus_bits || !r->burst_beats) && !vta_target_find(c->target, &target))
        return vta_fail(e, VTA_BAD_CONFIG, "target '%s' is not known: give the bus width and the burst", c->target);
    r->bus_bits = r->bus_bits ? r->bus_bits : target.bus_bits;
    r->burst_beats = r->burst_beats ? r->burst_beats : target.burst_beats;
    r->latency = r->latency ? r->latency : DEFAULT_LATENCY;
    r->command_cycles = r->command_cycles ? r->command_cycles : m->profile->read_command;
    r->insn_queue = r->insn_queue ? r->insn_queue : DEFAULT_INSN_QUEUE;
    r->token_queue = r->token_queue ? r->token_queue : m->profile->token_queue;
    r->gemm_interval = r->gemm_interval ? r->gemm_interval : 1;
    r->unit_fill = r->unit_fill ? r->unit_fill : DEFAULT_FILL;
    m->alu_immediate = r->alu_interval ? r->alu_interval : m->profile->alu_immediate;
    m->alu_tensor = r->alu_interval ? r->alu_interval : m->profile->alu_tensor;
    if (!power_of_two(r->bus_bits, MAX_BUS_BITS) || r->bus_bits < 8)
        return vta_fail(e, VTA_BAD_ARGUMENT, "a bus of %u bits; it must be a power of two from 8 to %u", r->bus_bits,
                        MAX_BUS_BITS);
    if (!power_of_two(r->burst_beats, MAX_BURST_BEATS))
        return vta_fail(e, VTA_BAD_ARGUMENT, "bursts of %u beats; they must be a power of two up to %u", r->burst_beats,
                        MAX_BURST_BEATS);
    const uint32_t cycles[] = {r->latency,       r->command_cycles, r->gemm_interval,
                               m->alu_immediate, m->alu_tensor,     r->unit_fill};
    for (size_t i = 0; i < sizeof cycles / sizeof *cycles; i++)
        if (cycles[i] > MAX_OPTION_CYCLES)
            return vta_fail(e, VTA_BAD_ARGUMENT, "%u cycles; latency, command, intervals and fill are at most %u",
                            cycles[i], MAX_OPTION_CYCLES);
    m->bus_bytes = r->bus_bits / 8;
    m->burst_bytes = m->bus_bytes * r->burst_beats;
    return VTA_OK;
}

static vta_status prepare(model *m, vta_cycle_report *out, vta_error *e)
{
    for (int64_t i = 0; i <= VTA_ALU; i++)
        m->n_fields[i] = vta_insn_layout(&m->geometry, i, m->layout[i]);
    m->ring_size = (uint32_t)min64(m->options.insn_queue, m->count);
    size_t bursts = m->count; /* at most: a burst holds an instruction or more */
    out->spans = malloc((m->count + bursts) * sizeof *out->spans);
    op *rings = malloc(3 * (size_t)m->ring_size * sizeof *rings);
    for (uint32_t i = VTA_STAGE_LOAD; rings && i < VTA_STAGE_COUNT; i++)
        m->stage[i].ring = rings + (size_t)(i - 1) * m->ring_size;
    if (out->spans && rings)
        return VTA_OK;
    free(rings);
    return vta_fail(e, VTA_NO_MEMORY, "no memory for the timeline of %u instructions", m->count);
}

static void total(const model *m, vta_cycle_report *r)
{
    r->cycles = m->fetch.clock;
    for (int i = VTA_STAGE_LOAD; i < VTA_STAGE_COUNT; i++)
        r->cycles = max64(r->cycles, m->stage[i].free);
    r->stage[VTA_STAGE_NONE].idle = r->cycles - m->fetch.clock;
    for (int i = VTA_STAGE_LOAD; i < VTA_STAGE_COUNT; i++)
        r->stage[i].idle = r->cycles - m->stage[i].free;
}

vta_status vta_cycle_time_from(const vta_config *c, const vta_cycle_options *o, const vta_insn *insns, uint32_t count,
                               uint64_t tokens[VTA_TOKEN_QUEUES], vta_cycle_report *out, vta_error *e)
{
    model m = {.insns = insns, .count = count, .report = out};
    memset(out, 0, sizeof *out);
    vta_status status = vta_config_check(c, &m.geometry, e);
    if (status == VTA_OK)
        status = resolve(c, o, &m, e);
    if (status == VTA_OK && count == 0)
        status = vta_fail(e, VTA_BAD_ARGUMENT, "the stream of 0 instructions has no finish");
    if (status == VTA_OK)
        status = prepare(&m, out, e);
    if (status == VTA_OK) {
        memcpy(m.tokens, tokens, sizeof m.tokens);
        status = run(&m, e);
        total(&m, out);
        free(m.stage[VTA_STAGE_LOAD].ring);
    }
    if (status == VTA_OK)
        memcpy(tokens, m.tokens, sizeof m.tokens);
    else
        vta_cycle_release(out);
    return status;
}

vta_status vta_cycle_time(const vta_config *c, const vta_cycle_options *o, const vta_insn *insns, uint32_t count,
                          vta_cycle_report *out, vta_error *e)
{
    uint64_t tokens[VTA_TOKEN_QUEUES] = {0};
    return vta_cycle_time_from(c, o, insns, count, tokens, out, e);
}

void vta_cycle_release(vta_cycle_report *r)
{
    free(r->spans);
    memset(r, 0, sizeof *r);
}
