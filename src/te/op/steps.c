/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definitions of convolutions and matrix products as lists of steps (graph/op/steps.h): of exact sums, in
 * whatever order. */
#include "graph/op/steps.h"
#include "te/op/util.h"

#include <string.h>

typedef struct steps_ctx {
    const te_tensor *x, *w, *places;
    const int64_t *strides; /* NULL: a product, of which each row of the data is an image */
    tir_expr_ref most; /* place; NULL: all are known to be inside */
    const te_axis *step, *number;
} steps_ctx;

/* An element of the result: its list, and what of it is its own. */
typedef struct steps_place {
    tir_expr_ref block, lane, pixel;
    tir_expr_ref const *image;
} steps_place;

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
        p.block = idx[BLOCK];
        p.lane = idx[LANE];
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

bool compute_conv2d_steps(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    const int64_t *extents = NULL, products = graph_attr_int(n, "products");
    steps_ctx v = {.x = in[0], .w = in[1], .places = in[2]};
    (void)graph_attr_ints(n, "strides", &v.strides);
    (void)graph_attr_ints(n, "out", &extents);
    const int64_t reach = (extents[0] - 1) * v.strides[0] + (extents[1] - 1) * v.strides[1] + STEPS_RUN - 1;
    out[0] = sums_of(g, n, &v, "conv", reach);
    te_count_macs(g, 2, (int64_t[]){te_most_count(g, out[0]), products > 0 ? products : te_most(g, in[1]->shape[1]) *
                                                              STEPS_RUN * STEPS_RUNS});
    return true;
}

bool compute_matmul_steps(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    steps_ctx v = {.x = in[0], .w = in[1], .places = in[2]};
    out[0] = sums_of(g, n, &v, "matmul", STEPS_RUN - 1);
    te_count_macs(g, 2, (int64_t[]){te_most_count(g, out[0]), te_most(g, in[0]->shape[in[0]->rank - 1])});
    return true;
}
