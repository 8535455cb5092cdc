/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definitions of convolutions and matrix products as lists of steps (graph/op/steps.h): of exact sums, in
 * whatever order. */
#include "graph/op/steps.h"
#include "te/op/util.h"

#include <string.h>

typedef struct steps_ctx {
    const te_tensor *x, *w, *places;
    int64_t shared; /* blocks of the result that share a list */
    const int64_t *strides; /* NULL: a product, of which each row of the data is an image */
    tir_expr_ref lanes;
    tir_expr_ref most; /* place; NULL: all are known to be inside */
    const te_axis *step, *number;
} steps_ctx;

/* An element of the result: its list, and what of it is its own. */
typedef struct steps_place {
    tir_expr_ref block, lane, pixel;
    tir_expr_ref const *image;
} steps_place;

#define WORD 8 /* bytes */

enum { BATCH, BLOCK, ROW, COL, LANE, RANK };

/* One product of run `r` of the step. */
static tir_expr_ref product_of(te_graph *g, const steps_ctx *v, const steps_place *p, int64_t r)
{
    compiler *c = g->c;
    const uint32_t last = v->x->rank - 1;
    tir_expr_ref step = te_var(g, v->step), k = te_var(g, v->number);
    const tir_expr_ref at[3] = {p->block, step, te_i64(g, r)}, wi[5] = {p->block, step, te_i64(g, r), p->lane, k};
    tir_expr_ref place = tir_cast(c, DT_I64, te_read(g, v->places, at)), xi[TYPE_MAX_RANK];
    if (v->most)
        place = te_clamp_index(g, place, v->most);
    memcpy(xi, p->image, last * sizeof *xi);
    xi[last] = tir_add(c, p->pixel ? tir_add(c, place, p->pixel) : place, k);
    tir_expr_ref x = tir_cast(c, DT_I32, te_read(g, v->x, xi)), w = tir_cast(c, DT_I32, te_read(g, v->w, wi));
    if (v->x->dt == DT_I8) /* x + 1 by a weight below 0 */
        x = tir_sub(c, x, tir_binary(c, TIR_SHR, w, tir_int(c, DT_I32, 7)));
    return tir_mul(c, x, w);
}

static tir_expr_ref steps_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const steps_ctx *v = ctx;
    compiler *c = g->c;
    steps_place p = {.image = idx};
    if (v->strides) {
        p.block = tir_floordiv(c, idx[BLOCK], te_i64(g, v->shared));
        p.lane = tir_add(c, tir_mul(c, tir_floormod(c, idx[BLOCK], te_i64(g, v->shared)), v->lanes), idx[LANE]);
        p.pixel = tir_add(c, tir_mul(c, idx[ROW], te_i64(g, v->strides[0])),
                          tir_mul(c, idx[COL], te_i64(g, v->strides[1])));
    } else {
        p.block = tir_floordiv(c, idx[v->x->rank - 1], v->w->shape[3]);
        p.lane = tir_floormod(c, idx[v->x->rank - 1], v->w->shape[3]);
    }
    return tir_add(c, product_of(g, v, &p, 0), product_of(g, v, &p, 1));
}

/* reach: numbers behind a place that are read. */
static te_tensor *sums_of(te_graph *g, const graph_node *n, steps_ctx *v, const char *name, int64_t reach)
{
    const type *t = te_out_type(n, 0);
    if (graph_attr_int(n, "proved") == 0)
        v->most = tir_sub(g->c, v->x->shape[v->x->rank - 1], te_i64(g, reach));
    te_axis *reduce[2] = {te_reduce_axis(g, "step", v->w->shape[1]), te_reduce_axis(g, "k", te_i64(g, STEPS_RUN))};
    v->step = reduce[0];
    v->number = reduce[1];
    te_tensor *y = te_reduce(g, name, DT_I32, (uint32_t)t->shape.rank, te_shape(g, t), 2, reduce, TE_SUM, steps_body,
                             v);
    y->node->tag = n->op->name;
    return y;
}

/* --- what lists leave of large numbers --- */

typedef struct rest_ctx {
    const te_tensor *x, *high, *w;
    int64_t most, strides[2];
    const int64_t *dilations;
    const te_axis *block, *row, *col, *run, *number;
} rest_ctx;

static tir_expr_ref high_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const rest_ctx *v = ctx;
    tir_expr_ref x = te_read(g, v->x, idx);
    return tir_sub(g->c, x, tir_binary(g->c, TIR_MIN, x, tir_int(g->c, DT_U8, v->most)));
}

/* Number k of the run, of the data under the window at idx. */
static tir_expr_ref number_at(te_graph *g, const rest_ctx *v, tir_expr_ref const *idx, tir_expr_ref k)
{
    compiler *c = g->c;
    const tir_expr_ref under[2] = {tir_mul(c, te_var(g, v->row), te_i64(g, v->dilations[0])),
                                   tir_mul(c, te_var(g, v->col), te_i64(g, v->dilations[1]))};
    const tir_expr_ref at[RANK] = {
        idx[BATCH], te_var(g, v->block), tir_add(c, tir_mul(c, idx[ROW], te_i64(g, v->strides[0])), under[0]),
        tir_add(c, tir_mul(c, idx[COL], te_i64(g, v->strides[1])), under[1]), k};
    return te_read(g, v->high, at);
}

static tir_expr_ref rest_body(te_graph *g, const rest_ctx *v, tir_expr_ref const *idx)
{
    compiler *c = g->c;
    tir_expr_ref run = te_var(g, v->run), k = te_var(g, v->number);
    const tir_expr_ref wi[7] = {te_var(g, v->block), te_var(g, v->row), te_var(g, v->col), run, idx[BLOCK], idx[LANE],
                                k};
    tir_expr_ref x = number_at(g, v, idx, tir_add(c, tir_mul(c, run, te_i64(g, STEPS_RUN)), k));
    return tir_mul(c, tir_cast(c, DT_I32, x), tir_cast(c, DT_I32, te_read(g, v->w, wi)));
}

/* Whether one of `count` numbers from the first on, of the image's block, is there; a processor has words of 8. */
static tir_expr_ref any_of(te_graph *g, const rest_ctx *v, tir_expr_ref const *idx, tir_expr_ref first, int64_t count)
{
    compiler *c = g->c;
    tir_expr_ref all = NULL, bytes = NULL;
    for (int64_t i = 0; i < count; i++) {
        tir_expr_ref x = number_at(g, v, idx, tir_add(c, first, te_i64(g, i)));
        bytes = bytes ? tir_binary(c, TIR_BITOR, bytes, x) : x;
        if ((i + 1) % WORD != 0 && i + 1 < count)
            continue;
        tir_expr_ref any = tir_binary(c, TIR_NE, bytes, tir_int(c, DT_U8, 0));
        all = all ? tir_binary(c, TIR_OR, all, any) : any;
        bytes = NULL;
    }
    return all;
}

/* What numbers above `most` are more than it, by all weights: runs of which none is are left out, and so are blocks of
 * them. */
static te_tensor *rest_of(te_graph *g, const graph_node *n, te_tensor *const *in, const te_tensor *sums,
                          const int64_t *strides)
{
    rest_ctx v = {.x = in[3], .w = in[4], .most = graph_attr_int(n, "most")};
    te_tensor *rest;
    compiler *c = g->c;
    const int64_t pixel = te_most(g, in[3]->shape[BLOCK]) * te_most(g, in[3]->shape[LANE]);
    v.strides[1] = strides[1] / pixel;
    v.strides[0] = strides[0] / (pixel * te_most(g, in[3]->shape[COL]));
    static const int64_t none[2] = {1, 1};
    if (graph_attr_ints(n, "dilations", &v.dilations) != 2)
        v.dilations = none;
    te_tensor *high = te_compute(g, "high", DT_U8, RANK, in[3]->shape, high_body, &v);
    high->node->tag = "steps_high";
    v.high = high;
    te_axis *const *axes = te_data_axes(g, RANK, sums->shape);
    te_axis *reduce[5] = {te_reduce_axis(g, "block", in[4]->shape[0]), te_reduce_axis(g, "kh", in[4]->shape[1]),
                          te_reduce_axis(g, "kw", in[4]->shape[2]), te_reduce_axis(g, "run", in[4]->shape[3]),
                          te_reduce_axis(g, "k", te_i64(g, STEPS_RUN))};
    v.block = reduce[0];
    v.row = reduce[1];
    v.col = reduce[2];
    v.run = reduce[3];
    v.number = reduce[4];
    tir_expr_ref idx[RANK];
    for (uint32_t i = 0; i < RANK; i++)
        idx[i] = te_var(g, axes[i]);
    tir_expr_ref run = any_of(g, &v, idx, tir_mul(c, te_var(g, v.run), te_i64(g, STEPS_RUN)), STEPS_RUN),
                 block = any_of(g, &v, idx, te_i64(g, 0), te_most(g, in[3]->shape[LANE])), body = rest_body(g, &v, idx);
    const dtype dt = DT_I32;
    te_compute_n(g, "rest", RANK, sums->shape, axes, 5, reduce, te_simple_reducer(c, TE_SUM, DT_I32),
                 tir_and(c, block, run), 1, &dt, &body, &rest);
    rest->node->tag = "steps_rest";
    return rest;
}

static tir_expr_ref both_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    te_tensor *const *both = ctx;
    return tir_add(g->c, te_read(g, both[0], idx), te_read(g, both[1], idx));
}

bool compute_conv2d_steps(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    const int64_t *extents = NULL, products = graph_attr_int(n, "products");
    const type *t = te_out_type(n, 0);
    steps_ctx v = {.x = in[0], .w = in[1], .places = in[2]};
    (void)graph_attr_ints(n, "strides", &v.strides);
    (void)graph_attr_ints(n, "out", &extents);
    v.lanes = te_shape(g, t)[LANE];
    v.shared = te_most(g, v.lanes) > 0 ? te_most(g, in[1]->shape[3]) / te_most(g, v.lanes) : 1;
    const int64_t reach = (extents[0] - 1) * v.strides[0] + (extents[1] - 1) * v.strides[1] + STEPS_RUN - 1;
    out[0] = sums_of(g, n, &v, "conv", reach);
    te_count_macs(g, 2, (int64_t[]){te_most_count(g, out[0]), products > 0 ? products : te_most(g, in[1]->shape[1]) *
                                                              STEPS_RUN * STEPS_RUNS});
    if (te_has_operand(n, 3)) {
        te_tensor *both[2] = {out[0], rest_of(g, n, in, out[0], v.strides)};
        out[0] = te_compute(g, "sums", DT_I32, RANK, both[0]->shape, both_body, both);
        out[0]->node->inline_hint = true;
    }
    return true;
}

bool compute_matmul_steps(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    steps_ctx v = {.x = in[0], .w = in[1], .places = in[2]};
    out[0] = sums_of(g, n, &v, "matmul", STEPS_RUN - 1);
    te_count_macs(g, 2, (int64_t[]){te_most_count(g, out[0]), te_most(g, in[0]->shape[in[0]->rank - 1])});
    return true;
}
