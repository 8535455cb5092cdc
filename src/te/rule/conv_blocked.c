/* SPDX-License-Identifier: Apache-2.0 */
/* Default schedules of convolutions and pools in blocks of channels (NCHW16c). A tile of sums stays in vector
 * registers: lanes are one block of output channels, a tile is a few blocks by a few pixels of a row. Under it the
 * reduction runs over blocks of input channels, the window, and the channels of a block, in which order the packed
 * weights are read one after the other. */
#include "graph/op/nn.h"
#include "te/rule/rule.h"
#include "type/dot.h"

#include <assert.h>
#include <string.h>

#define AHEAD_QUARTERS   3            /* of the second-level cache: weights of a tile, beside as many fetched ahead */
#define LEAST_SHARE      0.8          /* of the time that workers are busy when they share groups of blocks */
#define LEAST_ROWS       0.95         /* the same for rows, where groups of blocks and rows would do as well */
/* Of the multiply-adds' cycles: reading from afar that chunks must save. An estimate; what chunks bring is in
 * docs/notes/performance.md, "Second-level caches". */
#define WORTH_A_CHUNK    0.02
#define TAPS_WRITTEN_OUT 25           /* taps of a window over single channels */
#define POOL_TILE        7            /* pixels */
#define PART_OF_L2       8            /* that rests of split data may take: a quarter took 1 % longer */

/* Axes of the result: batch, block, image, lane. */
enum { BATCH, BLOCK, IMAGE };

typedef struct blocked_conv {
    const te_graph *g;
    te_sched *s; /* of g */
    const struct target *t;
    te_node *anchor, *last;
    const char *acc; /* the stage of the sums */
    te_tile tile;
    uint32_t row, lane;  /* the last two axes: pixels of a row, lanes */
    int64_t in_block;    /* of the data; 0: plain */
    bool in_rows;        /* `dot` takes neighbors of a row of one plane */
    bool single;         /* a channel of the result sees only its own: depthwise convolution, pool */
    bool pool;           /* no axis of input channels */
    const graph_node *unpacked; /* takes weights of 4 bits apart, a part for all of its rows; NULL: they are bytes */
    bool steps;          /* a list of steps (graph/op/steps.h), of each block its own */
    int64_t shared;         /* blocks that share a list */
    int64_t weight_bytes;   /* of one */
    const target_dot *dot; /* products of integers, some inputs at a time; NULL: of floats, or one at a time */
    const char *part;    /* the loop that workers share */
    const char *weights; /* the parameter, to be fetched ahead; NULL: not worth it */
    const char *data;    /* the same of the image: of the pixels of the next tile */
    int64_t strip;       /* rows of a part; 0: of one image, all or one by one */
    int64_t chunk;       /* tiles whose weights stay in the second-level cache while all rows pass; 1: no chunks */
} blocked_conv;

static const char *axis(const blocked_conv *v, uint32_t i)
{
    return te_axis_name(v->last, i);
}

/* Bytes of weights for one block of output channels. */
static int64_t block_bytes(const blocked_conv *v)
{
    return te_axis_extent(v->anchor, v->lane) * te_reduce_most(v->g, v->anchor) * v->weight_bytes;
}

/* Rows outside of the blocks: all weights are read for every row, which a cache holds; else all rows for some blocks.
 */
static bool rows_come_first(const blocked_conv *v)
{
    return !v->single && !v->unpacked && te_weights_stay(v->t, te_axis_extent(v->anchor, BLOCK) * block_bytes(v));
}

/* The weights of a tile's blocks are read for every row, and those of the next blocks arrive: a cache holds both.
 * `width`: pixels of a row. */
static te_tile choose_tile(const blocked_conv *v, int64_t width)
{
    int64_t blocks = te_axis_extent(v->anchor, BLOCK),
            room = (int64_t)target_cpu(v->t)->l2_bytes * AHEAD_QUARTERS / 4 / block_bytes(v);
    room = room > 0 || !v->unpacked ? room : 1;
    int64_t most = rows_come_first(v) ? blocks : room;
    if (v->steps)
        return (te_tile){v->shared, te_choose_dot_rows(v->t, v->dot, v->shared, width)};
    if (te_axis_extent(v->anchor, v->row) == 0)
        return te_choose_tile_open(v->t, v->single ? 1 : blocks, false, te_axis_most(v->g, v->anchor, v->row), true);
    return v->dot ? te_choose_dot_tile(v->t, v->dot, blocks, width, most)
                  : te_choose_tile_within(v->t, v->single ? 1 : blocks, width, most);
}

/* Workers for each part, where rows of `width` in tiles of so many vectors make fewer parts than there are workers. */
static double workers_of_part(const blocked_conv *v, int64_t vectors, int64_t width)
{
    int64_t parts = te_axis_most(v->g, v->anchor, BATCH) * (te_axis_extent(v->anchor, BLOCK) / vectors);
    for (uint32_t i = IMAGE; i < v->row; i++)
        parts *= te_axis_most(v->g, v->anchor, i);
    parts = parts * te_axis_extent(v->anchor, v->row) / width;
    return parts > 0 && parts < v->t->workers ? (double)v->t->workers / (double)parts : 1;
}

/* Cycles of a pixel in rows of `width`, of workers that wait as well. */
static double pixel_cost(const void *ctx, int64_t width)
{
    const blocked_conv *v = ctx;
    te_tile x = choose_tile(v, width);
    double c = v->dot ? te_dot_tile_cost(v->t, v->dot, x, width) : te_tile_cost(v->t, x, width);
    return c / (double)width * workers_of_part(v, x.vectors, width);
}

/* Whether workers have nearly equal shares of `groups`; half of those that the schedule is for, too, for which a
 * package may be built. */
static bool shares_are_even(const struct target *t, int64_t groups, double least)
{
    for (int64_t workers = t->workers; workers > 1 && workers * 2 >= t->workers; workers /= 2)
        if ((double)groups < least * (double)((groups + workers - 1) / workers * workers))
            return false;
    return true;
}

/* Rows of the image under a row of the result, and rows from one to the next. */
static void rows_under(const blocked_conv *v, const graph_node *n, int64_t *taps, int64_t *stride)
{
    const int64_t *strides = NULL;
    *stride = !v->steps && graph_attr_ints(n, "strides", &strides) > 0 ? strides[0] : 1;
    *taps = v->anchor->n_reduce > 1 && !v->steps ? te_most(v->g, v->anchor->reduce_axes[1]->extent) : 1;
}

/* Where neither the image nor all weights stay in the second-level cache, the image would come from afar for each tile
 * of channels: then as many tiles as the cache holds, beside as many whose weights arrive, take their turns on each row
 * before the next row begins, and the image passes once for all of them. */
static int64_t tiles_in_chunk(const blocked_conv *v, const graph_node *n)
{
    const cpu_model *m = target_cpu(v->t);
    int64_t groups = te_axis_extent(v->last, BLOCK) / v->tile.vectors, panel = v->tile.vectors * block_bytes(v),
            rows = 1, image = type_bytes(te_in_type(n, 0)), taps, stride, chunk = 1;
    for (uint32_t i = 0; i < v->row; i++)
        rows *= i == BLOCK ? 1 : te_axis_extent(v->last, i);
    if (v->single || v->in_block < 2 || rows < 2 || image <= 0 || rows_come_first(v))
        return 1;
    rows_under(v, n, &taps, &stride);
    image = taps < stride ? image / stride * taps : image;
    const int64_t room = (int64_t)m->l2_bytes * AHEAD_QUARTERS / 4;
    if (image / te_axis_extent(v->last, BATCH) + 2 * panel <= room)
        return 1;
    const int64_t line = image / rows * (taps > stride ? taps : 1);
    for (int64_t i = 2; i < groups && 2 * i * panel + line <= room; i++)
        chunk = groups % i == 0 && shares_are_even(v->t, groups / i, LEAST_SHARE) ? i : chunk;
    const double saved = (double)(groups - groups / chunk) * (double)image / m->far_bytes,
                 lanes = v->dot ? (double)v->t->vector_bytes : (double)v->t->vector_bytes / 4,
                 work = (double)rows * (double)te_axis_extent(v->last, v->row) *
                        (double)(groups * panel / v->weight_bytes) / lanes / m->fma;
    return saved > WORTH_A_CHUNK * work ? chunk : 1;
}

/* Weights that a part takes apart serve as many rows as workers that are busy leave to it. 0: all of them. */
static int64_t rows_of_part(const blocked_conv *v)
{
    const int64_t rows = v->row > IMAGE ? te_axis_extent(v->last, v->row - 1) : 0,
                  groups = te_axis_most(v->g, v->last, BATCH) * (te_axis_extent(v->last, BLOCK) / v->tile.vectors);
    for (int64_t strips = 1; v->unpacked && strips <= rows; strips++)
        if (rows % strips == 0 && shares_are_even(v->t, groups * strips, LEAST_SHARE))
            return strips > 1 ? rows / strips : 0;
    return 0;
}

/* The first of the loops in front of `to` that are cut into parts: of the rows alone, where each block of channels goes
 * over all of them and they are enough. A worker then has the rows that it made, or makes, of all channels. */
static uint32_t first_cut(const blocked_conv *v, uint32_t to)
{
    int64_t rows = 1;
    for (uint32_t i = IMAGE; i < v->row; i++)
        rows *= te_axis_most(v->g, v->last, i);
    const bool alone = v->single && v->t->workers > 1 && v->row > IMAGE && shares_are_even(v->t, rows, LEAST_ROWS);
    return alone ? to - (v->row - IMAGE) : 0;
}

/* The result's loops: batch, rows and groups of blocks in parallel; tiles along a row; the tile. */
static void schedule_result(blocked_conv *v)
{
    te_sched *s = v->s;
    const char *o = v->last->name, *order[TYPE_MAX_RANK + 3];
    bool rows_first = rows_come_first(v);
    uint32_t n = 0;
    te_sched_split(s, o, axis(v, BLOCK), v->tile.vectors, "block_o", "block_i");
    if (v->chunk > 1)
        te_sched_split(s, o, "block_o", v->chunk, "chunk", "block_c");
    te_sched_split(s, o, axis(v, v->row), v->tile.rows, "col_o", "col_i");
    order[n++] = axis(v, BATCH);
    if (!rows_first)
        order[n++] = v->chunk > 1 ? "chunk" : "block_o";
    if (v->strip > 0) {
        te_sched_split(s, o, axis(v, v->row - 1), v->strip, "strip", "row");
        order[n++] = "strip";
    }
    const uint32_t shared = n;
    for (uint32_t i = IMAGE; i < v->row; i++)
        order[n++] = v->strip > 0 && i + 1 == v->row ? "row" : axis(v, i);
    if (rows_first || v->chunk > 1)
        order[n++] = rows_first ? "block_o" : "block_c";
    const uint32_t outer = v->unpacked && !v->single ? shared : v->weights ? 2 : n, first = first_cut(v, outer);
    order[n++] = "col_o";
    order[n++] = "col_i";
    order[n++] = "block_i";
    order[n++] = axis(v, v->lane);
    te_sched_reorder(s, o, n, order);
    te_sched_annotate(s, TE_UNROLL, o, "col_i");
    te_sched_annotate(s, TE_UNROLL, o, "block_i");
    te_sched_annotate(s, TE_VECTORIZE, o, axis(v, v->lane));
    const char *part = order[first];
    for (uint32_t i = first + 1; i < outer; i++) {
        const char *fused = arena_printf(&s->c->mem, i + 1 < outer ? "part%u" : "part", i);
        te_sched_fuse(s, o, part, order[i], fused);
        part = fused;
    }
    te_sched_annotate(s, TE_PARALLEL, o, part);
    v->part = part;
}

/* The reduction, from the outside in, and what of it is written out because its loops would be too short: the channels
 * of a few planes under the window; all of a small window over single channels. Else blocks of input channels stand
 * around the window, and the channels of a block inside. */
static uint32_t order_reduction(blocked_conv *v, const char **order)
{
    te_sched *s = v->s;
    const te_node *a = v->anchor;
    uint32_t n = 0, window = v->pool ? 0 : 1;
    if (v->steps) {
        order[0] = a->reduce_axes[0]->var->name;
        if (v->weights)
            te_sched_prefetch(s, v->acc, order[0], v->weights, v->last->name, "part");
        return 1;
    }
    const char *ic = window ? a->reduce_axes[0]->var->name : NULL;
    bool dense = v->in_block > 1 && !v->single;
    if (dense) {
        te_sched_split(s, v->acc, ic, v->dot && v->dot->tile ? v->dot->granule : v->in_block, "ic_o", "ic_i");
        order[n++] = "ic_o";
    }
    for (uint32_t i = window; i < a->n_reduce; i++)
        order[n++] = a->reduce_axes[i]->var->name;
    if (v->dot)
        te_sched_split(s, v->acc, v->in_rows ? order[n - 1] : "ic_i", v->dot->granule, "ic_m", "ic_g");
    const char *inner = !dense && !v->in_rows ? ic : v->dot ? "ic_m" : "ic_i";
    if (v->in_rows)
        order[n - 1] = inner;
    else if (ic)
        order[n++] = inner;
    for (uint32_t i = 0; v->single && te_reduce_most(v->g, a) <= TAPS_WRITTEN_OUT && i < n; i++)
        te_sched_annotate(s, TE_UNROLL, v->acc, order[i]);
    if (!dense && !v->single && !v->in_rows)
        te_sched_annotate(s, TE_UNROLL, v->acc, ic);
    if (v->weights)
        te_sched_prefetch(s, v->acc, dense ? inner : order[0], v->weights, v->last->name, "part");
    if (v->data)
        te_sched_prefetch(s, v->acc, inner, v->data, v->last->name, "col_o");
    return n;
}

/* Under the reduction, whose loops are the first n of `order`, pairs of pixels by pairs of channels: eight products of
 * each, of two blocks of inputs. */
static void schedule_pairs(blocked_conv *v, const char **order, uint32_t n)
{
    te_sched *s = v->s;
    const te_node *a = v->anchor;
    const int64_t pair = v->dot->tile;
    const char *row = te_axis_name(a, v->row), *lane = te_axis_name(a, v->lane), *block = te_axis_name(a, BLOCK);
    te_sched_split(s, v->acc, "ic_g", v->dot->granule / 2, "ic_h", "ic_v");
    te_sched_split(s, v->acc, row, pair, "row_m", "row_v");
    te_sched_split(s, v->acc, lane, pair, "lane_m", "lane_v");
    const bool rows_first = te_dot_rows_outside(v->dot, v->tile, te_axis_extent(a, v->lane));
    const char *const inner[] = {"row_v", "lane_v", "ic_h", "ic_v"};
    if (rows_first)
        order[n++] = "row_m";
    order[n++] = block;
    order[n++] = "lane_m";
    if (!rows_first)
        order[n++] = "row_m";
    for (uint32_t i = 0; i < sizeof inner / sizeof *inner; i++)
        order[n++] = inner[i];
    te_sched_reorder(s, v->acc, n, order);
    te_sched_annotate(s, TE_UNROLL, v->acc, "row_m");
    te_sched_annotate(s, TE_UNROLL, v->acc, block);
    te_sched_annotate(s, TE_UNROLL, v->acc, "lane_m");
    te_sched_tensorize(s, v->acc, "row_v", v->dot->intrinsic);
    te_sched_storage_tile(s, v->acc, row, lane, pair, pair);
}

/* The sums: the reduction, inside of it the tile. */
static void schedule_sums(blocked_conv *v)
{
    te_sched *s = v->s;
    const te_node *a = v->anchor;
    const char *order[2 * TYPE_MAX_RANK + 8];
    te_sched_compute_at(s, v->acc, v->last->name, "col_o");
    uint32_t n = order_reduction(v, order);
    if (v->dot && v->dot->tile) {
        schedule_pairs(v, order, n);
        return;
    }
    order[n++] = te_axis_name(a, v->row);
    order[n++] = te_axis_name(a, BLOCK);
    order[n++] = te_axis_name(a, v->lane);
    if (v->dot)
        order[n++] = v->steps ? a->reduce_axes[1]->var->name : "ic_g";
    te_sched_reorder(s, v->acc, n, order);
    te_sched_annotate(s, TE_UNROLL, v->acc, te_axis_name(a, v->row));
    te_sched_annotate(s, TE_UNROLL, v->acc, te_axis_name(a, BLOCK));
    if (v->dot)
        te_sched_tensorize(s, v->acc, te_axis_name(a, v->lane), v->dot->intrinsic);
    else
        te_sched_annotate(s, TE_VECTORIZE, v->acc, te_axis_name(a, v->lane));
}

/* Channels and, of integers, pixels that are known; lanes that are one vector. */
static bool has_tiles(const blocked_conv *v)
{
    const te_node *a = v->anchor;
    const bool may_be_open = !v->dot && !v->steps && !v->unpacked;
    const int64_t width = may_be_open ? te_axis_most(v->g, a, v->row) : te_axis_extent(a, v->row);
    return width > 0 && te_axis_extent(a, BLOCK) > 0 && te_reduce_most(v->g, a) > 0 &&
           te_axis_extent(a, v->lane) * 4 <= v->t->vector_bytes;
}

/* The instruction for products of the data's numbers with weights that are packed for it; NULL: none. */
static const target_dot *dot_of(const blocked_conv *v, const graph_node *n)
{
    int64_t granule = nn_layout_granule(graph_attr_string(n, "kernel_layout"));
    bool pairs = graph_attr(n, "pairs") && graph_attr_int(n, "pairs") != 0;
    const dtype a = te_in_type(n, 0)->dt, b = te_in_type(n, 1)->dt;
    const bool read = granule && !te_is_taken_apart(v->g, n);
    const target_dot *d = read ? target_find_packed_dot(v->t, a, b, pairs, granule) : NULL;
    const bool whole = d && (v->in_block % granule == 0 || (d->tile && v->in_block * 2 == granule));
    return whole && (v->in_block == 0) == v->in_rows ? d : NULL;
}

/* What the operator and its sums say; false: no tiles. */
static bool read_conv(blocked_conv *v, const graph_node *n)
{
    v->in_block = nn_data_block(n, "data_layout");
    v->unpacked = te_unpacked(v->g, n);
    v->weight_bytes = (int64_t)dtype_bytes(te_in_type(n, 1)->dt);
    v->in_rows = nn_layout_in_rows(graph_attr_string(n, "kernel_layout"));
    v->dot = dot_of(v, n);
    v->in_rows = v->in_rows && v->dot;
    v->lane = v->anchor->n_axes - 1;
    v->row = v->anchor->n_axes - 2;
    v->single = graph_attr_int(n, "groups") > 1 && te_reduce_most(v->g, v->anchor) <= TAPS_WRITTEN_OUT;
    return has_tiles(v);
}

int64_t te_blocked_conv_rows(const te_graph *g, const struct target *t, const graph_node *n, te_node *anchor)
{
    blocked_conv v = {.g = g, .t = t, .anchor = anchor};
    return read_conv(&v, n) ? te_rows_to_merge(te_axis_extent(anchor, v.row - 1), te_axis_extent(anchor, v.row),
                                               pixel_cost, &v) : 1;
}

/* Whether each pixel comes from afar, once, and no row brings those of the next: an image that the second-level cache
 * does not hold, under a window of one tap. A tile reads few pixels of many planes, too many for the processor to see
 * that the next tile's lie behind them. Data of integers is widened or rearranged first, or a quarter as large. */
static bool pixels_are_far(const blocked_conv *v, const graph_node *n)
{
    const int64_t image = type_bytes(te_in_type(n, 0));
    int64_t taps = 1;
    for (uint32_t i = 1; i < v->anchor->n_reduce; i++)
        taps *= te_most(v->g, v->anchor->reduce_axes[i]->extent);
    return !v->dot && !v->steps && !v->single && v->in_block > 1 && taps == 1 && image > target_cpu(v->t)->l2_bytes;
}

/* The loops of a convolution that is read. */
static bool schedule_conv(blocked_conv v, const graph_node *n)
{
    te_sched *s = v.s;
    te_node *anchor = v.anchor, *last = v.last;
    v.tile = choose_tile(&v, te_axis_extent(anchor, v.row));
    int64_t groups = te_axis_most(s->g, last, BATCH) * (te_axis_extent(last, BLOCK) / v.tile.vectors);
    v.chunk = v.unpacked ? 1 : tiles_in_chunk(&v, n);
    v.strip = rows_of_part(&v);
    if (!v.single && !rows_come_first(&v) && shares_are_even(v.t, groups / v.chunk, LEAST_SHARE))
        v.weights = te_find_parameter(s->g, (v.unpacked ? v.unpacked : n)->inputs[v.unpacked ? 0 : 1]->name);
    if (pixels_are_far(&v, n))
        v.data = te_find_parameter(s->g, n->inputs[0]->name);
    v.acc = te_sums_stage(s, anchor, last, "local.reg");
    schedule_result(&v);
    schedule_sums(&v);
    if (v.unpacked)
        te_place_unpacked(s, v.unpacked, last->name, v.part);
    return true;
}

static bool blocked(const te_case *x)
{
    blocked_conv v = {.g = x->s->g, .s = x->s, .t = x->t, .anchor = x->anchor, .last = x->last};
    return read_conv(&v, x->n) && schedule_conv(v, x->n);
}

/* Lists of data that is split: a part makes what they leave of large numbers for all of its rows and blocks, before the
 * sums begin. */
typedef struct split_cut {
    int64_t strip, shares; /* rows of a part; parts of the blocks */
} split_cut;

/* The highest strips whose rests stay in a part of the second-level cache, and as few shares of the blocks as keep all
 * workers busy. */
static split_cut choose_split_cut(const blocked_conv *v, const te_node *high)
{
    const te_node *y = v->last;
    const int64_t rows = te_axis_extent(y, v->row - 1), groups = te_axis_extent(y, BLOCK) / v->tile.vectors,
                  batch = te_axis_most(v->g, y, BATCH), lanes = te_axis_extent(y, v->lane),
                  line = te_axis_extent(y, v->row) * te_axis_extent(y, BLOCK) * lanes * 4 +
                         te_axis_extent(high, BLOCK) * te_axis_extent(high, v->row) * te_axis_extent(high, v->lane),
                  room = (int64_t)target_cpu(v->t)->l2_bytes / PART_OF_L2;
    split_cut best = {1, 1};
    for (int64_t shares = 1; shares <= groups; shares++) {
        if (groups % shares != 0)
            continue;
        for (int64_t strip = rows; strip > 0; strip--) {
            if (rows % strip != 0 || (strip > 1 && strip * line / shares > room))
                continue;
            if (shares_are_even(v->t, batch * (rows / strip) * shares, LEAST_ROWS))
                return (split_cut){strip, shares};
        }
    }
    return best;
}

static void schedule_split_result(blocked_conv *v, const split_cut *cut)
{
    te_sched *s = v->s;
    const te_node *y = v->last;
    const char *o = y->name, *n = axis(v, BATCH), *lane = axis(v, v->lane);
    te_sched_split(s, o, axis(v, BLOCK), v->tile.vectors, "groups", "block_i");
    te_sched_split(s, o, "groups", te_axis_extent(y, BLOCK) / v->tile.vectors / cut->shares, "share", "group");
    te_sched_split(s, o, axis(v, v->row - 1), cut->strip, "strip", "row");
    te_sched_split(s, o, axis(v, v->row), v->tile.rows, "col_o", "col_i");
    te_sched_reorder(s, o, 9, (const char *[]){"share", n, "strip", "group", "row", "col_o", "col_i", "block_i", lane});
    te_sched_fuse(s, o, "share", n, "share0");
    te_sched_fuse(s, o, "share0", "strip", "part");
    te_sched_annotate(s, TE_PARALLEL, o, "part");
    te_sched_annotate(s, TE_UNROLL, o, "col_i");
    te_sched_annotate(s, TE_UNROLL, o, "block_i");
    te_sched_annotate(s, TE_VECTORIZE, o, lane);
}

/* Steps are for weights whose sums of pairs are proved, and so is the rest of them. */
static void schedule_rest(const blocked_conv *v, const struct target *t, const te_node *high, const te_node *rest)
{
    te_sched *s = v->s;
    const target_dot *dot = target_find_dot(t, DT_U8, DT_I8, true);
    assert(dot);
    const char *r = rest->name, *lane = te_axis_name(rest, v->lane), *order[TYPE_MAX_RANK + 8];
    uint32_t n = 0;
    te_sched_compute_at(s, high->name, v->last->name, "part");
    te_sched_fuse(s, high->name, te_axis_name(high, v->row), te_axis_name(high, v->lane), "line");
    te_sched_compute_at(s, r, v->last->name, "part");
    te_sched_split(s, r, te_axis_name(rest, BLOCK), v->tile.vectors, "block_o", "block_i");
    order[n++] = te_axis_name(rest, BATCH);
    for (uint32_t i = IMAGE; i <= v->row; i++)
        order[n++] = te_axis_name(rest, i);
    for (uint32_t i = 0; i + 1 < rest->n_reduce; i++)
        order[n++] = rest->reduce_axes[i]->var->name;
    const char *const inner[] = {"block_o", "block_i", lane, rest->reduce_axes[rest->n_reduce - 1]->var->name};
    for (uint32_t i = 0; i < sizeof inner / sizeof *inner; i++)
        order[n++] = inner[i];
    te_sched_reorder(s, r, n, order);
    te_sched_annotate(s, TE_UNROLL, r, "block_i");
    te_sched_tensorize(s, r, lane, dot->intrinsic);
}

static bool schedule_conv_steps(const te_case *x)
{
    te_sched *s = x->s;
    const struct target *t = x->t;
    const graph_node *n = x->n;
    te_node *anchor = x->anchor, *last = x->last;
    blocked_conv v = {.g = s->g, .s = s, .t = t, .anchor = anchor, .last = last, .steps = true};
    const te_node *beside[2] = {te_find_tag(s->g, "steps_high"), te_find_tag(s->g, "steps_rest")};
    v.dot = graph_attr_int(n, "proved") != 0 ? target_find_steps_dot(t, te_in_type(n, 0)->dt) : NULL;
    if (!v.dot || te_is_taken_apart(s->g, n) || anchor->n_axes != 5 ||
        !te_is_one_nest_with(s, anchor, last, NULL, beside[0] ? 2 : 0, beside) ||
        te_axis_extent(anchor, 4) * 4 != t->vector_bytes)
        return false;
    v.in_block = v.dot->granule;
    v.unpacked = te_unpacked(s->g, n);
    if (!v.unpacked && !te_find_parameter(s->g, n->inputs[1]->name)) /* of one number, which is no operand */
        return false;
    v.weight_bytes = v.dot->granule / te_most(s->g, anchor->reduce_axes[1]->extent); /* of both runs */
    v.lane = anchor->n_axes - 1;
    v.row = anchor->n_axes - 2;
    int64_t shared = 0;
    (void)dim_is_const(te_in_type(n, 1)->shape.dims[3], &shared);
    v.shared = shared / te_axis_extent(anchor, v.lane);
    if (!has_tiles(&v) || (beside[0] && v.unpacked)) /* split data has no stage for weights that are taken apart */
        return false;
    if (!beside[0])
        return schedule_conv(v, n);
    v.tile = choose_tile(&v, te_axis_extent(anchor, v.row));
    const split_cut cut = choose_split_cut(&v, beside[0]);
    v.acc = te_sums_stage(s, anchor, last, "local.reg");
    schedule_split_result(&v, &cut);
    schedule_sums(&v);
    schedule_rest(&v, t, beside[0], beside[1]);
    return true;
}

/* For small processors, rows and columns that are not cut at the border: windows there have fewer rows or columns. What
 * all channels of a pixel share is made once for it. */
static void keep_whole(const te_case *x, uint32_t n, te_node *const *shared)
{
    const te_node *last = x->last;
    const char *column = te_axis_name(last, last->n_axes - 2u);
    for (uint32_t i = 0; i < n; i++) {
        te_sched_set_scope(x->s, shared[i]->name, "local.reg");
        te_sched_compute_at(x->s, shared[i]->name, last->name, column);
    }
    for (uint32_t i = IMAGE; i + 1 < last->n_axes; i++)
        te_sched_pragma(x->s, last->name, te_axis_name(last, i), "whole", 1);
}

/* Means of sums of integers: these, and where a mean is near the middle of two integers the sum of floats, are made
 * element by element. */
static bool windows_of_means(const te_case *x)
{
    static const char *const tags[] = {"again", "near", "factor", "base"};
    te_sched *s = x->s;
    te_node *anchor = x->anchor, *last = x->last, *pad = te_find_tag(s->g, "pad"), *made[4];
    for (uint32_t i = 0; i < 4; i++) {
        made[i] = te_find_tag(s->g, tags[i]);
        if (!made[i])
            return false;
    }
    const te_node *beside[4] = {made[0], made[1], made[2], made[3]};
    if (anchor == last || !te_is_one_nest_with(s, anchor, last, "pad", 4, beside))
        return false;
    const char *inner = te_axis_name(last, last->n_axes - 1);
    if (pad && !te_is_inlined(s, pad))
        te_sched_compute_at(s, pad->name, last->name, te_fuse_parallel(s, last, 2));
    const bool whole = x->t->small && nn_data_block(x->n, "data_layout") > 0;
    te_node *const stages[3] = {anchor, made[0], made[1]};
    for (uint32_t i = 0; i < (whole ? 2 : 3); i++) {
        te_sched_set_scope(s, stages[i]->name, "local.reg");
        te_sched_compute_at(s, stages[i]->name, last->name, inner);
    }
    if (whole)
        te_sched_compute_inline(s, made[1]->name);
    for (uint32_t i = 2; !whole && i < 4; i++)
        te_sched_compute_inline(s, made[i]->name);
    if (whole)
        keep_whole(x, 2, made + 2);
    return true;
}

static bool pool(const te_case *x)
{
    te_sched *s = x->s;
    const te_node *last = x->last;
    blocked_conv v = {.g = s->g, .s = s, .t = x->t, .anchor = x->anchor, .last = x->last, .single = true, .pool = true,
                      .tile = {1, 1}, .chunk = 1};
    v.lane = last->n_axes - 1;
    v.row = last->n_axes - 2;
    if (!has_tiles(&v))
        return false;
    v.tile.rows = te_axis_most(s->g, last, v.row) < POOL_TILE ? te_axis_most(s->g, last, v.row) : POOL_TILE;
    v.acc = te_sums_stage(s, x->anchor, x->last, "local.reg");
    schedule_result(&v);
    schedule_sums(&v);
    return true;
}

/* --- rules --- */

static bool takes_blocks(const te_case *x)
{
    return x->anchor && !te_find_tag(x->s->g, "pair_data") && !te_find_tag(x->s->g, "wide_data") &&
           x->anchor->n_axes >= 3 && nn_data_block(x->n, "out_layout") &&
           te_is_one_nest(x->s, x->anchor, x->last, "pad");
}

/* Proved: no sum of a step is too large for 16 bits. */
static bool takes_steps(const te_case *x)
{
    return graph_attr_int(x->n, "proved") != 0 && target_find_steps_dot(x->t, te_in_type(x->n, 0)->dt);
}

static bool takes_means(const te_case *x)
{
    return te_find_tag(x->s->g, "near") && te_find_tag(x->s->g, "again");
}

static bool takes_pool(const te_case *x)
{
    return nn_data_block(x->n, "data_layout") && te_is_one_nest(x->s, x->anchor, x->last, NULL);
}

static double cost_blocks(const te_case *x)
{
    blocked_conv v = {.g = x->s->g, .t = x->t, .anchor = x->anchor, .last = x->last};
    if (!read_conv(&v, x->n))
        return te_cost_one_by_one(x);
    const te_tile tile = {1, te_tile_regs(x->t) / 2};
    return v.dot ? te_cost_of_dot(x->t, v.dot, tile) : te_cost_of_tile(x->t, tile);
}

static double cost_steps(const te_case *x)
{
    return te_cost_of_dot(x->t, target_find_steps_dot(x->t, te_in_type(x->n, 0)->dt), (te_tile){1, 1});
}

static double cost_pool(const te_case *x)
{
    return te_cost_of_tile(x->t, (te_tile){1, POOL_TILE});
}

static const te_rule rows[] = {
    {"blocks of channels", TE_CONV, "a block of channels in lanes, pixels broadcast against them, sums in registers",
     takes_blocks, cost_blocks, blocked},
    {"steps", TE_CONV_STEPS, "the same, by lists of steps", takes_steps, cost_steps, schedule_conv_steps},
    {"means of windows", TE_POOL, "integers, and floats where a mean is near the middle of two", takes_means,
     te_cost_one_by_one, windows_of_means},
    {"blocks of channels", TE_POOL, "a block of channels in lanes, a few windows side by side", takes_pool, cost_pool,
     pool},
    {"one by one", TE_POOL, "the result of each window in a register", te_takes_one_by_one, te_cost_one_by_one,
     te_one_by_one},
};
const te_rules te_rules_blocked = {rows, sizeof rows / sizeof *rows};
