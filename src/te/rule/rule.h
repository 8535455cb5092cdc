/* SPDX-License-Identifier: Apache-2.0 */
/* What the rules that choose default schedules share: questions about the tensor graph and a few moves. */
#ifndef LATHE_TE_RULE_RULE_H
#define LATHE_TE_RULE_RULE_H
#include "te/choose.h"

#define PARALLEL_ENOUGH  32           /* iterations of the parallel loop from which workers are kept busy */
#define PARALLEL_WORTH   16384        /* elements below which sharing costs more than it brings */
#define PART_IN_CACHE    2            /* part of the second-level cache for weights that every row reads again */

/* The stage's computation will be part of its readers. */
bool te_is_inlined(const te_sched *s, const te_node *n);

/* Extent of data axis i when constant, else 0. */
int64_t te_axis_extent(const te_node *n, uint32_t i);
/* The most that it can be, for choices that only ask how large a thing is; 0: nobody knows. */
int64_t te_axis_most(const te_graph *g, const te_node *n, uint32_t i);
int64_t te_reduce_most(const te_graph *g, const te_node *n); /* product of the reduction axes */
/* The function has one result, and apart from `anchor`, it and stages tagged `also` (may be NULL) all computations are
 * inlined: anchor and result can be scheduled as one nest. */
bool te_is_one_nest(const te_sched *s, const te_node *anchor, const te_node *last, const char *also);
/* The same with stages, `beside`, that the nest will make where it reads them. */
bool te_is_one_nest_with(const te_sched *s, const te_node *anchor, const te_node *last, const char *also,
                         uint32_t n_beside, const te_node *const *beside);
/* Number of leading axes of n that become one parallel loop: enough iterations to share out, the innermost stays. */
uint32_t te_parallel_axes(const te_graph *g, const te_node *n);
/* The same where each result takes the work of `each` elements (0: nobody knows). */
uint32_t te_shared_axes(const te_graph *g, const te_node *n, int64_t each);
/* Fuses the first `count` axes of the stage; the name of the loop. */
const char *te_fuse_axes(te_sched *s, const te_node *n, uint32_t count);
/* The same, and the loop is parallel. */
const char *te_fuse_parallel(te_sched *s, const te_node *n, uint32_t count);
/* Weights that may be read again for every output row: a part of the second-level cache, beside what else passes. */
bool te_weights_stay(const struct target *t, int64_t bytes);
te_node *te_find_tag(const te_graph *g, const char *tag); /* first stage with the tag, or NULL */
/* Cuts a loop over `rows` rows (0: their number is open), so that a table serves many of them; the outer loop's name,
 * which is `row` where nothing is cut. The inner one is "line". */
const char *te_cut_rows(te_sched *s, const te_node *last, const char *row, int64_t rows);
/* The operator that takes n's weights of 4 bits apart, as a stage that rules may place. NULL: they are not such, or
 * what is such is something else, and stays to be inlined. */
const graph_node *te_unpacked(const te_graph *g, const graph_node *n);
/* Other numbers of 4 bits are there, which are taken apart wherever n reads them: no instruction takes those. */
bool te_is_taken_apart(const te_graph *g, const graph_node *n);
/* Computes that stage, of what te_unpacked gave, at consumer.place. */
void te_place_unpacked(te_sched *s, const graph_node *from, const char *consumer, const char *place);
/* What schedules call the parameter that holds a value of the graph; NULL: it is none. */
const char *te_find_parameter(const te_graph *g, const char *value);
const char *te_axis_name(const te_node *n, uint32_t i);
/* e, an index, is v and what does not depend on it: neighbors along v are neighbors where e reads. */
bool te_adds_var(tir_expr_ref e, const tir_var *v);
/* Neighbors of n's result along the axis read neighbors, or the same. */
bool te_reads_lines(const te_node *n, uint32_t axis);
#define LEAST_LINE 4 /* elements from which a line is worth lanes */
/* Cuts the innermost loop of n, which no primitive has named yet, where it reads at quotients of its place
 * (phases.c). */
bool te_cut_phases(te_sched *s, const te_node *n);
/* --- schedules of several families (plain.c) --- */
/* The sum of each result in a register, or the first of these where there are several reductions. */
bool te_one_by_one(const te_case *x);
bool te_takes_one_by_one(const te_case *x);
/* --- costs for rules: cycles of one product (cost.c) --- */
double te_cost_one_by_one(const te_case *x); /* each waits for the sum before */
/* Loops that the C compiler makes vectors of, with so many loads and stores for one product. */
double te_cost_in_c(const struct target *t, double accesses);
double te_cost_of_stages(const te_case *x); /* sums go through memory */
double te_cost_of_row(const struct target *t, int64_t units); /* of so many sums side by side in an array; 0: many */
/* --- tiles of sums in registers (tile.c) --- */
typedef struct te_tile {
    int64_t vectors, rows; /* vectors of lanes, elements that are broadcast against them */
} te_tile;
/* Cycles of one tile for one step of the reduction: what takes longest of multiply-adds, loads, instructions in all,
 * and the wait for a sum. */
double te_step_cost(const struct target *t, int64_t vectors, int64_t rows);
/* The same for one of its products. */
double te_cost_of_tile(const struct target *t, te_tile x);
/* Vector registers that a tile's sums and operands may take: rows * vectors + vectors + 1 of them. */
int64_t te_tile_regs(const struct target *t);
/* Cycles of `width` elements, for one vector of lanes, with a narrower tile at the end. */
double te_tile_cost(const struct target *t, te_tile x, int64_t width);
/* For `blocks` vectors of lanes in all, to be shared out evenly, and `width` elements, with a narrower tile at the end:
 * the least number of cycles by count. */
te_tile te_choose_tile(const struct target *t, int64_t blocks, int64_t width);
te_tile te_choose_tile_within(const struct target *t, int64_t blocks, int64_t width, int64_t most); /* most vectors */
/* The same for `units` columns that are no whole number of tiles, or vectors: the last tile is narrower, and ends in
 * vectors of fewer lanes. */
te_tile te_choose_tile_ragged(const struct target *t, int64_t lanes, int64_t units, int64_t width);
/* For `blocks` vectors of columns in panels, of which the last one may be narrower where that is worth it. */
te_tile te_choose_tile_panels(const struct target *t, int64_t blocks, int64_t width);
/* How many of `height` rows are better walked as one, by what a pixel costs in rows of a width; 1: each alone. */
typedef double (*te_pixel_cost)(const void *ctx, int64_t width);
int64_t te_rows_to_merge(int64_t height, int64_t width, te_pixel_cost cost, const void *ctx);
/* For sums of products of bytes (int_tile.c). */
struct target_dot;
/* Cycles of one tile for one granule. */
double te_dot_step_cost(const struct target *t, const struct target_dot *d, int64_t vectors, int64_t rows);
double te_cost_of_dot(const struct target *t, const struct target_dot *d, te_tile x); /* of one product */
double te_dot_tile_cost(const struct target *t, const struct target_dot *d, te_tile x, int64_t width);
/* Rows of a tile of so many vectors; of more than one sums take half of the registers: weights are read from memory. */
int64_t te_choose_dot_rows(const struct target *t, const struct target_dot *d, int64_t vectors, int64_t width);
bool te_dot_tile_fits(const struct target *t, const struct target_dot *d, int64_t vectors, int64_t rows);
/* Of tiles of sums of several rows and columns: rows are the outer loop, so that the fewer of both stay in registers.
 */
bool te_dot_rows_outside(const struct target_dot *d, te_tile x, int64_t lanes);
te_tile te_choose_dot_tile(const struct target *t, const struct target_dot *d, int64_t blocks, int64_t width,
                           int64_t most);
/* How many rows of a convolution of wide numbers (int_wide.c), of one tap, are better walked as one, by the cycles of
 * its best cut. */
int64_t te_wide_conv_rows(const te_graph *g, const struct target *t, const graph_node *n, te_node *anchor);
/* The same where blocks, or elements, are at most so many, and each run says how many: tiles are whole, the last one is
 * moved back over the one before it. */
te_tile te_choose_tile_open(const struct target *t, int64_t blocks, bool blocks_open, int64_t width, bool width_open);
/* Mean of what such tiles of `size` elements cover for each element of an extent up to `most`. */
double te_tile_cover(int64_t size, int64_t most);
/* The sums' stage under `last`: the anchor itself when an epilogue follows, else a cache of it. */
const char *te_sums_stage(te_sched *s, const te_node *anchor, const te_node *last, const char *scope);
/* The same in registers, where the finished tile has a stage of its own, `tile`, in memory: for an epilogue that needs
 * the registers, or because vectors of sums are stored in part. */
const char *te_sums_beside_tile(te_sched *s, const te_node *anchor, const te_node *last, const char **tile);
/* Lines, [image, row, ...], are shared among workers, or follow each other in one. The name of the loop over them. */
const char *te_cut_lines(te_sched *s, const struct target *t, const te_node *last);
/* A convolution whose result is in blocks of channels (conv_blocked.c). */
int64_t te_blocked_conv_rows(const te_graph *g, const struct target *t, const graph_node *n, te_node *anchor);
/* A convolution of planes, lines of pixels in lanes (planes.c); false, and nothing is changed: neighboring pixels of
 * the result do not read neighbors. */
bool te_schedule_planes(const te_case *x);
double te_cost_planes(const te_case *x);
/* --- rows in vector lanes (lanes.c); false, and nothing is changed, where the C compiler does as well --- */
/* The stage's innermost loop, which is its last axis. */
bool te_row_in_lanes(te_sched *s, const struct target *t, const te_node *n, const char *loop);
/* Whether the stage's last axis may become lanes. */
bool te_row_fits(const te_sched *s, const struct target *t, const te_node *n);
/* Numbers of 32 bits in a vector; 0: there are none. */
int64_t te_lanes(const struct target *t);
/* The stage, and what is inlined, is arithmetic of bytes and numbers of 32 bits that fills numbers of 32 bits. */
bool te_numbers_fit(const te_sched *s, const te_node *n);
/* The stage, and what is inlined, is arithmetic that ends in a rounding to 8 bits (int_lanes.c). */
bool te_bytes_fit(const te_sched *s, const te_node *n);
/* Do `last` and what is inlined, but not `anchor` (may be NULL), call functions? */
bool te_calls_functions(const te_sched *s, const te_node *anchor, const te_node *last);
/* Do `last` and what is inlined convert between f16 and f32, on a processor that does so in vectors? */
bool te_converts_halves(const te_sched *s, const struct target *t, const te_node *last);
/* What n computes, a sum along neighboring elements, in `stage` (n or a cache of it), computed at consumer.place, or,
 * where that is NULL, once, before its readers.
 * beside: the axis of n along which a few sums grow side by side; n_axes: none. */
bool te_sum_in_lanes(te_sched *s, const struct target *t, const te_node *n, const char *stage, const char *consumer,
                     const char *place, uint32_t beside);
/* The result's only stage moves elements whose order changes, tile by tile; false, and nothing is changed: it does not
 * (moves.c). */
bool te_move_in_tiles(te_sched *s, const struct target *t, const te_node *last);
/* Computes all stages piece by piece inside one parallel loop of `last`, when nothing is then computed twice. */
bool te_schedule_rows(te_sched *s, const struct target *t, te_node *last);
#endif
