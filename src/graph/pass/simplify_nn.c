/* SPDX-License-Identifier: Apache-2.0 */
/* Simplifications around convolutions: batch norm into the weights before it (or into a multiply and an add),
 * padding into the window after it. Scale and shift are computed in double precision; the product with the weights
 * is left to the constant folder. */
#include "graph/op/nn.h"
#include "graph/pass/simplify.h"

#include <math.h>
#include <string.h>

#define MAX_WEIGHT_BYTES ((size_t)256 << 20)
#define MAX_SPATIAL      8

/* A node like n with other operands and one other attribute. */
static graph_value *emit_like(rewriter *r, const graph_node *n, graph_value *const *in, const attr *other, src_loc loc)
{
    attr *attrs = arena_array(&r->c->mem, attr, n->n_attrs + 1u);
    uint32_t len = 0;
    if (other)
        attrs[len++] = *other;
    for (uint32_t i = 0; i < n->n_attrs; i++)
        if (!other || n->attrs[i].name != other->name)
            attrs[len++] = n->attrs[i];
    return rewrite_emit(r, n->op->name, n->n_inputs, in, len, attrs, loc);
}

/* --- batch norm --- */

/* y = scale[c] * x + shift[c] */
typedef struct affine {
    dtype dt;
    int64_t channels;
    bool uniform;
    double *scale, *shift;
} affine;

static double at(const tensor_data *t, int64_t i)
{
    return tensor_get_f64(t, t->count == 1 ? 0 : i);
}

static bool read_affine(rewriter *r, const graph_node *n, affine *out)
{
    const tensor_data *t[4]; /* scale, bias, mean, variance */
    const type *x = &n->inputs[0]->type;
    *out = (affine){.dt = x->dt, .channels = 1, .uniform = true};
    if ((x->dt != DT_F32 && x->dt != DT_F64) || x->shape.rank < 2 || !dim_is_const(x->shape.dims[1], &out->channels))
        return false;
    for (uint32_t i = 0; i < 4; i++) {
        t[i] = graph_constant(n->inputs[i + 1]);
        if (!t[i] || !dtype_is_float(t[i]->dt) || (t[i]->count != out->channels && t[i]->count != 1))
            return false;
        out->uniform &= t[i]->kind == TENSOR_SPLAT || t[i]->count == 1;
    }
    int64_t len = out->uniform ? 1 : out->channels;
    double epsilon = graph_attr_float(n, "epsilon");
    out->scale = arena_array(&r->c->mem, double, (size_t)len);
    out->shift = arena_array(&r->c->mem, double, (size_t)len);
    for (int64_t i = 0; i < len && out->channels > 0; i++) {
        out->scale[i] = at(t[0], i) / sqrt(at(t[3], i) + epsilon);
        out->shift[i] = at(t[1], i) - at(t[2], i) * out->scale[i];
    }
    return true;
}

/* v as a constant with the channels on `axis` of `rank` axes, the others of extent 1. */
static graph_value *channel_constant(rewriter *r, const affine *a, const double *v, uint32_t rank, uint32_t axis,
                                     const char *name, src_loc loc)
{
    int64_t dims[TYPE_MAX_RANK];
    size_t one = dtype_bytes(a->dt), count = a->uniform ? 1 : (size_t)a->channels;
    uint8_t *bytes = arena_alloc(&r->c->mem, count * one, 64);
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = i == axis ? a->channels : 1;
    for (size_t i = 0; i < count; i++)
        dtype_store_f64(a->dt, bytes + i * one, v[i]);
    const tensor_data *t =
        a->uniform ? tensor_splat(r->c, a->dt, rank, dims, bytes) : tensor_dense(r->c, a->dt, rank, dims, bytes);
    return rewrite_constant(r, t, name, loc);
}

/* A bias that is added between the convolution and the norm goes into the shift. b counts one element, or one a channel
 * with the channels on axis 1 of the sum. */
static bool absorb_bias(rewriter *r, affine *a, const graph_value *b, int32_t rank)
{
    const tensor_data *t = graph_constant(b);
    double v = 0;
    if (!t || t->dt != a->dt)
        return false;
    bool uniform = rewrite_is_uniform(t, &v) && (t->count == 1 || (t->kind == TENSOR_SPLAT && t->count == a->channels));
    int32_t axis = (int32_t)t->rank - (rank - 1); /* of t's axis that meets axis 1 */
    bool per_channel = t->count == a->channels && axis >= 0 && (uint32_t)axis < t->rank && t->dims[axis] == a->channels;
    if (!uniform && !per_channel)
        return false;
    if (t->count != 1 && !per_channel)
        return false;
    if (a->uniform && !uniform) { /* spread out */
        double *s = arena_array(&r->c->mem, double, (size_t)a->channels),
               *h = arena_array(&r->c->mem, double, (size_t)a->channels);
        for (int64_t i = 0; i < a->channels; i++) {
            s[i] = a->scale[0];
            h[i] = a->shift[0];
        }
        *a = (affine){a->dt, a->channels, false, s, h};
    }
    for (int64_t i = 0; i < (a->uniform ? 1 : a->channels); i++)
        a->shift[i] += a->scale[i] * (uniform ? v : tensor_get_f64(t, i));
    return true;
}

/* The axis of the weights that makes the output's axis 1; -1: not one of these operators. */
static int32_t weight_axis(const graph_node *n)
{
    const char *op = n->op->name;
    const tensor_data *w = n->n_inputs == 2 ? graph_constant(n->inputs[1]) : NULL;
    if (!w || (w->dt != DT_F32 && w->dt != DT_F64) || tensor_size(w) > MAX_WEIGHT_BYTES)
        return -1;
    if (strcmp(op, "nn.conv1d") == 0 || strcmp(op, "nn.conv2d") == 0 || strcmp(op, "nn.conv3d") == 0)
        return strcmp(graph_attr_string(n, "kernel_layout"), "OIHW") == 0 ? 0 : -1;
    if (strcmp(op, "nn.conv1d_transpose") == 0 || strcmp(op, "nn.conv2d_transpose") == 0 ||
        strcmp(op, "nn.conv3d_transpose") == 0)
        return graph_attr_int(n, "groups") == 1 ? 1 : -1;
    if (strcmp(op, "nn.matmul") == 0 && w->rank == 2 && n->outputs[0]->type.shape.rank == 2)
        return strcmp(graph_attr_string(n, "weight_layout"), "KN") != 0 ? -1 : graph_attr_int(n, "transpose_b") ? 0 : 1;
    return -1;
}

/* The convolution behind x, looked for through a bias; NULL: none that may be changed. */
static graph_node *find_anchor(rewriter *r, affine *a, graph_value *x)
{
    int32_t rank = x->type.shape.rank;
    if (rewrite_uses(x) != 1 || !x->def)
        return NULL;
    if (weight_axis(x->def) >= 0)
        return x->def;
    if (!rewrite_is_op(x, "add"))
        return NULL;
    for (uint32_t i = 0; i < 2; i++) {
        graph_value *y = x->def->inputs[i];
        if (y->def && rewrite_uses(y) == 1 && weight_axis(y->def) >= 0 && type_equal(&y->type, &x->type) &&
            absorb_bias(r, a, x->def->inputs[1 - i], rank))
            return y->def;
    }
    return NULL;
}

static graph_value *into_weights(rewriter *r, const graph_node *n, const affine *a, const graph_node *anchor)
{
    const tensor_data *w = graph_constant(anchor->inputs[1]);
    uint32_t axis = (uint32_t)weight_axis(anchor), rank = (uint32_t)n->outputs[0]->type.shape.rank;
    if (w->dims[axis] != a->channels)
        return NULL;
    graph_value *pair[2] = {anchor->inputs[1], channel_constant(r, a, a->scale, w->rank, axis, "bn_scale", n->loc)};
    graph_value *in[2] = {anchor->inputs[0], rewrite_emit(r, "multiply", 2, pair, 0, NULL, n->loc)};
    if (!in[1])
        return NULL;
    rewrite_take_name(in[1], anchor->inputs[1]);
    graph_value *sum[2] = {emit_like(r, anchor, in, NULL, anchor->loc),
                           channel_constant(r, a, a->shift, rank - 1, 0, "bn_shift", n->loc)};
    if (!sum[0])
        return NULL;
    rewrite_take_name(sum[0], anchor->outputs[0]);
    return rewrite_emit(r, "add", 2, sum, 0, NULL, n->loc);
}

graph_value *simplify_batch_norm(rewriter *r, graph_node *n)
{
    affine a;
    if (!read_affine(r, n, &a))
        return NULL;
    graph_value *x = n->inputs[0];
    uint32_t rank = (uint32_t)x->type.shape.rank;
    /* without folding the product with the weights would be computed in every run */
    graph_node *anchor = r->folds ? find_anchor(r, &a, x) : NULL;
    graph_value *v = anchor ? into_weights(r, n, &a, anchor) : NULL;
    if (v || (anchor && !read_affine(r, n, &a)))
        return v;
    graph_value *product[2] = {x, channel_constant(r, &a, a.scale, rank - 1, 0, "bn_scale", n->loc)};
    graph_value *sum[2] = {rewrite_emit(r, "multiply", 2, product, 0, NULL, n->loc), NULL};
    sum[1] = channel_constant(r, &a, a.shift, rank - 1, 0, "bn_shift", n->loc);
    return sum[0] ? rewrite_emit(r, "add", 2, sum, 0, NULL, n->loc) : NULL;
}

/* --- padding --- */

typedef struct padding {
    uint32_t spatial;
    int64_t begin[MAX_SPATIAL], end[MAX_SPATIAL];
    double value;
} padding;

static bool read_axes(const graph_node *pad, uint32_t rank, int64_t *axes, uint32_t *n_axes)
{
    *n_axes = rank;
    for (uint32_t i = 0; i < rank; i++)
        axes[i] = i;
    if (pad->n_inputs < 4 || !pad->inputs[3])
        return true;
    if (!graph_constant_ints(pad->inputs[3], TYPE_MAX_RANK, axes, n_axes))
        return false;
    for (uint32_t i = 0; i < *n_axes; i++)
        axes[i] += axes[i] < 0 ? (int64_t)rank : 0;
    return true;
}

/* nn.pad behind x with constant, non-negative pads on spatial axes only. */
static bool read_padding(const graph_value *x, padding *out)
{
    int64_t pads[2 * TYPE_MAX_RANK], axes[TYPE_MAX_RANK];
    uint32_t len = 0, n_axes = 0, rank = (uint32_t)x->type.shape.rank;
    if (!rewrite_is_op(x, "nn.pad") || strcmp(graph_attr_string(x->def, "mode"), "constant") != 0 || rank < 3 ||
        rank > 2 + MAX_SPATIAL)
        return false;
    const graph_node *pad = x->def;
    const graph_value *value = pad->n_inputs > 2 ? pad->inputs[2] : NULL;
    *out = (padding){.spatial = rank - 2};
    if (value && !rewrite_is_uniform(graph_constant(value), &out->value))
        return false;
    if (!graph_constant_ints(pad->inputs[1], 2 * TYPE_MAX_RANK, pads, &len) || !read_axes(pad, rank, axes, &n_axes) ||
        len != 2 * n_axes)
        return false;
    for (uint32_t i = 0; i < n_axes; i++) {
        int64_t b = pads[i], e = pads[n_axes + i];
        if (b < 0 || e < 0 || b > INT32_MAX || e > INT32_MAX || (axes[i] < 2 && (b || e)))
            return false;
        if (axes[i] >= 2) {
            out->begin[axes[i] - 2] = b;
            out->end[axes[i] - 2] = e;
        }
    }
    return true;
}

/* The node's own pads and those of p. */
static attr merged_pads(rewriter *r, const graph_node *n, const padding *p)
{
    int64_t sum[2 * MAX_SPATIAL];
    const int64_t *pads = NULL;
    uint32_t len = graph_attr_ints(n, "pads", &pads);
    for (uint32_t i = 0; i < p->spatial; i++) {
        sum[i] = p->begin[i] + (len ? pads[i] : 0);
        sum[p->spatial + i] = p->end[i] + (len ? pads[p->spatial + i] : 0);
    }
    return attr_ints(r->c, "pads", 2 * p->spatial, sum);
}

graph_value *simplify_conv_pad(rewriter *r, graph_node *n)
{
    padding p;
    if (!read_padding(n->inputs[0], &p) || p.value != 0)
        return NULL;
    graph_value *in[2] = {n->inputs[0]->def->inputs[0], n->inputs[1]};
    attr pads = merged_pads(r, n, &p);
    return emit_like(r, n, in, &pads, n->loc);
}

/* Each window must keep at least one element of the data. */
static bool fits_pool(const graph_node *n, const padding *p)
{
    const int64_t *size = NULL, *dilation = NULL, *pads = NULL;
    uint32_t sizes = graph_attr_ints(n, "pool_size", &size), dilations = graph_attr_ints(n, "dilations", &dilation);
    uint32_t own = graph_attr_ints(n, "pads", &pads);
    if (sizes != p->spatial || graph_attr_int(n, "ceil_mode") != 0)
        return false;
    for (uint32_t i = 0; i < sizes; i++) {
        int64_t window = (size[i] - 1) * (dilations ? dilation[i] : 1) + 1;
        if (p->begin[i] + (own ? pads[i] : 0) >= window || p->end[i] + (own ? pads[p->spatial + i] : 0) >= window)
            return false;
    }
    return true;
}

/* The zeros count as data: the divisor must include them. Pads of the pool's own that do not count cannot be told
 * apart. */
graph_value *simplify_avg_pool_pad(rewriter *r, graph_node *n)
{
    padding p;
    if (!read_padding(n->inputs[0], &p) || p.value != 0 || !fits_pool(n, &p))
        return NULL;
    if (nn_has_border(n) && !graph_attr_int(n, "count_include_pad"))
        return NULL;
    attr pads = merged_pads(r, n, &p);
    graph_value *v = emit_like(r, n, n->inputs[0]->def->inputs, &pads, n->loc);
    if (v)
        graph_set_attr(r->f, v->def, attr_int(r->c, "count_include_pad", 1));
    return v;
}

/* Only the value that never wins. */
graph_value *simplify_max_pool_pad(rewriter *r, graph_node *n)
{
    padding p;
    if (!read_padding(n->inputs[0], &p) || !fits_pool(n, &p))
        return NULL;
    const graph_node *pad = n->inputs[0]->def;
    dtype dt = n->outputs[0]->type.dt;
    bool least =
        dtype_is_float(dt) ? isinf(p.value) && p.value < 0 : pad->n_inputs > 2 && p.value == (double)dtype_min_int(dt);
    if (!least)
        return NULL;
    attr pads = merged_pads(r, n, &p);
    return emit_like(r, n, pad->inputs, &pads, n->loc);
}
