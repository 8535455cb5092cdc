/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definitions of Resize (ONNX Resize-19, Upsample) and GridSample-22. Resize is separable: one stage per axis
 * that changes, each a sum over taps of weight times sample. Coordinates are f32. When both scales and sizes are given,
 * sizes are the extents and scales the coordinate factors. */
#include "graph/op/nn.h"
#include "graph/op/shape.h"
#include "te/op/along.h"

#include <math.h>
#include <string.h>

/* --- expressions on f32
 * --------------------------------------------------------------------------------------------------- */

static tir_expr_ref f32(te_graph *g, double v)
{
    return tir_float(g->c, DT_F32, v);
}
static tir_expr_ref op2(te_graph *g, tir_op op, tir_expr_ref a, tir_expr_ref b)
{
    return tir_binary(g->c, op, a, b);
}
static tir_expr_ref plus(te_graph *g, tir_expr_ref a, tir_expr_ref b)
{
    return op2(g, TIR_ADD, a, b);
}
static tir_expr_ref minus(te_graph *g, tir_expr_ref a, tir_expr_ref b)
{
    return op2(g, TIR_SUB, a, b);
}
static tir_expr_ref times(te_graph *g, tir_expr_ref a, tir_expr_ref b)
{
    return op2(g, TIR_MUL, a, b);
}
static tir_expr_ref over(te_graph *g, tir_expr_ref a, tir_expr_ref b)
{
    return op2(g, TIR_DIV, a, b);
}
static tir_expr_ref fl(te_graph *g, tir_expr_ref a)
{
    return tir_call1(g->c, TIR_FLOOR, a);
}
static tir_expr_ref as_f32(te_graph *g, tir_expr_ref a)
{
    return tir_cast(g->c, DT_F32, a);
}
static tir_expr_ref as_i64(te_graph *g, tir_expr_ref a)
{
    return tir_cast(g->c, DT_I64, a);
}

/* Keys' cubic kernel with coefficient a at distance s >= 0. */
static tir_expr_ref cubic(te_graph *g, tir_expr_ref s, double a)
{
    tir_expr_ref near =
        plus(g, times(g, times(g, minus(g, times(g, f32(g, a + 2), s), f32(g, a + 3)), s), s), f32(g, 1));
    tir_expr_ref far =
        minus(g, times(g, plus(g, times(g, minus(g, times(g, f32(g, a), s), f32(g, 5 * a)), s), f32(g, 8 * a)), s),
              f32(g, 4 * a));
    tir_expr_ref outer = tir_select(g->c, op2(g, TIR_LT, s, f32(g, 2)), far, f32(g, 0));
    return tir_select(g->c, op2(g, TIR_LE, s, f32(g, 1)), near, outer);
}

/* --- one axis of a resize
 * --------------------------------------------------------------------------------------------------- */

typedef struct axis_ctx {
    const graph_node *n;
    te_tensor *const *in;
    const te_tensor *x;     /* so far resized */
    const te_tensor *coord; /* input of the original shape: extents */
    uint32_t axis;
    uint32_t entry; /* of axes, scales, sizes, roi */
    uint32_t n_entries;
    tir_expr_ref in_len, out_len; /* i64 */
    double scale;                 /* 0: known at run time only */
    double least;                 /* a bound from below: the extents' ratio; 0: unknown */
    const char *mode, *transform, *nearest;
    bool exclude_outside, antialias;
    bool by_scale;       /* scales were given, not sizes */
    tir_expr_ref common; /* one scale of all axes, by which sizes keep the picture's proportions; NULL: none */
    double a;
    uint32_t fraction_bits; /* weights are whole numbers times 2 to minus that power, sums of i32; 0: of f32 */
    int64_t taps;
    te_axis *tap; /* antialias: a reduction axis */
    const te_tensor *weights[4]; /* of each tap; NULL: computed where they are wanted */
    const te_tensor *places[4];  /* the same of positions */
    const te_tensor *weight_sum;
} axis_ctx;

static tir_expr_ref scale_of(te_graph *g, const axis_ctx *v)
{
    tir_expr_ref at[1] = {te_i64(g, v->entry)};
    if (v->common)
        return v->common;
    if (v->scale > 0)
        return f32(g, v->scale);
    if (v->n->n_inputs > 2 && v->in[2] && !tir_is_const(v->in[2]->shape[0], 0))
        return as_f32(g, te_read(g, v->in[2], at));
    return over(g, as_f32(g, v->out_len), as_f32(g, v->in_len));
}

static tir_expr_ref roi_at(te_graph *g, const axis_ctx *v, bool end)
{
    tir_expr_ref at[1] = {te_i64(g, v->entry + (end ? v->n_entries : 0))};
    return as_f32(g, te_read(g, v->in[1], at));
}

/* Position in the input of output o (ONNX Resize, coordinate_transformation_mode). */
static tir_expr_ref source_of(te_graph *g, const axis_ctx *v, tir_expr_ref o)
{
    tir_expr_ref scale = scale_of(g, v), x = as_f32(g, o), half = f32(g, 0.5), one = f32(g, 1);
    tir_expr_ref in_len = as_f32(g, v->in_len), out_len = as_f32(g, v->out_len);
    tir_expr_ref width = v->by_scale ? times(g, in_len, scale) : out_len; /* before it was rounded down */
    tir_expr_ref half_pixel = minus(g, over(g, plus(g, x, half), scale), half);
    if (strcmp(v->transform, "asymmetric") == 0)
        return over(g, x, scale);
    if (strcmp(v->transform, "align_corners") == 0) {
        tir_expr_ref stretched = times(g, x, over(g, minus(g, in_len, one), minus(g, width, one)));
        return tir_select(g->c, op2(g, TIR_EQ, width, one), f32(g, 0), stretched);
    }
    if (strcmp(v->transform, "pytorch_half_pixel") == 0)
        return tir_select(g->c, op2(g, TIR_GT, v->out_len, te_i64(g, 1)), half_pixel, f32(g, 0));
    if (strcmp(v->transform, "half_pixel_symmetric") == 0) {
        tir_expr_ref exact = times(g, in_len, scale), adjust = over(g, out_len, exact),
                     centre = over(g, in_len, f32(g, 2));
        tir_expr_ref offset = times(g, centre, minus(g, one, adjust));
        return plus(g, offset, half_pixel);
    }
    if (strcmp(v->transform, "tf_half_pixel_for_nn") == 0)
        return over(g, plus(g, x, half), scale);
    if (strcmp(v->transform, "tf_crop_and_resize") == 0) {
        tir_expr_ref a = roi_at(g, v, false), b = roi_at(g, v, true), last = minus(g, in_len, one);
        tir_expr_ref many =
            plus(g, times(g, a, last), times(g, x, over(g, times(g, minus(g, b, a), last), minus(g, out_len, one))));
        tir_expr_ref single = times(g, times(g, half, plus(g, a, b)), last);
        return tir_select(g->c, op2(g, TIR_GT, v->out_len, te_i64(g, 1)), many, single);
    }
    return half_pixel;
}

static tir_expr_ref nearest_of(te_graph *g, const axis_ctx *v, tir_expr_ref x)
{
    if (strcmp(v->nearest, "floor") == 0)
        return fl(g, x);
    if (strcmp(v->nearest, "ceil") == 0)
        return tir_call1(g->c, TIR_CEIL, x);
    if (strcmp(v->nearest, "round_prefer_ceil") == 0)
        return fl(g, plus(g, x, f32(g, 0.5)));
    return tir_call1(g->c, TIR_CEIL, minus(g, x, f32(g, 0.5))); /* round_prefer_floor */
}

/* Weight of the tap at input position p (f32) for source position x. */
static tir_expr_ref weight_of(te_graph *g, const axis_ctx *v, tir_expr_ref x, tir_expr_ref p)
{
    tir_expr_ref s = tir_call1(g->c, TIR_FABS, minus(g, x, p)), w;
    if (v->antialias) /* the kernel grows as the picture shrinks */
        s = times(g, s, tir_min(g->c, f32(g, 1), scale_of(g, v)));
    if (strcmp(v->mode, "cubic") == 0)
        w = cubic(g, s, v->a);
    else
        w = tir_max(g->c, f32(g, 0), minus(g, f32(g, 1), s));
    if (!v->exclude_outside)
        return w;
    tir_expr_ref inside = tir_and(g->c, op2(g, TIR_GE, p, f32(g, 0)), op2(g, TIR_LT, p, as_f32(g, v->in_len)));
    return tir_select(g->c, inside, w, f32(g, 0));
}

/* Input position of tap t (0-based) around x: floor(x) - (taps/2 - 1) + t. */
static tir_expr_ref tap_position(te_graph *g, const axis_ctx *v, tir_expr_ref x, tir_expr_ref t)
{
    return plus(g, fl(g, x), minus(g, t, f32(g, (double)(v->taps / 2 - 1))));
}

/* x so far resized, at the position of the axis that is nearest to p. A loop over the innermost axis is cut where that
 * changes; along other axes it changes once for each row. */
static tir_expr_ref sample(te_graph *g, const axis_ctx *v, tir_expr_ref const *idx, tir_expr_ref p)
{
    tir_expr_ref at[TYPE_MAX_RANK];
    memcpy(at, idx, v->x->rank * sizeof *at);
    bool cut = v->axis + 1 == v->x->rank && !v->places[0];
    at[v->axis] = cut ? te_nearest_on_axis(g, p, v->in_len) : te_clamp_index(g, p, v->in_len);
    return te_read(g, v->x, at);
}

/* One tap of output o, as functions of o alone (along.h). */
typedef struct tap_ctx {
    const axis_ctx *v;
    int64_t tap;
} tap_ctx;

static tir_expr_ref tap_index(te_graph *g, const void *ctx, tir_expr_ref o)
{
    const tap_ctx *t = ctx;
    return as_i64(g, tap_position(g, t->v, source_of(g, t->v, o), f32(g, (double)t->tap)));
}

/* The same inside of the input, whose extent i32 holds: the scale that a run gives may be any number. */
static tir_expr_ref tap_place(te_graph *g, const void *ctx, tir_expr_ref o)
{
    return te_clamp_index(g, tap_index(g, ctx, o), ((const tap_ctx *)ctx)->v->in_len);
}

static tir_expr_ref tap_weight(te_graph *g, const void *ctx, tir_expr_ref o)
{
    const tap_ctx *t = ctx;
    tir_expr_ref x = source_of(g, t->v, o);
    return weight_of(g, t->v, x, tap_position(g, t->v, x, f32(g, (double)t->tap)));
}

static tir_expr_ref weight_total(te_graph *g, const void *ctx, tir_expr_ref o)
{
    const axis_ctx *v = ((const tap_ctx *)ctx)->v;
    tir_expr_ref sum = NULL;
    for (int64_t t = 0; t < v->taps; t++) {
        tir_expr_ref w = tap_weight(g, &(tap_ctx){v, t}, o);
        sum = sum ? plus(g, sum, w) : w;
    }
    return sum;
}

static tir_expr_ref nearest_index(te_graph *g, const void *ctx, tir_expr_ref o)
{
    const axis_ctx *v = ((const tap_ctx *)ctx)->v;
    return as_i64(g, nearest_of(g, v, source_of(g, v, o)));
}

/* Tables of the weights, and where extents are open of the positions, of all taps along the innermost axis: other axes
 * have theirs once for each row. */
static void make_tables(te_graph *g, axis_ctx *v, const char *name)
{
    for (int64_t t = 0; t < v->taps; t++) {
        const tap_ctx tap = {v, t};
        v->weights[t] = te_weight_table(g, arena_printf(&g->c->mem, "%s_weight%d", name, (int)t), tap_weight, &tap,
                                        v->out_len);
        v->places[t] = te_position_table(g, arena_printf(&g->c->mem, "%s_place%d", name, (int)t), tap_place, &tap,
                                         v->out_len);
    }
}

/* How far the position moves from one output to the next; less than 0: it is not known. */
static double step_of(const axis_ctx *v)
{
    int64_t i, o;
    bool known = tir_is_int(v->in_len, &i) && tir_is_int(v->out_len, &o);
    if (known && strcmp(v->transform, "align_corners") == 0) {
        double width = v->by_scale ? (double)i * v->scale : (double)o;
        return width > 1 ? (double)(i - 1) / (width - 1) : 0;
    }
    return v->scale > 0 ? 1 / v->scale : v->least > 0 ? 1 / v->least : -1;
}

/* crop mode: positions outside [0, len-1] give the extrapolation value */
static tir_expr_ref extrapolated(te_graph *g, const axis_ctx *v, tir_expr_ref x, tir_expr_ref value)
{
    if (strcmp(v->transform, "tf_crop_and_resize") != 0)
        return value;
    tir_expr_ref last = as_f32(g, tir_sub(g->c, v->in_len, te_i64(g, 1)));
    tir_expr_ref inside = tir_and(g->c, op2(g, TIR_GE, x, f32(g, 0)), op2(g, TIR_LE, x, last));
    return tir_select(g->c, inside, value,
                      tir_const(g->c, value->type.dt, graph_attr_float(v->n, "extrapolation_value")));
}

static tir_expr_ref nearest_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const axis_ctx *v = ctx;
    tir_expr_ref o = idx[v->axis], p = te_position(g, nearest_index, &(tap_ctx){v, 0}, o, v->out_len, step_of(v));
    return extrapolated(g, v, source_of(g, v, o), sample(g, v, idx, p));
}

static tir_expr_ref interpolate_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const axis_ctx *v = ctx;
    tir_expr_ref o = idx[v->axis], sum = NULL;
    for (int64_t t = 0; t < v->taps; t++) {
        const tap_ctx tap = {v, t};
        tir_expr_ref p = v->places[t] ? as_i64(g, te_read(g, v->places[t], &o))
                                      : te_position(g, tap_index, &tap, o, v->out_len, step_of(v));
        tir_expr_ref w = v->weights[t] ? te_read(g, v->weights[t], &o) : te_weight(g, tap_weight, &tap, o, v->out_len);
        tir_expr_ref term = times(g, w, as_f32(g, sample(g, v, idx, p)));
        sum = sum ? plus(g, sum, term) : term;
    }
    if (v->exclude_outside)
        sum = over(g, sum, te_weight(g, weight_total, &(tap_ctx){v, 0}, o, v->out_len));
    return extrapolated(g, v, source_of(g, v, o), sum);
}

/* The same with weights that are whole numbers. */
static tir_expr_ref whole_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const axis_ctx *v = ctx;
    tir_expr_ref o = idx[v->axis], sum = NULL;
    for (int64_t t = 0; t < v->taps; t++) {
        const tap_ctx tap = {v, t};
        tir_expr_ref p = te_position(g, tap_index, &tap, o, v->out_len, step_of(v));
        tir_expr_ref w = te_whole_weight(g, tap_weight, &tap, o, v->out_len, v->fraction_bits);
        tir_expr_ref term = times(g, w, tir_cast(g->c, DT_I32, sample(g, v, idx, p)));
        sum = sum ? plus(g, sum, term) : term;
    }
    return sum;
}

static tir_expr_ref weight_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const axis_ctx *v = ctx;
    tir_expr_ref x = source_of(g, v, idx[0]);
    return weight_of(g, v, x, tap_position(g, v, x, as_f32(g, te_var(g, v->tap))));
}

static tir_expr_ref antialias_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const axis_ctx *v = ctx;
    tir_expr_ref x = source_of(g, v, idx[v->axis]), p = tap_position(g, v, x, as_f32(g, te_var(g, v->tap)));
    tir_expr_ref w = over(g, weight_of(g, v, x, p), te_read(g, v->weight_sum, &idx[v->axis]));
    return times(g, w, as_f32(g, sample(g, v, idx, as_i64(g, p))));
}

static te_tensor *resize_axis(te_graph *g, axis_ctx *v, te_tensor *x)
{
    tir_expr_ref dims[TYPE_MAX_RANK];
    memcpy(dims, x->shape, x->rank * sizeof *dims);
    dims[v->axis] = v->out_len;
    v->x = x;
    const char *name = arena_printf(&g->c->mem, "resize%u", v->axis);
    if (strcmp(v->mode, "nearest") == 0) {
        x->node->inline_hint |= x != v->in[0]; /* one copy from the place that all axes give, no row between */
        return te_compute(g, name, x->dt, x->rank, dims, nearest_body, v);
    }
    v->taps = strcmp(v->mode, "cubic") == 0 ? 4 : 2;
    if (v->fraction_bits > 0)
        return te_compute(g, name, DT_I32, x->rank, dims, whole_body, v);
    if (!v->antialias || v->scale >= 1 || v->least >= 1) {
        if (v->axis + 1 == x->rank)
            make_tables(g, v, name);
        return te_compute(g, name, DT_F32, x->rank, dims, interpolate_body, v);
    }
    v->taps = 2 * (int64_t)ceil((double)v->taps / 2.0 / (v->scale > 0 ? v->scale : v->least)) + 2;
    v->tap = te_reduce_axis(g, "tap", te_i64(g, v->taps));
    v->weight_sum = te_reduce(g, arena_printf(&g->c->mem, "%s_weights", name), DT_F32, 1, &v->out_len, 1, &v->tap,
                              TE_SUM, weight_body, v);
    v->tap = te_reduce_axis(g, "tap", te_i64(g, v->taps));
    return te_reduce(g, name, DT_F32, x->rank, dims, 1, &v->tap, TE_SUM, antialias_body, v);
}

static bool gives_entries(const graph_node *n, te_tensor *const *in, uint32_t i)
{
    return te_has_operand(n, i) && !tir_is_const(in[i]->shape[0], 0);
}

/* The least (not_larger) or greatest (not_smaller) of the scales that sizes asks for; NULL when each axis has its own.
 */
static bool common_scale(te_graph *g, const graph_node *n, te_tensor *const *in, tir_expr_ref *out)
{
    const char *policy = graph_attr_string(n, "keep_aspect_ratio_policy");
    const int64_t *axes = NULL;
    uint32_t n_axes = graph_attr_ints(n, "axes", &axes), entries = n_axes ? n_axes : in[0]->rank;
    bool least = strcmp(policy, "not_larger") == 0;
    *out = NULL;
    for (uint32_t k = 0; gives_entries(n, in, 3) && strcmp(policy, "stretch") != 0 && k < entries; k++) {
        int32_t a = (int32_t)k;
        if (n_axes && !infer_axis(g->c, n, axes[k], (int32_t)in[0]->rank, &a))
            return false;
        tir_expr_ref scale = over(g, as_f32(g, te_operand(g, n, in, 3, k)), as_f32(g, in[0]->shape[a]));
        *out = !*out ? scale : least ? tir_min(g->c, *out, scale) : tir_max(g->c, *out, scale);
    }
    return true;
}

/* Entry `entry` of sizes, or of scales, as the extent of an axis of in_len: floor(extent * scale), which f32 rounds. */
static tir_expr_ref said_extent(te_graph *g, const graph_node *n, te_tensor *const *in, tir_expr_ref common,
                                uint32_t entry, tir_expr_ref in_len)
{
    tir_expr_ref at[1] = {te_i64(g, entry)};
    if (common)
        return as_i64(g, fl(g, plus(g, times(g, common, as_f32(g, in_len)), f32(g, 0.5))));
    if (gives_entries(n, in, 3))
        return te_operand(g, n, in, 3, entry);
    const tensor_data *scales = graph_constant(n->inputs[2]);
    tir_expr_ref scale = scales ? f32(g, tensor_get_f64(scales, entry)) : as_f32(g, te_read(g, in[2], at));
    return as_i64(g, fl(g, times(g, as_f32(g, in_len), scale)));
}

/* Whether the type's extent is what the entry says; NULL: it is. */
static tir_expr_ref extent_fits(te_graph *g, const graph_node *n, te_tensor *const *in, const axis_ctx *v)
{
    bool by_size = gives_entries(n, in, 3), fixed = tir_is_int(v->in_len, &(int64_t){0}) &&
                                                   tir_is_int(v->out_len, &(int64_t){0});
    const graph_value *teller = by_size ? n->inputs[3] : gives_entries(n, in, 2) ? n->inputs[2] : NULL;
    if (!teller || (graph_constant(teller) && (fixed || (by_size && !v->common))))
        return NULL;
    if (!by_size && graph_constant(teller)) {
        double scale = tensor_get_f64(graph_constant(teller), v->entry);
        dim scaled = infer_scaled(g->c, te_in_type(n, 0)->shape.dims[v->axis], scale);
        if (scaled && dim_equal(scaled, te_out_type(n, 0)->shape.dims[v->axis]))
            return NULL;
    }
    tir_expr_ref said = said_extent(g, n, in, v->common, v->entry, v->in_len);
    tir_expr_ref same = op2(g, TIR_EQ, said, v->out_len), at[1] = {te_i64(g, v->entry)};
    if (by_size || graph_constant(teller))
        return same;
    return tir_and(g->c, op2(g, TIR_GT, as_f32(g, te_read(g, in[2], at)), f32(g, 0)), same);
}

typedef struct extents_ctx {
    const graph_node *n;
    te_tensor *const *in;
    tir_expr_ref common;
} extents_ctx;

static tir_expr_ref resize_extent(te_graph *g, void *ctx, uint32_t result, uint32_t axis)
{
    const extents_ctx *v = ctx;
    const int64_t *axes = NULL;
    uint32_t n_axes = graph_attr_ints(v->n, "axes", &axes), entry = axis;
    (void)result;
    for (uint32_t k = 0; k < n_axes; k++)
        if ((axes[k] < 0 ? axes[k] + v->in[0]->rank : axes[k]) == axis)
            entry = k;
    return said_extent(g, v->n, v->in, v->common, entry, v->in[0]->shape[axis]);
}

bool extents_resize(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    extents_ctx v = {.n = n, .in = in};
    return common_scale(g, n, in, &v.common) && te_own_extents(g, n, resize_extent, &v, out);
}

/* What is the same along all axes. */
static axis_ctx axes_of(const graph_node *n, te_tensor *const *in, uint32_t entries, tir_expr_ref common)
{
    const bool is_sum = strcmp(n->op->name, "qnn.resize") == 0;
    return (axis_ctx){.n = n,
                      .in = in,
                      .n_entries = entries,
                      .mode = graph_attr_string(n, "mode"),
                      .transform = graph_attr_string(n, "coordinate_transformation_mode"),
                      .nearest = graph_attr_string(n, "nearest_mode"),
                      .exclude_outside = graph_attr_int(n, "exclude_outside") != 0,
                      .antialias = graph_attr_int(n, "antialias") != 0,
                      .a = graph_attr_float(n, "cubic_coeff_a"),
                      .fraction_bits = is_sum ? (uint32_t)graph_attr_int(n, "fraction_bits") : 0,
                      .common = common};
}

/* The factor of an axis, as far as it is known. */
static void read_scale(axis_ctx *v, const tensor_data *scales)
{
    const graph_node *n = v->n;
    const bool given = n->n_inputs > 2 && v->in[2], sizes = n->n_inputs > 3 && v->in[3];
    int64_t i = 0, o = 0;
    v->by_scale = given && !tir_is_const(v->in[2]->shape[0], 0) && !sizes;
    v->least = tir_is_int(v->in_len, &i) && tir_is_int(v->out_len, &o) && i > 0 ? (double)o / (double)i : 0;
    if (scales && scales->count)
        v->scale = tensor_get_f64(scales, v->entry);
    else if (scales || !given)
        v->scale = v->least;
}

/* Whether the axis has as many elements as before, and each comes from its own place. */
static bool stays_as_it_is(const axis_ctx *v, const tensor_data *scales, bool in_scales)
{
    int64_t i, o;
    if (tir_is_int(v->in_len, &i) && tir_is_int(v->out_len, &o))
        return i == o && fabs(v->scale - 1) < 1e-12;
    if (!dim_equal(te_in_type(v->n, 0)->shape.dims[v->axis], te_out_type(v->n, 0)->shape.dims[v->axis]))
        return false;
    return scales && scales->count ? tensor_get_f64(scales, v->entry) == 1 : !v->by_scale && !in_scales;
}

bool compute_resize(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    const int64_t *axes = NULL;
    const type *t = te_out_type(n, 0);
    tir_expr_ref const *dims = te_shape(g, t);
    uint32_t n_axes = graph_attr_ints(n, "axes", &axes), entries = n_axes ? n_axes : in[0]->rank;
    const tensor_data *scales = graph_constant(graph_operand(n, 2));
    te_tensor *x = in[0];
    tir_expr_ref fits = NULL, common = NULL;
    bool in_scales = gives_entries(n, in, 2); /* factors of coordinates, beside sizes or alone */
    if (!common_scale(g, n, in, &common))
        return false;
    for (uint32_t k = 0; k < entries; k++) {
        int32_t a = (int32_t)k;
        if (n_axes && !infer_axis(g->c, n, axes[k], (int32_t)x->rank, &a))
            return false;
        axis_ctx v = axes_of(n, in, entries, common);
        v.axis = (uint32_t)a;
        v.entry = k;
        v.in_len = in[0]->shape[a];
        v.out_len = dims[a];
        read_scale(&v, scales);
        if (v.antialias && v.scale <= 0 && v.least <= 0)
            return diag_error(&g->c->diags, DIAG_UNSUPPORTED, n->loc,
                              "antialias needs static extents; fix them with --shape or --dim");
        fits = tir_and(g->c, fits, extent_fits(g, n, in, &v));
        double shrink = v.scale > 0 ? v.scale : v.least; /* the taps of a filter are an int64 */
        if (v.antialias && !(shrink >= 1e-9))
            return infer_error(g->c, n, "antialias at scale %g on axis %d", shrink, a);
        bool crop = strcmp(v.transform, "tf_crop_and_resize") == 0;
        if (stays_as_it_is(&v, scales, in_scales) && !crop && !common)
            continue;
        x = resize_axis(g, &v, x);
    }
    te_check_shape(g, n, fits, "scales or sizes");
    out[0] = te_cast_to(g, "resize_cast", x, t->dt);
    if (out[0] == in[0]) { /* nothing changes: a copy, of the data alone */
        graph_node copy = *n;
        copy.n_inputs = 1;
        return compute_copy(g, &copy, in, out);
    }
    return true;
}

/* --- grid sample
 * ---------------------------------------------------------------------------------------------------------------- */

#define GRID_TAPS   4  /* of cubic interpolation */
#define MOST_PLACES 16 /* that a point of the grid reads: cubic, or linear along three axes */

/* One of the places that a point of the grid reads along one axis. */
typedef struct grid_tap {
    const te_tensor *at, *weight; /* for each point: the index, -1 for nothing; NULL without weights */
} grid_tap;

typedef struct grid_ctx {
    const te_tensor *x, *grid;
    bool align, linear, is_cubic;
    const char *padding;
    uint32_t spatial;
    dtype index; /* of places on an axis */
    uint32_t axis;
    int tap; /* that a stage is for, the first one is first_tap */
    grid_tap taps[NN_MAX_SPATIAL][GRID_TAPS];
    uint32_t number; /* of the place that a stage is for: its taps are the digits, of the first axis before others */
    const te_tensor *places[MOST_PLACES]; /* where that is in the plane of a channel, -1: outside; NULL: by its taps */
} grid_ctx;

static int first_tap(const grid_ctx *v)
{
    return v->is_cubic ? -1 : 0;
}
static int last_tap(const grid_ctx *v)
{
    return v->is_cubic ? 2 : v->linear ? 1 : 0;
}

static bool pads_zeros(const grid_ctx *v)
{
    return strcmp(v->padding, "zeros") == 0;
}
static uint32_t n_taps(const grid_ctx *v)
{
    return (uint32_t)(last_tap(v) - first_tap(v)) + 1;
}

/* Mirrors p into [lo, hi]; hi > lo. */
static tir_expr_ref mirrored(te_graph *g, tir_expr_ref p, tir_expr_ref lo, tir_expr_ref hi)
{
    tir_expr_ref range = minus(g, hi, lo), d = tir_call1(g->c, TIR_FABS, minus(g, p, lo)),
                 twice = times(g, range, f32(g, 2));
    tir_expr_ref m = minus(g, d, times(g, fl(g, over(g, d, twice)), twice));
    tir_expr_ref folded = plus(g, lo, tir_min(g->c, m, minus(g, twice, m)));
    return tir_select(g->c, op2(g, TIR_GT, range, f32(g, 0)), folded, f32(g, 0));
}

/* Reflection by the padding mode of an integral position, as f32. */
static tir_expr_ref reflect(te_graph *g, const grid_ctx *v, tir_expr_ref p, tir_expr_ref len)
{
    if (strcmp(v->padding, "reflection") != 0)
        return p;
    tir_expr_ref lo = f32(g, v->align ? 0 : -0.5), hi = minus(g, len, f32(g, v->align ? 1 : 0.5));
    return mirrored(g, p, lo, hi);
}

/* Where a point of the grid lies on the stage's axis. The grid's last axis runs x, y, z: innermost axis first. */
static tir_expr_ref grid_source(te_graph *g, const grid_ctx *v, tir_expr_ref const *point)
{
    tir_expr_ref at[TYPE_MAX_RANK], one = f32(g, 1), half = f32(g, 0.5), src;
    memcpy(at, point, (v->spatial + 1) * sizeof *at);
    at[1 + v->spatial] = te_i64(g, v->spatial - 1 - v->axis);
    tir_expr_ref u = as_f32(g, te_read(g, v->grid, at)), len = as_f32(g, v->x->shape[2 + v->axis]);
    if (v->align)
        src = times(g, times(g, plus(g, u, one), half), minus(g, len, one));
    else
        src = times(g, minus(g, times(g, plus(g, u, one), len), one), half);
    if (strcmp(v->padding, "border") == 0)
        return tir_max(g->c, f32(g, 0), tir_min(g->c, src, minus(g, len, one)));
    return v->is_cubic ? src : reflect(g, v, src, len);
}

/* The stage's tap, an integral f32. */
static tir_expr_ref grid_position(te_graph *g, const grid_ctx *v, tir_expr_ref src)
{
    return v->linear || v->is_cubic ? plus(g, fl(g, src), f32(g, v->tap)) : tir_call1(g->c, TIR_RINT, src);
}

#define ROUNDER      12582912.0 /* 1.5 * 2^23: what is added to it is rounded, and stands in the low bits */
#define ROUNDER_BITS 0x4b400000
#define MOST_ROUNDED ((int64_t)1 << 21)

/* p as an index from -1, which vectors do; NaN is none. An index of 64 bits by the conversion of C. */
static tir_expr_ref rounded_index(te_graph *g, const grid_ctx *v, tir_expr_ref p)
{
    tir_expr_ref last = tir_sub(g->c, v->x->shape[2 + v->axis], te_i64(g, 1));
    if (v->index != DT_I32) /* the float next to the last index may be larger */
        return tir_min(g->c, as_i64(g, p), last);
    tir_expr_ref bits = tir_call1(g->c, TIR_TO_BITS, plus(g, p, f32(g, ROUNDER)));
    tir_expr_ref from_one = op2(g, TIR_SUB, bits, tir_int(g->c, DT_U32, ROUNDER_BITS - 1));
    return op2(g, TIR_SUB, tir_cast(g->c, DT_I32, from_one), tir_int(g->c, DT_I32, 1));
}

static tir_expr_ref grid_index_body(te_graph *g, void *ctx, tir_expr_ref const *point)
{
    const grid_ctx *v = ctx;
    tir_expr_ref len = as_f32(g, v->x->shape[2 + v->axis]), last = minus(g, len, f32(g, 1)), none = f32(g, -1);
    tir_expr_ref p = tir_call1(g->c, TIR_RINT, reflect(g, v, grid_position(g, v, grid_source(g, v, point)), len));
    tir_expr_ref from_zero = op2(g, TIR_GE, p, f32(g, 0)), to_end = op2(g, TIR_LE, p, last);
    if (pads_zeros(v))
        return rounded_index(g, v, tir_select(g->c, tir_and(g->c, from_zero, to_end), p, none));
    return rounded_index(g, v, tir_select(g->c, from_zero, tir_select(g->c, to_end, p, last), f32(g, 0)));
}

static tir_expr_ref grid_weight_body(te_graph *g, void *ctx, tir_expr_ref const *point)
{
    const grid_ctx *v = ctx;
    tir_expr_ref src = grid_source(g, v, point);
    tir_expr_ref s = tir_call1(g->c, TIR_FABS, minus(g, src, grid_position(g, v, src)));
    return v->is_cubic ? cubic(g, s, -0.75) : minus(g, f32(g, 1), s);
}

/* What all channels have in common is computed once for each point: a stage for each tap of each axis. */
static void make_taps(te_graph *g, grid_ctx *v)
{
    for (v->axis = 0; v->axis < v->spatial; v->axis++)
        for (v->tap = first_tap(v); v->tap <= last_tap(v); v->tap++) {
            grid_tap *t = &v->taps[v->axis][v->tap - first_tap(v)];
            const uint32_t rank = v->spatial + 1;
            const char *name = arena_printf(&g->c->mem, "at%u_%d", v->axis, v->tap - first_tap(v));
            t->at = te_compute(g, name, v->index, rank, v->grid->shape, grid_index_body, v);
            name = arena_printf(&g->c->mem, "weight%u_%d", v->axis, v->tap - first_tap(v));
            if (v->linear || v->is_cubic)
                t->weight = te_compute(g, name, DT_F32, rank, v->grid->shape, grid_weight_body, v);
        }
}

static tir_expr_ref grid_place_body(te_graph *g, void *ctx, tir_expr_ref const *point)
{
    const grid_ctx *v = ctx;
    tir_expr_ref flat = tir_int(g->c, DT_I32, 0), inside = NULL;
    uint32_t unit = 1;
    for (uint32_t i = 1; i < v->spatial; i++)
        unit *= n_taps(v);
    for (uint32_t i = 0; i < v->spatial; i++, unit /= n_taps(v)) {
        tir_expr_ref at = te_read(g, v->taps[i][v->number / unit % n_taps(v)].at, point);
        tir_expr_ref line = op2(g, TIR_MUL, flat, tir_cast(g->c, DT_I32, v->x->shape[2 + i]));
        flat = op2(g, TIR_ADD, line, at);
        inside = pads_zeros(v) ? tir_and(g->c, inside, op2(g, TIR_GE, at, tir_int(g->c, DT_I32, 0))) : NULL;
    }
    return inside ? tir_select(g->c, inside, flat, tir_int(g->c, DT_I32, -1)) : flat;
}

/* How many places channels have in common, and their numbers are of 32 bits; 0: none of them is worth a stage. */
static uint32_t count_places(const grid_ctx *v)
{
    int64_t plane = 1, n = 1, extent = 0;
    if (v->index != DT_I32 || tir_is_const(v->x->shape[1], 1))
        return 0;
    for (uint32_t i = 0; i < v->spatial; i++) {
        if (!tir_is_int(v->x->shape[2 + i], &extent) || !i64_mul(plane, extent, &plane) || plane > INT32_MAX)
            return 0;
        n *= n_taps(v);
        if (n > MOST_PLACES)
            return 0;
    }
    return v->spatial > 1 ? (uint32_t)n : 0;
}

static void make_places(te_graph *g, grid_ctx *v)
{
    const uint32_t n = count_places(v);
    for (v->number = 0; v->number < n; v->number++) {
        const char *name = arena_printf(&g->c->mem, "place%u", v->number);
        v->places[v->number] = te_compute(g, name, DT_I32, v->spatial + 1, v->grid->shape, grid_place_body, v);
    }
}

/* Indices of the plane by the number of a place in it. Where they are put together again, nothing is divided. */
static void unpack_place(te_graph *g, const grid_ctx *v, tir_expr_ref place, tir_expr_ref *at)
{
    for (uint32_t i = v->spatial; i-- > 1; place = op2(g, TIR_FLOORDIV, place, v->x->shape[2 + i]))
        at[i] = op2(g, TIR_FLOORMOD, place, v->x->shape[2 + i]);
    at[0] = place;
}

/* 0 where the i32 is negative. A C compiler would make a jump of a choice, and processors cannot foresee which points
 * of a grid lie outside. */
static tir_expr_ref zero_if_negative(te_graph *g, tir_expr_ref value, tir_expr_ref number)
{
    tir_expr_ref sign = op2(g, TIR_SHR, number, tir_int(g->c, DT_I32, 31));
    tir_expr_ref kept = tir_call1(g->c, TIR_BITNOT, tir_cast(g->c, DT_U32, sign));
    tir_expr_ref bits = tir_call1(g->c, TIR_TO_BITS, value);
    return tir_call1(g->c, TIR_FROM_BITS, op2(g, TIR_BITAND, bits, kept));
}

/* x at the place of that number, which `taps` make. */
static tir_expr_ref grid_pixel(te_graph *g, const grid_ctx *v, tir_expr_ref const *idx, tir_expr_ref const *point,
                               tir_expr_ref const *taps, uint32_t number)
{
    tir_expr_ref at[TYPE_MAX_RANK], inside = NULL, zero = tir_int(g->c, v->index, 0);
    memcpy(at, idx, 2 * sizeof *at);
    if (v->places[0]) {
        tir_expr_ref place = te_read(g, v->places[number], point);
        if (pads_zeros(v)) {
            inside = place;
            place = op2(g, TIR_MAX, place, zero);
        }
        unpack_place(g, v, as_i64(g, place), at + 2);
    } else {
        for (uint32_t i = 0; i < v->spatial; i++) {
            at[2 + i] = as_i64(g, taps[i]);
            inside = tir_and(g->c, inside, op2(g, TIR_GE, taps[i], zero));
        }
    }
    tir_expr_ref value = as_f32(g, te_read(g, v->x, at));
    if (!pads_zeros(v))
        return value;
    return v->places[0] ? zero_if_negative(g, value, inside) : tir_select(g->c, inside, value, f32(g, 0));
}

/* `number`: of the taps of axes before axis i. */
static tir_expr_ref grid_sum(te_graph *g, const grid_ctx *v, tir_expr_ref const *idx, tir_expr_ref const *point,
                             tir_expr_ref *taps, uint32_t i, uint32_t number)
{
    tir_expr_ref sum = NULL;
    if (i == v->spatial)
        return grid_pixel(g, v, idx, point, taps, number);
    for (uint32_t t = 0; t < n_taps(v); t++) {
        const grid_tap *tap = &v->taps[i][t];
        taps[i] = te_read(g, tap->at, point);
        tir_expr_ref term = grid_sum(g, v, idx, point, taps, i + 1, number * n_taps(v) + t);
        if (tap->weight)
            term = times(g, te_read(g, tap->weight, point), term);
        sum = sum ? plus(g, sum, term) : term;
    }
    return sum;
}

static tir_expr_ref grid_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const grid_ctx *v = ctx;
    tir_expr_ref point[TYPE_MAX_RANK], taps[TYPE_MAX_RANK] = {NULL};
    point[0] = idx[0];
    memcpy(point + 1, idx + 2, v->spatial * sizeof *point);
    return tir_cast(g->c, v->x->dt, grid_sum(g, v, idx, point, taps, 0, 0));
}

/* 32 bits where that is known to do. */
static dtype grid_index(const grid_ctx *v)
{
    int64_t extent;
    for (uint32_t i = 0; i < v->spatial; i++)
        if (!tir_is_int(v->x->shape[2 + i], &extent) || extent > MOST_ROUNDED)
            return DT_I64;
    return DT_I32;
}

bool compute_grid_sample(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    const char *mode = graph_attr_string(n, "mode");
    const type *t = te_out_type(n, 0);
    grid_ctx v = {
        .x = in[0], .grid = in[1], .align = graph_attr_int(n, "align_corners") != 0, .spatial = in[0]->rank - 2};
    v.padding = graph_attr_string(n, "padding_mode");
    v.linear = strcmp(mode, "linear") == 0 || strcmp(mode, "bilinear") == 0;
    v.is_cubic = strcmp(mode, "cubic") == 0 || strcmp(mode, "bicubic") == 0;
    if (v.is_cubic && v.spatial > 2)
        return diag_error(&g->c->diags, DIAG_UNSUPPORTED, n->loc, "cubic grid_sample over %u spatial axes", v.spatial);
    v.index = grid_index(&v);
    make_taps(g, &v);
    make_places(g, &v);
    out[0] = te_compute(g, "grid_sample", t->dt, in[0]->rank, te_shape(g, t), grid_body, &v);
    return true;
}
