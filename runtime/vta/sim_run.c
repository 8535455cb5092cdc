/* sim_run.c: streams: three stages with queues of their own, connected by tokens. For each instruction, a random number
 * from options.seed chooses the stage that goes on, and for how long. Correct streams give the same results in every
 * order. A stream that lacks a token gives other results with some seeds.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>

static bool enqueue(sim_queue *q, uint32_t insn)
{
    if (q->len == q->cap) {
        uint32_t cap = q->cap ? 2 * q->cap : 256;
        uint32_t *p = realloc(q->insn, cap * sizeof *p);
        if (!p)
            return false;
        q->insn = p;
        q->cap = cap;
    }
    q->insn[q->len++] = insn;
    return true;
}

/* Sorts the stream into the stages' queues. */
static vta_status dispatch(vta_sim *s, const vta_insn *insns, uint32_t count, vta_error *e)
{
    bool finish = false;
    for (int q = 0; q < VTA_STAGE_COUNT; q++)
        s->queue[q].len = s->queue[q].next = 0;
    for (uint32_t i = 0; i < count; i++) {
        vta_fields f;
        sim_at at = {i, &f, e};
        if (!vta_sim_decode(s, &insns[i], &f))
            return vta_sim_fault(&at, VTA_FAULT, "there is no operation code %d", (int)f.opcode);
        finish |= f.opcode == VTA_FINISH;
        if (!enqueue(&s->queue[vta_stage_of(&f)], i))
            return vta_fail(e, VTA_NO_MEMORY, "no memory for queues of %u instructions", count);
    }
    if (!finish)
        return vta_fail(e, VTA_BAD_ARGUMENT, "the stream of %u instructions has no finish", count);
    return VTA_OK;
}

/* The token counters that a stage's flags name. -1: no such neighbor. */
typedef struct token_ends {
    int pop_prev, pop_next, push_prev, push_next;
} token_ends;

static token_ends ends_of(enum vta_stage stage)
{
    switch (stage) {
    case VTA_STAGE_LOAD: return (token_ends){-1, SIM_G2L, -1, SIM_L2G};
    case VTA_STAGE_COMPUTE: return (token_ends){SIM_L2G, SIM_S2G, SIM_G2L, SIM_G2S};
    case VTA_STAGE_STORE: return (token_ends){SIM_G2S, -1, SIM_S2G, -1};
    case VTA_STAGE_NONE:
    case VTA_STAGE_COUNT: break;
    }
    return (token_ends){-1, -1, -1, -1};
}

/* The four flags, in every instruction's word 0. */
static bool flag(const vta_insn *insn, uint32_t bit)
{
    return insn->word[0] >> bit & 1u;
}

enum { POP_PREV = 3, POP_NEXT = 4, PUSH_PREV = 5, PUSH_NEXT = 6 };

static bool has_tokens(const vta_sim *s, enum vta_stage stage, const vta_insn *insn)
{
    const token_ends t = ends_of(stage);
    return (!flag(insn, POP_PREV) || t.pop_prev < 0 || s->tokens[t.pop_prev] > 0) &&
           (!flag(insn, POP_NEXT) || t.pop_next < 0 || s->tokens[t.pop_next] > 0);
}

static void pop_tokens(vta_sim *s, enum vta_stage stage, const vta_insn *insn)
{
    const token_ends t = ends_of(stage);
    if (flag(insn, POP_PREV) && t.pop_prev >= 0)
        s->tokens[t.pop_prev]--;
    if (flag(insn, POP_NEXT) && t.pop_next >= 0)
        s->tokens[t.pop_next]--;
}

static void push_tokens(vta_sim *s, enum vta_stage stage, const vta_insn *insn)
{
    const token_ends t = ends_of(stage);
    if (flag(insn, PUSH_PREV) && t.push_prev >= 0)
        s->tokens[t.push_prev]++;
    if (flag(insn, PUSH_NEXT) && t.push_next >= 0)
        s->tokens[t.push_next]++;
}

static uint32_t opcode(const vta_insn *insn)
{
    return (uint32_t)(insn->word[0] & 7u);
}

/* Whether a stage can run its next instruction. FINISH waits for the other stages. */
static bool can_go_on(const vta_sim *s, enum vta_stage stage, const vta_insn *insns)
{
    const sim_queue *q = &s->queue[stage];
    const vta_insn *insn = q->next < q->len ? &insns[q->insn[q->next]] : NULL;
    return insn && opcode(insn) != VTA_FINISH && has_tokens(s, stage, insn);
}

/* Runs instructions of a stage: as many as `most`, or until it cannot go on. */
static vta_status run_stage(vta_sim *s, enum vta_stage stage, const vta_insn *insns, uint32_t most, vta_error *e)
{
    sim_queue *q = &s->queue[stage];
    for (uint32_t i = 0; i < most && can_go_on(s, stage, insns); i++) {
        const vta_insn *insn = &insns[q->insn[q->next]];
        pop_tokens(s, stage, insn);
        vta_status status = vta_sim_execute(s, insn, q->insn[q->next], e);
        if (status != VTA_OK)
            return status;
        push_tokens(s, stage, insn);
        q->next++;
    }
    return VTA_OK;
}

static uint32_t next_random(vta_sim *s)
{
    s->random = s->random * 1664525u + 1013904223u;
    return s->random >> 16;
}

/* One line per stage: what it waits for. */
static vta_status deadlock(const vta_sim *s, const vta_insn *insns, vta_error *e)
{
    static const char *const stages[] = {"", "load", "compute", "store"};
    static const char *const from_prev[] = {"", "", "load", "compute"}, *const from_next[] = {"", "compute", "store",
                                                                                              ""};
    char text[300];
    size_t n = 0;
    text[0] = 0;
    for (int stage = VTA_STAGE_LOAD; stage <= VTA_STAGE_STORE; stage++) {
        const sim_queue *q = &s->queue[stage];
        const token_ends t = ends_of((enum vta_stage)stage);
        vta_fields f;
        if (q->next == q->len) {
            n += (size_t)snprintf(text + n, sizeof text - n, "; %s has no more", stages[stage]);
            continue;
        }
        const vta_insn *insn = &insns[q->insn[q->next]];
        vta_sim_decode(s, insn, &f);
        bool prev = f.pop_prev_dep && t.pop_prev >= 0 && s->tokens[t.pop_prev] == 0;
        bool next = f.pop_next_dep && t.pop_next >= 0 && s->tokens[t.pop_next] == 0;
        n += (size_t)snprintf(text + n, sizeof text - n, "; %s waits at instruction %u (%s) for %s%s%s", stages[stage],
                              q->insn[q->next], vta_sim_insn_name(&f), prev ? from_prev[stage] : "",
                              prev && next ? " and " : "",
                              next                         ? from_next[stage]
                              : prev                       ? ""
                              : opcode(insn) == VTA_FINISH ? "the other stages"
                                                           : "nothing");
    }
    return vta_fail(e, VTA_DEADLOCK, "no stage can go on%s", text);
}

/* What FINISH left behind in the compute queue. */
static vta_status after_finish(vta_sim *s, const vta_insn *insns, vta_error *e)
{
    sim_queue *q = &s->queue[VTA_STAGE_COMPUTE];
    const vta_insn *insn = &insns[q->insn[q->next]];
    pop_tokens(s, VTA_STAGE_COMPUTE, insn);
    vta_status status = vta_sim_execute(s, insn, q->insn[q->next++], e);
    push_tokens(s, VTA_STAGE_COMPUTE, insn);
    if (status == VTA_OK && q->next < q->len)
        return vta_fail(e, VTA_FAULT, "instruction %u stands behind finish", q->insn[q->next]);
    return status;
}

/* Turns until no stage can go on. Three in four are one instruction long, so that what is not ordered by tokens comes
 * in many orders; the others last until the stage blocks, so that a stage also runs far ahead. */
static vta_status take_turns(vta_sim *s, const vta_insn *insns, vta_error *e)
{
    for (;;) {
        const uint32_t drawn = next_random(s), most = drawn / 3 % 4 ? 1 : UINT32_MAX;
        enum vta_stage stage = VTA_STAGE_NONE;
        for (uint32_t i = 0; i < 3 && stage == VTA_STAGE_NONE; i++) {
            enum vta_stage next = (enum vta_stage)(VTA_STAGE_LOAD + (drawn + i) % 3);
            stage = can_go_on(s, next, insns) ? next : VTA_STAGE_NONE;
        }
        if (stage == VTA_STAGE_NONE)
            return VTA_OK;
        vta_status status = run_stage(s, stage, insns, most, e);
        if (status != VTA_OK)
            return status;
    }
}

static vta_status run_stream(vta_sim *s, const vta_insn *insns, uint32_t count, vta_error *e)
{
    vta_status status = dispatch(s, insns, count, e);
    const sim_queue *q = s->queue;
    if (status == VTA_OK)
        status = take_turns(s, insns, e);
    if (status != VTA_OK)
        return status;
    const sim_queue *compute = &q[VTA_STAGE_COMPUTE];
    const vta_insn *head = compute->next < compute->len ? &insns[compute->insn[compute->next]] : NULL;
    if (q[VTA_STAGE_LOAD].next < q[VTA_STAGE_LOAD].len || q[VTA_STAGE_STORE].next < q[VTA_STAGE_STORE].len || !head ||
        opcode(head) != VTA_FINISH || !has_tokens(s, VTA_STAGE_COMPUTE, head))
        return deadlock(s, insns, e);
    return after_finish(s, insns, e);
}

vta_status vta_sim_run_within(vta_sim *s, const vta_insn *insns, uint32_t count, uint64_t most_work, vta_error *e)
{
    memset(s->work, 0, sizeof s->work);
    s->most_work = most_work;
    vta_status status = run_stream(s, insns, count, e);
    s->most_work = UINT64_MAX;
    return status;
}

vta_status vta_sim_run(vta_sim *s, const vta_insn *insns, uint32_t count, vta_error *e)
{
    return vta_sim_run_within(s, insns, count, UINT64_MAX, e);
}

void vta_sim_tokens(const vta_sim *s, vta_tokens *out)
{
    const uint32_t *t = s->tokens;
    *out = (vta_tokens){(int32_t)t[SIM_L2G], (int32_t)t[SIM_G2L], (int32_t)t[SIM_S2G], (int32_t)t[SIM_G2S]};
}
