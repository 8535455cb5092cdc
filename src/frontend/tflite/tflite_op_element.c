/* SPDX-License-Identifier: Apache-2.0 */
/* Sums, products, choices, functions of one number with straight pieces, and changes of type. */
#include "frontend/tflite/tflite_compose.h"
#include "frontend/tflite/tflite_fixed.h"
#include "frontend/tflite/tflite_import.h"

#include <math.h>
#include <string.h>

/* --- two operands --- */

static int64_t activation_of(const tflite_node *n)
{
    switch (n->row->options) {
    case 11: return ((const tfl_add_options *)n->options)->fused_activation_function;
    case 21: return ((const tfl_mul_options *)n->options)->fused_activation_function;
    case 28: return ((const tfl_sub_options *)n->options)->fused_activation_function;
    default: return ((const tfl_div_options *)n->options)->fused_activation_function;
    }
}

/* LiteRT makes the scale of a product in 32 bits. */
static graph_value *litert_product(tflite_node *n, graph_value *const *x, const tflite_scale *a, const tflite_scale *b,
                                   const tflite_scale *y)
{
    const double real = tflite_factor(true, a->scale, b->scale, y->scale);
    graph_value *v = tflite_binary(n, "multiply", tflite_centered(n, x[0], a), tflite_centered(n, x[1], b));
    return tflite_rescaled(n, v, real, 0x1p30, y);
}

/* qnn.add and qnn.mul take both operands with their scales, and round by the method "tflite". */
static graph_value *quantised_binary(tflite_node *n, graph_value *const *x)
{
    tflite_scale a, b, y;
    compiler *c = n->c;
    const bool product = strcmp(n->row->target, "multiply") == 0;
    if (!tflite_read_scale(n, 0, &a) || !tflite_read_scale(n, 1, &b) || !tflite_read_scale(n, TFLITE_RESULT, &y))
        return x[0];
    if (product && tflite_like_litert(n))
        return litert_product(n, x, &a, &b, &y);
    graph_value *in[8] = {x[0], tflite_number(n, DT_F32, (double)a.scale),
                          x[1], tflite_number(n, DT_F32, (double)b.scale),
                          tflite_number(n, DT_F32, (double)y.scale),
                          tflite_zero(n, &a), tflite_zero(n, &b), tflite_zero(n, &y)};
    const attr attrs[2] = {attr_string(c, "method", "tflite"),
                           attr_int(c, "minus", strcmp(n->row->target, "subtract") == 0)};
    return tflite_emit(n, product ? "qnn.mul" : "qnn.add", 8, in, product ? 1 : 2, attrs);
}

bool tflite_op_binary(tflite_node *n)
{
    graph_value *x[2];
    bool image;
    if (!tflite_in_one_form(n, 2, x, &image))
        return false;
    graph_value *y = tflite_is_int(n, 0) ? quantised_binary(n, x) : tflite_binary(n, n->row->target, x[0], x[1]);
    return tflite_result_as(n, 0, tflite_activated(n, y, activation_of(n)), image);
}

/* MAXIMUM and MINIMUM compare the numbers as they are. */
bool tflite_op_choice(tflite_node *n)
{
    graph_value *x[2];
    bool image;
    tflite_scale a, b, y;
    if (tflite_is_int(n, 0) && (!tflite_read_scale(n, 0, &a) || !tflite_read_scale(n, 1, &b) ||
                                !tflite_read_scale(n, TFLITE_RESULT, &y)))
        return false;
    if (tflite_is_int(n, 0) && (!tflite_same_scale(&a, &b) || !tflite_same_scale(&a, &y)))
        return tflite_fail(n, DIAG_UNSUPPORTED, "operands and result have different scales");
    return tflite_in_one_form(n, 2, x, &image) &&
           tflite_result_as(n, 0, tflite_binary(n, n->row->target, x[0], x[1]), image);
}

/* --- one operand --- */

/* target: operators one behind the other. */
bool tflite_op_unary(tflite_node *n)
{
    graph_value *x;
    bool image;
    if (!tflite_in_one_form(n, 1, &x, &image))
        return false;
    if (tflite_is_int(n, 0))
        return tflite_result_as(n, 0, tflite_curve_of_numbers(n, x), image);
    for (const char *s = n->row->target; *s; s += strcspn(s, " "), s += *s == ' ')
        x = tflite_unary(n, arena_printf(&n->c->mem, "%.*s", (int)strcspn(s, " "), s), x);
    return tflite_result_as(n, 0, x, image);
}

/* --- RELU and its like --- */

typedef struct rescaled {
    double up, down; /* scales of numbers from 0, and below */
    int64_t zero, low, high;
    bool turned; /* numbers below 0 change their sign */
} rescaled;

static int64_t rescaled_entry(const void *ctx, int32_t x)
{
    const rescaled *r = ctx;
    const int32_t scaled = fixed_scaled(x, fixed_of(x < 0 ? r->down : r->up));
    const int64_t y = r->zero + (x < 0 && r->turned ? -(int64_t)scaled : scaled);
    return y < r->low ? r->low : y > r->high ? r->high : y;
}

/* Numbers of 8 bits by a table, others step by step. */
static graph_value *rescaled_numbers(tflite_node *n, graph_value *v, const tflite_scale *x, const tflite_scale *y,
                                     const rescaled *r)
{
    if (dtype_bits(x->dt) == 8 && dtype_bits(y->dt) == 8)
        return tflite_by_table(n, v, x, y, rescaled_entry, r);
    const double most = x->dt == DT_I32 ? 0x1p31 : 65536;
    graph_value *from_zero = tflite_centered(n, v, x), *up = tflite_rescaled(n, from_zero, r->up, most, NULL);
    if (r->up != r->down || r->turned) {
        graph_value *down = tflite_rescaled(n, from_zero, r->down, most, NULL);
        down = r->turned ? tflite_unary(n, "negative", down) : down;
        up = tflite_emit(n, "where", 3, (graph_value *[]){tflite_binary(n, "less", from_zero, tflite_i32(n, 0)), down,
                                                          up}, 0, NULL);
    }
    up = r->zero ? tflite_binary(n, "add", up, tflite_i32(n, r->zero)) : up;
    return y->dt == DT_I32 ? up : tflite_clipped(n, up, r->low, r->high, y->dt);
}

static bool is_named(const tflite_node *n, const char *target)
{
    return strcmp(n->row->target, target) == 0;
}

/* TensorFlow Lite Micro clips the numbers as they are, by the scale of the data, whatever that of the result is. */
static graph_value *relu6_of_numbers(tflite_node *n, graph_value *v, const tflite_scale *x)
{
    const int64_t most = dtype_max_int(x->dt), six = x->zero + tflite_rounded(6.0f / x->scale);
    graph_value *in[3] = {v, tflite_number(n, x->dt, (double)x->zero),
                          tflite_number(n, x->dt, (double)(six < most ? six : most))};
    return tflite_emit(n, "clip", 3, in, 0, NULL);
}

/* 0 to 1: as the fused activations have it, which have no such one. */
static graph_value *between(tflite_node *n, graph_value *v, double low, double high)
{
    graph_value *in[3] = {v, tflite_number(n, DT_F32, low), tflite_number(n, DT_F32, high)};
    return tflite_emit(n, "clip", 3, in, 0, NULL);
}

bool tflite_op_relu(tflite_node *n)
{
    graph_value *v;
    bool image;
    tflite_scale x, y;
    if (!tflite_in_one_form(n, 1, &v, &image))
        return false;
    if (!tflite_is_int(n, 0) && is_named(n, "relu_0_to_1"))
        return tflite_result_as(n, 0, between(n, v, 0, 1), image);
    if (!tflite_is_int(n, 0)) {
        const int64_t act = is_named(n, "relu") ? 1 : is_named(n, "relu6") ? 3 : 2;
        return tflite_result_as(n, 0, tflite_activated(n, v, act), image);
    }
    if (!tflite_read_pair(n, &x, &y))
        return false;
    if (is_named(n, "relu6") && x.dt != DT_U8 && !tflite_like_litert(n))
        return tflite_result_as(n, 0, relu6_of_numbers(n, v, &x), image);
    const bool is_relu = is_named(n, "relu");
    const float least = is_named(n, "relu_n1_to_1") ? -1.0f : 0.0f;
    rescaled r = {.zero = y.zero, .low = y.zero + tflite_rounded(least / y.scale)};
    r.high = is_relu ? dtype_max_int(y.dt) : y.zero + tflite_rounded((is_named(n, "relu6") ? 6.0f : 1.0f) / y.scale);
    r.low = r.low < dtype_min_int(y.dt) ? dtype_min_int(y.dt) : r.low;
    r.high = r.high > dtype_max_int(y.dt) ? dtype_max_int(y.dt) : r.high;
    r.up = r.down = tflite_factor(tflite_like_litert(n), x.scale, 1, y.scale);
    return tflite_result_as(n, 0, rescaled_numbers(n, v, &x, &y, &r), image);
}

bool tflite_op_leaky_relu(tflite_node *n)
{
    const tfl_leaky_relu_options *o = n->options;
    graph_value *v;
    bool image;
    tflite_scale x, y;
    if (!tflite_in_one_form(n, 1, &v, &image))
        return false;
    if (!tflite_is_int(n, 0)) {
        const attr alpha = attr_float(n->c, "alpha", (double)o->alpha);
        return tflite_result_as(n, 0, tflite_emit(n, "nn.leaky_relu", 1, &v, 1, &alpha), image);
    }
    if (!tflite_read_pair(n, &x, &y))
        return false;
    const double down = tflite_factor(tflite_like_litert(n), x.scale, o->alpha, y.scale);
    const rescaled r = {.up = tflite_factor(false, x.scale, 1, y.scale),
                        .down = fabs(down),
                        .turned = down < 0,
                        .zero = y.zero,
                        .low = dtype_min_int(y.dt),
                        .high = dtype_max_int(y.dt)};
    return tflite_result_as(n, 0, rescaled_numbers(n, v, &x, &y, &r), image);
}

/* --- QUANTIZE, DEQUANTIZE, CAST --- */

static bool scaled_as(const tflite_scale *x, const tflite_scale *y)
{
    return x->scale == y->scale && x->zero == y->zero && x->dt == y->dt;
}

static bool requantize_numbers(tflite_node *n, graph_value *v, bool image)
{
    tflite_scale x, y;
    if (!tflite_read_pair(n, &x, &y))
        return false;
    const rescaled r = {.up = (double)x.scale / (double)y.scale,
                        .down = (double)x.scale / (double)y.scale,
                        .zero = y.zero,
                        .low = dtype_min_int(y.dt),
                        .high = dtype_max_int(y.dt)};
    if (x.dt == DT_I32 && x.zero != 0)
        return tflite_fail(n, DIAG_UNSUPPORTED, "its data is i32 with a zero point other than 0");
    graph_value *same = scaled_as(&x, &y) ? tflite_unary(n, "copy", v) : NULL;
    return tflite_result_as(n, 0, same ? same : rescaled_numbers(n, v, &x, &y, &r), image);
}

bool tflite_op_quantize(tflite_node *n)
{
    graph_value *v;
    bool image;
    tflite_scale y;
    if (!tflite_in_one_form(n, 1, &v, &image))
        return false;
    if (tflite_is_int(n, 0) || tflite_operand(n, 0)->type.dt == DT_I32)
        return requantize_numbers(n, v, image);
    if (!tflite_read_scale(n, TFLITE_RESULT, &y))
        return false;
    graph_value *in[3] = {v, tflite_number(n, DT_F32, (double)y.scale), tflite_zero(n, &y)};
    const attr attrs[2] = {attr_dtype(n->c, "out_dtype", y.dt), attr_string(n->c, "rounding", "half_away")};
    return tflite_result_as(n, 0, tflite_emit(n, "qnn.quantize", 3, in, 2, attrs), image);
}

/* One scale, or one for each entry of an axis; f16 is only wider behind it. */
bool tflite_op_dequantize(tflite_node *n)
{
    const tflite_tensor *t = tflite_operand(n, 0);
    const tfl_quantization *q = t->t->quantization;
    graph_value *v;
    bool image;
    tflite_scale x;
    flat_numbers scales;
    int64_t zero;
    if (t->type.dt != DT_F16 && q && q->scale.len > 1) {
        int64_t extent, dims = q->scale.len;
        graph_value *in[2] = {tflite_in(n, 0), NULL};
        if (n->failed || q->quantized_dimension < 0 || q->quantized_dimension >= t->type.shape.rank)
            return tflite_fail(n, DIAG_FORMAT, "its scales are of an axis that is not there");
        if (!tflite_extent(n, in[0], (uint32_t)q->quantized_dimension, &extent) ||
            !tflite_read_scales(n, 0, q->quantized_dimension, extent, &scales, &zero))
            return false;
        if (zero != 0)
            return tflite_fail(n, DIAG_UNSUPPORTED, "it has a zero point other than 0 with several scales");
        in[1] = tflite_const(n, tensor_dense(n->c, DT_F32, 1, &dims, scales.data), "scale");
        const attr axis = attr_int(n->c, "axis", q->quantized_dimension);
        return tflite_result(n, 0, tflite_emit(n, "qnn.dequantize", 2, in, 1, &axis));
    }
    if (!tflite_in_one_form(n, 1, &v, &image))
        return false;
    if (t->type.dt == DT_F16)
        return tflite_result_as(n, 0, tflite_cast(n, v, DT_F32), image);
    if (!tflite_read_scale(n, 0, &x))
        return false;
    graph_value *in[3] = {v, tflite_number(n, DT_F32, (double)x.scale), tflite_zero(n, &x)};
    return tflite_result_as(n, 0, tflite_emit(n, "qnn.dequantize", 3, in, 0, NULL), image);
}

bool tflite_op_cast(tflite_node *n)
{
    const tflite_tensor *y = tflite_operand(n, TFLITE_RESULT);
    graph_value *v;
    bool image;
    if (!tflite_in_one_form(n, 1, &v, &image))
        return false;
    if (!dtype_usable(y->type.dt))
        return tflite_fail(n, DIAG_UNSUPPORTED, "its result's type is not supported yet");
    return tflite_result_as(n, 0, v->type.dt == y->type.dt ? tflite_unary(n, "copy", v)
                                                           : tflite_cast(n, v, y->type.dt), image);
}

/* Floats as training with fake quantization has them: on the steps of a range whose zero is one of them. */
bool tflite_op_fake_quant(tflite_node *n)
{
    const tfl_fake_quant_options *o = n->options;
    graph_value *v;
    bool image;
    if (!tflite_in_one_form(n, 1, &v, &image))
        return false;
    if (o->num_bits < 2 || o->num_bits > 16 || !(o->min <= 0) || !(o->max >= 0) || !(o->max - o->min >= 0x1p-126f) ||
        !isfinite(o->max - o->min))
        return tflite_fail(n, DIAG_UNSUPPORTED, "its range must hold 0, and its bits must be 2 to 16");
    const float least = o->narrow_range ? 1 : 0, most = (float)((1 << o->num_bits) - 1);
    const float scale = (o->max - o->min) / (most - least), at = least - o->min / scale;
    const float zero = at < least ? least : at > most ? most : roundf(at);
    const float low = (least - zero) * scale, high = (most - zero) * scale;
    v = tflite_binary(n, "subtract", between(n, v, (double)low, (double)high), tflite_number(n, DT_F32, (double)low));
    const float inverse = 1.0f / scale;
    v = tflite_binary(n, "multiply", v, tflite_number(n, DT_F32, (double)inverse));
    v = tflite_unary(n, "floor", tflite_binary(n, "add", v, tflite_number(n, DT_F32, 0.5)));
    v = tflite_binary(n, "multiply", v, tflite_number(n, DT_F32, (double)scale));
    return tflite_result_as(n, 0, tflite_binary(n, "add", v, tflite_number(n, DT_F32, (double)low)), image);
}

/* Bits are counted from 0 to one less than the type has. */
bool tflite_op_right_shift(tflite_node *n)
{
    graph_value *x = tflite_in(n, 0), *bits = tflite_in(n, 1);
    if (n->failed || x->type.dt != bits->type.dt)
        return tflite_fail(n, DIAG_TYPE, "its operands have different types");
    graph_value *in[3] = {bits, tflite_number(n, x->type.dt, 0),
                          tflite_number(n, x->type.dt, (double)dtype_bits(x->type.dt) - 1)};
    return tflite_result(n, 0, tflite_binary(n, "right_shift", x, tflite_emit(n, "clip", 3, in, 0, NULL)));
}

/* The angle of (x, y): the arc tangent is that of the right half, and of 0 / 0 it is 0 or a half turn. */
bool tflite_op_atan2(tflite_node *n)
{
    graph_value *y = tflite_in(n, 0), *x = tflite_in(n, 1), *zero = tflite_number(n, DT_F32, 0);
    graph_value *half_turn = tflite_number(n, DT_F32, 3.14159265358979323846);
    graph_value *at = tflite_unary(n, "atan", tflite_binary(n, "divide", y, x));
    graph_value *is_origin = tflite_binary(n, "logical_and", tflite_binary(n, "equal", y, zero),
                                           tflite_binary(n, "equal", x, zero));
    graph_value *is_left = tflite_binary(n, "less", x, zero), *is_below = tflite_binary(n, "less", y, zero);
    graph_value *turned = compose_chosen(n, is_below, tflite_binary(n, "subtract", at, half_turn),
                                         tflite_binary(n, "add", at, half_turn));
    return tflite_result(n, 0, compose_chosen(n, is_origin, y, compose_chosen(n, is_left, turned, at)));
}
