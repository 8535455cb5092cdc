/* SPDX-License-Identifier: Apache-2.0 */
/* Default schedules of matrix products. A tile of sums stays in vector registers: lanes over columns of the right
 * operand (blocks of packed weights, or its rows as they are), several rows of the left operand broadcast against
 * them. A panel of the right operand serves all rows; while it does, packed weights of the next panel are fetched,
 * because a network reads each weight once and finds it in far memory. The epilogue runs over a tile in the first
 * cache: what it loads and computes would push sums out of their registers, in which the C compiler also keeps what it
 * could load again. A panel that the second-level cache does not hold is cut along the reduction: a block of it serves
 * all rows, whose sums wait in the cache for the next block. */
#include "graph/op/nn.h"
#include "te/rule/rule.h"
#include "tir/walk.h"
#include "type/dot.h"

#include <string.h>

#define ROW_LIMIT  4096 /* elements of a row of sums */
#define TAKEN_APART_PART 4 /* of the first-level cache, for weights that were two in a byte */
#define FEW_PANELS 8    /* panels that do not keep workers busy */
#define LONG_SUM   64   /* steps of the reduction beside which storing the sums is little */

/* Blocks of the reduction: parts of the second-level cache. On Zen 5 blocks of 1024 steps were as fast as any in most
 * shapes, of 2048 and 4096, which fill more of it, up to 1 and 4 % slower. */
#define STAYS_QUARTERS 3   /* of it: a panel and a tile's rows, which need no blocks */
#define BLOCK_PART     2   /* one of so many: two panels' blocks, one of which arrives, and a tile's rows */
#define ASKED_PART     4   /* the same: a panel that is larger than that, a tuner may cut */
#define LEAST_STEPS    256 /* of a block: beside them a tile's way to its sums and back is little */

typedef struct matmul_plan {
    te_sched *s;
    te_node *anchor, *last;
    te_tile tile;
    int64_t lanes;
    uint32_t row, lane;  /* axes; row is n_axes when the left operand is a vector */
    bool rows_shared;    /* workers share tiles of rows, not panels alone */
    bool whole;          /* sums are made of whole vectors, and stored in part where columns end within one */
    bool open;           /* how many columns there are, each run says: panels of them are no parallel loop, which would
                          * keep its guard, but one that is cut where the last whole panel ends */
    const char *weights; /* packed right operand; NULL: not packed */
    const target_dot *dot; /* products of integers, some at a time; NULL: of floats */
    const graph_node *unpacked; /* takes weights of 4 bits apart; NULL: they are bytes */
    int64_t taken_apart;        /* steps of the reduction for which they are, at a time; 0: for all of them, once */
    bool listed;           /* `dot` is a step of lists, which columns of one vector share (graph/op/steps.h) */
    const te_node *blocks; /* sums of blocks of the reduction, of weights that are taken apart there; NULL: none */
    const target_dot *word; /* and of integers, all of a word at a time; NULL: of floats, one by one */
    int64_t steps;          /* of a block of the reduction; 0: all at once */
    int64_t waiting;        /* with blocks: tiles of rows whose sums wait in the cache; 0: all */
} matmul_plan;

/* --- loops --- */

/* An epilogue over the tile in the first cache: it costs a store and a load for every sum, which a long reduction does
 * not notice, and leaves all registers to the sums. */
static bool is_apart(const matmul_plan *p)
{
    /* The end of integers takes few registers, and what it stores is a quarter of the sums. */
    return (!p->dot && te_reduce_most(p->s->g, p->anchor) >= LONG_SUM) ||
           te_calls_functions(p->s, p->anchor, p->last);
}

/* Data axes of the stage but row and lane; how many there are. */
static uint32_t outer_axes(const matmul_plan *p, const te_node *n, const char **names)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n->n_axes; i++)
        if (i != p->row && i != p->lane)
            names[count++] = te_axis_name(n, i);
    return count;
}

/* The outer loop of the reduction. */
static const char *sum_loop(const matmul_plan *p)
{
    return p->dot && !p->listed ? "k_m" : p->steps > 0 ? "k_i" : p->anchor->reduce_axes[0]->var->name;
}

/* The sums of one tile in pairs of rows and columns, each of which has an instruction for eight products. */
static void write_out_pairs(const matmul_plan *p, const char *acc)
{
    te_sched *s = p->s;
    const te_node *a = p->anchor;
    const int64_t pair = p->dot->tile;
    const char **order = arena_array(&s->c->mem, const char *, a->n_axes + 8u), *row = te_axis_name(a, p->row),
               *lane = te_axis_name(a, p->lane);
    uint32_t n = outer_axes(p, a, order);
    te_sched_split(s, acc, a->reduce_axes[0]->var->name, p->dot->granule, "k_m", "k_i");
    te_sched_split(s, acc, "k_i", p->dot->granule / 2, "k_h", "k_g");
    te_sched_split(s, acc, row, pair, "row_m", "row_v");
    te_sched_split(s, acc, lane, pair, "lane_m", "lane_v");
    const bool rows_first = te_dot_rows_outside(p->dot, p->tile, p->lanes);
    order[n++] = "k_m";
    order[n++] = rows_first ? "row_m" : "lane_m";
    order[n++] = rows_first ? "lane_m" : "row_m";
    const char *const inner[] = {"row_v", "lane_v", "k_h", "k_g"};
    for (uint32_t i = 0; i < sizeof inner / sizeof *inner; i++)
        order[n++] = inner[i];
    te_sched_reorder(s, acc, n, order);
    te_sched_annotate(s, TE_UNROLL, acc, "row_m");
    te_sched_annotate(s, TE_UNROLL, acc, "lane_m");
    te_sched_tensorize(s, acc, "row_v", p->dot->intrinsic);
    te_sched_storage_tile(s, acc, row, lane, pair, pair);
}

/* Loops row, lane_m, lane_v of a stage of one tile, written out; `reduce`: its reduction outside of them. */
static void write_out_tile(const matmul_plan *p, const char *stage, bool reduce)
{
    te_sched *s = p->s;
    const te_node *a = p->anchor;
    const char **order = arena_array(&s->c->mem, const char *, a->n_axes + a->n_reduce + 4u);
    te_sched_split(s, stage, te_axis_name(a, p->lane), p->lanes, "lane_m", "lane_v");
    uint32_t n = outer_axes(p, a, order);
    if (reduce && p->dot && !p->listed)
        te_sched_split(s, stage, a->reduce_axes[0]->var->name, p->dot->granule, p->taken_apart ? "k_b" : "k_m", "k_g");
    if (reduce && p->taken_apart) {
        te_sched_split(s, stage, "k_b", p->taken_apart, "k_o", "k_m");
        order[n++] = "k_o";
    }
    if (reduce && a->n_reduce > 0)
        order[n++] = sum_loop(p);
    if (p->row < a->n_axes)
        order[n++] = te_axis_name(a, p->row);
    order[n++] = "lane_m";
    order[n++] = "lane_v";
    if (reduce && p->dot)
        order[n++] = p->listed ? a->reduce_axes[1]->var->name : "k_g";
    te_sched_reorder(s, stage, n, order);
    if (p->row < a->n_axes)
        te_sched_annotate(s, TE_UNROLL, stage, te_axis_name(a, p->row));
    te_sched_annotate(s, TE_UNROLL, stage, "lane_m");
    if (reduce && p->dot)
        te_sched_tensorize(s, stage, "lane_v", p->dot->intrinsic);
    else
        te_sched_annotate(s, TE_VECTORIZE, stage, "lane_v");
}

/* The tile's sums of one block: a word of weights is taken apart, written out, for all rows. */
static void write_out_blocks(const matmul_plan *p, const char *acc)
{
    te_sched *s = p->s;
    const te_node *b = p->blocks;
    const char *o = b->name, **order = arena_array(&s->c->mem, const char *, b->n_axes + b->n_reduce + 1u);
    te_sched_set_scope(s, o, "local.reg");
    te_sched_compute_at(s, o, acc, sum_loop(p));
    te_sched_split(s, o, te_axis_name(b, p->lane), p->lanes, "lane_m", "lane_v");
    uint32_t n = outer_axes(p, b, order);
    for (uint32_t i = 0; i < (p->word ? 1 : b->n_reduce); i++) {
        order[n++] = b->reduce_axes[i]->var->name;
        if (i > 0)
            te_sched_annotate(s, TE_UNROLL, o, order[n - 1]);
    }
    if (p->row < p->anchor->n_axes) {
        order[n++] = te_axis_name(b, p->row);
        te_sched_annotate(s, TE_UNROLL, o, order[n - 1]);
    }
    order[n++] = "lane_m";
    order[n++] = "lane_v";
    for (uint32_t i = 1; p->word && i < b->n_reduce; i++)
        order[n++] = b->reduce_axes[i]->var->name;
    te_sched_reorder(s, o, n, order);
    te_sched_annotate(s, TE_UNROLL, o, "lane_m");
    if (p->word)
        te_sched_tensorize(s, o, "lane_v", p->word->intrinsic);
    else
        te_sched_annotate(s, TE_VECTORIZE, o, "lane_v");
}

/* With too few panels of columns to keep workers busy, tiles of rows are shared out as well, when nearly as good a tile
 * divides the rows: a guard in the shared loop would stand in the innermost one. */
static void share_rows(matmul_plan *p)
{
    int64_t panel = p->tile.vectors * p->lanes, parts = (te_axis_extent(p->last, p->lane) + panel - 1) / panel,
            rows = p->tile.rows;
    for (uint32_t i = 0; i < p->last->n_axes; i++)
        if (i != p->row && i != p->lane && !i64_mul(parts, te_axis_most(p->s->g, p->last, i), &parts))
            return;
    int64_t height = p->row < p->last->n_axes ? te_axis_extent(p->last, p->row) : 1;
    const int64_t pair = p->dot && p->dot->tile ? p->dot->tile : 1;
    while (rows > 1 && (height % rows != 0 || rows % pair != 0))
        rows--;
    p->rows_shared = parts < FEW_PANELS && height > rows && rows * 2 >= p->tile.rows;
    if (p->rows_shared)
        p->tile.rows = rows;
}

/* Steps of a block of the reduction, which divides it, or 0: a panel of the right operand stays where it is while the
 * rows pass, so that blocks bring nothing; or there is but one tile of rows; or the extents are not known. */
static int64_t choose_steps(const matmul_plan *p, const struct target *t, const graph_node *n)
{
    const te_node *a = p->anchor;
    const int64_t height = p->row < a->n_axes ? te_axis_extent(a, p->row) : 1, l2 = target_cpu(t)->l2_bytes,
                  columns = p->tile.vectors * p->lanes, bytes = (int64_t)dtype_bytes(te_in_type(n, 1)->dt);
    int64_t k = 0, asked = t->tile_steps;
    if (p->rows_shared || height <= p->tile.rows || a->n_reduce != 1 || !tir_is_int(a->reduce_axes[0]->extent, &k))
        return 0;
    if (asked > 0 && columns * bytes * k > l2 / ASKED_PART)
        return asked < k && k % asked == 0 ? asked : 0;
    if ((columns + p->tile.rows) * bytes * k <= l2 / 4 * STAYS_QUARTERS)
        return 0;
    for (int64_t blocks = 2; k / blocks >= LEAST_STEPS; blocks++)
        if (k % blocks == 0 && (2 * columns + p->tile.rows) * bytes * (k / blocks) <= l2 / BLOCK_PART)
            return k / blocks;
    return 0;
}

/* With blocks, tiles of rows whose sums, of the whole panel, wait on the stack: the panel's blocks come once more for
 * the next ones. Loop partition makes two arrays of them, for whole chunks and the last one, beside the tiles' own.
 * 0: the sums of all rows wait; 1: the stack holds none worth it. */
static int64_t waiting_tiles(const matmul_plan *p, const struct target *t)
{
    const int64_t bytes = (int64_t)dtype_bytes(p->anchor->outputs[0]->dt), rows = p->tile.rows,
                  room = t->stack_limit / (rows * p->tile.vectors * p->lanes * bytes),
                  tiles = (te_axis_extent(p->anchor, p->row) + rows - 1) / rows;
    if (tiles <= room)
        return 0;
    const int64_t most = (room - 2) / 2, chunks = most > 1 ? (tiles + most - 1) / most : tiles;
    return (tiles + chunks - 1) / chunks;
}

/* Blocks of the result: batches, panels of columns, tiles of rows; the loop that workers share. */
static const char *cut_result(const matmul_plan *p, bool rows_written_out)
{
    te_sched *s = p->s;
    const te_node *last = p->last;
    const char *o = last->name, **order = arena_array(&s->c->mem, const char *, last->n_axes + 4u), *part = "lane_o";
    te_sched_split(s, o, te_axis_name(last, p->lane), p->tile.vectors * p->lanes, "lane_o", "lane_i");
    te_sched_split(s, o, "lane_i", p->lanes, "lane_m", "lane_v");
    uint32_t n = outer_axes(p, last, order), batches = n;
    order[n++] = "lane_o";
    if (p->row < last->n_axes) {
        const char *row = te_axis_name(last, p->row);
        if (p->steps > 0 && p->waiting > 0) {
            te_sched_split(s, o, row, p->tile.rows * p->waiting, "chunk", "row_c");
            order[n++] = "chunk";
            row = "row_c";
        }
        te_sched_split(s, o, row, p->tile.rows, "row_o", "row_i");
        order[n++] = "row_o";
        order[n++] = "row_i";
    }
    order[n++] = "lane_m";
    order[n++] = "lane_v";
    te_sched_reorder(s, o, n, order);
    if (p->row < last->n_axes && rows_written_out)
        te_sched_annotate(s, TE_UNROLL, o, "row_i");
    te_sched_annotate(s, TE_UNROLL, o, "lane_m");
    te_sched_annotate(s, TE_VECTORIZE, o, "lane_v");
    if (p->open)
        part = order[--batches];
    for (uint32_t i = batches; i-- > 0;) {
        const char *fused = arena_printf(&s->c->mem, "part%u", i);
        te_sched_fuse(s, o, order[i], part, fused);
        part = fused;
    }
    if (p->rows_shared) {
        te_sched_fuse(s, o, part, "row_o", "part");
        part = "part";
    }
    te_sched_annotate(s, TE_PARALLEL, o, part);
    return part;
}

/* The stage of the sums in registers, and through *out_tile that of the finished tile in memory, if there is one: for
 * an epilogue, or because whole vectors of sums are stored in part. */
static const char *sums_stages(const matmul_plan *p, const char **out_tile)
{
    bool apart = p->anchor != p->last && is_apart(p);
    *out_tile = NULL;
    if (!apart && !p->whole)
        return te_sums_stage(p->s, p->anchor, p->last, "local.reg");
    return te_sums_beside_tile(p->s, p->anchor, p->last, out_tile);
}

/* Sums that wait in the cache, of all blocks; a tile's sums of one block, which are added to them. */
static void blocked_matmul(matmul_plan *p)
{
    te_sched *s = p->s;
    const te_node *a = p->anchor;
    const char **order = arena_array(&s->c->mem, const char *, a->n_axes + 4u), *o = p->last->name, *sums = a->name,
               *acc = arena_printf(&s->c->mem, "%s_acc", a->name), *row = te_axis_name(a, p->row);
    if (a == p->last)
        te_sched_cache_write(s, o, "global", sums = arena_printf(&s->c->mem, "%s_sums", o));
    const char *part = cut_result(p, false);
    te_sched_compute_at(s, sums, o, p->waiting > 0 ? "chunk" : part);
    te_sched_split(s, sums, a->reduce_axes[0]->var->name, p->steps, "k_o", "k_i");
    te_sched_rfactor(s, sums, "k_o", acc);
    te_sched_set_scope(s, acc, "local.reg");
    te_sched_split(s, sums, te_axis_name(a, p->lane), p->lanes, "lane_m", "lane_v");
    te_sched_split(s, sums, row, p->tile.rows, "row_o", "row_i");
    uint32_t n = outer_axes(p, a, order);
    const char *const inner[] = {"k_o", "row_o", "row_i", "lane_m", "lane_v"};
    for (uint32_t i = 0; i < sizeof inner / sizeof *inner; i++)
        order[n++] = inner[i];
    te_sched_reorder(s, sums, n, order);
    te_sched_annotate(s, TE_UNROLL, sums, "row_i");
    te_sched_annotate(s, TE_UNROLL, sums, "lane_m");
    te_sched_annotate(s, TE_VECTORIZE, sums, "lane_v");
    te_sched_compute_at(s, acc, sums, "row_o");
    write_out_tile(p, acc, true);
    if (p->weights)
        te_sched_prefetch(s, acc, "k_i", p->weights, sums, "k_o");
}

static void tiled_matmul(matmul_plan *p)
{
    te_sched *s = p->s;
    const char *o = p->last->name, *tile, *acc = sums_stages(p, &tile);
    bool rows = p->row < p->last->n_axes;
    const char *part = cut_result(p, !tile || p->whole), *place = rows && !p->rows_shared ? "row_o" : part;
    te_sched_compute_at(s, acc, o, place);
    if (p->dot && p->dot->tile)
        write_out_pairs(p, acc);
    else
        write_out_tile(p, acc, true);
    if (p->blocks)
        write_out_blocks(p, acc);
    if (p->unpacked)
        te_place_unpacked(s, p->unpacked, p->taken_apart ? acc : o, p->taken_apart ? "k_o" : part);
    if (tile) {
        te_sched_compute_at(s, tile, o, place);
        write_out_tile(p, tile, false);
    }
    if (p->weights && rows && !p->rows_shared)
        te_sched_prefetch(s, acc, sum_loop(p), p->weights, o, part);
}

/* Rows of the right operand are contiguous: a row of sums, the reduction outside of it. */
static void row_matmul(te_sched *s, te_node *anchor, te_node *last)
{
    uint32_t n = last->n_axes;
    const char *acc = te_sums_stage(s, anchor, last, "local"), *part = te_fuse_parallel(s, last, n - 1);
    te_sched_compute_at(s, acc, last->name, part);
    te_sched_reorder(s, acc, 2, (const char *[]){anchor->reduce_axes[0]->var->name, te_axis_name(anchor, n - 1)});
}

typedef struct weight_search {
    const te_graph *g;
    const char *found;
} weight_search;

static void look_for_parameter(void *ctx, tir_expr_ref e)
{
    weight_search *w = ctx;
    const te_tensor *t = e->kind == TIR_LOAD ? te_tensor_of(w->g, e->u.buffer) : NULL;
    if (t && t->node->kind == TE_PLACEHOLDER)
        w->found = t->node->name;
}

/* The parameter that is the right factor; NULL: it is something else. */
static const char *right_parameter(const te_graph *g, const te_node *anchor)
{
    weight_search w = {g, NULL};
    if (tir_is_binary(anchor->body[0], TIR_MUL))
        tir_visit_expr(anchor->body[0]->args[1], look_for_parameter, &w);
    return w.found;
}

/* For `blocks` vectors of columns and the rows of axis `row`, if the result has one. */
static te_tile choose_tile(const struct target *t, const te_graph *g, const te_node *anchor, uint32_t row,
                           int64_t blocks, bool blocks_open)
{
    int64_t most = row < anchor->n_axes ? te_axis_most(g, anchor, row) : 1;
    bool rows_open = row < anchor->n_axes && te_axis_extent(anchor, row) == 0 && most > 1;
    return blocks_open || rows_open ? te_choose_tile_open(t, blocks, blocks_open, most, rows_open)
                                    : te_choose_tile(t, blocks, most > 0 ? most : 1);
}

/* For columns of the right operand's rows: whole tiles, or a narrower one at the end. */
static te_tile choose_tile_of_rows(const struct target *t, const matmul_plan *p, int64_t units)
{
    const te_graph *g = p->s->g;
    int64_t most = p->row < p->anchor->n_axes ? te_axis_most(g, p->anchor, p->row) : 1;
    if (units % p->lanes == 0 && p->row < p->anchor->n_axes && te_axis_extent(p->anchor, p->row) == 0)
        return choose_tile(t, g, p->anchor, p->row, units / p->lanes, false);
    return te_choose_tile_ragged(t, p->lanes, units, most > 0 ? most : 1);
}

/* For whole vectors of packed columns: whole tiles, or a narrower one at the end. */
static te_tile choose_tile_of_panels(const struct target *t, const matmul_plan *p, int64_t blocks)
{
    const te_node *a = p->anchor;
    int64_t most = p->row < a->n_axes ? te_axis_most(p->s->g, a, p->row) : 1;
    if (p->row < a->n_axes && te_axis_extent(a, p->row) == 0)
        return choose_tile(t, p->s->g, a, p->row, blocks, false);
    return te_choose_tile_panels(t, blocks, most > 0 ? most : 1);
}

/* Lanes of one vector, where both factors and the sums have one type that vectors multiply; else 0. */
static int64_t lanes_of(const struct target *t, const graph_node *n, const te_node *anchor)
{
    dtype dt = anchor->outputs[0]->dt;
    bool known = dt == DT_F32 || dt == DT_F64 || dt == DT_I32 || dt == DT_U32 || dt == DT_I64 || dt == DT_U64;
    dtype in = te_in_type(n, 0)->dt;
    bool stored = dt == DT_F32 && (in == DT_F16 || in == DT_BF16); /* what is read becomes floats */
    return known && (in == dt || stored) && te_in_type(n, 1)->dt == in
               ? t->vector_bytes / (int64_t)dtype_bytes(dt)
               : 0;
}

/* Neighboring columns of the right operand are neighbors in memory. */
static bool has_rows(const graph_node *n)
{
    return te_in_type(n, 1)->shape.rank > 1 && te_in_type(n, 0)->shape.rank > 1 &&
           !nn_layout_block(graph_attr_string(n, "weight_layout")) && graph_attr_int(n, "transpose_b") == 0;
}

/* Weights of 4 bits that one tile of rows reads are taken apart piece by piece, in the first cache. 0: in one piece. */
static int64_t steps_taken_apart(const matmul_plan *p, const struct target *t)
{
    const te_node *a = p->anchor;
    const int64_t height = p->row < a->n_axes ? te_axis_most(p->s->g, a, p->row) : 1,
                  most = target_cpu(t)->l1_bytes / TAKEN_APART_PART / (p->tile.vectors * p->lanes * p->dot->granule);
    int64_t k = 0, best = 0;
    if (p->dot->tile || p->listed || height > p->tile.rows || height < 1 ||
        !tir_is_int(a->reduce_axes[0]->extent, &k) ||
        k % p->dot->granule != 0)
        return 0;
    k /= p->dot->granule;
    for (int64_t steps = 2; steps <= most && steps < k; steps += 2)
        best = k % steps == 0 ? steps : best;
    return best;
}

/* Packed products of integers. A row of the left operand that runs say how many there are of stays a loop of its own.
 */
static void integer_matmul(matmul_plan *p, const struct target *t)
{
    int64_t units = te_axis_extent(p->last, p->lane), most = 1;
    if (p->row < p->anchor->n_axes)
        most = te_axis_most(p->s->g, p->anchor, p->row);
    p->whole = units % p->lanes != 0;
    if (p->unpacked)
        p->weights = te_find_parameter(p->s->g, p->unpacked->inputs[0]->name);
    p->tile = te_choose_dot_tile(t, p->dot, (units + p->lanes - 1) / p->lanes, most > 0 ? most : 1,
                                 p->listed ? 1 : units / p->lanes);
    if (p->unpacked)
        p->taken_apart = steps_taken_apart(p, t);
    else
        share_rows(p);
    tiled_matmul(p);
}

/* Products of floats, or of integers as wide as their sums. */
static void number_matmul(matmul_plan *p, const struct target *t, const graph_node *n)
{
    share_rows(p);
    p->waiting = waiting_tiles(p, t);
    p->steps = p->waiting != 1 ? choose_steps(p, t, n) : 0;
    if (p->steps > 0)
        blocked_matmul(p);
    else
        tiled_matmul(p);
}

/* --- rules --- */

/* What all rules for products ask first. */
static matmul_plan plan_of(const te_case *x)
{
    const uint32_t rank = x->last->n_axes;
    matmul_plan p = {.s = x->s, .anchor = x->anchor, .last = x->last, .lane = rank - 1};
    p.lanes = lanes_of(x->t, x->n, x->anchor);
    p.row = rank > 1 ? rank - 2 : rank;
    return p;
}

static bool is_nest(const te_case *x)
{
    return !te_find_tag(x->s->g, "wide_data") && te_is_one_nest(x->s, x->anchor, x->last, NULL) &&
           x->anchor->n_axes > 0;
}

static int64_t columns_of(const te_case *x)
{
    return te_axis_extent(x->anchor, x->last->n_axes - 1);
}

/* The instruction that the right operand is packed for; NULL: none. */
static const target_dot *dot_of(const te_case *x)
{
    int64_t v, granule;
    nn_weight_blocks(x->n, &v, &granule);
    const bool read = granule && !te_is_taken_apart(x->s->g, x->n), pairs = read && graph_attr_int(x->n, "pairs") != 0;
    const target_dot *d = read ? target_find_packed_dot(x->t, te_in_type(x->n, 0)->dt, te_in_type(x->n, 1)->dt, pairs,
                                                        granule) : NULL;
    return d && v * 4 <= x->t->vector_bytes && columns_of(x) >= v && (!d->tile || x->last->n_axes > 1) ? d : NULL;
}

static bool takes_dots(const te_case *x)
{
    return is_nest(x) && dot_of(x);
}

static bool takes_panels(const te_case *x)
{
    int64_t v, granule;
    nn_weight_blocks(x->n, &v, &granule);
    return is_nest(x) && v > 1 && v == lanes_of(x->t, x->n, x->anchor) && columns_of(x) > 0 && !dot_of(x);
}

static bool takes_rows(const te_case *x)
{
    return is_nest(x) && has_rows(x->n) && lanes_of(x->t, x->n, x->anchor) > 1 && columns_of(x) > 1;
}

static bool takes_open(const te_case *x)
{
    const int64_t lanes = lanes_of(x->t, x->n, x->anchor);
    return is_nest(x) && has_rows(x->n) && lanes > 1 && columns_of(x) == 0 && x->last->n_axes > 2 &&
           te_axis_most(x->s->g, x->anchor, x->last->n_axes - 1) >= lanes;
}

static bool takes_sums(const te_case *x)
{
    return is_nest(x) && has_rows(x->n) && x->anchor->n_axes > 1 && columns_of(x) > 0 && columns_of(x) <= ROW_LIMIT;
}

static matmul_plan plan_panels(const te_case *x)
{
    matmul_plan p = plan_of(x);
    const int64_t units = columns_of(x);
    p.weights = right_parameter(x->s->g, x->anchor);
    p.whole = units % p.lanes != 0;
    p.tile = p.whole ? choose_tile(x->t, x->s->g, x->anchor, p.row, (units + p.lanes - 1) / p.lanes, false)
                     : choose_tile_of_panels(x->t, &p, units / p.lanes);
    return p;
}

static matmul_plan plan_rows(const te_case *x)
{
    matmul_plan p = plan_of(x);
    p.tile = choose_tile_of_rows(x->t, &p, columns_of(x));
    return p;
}

static matmul_plan plan_open(const te_case *x)
{
    matmul_plan p = plan_of(x);
    p.open = true;
    p.tile = choose_tile(x->t, x->s->g, x->anchor, p.row, te_axis_most(x->s->g, x->anchor, p.lane) / p.lanes, true);
    return p;
}

static double cost_dots(const te_case *x)
{
    return te_cost_of_dot(x->t, dot_of(x), (te_tile){1, 1});
}

static double cost_panels(const te_case *x)
{
    return te_cost_of_tile(x->t, plan_panels(x).tile);
}

/* Lanes behind the last column do nothing. */
static double cost_rows(const te_case *x)
{
    const matmul_plan p = plan_rows(x);
    const int64_t units = columns_of(x);
    return te_cost_of_tile(x->t, p.tile) * (units < p.lanes ? (double)p.lanes / (double)units : 1);
}

static double cost_open(const te_case *x)
{
    return te_cost_of_tile(x->t, plan_open(x).tile);
}

static double cost_sums(const te_case *x)
{
    return te_cost_of_row(x->t, columns_of(x));
}

static bool dots(const te_case *x)
{
    int64_t v, granule;
    nn_weight_blocks(x->n, &v, &granule);
    matmul_plan p = plan_of(x);
    p.dot = dot_of(x);
    p.unpacked = te_unpacked(x->s->g, x->n);
    p.lanes = v;
    p.weights = right_parameter(x->s->g, x->anchor);
    integer_matmul(&p, x->t);
    return true;
}

static bool panels(const te_case *x)
{
    matmul_plan p = plan_panels(x);
    number_matmul(&p, x->t, x->n);
    return true;
}

static bool rows_of_right(const te_case *x)
{
    matmul_plan p = plan_rows(x);
    number_matmul(&p, x->t, x->n);
    return true;
}

static bool open_rows(const te_case *x)
{
    matmul_plan p = plan_open(x);
    tiled_matmul(&p);
    return true;
}

static bool row_of_sums(const te_case *x)
{
    row_matmul(x->s, x->anchor, x->last);
    return true;
}

static bool schedule_matmul_steps(const te_case *x)
{
    te_sched *s = x->s;
    const struct target *t = x->t;
    const graph_node *n = x->n;
    te_node *anchor = x->anchor, *last = x->last;
    const uint32_t rank = last->n_axes;
    int64_t lanes = 0;
    (void)dim_is_const(te_in_type(n, 1)->shape.dims[3], &lanes); /* the type relation sees to it */
    matmul_plan p = {.s = s, .anchor = anchor, .last = last, .lanes = lanes, .lane = rank - 1, .listed = true};
    p.dot = graph_attr_int(n, "proved") != 0 ? target_find_steps_dot(t, DT_U8) : NULL;
    if (!p.dot || te_is_taken_apart(s->g, n) || !te_is_one_nest(s, anchor, last, NULL) ||
        lanes * 4 != t->vector_bytes ||
        te_axis_extent(last, p.lane) < lanes || te_reduce_most(s->g, anchor) == 0)
        return false;
    p.row = rank > 1 ? rank - 2 : rank;
    p.weights = te_find_parameter(s->g, n->inputs[1]->name);
    p.unpacked = te_unpacked(s->g, n);
    if (!p.weights && !p.unpacked) /* of one number, which is no operand */
        return false;
    integer_matmul(&p, t);
    return true;
}

#define NIBBLE_ROWS    4 /* rows by which a word of weights is multiplied once it is taken apart */
#define NIBBLE_VECTORS 4

/* Half of the registers hold sums of a block; those of all blocks are touched once for each block. */
static bool schedule_matmul_nibbles(const te_case *x)
{
    te_sched *s = x->s;
    const struct target *t = x->t;
    const graph_node *n = x->n;
    te_node *anchor = x->anchor, *last = x->last;
    int64_t lanes = 0;
    te_node *blocks = te_find_tag(s->g, "nibbles");
    (void)dim_is_const(te_in_type(n, 1)->shape.dims[2], &lanes);
    if (!blocks || !te_is_one_nest_with(s, anchor, last, NULL, 1, (const te_node *const[]){blocks}))
        return false;
    const uint32_t rank = last->n_axes;
    matmul_plan p = {.s = s, .anchor = anchor, .last = last, .lanes = lanes, .lane = rank - 1, .blocks = blocks};
    p.row = rank > 1 ? rank - 2 : rank;
    if (n->n_inputs > 5)
        p.word = target_find_dot(t, DT_I8, DT_U4, false);
    const int64_t units = te_axis_extent(anchor, p.lane), most = rank > 1 ? te_axis_most(s->g, anchor, p.row) : 1;
    if (lanes < 2 || lanes * 4 != t->vector_bytes) {
        const char *acc = te_sums_stage(s, anchor, last, "local.reg");
        const uint32_t shared = te_parallel_axes(s->g, last);
        if (shared > 0)
            te_fuse_parallel(s, last, shared);
        te_sched_compute_at(s, acc, last->name, te_axis_name(last, rank - 1));
        te_sched_set_scope(s, blocks->name, "local.reg");
        te_sched_compute_at(s, blocks->name, acc, anchor->reduce_axes[0]->var->name);
        return true;
    }
    p.weights = right_parameter(s->g, blocks);
    p.whole = units % lanes != 0;
    p.tile.rows = most > NIBBLE_ROWS || most < 1 ? NIBBLE_ROWS : most;
    p.tile.vectors = t->vector_regs / 2 / p.tile.rows;
    if (p.tile.vectors > NIBBLE_VECTORS)
        p.tile.vectors = NIBBLE_VECTORS;
    const int64_t panels = (units + lanes - 1) / lanes;
    if (p.tile.vectors > panels)
        p.tile.vectors = panels;
    /* no guard stands among the lanes of an intrinsic */
    while (p.word && p.tile.vectors > 1 && (panels % p.tile.vectors != 0 || p.tile.vectors * lanes > units))
        p.tile.vectors--;
    share_rows(&p);
    tiled_matmul(&p);
    return true;
}

static bool takes_steps(const te_case *x)
{
    return graph_attr_int(x->n, "proved") != 0 && target_find_steps_dot(x->t, DT_U8);
}

static double cost_steps(const te_case *x)
{
    return te_cost_of_dot(x->t, target_find_steps_dot(x->t, DT_U8), (te_tile){1, 1});
}

/* A word is taken apart for some rows, each of its codes is multiplied. */
static double cost_nibbles(const te_case *x)
{
    return te_cost_of_tile(x->t, (te_tile){1, NIBBLE_ROWS});
}

static const te_rule rows[] = {
    {"packed integers", TE_PRODUCT, "panels of packed columns in lanes, an instruction for some products", takes_dots,
     cost_dots, dots},
    {"packed panels", TE_PRODUCT, "panels of packed columns in lanes, rows broadcast against them", takes_panels,
     cost_panels, panels},
    {"rows as they are", TE_PRODUCT, "columns of the right operand's rows in lanes, tiles in registers", takes_rows,
     cost_rows, rows_of_right},
    {"open rows", TE_PRODUCT, "the same for as many columns as a run says", takes_open, cost_open, open_rows},
    {"row of sums", TE_PRODUCT, "the reduction around a row of sums in an array", takes_sums, cost_sums, row_of_sums},
    {"one by one", TE_PRODUCT, "the sum of each result in a register, or in lanes along a row", is_nest,
     te_cost_one_by_one, te_one_by_one},
    {"steps", TE_PRODUCT_STEPS, "panels by lists of steps", takes_steps, cost_steps, schedule_matmul_steps},
    {"blocks of 4 bits", TE_PRODUCT_NIBBLES, "sums of blocks, whose weights are taken apart beside them", NULL,
     cost_nibbles, schedule_matmul_nibbles},
};
const te_rules te_rules_product = {rows, sizeof rows / sizeof *rows};
