/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definitions of normalisations: batch, layer, RMS, group (and instance), local response. Statistics of f16 and
 * bf16 are kept in f32 (the stash type of ONNX LayerNormalization). */
#include "te/op/util.h"

#include <string.h>

/* A normalisation over a block of elements: which reduction axes stand for which axes of x. */
typedef struct norm_ctx {
    const te_tensor *x, *mean, *second, *scale, *bias; /* second: variance or mean square, per kept index */
    te_axis *reduce[TYPE_MAX_RANK];
    uint32_t n_reduce;
    uint32_t axis;      /* layer, RMS: first normalised axis */
    int64_t groups;     /* group norm */
    tir_expr_ref count; /* elements reduced, as acc */
    double epsilon;
    dtype acc, out;
} norm_ctx;

static tir_expr_ref read_acc(te_graph *g, const norm_ctx *v, const te_tensor *t, tir_expr_ref const *idx)
{
    return tir_cast(g->c, v->acc, te_read(g, t, idx));
}

static tir_expr_ref inverse_deviation(te_graph *g, const norm_ctx *v, tir_expr_ref second)
{
    compiler *c = g->c;
    tir_expr_ref sum = tir_add(c, second, tir_float(c, v->acc, v->epsilon));
    return tir_binary(c, TIR_DIV, tir_float(c, v->acc, 1.0), tir_call1(c, TIR_SQRT, sum));
}

static tir_expr_ref over_count_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const te_tensor *sum = ((const te_tensor **)ctx)[0];
    const norm_ctx *v = ((const void **)ctx)[1];
    return tir_binary(g->c, TIR_DIV, te_read(g, sum, idx), v->count);
}

/* sum(body) / count, as two stages. */
static te_tensor *average(te_graph *g, norm_ctx *v, const char *name, uint32_t rank, tir_expr_ref const *dims,
                          te_body_fn body)
{
    te_tensor *sum = te_reduce(g, arena_printf(&g->c->mem, "%s_sum", name), v->acc, rank, dims, v->n_reduce, v->reduce,
                               TE_SUM, body, v);
    const void *ctx[2] = {sum, v};
    return te_compute(g, name, v->acc, rank, dims, over_count_body, ctx);
}

/* --- layer and RMS: trailing axes from `axis` on
 * ---------------------------------------------------------------------- */

/* Index of x from the kept leading indices and the reduction axes. */
static void layer_at(te_graph *g, const norm_ctx *v, tir_expr_ref const *kept, tir_expr_ref *at)
{
    memcpy(at, kept, v->axis * sizeof *at);
    for (uint32_t i = 0; i < v->n_reduce; i++)
        at[v->axis + i] = te_var(g, v->reduce[i]);
}

static tir_expr_ref layer_value_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    tir_expr_ref at[TYPE_MAX_RANK];
    layer_at(g, ctx, idx, at);
    return read_acc(g, ctx, ((norm_ctx *)ctx)->x, at);
}

static tir_expr_ref layer_square_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const norm_ctx *v = ctx;
    tir_expr_ref x = layer_value_body(g, ctx, idx);
    if (v->mean)
        x = tir_sub(g->c, x, te_read(g, v->mean, idx));
    return tir_mul(g->c, x, x);
}

static tir_expr_ref layer_inverse_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    return inverse_deviation(g, ctx, te_read(g, ((norm_ctx *)ctx)->second, idx));
}

static tir_expr_ref layer_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const norm_ctx *v = ctx;
    compiler *c = g->c;
    tir_expr_ref x = read_acc(g, v, v->x, idx);
    if (v->mean)
        x = tir_sub(c, x, te_read(g, v->mean, idx));
    x = tir_mul(c, x, te_read(g, v->second, idx)); /* second: the inverse deviation */
    x = tir_mul(c, x, tir_cast(c, v->acc, te_read_broadcast(g, v->scale, v->x->rank, v->x->shape, idx)));
    if (v->bias)
        x = tir_add(c, x, tir_cast(c, v->acc, te_read_broadcast(g, v->bias, v->x->rank, v->x->shape, idx)));
    return tir_cast(c, v->out, x);
}

static bool layer_setup(te_graph *g, const graph_node *n, te_tensor *const *in, norm_ctx *v)
{
    int32_t axis = 0;
    const type *t = te_out_type(n, 0);
    if (!infer_axis(g->c, n, graph_attr_int(n, "axis"), t->shape.rank, &axis))
        return false;
    *v = (norm_ctx){.x = in[0], .scale = in[1], .axis = (uint32_t)axis, .out = t->dt, .acc = te_acc_dtype(t->dt)};
    v->epsilon = graph_attr_float(n, "epsilon");
    v->n_reduce = in[0]->rank - v->axis;
    tir_expr_ref count = te_i64(g, 1);
    for (uint32_t i = 0; i < v->n_reduce; i++) {
        v->reduce[i] = te_numbered_axis(g, "r", i, in[0]->shape[v->axis + i]);
        count = tir_mul(g->c, count, in[0]->shape[v->axis + i]);
    }
    v->count = tir_cast(g->c, v->acc, count);
    return true;
}

/* The fresh reduction axes of a second stage: an axis belongs to one stage only. */
static void renew_axes(te_graph *g, norm_ctx *v)
{
    for (uint32_t i = 0; i < v->n_reduce; i++)
        v->reduce[i] = te_reduce_axis(g, v->reduce[i]->var->name, v->reduce[i]->extent);
}

static tir_expr_ref keep_ones_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    return te_read(g, ctx, idx); /* trailing axes of extent 1 are dropped */
}

bool compute_layer_norm(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    norm_ctx v;
    if (!layer_setup(g, n, in, &v))
        return false;
    v.bias = n->n_inputs > 2 ? in[2] : NULL;
    te_tensor *mean = average(g, &v, "mean", v.axis, v.x->shape, layer_value_body);
    v.mean = mean;
    renew_axes(g, &v);
    v.second = average(g, &v, "variance", v.axis, v.x->shape, layer_square_body);
    te_tensor *inverse = te_compute(g, "inv_std_dev", v.acc, v.axis, v.x->shape, layer_inverse_body, &v);
    v.second = inverse;
    out[0] = te_compute(g, "layer_norm", v.out, v.x->rank, v.x->shape, layer_body, &v);
    te_tensor *stat[2] = {mean, inverse};
    for (uint32_t i = 1; i < n->n_outputs; i++)
        out[i] = te_compute(g, i == 1 ? "mean_out" : "inv_std_dev_out", v.acc, v.x->rank,
                            te_shape(g, te_out_type(n, i)), keep_ones_body, stat[i - 1]);
    return true;
}

bool compute_rms_norm(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    norm_ctx v;
    if (!layer_setup(g, n, in, &v))
        return false;
    v.second = average(g, &v, "mean_square", v.axis, v.x->shape, layer_square_body);
    v.second = te_compute(g, "inv_rms", v.acc, v.axis, v.x->shape, layer_inverse_body, &v);
    out[0] = te_compute(g, "rms_norm", v.out, v.x->rank, v.x->shape, layer_body, &v);
    return true;
}

/* --- group: (C/groups, spatial) of each sample and group
 * ---------------------------------------------------------------- */

static tir_expr_ref channels_per_group(te_graph *g, const norm_ctx *v)
{
    return tir_floordiv(g->c, v->x->shape[1], te_i64(g, v->groups));
}

static tir_expr_ref group_value_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const norm_ctx *v = ctx;
    tir_expr_ref at[TYPE_MAX_RANK];
    at[0] = idx[0];
    at[1] = tir_add(g->c, tir_mul(g->c, idx[1], channels_per_group(g, v)), te_var(g, v->reduce[0]));
    for (uint32_t i = 1; i < v->n_reduce; i++)
        at[1 + i] = te_var(g, v->reduce[i]);
    return read_acc(g, v, v->x, at);
}

static tir_expr_ref group_square_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    tir_expr_ref x = tir_sub(g->c, group_value_body(g, ctx, idx), te_read(g, ((norm_ctx *)ctx)->mean, idx));
    return tir_mul(g->c, x, x);
}

static tir_expr_ref group_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const norm_ctx *v = ctx;
    compiler *c = g->c;
    tir_expr_ref at[2] = {idx[0], tir_floordiv(c, idx[1], channels_per_group(g, v))};
    tir_expr_ref x = tir_sub(c, read_acc(g, v, v->x, idx), te_read(g, v->mean, at));
    x = tir_mul(c, x, te_read(g, v->second, at));
    x = tir_mul(c, x, tir_cast(c, v->acc, te_read(g, v->scale, idx + 1)));
    x = tir_add(c, x, tir_cast(c, v->acc, te_read(g, v->bias, idx + 1)));
    return tir_cast(c, v->out, x);
}

bool compute_group_norm(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    const type *t = te_out_type(n, 0);
    norm_ctx v = {.x = in[0], .scale = in[1], .bias = in[2], .out = t->dt, .acc = te_acc_dtype(t->dt)};
    v.groups = graph_attr_int(n, "num_groups");
    v.epsilon = graph_attr_float(n, "epsilon");
    v.n_reduce = in[0]->rank - 1;
    tir_expr_ref count = channels_per_group(g, &v);
    v.reduce[0] = te_reduce_axis(g, "rc", count);
    for (uint32_t i = 1; i < v.n_reduce; i++) {
        v.reduce[i] = te_numbered_axis(g, "r", i, in[0]->shape[1 + i]);
        count = tir_mul(g->c, count, in[0]->shape[1 + i]);
    }
    v.count = tir_cast(g->c, v.acc, count);
    tir_expr_ref kept[2] = {in[0]->shape[0], te_i64(g, v.groups)};
    v.mean = average(g, &v, "mean", 2, kept, group_value_body);
    renew_axes(g, &v);
    v.second = average(g, &v, "variance", 2, kept, group_square_body);
    v.second = te_compute(g, "inv_std_dev", v.acc, 2, kept, layer_inverse_body, &v);
    out[0] = te_compute(g, "group_norm", v.out, v.x->rank, v.x->shape, group_body, &v);
    return true;
}

/* --- batch (inference) and local response
 * -------------------------------------------------------------------------------- */

static tir_expr_ref batch_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    te_tensor *const *in = ((void **)ctx)[0];
    const norm_ctx *v = ((void **)ctx)[1];
    compiler *c = g->c;
    tir_expr_ref const *ch = v->x->rank > 1 ? idx + 1 : idx;
    tir_expr_ref x = tir_sub(c, read_acc(g, v, in[0], idx), read_acc(g, v, in[3], ch));
    x = tir_mul(c, x, inverse_deviation(g, v, read_acc(g, v, in[4], ch)));
    x = tir_add(c, tir_mul(c, x, read_acc(g, v, in[1], ch)), read_acc(g, v, in[2], ch));
    return tir_cast(c, v->out, x);
}

bool compute_batch_norm(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    const type *t = te_out_type(n, 0);
    norm_ctx v = {.x = in[0], .out = t->dt, .acc = te_acc_dtype(t->dt), .epsilon = graph_attr_float(n, "epsilon")};
    const void *ctx[2] = {in, &v};
    out[0] = te_compute(g, "batch_norm", v.out, in[0]->rank, in[0]->shape, batch_body, ctx);
    return true;
}

typedef struct lrn_ctx {
    const te_tensor *x, *sum;
    te_axis *tap;
    int64_t size;
    double alpha, beta, bias;
    dtype acc;
} lrn_ctx;

/* Taps c - floor((size-1)/2) .. c + ceil((size-1)/2), those outside count as zero (ONNX LRN). */
static tir_expr_ref lrn_square_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const lrn_ctx *v = ctx;
    compiler *c = g->c;
    tir_expr_ref at[TYPE_MAX_RANK];
    memcpy(at, idx, v->x->rank * sizeof *at);
    at[1] = tir_sub(c, tir_add(c, idx[1], te_var(g, v->tap)), te_i64(g, (v->size - 1) / 2));
    tir_expr_ref x = tir_cast(c, v->acc, te_read(g, v->x, at));
    return tir_select(c, te_in_bounds(g, at[1], v->x->shape[1]), tir_mul(c, x, x), tir_float(c, v->acc, 0));
}

static tir_expr_ref lrn_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const lrn_ctx *v = ctx;
    compiler *c = g->c;
    tir_expr_ref scaled = tir_mul(c, te_read(g, v->sum, idx), tir_float(c, v->acc, v->alpha / (double)v->size));
    tir_expr_ref base = tir_add(c, scaled, tir_float(c, v->acc, v->bias));
    tir_expr_ref power = tir_call(c, TIR_POW, 2, (tir_expr_ref[]){base, tir_float(c, v->acc, v->beta)});
    return tir_cast(c, v->x->dt, tir_binary(c, TIR_DIV, tir_cast(c, v->acc, te_read(g, v->x, idx)), power));
}

bool compute_lrn(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    lrn_ctx v = {.x = in[0], .size = graph_attr_int(n, "size"), .acc = te_acc_dtype(in[0]->dt)};
    v.alpha = graph_attr_float(n, "alpha");
    v.beta = graph_attr_float(n, "beta");
    v.bias = graph_attr_float(n, "bias");
    if (v.size < 1 || in[0]->rank < 2)
        return infer_error(g->c, n, "size must be positive and the input must have channels");
    v.tap = te_reduce_axis(g, "tap", te_i64(g, v.size));
    v.sum = te_reduce(g, "square_sum", v.acc, v.x->rank, v.x->shape, 1, &v.tap, TE_SUM, lrn_square_body, &v);
    out[0] = te_compute(g, "lrn", v.x->dt, v.x->rank, v.x->shape, lrn_body, &v);
    return true;
}
