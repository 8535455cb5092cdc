/* SPDX-License-Identifier: Apache-2.0 */
/* Default schedule of attention: heads, and where these are few, groups of rows, run in parallel; each packs its keys
 * and values and then makes a tile of rows at a time, whose scores stay in the first cache: products in registers,
 * softmax in lanes, the products with the values in registers. */
#include "graph/op/attention.h"
#include "te/rule/rule.h"
#include "type/target.h"

#define MOST_VECTORS 4  /* of columns in a tile */
#define PARTIAL      16 /* sums of a row side by side (lanes.c) */

typedef struct attention_plan {
    te_sched *s;
    const struct target *t;
    te_node *keys, *values, *bias, *products, *scores, *row_max, *row_exp, *row_sum, *row_scale, *sums, *last;
    uint32_t out_at[ATTENTION_RANK];
    int64_t lanes;          /* of a row of scores */
    int64_t width;          /* of the features: lanes, or fewer that divide them */
    int64_t rows, cols, units; /* of tiles: rows, vectors of scores, vectors of features */
    int64_t blocks, groups; /* tiles of rows; parts that share them */
} attention_plan;

static const char *name_of(const attention_plan *p, attention_axis a)
{
    return te_axis_name(p->last, p->out_at[a]);
}

/* --- tiles --- */

/* Cycles of one step of the reduction over all rows, `blocks` vectors wide. */
static double product_cost(const attention_plan *p, int64_t rows, int64_t vectors, int64_t height, int64_t blocks)
{
    double cycles = 0;
    for (int64_t left = height; left > 0; left -= rows) {
        int64_t r = left < rows ? left : rows, at = left >= rows ? left / rows : 1, rest = blocks % vectors;
        double tile = (double)(blocks / vectors) * te_step_cost(p->t, vectors, r);
        cycles += (double)at * (tile + (rest ? te_step_cost(p->t, rest, r) : 0));
        left -= (at - 1) * rows;
    }
    return cycles;
}

/* Do `vectors` of columns lie in whole blocks of keys, or in one? Of open rows of scores, which are whole blocks, in
 * one: then they divide the row. */
static bool keys_in_reach(const attention_plan *p, int64_t vectors)
{
    int64_t block = te_axis_extent(p->keys, 4), wide = vectors * p->lanes;
    return (wide % block == 0 && te_axis_extent(p->scores, 3) > 0) || block % wide == 0;
}

/* The rows of a tile are the same for both products; columns are not. Of open extents s and t are the most. */
static void choose_tiles(attention_plan *p, int64_t s, bool open, int64_t t, int64_t d, int64_t dv)
{
    const int64_t regs = te_tile_regs(p->t);
    int64_t wide = te_axis_most(p->s->g, p->scores, 3) / p->lanes, units = dv / p->width;
    double least = 0;
    for (int64_t r = 1; r <= s && r + 2 <= regs; r++)
        for (int64_t v = 1; v <= MOST_VECTORS && v * r + v + 1 <= regs && v <= wide; v++)
            for (int64_t u = 1; keys_in_reach(p, v) && u <= MOST_VECTORS && u * r + u + 1 <= regs && u <= units; u++) {
                const int64_t height = open ? r : s; /* of a whole tile, whose cycles count for each row */
                double c = product_cost(p, r, v, height, wide) * (double)d;
                c += product_cost(p, r, u, height, units) * (double)t;
                c = open ? c / (double)r * te_tile_cover(r, s) : c;
                if (least == 0 || c < least) {
                    least = c;
                    p->rows = r;
                    p->cols = v;
                    p->units = u;
                }
            }
}

/* Where heads do not keep workers busy, as few groups of rows as do, when nearly as good a tile divides the rows: a
 * guard in the shared loop would stand in the innermost one. */
static void choose_groups(attention_plan *p, int64_t heads, int64_t s)
{
    const int64_t want = 2 * (int64_t)p->t->workers;
    int64_t rows = p->rows;
    p->groups = 1;
    if (heads >= want || p->t->workers < 2)
        return;
    while (s % rows != 0)
        rows--;
    if (rows * 2 < p->rows)
        return;
    p->rows = rows;
    p->blocks = s / rows;
    for (int64_t g = 1; g <= p->blocks; g++)
        if (p->blocks % g == 0 && p->groups * heads < want)
            p->groups = g;
}

/* --- loops --- */

/* The parallel loop. */
static const char *cut_result(const attention_plan *p)
{
    te_sched *s = p->s;
    const char *o = p->last->name, *b = name_of(p, ATTENTION_B), *h = name_of(p, ATTENTION_H), *part = "part",
               *rows = "row_o";
    te_sched_split(s, o, name_of(p, ATTENTION_S), p->rows, "row_o", "row_i");
    if (p->groups > 1) {
        te_sched_split(s, o, "row_o", p->blocks / p->groups, "group", "row_m");
        rows = "row_m";
    }
    te_sched_split(s, o, name_of(p, ATTENTION_D), p->units * p->width, "lane_o", "lane_i");
    te_sched_split(s, o, "lane_i", p->width, "lane_m", "lane_v");
    if (p->groups > 1)
        te_sched_reorder(s, o, 8, (const char *[]){b, h, "group", rows, "lane_o", "row_i", "lane_m", "lane_v"});
    else
        te_sched_reorder(s, o, 7, (const char *[]){b, h, rows, "lane_o", "row_i", "lane_m", "lane_v"});
    te_sched_fuse(s, o, b, h, p->groups > 1 ? "head" : part);
    if (p->groups > 1)
        te_sched_fuse(s, o, "head", "group", part);
    te_sched_annotate(s, TE_PARALLEL, o, part);
    te_sched_annotate(s, TE_UNROLL, o, "row_i");
    te_sched_annotate(s, TE_UNROLL, o, "lane_m");
    te_sched_annotate(s, TE_VECTORIZE, o, "lane_v");
    return part;
}

/* Keys by blocks of positions, turned; values in neighboring rows. */
static void pack(const attention_plan *p, const char *part)
{
    te_sched *s = p->s;
    const char *k = p->keys->name, *j = te_axis_name(p->keys, 4);
    te_sched_compute_at(s, k, p->last->name, part);
    if (te_axis_extent(p->scores, 3) == te_reduce_most(s->g, p->sums)) { /* else the last block ends within a vector */
        te_sched_split(s, k, j, p->lanes, "lane_o", "lane_v");
        te_sched_annotate(s, TE_VECTORIZE, k, "lane_v");
    }
    te_sched_compute_at(s, p->values->name, p->last->name, part);
    te_row_in_lanes(s, p->t, p->values, te_axis_name(p->values, 3));
}

/* Sums of products of a tile, in registers: `col` the axis of its columns, cut into vectors of `lanes`. */
static void in_registers(const attention_plan *p, const te_node *n, int64_t lanes, const char *consumer,
                         const char *place)
{
    te_sched *s = p->s;
    const char *a[3] = {te_axis_name(n, 0), te_axis_name(n, 1), te_axis_name(n, 2)}, *k = n->reduce_axes[0]->var->name;
    te_sched_set_scope(s, n->name, "local.reg");
    te_sched_compute_at(s, n->name, consumer, place);
    te_sched_split(s, n->name, te_axis_name(n, 3), lanes, "lane_m", "lane_v");
    te_sched_reorder(s, n->name, 6, (const char *[]){a[0], a[1], k, a[2], "lane_m", "lane_v"});
    te_sched_annotate(s, TE_UNROLL, n->name, a[2]);
    te_sched_annotate(s, TE_UNROLL, n->name, "lane_m");
    te_sched_annotate(s, TE_VECTORIZE, n->name, "lane_v");
}

/* Rows of scores, a panel of columns after the other. */
static void make_scores(const attention_plan *p, const char *rows)
{
    te_sched *s = p->s;
    const te_node *n = p->scores;
    te_sched_compute_at(s, n->name, p->last->name, rows);
    te_sched_split(s, n->name, te_axis_name(n, 3), p->cols * p->lanes, "col_o", "col_i");
    te_sched_split(s, n->name, "col_i", p->lanes, "lane_m", "lane_v");
    te_sched_reorder(s, n->name, 6,
                     (const char *[]){te_axis_name(n, 0), te_axis_name(n, 1), "col_o", te_axis_name(n, 2), "lane_m",
                                      "lane_v"});
    te_sched_annotate(s, TE_UNROLL, n->name, te_axis_name(n, 2));
    te_sched_annotate(s, TE_UNROLL, n->name, "lane_m");
    te_sched_annotate(s, TE_VECTORIZE, n->name, "lane_v");
    in_registers(p, p->products, p->lanes, n->name, "col_o");
}

/* The row's maximum or sum, of all rows of the tile side by side where registers hold them. */
static void reduce_rows(const attention_plan *p, const te_node *n, const char *rows)
{
    te_sched *s = p->s;
    int64_t vectors = PARTIAL * 4 / (int64_t)p->t->vector_bytes;
    vectors = vectors > 0 ? vectors : 1;
    te_sched_compute_at(s, n->name, p->last->name, rows);
    te_sum_in_lanes(s, p->t, n, n->name, p->last->name, rows,
                    p->rows * vectors < te_tile_regs(p->t) ? 2 : n->n_axes);
}

static void schedule(const attention_plan *p)
{
    te_sched *s = p->s;
    const char *part = cut_result(p), *rows = p->groups > 1 ? "row_m" : "row_o", *o = p->last->name;
    pack(p, part);
    if (p->bias && !te_is_inlined(s, p->bias)) {
        te_sched_compute_at(s, p->bias->name, o, te_axis_extent(p->bias, 2) == 1 ? part : rows);
        te_row_in_lanes(s, p->t, p->bias, te_axis_name(p->bias, 3));
    }
    make_scores(p, rows);
    reduce_rows(p, p->row_max, rows);
    te_sched_compute_at(s, p->row_exp->name, o, rows);
    te_row_in_lanes(s, p->t, p->row_exp, te_axis_name(p->row_exp, 3));
    reduce_rows(p, p->row_sum, rows);
    te_sched_compute_at(s, p->row_scale->name, o, rows);
    in_registers(p, p->sums, p->width, o, "lane_o");
}

static te_node *find(te_sched *s, const char *name)
{
    return te_find_tag(s->g, arena_printf(&s->c->mem, "attention.%s", name));
}

static bool schedule_attention(const te_case *x)
{
    te_sched *s = x->s;
    const struct target *t = x->t;
    const graph_node *n = x->n;
    te_node *last = x->last;
    attention_plan p = {.s = s, .t = t, .last = last, .lanes = t->vector_bytes / 4};
    if (!attention_order(graph_attr_string(n, "out_layout"), p.out_at))
        return false;
    p.keys = find(s, "keys");
    p.values = find(s, "values");
    p.bias = find(s, "bias");
    p.products = find(s, "products");
    p.scores = find(s, "scores");
    p.row_max = find(s, "row_max");
    p.row_exp = find(s, "row_exp");
    p.row_sum = find(s, "row_sum");
    p.row_scale = find(s, "row_scale");
    p.sums = find(s, "sums");
    int64_t b = te_axis_most(s->g, last, p.out_at[ATTENTION_B]), h = te_axis_most(s->g, last, p.out_at[ATTENTION_H]),
            rows = te_axis_most(s->g, last, p.out_at[ATTENTION_S]), dv = te_axis_extent(last, p.out_at[ATTENTION_D]),
            wide = te_axis_most(s->g, p.scores, 3), d = te_reduce_most(s->g, p.products);
    const bool open = te_axis_extent(last, p.out_at[ATTENTION_S]) == 0;
    if (b <= 0 || h <= 0 || rows <= 0 || dv <= 0 || wide <= 0 || d <= 0 || p.lanes < 2 || wide % p.lanes != 0)
        return true;
    for (p.width = p.lanes; dv % p.width != 0;)
        p.width /= 2;
    choose_tiles(&p, rows, open, te_reduce_most(s->g, p.sums), d, dv);
    if (open)
        p.groups = 1;
    else
        choose_groups(&p, b * h, rows);
    schedule(&p);
    return true;
}

static double cost(const te_case *x)
{
    return te_cost_of_tile(x->t, (te_tile){1, te_tile_regs(x->t) / 2});
}

static const te_rule rows[] = {
    {"attention", TE_ATTENTION, "tiles of rows by keys, with the sums of their softmax", NULL, cost,
     schedule_attention},
};
const te_rules te_rules_attention = {rows, sizeof rows / sizeof *rows};
