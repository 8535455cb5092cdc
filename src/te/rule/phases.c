/* SPDX-License-Identifier: Apache-2.0 */
/* Rows whose elements read at a quotient of their place: an enlarged picture, a depth that goes to space. Cut by the
 * divisor, with the few places of each part written out, the quotient is the number of the part, and what repeats with
 * the remainder is a constant. A C compiler then sees neighbors, which it puts into lanes. A row that repeats another
 * one is cut by the length of that: each repetition is a copy, without a remainder for each element. */
#include "te/rule/rule.h"
#include "tir/walk.h"

#define MOST_PHASES 8

typedef struct phase_search {
    const tir_var *v;
    int64_t period; /* 0: there is none that is short */
    int64_t length; /* of what the row itself repeats; 0: nothing */
} phase_search;

static int64_t greatest_divisor(int64_t a, int64_t b)
{
    return b == 0 ? a : greatest_divisor(b, a % b);
}

static void note_divisor(void *ctx, tir_expr_ref e)
{
    phase_search *x = ctx;
    int64_t d = 0;
    if (e->kind != TIR_BINOP || (e->op != TIR_FLOORDIV && e->op != TIR_FLOORMOD) || !tir_is_int(e->args[1], &d) ||
        d < 2 || x->period == 0 || !tir_uses_var(e->args[0], x->v))
        return;
    if (e->op == TIR_FLOORMOD && e->args[0]->kind == TIR_VAR)
        x->length = d;
    x->period = d > MOST_PHASES ? 0 : x->period / greatest_divisor(x->period, d) * d;
    if (x->period > MOST_PHASES)
        x->period = 0;
}

bool te_cut_phases(te_sched *s, const te_node *n)
{
    if (n->kind != TE_COMPUTE || n->n_axes == 0 || n->n_reduce > 0)
        return false;
    const uint32_t inner = n->n_axes - 1;
    phase_search x = {n->axes[inner]->var, 1, 0};
    for (uint32_t k = 0; k < n->n_outputs; k++)
        tir_visit_expr(n->body[k], note_divisor, &x);
    int64_t extent = te_axis_extent(n, inner);
    if (x.length > MOST_PHASES && extent % x.length == 0) {
        te_sched_split(s, n->name, te_axis_name(n, inner), x.length, "again", "place");
        return true;
    }
    if (x.period < 2 || extent % x.period != 0 || extent < 2 * x.period)
        return false;
    te_sched_split(s, n->name, te_axis_name(n, inner), x.period, "part", "phase");
    te_sched_annotate(s, TE_UNROLL, n->name, "phase");
    return true;
}
