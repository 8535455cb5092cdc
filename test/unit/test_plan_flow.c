/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of random branches and loops, run on bytes: every operator mixes the bytes that it reads into those that it
 * writes. Where all values have memory of their own and in the memory of the plan the same must come out, whatever way
 * the jumps go and in whatever order the operators of a layer run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "abi/package.h"
#include "driver/pipeline.h"
#include "plan/plan.h"
#include "seeds.h"

enum { MOST_JUMPS = 60, MOST_BYTES = 200 };

/* --- making --- */

typedef struct maker {
    compiler *c;
    plan_flow flow;
    uint32_t seed, left; /* operators that may still be made */
    VEC(uint32_t) visible;
} maker;

static uint32_t rnd(uint32_t *state, uint32_t below)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % below;
}

static uint32_t add_value(maker *m, uint64_t bytes)
{
    plan_problem *p = m->flow.p;
    plan_value v = {.name = arena_printf(&m->c->mem, "v%u", p->values.len),
                    .storage = STORE_WORKSPACE,
                    .bytes = bytes,
                    .align = package_value_align(bytes),
                    .parent = -1};
    vec_push(&m->c->mem, &p->values, v);
    return p->values.len - 1;
}

static uint32_t any_value(maker *m)
{
    uint32_t back = 1 + rnd(&m->seed, m->visible.len < 8 ? m->visible.len : 8);
    return m->visible.data[m->visible.len - back];
}

/* Reads one or two values and writes `to`, or a new value. */
static uint32_t add_op(maker *m, uint32_t to, bool part)
{
    uint32_t n_in = 1 + rnd(&m->seed, 2), *args = arena_array(&m->c->mem, uint32_t, 3);
    plan_pair *pairs = arena_array(&m->c->mem, plan_pair, 2);
    plan_op op = {.name = part ? "part" : "whole", .args = args, .n_args = n_in + 1, .n_inputs = n_in, .extent = 1};
    for (uint32_t i = 0; i < n_in; i++) {
        args[i] = any_value(m);
        args[i] = args[i] == to ? 0 : args[i];
    }
    uint64_t like = m->flow.p->values.data[args[0]].bytes;
    bool is_new = to == UINT32_MAX;
    if (is_new)
        to = add_value(m, rnd(&m->seed, 2) ? like : 1 + rnd(&m->seed, MOST_BYTES));
    args[n_in] = to;
    for (uint32_t i = 0; i < n_in && !part; i++)
        if (m->flow.p->values.data[args[i]].bytes == m->flow.p->values.data[to].bytes)
            pairs[op.n_inplace++] = (plan_pair){n_in, i};
    op.inplace = pairs;
    flow_op(&m->flow, op);
    if (is_new)
        vec_push(&m->c->mem, &m->visible, to);
    m->left -= m->left > 0;
    return to;
}

static void add_block(maker *m, uint32_t depth);

static void add_if(maker *m, uint32_t depth)
{
    uint32_t made = add_value(m, 1 + rnd(&m->seed, MOST_BYTES)), jump = flow_if(&m->flow, any_value(m));
    for (uint32_t b = 0; b < 2; b++) {
        uint32_t before = m->visible.len;
        add_block(m, depth + 1);
        (void)add_op(m, made, false);
        m->visible.len = before;
        if (b == 0)
            jump = flow_else(&m->flow, jump);
    }
    flow_end_if(&m->flow, jump);
    vec_push(&m->c->mem, &m->visible, made);
}

/* Two values are carried, one of them byte by byte. */
static void add_loop(maker *m, uint32_t depth)
{
    uint32_t a = add_op(m, UINT32_MAX, false), b = add_op(m, UINT32_MAX, false), before = m->visible.len,
             jump = flow_loop(&m->flow, any_value(m));
    add_block(m, depth + 1);
    (void)add_op(m, a, false);
    add_block(m, depth + 1);
    (void)add_op(m, b, true);
    if (rnd(&m->seed, 2))
        add_block(m, depth + 1);
    m->visible.len = before;
    flow_end_loop(&m->flow, jump);
}

static void add_block(maker *m, uint32_t depth)
{
    uint32_t n = rnd(&m->seed, 5);
    for (uint32_t i = 0; i < n && m->left > 0; i++)
        switch (depth < 3 ? rnd(&m->seed, 5) : 2) {
        case 0: add_if(m, depth); break;
        case 1: add_loop(m, depth); break;
        default: (void)add_op(m, UINT32_MAX, false); break;
        }
}

static plan_problem *random_problem(compiler *c, uint32_t seed)
{
    maker m = {.c = c, .seed = seed, .left = 50};
    m.flow = (plan_flow){.a = &c->mem, .p = arena_new(&c->mem, plan_problem)};
    m.flow.p->workers = 1 + rnd(&m.seed, 4);
    vec_push(&c->mem, &m.visible, add_value(&m, 64));
    flow_op(&m.flow, (plan_op){.name = "whole", .args = arena_array(&c->mem, uint32_t, 1), .n_args = 1, .extent = 1});
    while (m.left > 0)
        add_block(&m, 0);
    (void)add_op(&m, UINT32_MAX, false);
    return m.flow.p;
}

/* --- running --- */

typedef struct machine {
    const plan *pl;
    uint8_t **at; /* bytes of each value */
    uint32_t hash, runs;
} machine;

static void run_op(machine *m, uint32_t n)
{
    const plan_op *op = &m->pl->problem->ops.data[n];
    uint32_t to = op->args[op->n_inputs], h = n * 2654435761u + 17;
    for (uint32_t i = 0; i < op->n_inputs; i++)
        for (uint64_t k = 0; k < m->pl->problem->values.data[op->args[i]].bytes; k++)
            h = (h ^ m->at[op->args[i]][k]) * 16777619u;
    uint64_t bytes = m->pl->problem->values.data[to].bytes;
    m->hash += h * (2 * n + 1); /* the order in a layer does not count */
    m->runs++;
    if (op->name[0] == 'p')
        m->at[to][h % bytes] = (uint8_t)(h >> 8);
    for (uint64_t k = 0; k < bytes && op->name[0] == 'w'; k++)
        m->at[to][k] = (uint8_t)((h += 0x9e3779b9u) >> 16);
}

/* Jumps go by the condition's first byte, MOST_JUMPS times at most. */
static void run_steps(machine *m, bool layers, bool backwards)
{
    const plan *pl = m->pl;
    const plan_problem *p = pl->problem;
    uint32_t jumps = 0;
    for (uint32_t k = 0; k < p->steps.len;) {
        const plan_step *s = &p->steps.data[k++];
        if (s->kind == PLAN_JUMP) {
            k = s->to;
        } else if (s->kind == PLAN_JUMP_IF_ZERO) {
            bool taken = m->at[s->value][0] % 3 == 0 || ++jumps > MOST_JUMPS;
            m->hash += m->at[s->value][0] * 31u;
            k = taken ? s->to : k;
        } else if (!layers) {
            for (uint32_t op = 0; op < p->ops.len; op++)
                if (p->ops.data[op].segment == s->to)
                    run_op(m, op);
        } else {
            for (uint32_t l = pl->segment_layer[s->to]; l < pl->segment_layer[s->to + 1]; l++)
                for (uint32_t i = 0; i < pl->layer_len[l]; i++)
                    run_op(m, pl->layers[l][backwards ? pl->layer_len[l] - 1 - i : i]);
        }
    }
}

static uint32_t run_planned(compiler *c, const plan *pl, bool own, bool backwards, uint32_t *out_runs)
{
    uint32_t n = pl->problem->values.len;
    machine m = {.pl = pl, .at = arena_array(&c->mem, uint8_t *, n)};
    uint8_t *all = arena_alloc(&c->mem, pl->workspace_bytes + 1, 64);
    memset(all, 0xAA, pl->workspace_bytes + 1);
    for (uint32_t v = 0; v < n; v++)
        m.at[v] = own ? arena_alloc(&c->mem, pl->problem->values.data[v].bytes, 64) : all + pl->places[v].offset;
    run_steps(&m, !own, backwards);
    *out_runs = m.runs;
    return m.hash;
}

static void random_flows(void **state)
{
    (void)state;
    const uint32_t problems = seeds(3, 16, 80);
    uint32_t jumps = 0, shared = 0, all_runs = 0;
    for (uint32_t seed = 1; seed <= problems; seed++) {
        compiler c;
        compiler_setup(&c);
        plan pl;
        plan_problem *p = random_problem(&c, seed);
        assert_true(plan_memory(&c, p, &pl));
        if (!plan_verify(&c, &pl))
            fail_msg("seed %u: %s", seed, diags_print(&c.diags, &c.mem));
        uint32_t runs = 0, runs_own = 0, want = run_planned(&c, &pl, true, false, &runs_own);
        for (uint32_t back = 0; back < 2; back++) {
            uint32_t got = run_planned(&c, &pl, false, back, &runs);
            if (got != want || runs != runs_own)
                fail_msg("seed %u: %u operators instead of %u, or other bytes", seed, runs, runs_own);
        }
        uint64_t sum = 0;
        for (uint32_t v = 0; v < p->values.len; v++)
            sum += p->values.data[v].bytes;
        shared += pl.workspace_bytes < sum;
        jumps += p->steps.len > 3;
        all_runs += runs > p->ops.len;
        compiler_free(&c);
    }
    assert_true(jumps > problems / 2 && shared > problems / 2 && all_runs > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_flows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
