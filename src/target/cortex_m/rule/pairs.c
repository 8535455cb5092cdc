/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules of products of two operands that only the run knows (te/op/product_pairs.c), for Cortex-M with the DSP
 * extension. A tile is two rows by two columns, whose sums stay in registers. The right operand is widened once for all
 * rows, or a panel of its columns after the other where that would be large; the left one two rows at a time, for each
 * panel. */
#include "graph/op/nn.h"
#include "te/op/product_pairs.h"
#include "te/rule/rule.h"

#define MOST_WIDENED 4096 /* bytes of the right operand */
#define LEAST_PANEL  16   /* columns: rows are widened again for each panel */

/* Columns of a panel. */
static int64_t panel_of(int64_t columns, int64_t steps)
{
    const int64_t each = 2 * PAIRS_STEP * steps, fit = MOST_WIDENED / each / 4 * 4;
    return columns * each <= MOST_WIDENED ? columns : fit > LEAST_PANEL ? fit : LEAST_PANEL;
}

static bool schedule(const te_case *x)
{
    te_sched *s = x->s;
    const graph_node *n = x->n;
    te_node *anchor = x->anchor, *last = x->last;
    te_node *data = te_find_tag(s->g, "wide_data"), *weights = te_find_tag(s->g, "wide_weights");
    const te_node *beside[2] = {data, weights};
    int64_t steps = 0;
    if (anchor->n_axes < 2 || anchor->n_reduce != 2 || last->n_axes != anchor->n_axes ||
        !tir_is_int(anchor->reduce_axes[0]->extent, &steps) || te_axis_extent(last, last->n_axes - 1u) == 0 ||
        !te_is_one_nest_with(s, anchor, last, NULL, 2, beside))
        return false;
    const uint32_t row = last->n_axes - 2u, column = row + 1;
    const char *o = last->name, *acc = te_sums_stage(s, anchor, last, "local");
    te_sched_split(s, o, te_axis_name(last, row), PAIRS_ROWS, "row_o", "row_i");
    te_sched_split(s, o, te_axis_name(last, column), panel_of(te_axis_extent(last, column), steps), "panel", "column");
    te_sched_split(s, o, "column", 2, "column_o", "column_i");
    te_sched_reorder(s, o, 5, (const char *[]){"panel", "row_o", "column_o", "row_i", "column_i"});
    te_sched_annotate(s, TE_UNROLL, o, "row_i");
    te_sched_annotate(s, TE_UNROLL, o, "column_i");
    te_sched_compute_at(s, acc, o, "column_o");
    te_sched_tensorize(s, acc, te_axis_name(anchor, row), "dot_pairs");
    const char *step = te_axis_name(data, data->n_axes - 3u), *line = te_axis_name(data, data->n_axes - 2u);
    if (graph_attr_int(n, "transpose_a") == 0)
        te_sched_reorder(s, data->name, 2, (const char *[]){line, step});
    te_sched_compute_at(s, data->name, o, "row_o");
    step = te_axis_name(weights, weights->n_axes - 3u);
    line = te_axis_name(weights, weights->n_axes - 2u);
    if (graph_attr_int(n, "transpose_b") != 0)
        te_sched_reorder(s, weights->name, 2, (const char *[]){line, step});
    te_sched_compute_at(s, weights->name, o, "panel");
    return true;
}

/* Stages that hold steps of both operands, which no pass has packed. */
static bool takes(const te_case *x)
{
    int64_t lanes, granule;
    nn_weight_blocks(x->n, &lanes, &granule);
    return te_find_tag(x->s->g, "wide_data") && granule == 0;
}

/* Instructions of kernel/dsp/dot_pairs.h, which emulators count, with what widens the operands. */
static double cost(const te_case *x)
{
    (void)x;
    return 1.5;
}

static const te_rule rows[] = {
    {"pairs of rows and columns", TE_PRODUCT, "two rows by two columns of numbers of 16 bits, widened in panels", takes,
     cost, schedule},
};
const te_rules te_rules_products = {rows, sizeof rows / sizeof *rows};
