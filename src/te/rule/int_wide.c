/* SPDX-License-Identifier: Apache-2.0 */
/* Default schedules of convolutions and products of bytes that are multiplied as numbers of 16 bits, on targets where
 * widening both operands in every tile costs as much as the products. A part takes a strip of rows, and a share of the
 * output channels: it widens the data under the strip once, all channels of it, and then, a tile's width of output
 * channels after the other, the weights, which all elements of the strip read. Both stay in its caches; in memory
 * weights stay bytes. */
#include "graph/op/nn.h"
#include "te/rule/rule.h"
#include "type/cpu_model.h"
#include "type/dot.h"

#include <math.h>

#define WIDEN_CYCLES 2.0  /* of a vector of 16-bit numbers: load, widen, store */
#define TILE_CYCLES  80.0 /* of a tile beside its products: sums start and end, and wait for each other */
#define PART_OF_L2   2    /* in which the data of a strip does not come from afar */
#define NEAR_LEAST   1.01 /* of the least cycles: within that, what a part widens may be less */
#define MAX_SHARES   64

/* Axes of a convolution's result, and of its data's stage. */
enum { BATCH, BLOCK, ROW, COL, LANE, RANK };

typedef struct wide_sums {
    const te_graph *g;
    te_sched *s; /* of g; NULL: only cycles are counted */
    const struct target *t;
    const target_dot *dot;
    te_node *anchor, *last, *data, *weights;
    int64_t batch, blocks, rows, cols, lanes; /* of the result; cols 0: of a product, whose tiles are of rows */
    int64_t products;                         /* of each sum */
    int64_t in_block;                         /* channels in a block of the data, 0: one plane, or a product */
    int64_t numbers, between;                 /* of the data under all rows, and more for each row */
} wide_sums;

typedef struct wide_cut {
    te_tile tile;
    int64_t strip, shares; /* rows of a part, parts that share the output channels */
} wide_cut;

/* --- the cut, by counting cycles --- */

/* Cycles of elements side by side, for one group of output channels. */
static double line_cycles(const wide_sums *v, te_tile tile, int64_t width)
{
    const double steps = (double)(v->products / v->dot->granule);
    const int64_t left = width % tile.rows;
    double whole = te_dot_step_cost(v->t, v->dot, tile.vectors, tile.rows) * steps + TILE_CYCLES;
    double last = left ? te_dot_step_cost(v->t, v->dot, tile.vectors, left) * steps + TILE_CYCLES : 0;
    return (double)(width / tile.rows) * whole + last;
}

/* Cycles of the slowest worker. */
static double cut_cycles(const wide_sums *v, const wide_cut *cut)
{
    const cpu_model *m = target_cpu(v->t);
    const int64_t workers = v->t->workers > 1 ? v->t->workers : 1;
    double lanes = (double)v->lanes * v->dot->granule;
    double data = (double)(v->numbers - (v->rows - cut->strip) * v->between);
    double weights = (double)(v->products * v->lanes * cut->tile.vectors);
    double group = weights / lanes * WIDEN_CYCLES;
    group += v->cols ? (double)cut->strip * line_cycles(v, cut->tile, v->cols)
                     : line_cycles(v, cut->tile, cut->strip);
    if (data * 2 > m->l2_bytes / PART_OF_L2)
        group += data * 2 / m->far_bytes;
    double part = data / lanes * WIDEN_CYCLES + group * (double)(v->blocks / cut->tile.vectors / cut->shares);
    int64_t parts = v->batch * cut->shares * (v->rows / cut->strip);
    return (double)((parts + workers - 1) / workers) * part;
}

/* The next cut into strips of equal height and equal shares. */
static bool next_cut(const wide_sums *v, wide_cut *x)
{
    const int64_t groups = v->blocks / x->tile.vectors;
    do {
        x->strip += x->shares == MAX_SHARES;
        x->shares = x->shares % MAX_SHARES + 1;
    } while (x->strip <= v->rows && (v->rows % x->strip != 0 || groups % x->shares != 0));
    return x->strip <= v->rows;
}

/* Nearly the fastest: of these the one whose parts widen the least data at once, for which each of them needs memory,
 * and of equal ones the fastest. */
static wide_cut choose_cut(const wide_sums *v)
{
    const te_tile tile = te_choose_dot_tile(v->t, v->dot, v->blocks, v->cols ? v->cols : v->rows, v->blocks);
    wide_cut best = {tile, 1, 1}, x = best;
    double least = cut_cycles(v, &x);
    while (next_cut(v, &x))
        least = fmin(least, cut_cycles(v, &x));
    double cycles = INFINITY;
    for (x = (wide_cut){tile, 1, 0}; next_cut(v, &x) && (cycles == INFINITY || x.strip == best.strip);) {
        const double c = cut_cycles(v, &x);
        if (c <= least * NEAR_LEAST && c < cycles) {
            cycles = c;
            best = x;
        }
    }
    return best;
}

/* Cycles of a convolution of one tap whose rows, as many as there are pixels for, have `width` of them. */
static double cycles_in_rows(const void *ctx, int64_t width)
{
    const wide_sums *v = ctx;
    wide_sums x = *v;
    x.rows = v->rows * v->cols / width;
    x.cols = width;
    x.between = v->numbers / x.rows;
    const wide_cut cut = choose_cut(&x);
    return cut_cycles(&x, &cut);
}

/* --- the loops --- */

/* The two innermost axes of the packed weights, lanes and what stands side by side in them, are one run of bytes, which
 * the C compiler makes vectors of: here, where they have an index each, they are no ramp. */
static void schedule_operands(const wide_sums *v)
{
    te_sched *s = v->s;
    const te_node *w = v->weights, *x = v->data;
    const char *last = te_axis_name(x, x->n_axes - 1);
    const int64_t lanes = v->lanes * v->dot->granule;
    te_sched_compute_at(s, x->name, v->last->name, "part");
    if (v->in_block) {
        te_sched_annotate(s, TE_VECTORIZE, x->name, last);
    } else if (te_axis_extent(x, x->n_axes - 1) % lanes == 0) {
        te_sched_split(s, x->name, last, lanes, "lane_o", "lane_i");
        te_sched_annotate(s, TE_VECTORIZE, x->name, "lane_i");
    }
    te_sched_compute_at(s, w->name, v->last->name, "group");
    te_sched_fuse(s, w->name, te_axis_name(w, w->n_axes - 2), te_axis_name(w, w->n_axes - 1), "pairs");
}

static void fuse_parts(te_sched *s, const te_node *y, uint32_t n_batch, const char *strip)
{
    const char *part = "share";
    for (uint32_t i = 0; i < n_batch; i++) {
        const char *fused = arena_printf(&s->c->mem, "share%u", i);
        te_sched_fuse(s, y->name, part, te_axis_name(y, i), fused);
        part = fused;
    }
    te_sched_fuse(s, y->name, part, strip, "part");
    te_sched_annotate(s, TE_PARALLEL, y->name, "part");
}

static void mark_tile(te_sched *s, const char *stage, const char *row, const char *vector)
{
    te_sched_annotate(s, TE_UNROLL, stage, row);
    te_sched_annotate(s, TE_UNROLL, stage, vector);
}

static void conv_result(const wide_sums *v, const wide_cut *cut)
{
    te_sched *s = v->s;
    const te_node *y = v->last;
    const char *o = y->name, *n = te_axis_name(y, BATCH), *lane = te_axis_name(y, LANE);
    te_sched_split(s, o, te_axis_name(y, BLOCK), cut->tile.vectors, "groups", "vector");
    te_sched_split(s, o, "groups", v->blocks / cut->tile.vectors / cut->shares, "share", "group");
    te_sched_split(s, o, te_axis_name(y, ROW), cut->strip, "strip", "row");
    te_sched_split(s, o, te_axis_name(y, COL), cut->tile.rows, "col_o", "col_i");
    te_sched_reorder(s, o, 9, (const char *[]){"share", n, "strip", "group", "row", "col_o", "col_i", "vector", lane});
    fuse_parts(s, y, 1, "strip");
    mark_tile(s, o, "col_i", "vector");
    te_sched_annotate(s, TE_VECTORIZE, o, lane);
}

/* Blocks of input channels, the window, the channels of a block, or the row of a plane; inside the tile. */
static void conv_sums(const wide_sums *v, const char *acc)
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
    mark_tile(s, acc, row, block);
    te_sched_tensorize(s, acc, lane, v->dot->intrinsic);
}

static void matmul_result(const wide_sums *v, const wide_cut *cut, bool rows_written_out)
{
    te_sched *s = v->s;
    const te_node *y = v->last;
    const char *o = y->name, *order[TYPE_MAX_RANK + 8];
    uint32_t n = 0, batch = y->n_axes - 2;
    te_sched_split(s, o, te_axis_name(y, batch + 1), v->lanes, "vectors", "lane");
    te_sched_split(s, o, "vectors", cut->tile.vectors, "groups", "vector");
    te_sched_split(s, o, "groups", v->blocks / cut->tile.vectors / cut->shares, "share", "group");
    te_sched_split(s, o, te_axis_name(y, batch), cut->strip, "strip", "row");
    te_sched_split(s, o, "row", cut->tile.rows, "row_o", "row_i");
    order[n++] = "share";
    for (uint32_t i = 0; i < batch; i++)
        order[n++] = te_axis_name(y, i);
    const char *const inner[] = {"strip", "group", "row_o", "row_i", "vector", "lane"};
    for (uint32_t i = 0; i < sizeof inner / sizeof *inner; i++)
        order[n++] = inner[i];
    te_sched_reorder(s, o, n, order);
    fuse_parts(s, y, batch, "strip");
    if (rows_written_out)
        te_sched_annotate(s, TE_UNROLL, o, "row_i");
    te_sched_annotate(s, TE_UNROLL, o, "vector");
    te_sched_annotate(s, TE_VECTORIZE, o, "lane");
}

/* A tile's loops in a stage of its own. */
static const char *matmul_tile(const wide_sums *v, const char *stage)
{
    te_sched *s = v->s;
    const te_node *a = v->anchor;
    const char *row = te_axis_name(a, a->n_axes - 2);
    te_sched_compute_at(s, stage, v->last->name, "row_o");
    te_sched_split(s, stage, te_axis_name(a, a->n_axes - 1), v->lanes, "vector", "lane");
    mark_tile(s, stage, row, "vector");
    return row;
}

static void matmul_sums(const wide_sums *v, const char *acc)
{
    te_sched *s = v->s;
    const te_node *a = v->anchor;
    const char *row = matmul_tile(v, acc);
    te_sched_split(s, acc, a->reduce_axes[0]->var->name, v->dot->granule, "k_o", "k_i");
    te_sched_reorder(s, acc, 5, (const char *[]){"k_o", row, "vector", "lane", "k_i"});
    te_sched_tensorize(s, acc, "lane", v->dot->intrinsic);
}

/* --- what can be cut so --- */

static bool find_stages(const te_graph *g, const struct target *t, te_node *anchor, wide_sums *v)
{
    *v = (wide_sums){.g = g,
                     .t = t,
                     .dot = target_find_dot(t, DT_I16, DT_I16, false),
                     .anchor = anchor,
                     .data = te_find_tag(g, "wide_data"),
                     .weights = te_find_tag(g, "wide_weights"),
                     .lanes = t->vector_bytes / 4};
    v->products = v->dot && v->data && v->weights ? te_reduce_most(g, anchor) : 0;
    return v->products > 0 && v->products % v->dot->granule == 0;
}

/* The stages as one nest of the schedule. */
static bool find_nest(te_sched *s, const struct target *t, te_node *anchor, te_node *last, wide_sums *v)
{
    if (!find_stages(s->g, t, anchor, v))
        return false;
    const te_node *beside[2] = {v->data, v->weights};
    v->s = s;
    v->last = last;
    return te_is_one_nest_with(s, anchor, last, NULL, 2, beside);
}

static bool read_conv(const graph_node *n, wide_sums *v)
{
    const te_node *a = v->anchor;
    const char *kernel = graph_attr_string(n, "kernel_layout");
    nn_window win;
    v->in_block = nn_data_block(n, "data_layout");
    if (a->n_axes != RANK || a->n_reduce != 3 || v->in_block % v->dot->granule != 0 ||
        nn_layout_granule(kernel) != v->dot->granule || nn_layout_in_rows(kernel) != (v->in_block == 0) ||
        te_axis_extent(a, LANE) != v->lanes || !nn_window_read(v->g->c, n, 2, &win))
        return false;
    v->batch = te_axis_most(v->g, a, BATCH);
    v->blocks = te_axis_extent(a, BLOCK);
    v->rows = te_axis_extent(a, ROW);
    v->cols = te_axis_extent(a, COL);
    const int64_t pixel = te_axis_extent(v->data, BLOCK) * (v->in_block ? v->in_block : 1);
    const int64_t line = te_axis_extent(v->data, COL) * pixel;
    v->numbers = te_axis_extent(v->data, ROW) * line;
    v->between = (tir_is_const(a->reduce_axes[1]->extent, 1) ? 1 : win.stride[0]) * line;
    return v->batch > 0 && v->blocks > 0 && v->rows > 0 && v->cols > 0 && v->numbers > 0;
}

int64_t te_wide_conv_rows(const te_graph *g, const struct target *t, const graph_node *n, te_node *anchor)
{
    wide_sums v;
    return find_stages(g, t, anchor, &v) && read_conv(n, &v) ? te_rows_to_merge(v.rows, v.cols, cycles_in_rows, &v) : 1;
}

static bool schedule_wide_conv(const te_case *x)
{
    te_sched *s = x->s;
    const struct target *t = x->t;
    const graph_node *n = x->n;
    te_node *anchor = x->anchor, *last = x->last;
    wide_sums v;
    if (!find_nest(s, t, anchor, last, &v) || !read_conv(n, &v))
        return false;
    wide_cut cut = choose_cut(&v);
    const char *acc = te_sums_stage(s, anchor, last, "local.reg");
    conv_result(&v, &cut);
    conv_sums(&v, acc);
    schedule_operands(&v);
    return true;
}

static bool schedule_wide_matmul(const te_case *x)
{
    te_sched *s = x->s;
    const struct target *t = x->t;
    const graph_node *n = x->n;
    te_node *anchor = x->anchor, *last = x->last;
    wide_sums v;
    int64_t lanes, granule, units = te_axis_extent(anchor, anchor->n_axes - 1);
    nn_weight_blocks(n, &lanes, &granule);
    if (!find_nest(s, t, anchor, last, &v) || anchor->n_axes < 2 || anchor->n_reduce != 1 || lanes != v.lanes ||
        granule != v.dot->granule || units == 0)
        return false;
    v.batch = 1;
    for (uint32_t i = 0; i + 2 < anchor->n_axes; i++)
        v.batch *= te_axis_most(s->g, anchor, i);
    v.blocks = (units + lanes - 1) / lanes;
    v.rows = te_axis_extent(anchor, anchor->n_axes - 2);
    v.between = v.products;
    v.numbers = v.rows * v.products;
    if (v.batch <= 0 || v.rows <= 0)
        return false;
    wide_cut cut = choose_cut(&v);
    /* Beside a function's registers there is no room for the sums, and a vector of them that is stored in part is in
     * memory. */
    const bool calls = anchor != last && te_calls_functions(s, anchor, last), apart = calls || units % lanes != 0;
    const char *tile = NULL, *acc = apart ? te_sums_beside_tile(s, anchor, last, &tile)
                                          : te_sums_stage(s, anchor, last, "local.reg");
    matmul_result(&v, &cut, !calls);
    matmul_sums(&v, acc);
    if (apart) {
        (void)matmul_tile(&v, tile);
        te_sched_annotate(s, TE_VECTORIZE, tile, "lane");
    }
    schedule_operands(&v);
    return true;
}

/* Stages that hold both operands as numbers of 16 bits. */
static bool takes(const te_case *x)
{
    return te_find_tag(x->s->g, "wide_data") != NULL;
}

/* The same, of packed weights. */
static bool takes_product(const te_case *x)
{
    int64_t lanes, granule;
    nn_weight_blocks(x->n, &lanes, &granule);
    return takes(x) && granule != 0;
}

static double cost(const te_case *x)
{
    const target_dot *d = target_find_dot(x->t, DT_I16, DT_I16, false);
    return d ? te_cost_of_dot(x->t, d, (te_tile){1, te_tile_regs(x->t) / 2}) : te_cost_one_by_one(x);
}

static const te_rule rows[] = {
    {"wide sums", TE_CONV, "numbers of 16 bits, widened for a part of the result", takes, cost, schedule_wide_conv},
    {"wide sums", TE_PRODUCT, "numbers of 16 bits, widened for a part of the result", takes_product, cost,
     schedule_wide_matmul},
};
const te_rules te_rules_wide = {rows, sizeof rows / sizeof *rows};
