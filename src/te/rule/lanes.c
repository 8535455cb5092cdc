/* SPDX-License-Identifier: Apache-2.0 */
/* Rows in vector lanes: which computations are float arithmetic that vectors do well, and how a row and the sum of a
 * row are cut into lanes. A sum has PARTIAL sums side by side whatever the vector's width, so that its order, and with
 * it every bit of the result, is the same for vectors of 4, 8 and 16 lanes and for any number of workers. */
#include "te/extreme.h"
#include "te/inline.h"
#include "te/rule/rule.h"
#include "tir/pass.h"
#include "tir/walk.h"
#include "type/target.h"

#include <string.h>

#define NARROW_LANES 4 /* of Cortex-M's vectors; its other code is of a processor without them */
#define PARTIAL 16 /* sums side by side */
#define LONG    4096 /* elements of a row that takes more of them */
#define LONG_ROW 128 /* elements of a row among others, at whose end some lanes have nothing to do */
#define LONG_EXTREME 512 /* the same for extremes, each of which waits for a comparison and a choice */
#define MOST_WIDE 8 /* lanes of f64, of which gcc takes no more for a vector without a note */
#define CHAINS  4  /* vectors of extremes */
#define FEW     4  /* of them, when they are combined */

static bool is_vector_call(tir_op op)
{
    return op == TIR_APART || op == TIR_SQRT || op == TIR_FABS || tir_expands_math(op, 2);
}

static bool is_half_cast(tir_expr_ref e)
{
    const dtype to = e->type.dt, from = e->kind == TIR_CAST ? e->args[0]->type.dt : to;
    return from != to && (from == DT_F16 || from == DT_F32) && (to == DT_F16 || to == DT_F32);
}

static bool is_arithmetic(tir_expr_ref e)
{
    if (e->kind == TIR_BINOP)
        return (tir_op_is_compare(e->op) ? e->args[0]->type.dt : e->type.dt) == DT_F32;
    return e->type.dt == DT_F32 && (e->kind == TIR_SELECT || (e->kind == TIR_CALL && is_vector_call(e->op)));
}

/* Without what does not depend on the lane (NULL: everything does) and without indices. `halves`: f16 is read and
 * rounded in lanes. */
static bool fits(tir_expr_ref e, const tir_var *lane, bool halves)
{
    if (e->kind == TIR_INT || e->kind == TIR_FLOAT || (lane && !tir_uses_var(e, lane)))
        return true;
    if (e->kind == TIR_LOAD)
        return e->type.dt == DT_F32 || (halves && e->type.dt == DT_F16);
    if (!is_arithmetic(e) && !(halves && is_half_cast(e)))
        return false;
    for (uint32_t i = 0; i < e->n_args; i++)
        if (!fits(e->args[i], lane, halves))
            return false;
    return true;
}

/* The stage and what is inlined (into whatever stage). */
static bool stage_fits(const te_sched *s, const te_node *n, const te_axis *axis, bool halves)
{
    const bool fills = n->n_outputs == 1 && (n->outputs[0]->dt == DT_F32 || (halves && is_half_cast(n->body[0])));
    if (!fills || !fits(n->body[0], axis->var, halves))
        return false;
    for (uint32_t i = 0; i < s->g->nodes.len; i++) {
        const te_node *x = s->g->nodes.data[i];
        if (x->kind == TE_COMPUTE && te_is_inlined(s, x) && !te_is_literal(x) && !fits(x->body[0], NULL, halves))
            return false;
    }
    return true;
}

/* At `last` and what is inlined, but not at `anchor`. */
static void look_at_inlined(const te_sched *s, const te_node *anchor, const te_node *last,
                            void (*look)(void *ctx, tir_expr_ref e), bool *found)
{
    for (uint32_t i = 0; i < s->g->nodes.len; i++) {
        const te_node *n = s->g->nodes.data[i];
        if (n->kind == TE_COMPUTE && n != anchor && (n == last || te_is_inlined(s, n)))
            tir_visit_expr(n->body[0], look, found);
    }
}

static void look_for_wide(void *ctx, tir_expr_ref e)
{
    *(bool *)ctx |= e->kind == TIR_CALL && tir_widens_math(e->op);
}

/* Sines and tangents of far angles compute in f64. */
static bool is_wide(const te_sched *s, const te_node *n)
{
    bool wide = false;
    look_at_inlined(s, NULL, n, look_for_wide, &wide);
    return wide;
}

/* x86 has conversions of vectors, F16C, in each processor with AVX2. gcc 12 makes no use of them by itself, as it does
 * on AArch64. */
static bool has_half_lanes(const struct target *t)
{
    return (t->features & TARGET_MADD) != 0 && t->vector_bytes >= 32;
}

bool te_row_fits(const te_sched *s, const struct target *t, const te_node *n)
{
    if (n->n_axes == 0 || is_wide(s, n))
        return false;
    return stage_fits(s, n, n->axes[n->n_axes - 1], has_half_lanes(t)) ||
           ((t->features & TARGET_MVE) != 0 && te_numbers_fit(s, n));
}

static void look_for_call(void *ctx, tir_expr_ref e)
{
    *(bool *)ctx |= e->kind == TIR_CALL && e->op != TIR_APART;
}

bool te_calls_functions(const te_sched *s, const te_node *anchor, const te_node *last)
{
    bool found = false;
    look_at_inlined(s, anchor, last, look_for_call, &found);
    return found;
}

static void look_for_half(void *ctx, tir_expr_ref e)
{
    *(bool *)ctx |= e->kind == TIR_CAST && is_half_cast(e);
}

bool te_converts_halves(const te_sched *s, const struct target *t, const te_node *last)
{
    bool found = false;
    look_at_inlined(s, NULL, last, look_for_half, &found);
    return found && has_half_lanes(t);
}

int64_t te_lanes(const struct target *t)
{
    if ((t->features & TARGET_MVE) != 0)
        return NARROW_LANES;
    return t->vector_bytes / 4;
}

static int64_t row_lanes(const te_sched *s, const struct target *t, const te_node *n)
{
    const int64_t lanes = te_lanes(t);
    if (!is_wide(s, n))
        return lanes;
    return (t->features & TARGET_MVE) != 0 ? 1 : lanes < MOST_WIDE ? lanes : MOST_WIDE;
}

bool te_row_in_lanes(te_sched *s, const struct target *t, const te_node *n, const char *loop)
{
    int64_t lanes = row_lanes(s, t, n);
    if (lanes < 2 || n->n_axes == 0 || te_axis_most(s->g, n, n->n_axes - 1) < lanes ||
        !(stage_fits(s, n, n->axes[n->n_axes - 1], has_half_lanes(t)) || te_bytes_fit(s, n)))
        return false;
    te_sched_split(s, n->name, loop, lanes, "lane_o", "lane_v");
    te_sched_annotate(s, TE_VECTORIZE, n->name, "lane_v");
    return true;
}

typedef struct read_check {
    const tir_var *k;
    bool contiguous;
} read_check;

static void check_read(void *ctx, tir_expr_ref e)
{
    read_check *r = ctx;
    for (uint32_t i = 0; e->kind == TIR_LOAD && i < e->n_args; i++) {
        bool last = i + 1 == e->n_args;
        if (tir_uses_var(e->args[i], r->k) && !(last && te_adds_var(e->args[i], r->k)))
            r->contiguous = false;
    }
}

/* The stage of partial sums: its loop over them becomes lanes. Where it reduces, axis `beside` of n (n_axes: none), a
 * few rows, stands inside: their sums grow side by side. */
static void cut_partial(te_sched *s, const struct target *t, const te_node *n, const char *stage, bool reduces,
                        uint32_t beside)
{
    const char **order = arena_array(&s->c->mem, const char *, n->n_axes + n->n_reduce + 3u);
    uint32_t count = 0;
    te_sched_split(s, stage, "k_i", te_lanes(t), "k_m", "k_v");
    for (uint32_t i = 0; i < n->n_axes; i++)
        if (!reduces || i != beside)
            order[count++] = te_axis_name(n, i);
    for (uint32_t i = 0; reduces && i + 1 < n->n_reduce; i++)
        order[count++] = n->reduce_axes[i]->var->name;
    if (reduces)
        order[count++] = "k_o";
    if (reduces && beside < n->n_axes)
        order[count++] = te_axis_name(n, beside);
    order[count++] = "k_m";
    order[count++] = "k_v";
    te_sched_reorder(s, stage, count, order);
    if (reduces && beside < n->n_axes)
        te_sched_annotate(s, TE_UNROLL, stage, te_axis_name(n, beside));
    te_sched_annotate(s, TE_UNROLL, stage, "k_m");
    te_sched_annotate(s, TE_VECTORIZE, stage, "k_v");
}

/* The partial sums: FEW of them side by side, then one after the other. */
static void combine(te_sched *s, const te_node *n, const char *stage, const char *consumer, const char *place)
{
    const char *few = arena_printf(&s->c->mem, "%s_few", stage),
               **order = arena_array(&s->c->mem, const char *, n->n_axes + 2u);
    uint32_t count = 0;
    te_sched_split(s, stage, "k_i", FEW, "k_a", "k_b");
    te_sched_rfactor(s, stage, "k_b", few);
    te_sched_set_scope(s, few, "local");
    if (place)
        te_sched_compute_at(s, few, consumer, place);
    for (uint32_t i = 0; i < n->n_axes; i++)
        order[count++] = te_axis_name(n, i);
    order[count++] = "k_a";
    order[count++] = "k_b";
    te_sched_reorder(s, few, count, order);
    te_sched_annotate(s, TE_UNROLL, few, "k_a");
    te_sched_annotate(s, TE_VECTORIZE, few, "k_b");
    te_sched_annotate(s, TE_UNROLL, stage, "k_b");
}

/* Partial results of n: a long row has more of them under way at once, as has one whose steps are a comparison and a
 * choice. In whatever order an extreme is found it is the same number: then there are some vectors of them. */
static int64_t partial_count(const te_sched *s, const struct target *t, const te_node *n, uint32_t beside)
{
    tir_expr_ref e = n->reducer->combine[0];
    bool extreme = te_is_extreme(n->reducer);
    bool waits = e->kind == TIR_SELECT || (n->tag && strcmp(n->tag, "extremes") == 0);
    if (beside < n->n_axes || (!waits && te_reduce_most(s->g, n) < (extreme ? LONG_EXTREME : LONG)))
        return PARTIAL;
    return extreme && CHAINS * te_lanes(t) > 2 * PARTIAL ? CHAINS * te_lanes(t) : 2 * PARTIAL;
}

/* Of several axes the innermost one goes in lanes, unless what is left of its end is much of each row. */
static bool is_long_row(const te_sched *s, const struct target *t, const te_node *n, const te_axis *k)
{
    const int64_t most = te_most(s->g, k->extent);
    const bool whole = n->n_reduce == 1 || (!t->small && (most % PARTIAL == 0 || most >= LONG_ROW));
    return (most >= 2 * PARTIAL || (most == PARTIAL && te_is_extreme(n->reducer))) && whole;
}

bool te_sum_in_lanes(te_sched *s, const struct target *t, const te_node *n, const char *stage, const char *consumer,
                     const char *place, uint32_t beside)
{
    const te_axis *k = n->n_reduce ? n->reduce_axes[n->n_reduce - 1] : NULL;
    if (te_lanes(t) < 2 || te_lanes(t) > PARTIAL || !k || n->reducer->n != 1 || n->where || !is_long_row(s, t, n, k) ||
        !stage_fits(s, n, k, has_half_lanes(t)))
        return false;
    read_check r = {k->var, !is_wide(s, n)};
    tir_visit_expr(n->body[0], check_read, &r);
    if (!r.contiguous)
        return false;
    const char *partial = arena_printf(&s->c->mem, "%s_part", stage),
               *sums = arena_printf(&s->c->mem, "%s_lanes", stage);
    te_sched_split(s, stage, k->var->name, partial_count(s, t, n, beside), "k_o", "k_i");
    te_sched_rfactor(s, stage, "k_i", partial);
    te_sched_cache_write(s, partial, "local.reg", sums);
    te_sched_set_scope(s, partial, "local");
    if (place)
        te_sched_compute_at(s, sums, consumer, place);
    if (place)
        te_sched_compute_at(s, partial, consumer, place);
    cut_partial(s, t, n, sums, true, beside);
    cut_partial(s, t, n, partial, false, n->n_axes);
    combine(s, n, stage, consumer, place);
    return true;
}
