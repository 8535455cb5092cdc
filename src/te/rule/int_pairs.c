/* SPDX-License-Identifier: Apache-2.0 */
/* Default schedules of depthwise convolutions by pairs of rows (te/op/row_pairs.c). A part is a strip of rows of one
 * block of channels: it makes the words of the pairs under the strip, which stay in the first cache, and those of the
 * weights, and then the rows of the result, as many side by side as there are places in a pair where a window begins.
 * Where workers share them, strips stand outside of blocks, so that one reads the rows that it made before. */
#include "te/rule/rule.h"
#include "type/cpu_model.h"
#include "type/dot.h"

#define MOST_COLUMNS 8   /* of a tile: more sums, and compilers of AVX2 bring weights and sums to memory */
#define MOST_PRODUCTS 16 /* of words under a window, all written out; else those of one pair of rows are */
#define L1_QUARTERS  3   /* for the words of a strip, beside what is read and written once */

enum { BATCH, BLOCK, ROW, COL, LANE, RANK };

typedef struct pair_rows {
    const te_node *data, *weights;
    int64_t rows, cols, lanes; /* of the result */
    int64_t apart;             /* images, and blocks of their channels */
    int64_t phases;            /* places where windows begin */
    int64_t row_bytes;         /* of words, over all columns */
    int64_t between, under;    /* rows of pairs from one row of the result to the next, in halves; under a window */
} pair_rows;

/* Columns of a tile: as few tiles as can be, as equal as can be. */
static int64_t choose_columns(const pair_rows *v)
{
    const int64_t tiles = (v->cols + MOST_COLUMNS - 1) / MOST_COLUMNS;
    return (v->cols + tiles - 1) / tiles;
}

static bool fits(const pair_rows *v, const struct target *t, int64_t strip)
{
    const int64_t pairs = (strip - 1) * v->between / 2 + v->under;
    return pairs * v->row_bytes <= (int64_t)target_cpu(t)->l1_bytes * L1_QUARTERS / 4;
}

/* The tallest strip that fits, divides the rows, and leaves one for each worker: the fewest pairs are made twice. */
static int64_t choose_strip(const pair_rows *v, const struct target *t)
{
    const int64_t workers = t->workers > 1 ? t->workers : 1, most = (v->rows * v->apart + workers - 1) / workers;
    int64_t best = v->phases < v->rows ? v->phases : v->rows, any = best;
    for (int64_t n = best; n <= v->rows && n <= most && fits(v, t, n); n++) {
        if (n == v->rows || n % v->phases == 0)
            any = n;
        if (v->rows % n == 0 && any == n)
            best = n;
    }
    return best * 2 >= any ? best : any;
}

static bool read_stages(const te_sched *s, const struct target *t, const te_node *a, const te_node *last, pair_rows *v)
{
    *v = (pair_rows){.data = te_find_tag(s->g, "pair_data"), .weights = te_find_tag(s->g, "pair_weights")};
    const te_node *beside[2] = {v->data, v->weights};
    if (!v->data || !v->weights || a->n_axes != RANK || a->n_reduce != 2 ||
        !te_is_one_nest_with(s, a, last, NULL, 2, beside))
        return false;
    v->rows = te_axis_extent(a, ROW);
    v->cols = te_axis_extent(a, COL);
    v->lanes = te_axis_extent(a, LANE);
    const int64_t images = te_axis_most(s->g, a, BATCH);
    v->apart = (images > 0 ? images : 1) * te_axis_extent(a, BLOCK);
    v->phases = te_axis_extent(v->weights, 1);
    v->under = te_axis_extent(v->weights, 2);
    v->row_bytes = te_axis_extent(v->data, COL) * v->lanes * 4;
    const int64_t pairs = te_axis_extent(v->data, ROW) - v->under;
    v->between = v->rows > 1 ? (2 * pairs + v->rows - 2) / (v->rows - 1) : 1;
    return v->rows > 0 && v->cols > 0 && v->row_bytes > 0 && v->phases > 0 && v->under > 0 &&
           v->lanes * 4 <= t->vector_bytes && te_reduce_most(s->g, a) > 0;
}

static void cut_result(te_sched *s, const pair_rows *v, const te_node *y, int64_t strip, int64_t columns, bool shared)
{
    const char *o = y->name, *n = te_axis_name(y, BATCH), *block = te_axis_name(y, BLOCK),
               *outer[3] = {shared ? "strip" : n, shared ? n : block, shared ? block : "strip"};
    te_sched_split(s, o, te_axis_name(y, ROW), strip, "strip", "row");
    te_sched_split(s, o, "row", v->phases, "row_o", "row_i");
    te_sched_split(s, o, te_axis_name(y, COL), columns, "col_o", "col_i");
    te_sched_reorder(s, o, 8, (const char *[]){outer[0], outer[1], outer[2], "row_o", "col_o", "row_i", "col_i",
                                               te_axis_name(y, LANE)});
    te_sched_fuse(s, o, outer[0], outer[1], "part0");
    te_sched_fuse(s, o, "part0", outer[2], "part");
    te_sched_annotate(s, TE_PARALLEL, o, "part");
    te_sched_annotate(s, TE_UNROLL, o, "row_i");
    te_sched_annotate(s, TE_UNROLL, o, "col_i");
    te_sched_annotate(s, TE_VECTORIZE, o, te_axis_name(y, LANE));
}

static void cut_sums(te_sched *s, const te_node *a, const te_node *y, const char *acc, bool whole)
{
    const char *pair = a->reduce_axes[0]->var->name, *kw = a->reduce_axes[1]->var->name, *col = te_axis_name(a, COL);
    te_sched_compute_at(s, acc, y->name, "row_i");
    te_sched_reorder(s, acc, 4, (const char *[]){pair, kw, col, te_axis_name(a, LANE)});
    if (whole)
        te_sched_annotate(s, TE_UNROLL, acc, pair);
    te_sched_annotate(s, TE_UNROLL, acc, kw);
    te_sched_annotate(s, TE_UNROLL, acc, col);
    if (te_axis_extent(a, LANE) % 2 == 0)
        te_sched_tensorize(s, acc, te_axis_name(a, LANE), target_find_words_dot()->intrinsic);
    else
        te_sched_annotate(s, TE_VECTORIZE, acc, te_axis_name(a, LANE));
}

static bool schedule_row_pairs(const te_case *x)
{
    te_sched *s = x->s;
    const struct target *t = x->t;
    te_node *anchor = x->anchor, *last = x->last;
    pair_rows v;
    if (!read_stages(s, t, anchor, last, &v))
        return false;
    const char *acc = te_sums_stage(s, anchor, last, "local.reg");
    cut_result(s, &v, last, choose_strip(&v, t), choose_columns(&v), t->workers > 1);
    const bool whole = v.under * te_axis_extent(v.weights, 3) <= MOST_PRODUCTS;
    cut_sums(s, anchor, last, acc, whole);
    te_sched_compute_at(s, v.data->name, last->name, "part");
    te_sched_annotate(s, TE_VECTORIZE, v.data->name, te_axis_name(v.data, LANE));
    te_sched_compute_at(s, v.weights->name, last->name, "part");
    for (uint32_t i = 1; whole && i < LANE; i++)
        te_sched_annotate(s, TE_UNROLL, v.weights->name, te_axis_name(v.weights, i));
    te_sched_annotate(s, TE_VECTORIZE, v.weights->name, te_axis_name(v.weights, LANE));
    return true;
}

/* Stages that hold words of two rows. */
static bool takes(const te_case *x)
{
    return te_find_tag(x->s->g, "pair_data") != NULL;
}

/* Two products of a lane at a time. */
static double cost(const te_case *x)
{
    return te_cost_of_tile(x->t, (te_tile){1, MOST_COLUMNS}) / 2;
}

static const te_rule rows[] = {
    {"pairs of rows", TE_CONV, "words of two rows of a window, whose halves an instruction multiplies", takes, cost,
     schedule_row_pairs},
};
const te_rules te_rules_pairs = {rows, sizeof rows / sizeof *rows};
