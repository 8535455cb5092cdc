/* SPDX-License-Identifier: Apache-2.0 */
/* NonMaxSuppression as two operators, so that the work is done once: nn.nms gives each box of each batch and class its
 * rank among the chosen ones, in a tensor of known extents; nn.nms_rows lists those that have one. The arithmetic is
 * onnxruntime's, which the official cases are made with. */
#include "te/op/loops.h"

#include "abi/package.h"

typedef struct nms_ctx {
    te_graph *g;
    compiler *c;
    const tir_buffer *boxes, *scores, *ranks; /* a rank of -1: suppressed */
    const tir_buffer *best, *count;           /* the box with the highest score, -1: none; boxes chosen */
    tir_expr_ref batch, class;
    tir_expr_ref most, overlap, least; /* least NULL: any score */
    bool centered;
} nms_ctx;

static tir_expr_ref rank_of(const nms_ctx *v, tir_expr_ref box)
{
    tir_expr_ref at[3] = {v->batch, v->class, box};
    return tir_load(v->c, v->ranks, 3, at);
}

static tir_stmt *set_rank(const nms_ctx *v, tir_expr_ref box, tir_expr_ref rank)
{
    tir_expr_ref at[3] = {v->batch, v->class, box};
    return tir_store(v->c, v->ranks, 3, at, rank);
}

static tir_expr_ref score_of(const nms_ctx *v, tir_expr_ref box)
{
    tir_expr_ref at[3] = {v->batch, v->class, box};
    return tir_load(v->c, v->scores, 3, at);
}

static tir_expr_ref side(const nms_ctx *v, tir_expr_ref box, int64_t k)
{
    tir_expr_ref at[3] = {v->batch, box, te_i64(v->g, k)};
    return tir_load(v->c, v->boxes, 3, at);
}

/* Where the box begins and ends along axis 0 (x) or 1 (y): two corners in any order, or centre and size. */
static void edges(const nms_ctx *v, tir_expr_ref box, int64_t axis, tir_expr_ref *from, tir_expr_ref *to)
{
    compiler *c = v->c;
    if (v->centered) {
        tir_expr_ref middle = side(v, box, axis), size = side(v, box, 2 + axis);
        tir_expr_ref half = tir_binary(c, TIR_DIV, size, tir_const(c, size->type.dt, 2));
        *from = tir_sub(c, middle, half);
        *to = tir_add(c, middle, half);
    } else {
        tir_expr_ref a = side(v, box, 1 - axis), b = side(v, box, 3 - axis);
        *from = tir_min(c, a, b);
        *to = tir_max(c, a, b);
    }
}

/* Whether the two boxes share more than `overlap` of what they cover together. */
static tir_expr_ref overlaps(const nms_ctx *v, tir_expr_ref a, tir_expr_ref b)
{
    compiler *c = v->c;
    tir_expr_ref zero = tir_const(c, v->boxes->dt, 0), holds = NULL, common = NULL, area_a = NULL, area_b = NULL;
    for (int64_t axis = 0; axis < 2; axis++) {
        tir_expr_ref a0, a1, b0, b1;
        edges(v, a, axis, &a0, &a1);
        edges(v, b, axis, &b0, &b1);
        tir_expr_ref from = tir_max(c, a0, b0), to = tir_min(c, a1, b1), wide = tir_sub(c, to, from);
        holds = tir_and(c, holds, tir_binary(c, TIR_GT, wide, zero));
        common = common ? tir_mul(c, common, wide) : wide;
        area_a = area_a ? tir_mul(c, area_a, tir_sub(c, a1, a0)) : tir_sub(c, a1, a0);
        area_b = area_b ? tir_mul(c, area_b, tir_sub(c, b1, b0)) : tir_sub(c, b1, b0);
    }
    tir_expr_ref all = tir_sub(c, tir_add(c, area_a, area_b), common);
    holds = tir_and(c, holds, tir_and(c, tir_binary(c, TIR_GT, area_a, zero), tir_binary(c, TIR_GT, area_b, zero)));
    holds = tir_and(c, holds, tir_binary(c, TIR_GT, all, zero));
    return tir_and(c, holds, tir_binary(c, TIR_GT, tir_binary(c, TIR_DIV, common, all), v->overlap));
}

/* best = the open box with the highest score, of several the first; -1 when none is open. */
static tir_stmt *find_best(const nms_ctx *v)
{
    compiler *c = v->c;
    const tir_var *var = tir_new_var(c, "j", TIR_I64);
    tir_expr_ref j = tir_varref(c, var), zero = te_i64(v->g, 0), best = loops_get(c, v->best);
    tir_expr_ref open = tir_binary(c, TIR_EQ, rank_of(v, j), zero);
    if (v->least)
        open = tir_and(c, open, tir_binary(c, TIR_GT, score_of(v, j), v->least));
    tir_expr_ref higher = tir_binary(c, TIR_GT, score_of(v, j), score_of(v, tir_max(c, best, zero)));
    tir_expr_ref none = tir_binary(c, TIR_LT, best, zero);
    tir_expr_ref better = tir_select(c, none, tir_int(c, DT_BOOL, 1), higher);
    tir_stmt *look = tir_if(c, open, tir_if(c, better, loops_set(c, v->best, j), NULL), NULL);
    tir_stmt *parts[2] = {loops_set(c, v->best, te_i64(v->g, -1)),
                          tir_for(c, var, zero, v->ranks->shape[2], FOR_SERIAL, look)};
    return tir_seq(c, 2, parts);
}

/* The best box is chosen, and what lies too close to it is out. */
static tir_stmt *choose_best(const nms_ctx *v)
{
    compiler *c = v->c;
    const tir_var *var = tir_new_var(c, "j", TIR_I64), *chosen = tir_new_var(c, "chosen", TIR_I64);
    tir_expr_ref j = tir_varref(c, var), zero = te_i64(v->g, 0), box = tir_varref(c, chosen);
    tir_expr_ref open = tir_binary(c, TIR_EQ, rank_of(v, j), zero);
    tir_stmt *out = tir_if(c, open, tir_if(c, overlaps(v, box, j), set_rank(v, j, te_i64(v->g, -1)), NULL), NULL);
    tir_stmt *parts[3] = {loops_count_up(c, v->count), set_rank(v, box, loops_get(c, v->count)),
                          tir_for(c, var, zero, v->ranks->shape[2], FOR_SERIAL, out)};
    tir_stmt *body = tir_let(c, chosen, loops_get(c, v->best), tir_seq(c, 3, parts));
    return tir_if(c, tir_binary(c, TIR_GE, loops_get(c, v->best), zero), body, NULL);
}

/* The boxes of one batch and class. best is 0 or more as long as some may be open. */
static tir_stmt *rank_boxes(const nms_ctx *v)
{
    compiler *c = v->c;
    const tir_var *vars[3];
    tir_expr_ref i[3], zero = te_i64(v->g, 0), boxes = v->ranks->shape[2];
    loops_vars(c, "n", 3, vars, i);
    tir_stmt *step[2] = {find_best(v), choose_best(v)};
    tir_expr_ref more = tir_and(c, tir_binary(c, TIR_LT, loops_get(c, v->count), v->most),
                                tir_binary(c, TIR_GE, loops_get(c, v->best), zero));
    tir_stmt *clean = tir_if(c, tir_binary(c, TIR_LT, rank_of(v, i[2]), zero), set_rank(v, i[2], zero), NULL);
    tir_stmt *parts[5] = {tir_for(c, vars[0], zero, boxes, FOR_SERIAL, set_rank(v, i[0], zero)),
                          loops_set(c, v->count, zero), loops_set(c, v->best, zero),
                          tir_for(c, vars[1], zero, boxes, FOR_SERIAL, tir_if(c, more, tir_seq(c, 2, step), NULL)),
                          tir_for(c, vars[2], zero, boxes, FOR_SERIAL, clean)};
    return tir_seq(c, 5, parts);
}

static tir_expr_ref number(compiler *c, const tir_buffer *b, tir_expr_ref otherwise)
{
    return b ? loops_one(c, b) : otherwise;
}

static tir_stmt *build_nms(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out)
{
    const loops_ctx *l = ctx;
    compiler *c = g->c;
    const tir_var *vars[2];
    tir_expr_ref idx[2];
    loops_vars(c, "b", 2, vars, idx);
    nms_ctx v = {.g = g,
                 .c = c,
                 .boxes = in[0],
                 .scores = in[1],
                 .ranks = out[0],
                 .batch = idx[0],
                 .class = idx[1],
                 .best = loops_number(c, "best", DT_I64),
                 .count = loops_number(c, "count", DT_I64),
                 .centered = graph_attr_int(l->n, "center_point_box") != 0};
    v.most = tir_cast(c, DT_I64, number(c, in[2], te_i64(g, 0)));
    v.overlap = number(c, in[3], tir_const(c, in[0]->dt, 0));
    v.least = number(c, in[4], NULL);
    return tir_allocate(c, v.best, tir_allocate(c, v.count, loops_nest(c, 2, vars, out[0]->shape, rank_boxes(&v))));
}

bool compute_nms(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    te_tensor *all[5] = {NULL};
    for (uint32_t i = 0; i < n->n_inputs; i++)
        all[i] = in[i];
    return loops_extern(g, n, all, 5, build_nms, &(loops_ctx){0}, out);
}

/* --- rows --- */

bool extents_nms_rows(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    (void)n;
    out[0] = loops_count(g, in[0]);
    return true;
}

/* Row r - 1 behind those of earlier batches and classes is for the box with rank r. */
static tir_stmt *build_nms_rows(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out)
{
    compiler *c = g->c;
    const tir_buffer *x = in[0], *y = out[0], *count = loops_number(c, "count", DT_I64);
    const tir_buffer *start = loops_number(c, "start", DT_I64);
    const tir_var *vars[3];
    tir_expr_ref i[3], row[2], zero = te_i64(g, 0);
    (void)ctx;
    loops_vars(c, "i", 3, vars, i);
    tir_expr_ref rank = tir_load(c, x, 3, i);
    row[0] = tir_sub(c, tir_add(c, loops_get(c, start), rank), te_i64(g, 1));
    tir_stmt *put[3];
    for (int64_t k = 0; k < 3; k++) {
        row[1] = te_i64(g, k);
        put[k] = tir_store(c, y, 2, row, i[k]);
    }
    tir_expr_ref sane = tir_and(c, tir_binary(c, TIR_GT, rank, zero), tir_binary(c, TIR_LE, rank, x->shape[2]));
    tir_expr_ref room = tir_and(c, sane, tir_binary(c, TIR_LT, row[0], y->shape[0]));
    tir_stmt *found[2] = {tir_if(c, room, tir_seq(c, 3, put), NULL), loops_count_up(c, count)};
    tir_stmt *look = tir_if(c, tir_binary(c, TIR_NE, rank, zero), tir_seq(c, 2, found), NULL);
    tir_stmt *group[2] = {loops_set(c, start, loops_get(c, count)),
                          tir_for(c, vars[2], zero, x->shape[2], FOR_SERIAL, look)};
    tir_stmt *body = loops_nest(c, 2, vars, x->shape, tir_seq(c, 2, group));
    return tir_allocate(
        c, start, loops_counted(c, count, body, y->shape[0], "nn.nms_rows: another number of boxes has been chosen"));
}

bool compute_nms_rows(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return loops_extern(g, n, in, 1, build_nms_rows, &(loops_ctx){0}, out);
}
