/* SPDX-License-Identifier: Apache-2.0 */
/* The space of a kernel: its rule, asked for every register tile, and splits with other factors. */
#include "tune/space.h"

#include <stdlib.h>
#include <string.h>

#include "te/from_graph.h"
#include "te/rule/rule.h"
#include "te/text.h"
#include "type/target.h"

enum { MOST_VECTORS = 4, MOST_ROWS = 28, LEAST_STEPS = 256, MOST_STEPS = 8192 };

static const char *print_schedule(compiler *c, const te_sched *s)
{
    writer w;
    writer_init(&w, &c->mem);
    te_sched_print(&w, s);
    return w.data ? w.data : "";
}

/* Two ways to one schedule count once, with the lesser cost. */
static void add(compiler *c, tune_space *space, const char *schedule, double cost)
{
    for (uint32_t i = 0; i < space->candidates.len; i++) {
        tune_candidate *x = &space->candidates.data[i];
        if (strcmp(x->schedule, schedule) == 0) {
            x->cost = cost < x->cost ? cost : x->cost;
            return;
        }
    }
    vec_push(&c->mem, &space->candidates, ((tune_candidate){schedule, cost}));
}

static bool add_tiles(compiler *c, const prog_kernel *k, tune_space *out)
{
    for (uint32_t v = 1; v <= MOST_VECTORS; v++)
        for (uint32_t r = 1; r <= MOST_ROWS && v * r + v + 1 <= k->target->vector_regs; r++) {
            struct target t = *k->target;
            te_sched *s = NULL;
            t.tile_vectors = v;
            t.tile_rows = r;
            if (!te_schedule_graph(c, k->func, k->node, &t, NULL, &s))
                return false;
            add(c, out, print_schedule(c, s), te_step_cost(k->target, v, r) / (double)(v * r));
        }
    return true;
}

/* The rule's tile with sums of blocks of the reduction, and of all of it. */
static bool add_blocks(compiler *c, const prog_kernel *k, double cost, tune_space *out)
{
    for (uint32_t steps = LEAST_STEPS; steps <= MOST_STEPS; steps *= 2) {
        struct target t = *k->target;
        te_sched *s = NULL;
        t.tile_steps = steps < MOST_STEPS ? steps : UINT32_MAX;
        if (!te_schedule_graph(c, k->func, k->node, &t, NULL, &s))
            return false;
        add(c, out, print_schedule(c, s), cost);
    }
    return true;
}

static bool is_vectorized(const te_sched *s, const te_prim *split)
{
    for (uint32_t i = 0; i < s->prims.len; i++) {
        const te_prim *p = &s->prims.data[i];
        if (p->kind == TE_VECTORIZE && strcmp(p->u.vectorize.stage, split->u.split.stage) == 0 &&
            strcmp(p->u.vectorize.axis, split->u.split.inner) == 0)
            return true;
    }
    return false;
}

/* Splits of the rule's choice, each with half its factor and with twice that. Lanes stay as they are. */
static void add_factors(compiler *c, te_sched *s, double cost, tune_space *out)
{
    for (uint32_t i = 0; i < s->prims.len; i++) {
        te_prim *p = &s->prims.data[i];
        if (p->kind != TE_SPLIT || is_vectorized(s, p))
            continue;
        const int64_t factor = p->u.split.by.n;
        if (factor >= 2) {
            p->u.split.by.n = factor / 2;
            add(c, out, print_schedule(c, s), cost);
        }
        p->u.split.by.n = 2 * factor;
        add(c, out, print_schedule(c, s), cost);
        p->u.split.by.n = factor;
    }
}

static int by_cost(const void *x, const void *y)
{
    const tune_candidate *a = x, *b = y;
    return a->cost < b->cost ? -1 : a->cost > b->cost ? 1 : strcmp(a->schedule, b->schedule);
}

bool tune_space_of(compiler *c, const prog_kernel *k, uint32_t most, tune_space *out)
{
    te_sched *rule = NULL;
    writer w;
    *out = (tune_space){0};
    writer_init(&w, &c->mem);
    if (!te_schedule_graph(c, k->func, k->node, k->target, NULL, &rule))
        return false;
    te_print(&w, rule->g);
    out->computation = w.data;
    add(c, out, print_schedule(c, rule), 0);
    if (!add_tiles(c, k, out))
        return false;
    const uint32_t tiles = out->candidates.len; /* one: no tile decides anything */
    double best = 0;
    for (uint32_t i = 1; i < tiles; i++)
        best = best == 0 || out->candidates.data[i].cost < best ? out->candidates.data[i].cost : best;
    if (!add_blocks(c, k, best, out))
        return false;
    add_factors(c, rule, best, out);
    if (out->candidates.len > 1) /* the rule's own choice stays the first */
        qsort(out->candidates.data + 1, out->candidates.len - 1u, sizeof *out->candidates.data, by_cost);
    out->candidates.len = out->candidates.len < most ? out->candidates.len : most > 0 ? most : 1;
    return true;
}
