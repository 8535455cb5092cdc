/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definition of convolutions as lists of steps (graph/op/steps.h): of exact sums, in whatever order. */
#include "graph/op/steps.h"
#include "te/op/util.h"

typedef struct steps_ctx {
    const te_tensor *x, *w, *places;
    const int64_t *strides;
    tir_expr_ref most; /* place; NULL: all are known to be inside */
    const te_axis *step, *number;
} steps_ctx;

enum { BATCH, BLOCK, ROW, COL, LANE, RANK };

/* One product of run `r` of the step. */
static tir_expr_ref product_of(te_graph *g, const steps_ctx *v, tir_expr_ref const *idx, int64_t r)
{
    compiler *c = g->c;
    tir_expr_ref step = te_var(g, v->step), k = te_var(g, v->number);
    const tir_expr_ref at[3] = {idx[BLOCK], step, te_i64(g, r)},
                       wi[5] = {idx[BLOCK], step, te_i64(g, r), idx[LANE], k};
    tir_expr_ref place = tir_cast(c, DT_I64, te_read(g, v->places, at));
    if (v->most)
        place = te_clamp_index(g, place, v->most);
    tir_expr_ref pixel = tir_add(c, tir_mul(c, idx[ROW], te_i64(g, v->strides[0])),
                                 tir_mul(c, idx[COL], te_i64(g, v->strides[1])));
    const tir_expr_ref xi[2] = {idx[BATCH], tir_add(c, tir_add(c, place, pixel), k)};
    return tir_mul(c, tir_cast(c, DT_I32, te_read(g, v->x, xi)), tir_cast(c, DT_I32, te_read(g, v->w, wi)));
}

static tir_expr_ref steps_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    return tir_add(g->c, product_of(g, ctx, idx, 0), product_of(g, ctx, idx, 1));
}

bool compute_conv2d_steps(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    const int64_t *extents = NULL;
    steps_ctx v = {.x = in[0], .w = in[1], .places = in[2]};
    (void)graph_attr_ints(n, "strides", &v.strides);
    (void)graph_attr_ints(n, "out", &extents);
    if (graph_attr_int(n, "proved") == 0) {
        const int64_t reach = (extents[0] - 1) * v.strides[0] + (extents[1] - 1) * v.strides[1] + STEPS_RUN - 1;
        v.most = tir_sub(g->c, in[0]->shape[1], te_i64(g, reach));
    }
    te_axis *reduce[2] = {te_reduce_axis(g, "step", in[1]->shape[1]), te_reduce_axis(g, "k", te_i64(g, STEPS_RUN))};
    v.step = reduce[0];
    v.number = reduce[1];
    out[0] = te_reduce(g, "conv", DT_I32, RANK, te_shape(g, te_out_type(n, 0)), 2, reduce, TE_SUM, steps_body, &v);
    out[0]->node->tag = n->op->name;
    const int64_t products = graph_attr_int(n, "products");
    te_count_macs(g, 2, (int64_t[]){te_most_count(g, out[0]), products > 0 ? products : te_most(g, in[1]->shape[1]) *
                                                              STEPS_RUN * STEPS_RUNS});
    return true;
}
