/* SPDX-License-Identifier: Apache-2.0 */
/* The planner on random problems: every plan passes the verifier, keeps within its own bounds and is the same twice;
 * and the verifier finds plans that are wrong. */
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
#include "tir/build.h"
#include "seeds.h"

static uint32_t rnd(uint32_t *state, uint32_t below)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % below;
}

static uint32_t add_value(compiler *c, plan_problem *p, plan_storage storage, uint64_t bytes)
{
    plan_value v = {.name = arena_printf(&c->mem, "v%u", p->values.len),
                    .storage = storage,
                    .bytes = bytes,
                    .align = package_value_align(bytes),
                    .parent = -1};
    v.index = p->values.len; /* unique is enough */
    vec_push(&c->mem, &p->values, v);
    return p->values.len - 1;
}

/* Operators with one to three operands out of the values made so far, in-place pairs where sizes agree, sometimes
 * scratch, sometimes operands moved into a concatenation. */
static plan_problem *random_problem(compiler *c, uint32_t seed)
{
    uint32_t s = seed, n_ops = 1 + rnd(&s, 40);
    plan_problem *p = arena_new(&c->mem, plan_problem);
    p->workers = 1 + rnd(&s, 6);
    p->split_parts = rnd(&s, 4) != 0;
    add_value(c, p, rnd(&s, 2) ? STORE_INPUT : STORE_WORKSPACE, 1 + rnd(&s, 300));
    p->values.data[0].from_start = p->values.data[0].storage == STORE_WORKSPACE;
    for (uint32_t i = 0; i < n_ops; i++) {
        uint32_t n_in = 1 + rnd(&s, 3), n_out = 1 + (rnd(&s, 8) == 0);
        uint32_t *args = arena_array(&c->mem, uint32_t, n_in + n_out);
        for (uint32_t k = 0; k < n_in; k++) {
            uint32_t back = 1 + rnd(&s, p->values.len < 6 ? p->values.len : 6);
            args[k] = p->values.len - back;
        }
        VEC(plan_pair) pairs = {0};
        VEC(plan_distance) distances = {0};
        for (uint32_t k = 0; k < n_out; k++) {
            uint64_t like = p->values.data[args[0]].bytes, bytes = rnd(&s, 2)         ? like
                                                                   : rnd(&s, 20) == 0 ? 0
                                                                                      : 1 + rnd(&s, 1000);
            args[n_in + k] = add_value(c, p, rnd(&s, 15) == 0 ? STORE_OUTPUT : STORE_WORKSPACE, bytes);
            for (uint32_t q = 0; q < n_in; q++)
                if (p->values.data[args[q]].bytes == bytes && rnd(&s, 4) != 0)
                    vec_push(&c->mem, &pairs, ((plan_pair){n_in + k, q}));
            for (uint32_t q = 0; q < n_in && rnd(&s, 3) != 0; q++)
                vec_push(&c->mem, &distances,
                         ((plan_distance){n_in + k, q, rnd(&s, (uint32_t)bytes + 1),
                                          rnd(&s, (uint32_t)p->values.data[args[q]].bytes + 1)}));
        }
        plan_op op = {.name = arena_printf(&c->mem, "op%u", i),
                      .args = args,
                      .n_args = n_in + n_out,
                      .n_inputs = n_in,
                      .extent = 1 + rnd(&s, 100),
                      .work = 1 + rnd(&s, 1000000),
                      .inplace = pairs.data,
                      .n_inplace = pairs.len,
                      .distances = distances.data,
                      .n_distances = distances.len};
        if (rnd(&s, 5) == 0) {
            int64_t bytes = 1 + rnd(&s, 500);
            tir_scratch one = {tir_buffer_static(c, "scratch", DT_U8, 1, &bytes, SCOPE_GLOBAL), rnd(&s, 2) != 0};
            op.scratch = arena_copy(&c->mem, &one, sizeof one, _Alignof(tir_scratch));
            op.n_scratch = 1;
        }
        vec_push(&c->mem, &p->ops, op);
    }
    return p;
}

/* Some workspace values become parts of a new value that one more operator reads. */
static void concatenate(compiler *c, plan_problem *p, uint32_t seed)
{
    uint32_t s = seed, whole, n = p->values.len;
    uint64_t at = 0;
    VEC(uint32_t) chosen = {0};
    for (uint32_t v = 1; v < n; v++)
        if (p->values.data[v].storage == STORE_WORKSPACE && rnd(&s, 4) == 0)
            vec_push(&c->mem, &chosen, v);
    if (chosen.len == 0)
        return;
    whole = add_value(c, p, STORE_WORKSPACE, 0);
    for (uint32_t i = 0; i < chosen.len; i++) {
        p->values.data[chosen.data[i]].parent = (int32_t)whole;
        p->values.data[chosen.data[i]].parent_offset = at;
        at += p->values.data[chosen.data[i]].bytes;
    }
    p->values.data[whole].bytes = at;
    p->values.data[whole].align = package_value_align(at);
    uint32_t *args = arena_array(&c->mem, uint32_t, 2);
    args[0] = whole;
    args[1] = add_value(c, p, STORE_OUTPUT, 8);
    vec_push(&c->mem, &p->ops, ((plan_op){.name = "reader", .args = args, .n_args = 2, .n_inputs = 1, .extent = 1}));
}

static uint64_t sum_of(const plan *pl)
{
    const plan_problem *p = pl->problem;
    uint64_t sum = 0;
    for (uint32_t v = 0; v < p->values.len; v++)
        sum += p->values.data[v].parent < 0 && p->values.data[v].storage == STORE_WORKSPACE
                   ? p->values.data[v].bytes + 64
                   : 0;
    for (uint32_t i = 0; i < p->ops.len; i++)
        for (uint32_t k = 0; k < p->ops.data[i].n_scratch; k++)
            sum += plan_scratch_bytes(&p->ops.data[i], k, pl->tasks[i].parts) + 64;
    return sum;
}

static void random_problems(void **state)
{
    (void)state;
    uint64_t bound = 0, got = 0;
    for (uint32_t seed = 1; seed <= seeds(3, 6, 40); seed++) {
        compiler c;
        compiler_setup(&c);
        plan first, second;
        plan_problem *p = random_problem(&c, seed), *again = random_problem(&c, seed);
        if (seed % 2) {
            concatenate(&c, p, seed);
            concatenate(&c, again, seed);
        }
        assert_true(plan_memory(&c, p, &first));
        if (!plan_verify(&c, &first))
            fail_msg("seed %u: %s", seed, diags_print(&c.diags, &c.mem));
        assert_true(first.workspace_bytes <= sum_of(&first));
        bound += first.lower_bound_bytes;
        got += first.workspace_bytes;
        for (uint32_t i = 0; i < p->ops.len; i++)
            assert_in_range(first.tasks[i].parts, 1, p->split_parts ? 4 * p->workers : 1);
        writer a, b;
        writer_init(&a, &c.mem);
        writer_init(&b, &c.mem);
        assert_true(plan_memory(&c, again, &second));
        plan_print(&a, &first);
        plan_print(&b, &second);
        assert_string_equal(a.data, b.data);
        compiler_free(&c);
    }
    assert_true(got < 2 * bound); /* scratch included, and 1-byte values beside 64-byte alignments */
}

/* Each damage must be seen by the verifier. */
static plan *good_plan(compiler *c, uint32_t seed)
{
    plan *pl = arena_new(&c->mem, plan);
    assert_true(plan_memory(c, random_problem(c, seed), pl));
    assert_true(plan_verify(c, pl));
    return pl;
}

static bool is_read_twice(const plan_op *op, uint32_t value)
{
    uint32_t reads = 0;
    for (uint32_t i = 0; i < op->n_inputs; i++)
        reads += op->args[i] == value;
    return reads > 1;
}

/* Each result that may overlap an operand, moved as near as it may be and then a byte nearer, which must be seen. The
 * number of those that could be moved so. */
static uint32_t check_distances(compiler *c, plan *pl)
{
    uint32_t seen = 0;
    for (uint32_t i = 0; i < pl->problem->ops.len; i++) {
        const plan_op *op = &pl->problem->ops.data[i];
        for (uint32_t k = 0; k < op->n_distances; k++) {
            const plan_distance *d = &op->distances[k];
            const uint32_t out = op->args[d->out], in = op->args[d->in];
            const uint64_t from = pl->places[in].offset, was = pl->places[out].offset;
            const uint64_t align = pl->problem->values.data[out].align;
            if (d->above + d->below <= 1 || pl->problem->values.data[out].bytes == 0 || /* any place is allowed */
                pl->problem->values.data[in].storage != STORE_WORKSPACE ||
                pl->problem->values.data[out].storage != STORE_WORKSPACE || is_read_twice(op, in))
                continue;
            pl->problem->values.data[out].align = 1;
            for (uint32_t side = 0; side < 2; side++) {
                const uint64_t most = side ? d->above : d->below;
                const uint64_t bytes = pl->problem->values.data[side ? in : out].bytes;
                if (most == 0 || most > bytes || (!side && d->below > from)) /* beside each other all the same */
                    continue;
                pl->places[out].offset = side ? from + d->above : from - d->below;
                const bool fits = plan_verify(c, pl);
                pl->places[out].offset += side ? UINT64_MAX : 1;
                if (fits)
                    assert_false(plan_verify(c, pl));
                seen += fits;
            }
            pl->places[out].offset = was;
            pl->problem->values.data[out].align = align;
        }
    }
    return seen;
}

/* Puts back what a damage changed: plans take long. */
typedef struct undamaged {
    plan whole;
    plan_task *tasks;
    plan_place *places;
} undamaged;

static undamaged copy_plan(compiler *c, const plan *pl)
{
    const size_t ops = pl->problem->ops.len, values = pl->problem->values.len;
    return (undamaged){*pl, arena_copy(&c->mem, pl->tasks, ops * sizeof *pl->tasks, _Alignof(plan_task)),
                       arena_copy(&c->mem, pl->places, values * sizeof *pl->places, _Alignof(plan_place))};
}

static bool is_damaged(compiler *c, plan *pl, const undamaged *u)
{
    const bool seen = !plan_verify(c, pl);
    memcpy(pl->tasks, u->tasks, pl->problem->ops.len * sizeof *pl->tasks);
    memcpy(pl->places, u->places, pl->problem->values.len * sizeof *pl->places);
    pl->workspace_bytes = u->whole.workspace_bytes;
    return seen;
}

static void verifier_finds_damage(void **state)
{
    (void)state;
    const uint32_t problems = seeds(5, 8, 20);
    uint32_t layers = 0, beyond = 0, parts = 0, overlaps = 0, distances = 0, moved = 0;
    for (uint32_t seed = 1; seed <= problems; seed++) {
        compiler c;
        compiler_setup(&c);
        plan *pl = good_plan(&c, seed);
        const undamaged u = copy_plan(&c, pl);
        for (uint32_t i = 0; i < pl->problem->ops.len; i++)
            pl->tasks[i].layer = 0;
        layers += is_damaged(&c, pl, &u);
        if (pl->workspace_bytes > 0) {
            pl->workspace_bytes--;
            beyond += is_damaged(&c, pl, &u);
        }
        pl->tasks[0].parts = 0;
        parts += is_damaged(&c, pl, &u);
        for (uint32_t v = 0; v < pl->problem->values.len; v++)
            pl->places[v].offset = 0;
        overlaps += is_damaged(&c, pl, &u);
        moved += check_distances(&c, pl);
        assert_true(plan_verify(&c, pl));
        for (uint32_t i = 0; i < pl->problem->ops.len; i++)
            pl->problem->ops.data[i].n_distances = 0;
        distances += is_damaged(&c, pl, &u);
        compiler_free(&c);
    }
    assert_true(layers > problems * 3 / 4); /* some problems have no dependency at all, some plans no workspace */
    assert_true(beyond > problems * 3 / 4);
    assert_int_equal(parts, problems);
    assert_true(overlaps > problems * 2 / 3);
    assert_true(moved > 0);
    assert_in_range(distances, problems / 5, problems); /* operators in one part, whose operands end */
}

/* --- orders against all orders --- */

#define MOST_OPS 10u

typedef struct walker {
    const plan_problem *p;
    bool done[MOST_OPS];
    uint64_t best;
} walker;

/* Not before all that made its operands. */
static bool is_ready(const walker *x, uint32_t op)
{
    const plan_op *o = &x->p->ops.data[op];
    for (uint32_t i = 0; i < o->n_inputs; i++)
        for (uint32_t w = 0; w < x->p->ops.len; w++)
            for (uint32_t k = x->p->ops.data[w].n_inputs; k < x->p->ops.data[w].n_args; k++)
                if (x->p->ops.data[w].args[k] == o->args[i] && !x->done[w])
                    return false;
    return true;
}

/* Somebody who has run, or has not run yet, touches the value; `op` does not count. */
static bool is_touched(const walker *x, uint32_t value, bool done, uint32_t op)
{
    for (uint32_t w = 0; w < x->p->ops.len; w++)
        for (uint32_t k = 0; k < x->p->ops.data[w].n_args && w != op && x->done[w] == done; k++)
            if (x->p->ops.data[w].args[k] == value)
                return true;
    return false;
}

static bool is_here(const walker *x, uint32_t value)
{
    return x->p->values.data[value].storage == STORE_WORKSPACE && is_touched(x, value, true, UINT32_MAX) &&
           is_touched(x, value, false, UINT32_MAX);
}

static uint64_t bytes_while(const walker *x, uint32_t op)
{
    const plan_op *o = &x->p->ops.data[op];
    uint64_t sum = 0;
    bool given[64] = {false}, got[64] = {false};
    for (uint32_t v = 0; v < x->p->values.len; v++) {
        bool mine = false;
        for (uint32_t k = 0; k < o->n_args; k++)
            mine |= o->args[k] == v;
        if (x->p->values.data[v].storage == STORE_WORKSPACE && (mine || is_here(x, v)))
            sum += x->p->values.data[v].bytes;
    }
    for (uint32_t k = 0; k < o->n_inplace; k++) {
        uint32_t from = o->args[o->inplace[k].in], to = o->args[o->inplace[k].out];
        if (x->p->values.data[from].storage != STORE_WORKSPACE || x->p->values.data[to].storage != STORE_WORKSPACE ||
            given[from] || got[to] || is_touched(x, from, false, op))
            continue;
        given[from] = got[to] = true;
        sum -= x->p->values.data[to].bytes;
    }
    for (uint32_t k = 0; k < o->n_scratch; k++)
        sum += plan_scratch_bytes(o, k, 1);
    return sum;
}

static void walk_orders(walker *x, uint32_t n_done, uint64_t peak)
{
    if (n_done == x->p->ops.len)
        x->best = peak;
    for (uint32_t op = 0; op < x->p->ops.len && n_done < x->p->ops.len; op++) {
        if (x->done[op] || !is_ready(x, op))
            continue;
        uint64_t bytes = bytes_while(x, op);
        bytes = bytes > peak ? bytes : peak;
        if (bytes >= x->best)
            continue;
        x->done[op] = true;
        walk_orders(x, n_done + 1, bytes);
        x->done[op] = false;
    }
}

/* Values of whole lines, so that alignment takes nothing; each operator reads one or two of the last eight, all of
 * them pairs where sizes agree. */
static plan_problem *random_dag(compiler *c, uint32_t seed)
{
    uint32_t s = seed;
    plan_problem *p = arena_new(&c->mem, plan_problem);
    p->workers = 1;
    add_value(c, p, STORE_INPUT, 64);
    for (uint32_t i = 0; i < MOST_OPS; i++) {
        uint32_t n_in = i < 2 ? 1 : 1 + rnd(&s, 2), *args = arena_array(&c->mem, uint32_t, n_in + 1);
        VEC(plan_pair) pairs = {0};
        uint32_t back = p->values.len < 8 ? p->values.len : 8;
        for (uint32_t k = 0; k < n_in; k++)
            args[k] = p->values.len - 1 - rnd(&s, back);
        args[n_in] = add_value(c, p, STORE_WORKSPACE, 64 * (1 + rnd(&s, 12)));
        for (uint32_t k = 0; k < n_in; k++)
            if (p->values.data[args[k]].bytes == p->values.data[args[n_in]].bytes)
                vec_push(&c->mem, &pairs, ((plan_pair){n_in, k}));
        plan_op op = {.name = "op", .args = args, .n_args = n_in + 1, .n_inputs = n_in, .extent = 1};
        op.inplace = pairs.data;
        op.n_inplace = pairs.len;
        if (rnd(&s, 4) == 0) {
            int64_t bytes = 64 * (1 + (int64_t)rnd(&s, 6));
            tir_scratch one = {tir_buffer_static(c, "scratch", DT_U8, 1, &bytes, SCOPE_GLOBAL), false};
            op.scratch = arena_copy(&c->mem, &one, sizeof one, _Alignof(tir_scratch));
            op.n_scratch = 1;
        }
        vec_push(&c->mem, &p->ops, op);
    }
    return p;
}

static void orders_are_the_least(void **state)
{
    (void)state;
    uint32_t worse = 0;
    for (uint32_t seed = 1; seed <= seeds(3, 6, 40); seed++) {
        compiler c;
        compiler_setup(&c);
        plan pl;
        plan_problem *p = random_dag(&c, seed);
        walker x = {.p = p, .best = UINT64_MAX};
        walk_orders(&x, 0, 0);
        assert_true(plan_memory(&c, p, &pl));
        assert_true(plan_verify(&c, &pl));
        if (pl.lower_bound_bytes != x.best)
            fail_msg("seed %u: bound %llu, least %llu", seed, (unsigned long long)pl.lower_bound_bytes,
                     (unsigned long long)x.best);
        worse += pl.workspace_bytes != x.best;
        compiler_free(&c);
    }
    assert_true(worse <= 2); /* gaps between values of different lives */
}

static void alignment(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes, align;
    } rows[] = {{0, 1}, {1, 1}, {2, 2}, {3, 2}, {4, 4}, {7, 4}, {63, 32}, {64, 64}, {65, 64}, {1u << 30, 64}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(package_value_align(rows[i].bytes), rows[i].align);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(alignment), cmocka_unit_test(random_problems),
                                       cmocka_unit_test(verifier_finds_damage),
                                       cmocka_unit_test(orders_are_the_least)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
