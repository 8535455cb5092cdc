/* SPDX-License-Identifier: Apache-2.0 */
/* Default schedule of convolutions of bytes that are multiplied as numbers of 16 bits, on targets where widening both
 * operands in every tile costs as much as the products. A part takes a strip of rows, and a share of the output
 * channels: it widens the data under the strip once, all channels of it, and then, a tile's width of output channels
 * after the other, the weights, which all pixels of the strip read. Both stay in its caches; in memory weights stay
 * bytes. */
#include "graph/op/nn.h"
#include "te/rule/rule.h"
#include "type/cpu_model.h"
#include "type/dot.h"

#define WIDEN_CYCLES 2.0 /* of a vector of 16-bit numbers: load, widen, store */
#define PART_OF_L2   2   /* that the data of a strip may take, where a strip of fewer rows can be had */
#define MAX_SHARES   64

/* Axes of the result, and of the data's stage. */
enum { BATCH, BLOCK, ROW, COL, LANE, RANK };

typedef struct wide_conv {
    te_sched *s;
    const struct target *t;
    const target_dot *dot;
    te_node *anchor, *last, *data, *weights;
    int64_t batch, blocks, rows, cols, lanes; /* of the result */
    int64_t products, in_block;               /* of each sum; channels in a block of the data, 0: one plane in rows */
    int64_t step;                             /* rows of the data's stage from row to row */
} wide_conv;

typedef struct wide_cut {
    te_tile tile;
    int64_t strip, shares; /* rows of a part, parts that share the output channels */
} wide_cut;

/* --- the cut, by counting cycles --- */

/* Numbers in the data's stage under a strip. */
static int64_t data_under(const wide_conv *v, int64_t strip)
{
    int64_t rows = te_axis_extent(v->data, ROW) - (v->rows - strip) * v->step;
    return te_axis_extent(v->data, BLOCK) * rows * te_axis_extent(v->data, COL) * (v->in_block ? v->in_block : 1);
}

/* Cycles of a row of pixels, for one group of output channels. */
static double row_cycles(const wide_conv *v, te_tile tile)
{
    double whole = (double)(v->cols / tile.rows) * te_dot_step_cost(v->t, v->dot, tile.vectors, tile.rows);
    int64_t left = v->cols % tile.rows;
    if (left)
        whole += te_dot_step_cost(v->t, v->dot, tile.vectors, left);
    return whole * (double)(v->products / v->dot->granule);
}

/* Cycles of the slowest worker. */
static double cut_cycles(const wide_conv *v, const wide_cut *cut)
{
    const int64_t groups = v->blocks / cut->tile.vectors / cut->shares, workers = v->t->workers > 1 ? v->t->workers : 1;
    double lanes = (double)v->lanes * v->dot->granule, weights = (double)(v->products * v->lanes * cut->tile.vectors);
    double group = weights / lanes * WIDEN_CYCLES + (double)cut->strip * row_cycles(v, cut->tile);
    double part = (double)data_under(v, cut->strip) / lanes * WIDEN_CYCLES + (double)groups * group;
    int64_t parts = v->batch * cut->shares * (v->rows / cut->strip);
    return (double)((parts + workers - 1) / workers) * part;
}

/* Strips of equal height that the cache holds, if there are any; the fastest, and of these the smallest. */
static wide_cut choose_cut(const wide_conv *v)
{
    const int64_t room = (int64_t)target_cpu(v->t)->l2_bytes / PART_OF_L2;
    wide_cut best = {te_choose_dot_tile(v->t, v->dot, v->blocks, v->cols, v->blocks), 1, 1}, x = best;
    double least = 0;
    for (x.strip = 1; x.strip <= v->rows; x.strip++) {
        if (v->rows % x.strip != 0 || (x.strip > 1 && data_under(v, x.strip) * 2 > room))
            continue;
        for (x.shares = 1; x.shares <= MAX_SHARES; x.shares++) {
            if (v->blocks / x.tile.vectors % x.shares != 0)
                continue;
            double c = cut_cycles(v, &x);
            if (least == 0 || c < least) {
                least = c;
                best = x;
            }
        }
    }
    return best;
}

/* --- the loops --- */

static void schedule_result(const wide_conv *v, const wide_cut *cut)
{
    te_sched *s = v->s;
    const te_node *y = v->last;
    const char *o = y->name, *n = te_axis_name(y, BATCH), *lane = te_axis_name(y, LANE);
    te_sched_split(s, o, te_axis_name(y, BLOCK), cut->tile.vectors, "groups", "vector");
    te_sched_split(s, o, "groups", v->blocks / cut->tile.vectors / cut->shares, "share", "group");
    te_sched_split(s, o, te_axis_name(y, ROW), cut->strip, "strip", "row");
    te_sched_split(s, o, te_axis_name(y, COL), cut->tile.rows, "col_o", "col_i");
    te_sched_reorder(s, o, 9, (const char *[]){"share", n, "strip", "group", "row", "col_o", "col_i", "vector", lane});
    te_sched_fuse(s, o, "share", n, "share_n");
    te_sched_fuse(s, o, "share_n", "strip", "part");
    te_sched_annotate(s, TE_PARALLEL, o, "part");
    te_sched_annotate(s, TE_UNROLL, o, "col_i");
    te_sched_annotate(s, TE_UNROLL, o, "vector");
    te_sched_annotate(s, TE_VECTORIZE, o, lane);
}

/* Blocks of input channels, the window, the channels of a block, or the row of a plane; inside the tile. */
static void schedule_sums(const wide_conv *v, const char *acc)
{
    te_sched *s = v->s;
    const te_node *a = v->anchor;
    const char *lane = te_axis_name(a, LANE), *row = te_axis_name(a, COL), *block = te_axis_name(a, BLOCK);
    const char *ic = a->reduce_axes[0]->var->name, *kh = a->reduce_axes[1]->var->name,
               *kw = a->reduce_axes[2]->var->name;
    te_sched_compute_at(s, acc, v->last->name, "col_o");
    if (v->in_block)
        te_sched_split(s, acc, ic, v->in_block, "ic_o", "ic_i");
    te_sched_split(s, acc, v->in_block ? "ic_i" : kw, v->dot->granule, "k_o", "k_i");
    const char *const planes[] = {ic, kh, "k_o", row, block, lane, "k_i"},
                      *const blocks[] = {"ic_o", kh, kw, "k_o", row, block, lane, "k_i"};
    te_sched_reorder(s, acc, v->in_block ? 8 : 7, v->in_block ? blocks : planes);
    te_sched_annotate(s, TE_UNROLL, acc, row);
    te_sched_annotate(s, TE_UNROLL, acc, block);
    te_sched_tensorize(s, acc, lane, v->dot->intrinsic);
}

/* A vector of the two innermost axes of the packed weights, lanes and what stands side by side in them. */
static void schedule_operands(const wide_conv *v)
{
    te_sched *s = v->s;
    const te_node *w = v->weights;
    te_sched_compute_at(s, v->data->name, v->last->name, "part");
    if (v->in_block)
        te_sched_annotate(s, TE_VECTORIZE, v->data->name, te_axis_name(v->data, LANE));
    te_sched_compute_at(s, w->name, v->last->name, "group");
    te_sched_fuse(s, w->name, te_axis_name(w, w->n_axes - 2), te_axis_name(w, w->n_axes - 1), "pairs");
    te_sched_annotate(s, TE_VECTORIZE, w->name, "pairs");
}

static bool read_conv(const graph_node *n, wide_conv *v)
{
    const te_node *a = v->anchor, *beside[2] = {v->data, v->weights};
    const char *kernel = graph_attr_string(n, "kernel_layout");
    nn_window win;
    v->dot = target_find_dot(v->t, DT_I16, DT_I16, false);
    v->in_block = nn_data_block(n, "data_layout");
    if (!v->dot || !v->weights || !te_is_one_nest_with(v->s, a, v->last, NULL, 2, beside) || a->n_axes != RANK ||
        a->n_reduce != 3 || v->in_block % v->dot->granule != 0 || nn_layout_granule(kernel) != v->dot->granule ||
        nn_layout_in_rows(kernel) != (v->in_block == 0) ||
        !nn_window_read(v->s->c, n, 2, &win))
        return false;
    v->step = tir_is_const(a->reduce_axes[1]->extent, 1) ? 1 : win.stride[0];
    v->batch = te_axis_most(v->s->g, a, BATCH);
    v->blocks = te_axis_extent(a, BLOCK);
    v->rows = te_axis_extent(a, ROW);
    v->cols = te_axis_extent(a, COL);
    v->lanes = te_axis_extent(a, LANE);
    v->products = te_reduce_most(v->s->g, a);
    return v->batch > 0 && v->blocks > 0 && v->rows > 0 && v->cols > 0 && v->products > 0 &&
           v->lanes * 4 == v->t->vector_bytes;
}

bool te_schedule_wide_conv(te_sched *s, const struct target *t, const graph_node *n, te_node *anchor, te_node *last)
{
    wide_conv v = {.s = s,
                   .t = t,
                   .anchor = anchor,
                   .last = last,
                   .data = te_find_tag(s->g, "wide_data"),
                   .weights = te_find_tag(s->g, "wide_weights")};
    if (!read_conv(n, &v))
        return false;
    wide_cut cut = choose_cut(&v);
    const char *acc = te_sums_stage(s, anchor, last, "local.reg");
    schedule_result(&v, &cut);
    schedule_sums(&v, acc);
    schedule_operands(&v);
    return true;
}
