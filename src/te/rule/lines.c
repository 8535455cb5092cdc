/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules of kernels in chains (target.line_axis): the result is made line by line, lines outermost, each from a few
 * lines of the operands. Sums are added in the order of every other schedule, so that the bits are the same. What does
 * not go through lines under these schedules is in no chain; which is found out from its loops (tir/lines.c). */
#include "te/rule/rule.h"
#include "type/target.h"

#include <string.h>

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
    if (!row)
        return;
    const char **order = arena_array(&s->c->mem, const char *, anchor->n_reduce + 1u);
    for (uint32_t i = 0; i < anchor->n_reduce; i++)
        order[i] = anchor->reduce_axes[i]->var->name;
    order[anchor->n_reduce] = te_axis_name(anchor, anchor->n_axes - 1);
    te_sched_reorder(s, acc, anchor->n_reduce + 1u, order);
}

bool te_schedule_lines(te_sched *s, const struct target *t, const graph_node *n, te_node *anchor, te_node *last)
{
    (void)n;
    if (last->kind != TE_COMPUTE || last->n_axes <= t->line_axis)
        return true;
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
