/* SPDX-License-Identifier: Apache-2.0 */
/* Default schedule of the Winograd convolution. A part takes a strip of tile rows, of one image or of several (and,
 * where weights are large, a share of the output channels): it transforms the input under it once, then goes through
 * the output channels a register tile's width at a time: products for all positions, then tile by tile back to pixels,
 * through the epilogue into the result. What lies between the steps is a part's own and stays in its cache. */
#include "graph/op/winograd.h"
#include "te/rule/rule.h"
#include "tir/walk.h"
#include "type/dot.h"

#include <string.h>

typedef struct winograd_stages {
    te_node *tiles, *rows, *input, *product, *sums, *output;
    te_node *last; /* the result's: output itself, or the epilogue behind it */
} winograd_stages;

static bool find_stages(const te_sched *s, const graph_node *n, te_node *last, winograd_stages *out)
{
    const te_graph *g = s->g;
    *out = (winograd_stages){.tiles = te_find_tag(g, "winograd_tiles"),
                             .rows = te_find_tag(g, "winograd_rows"),
                             .input = te_find_tag(g, "winograd_input"),
                             .product = te_find_tag(g, n->op->name),
                             .sums = te_find_tag(g, "winograd_sums"),
                             .output = te_find_tag(g, "winograd"),
                             .last = last};
    te_node *const own[] = {out->tiles, out->rows, out->input, out->product, out->sums, out->output, last};
    if (g->params.len - g->n_inputs != 1 || last->kind != TE_COMPUTE || last->n_axes != out->output->n_axes)
        return false;
    for (uint32_t i = 0; i < last->n_axes; i++)
        if (!tir_expr_equal(last->axes[i]->extent, out->output->axes[i]->extent))
            return false;
    for (uint32_t i = 0; i < g->nodes.len; i++) {
        te_node *x = g->nodes.data[i];
        bool known = x->kind == TE_PLACEHOLDER || te_is_inlined(s, x);
        for (size_t k = 0; k < sizeof own / sizeof *own; k++)
            known |= x == own[k];
        if (!known)
            return false;
    }
    return true;
}

/* How the work is cut: images, tile rows and tiles of a row in a strip, shares of the output channels, vectors of
 * channels in a group, which has the products of all positions before it goes back to pixels, vectors of channels and
 * tiles in a register tile. */
typedef struct winograd_cut {
    int64_t images, strip, width, shares, group, vectors, tile_rows, tiles;
} winograd_cut;

/* --- the cut, by counting cycles --- */

#define MAX_TILE_ROWS 4          /* in a register tile */
/* Estimates, none of them measured by itself: what the cuts that they lead to bring is in docs/notes/performance.md,
 * "Second-level caches". */
#define HIDDEN        0.5        /* part of the reading from afar that goes on under the arithmetic */
#define FETCHED       0.75       /* the same of weights, which are fetched ahead */
#define CLEARLY_LESS  0.999      /* else fewer vectors, whose weights take less of the first-level cache */
#define WORTH_IMAGES  0.98       /* of the cycles of strips of one image, which have less between the steps */
#define NEAR_BEST     1.015      /* of the cycles of the best number of images: fewer have less between the steps */
#define LINE_BYTES    64 /* the most that a step of the product fetches */
#define MAX_SHARES    16
#define MAX_STRIP     64
#define MAX_IMAGES    16 /* of a strip */
#define MAX_PIECES    16 /* of a row of tiles */
#define CROWDED    2048 /* bytes: lines so far apart have two places of a first-level cache to share */
#define PART_OF_L2    0.75 /* that weights, or products, may fill beside what else passes */

typedef struct winograd_size {
    int64_t batch, positions, in_blocks, out_blocks, tile_rows, tiles, lanes, tile;
    int64_t pack;    /* blocks of the data that stand side by side in a vector of the transformed input */
    int64_t scratch; /* bytes that a part may use; 0: any number */
    int64_t bytes;   /* of a number of the data and of the weights between the steps; sums have four */
    const target_dot *dot; /* products of integers, some inputs at a time; NULL: of floats */
    bool far;              /* the second-level cache does not hold the weights */
    bool in_memory;        /* what lies between the rows and the columns of a tile: registers do not hold a tile */
} winograd_size;

/* Tiles of a part. */
static int64_t tiles_of(const winograd_cut *cut)
{
    return cut->images * cut->strip * cut->width;
}

/* Blocks of the transformed input in one row of tiles, with room for one more where the positions of a tile, which are
 * written one after the other, would share a few places in the first-level cache. Very long rows have none. */
static int64_t padded_blocks(const winograd_size *z, const winograd_cut *cut)
{
    int64_t blocks = z->in_blocks / z->pack, row = cut->width * z->lanes * z->pack,
            others = cut->strip * row * z->bytes;
    bool crowded = z->dot && blocks * others % CROWDED == 0 && (blocks + 1) * others % CROWDED != 0;
    return crowded && (blocks + 1) * row <= TE_MOST_ALIGN ? blocks + 1 : blocks;
}

/* Bytes between the steps: the strip of one block with its border, all transformed, the products of a group. */
static int64_t scratch_of(const winograd_size *z, const winograd_cut *cut)
{
    int64_t edge = z->tile * cut->strip + 2, across = z->tile * cut->width + 2;
    int64_t places = z->positions * tiles_of(cut), in = padded_blocks(z, cut) * z->pack;
    return z->lanes * (z->bytes * (edge * across * z->pack + places * in) + 4 * places * cut->group);
}

/* Cycles of a register tile for one input channel. The first tile of a strip waits for weights from afar that cannot be
 * fetched ahead; the others find them in the first-level cache when those of all input channels fit there. */
static double tile_step(const struct target *t, const winograd_size *z, int64_t vectors, int64_t rows, bool wait)
{
    double weights = (double)(z->bytes * z->lanes * vectors), panel = weights * (double)(z->in_blocks * z->lanes);
    const cpu_model *m = target_cpu(t);
    double step = z->dot ? te_dot_step_cost(t, z->dot, vectors, rows) / z->dot->granule
                         : te_step_cost(t, vectors, rows);
    if (wait)
        return step > weights / m->far_bytes ? step : weights / m->far_bytes;
    return panel > m->l1_bytes ? step + weights / m->far_bytes / 8 : step;
}

/* The same for all tiles of an image's strip, remainders counted. wait: it is the first one, for whose weights no tile
 * before it has fetched enough. */
static double image_step(const struct target *t, const winograd_size *z, const winograd_cut *cut, bool wait)
{
    int64_t whole = cut->width / cut->tiles, left = cut->width % cut->tiles;
    double cycles = 0;
    for (int64_t done = 0; done < cut->strip; done += cut->tile_rows) {
        int64_t rows = cut->strip - done < cut->tile_rows ? cut->strip - done : cut->tile_rows;
        cycles += tile_step(t, z, cut->vectors, rows * cut->tiles, wait && done == 0);
        cycles += (double)(whole - 1) * tile_step(t, z, cut->vectors, rows * cut->tiles, false);
        cycles += left ? tile_step(t, z, cut->vectors, rows * left, false) : 0;
    }
    return cycles;
}

/* The same for the strips of all images. */
static double strip_step(const struct target *t, const winograd_size *z, const winograd_cut *cut)
{
    int64_t places = cut->images * ((cut->strip + cut->tile_rows - 1) / cut->tile_rows) *
                     ((cut->width + cut->tiles - 1) / cut->tiles);
    bool wait = z->far && cut->vectors * z->lanes * z->bytes > places * LINE_BYTES;
    double first = image_step(t, z, cut, wait);
    return cut->images > 1 ? first + (double)(cut->images - 1) * image_step(t, z, cut, false) : first;
}

static bool fits(const struct target *t, const winograd_size *z, int64_t vectors, int64_t rows)
{
    return z->dot ? te_dot_tile_fits(t, z->dot, vectors, rows) : vectors * rows + vectors + 1 <= te_tile_regs(t);
}

/* Sets the register tile: rows of it are tiles of one tile row, or whole tile rows. Its cycles for a strip and one
 * vector of output channels. */
static double choose_registers(const struct target *t, const winograd_size *z, winograd_cut *cut)
{
    double least = 0;
    for (int64_t v = 1; v <= 4; v++) {
        for (int64_t r = 1; z->out_blocks % v == 0 && r <= cut->width * MAX_TILE_ROWS && fits(t, z, v, r); r++) {
            winograd_cut x = {cut->images, cut->strip, cut->width, cut->shares, v, v, 1, r};
            if (r > cut->width) {
                x.tiles = cut->width;
                x.tile_rows = r / cut->width;
            }
            if (x.tiles * x.tile_rows != r || x.tile_rows > cut->strip || z->out_blocks / v % cut->shares != 0 ||
                (z->scratch > 0 && scratch_of(z, &x) > z->scratch))
                continue;
            double c = strip_step(t, z, &x) / (double)v;
            if (least == 0 || c < least * CLEARLY_LESS) {
                least = c;
                *cut = x;
            }
        }
    }
    return least;
}

/* Parts that have the same weights. */
static int64_t strips_of(const winograd_size *z, const winograd_cut *cut)
{
    return z->batch / cut->images * (z->tile_rows / cut->strip) * (z->tiles / cut->width);
}

/* Cycles that wait for what comes from beyond the second-level cache, or goes there: a part's weights, the transformed
 * input and the products. Weights that stay come for the first strip alone. Between two groups that read it all of the
 * input passes, with the weights and the products of one group. */
static double far_cycles(const cpu_model *m, const winograd_size *z, const winograd_cut *cut)
{
    const double room = m->l2_bytes;
    double places = (double)(z->positions * tiles_of(cut)),
           groups = (double)(z->out_blocks / cut->shares / cut->group),
           in = places * (double)(z->in_blocks * z->lanes * z->bytes),
           products = places * (double)(cut->group * z->lanes * 4),
           weights = (double)(z->positions * z->in_blocks * z->lanes * cut->group * z->lanes * z->bytes);
    double fetched = in + weights * groups + products > room ? weights * groups
                                                             : weights * groups / (double)strips_of(z, cut),
           others = in + weights + products > room ? in * (groups + 1) : 0;
    others += products > room * PART_OF_L2 ? 2 * products * groups : 0;
    return ((1 - FETCHED) * fetched + (1 - HIDDEN) * others) / m->far_bytes;
}

/* Sets the group of a cut whose register tile is known: that which waits least, among equals the smallest. Cycles of
 * its waits. A large group reads the input less often, and its weights follow each other position by position. */
static double choose_group(const struct target *t, const winograd_size *z, winograd_cut *cut)
{
    const cpu_model *m = target_cpu(t);
    const int64_t own = z->out_blocks / cut->shares;
    double least = far_cycles(m, z, cut);
    winograd_cut x = *cut;
    for (x.group = cut->vectors; x.group <= own; x.group += cut->vectors) {
        if (own % x.group != 0 || (z->scratch > 0 && scratch_of(z, &x) > z->scratch))
            continue;
        double cycles = far_cycles(m, z, &x);
        if (cycles < least) {
            least = cycles;
            *cut = x;
        }
    }
    return least;
}

/* Sets the group and the register tile of a cut. Cycles of the slowest of `workers`; 0: this cut cannot be made. Every
 * part transforms the input under its strip, for all channels. */
static double cut_cost(const struct target *t, const winograd_size *z, winograd_cut *cut, int64_t workers)
{
    const cpu_model *m = target_cpu(t);
    double positions = (double)z->positions, tiles = (double)tiles_of(cut),
           in_channels = (double)(z->in_blocks * z->lanes), out_blocks = (double)z->out_blocks / (double)cut->shares;
    double in = positions * tiles * (double)z->in_blocks, out = positions * tiles * out_blocks,
           step = choose_registers(t, z, cut);
    if (step <= 0)
        return 0;
    double cycles = m->transform * (in + out / 2) + positions * in_channels * out_blocks * step;
    cycles += choose_group(t, z, cut);
    int64_t own = (strips_of(z, cut) * cut->shares + workers - 1) / workers;
    return (double)own * cycles;
}

/* Sets the fastest cut of strips of so many images. Its cycles. */
static double choose_strip(const struct target *t, const winograd_size *z, int64_t images, winograd_cut *best)
{
    int64_t workers = t->workers > 1 ? t->workers : 1, narrow = winograd_least_width(z->tiles);
    double least = 0;
    *best = (winograd_cut){images, 1, narrow, 1, 1, 1, 1, 1};
    for (int64_t i = 0; i < MAX_STRIP * MAX_PIECES; i++) {
        int64_t strip = i / MAX_PIECES + 1, pieces = i % MAX_PIECES + 1;
        winograd_cut cut = {.images = images, .strip = strip, .width = z->tiles / pieces};
        if (z->tile_rows % strip != 0 || z->tiles % pieces != 0 || cut.width < narrow)
            continue;
        for (cut.shares = 1; cut.shares <= MAX_SHARES; cut.shares *= 2) {
            double c = cut_cost(t, z, &cut, workers);
            if (c > 0 && (least == 0 || c < least)) {
                least = c;
                *best = cut;
            }
        }
    }
    return least;
}

/* The fastest cut for the target's width, of equal strips that keep to the scratch; among equals the smallest. A strip
 * of several images reads far weights once for all of them, and has several times as much between the steps. */
static winograd_cut choose_cut(const struct target *t, const winograd_size *z)
{
    winograd_cut cuts[MAX_IMAGES + 1];
    double cycles[MAX_IMAGES + 1] = {0};
    const int64_t most = !z->far ? 1 : z->batch < MAX_IMAGES ? z->batch : MAX_IMAGES;
    int64_t best = 1, images = 2;
    for (int64_t i = 1; i <= most; i++) {
        cycles[i] = z->batch % i == 0 ? choose_strip(t, z, i, &cuts[i]) : 0;
        best = cycles[i] > 0 && cycles[i] < cycles[best] ? i : best;
    }
    if (cycles[best] >= WORTH_IMAGES * cycles[1])
        return cuts[1];
    while (cycles[images] <= 0 || cycles[images] > NEAR_BEST * cycles[best])
        images++;
    return cuts[images];
}

/* --- the loops --- */

static void reorder(te_sched *s, const te_node *n, const uint32_t *axes, uint32_t count)
{
    const char **names = arena_array(&s->c->mem, const char *, count);
    for (uint32_t i = 0; i < count; i++)
        names[i] = te_axis_name(n, axes[i]);
    te_sched_reorder(s, n->name, count, names);
}

/* The loops in this order, but for `without` (NULL: all). */
static void reorder_names(te_sched *s, const char *stage, const char *const *order, uint32_t count,
                          const char *without)
{
    const char **names = arena_array(&s->c->mem, const char *, count);
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!without || strcmp(order[i], without) != 0)
            names[n++] = order[i];
    te_sched_reorder(s, stage, n, names);
}

static void unroll(te_sched *s, const te_node *n, uint32_t axis)
{
    te_sched_annotate(s, TE_UNROLL, n->name, te_axis_name(n, axis));
}

static void vectorize_last(te_sched *s, const te_node *n)
{
    te_sched_annotate(s, TE_VECTORIZE, n->name, te_axis_name(n, n->n_axes - 1));
}

/* A small stage in registers: the two axes of its tile written out. */
static void keep_in_registers(te_sched *s, const te_node *n, uint32_t first)
{
    te_sched_set_scope(s, n->name, "local.reg");
    unroll(s, n, first);
    unroll(s, n, first + 1);
    vectorize_last(s, n);
}

/* A small stage in memory, which loops over its columns fill: `row` and `col` are its axes. */
static void keep_in_memory(te_sched *s, const te_node *n, uint32_t row, uint32_t col)
{
    uint32_t axes[7], count = 0;
    for (uint32_t i = 0; i < n->n_axes; i++)
        if (i != row && i != col && i != n->n_axes - 1)
            axes[count++] = i;
    axes[count++] = col;
    axes[count++] = row;
    axes[count++] = n->n_axes - 1;
    reorder(s, n, axes, count);
    unroll(s, n, row);
    vectorize_last(s, n);
}

/* Block by block of channels: the strip with its border, then tile by tile by rows and columns. */
static void schedule_input(te_sched *s, const winograd_stages *w, const winograd_size *z,
                           const winograd_cut *cut)
{
    const te_node *input = w->input;
    const char *name = input->name, *position = te_axis_name(input, 1);
    if (z->in_memory) {
        te_sched_split(s, name, position, z->tile + WINOGRAD_KERNEL - 1, "row", "col");
        te_sched_reorder(s, name, 7, (const char *[]){te_axis_name(input, 0), te_axis_name(input, 3),
                                                      te_axis_name(input, 2), te_axis_name(input, 4), "row", "col",
                                                      te_axis_name(input, 5)});
        te_sched_annotate(s, TE_UNROLL, name, "col");
    } else {
        reorder(s, input, (const uint32_t[]){0, 3, 2, 4, 1, 5}, 6);
        unroll(s, input, 1);
    }
    vectorize_last(s, input);
    const int64_t blocks = padded_blocks(z, cut), row = blocks * cut->width * z->lanes * z->pack;
    if (blocks * z->pack != z->in_blocks)
        te_sched_storage_align(s, name, te_axis_name(input, 2), row, 0);
    te_sched_compute_at(s, w->rows->name, name, te_axis_name(input, z->in_memory ? 2 : 4));
    if (z->in_memory)
        keep_in_memory(s, w->rows, 3, 4);
    else
        keep_in_registers(s, w->rows, 3);
    te_sched_compute_at(s, w->tiles->name, name, te_axis_name(input, 3));
    if (z->pack > 1) { /* each block of the data has a part of a vector */
        const char *tiles = w->tiles->name;
        te_sched_split(s, tiles, te_axis_name(w->tiles, 4), z->lanes, "side", "lane_i");
        te_sched_annotate(s, TE_UNROLL, tiles, "side");
        te_sched_annotate(s, TE_VECTORIZE, tiles, "lane_i");
    } else {
        vectorize_last(s, w->tiles);
    }
}

/* A matrix product for each position: lanes over output channels, rows over tiles. weights: the parameter whose next
 * panel is fetched while the tiles pass over this one; NULL: a cache holds all of it. */
static void schedule_product(te_sched *s, const winograd_stages *w, const target_dot *dot, const winograd_cut *cut,
                             const char *weights)
{
    const te_node *m = w->product;
    const char *acc = arena_printf(&s->c->mem, "%s_acc", m->name), *ic = m->reduce_axes[0]->var->name;
    te_sched_cache_write(s, m->name, "local.reg", acc);
    const bool groups = cut->group > cut->vectors;
    const char *block = groups ? "block_i" : te_axis_name(m, 2);
    if (groups)
        te_sched_split(s, m->name, te_axis_name(m, 2), cut->vectors, "block_o", block);
    te_sched_split(s, m->name, te_axis_name(m, 3), cut->tile_rows, "row_o", "row_i");
    te_sched_split(s, m->name, te_axis_name(m, 4), cut->tiles, "tile_o", "tile_i");
    const char *const order[] = {te_axis_name(m, 1), "block_o", te_axis_name(m, 0), "row_o", "tile_o", "row_i",
                                 "tile_i", block, te_axis_name(m, 5)};
    reorder_names(s, m->name, order, sizeof order / sizeof *order, groups ? NULL : "block_o");
    te_sched_annotate(s, TE_UNROLL, m->name, "row_i");
    te_sched_annotate(s, TE_UNROLL, m->name, "tile_i");
    te_sched_annotate(s, TE_UNROLL, m->name, block);
    vectorize_last(s, m);
    te_sched_compute_at(s, acc, m->name, "tile_o");
    te_sched_split(s, acc, ic, te_axis_extent(w->input, 5), "ic_o", "ic_i");
    if (dot)
        te_sched_split(s, acc, "ic_i", dot->granule, "ic_m", "ic_g");
    if (weights)
        te_sched_prefetch(s, acc, dot ? "ic_m" : "ic_i", weights, m->name, groups ? "block_o" : te_axis_name(m, 1));
    te_sched_reorder(s, acc, dot ? 9 : 8,
                     (const char *[]){te_axis_name(m, 0), te_axis_name(m, 1), "ic_o", dot ? "ic_m" : "ic_i",
                                      te_axis_name(m, 3), te_axis_name(m, 4), te_axis_name(m, 2), te_axis_name(m, 5),
                                      "ic_g"});
    for (uint32_t i = 2; i < 5; i++)
        te_sched_annotate(s, TE_UNROLL, acc, te_axis_name(m, i));
    if (dot)
        te_sched_tensorize(s, acc, te_axis_name(m, 5), dot->intrinsic);
    else
        te_sched_annotate(s, TE_VECTORIZE, acc, te_axis_name(m, 5));
}

/* The loops of the result; everything else is computed in one of them. */
static void schedule_result(te_sched *s, const winograd_stages *w, const winograd_size *z, const winograd_cut *cut)
{
    const int64_t groups = z->out_blocks / cut->group, tile = z->tile;
    const te_node *y = w->last;
    const char *n = te_axis_name(y, 0), *name = y->name;
    const bool images = cut->images > 1;
    if (images)
        te_sched_split(s, name, n, cut->images, "images", "image");
    te_sched_split(s, name, te_axis_name(y, 1), cut->group, "groups", "vector");
    te_sched_split(s, name, "groups", groups / cut->shares, "share", "group");
    te_sched_split(s, name, te_axis_name(y, 2), tile * cut->strip, "strip", "rows");
    te_sched_split(s, name, "rows", tile, "tile_row", "row");
    te_sched_split(s, name, te_axis_name(y, 3), tile * cut->width, "piece", "cols");
    te_sched_split(s, name, "cols", tile, "tile", "col");
    n = images ? "images" : n;
    const char *const order[] = {"share",    n,      "strip", "piece", "group", "image", "vector",
                                 "tile_row", "tile", "row",   "col",   te_axis_name(y, 4)};
    reorder_names(s, name, order, sizeof order / sizeof *order, images ? NULL : "image");
    te_sched_fuse(s, name, "share", n, "share_n");
    te_sched_fuse(s, name, "share_n", "strip", "strips");
    te_sched_fuse(s, name, "strips", "piece", "part");
    te_sched_annotate(s, TE_PARALLEL, name, "part");
    if (!z->in_memory)
        te_sched_annotate(s, TE_UNROLL, name, "row");
    te_sched_annotate(s, TE_UNROLL, name, "col");
    vectorize_last(s, y);
    te_sched_compute_at(s, w->input->name, name, "part");
    te_sched_compute_at(s, w->product->name, name, "group");
    te_sched_compute_at(s, w->sums->name, name, z->in_memory ? "tile_row" : "tile");
    if (z->in_memory)
        keep_in_memory(s, w->sums, 4, 5);
    else
        keep_in_registers(s, w->sums, 4);
    if (w->output != y) {
        te_sched_compute_at(s, w->output->name, name, z->in_memory ? "row" : "tile");
        keep_in_registers(s, w->output, 2);
    }
}

/* Weights that the second-level cache does not hold beside what passes. */
static bool weights_come_from_afar(const struct target *t, const winograd_size *z)
{
    return z->positions * z->in_blocks * z->out_blocks * z->lanes * z->lanes * z->bytes >
           (int64_t)(PART_OF_L2 * target_cpu(t)->l2_bytes);
}

static bool schedule_winograd(const te_case *x)
{
    te_sched *s = x->s;
    const struct target *t = x->t;
    const graph_node *n = x->n;
    te_node *last = x->last;
    winograd_stages w;
    if (!find_stages(s, n, last, &w) || te_axis_extent(last, 4) != (int64_t)t->vector_bytes / 4)
        return false;
    winograd_size z = {.batch = te_axis_extent(last, 0),
                       .positions = te_axis_extent(w.product, 1),
                       .in_blocks = te_axis_extent(w.input, 3),
                       .pack = 1,
                       .out_blocks = te_axis_extent(last, 1),
                       .tile_rows = te_axis_extent(w.product, 3),
                       .tiles = te_axis_extent(w.product, 4),
                       .lanes = te_axis_extent(w.product, 5),
                       .tile = graph_attr_int(n, "tile_size"),
                       .scratch = graph_attr_int(n, "scratch"),
                       .bytes = (int64_t)dtype_bytes(te_in_type(n, 1)->dt)};
    if (z.lanes > 0 && te_axis_extent(w.input, 5) != z.lanes) {
        z.pack = te_axis_extent(w.input, 5) / z.lanes;
        z.in_blocks *= z.pack;
    }
    bool floats = dtype_is_float(te_in_type(n, 1)->dt);
    z.dot = floats ? NULL : target_find_dot(t, DT_I16, DT_I16, false);
    if (!floats && !z.dot)
        return false;
    if (z.batch == 0 || z.in_blocks == 0 || z.out_blocks == 0)
        return false;
    z.far = weights_come_from_afar(t, &z);
    z.in_memory = t->plain_addresses && z.positions > te_tile_regs(t);
    winograd_cut cut = choose_cut(t, &z);
    schedule_result(s, &w, &z, &cut);
    schedule_product(s, &w, z.dot, &cut, z.far ? te_find_parameter(s->g, n->inputs[1]->name) : NULL);
    schedule_input(s, &w, &z, &cut);
    return true;
}

/* A product for (m * 3)^2 / (m + 2)^2 of the convolution. */
static double cost(const te_case *x)
{
    const double m = (double)graph_attr_int(x->n, "tile_size"), saved = m * 3 / (m + 2);
    return te_cost_of_tile(x->t, (te_tile){1, te_tile_regs(x->t) / 2}) / (saved * saved);
}

static const te_rule rows[] = {
    {"Winograd", TE_WINOGRAD, "products of all positions of tiles, and transforms around them", NULL, cost,
     schedule_winograd},
};
const te_rules te_rules_winograd = {rows, sizeof rows / sizeof *rows};
