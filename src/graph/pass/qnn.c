/* SPDX-License-Identifier: Apache-2.0 */
/* use-integers: arithmetic between dequantised values becomes arithmetic on quantised numbers; there is no other place
 * where that happens. Rooted at each quantize: a convolution or product with bias and clips, a sum, an average pool of
 * dequantised operands become rows of qnn.*; what moves elements or chooses among them does so with the numbers as they
 * are. Convolutions and products whose result nobody quantises are summed in integers and dequantised. Weights stay at
 * their stored type. What stays in float is noted in the module, with the reason (qnn_stay.c):
 * docs/explanation/quantize.md has the table. */
#include "graph/pass/qnn.h"

#include "base/ptr_map.h"
#include "graph/op/nn.h"
#include "graph/pass.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BIAS_SCALE_OFF 0.01 /* a bias has the product's scale, to 1 %, as onnxruntime asks; where
                               * shifts round, it is that scale */

typedef struct converter {
    rewriter r;
    bool half_up;    /* the model rounds so */
    bool always;     /* also where rounding to nearest even asks for exact integers that are slower here */
    const char *method; /* attribute of what rounds to the nearest even */
    uint32_t parts;     /* of which a sum in i64 may be made */
    qnn_reasons stay;
    ptr_map readers; /* value with one use -> position of the node that reads it, in f->nodes as it was */
    ptr_map u8;      /* qnn_find_u8 */
} converter;

/* What a quantize makes of a value: clips before it, on the way to the operator that made the value. */
typedef struct tail {
    const graph_node *q;
    qnn_params y;
    bool half_up;
    int64_t lo, hi; /* clips, in quantised numbers */
    bool piled;     /* one of them is from above */
    graph_value *x; /* what is quantised, behind the clips */
} tail;

/* A convolution or product with dequantised operands. */
typedef struct anchor {
    graph_node *n;
    bool is_conv;
    int32_t line; /* the weights' axis of the output channels */
    qnn_params x, w;
    int64_t channels;
    int64_t most;    /* a sum of its products is at most this */
    uint32_t behind; /* axes behind that of the channels */
} anchor;

static graph_value *stays(converter *v, const graph_node *n, const char *why)
{
    qnn_set_reason(v->r.c, &v->stay, n, why);
    return NULL;
}

/* --- small pieces --- */

static graph_value *emit(converter *v, const char *op, uint32_t n_in, graph_value *const *in, uint32_t n_attrs,
                         const attr *attrs, src_loc loc)
{
    if (n_in > 0 && v->r.failed)
        return NULL;
    while (n_in > 0 && !in[n_in - 1])
        n_in--;
    return rewrite_emit(&v->r, op, n_in, in, n_attrs, attrs, loc);
}

static graph_value *scalar_f32(converter *v, float x, const char *name, src_loc loc)
{
    return rewrite_constant(&v->r, tensor_scalar_f64(v->r.c, DT_F32, (double)x), name, loc);
}

static graph_value *scalar_int(converter *v, dtype dt, int64_t x, const char *name, src_loc loc)
{
    return rewrite_constant(&v->r, tensor_scalar_i64(v->r.c, dt, x), name, loc);
}

/* The zero point as an operand; NULL for 0. */
static graph_value *zero_of(converter *v, const qnn_params *p, src_loc loc)
{
    bool any = false;
    for (int64_t i = 0; p->zero && i < p->zero->count; i++)
        any |= qnn_zero(p, i) != 0;
    if (!any)
        return NULL;
    const tensor_data *t = p->zero->count == 1 ? tensor_scalar_i64(v->r.c, p->dt, qnn_zero(p, 0)) : p->zero;
    return rewrite_constant(&v->r, t, "zero_point", loc);
}

static attr rounding_of(converter *v, const tail *t)
{
    return attr_string(v->r.c, "rounding", t->half_up ? "half_up" : "nearest_even");
}

/* The part of the numbers that result y of a split has. */
static graph_value *part_of(converter *v, const graph_node *n, const graph_value *y, graph_value *numbers)
{
    int64_t from = 0, extent = 0, axis = graph_attr_int(n, "axis");
    axis = axis < 0 ? axis + n->inputs[0]->type.shape.rank : axis;
    for (uint32_t i = 0; i <= y->index; i++) {
        from += extent;
        (void)dim_is_const(n->outputs[i]->type.shape.dims[axis], &extent);
    }
    const int64_t to = from + extent;
    return rewrite_slice(&v->r, numbers, 1, &from, &to, &axis, NULL, n->loc);
}

/* The quantised numbers of a value that qnn_is_quantised: operators on the way are made again on them. */
static graph_value *numbers_of(converter *v, graph_value *x)
{
    graph_value *in[QNN_MAX_PARTS + 8];
    qnn_params p;
    if (qnn_dequantized(x, false, &p))
        return x->def->inputs[0];
    graph_node *n = x->def;
    uint32_t moved = qnn_moved_operands(n);
    if (n->n_inputs > QNN_MAX_PARTS + 8 || !qnn_source(x, &p))
        return NULL;
    memcpy(in, n->inputs, n->n_inputs * sizeof *in);
    for (uint32_t i = 0; i < moved; i++)
        in[i] = numbers_of(v, n->inputs[i]);
    const shape *s = &x->type.shape;
    if (strcmp(n->op->name, "split") == 0)
        return part_of(v, n, x, in[0]);
    if (strcmp(n->op->name, "reshape") == 0 && (n->n_inputs < 2 || !in[1])) /* to what only its type says */
        return in[0] ? rewrite_reshape(&v->r, in[0], (uint32_t)s->rank, s->dims, n->loc) : NULL;
    double fill;
    if (qnn_pads_by_constant(n, &fill)) {
        in[2] = scalar_int(v, p.dt, qnn_quantized(&p, fill, false), "fill", n->loc);
        return emit(v, n->op->name, n->n_inputs > 3 ? n->n_inputs : 3, in, n->n_attrs, n->attrs, n->loc);
    }
    return emit(v, n->op->name, n->n_inputs, in, n->n_attrs, n->attrs, n->loc);
}

/* The clips of the tail, where the type's range is not enough. */
static graph_value *clipped(converter *v, const tail *t, graph_value *y)
{
    dtype dt = t->y.dt;
    bool low = t->lo > dtype_min_int(dt), high = t->hi < dtype_max_int(dt);
    if (y && t->piled && y->def && graph_attr(y->def, "piled"))
        graph_set_attr(v->r.f, y->def, attr_int(v->r.c, "piled", 1));
    if (!y || (!low && !high))
        return y;
    if (!high && t->lo == 0)
        return emit(v, "nn.relu", 1, &y, 0, NULL, t->q->loc);
    graph_value *in[3] = {y, low ? scalar_int(v, dt, t->lo, "low", t->q->loc) : NULL,
                          high ? scalar_int(v, dt, t->hi, "high", t->q->loc) : NULL};
    return emit(v, "clip", 3, in, 0, NULL, t->q->loc);
}

/* --- convolutions and products --- */

static bool is_transposed(const char *op)
{
    return strncmp(op, "nn.conv", 7) == 0 && strstr(op, "_transpose") != NULL;
}

static bool is_anchor_op(const graph_value *y)
{
    const char *op = y->def ? y->def->op->name : "";
    return strcmp(op, "nn.matmul") == 0 || is_transposed(op) ||
           (strncmp(op, "nn.conv", 7) == 0 && strlen(op) == strlen("nn.conv2d"));
}

/* The weights' axis of the output channels; *plain: they lie as the operator's definition has them. In groups a
 * transposed convolution has an axis for the channels of one group alone. */
static int32_t channel_axis(const graph_node *n, const anchor *a, int32_t rank, bool *plain)
{
    *plain = true;
    if (is_transposed(n->op->name))
        return 1;
    if (a->is_conv) {
        *plain = strcmp(graph_attr_string(n, "kernel_layout"), "OIHW") == 0;
        return 0;
    }
    *plain = strcmp(graph_attr_string(n, "weight_layout"), "KN") == 0 && graph_attr_dtype(n, "out_dtype") == DT_NONE;
    return graph_attr_int(n, "transpose_b") ? rank - 2 : rank - 1;
}

/* The weights' extents, which may be open where they have limits: not of convolutions, or with scales for channels. */
static bool get_extents(shape w, const anchor *a, int64_t *out)
{
    return shape_get(w, out) || (!a->is_conv && qnn_is_single(&a->w) && qnn_get_bounds(w, out));
}

/* The products of a sum: how many there are, and how large the sum is at most. NULL, or why it stays. */
static const char *bound_sums(compiler *c, const int64_t *dims, int32_t rank, anchor *out)
{
    int64_t products = 1;
    for (int32_t i = 0; i < rank; i++) {
        const bool summed = i != out->line && (out->is_conv || i == 2 * rank - 3 - out->line);
        if (summed && !i64_mul(products, dims[i], &products))
            return "its sums have too many products";
    }
    if (products > INT32_MAX / (255 * 255))
        return "its sums of products do not fit into 32 bits";
    out->most = products * qnn_reach(&out->x) * qnn_reach(&out->w);
    if (qnn_is_wide(&out->x)) {
        const tensor_data *w = graph_constant(out->n->inputs[1]->def->inputs[0]);
        out->most = qnn_most_sum(c, &out->x, w, &out->w, out->line, products);
    }
    return NULL;
}

/* What quantizes data and weights. NULL, or why it stays. */
static const char *read_scales(const graph_node *n, anchor *out)
{
    if (!qnn_is_quantised(n->inputs[0], &out->x) || !qnn_is_single(&out->x))
        return "its data is not quantized to 8 or 16 bits with one scale";
    if (!qnn_dequantized(n->inputs[1], false, &out->w) &&
        !(qnn_is_quantised(n->inputs[1], &out->w) && qnn_is_single(&out->w)))
        return "its weights are not quantized to 8 bits with scales above 0";
    return qnn_is_wide(&out->w) ? "its weights are of 16 bits" : NULL;
}

/* NULL, or why it stays. */
static const char *read_anchor(compiler *c, graph_value *y, anchor *out)
{
    graph_node *n = y->def;
    const char *op = n ? n->op->name : "";
    *out = (anchor){.n = n, .is_conv = strncmp(op, "nn.conv", 7) == 0};
    if (!is_anchor_op(y))
        return "it has no integer form";
    const char *why = read_scales(n, out);
    if (why)
        return why;
    const type *w = &n->inputs[1]->type, *t = &n->outputs[0]->type;
    int32_t rank = w->shape.rank, line;
    int64_t dims[TYPE_MAX_RANK];
    if (rank < 2 || !get_extents(w->shape, out, dims) || (out->is_conv && t->shape.rank != rank))
        return "its weights have no static shape";
    bool plain;
    line = channel_axis(n, out, rank, &plain);
    if (!plain)
        return "its weights are packed";
    int64_t groups = is_transposed(op) ? graph_attr_int(n, "groups") : 1;
    if (!qnn_is_single(&out->w) && (out->w.axis != line || groups != 1 || (!out->is_conv && rank != 2)))
        return "its weights have a scale for each entry of another axis than the output's channels";
    out->line = line;
    out->channels = dim_is_const(w->shape.dims[line], &dims[line]) ? dims[line] * groups : -1; /* no bias has it */
    out->behind = out->is_conv ? (uint32_t)rank - 2 : 0;
    return bound_sums(c, dims, rank, out);
}

/* f32(sx * sw[c]), one or one for each channel. */
static const tensor_data *product_scale(converter *v, const anchor *a)
{
    compiler *c = v->r.c;
    int64_t n = a->w.scale->count;
    if (n == 1)
        return tensor_scalar_f64(c, DT_F32, (double)(qnn_scale(&a->x, 0) * qnn_scale(&a->w, 0)));
    float *k = arena_array(&c->mem, float, (size_t)n);
    for (int64_t i = 0; i < n; i++)
        k[i] = qnn_scale(&a->x, 0) * qnn_scale(&a->w, i);
    return tensor_dense(c, DT_F32, 1, &n, k);
}

/* What is added to a sum before the shift that rounds half up. */
static int64_t half_of(const anchor *a, const tail *t)
{
    int64_t most = 0;
    for (int64_t i = 0; t && t->half_up && i < a->w.scale->count; i++) {
        int n = ilogb((double)qnn_scale(&t->y, 0)) - ilogb((double)qnn_scale(&a->x, 0)) -
                ilogb((double)qnn_scale(&a->w, i));
        int64_t half = n > 0 ? (int64_t)1 << (n < 30 ? n - 1 : 29) : 0;
        most = half > most ? half : most;
    }
    return most;
}

/* The bias in the product's scale, as i32 with an axis for each of those behind the channels; NULL, and why. t: what
 * follows the sums; NULL: nobody rounds them. */
static const tensor_data *integer_bias(converter *v, const anchor *a, const qnn_bias *b, const tail *t,
                                       const char **why)
{
    compiler *c = v->r.c;
    const double off = v->half_up ? 0 : BIAS_SCALE_OFF;
    const double half = (double)half_of(a, t);
    const tensor_data *scale = product_scale(v, a);
    int64_t count = scale->count > b->numbers->count ? scale->count : b->numbers->count;
    int64_t dims[TYPE_MAX_RANK] = {count};
    int32_t *out = arena_array(&c->mem, int32_t, (size_t)count);
    for (int64_t i = 0; i < count; i++) {
        double s = tensor_get_f64(scale, scale->count == 1 ? 0 : i);
        double x = tensor_get_f64(b->numbers, b->numbers->count == 1 ? 0 : i);
        if (b->is_integer && fabs((double)qnn_scale(&b->params, i) - s) > off * s) {
            *why = "its bias has another scale than the product";
            return NULL;
        }
        double q = b->is_integer ? x : rint((double)((float)x / (float)s));
        if (!(fabs(q) <= 2147483520.0)) { /* the largest f32 below 2^31 */
            *why = "its bias does not fit into 32 bits";
            return NULL;
        }
        if (fabs(q) + (double)a->most + half > INT32_MAX) {
            *why = "its bias and its sums of products together do not fit into 32 bits";
            return NULL;
        }
        out[i] = (int32_t)q;
    }
    for (uint32_t i = 1; i <= a->behind; i++)
        dims[i] = 1;
    return tensor_dense(c, DT_I32, count == 1 ? 0 : a->behind + 1, dims, out);
}

/* The sums, with the bias (NULL: none), in dt. */
static graph_value *sums(converter *v, const anchor *a, dtype dt, const tensor_data *bias)
{
    const graph_node *n = a->n;
    graph_value *in[4] = {numbers_of(v, n->inputs[0]), NULL, zero_of(v, &a->x, n->loc), zero_of(v, &a->w, n->loc)};
    in[1] = numbers_of(v, n->inputs[1]);
    if (!in[0] || !in[1])
        return NULL;
    const char *op = arena_printf(&v->r.c->mem, "qnn.%s", n->op->name + 3);
    attr *attrs = arena_array(&v->r.c->mem, attr, n->n_attrs + 1u);
    memcpy(attrs, n->attrs, n->n_attrs * sizeof *attrs);
    attrs[n->n_attrs] = attr_dtype(v->r.c, "out_dtype", dt);
    graph_value *acc = dt == DT_I64 ? qnn_sum_in_parts(&v->r, n, op, in, &a->x, &a->w, a->line, v->parts) : NULL;
    acc = acc ? acc : emit(v, op, 4, in, n->n_attrs + (dt != DT_I32), attrs, n->loc);
    if (!acc || !bias)
        return acc;
    graph_value *pair[2] = {acc, rewrite_constant(&v->r, bias, "bias", n->loc)};
    return emit(v, "add", 2, pair, 0, NULL, n->loc);
}

static bool is_exact(const converter *v)
{
    return strcmp(v->method, "float") == 0 || strcmp(v->method, "integer") == 0;
}

/* By multipliers and shifts, as TensorFlow Lite. */
static graph_value *rescaled(converter *v, const anchor *a, const tail *t, const tensor_data *bias, graph_value *acc)
{
    int64_t most = 0;
    for (int64_t i = 0; bias && i < bias->count; i++) {
        int64_t b = tensor_get_i64(bias, i);
        most = b > most ? b : -b > most ? -b : most;
    }
    const qnn_fixed x = {.first = qnn_scale(&a->x, 0),
                         .second = a->w.scale,
                         .last = qnn_scale(&t->y, 0),
                         .twice = strcmp(v->method, "tflite") == 0,
                         .axis = a->is_conv ? 1 : -1,
                         .most = a->most + most,
                         .out = t->y.dt};
    return qnn_rescale(&v->r, &x, acc, zero_of(v, &t->y, t->q->loc), t->q->loc);
}

/* Rounded and saturated. To the nearest even with a scale for each channel, the quotient of the scales is the operand:
 * it is divided once. */
static graph_value *requantized(converter *v, const anchor *a, const tail *t, const tensor_data *bias)
{
    compiler *c = v->r.c;
    const tensor_data *scale = product_scale(v, a);
    float ys = qnn_scale(&t->y, 0);
    graph_value *acc = sums(v, a, DT_I32, bias);
    if (acc && !t->half_up && !is_exact(v))
        return rescaled(v, a, t, bias, acc);
    if (scale->count > 1 && !t->half_up) {
        float *k = arena_array(&c->mem, float, (size_t)scale->count);
        for (int64_t i = 0; i < scale->count; i++)
            k[i] = (float)tensor_get_f64(scale, i) / ys;
        scale = tensor_dense(c, DT_F32, 1, scale->dims, k);
        ys = 1.0f;
    }
    src_loc loc = t->q->loc;
    graph_value *in[4] = {acc, rewrite_constant(&v->r, scale, "scale", loc), scalar_f32(v, ys, "y_scale", loc),
                          zero_of(v, &t->y, loc)};
    attr attrs[3] = {attr_int(c, "axis", a->is_conv ? 1 : -1), attr_dtype(c, "out_dtype", t->y.dt), rounding_of(v, t)};
    return acc ? emit(v, "qnn.requantize", 4, in, 3, attrs, loc) : NULL;
}

static bool powers_fit(const tail *t, const qnn_params *a, const qnn_params *b)
{
    return !t->half_up || (qnn_powers_of_two(a) && qnn_powers_of_two(b) && qnn_powers_of_two(&t->y));
}

#define NO_POWERS "its scales are not powers of two, which rounding half up needs"
#define READ_TWICE "its result is read as a float, too"

/* The bias in i32 or i64, with an axis for each of those behind the channels; *most: the farthest from 0. NULL, and
 * why. */
static const tensor_data *wide_bias(converter *v, const anchor *a, const qnn_bias *b, int64_t *most, const char **why)
{
    compiler *c = v->r.c;
    int64_t count = a->w.scale->count > b->numbers->count ? a->w.scale->count : b->numbers->count;
    int64_t dims[TYPE_MAX_RANK] = {count}, *out = arena_array(&c->mem, int64_t, (size_t)count);
    for (int64_t i = 0; i < count; i++) {
        double s = (double)qnn_scale(&a->x, 0) * (double)qnn_scale(&a->w, i);
        double x = tensor_get_f64(b->numbers, b->numbers->count == 1 ? 0 : i), q = b->is_integer ? x : rint(x / s);
        if (b->is_integer && fabs((double)qnn_scale(&b->params, i) - s) > BIAS_SCALE_OFF * s)
            *why = "its bias has another scale than the product";
        else if (!(fabs(q) < 0x1p40))
            *why = "its bias does not fit into 40 bits";
        if (*why)
            return NULL;
        out[i] = (int64_t)q;
        *most = llabs(out[i]) > *most ? llabs(out[i]) : *most;
    }
    for (uint32_t i = 1; i <= a->behind; i++)
        dims[i] = 1;
    return tensor_dense(c, DT_I64, count == 1 ? 0 : a->behind + 1, dims, out);
}

/* Data or result of 16 bits: sums in i64 where i32 may not hold them. */
static graph_value *convert_wide(converter *v, const tail *t, const anchor *a, const qnn_bias *b)
{
    const char *why = NULL;
    int64_t most = 0;
    const tensor_data *bias = b ? wide_bias(v, a, b, &most, &why) : NULL;
    if (t->half_up)
        why = "numbers of 16 bits have no rounding half up";
    if (!why && a->most + most > (int64_t)1 << 46)
        why = "its sums of products have more than 46 bits";
    if (why)
        return stays(v, a->n, why);
    const dtype dt = a->most + most > INT32_MAX ? DT_I64 : DT_I32;
    if (bias && dt == DT_I32) {
        int32_t *narrow = arena_array(&v->r.c->mem, int32_t, (size_t)bias->count);
        for (int64_t i = 0; i < bias->count; i++)
            narrow[i] = (int32_t)tensor_get_i64(bias, i);
        bias = tensor_dense(v->r.c, DT_I32, bias->rank, bias->dims, narrow);
    }
    graph_value *acc = sums(v, a, dt, bias);
    return acc ? qnn_requantize_wide(&v->r, acc, &a->x, &a->w, &t->y, a->is_conv ? 1 : -1,
                                     zero_of(v, &t->y, t->q->loc), t->q->loc)
               : NULL;
}

/* Convolution or product y, with the bias (NULL: none). */
static graph_value *convert_anchor(converter *v, const tail *t, graph_value *y, const graph_value *bias)
{
    anchor a;
    qnn_bias b;
    const tensor_data *numbers = NULL;
    const char *why = read_anchor(v->r.c, y, &a);
    if (why)
        return stays(v, y->def, why);
    if (rewrite_uses(y) != 1)
        return stays(v, y->def, READ_TWICE);
    if (!powers_fit(t, &a.x, &a.w))
        return stays(v, y->def, NO_POWERS);
    const bool wide = qnn_is_wide(&a.x) || qnn_is_wide(&t->y);
    if (!wide && a.most + half_of(&a, t) > INT32_MAX)
        return stays(v, y->def, "its sums of products do not fit into 32 bits, with the half that rounds");
    if (bias && !qnn_read_bias(bias, a.channels, a.behind, &b))
        return stays(v, y->def, "its bias is not a constant of one number for each channel");
    if (wide)
        return convert_wide(v, t, &a, bias ? &b : NULL);
    if (bias && !(numbers = integer_bias(v, &a, &b, t, &why)))
        return stays(v, y->def, why);
    return requantized(v, &a, t, numbers);
}

/* --- other arithmetic --- */

/* As onnxruntime rounds n; half up there is one way. */
static uint32_t form_of(converter *v, const tail *t, const graph_node *n, uint32_t n_data, attr *out)
{
    const bool clips = t->lo > dtype_min_int(t->y.dt) || t->hi < dtype_max_int(t->y.dt);
    return t->half_up ? 0 : qnn_form(v->r.c, &v->u8, n, n_data, t->q, clips, out);
}

/* Two operands with one scale each. onnxruntime has no kernel for differences: they have one form. */
static graph_value *emit_binary(converter *v, const tail *t, const graph_node *n, const char *op, const qnn_params *a,
                                const qnn_params *b)
{
    attr attrs[2] = {attr_int(v->r.c, "minus", 1)};
    uint32_t count = strcmp(n->op->name, "subtract") == 0 ? 1 : form_of(v, t, n, 2, attrs);
    if (strcmp(op, "qnn.add") == 0)
        attrs[count++] = rounding_of(v, t);
    graph_value *in[8] = {numbers_of(v, n->inputs[0]),
                          scalar_f32(v, qnn_scale(a, 0), "a_scale", n->loc),
                          numbers_of(v, n->inputs[1]),
                          scalar_f32(v, qnn_scale(b, 0), "b_scale", n->loc),
                          scalar_f32(v, qnn_scale(&t->y, 0), "y_scale", n->loc),
                          zero_of(v, a, n->loc),
                          zero_of(v, b, n->loc),
                          zero_of(v, &t->y, n->loc)};
    return in[0] && in[2] ? emit(v, op, 8, in, count, attrs, n->loc) : NULL;
}

/* Or a difference. */
static graph_value *convert_sum(converter *v, const tail *t, graph_node *n)
{
    qnn_params a, b;
    if (!qnn_is_quantised(n->inputs[0], &a) || !qnn_is_quantised(n->inputs[1], &b) || !qnn_is_single(&a) ||
        !qnn_is_single(&b))
        return stays(v, n, "its operands are not both quantized to 8 bits with one scale");
    if (a.dt != t->y.dt || b.dt != t->y.dt)
        return stays(v, n, "its operands and its result are of different types");
    if (!powers_fit(t, &a, &b) || (t->half_up && qnn_is_wide(&a)))
        return stays(v, n, NO_POWERS);
    if (t->half_up && !nn_scales_are_near((double)qnn_scale(&a, 0), (double)qnn_scale(&b, 0)))
        return stays(v, n, "the scales of its operands are too far apart for sums of 32 bits");
    return emit_binary(v, t, n, "qnn.add", &a, &b);
}

static graph_value *convert_product(converter *v, const tail *t, graph_node *n)
{
    qnn_params a, b;
    if (t->half_up || !qnn_is_quantised(n->inputs[0], &a) || !qnn_is_quantised(n->inputs[1], &b) ||
        !qnn_is_single(&a) || !qnn_is_single(&b) || a.dt != t->y.dt || b.dt != t->y.dt)
        return stays(v, n, "its operands are not both quantized to the 8 bits of its result, with one scale each");
    return emit_binary(v, t, n, "qnn.mul", &a, &b);
}

static graph_value *convert_softmax(converter *v, const tail *t, graph_node *n)
{
    qnn_params x;
    const int64_t axis = graph_attr_int(n, "axis");
    const int64_t at = axis < 0 ? axis + n->inputs[0]->type.shape.rank : axis;
    if (qnn_is_wide(&t->y))
        return stays(v, n, "a softmax of 16 bits has no integer form");
    if (t->half_up || !qnn_is_quantised(n->inputs[0], &x) || !qnn_is_single(&x) || x.dt != t->y.dt)
        return stays(v, n, "its data is not quantized to the 8 bits of its result");
    graph_value *in[4] = {numbers_of(v, n->inputs[0])};
    if (!in[0])
        return NULL;
    in[1] = qnn_softmax_table(&v->r, in[0], (uint32_t)at, qnn_scale(&x, 0), n->loc);
    in[2] = scalar_f32(v, qnn_scale(&t->y, 0), "y_scale", n->loc);
    in[3] = zero_of(v, &t->y, n->loc);
    const attr along = attr_int(v->r.c, "axis", axis);
    return emit(v, "qnn.softmax", 4, in, 1, &along, n->loc);
}

/* Over all axes from one on, as ONNX had it before version 13: of the rows of a matrix, which is no matrix behind it.
 * NULL: n is nothing such. */
static graph_value *convert_flat_softmax(converter *v, const tail *t, graph_node *n)
{
    if (strcmp(n->op->name, "reshape") != 0 || !rewrite_is_op(n->inputs[0], "nn.softmax") ||
        rewrite_uses(n->inputs[0]) != 1 || rewrite_uses(t->x) != 1)
        return NULL;
    graph_value *in[2] = {convert_softmax(v, t, n->inputs[0]->def), n->n_inputs > 1 ? n->inputs[1] : NULL};
    return in[0] ? emit(v, "reshape", 2, in, n->n_attrs, n->attrs, n->loc) : NULL;
}

/* The numbers of x, which is element by element a function of quantised numbers, in the terms of q's result. */
static graph_value *by_table(converter *v, graph_value *x, const graph_node *q)
{
    qnn_cone cone;
    if (!qnn_read_cone(x, &cone))
        return NULL;
    if (qnn_is_wide(&cone.params)) {
        qnn_params y;
        graph_value *numbers = cone.n_nodes == 0 && qnn_read_params(q, false, &y) ? numbers_of(v, cone.source) : NULL;
        return numbers ? qnn_change_scale(&v->r, numbers, &cone.params, &y, zero_of(v, &y, q->loc), q->loc) : NULL;
    }
    graph_value *in[2] = {numbers_of(v, cone.source), qnn_make_table(&v->r, &cone, q)};
    return in[0] && in[1] ? emit(v, "qnn.table", 2, in, 0, NULL, q->loc) : NULL;
}

/* One of two values, element by element: each as numbers of y, by a table where it has another scale, and a constant as
 * one of numbers. */
static graph_value *convert_where(converter *v, const tail *t, graph_node *n)
{
    graph_value *in[3] = {n->inputs[0]};
    qnn_params p;
    for (uint32_t i = 1; i < 3; i++) {
        graph_value *x = n->inputs[i], *q[3] = {x};
        for (uint32_t k = 1; k < t->q->n_inputs && k < 3; k++)
            q[k] = t->q->inputs[k];
        if (graph_constant(x))
            in[i] = emit(v, "qnn.quantize", t->q->n_inputs, q, t->q->n_attrs, t->q->attrs, n->loc);
        else if (qnn_is_quantised(x, &p) && qnn_same_params(&p, &t->y))
            in[i] = numbers_of(v, x);
        else
            in[i] = by_table(v, x, t->q);
        if (!in[i])
            return stays(v, n, "its operands are not both quantized to 8 or 16 bits with one scale");
    }
    return emit(v, "where", 3, in, 0, NULL, n->loc);
}

/* A concatenation whose parts have other scales than its result: each part by a table where it has. */
static graph_value *convert_concat(converter *v, const tail *t, graph_node *n)
{
    graph_value *in[QNN_MAX_PARTS];
    qnn_params p;
    if (n->n_inputs > QNN_MAX_PARTS || t->lo > dtype_min_int(t->y.dt) || t->hi < dtype_max_int(t->y.dt))
        return NULL;
    for (uint32_t i = 0; i < n->n_inputs; i++)
        if (!qnn_is_quantised(n->inputs[i], &p) || !qnn_is_single(&p))
            return NULL;
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        bool same = qnn_is_quantised(n->inputs[i], &p) && qnn_same_params(&p, &t->y);
        in[i] = same ? numbers_of(v, n->inputs[i]) : by_table(v, n->inputs[i], t->q);
        if (!in[i])
            return NULL;
    }
    return emit(v, n->op->name, n->n_inputs, in, n->n_attrs, n->attrs, n->loc);
}

/* What the relations of the pools take. */
static bool sum_fits(const graph_node *n, dtype dt, bool global)
{
    const type *x = &n->inputs[0]->type;
    const int64_t *window = NULL;
    int64_t dims[TYPE_MAX_RANK];
    if (!global) {
        uint32_t rank = graph_attr_ints(n, "pool_size", &window);
        return nn_sum_fits(dt, rank, window);
    }
    return x->shape.rank <= (int32_t)(2 + NN_MAX_SPATIAL) && shape_get(x->shape, dims) &&
           nn_sum_fits(dt, (uint32_t)x->shape.rank - 2, dims + 2);
}

static graph_value *convert_average(converter *v, const tail *t, graph_node *n, bool global)
{
    qnn_params x;
    if (!qnn_is_quantised(n->inputs[0], &x) || !qnn_is_single(&x) || x.dt != t->y.dt)
        return stays(v, n, "its data is not quantized to the 8 bits of its result");
    if (!powers_fit(t, &x, &x) || (t->half_up && qnn_is_wide(&x)))
        return stays(v, n, NO_POWERS);
    if (!sum_fits(n, x.dt, global))
        return stays(v, n, "the sum of so many numbers may not fit into 32 bits");
    attr *attrs = arena_array(&v->r.c->mem, attr, n->n_attrs + 2u);
    uint32_t count = global ? 0 : form_of(v, t, n, 1, attrs);
    attrs[count++] = rounding_of(v, t);
    for (uint32_t i = 0; !global && i < n->n_attrs; i++)
        attrs[count++] = n->attrs[i];
    graph_value *in[5] = {numbers_of(v, n->inputs[0]), scalar_f32(v, qnn_scale(&x, 0), "x_scale", n->loc),
                          scalar_f32(v, qnn_scale(&t->y, 0), "y_scale", n->loc), zero_of(v, &x, n->loc),
                          zero_of(v, &t->y, n->loc)};
    const char *op = global ? "qnn.global_avg_pool2d" : arena_printf(&v->r.c->mem, "qnn.%s", n->op->name + 3);
    const shape *s = &n->outputs[0]->type.shape;
    graph_value *y = in[0] ? emit(v, op, 5, in, count, attrs, n->loc) : NULL;
    const bool stay = !global || s->rank == n->inputs[0]->type.shape.rank;
    return y && !stay ? rewrite_reshape(&v->r, y, (uint32_t)s->rank, s->dims, n->loc) : y;
}

/* The sums, each 2 to a power times what ONNX has, less the zero point as often, rounded once. */
static graph_value *convert_resize(converter *v, const tail *t, graph_node *n)
{
    compiler *c = v->r.c;
    qnn_params x;
    uint32_t bits, axes;
    const char *why = qnn_read_resize(n, &bits, &axes);
    if (!why && (!qnn_is_quantised(n->inputs[0], &x) || !qnn_is_single(&x) || qnn_is_wide(&x) || qnn_is_wide(&t->y)))
        why = "its data or its result is not quantized to 8 bits with one scale";
    if (why || !powers_fit(t, &x, &x))
        return stays(v, n, why ? why : NO_POWERS);
    graph_value *in[4] = {NULL};
    memcpy(in, n->inputs, n->n_inputs * sizeof *in);
    in[0] = numbers_of(v, n->inputs[0]);
    attr *attrs = arena_array(&c->mem, attr, n->n_attrs + 1u);
    memcpy(attrs, n->attrs, n->n_attrs * sizeof *attrs);
    attrs[n->n_attrs] = attr_int(c, "fraction_bits", bits);
    graph_value *sum = in[0] ? emit(v, "qnn.resize", n->n_inputs, in, n->n_attrs + 1u, attrs, n->loc) : NULL;
    const int64_t zero = -qnn_zero(&x, 0) * ((int64_t)1 << bits * axes);
    graph_value *pair[2] = {sum, zero != 0 ? scalar_int(v, DT_I32, zero, "zero_point", n->loc) : NULL};
    sum = sum && pair[1] ? emit(v, "add", 2, pair, 0, NULL, n->loc) : sum;
    const bool same = qnn_scale(&x, 0) == qnn_scale(&t->y, 0); /* halves are halves, not products of two scales */
    const float scale = ldexpf(same ? 1.0f : qnn_scale(&x, 0), -(int)(bits * axes));
    graph_value *of_sum[4] = {sum, scalar_f32(v, scale, "scale", n->loc)};
    of_sum[2] = scalar_f32(v, same ? 1.0f : qnn_scale(&t->y, 0), "y_scale", n->loc);
    of_sum[3] = zero_of(v, &t->y, n->loc);
    attr rounds[2] = {attr_dtype(c, "out_dtype", t->y.dt), rounding_of(v, t)};
    return sum ? emit(v, "qnn.requantize", 4, of_sum, 2, rounds, n->loc) : NULL;
}

/* What moves elements, or nothing but clips: the numbers as they are. */
static graph_value *convert_moved(converter *v, const tail *t)
{
    qnn_params x;
    const graph_node *n = t->x->def;
    if (!qnn_is_quantised(t->x, &x))
        return stays(v, n, "its operands are not quantized to 8 bits with one scale");
    if (!qnn_same_params(&x, &t->y))
        return stays(v, n, "its operands and its result have different scales or zero points");
    return numbers_of(v, t->x);
}

static graph_value *convert_tail(converter *v, const tail *t)
{
    graph_node *n = t->x->def;
    if (!n || strcmp(n->op->name, "constant") == 0)
        return NULL;
    const char *op = n->op->name;
    graph_value *flat = convert_flat_softmax(v, t, n);
    if (flat || strcmp(op, "qnn.dequantize") == 0 || qnn_moved_operands(n) > 0)
        return flat ? flat : convert_moved(v, t);
    if (rewrite_uses(t->x) != 1)
        return stays(v, n, READ_TWICE);
    if (strcmp(op, "add") == 0)
        for (uint32_t i = 0; i < 2; i++)
            if (is_anchor_op(n->inputs[i]) && type_equal(&n->inputs[i]->type, &t->x->type))
                return convert_anchor(v, t, n->inputs[i], n->inputs[1 - i]);
    if (strcmp(op, "add") == 0 || strcmp(op, "subtract") == 0)
        return convert_sum(v, t, n);
    if (strcmp(op, "nn.softmax") == 0)
        return convert_softmax(v, t, n);
    if (strcmp(op, "multiply") == 0)
        return convert_product(v, t, n);
    if (strcmp(op, "where") == 0)
        return convert_where(v, t, n);
    if (strcmp(op, "resize") == 0)
        return convert_resize(v, t, n);
    const bool windows = strncmp(op, "nn.avg_pool", 11) == 0; /* of 1 to 3 axes */
    if (windows || qnn_is_global_mean(n))
        return convert_average(v, t, n, !windows);
    if (is_anchor_op(t->x))
        return convert_anchor(v, t, t->x, NULL);
    return stays(v, n, "it has no integer form");
}

/* A bound of a clip in y's numbers; *q stays where there is none. false: it is not a known number. */
static bool read_bound(const tail *t, const graph_value *v, int64_t *q)
{
    double bound = 0;
    if (!v)
        return true;
    if (!rewrite_is_uniform(graph_constant(v), &bound) || isnan(bound))
        return false;
    *q = qnn_quantized(&t->y, bound, t->half_up);
    return true;
}

/* Goes up through clips, whose bounds count in y's numbers: rounding never changes an order. */
static bool read_clips(tail *t)
{
    while (rewrite_uses(t->x) == 1 && (rewrite_is_op(t->x, "nn.relu") || rewrite_is_op(t->x, "clip"))) {
        const graph_node *n = t->x->def;
        int64_t low = dtype_min_int(t->y.dt), high = dtype_max_int(t->y.dt);
        if (rewrite_is_op(t->x, "nn.relu")) {
            low = qnn_quantized(&t->y, 0, t->half_up);
        } else {
            if (!read_bound(t, graph_operand(n, 1), &low) || !read_bound(t, graph_operand(n, 2), &high))
                return false;
            t->piled |= graph_operand(n, 2) != NULL;
        }
        nn_clip_behind(low, high, &t->lo, &t->hi);
        t->x = n->inputs[0];
    }
    return true;
}

static graph_value *convert_quantize(converter *v, graph_node *n)
{
    tail t = {.q = n, .x = n->inputs[0], .half_up = strcmp(graph_attr_string(n, "rounding"), "half_up") == 0};
    if (strcmp(graph_attr_string(n, "rounding"), "half_away") == 0)
        return NULL; /* of TensorFlow Lite, whose models say themselves what is in integers */
    if (!v->always || !qnn_read_params(n, false, &t.y) || !qnn_is_single(&t.y))
        return NULL;
    t.lo = dtype_min_int(t.y.dt);
    t.hi = dtype_max_int(t.y.dt);
    graph_value *y = read_clips(&t) ? clipped(v, &t, convert_tail(v, &t)) : NULL;
    graph_node *made_by = t.x->def;
    if (!y && made_by && strcmp(made_by->op->name, "concatenate") == 0)
        y = convert_concat(v, &t, made_by);
    return y ? y : by_table(v, n->inputs[0], n);
}

/* --- results that nobody quantises --- */

/* Sums in integers, dequantised. */
static graph_value *dequantized(converter *v, const anchor *a, const tensor_data *bias)
{
    graph_value *in[2] = {sums(v, a, DT_I32, bias), rewrite_constant(&v->r, product_scale(v, a), "scale", a->n->loc)};
    attr axis = attr_int(v->r.c, "axis", a->is_conv ? 1 : -1);
    return in[0] ? emit(v, "qnn.dequantize", 2, in, 1, &axis, a->n->loc) : NULL;
}

/* Whether the one reader of y, a convolution or product, adds its bias. */
static bool bias_follows(const converter *v, const graph_value *y)
{
    uint32_t at = 0;
    if (rewrite_uses(y) != 1 || !ptr_map_get(&v->readers, y, &at))
        return false;
    const graph_node *n = v->r.f->nodes.data[at];
    anchor a;
    qnn_bias b;
    if (strcmp(n->op->name, "add") != 0 || read_anchor(v->r.c, n->inputs[n->inputs[0] == y ? 0 : 1], &a) != NULL)
        return false;
    return qnn_read_bias(n->inputs[n->inputs[0] == y], a.channels, a.behind, &b) && b.is_integer;
}

static graph_value *convert_unquantized(converter *v, graph_node *n)
{
    anchor a;
    qnn_bias b;
    const char *why = NULL;
    if (strcmp(n->op->name, "add") == 0) {
        for (uint32_t i = 0; i < 2; i++) {
            graph_value *y = n->inputs[i];
            if (rewrite_uses(y) != 1 || read_anchor(v->r.c, y, &a) || qnn_is_wide(&a.x) ||
                !type_equal(&y->type, &n->outputs[0]->type) ||
                !qnn_read_bias(n->inputs[1 - i], a.channels, a.behind, &b) || !b.is_integer)
                continue;
            const tensor_data *bias = integer_bias(v, &a, &b, NULL, &why);
            return bias ? dequantized(v, &a, bias) : stays(v, a.n, why);
        }
        return NULL;
    }
    if (n->n_outputs != 1 || !is_anchor_op(n->outputs[0]) || read_anchor(v->r.c, n->outputs[0], &a) ||
        qnn_is_wide(&a.x) || bias_follows(v, n->outputs[0]))
        return NULL;
    return dequantized(v, &a, NULL);
}

/* --- the walk --- */

static bool walk(converter *v, compiler *c, graph_func *f, const char *root)
{
    rewrite_begin(&v->r, c, f);
    qnn_find_readers(c, f, &v->readers);
    qnn_find_u8(c, f, &v->readers, &v->u8);
    for (uint32_t i = 0; i < f->nodes.len && !v->r.failed; i++) {
        graph_node *n = f->nodes.data[i];
        rewrite_operands(n);
        bool is_root = root ? strcmp(n->op->name, root) == 0 : v->always;
        graph_value *y = !is_root ? NULL : root ? convert_quantize(v, n) : convert_unquantized(v, n);
        if (y && type_equal(&y->type, &n->outputs[0]->type) && rewrite_replace(&v->r, n->outputs[0], y))
            continue;
        rewrite_keep(&v->r, n);
    }
    rewrite_end(&v->r);
    graph_remove_dead(f);
    return !v->r.failed;
}

/* A model that rounds half up is for integers as a whole. */
static bool rounds_half_up(const graph_module *m)
{
    for (uint32_t i = 0; i < m->funcs.len; i++)
        for (uint32_t k = 0; k < m->funcs.data[i]->nodes.len; k++) {
            const graph_node *n = m->funcs.data[i]->nodes.data[k];
            if (strcmp(n->op->name, "qnn.quantize") == 0 && strcmp(graph_attr_string(n, "rounding"), "half_up") == 0)
                return true;
        }
    return false;
}

bool graph_pass_use_integers(compiler *c, graph_module *m, const pass_options *o)
{
    converter v = {.half_up = rounds_half_up(m), .method = qnn_method(o), .parts = qnn_most_parts(o)};
    v.always = !o->no_integers || v.half_up;
    ptr_map_init(&v.stay.of, &c->mem);
    if (v.always && !graph_pass_cse(c, m, o)) /* exporters quantise a value again for each of its readers */
        return false;
    for (uint32_t i = 0; i < m->funcs.len; i++) {
        graph_func *f = m->funcs.data[i];
        if (graph_is_fixed(f))
            continue;
        if (!walk(&v, c, f, "qnn.quantize") || !walk(&v, c, f, NULL) || !qnn_keep_nibbles(c, f, o) ||
            !qnn_set_methods(c, f, o))
            return false;
        qnn_note_floats(c, f, &v.stay, v.always);
        if (o->target->vector_bytes > 0 && !o->offload)
            qnn_note_wide_nibbles(c, f);
        else if (!graph_pass_rows_takes(o->target) && !o->offload)
            qnn_note_all_bytes(c, f, "the kernels of this target multiply bytes");
    }
    return true;
}
