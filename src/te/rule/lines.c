/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules of kernels that run line by line, several of them in a chain, so that a few lines of each image are kept
 * instead of all (tir/chain.h; target.line_axis says which axis has the lines). Lines are the outermost loop, and each
 * is made of a few lines of the operands. Sums are added in the order of every other schedule, so that the bits are the
 * same. A kernel whose loops do not go through lines after all stays out of chains (tir/lines.c). */
#include "te/rule/rule.h"
#include "tir/walk.h"
#include "type/target.h"

#define ROW_OF_SUMS 1024 /* elements of a line whose sums stand in a small array */

/* The loops of `last`, the one over lines outermost. */
static const char *lines_first(te_sched *s, const struct target *t, const te_node *last)
{
    const char **order = arena_array(&s->c->mem, const char *, last->n_axes);
    uint32_t n = 0;
    order[n++] = te_axis_name(last, t->line_axis);
    for (uint32_t i = 0; i < last->n_axes; i++)
        if (i != t->line_axis)
            order[n++] = te_axis_name(last, i);
    te_sched_reorder(s, last->name, n, order);
    te_sched_pragma(s, last->name, order[0], "whole", 1);
    return order[0];
}

/* Sums over all lines: they stand beside the loop over these, which is the outer one of the reduction's. */
static void add_up_lines(te_sched *s, te_node *anchor, te_node *last)
{
    const char *acc = anchor->name, **order = arena_array(&s->c->mem, const char *, anchor->n_axes + anchor->n_reduce);
    uint32_t n = 0;
    if (anchor == last) {
        acc = arena_printf(&s->c->mem, "%s_acc", anchor->name);
        te_sched_cache_write(s, anchor->name, "global", acc);
    }
    order[n++] = anchor->reduce_axes[0]->var->name;
    for (uint32_t i = 0; i < anchor->n_axes; i++)
        order[n++] = te_axis_name(anchor, i);
    for (uint32_t i = 1; i < anchor->n_reduce; i++)
        order[n++] = anchor->reduce_axes[i]->var->name;
    te_sched_reorder(s, acc, n, order);
}

typedef struct pad_read {
    const te_graph *g;
    const te_node *pad;
    tir_expr_ref at; /* along the axis of lines, in the reader's variables */
    uint32_t axis;
} pad_read;

static void note_pad(void *ctx, tir_expr_ref e)
{
    pad_read *x = ctx;
    const te_tensor *t = e->kind == TIR_LOAD ? te_tensor_of(x->g, e->u.buffer) : NULL;
    if (t && t->node == x->pad)
        x->at = e->args[x->axis];
}

/* The index with the loop over lines at `line` and those of the reduction at their first or last iteration. */
static bool index_at(te_sched *s, const te_node *anchor, const pad_read *x, int64_t line, bool last, int64_t *out)
{
    const uint32_t n = anchor->n_axes + anchor->n_reduce;
    const tir_var **vars = arena_array(&s->c->mem, const tir_var *, n);
    tir_expr_ref *values = arena_array(&s->c->mem, tir_expr_ref, n);
    for (uint32_t i = 0; i < n; i++) {
        const te_axis *a = i < anchor->n_axes ? anchor->axes[i] : anchor->reduce_axes[i - anchor->n_axes];
        vars[i] = a->var;
        values[i] = i >= anchor->n_axes && last ? tir_sub(s->c, a->extent, tir_i64(s->c, 1))
                                                : tir_i64(s->c, i == x->axis ? line : 0);
    }
    return tir_is_int(tir_substitute(s->c, x->at, n, vars, values), out);
}

/* The rows of the border's stage under one line are partly those under the next one. */
static bool rows_overlap(te_sched *s, const struct target *t, const te_node *anchor, const te_node *pad)
{
    pad_read x = {.g = s->g, .pad = pad, .axis = t->line_axis};
    int64_t first = 0, last = 0, next = 0;
    tir_visit_expr(anchor->body[0], note_pad, &x);
    return x.at && te_axis_extent(anchor, t->line_axis) > 1 && index_at(s, anchor, &x, 0, false, &first) &&
           index_at(s, anchor, &x, 0, true, &last) && index_at(s, anchor, &x, 1, false, &next) && next > first &&
           last >= next && pad->n_axes == anchor->n_axes;
}

/* Windows under a line: a row of sums, the reduction outside of it, or one sum after the other. */
static void windows(te_sched *s, const struct target *t, te_node *anchor, te_node *last)
{
    const te_node *pad = te_find_tag(s->g, "pad");
    const int64_t width = te_axis_extent(last, last->n_axes - 1);
    const bool row = t->line_axis + 1u < last->n_axes && last->n_axes > 2 && width <= ROW_OF_SUMS;
    const char *acc = te_sums_stage(s, anchor, last, row ? "local" : "local.reg");
    const char *line = lines_first(s, t, last), *inner = te_axis_name(last, last->n_axes - 1);
    const uint32_t around = last->n_axes - 2 == t->line_axis ? last->n_axes - 3 : last->n_axes - 2;
    te_sched_compute_at(s, acc, last->name, row ? te_axis_name(last, around) : inner);
    if (pad && !te_is_inlined(s, pad))
        te_sched_compute_at(s, pad->name, last->name, line);
    if (pad && !te_is_inlined(s, pad) && !t->lines_again && rows_overlap(s, t, anchor, pad))
        te_sched_rolling_buffer(s, pad->name);
    if (!row)
        return;
    const char **order = arena_array(&s->c->mem, const char *, anchor->n_reduce + 1u);
    for (uint32_t i = 0; i < anchor->n_reduce; i++)
        order[i] = anchor->reduce_axes[i]->var->name;
    order[anchor->n_reduce] = te_axis_name(anchor, anchor->n_axes - 1);
    te_sched_reorder(s, acc, anchor->n_reduce + 1u, order);
}

static bool schedule_lines(const te_case *x)
{
    te_sched *s = x->s;
    const struct target *t = x->t;
    te_node *anchor = x->anchor, *last = x->last, *table = anchor ? te_find_tag(s->g, TE_TABLE) : NULL;
    if (last->kind != TE_COMPUTE || last->n_axes <= t->line_axis)
        return true;
    if (table && !te_is_inlined(s, table))
        te_sched_compute_inline(s, table->name);
    if (!te_is_one_nest(s, anchor ? anchor : last, last, "pad"))
        return true;
    if (!anchor || anchor->n_reduce == 0)
        (void)lines_first(s, t, last);
    else if (te_axis_extent(last, t->line_axis) == 1)
        add_up_lines(s, anchor, last);
    else
        windows(s, t, anchor, last);
    return true;
}

static double cost(const te_case *x)
{
    return te_cost_in_c(x->t, 3);
}

static const te_rule rows[] = {
    {"lines", TE_LINES, "the result line by line, for a chain", NULL, cost, schedule_lines},
};
const te_rules te_rules_lines = {rows, sizeof rows / sizeof *rows};
