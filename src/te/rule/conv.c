/* SPDX-License-Identifier: Apache-2.0 */
/* Default schedules of convolutions. The fast form keeps a tile of sums in vector registers: lanes
 * over output channels (the packed weights' block), several pixels broadcast against them.
 * The tile is chosen by counting cycles, remainders included. Other layouts get a row of sums that the C compiler can
 * vectorize. */
#include "graph/op/nn.h"
#include "te/merge.h"
#include "te/rule/rule.h"
#include "type/target.h"


#define WEIGHTS_REREAD   1            /* padded inputs this many times the weights are not kept whole */
#define ROW_LIMIT        4096         /* elements of a row of sums */
#define DEPTHWISE_TAPS   25           /* window taps written out in a depthwise convolution */

/* --- a tile of sums in registers --- */

typedef VEC(const char *) name_list;

static void push(te_sched *s, name_list *l, const char *name)
{
    vec_push(&s->c->mem, l, name);
}

static void reorder(te_sched *s, const char *stage, const name_list *l)
{
    te_sched_reorder(s, stage, l->len, l->data);
}

/* Splits lane axis `lane` of the stage into blocks of `vectors` vectors: lane_o, lane_m, lane_v. */
static void split_lanes(te_sched *s, const char *stage, const char *lane, te_tile t, int64_t v)
{
    te_sched_split(s, stage, lane, t.vectors * v, "lane_o", "lane_i");
    te_sched_split(s, stage, "lane_i", v, "lane_m", "lane_v");
}

static void mark_tile(te_sched *s, const char *stage, const char *row, bool vectors)
{
    te_sched_annotate(s, TE_UNROLL, stage, row);
    te_sched_annotate(s, TE_UNROLL, stage, "lane_m");
    te_sched_annotate(s, vectors ? TE_VECTORIZE : TE_UNROLL, stage, "lane_v");
}

/* Loops of the sums: other data axes, reduction, then the tile. */
static void schedule_sums(te_sched *s, const char *acc, const te_node *anchor, uint32_t lane, uint32_t row, int64_t v)
{
    name_list order = {0};
    te_sched_split(s, acc, te_axis_name(anchor, lane), v, "lane_m", "lane_v");
    for (uint32_t i = 0; i < anchor->n_axes; i++)
        if (i != lane && i != row)
            push(s, &order, te_axis_name(anchor, i));
    for (uint32_t i = 0; i < anchor->n_reduce; i++)
        push(s, &order, anchor->reduce_axes[i]->var->name);
    if (row < anchor->n_axes)
        push(s, &order, te_axis_name(anchor, row));
    push(s, &order, "lane_m");
    push(s, &order, "lane_v");
    reorder(s, acc, &order);
    if (row < anchor->n_axes)
        te_sched_annotate(s, TE_UNROLL, acc, te_axis_name(anchor, row));
    te_sched_annotate(s, TE_UNROLL, acc, "lane_m");
    te_sched_annotate(s, TE_VECTORIZE, acc, "lane_v");
}

/* --- convolution --- */

static int64_t weight_bytes(const te_graph *g, const te_node *anchor)
{
    return te_axis_extent(anchor, 1) * te_reduce_most(g, anchor) * 4;
}

/* Fuses two neighboring loops and makes the result parallel. */
static const char *fuse_outer(te_sched *s, const char *stage, const char *a, const char *b)
{
    te_sched_fuse(s, stage, a, b, "part");
    te_sched_annotate(s, TE_PARALLEL, stage, "part");
    return "part";
}

static int64_t padded_bytes(const te_graph *g, const te_node *pad)
{
    int64_t product = 4;
    for (uint32_t i = 0; pad && i < pad->n_axes; i++)
        if (!i64_mul(product, te_axis_most(g, pad, i), &product))
            return INT64_MAX;
    return pad ? product : 0;
}

/* Output rows outside of the channels: the weights are read again for every row, but the padding of a row is made once
 * and only a few rows are kept. Not for weights that are too large to be read so often. */
static bool rows_come_first(const te_sched *s, const struct target *t, const te_node *anchor)
{
    int64_t weights = weight_bytes(s->g, anchor);
    return te_weights_stay(t, weights) || padded_bytes(s->g, te_find_tag(s->g, "pad")) > WEIGHTS_REREAD * weights;
}

/* The loops of a packed convolution's result, from the outside in; a line of pixels is cut into tiles, which take the
 * place of rows when there are none. */
static void order_packed(te_sched *s, const te_node *last, bool rows_outside)
{
    uint32_t row = last->n_axes - 1;
    name_list order = {0};
    push(s, &order, te_axis_name(last, 0));
    if (rows_outside)
        push(s, &order, row > 2 ? te_axis_name(last, 2) : "col_o");
    push(s, &order, "lane_o");
    for (uint32_t i = rows_outside ? 3 : 2; i < row; i++)
        push(s, &order, te_axis_name(last, i));
    if (row > 2 || !rows_outside)
        push(s, &order, "col_o");
    push(s, &order, "col_i");
    push(s, &order, "lane_m");
    push(s, &order, "lane_v");
    reorder(s, last->name, &order);
}

static void packed_conv(te_sched *s, const struct target *t, te_node *anchor, te_node *last, int64_t v)
{
    uint32_t row = last->n_axes - 1;
    int64_t channels = te_axis_extent(anchor, 1);
    const te_node *pad = te_find_tag(s->g, "pad");
    int64_t width = te_axis_extent(anchor, row), blocks = (channels + v - 1) / v;
    bool rows_outside = rows_come_first(s, t, anchor) && (row > 2 || (pad && width > 0));
    te_tile tl = width > 0 ? te_choose_tile(t, blocks, width)
                           : te_choose_tile_open(t, blocks, false, te_axis_most(s->g, anchor, row), true);
    bool even = channels % v == 0;
    const char *acc = te_sums_stage(s, anchor, last, even ? "local.reg" : "local"), *o = last->name, *outer = "lane_o";
    split_lanes(s, o, te_axis_name(last, 1), tl, v);
    te_sched_split(s, o, te_axis_name(last, row), tl.rows, "col_o", "col_i");
    order_packed(s, last, rows_outside);
    mark_tile(s, o, "col_i", even);
    if (rows_outside)
        outer = row > 2 ? te_axis_name(last, 2) : "col_o";
    const char *part = fuse_outer(s, o, te_axis_name(last, 0), outer);
    te_sched_compute_at(s, acc, o, rows_outside && row == 2 ? "lane_o" : "col_o");
    schedule_sums(s, acc, anchor, 1, row, v);
    if (pad)
        te_sched_compute_at(s, pad->name, o, part);
}

/* One output element after the other, taps written out: the C compiler vectorizes along the row. */
static void depthwise_conv(te_sched *s, te_node *anchor, te_node *last)
{
    const te_node *pad = te_find_tag(s->g, "pad");
    const char *acc = te_sums_stage(s, anchor, last, "local.reg");
    const char *part = fuse_outer(s, last->name, te_axis_name(last, 0), te_axis_name(last, 1));
    te_sched_compute_at(s, acc, last->name, te_axis_name(last, last->n_axes - 1));
    for (uint32_t i = 0; i < anchor->n_reduce; i++)
        te_sched_annotate(s, TE_UNROLL, acc, anchor->reduce_axes[i]->var->name);
    if (pad)
        te_sched_compute_at(s, pad->name, last->name, part);
}

/* Are the padded rows under one output row, all channels of them, less than the padded planes of one group? */
static bool rows_are_smaller(const te_node *pad, const te_node *anchor)
{
    int64_t per_group = 0, taps = 0;
    return pad && anchor->n_reduce > 1 && tir_is_int(anchor->reduce_axes[0]->extent, &per_group) &&
           tir_is_int(anchor->reduce_axes[1]->extent, &taps) &&
           taps * te_axis_extent(pad, 1) < te_axis_extent(pad, 2) * per_group;
}

/* A row of sums in a small array, the reduction outside of it. */
static void plain_conv(te_sched *s, const struct target *t, te_node *anchor, te_node *last)
{
    const te_node *pad = te_find_tag(s->g, "pad");
    uint32_t n = last->n_axes, second = 1;
    const char *acc = te_sums_stage(s, anchor, last, "local");
    if (n > 3 && rows_are_smaller(pad, anchor) && rows_come_first(s, t, anchor)) {
        te_sched_reorder(s, last->name, 2, (const char *[]){te_axis_name(last, 2), te_axis_name(last, 1)});
        second = 2;
    }
    const char *part = fuse_outer(s, last->name, te_axis_name(last, 0), te_axis_name(last, second));
    uint32_t around = n > 4 || second == 1 ? n - 2 : 1; /* the loop around the row */
    te_sched_compute_at(s, acc, last->name, n > 3 ? te_axis_name(last, around) : part);
    name_list order = {0};
    for (uint32_t i = 0; i < anchor->n_reduce; i++)
        push(s, &order, anchor->reduce_axes[i]->var->name);
    push(s, &order, te_axis_name(anchor, n - 1));
    reorder(s, acc, &order);
    if (pad)
        te_sched_compute_at(s, pad->name, last->name, part);
}

/* --- rows that are walked as one --- */

typedef struct packed_rows {
    const struct target *t;
    int64_t blocks;
} packed_rows;

static double packed_pixel_cost(const void *ctx, int64_t width)
{
    const packed_rows *p = ctx;
    return te_tile_cost(p->t, te_choose_tile(p->t, p->blocks, width), width) / (double)width;
}

/* Windows of one tap: a pixel reads the pixel at its place, or one that the stride says. */
static bool has_no_window(const te_node *anchor)
{
    for (uint32_t i = 1; i < anchor->n_reduce; i++)
        if (!tir_is_const(anchor->reduce_axes[i]->extent, 1))
            return false;
    return anchor->n_reduce > 1;
}

te_graph *te_merge_conv(te_graph *g, const struct target *t, const graph_node *n, te_node *anchor)
{
    int64_t v = nn_layout_block(graph_attr_string(n, "kernel_layout")), rows = 1;
    bool blocked = nn_data_block(n, "out_layout") != 0;
    uint32_t row = anchor->n_axes - (blocked ? 2 : 1);
    if (te_find_tag(g, "pair_data"))
        return g;
    if (!has_no_window(anchor) || row < 3 || te_axis_extent(anchor, row - 1) < 2)
        return g;
    if (te_find_tag(g, "wide_data"))
        rows = te_wide_conv_rows(g, t, n, anchor);
    else if (blocked)
        rows = te_blocked_conv_rows(g, t, n, anchor);
    else if (v > 1 && t->vector_bytes / 4 == v && te_axis_extent(anchor, row) > 0)
        rows = te_rows_to_merge(te_axis_extent(anchor, row - 1), te_axis_extent(anchor, row), packed_pixel_cost,
                                &(packed_rows){t, (te_axis_extent(anchor, 1) + v - 1) / v});
    te_graph *merged = rows > 1 ? te_merge_rows(g, row - 1, te_axis_extent(anchor, row - 1),
                                                te_axis_extent(anchor, row), rows) : NULL;
    return merged ? merged : g;
}

/* --- rules --- */

static int64_t row_of(const te_case *x)
{
    return te_axis_most(x->s->g, x->anchor, x->anchor->n_axes - 1);
}

/* One nest, of numbers as they are. */
static bool is_nest(const te_case *x)
{
    return x->anchor && !te_find_tag(x->s->g, "pair_data") && !te_find_tag(x->s->g, "wide_data") &&
           x->anchor->n_axes >= 3 && te_is_one_nest(x->s, x->anchor, x->last, "pad");
}

/* Planes of channels, not blocks of them. */
static bool has_planes(const te_case *x)
{
    return is_nest(x) && !nn_data_block(x->n, "out_layout");
}

static int64_t packed_lanes(const te_case *x)
{
    const int64_t v = nn_layout_block(graph_attr_string(x->n, "kernel_layout"));
    return v > 1 && x->t->vector_bytes / 4 == v ? v : 0;
}

static bool takes_packed(const te_case *x)
{
    return has_planes(x) && packed_lanes(x) && row_of(x) > 0;
}

/* Weights by channel; packed ones are not read along a row. */
static bool takes_planes(const te_case *x)
{
    return has_planes(x) && !(packed_lanes(x) && row_of(x) > 0);
}

static bool takes_windows(const te_case *x)
{
    const int64_t taps = te_reduce_most(x->s->g, x->anchor);
    return takes_planes(x) && graph_attr_int(x->n, "groups") > 1 && taps > 0 && taps <= DEPTHWISE_TAPS;
}

static bool takes_row(const te_case *x)
{
    return takes_planes(x) && row_of(x) > 0 && row_of(x) <= ROW_LIMIT;
}

static double cost_packed(const te_case *x)
{
    const int64_t v = packed_lanes(x), blocks = (te_axis_extent(x->anchor, 1) + v - 1) / v;
    return te_cost_of_tile(x->t, te_choose_tile(x->t, blocks, row_of(x)));
}

static double cost_windows(const te_case *x)
{
    return te_cost_in_c(x->t, 2);
}

static double cost_row(const te_case *x)
{
    return te_cost_of_row(x->t, 0);
}

static bool packed(const te_case *x)
{
    packed_conv(x->s, x->t, x->anchor, x->last, packed_lanes(x));
    return true;
}

static bool windows(const te_case *x)
{
    depthwise_conv(x->s, x->anchor, x->last);
    return true;
}

static bool row_of_sums(const te_case *x)
{
    plain_conv(x->s, x->t, x->anchor, x->last);
    return true;
}

/* Along a row too long for an array the border is cut off the loop later. */
static bool one_by_one(const te_case *x)
{
    const te_node *pad = te_find_tag(x->s->g, "pad");
    if (pad && has_planes(x))
        te_sched_compute_inline(x->s, pad->name);
    return te_one_by_one(x);
}

static const te_rule rows[] = {
    {"packed tiles", TE_CONV, "channels in lanes, pixels broadcast against them, sums in registers", takes_packed,
     cost_packed, packed},
    {"planes", TE_CONV, "pixels of a line in lanes, weights of channels broadcast against them", takes_planes,
     te_cost_planes, te_schedule_planes},
    {"windows", TE_CONV, "one window after the other, its taps written out", takes_windows, cost_windows, windows},
    {"row of sums", TE_CONV, "the reduction around a row of sums in an array", takes_row, cost_row, row_of_sums},
    {"one by one", TE_CONV, "the sum of each result in a register", is_nest, te_cost_one_by_one, one_by_one},
};
const te_rules te_rules_conv = {rows, sizeof rows / sizeof *rows};
