/* SPDX-License-Identifier: Apache-2.0 */
/* Sums, products, choices and functions of one number, in floats and quantised. A function of one quantised byte is a
 * table of 256 entries, made here by the arithmetic that a device has. */
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

/* qnn.add and qnn.mul take both operands with their scales, and round by the method "tflite". */
static graph_value *quantised_binary(tflite_node *n, graph_value *const *x)
{
    tflite_scale a, b, y;
    compiler *c = n->c;
    const bool product = strcmp(n->row->target, "multiply") == 0;
    if (!tflite_read_scale(n, 0, &a) || !tflite_read_scale(n, 1, &b) || !tflite_read_scale(n, TFLITE_RESULT, &y))
        return x[0];
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
    for (const char *s = n->row->target; *s; s += strcspn(s, " "), s += *s == ' ')
        x = tflite_unary(n, arena_printf(&n->c->mem, "%.*s", (int)strcspn(s, " "), s), x);
    return tflite_result_as(n, 0, x, image);
}

/* What becomes of x, a number less its zero point; the result has its own. */
typedef int64_t (*byte_fn)(const void *ctx, int32_t x);

/* The table for all numbers of a byte; entries are saturated. */
static graph_value *by_table(tflite_node *n, graph_value *v, const tflite_scale *x, const tflite_scale *y, byte_fn fn,
                             const void *ctx)
{
    const int64_t count = 256;
    uint8_t *t = arena_alloc(&n->c->mem, (size_t)count, 1);
    for (int64_t i = 0; i < count; i++) {
        const int64_t code = x->dt == DT_I8 ? (int8_t)(uint8_t)i : i, least = dtype_min_int(y->dt),
                      most = dtype_max_int(y->dt), r = fn(ctx, (int32_t)(code - x->zero));
        t[i] = (uint8_t)(r < least ? least : r > most ? most : r);
    }
    graph_value *in[2] = {v, tflite_const(n, tensor_dense(n->c, y->dt, 1, &count, t), "table")};
    return tflite_emit(n, "qnn.table", 2, in, 0, NULL);
}

static bool read_scales(tflite_node *n, tflite_scale *x, tflite_scale *y)
{
    return tflite_read_scale(n, 0, x) && tflite_read_scale(n, TFLITE_RESULT, y);
}

/* --- RELU and its like --- */

typedef struct rescaled {
    fixed_scale up, down; /* of numbers from 0, and below */
    int64_t zero, low, high;
    bool turned; /* numbers below 0 change their sign */
} rescaled;

static int64_t rescaled_entry(const void *ctx, int32_t x)
{
    const rescaled *r = ctx;
    const int32_t scaled = fixed_scaled(x, x < 0 ? r->down : r->up);
    const int64_t y = r->zero + (x < 0 && r->turned ? -(int64_t)scaled : scaled);
    return y < r->low ? r->low : y > r->high ? r->high : y;
}

static bool is_named(const tflite_node *n, const char *target)
{
    return strcmp(n->row->target, target) == 0;
}

/* TensorFlow Lite Micro clips the numbers as they are, by the scale of the data, whatever that of the result is. */
static graph_value *relu6_of_numbers(tflite_node *n, graph_value *v, const tflite_scale *x)
{
    const int64_t most = dtype_max_int(x->dt), six = x->zero + (int64_t)roundf(6.0f / x->scale);
    graph_value *in[3] = {v, tflite_number(n, x->dt, (double)x->zero),
                          tflite_number(n, x->dt, (double)(six < most ? six : most))};
    return tflite_emit(n, "clip", 3, in, 0, NULL);
}

bool tflite_op_relu(tflite_node *n)
{
    graph_value *v;
    bool image;
    tflite_scale x, y;
    if (!tflite_in_one_form(n, 1, &v, &image))
        return false;
    if (!tflite_is_int(n, 0)) {
        const int64_t act = is_named(n, "relu") ? 1 : is_named(n, "relu6") ? 3 : 2;
        return tflite_result_as(n, 0, tflite_activated(n, v, act), image);
    }
    if (!read_scales(n, &x, &y))
        return false;
    if (is_named(n, "relu6"))
        return tflite_result_as(n, 0, relu6_of_numbers(n, v, &x), image);
    const bool is_relu = is_named(n, "relu");
    rescaled r = {.zero = y.zero, .low = y.zero + (int64_t)roundf((is_relu ? 0.0f : -1.0f) / y.scale)};
    r.high = is_relu ? dtype_max_int(y.dt) : y.zero + (int64_t)roundf(1.0f / y.scale);
    const float real = x.scale / y.scale;
    r.up = r.down = fixed_of((double)real);
    return tflite_result_as(n, 0, by_table(n, v, &x, &y, rescaled_entry, &r), image);
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
    if (!read_scales(n, &x, &y))
        return false;
    const float up = x.scale / y.scale, product = x.scale * o->alpha, down = product / y.scale;
    const rescaled r = {.up = fixed_of((double)up),
                        .down = fixed_of(fabs((double)down)),
                        .turned = down < 0,
                        .zero = y.zero,
                        .low = dtype_min_int(y.dt),
                        .high = dtype_max_int(y.dt)};
    return tflite_result_as(n, 0, by_table(n, v, &x, &y, rescaled_entry, &r), image);
}

/* --- LOGISTIC, TANH, HARD_SWISH --- */

typedef struct curve {
    fixed_scale in; /* to Q4.27 */
    int32_t radius; /* beyond it the result is at its end */
    bool is_tanh;
} curve;

static int64_t curve_entry(const void *ctx, int32_t x)
{
    const curve *k = ctx;
    if (x <= -k->radius)
        return INT8_MIN;
    if (x >= k->radius)
        return INT8_MAX;
    const int32_t q = fixed_scaled(x, k->in);
    return k->is_tanh ? fixed_divided(fixed_tanh(q), 24) : fixed_divided(fixed_logistic(q), 23) - 128;
}

static bool import_curve(tflite_node *n, const char *op, bool is_tanh, float scale, int64_t zero)
{
    graph_value *v;
    bool image;
    tflite_scale x, y;
    if (!tflite_in_one_form(n, 1, &v, &image))
        return false;
    if (!tflite_is_int(n, 0))
        return tflite_result_as(n, 0, tflite_unary(n, op, v), image);
    if (!read_scales(n, &x, &y))
        return false;
    if (y.scale != scale || y.zero != zero)
        return tflite_fail(n, DIAG_FORMAT, "its result must have the scale %g and the zero point %lld", (double)scale,
                           (long long)zero);
    curve k = {.in = fixed_of((double)x.scale * 0x1p27), .is_tanh = is_tanh};
    const double radius = floor(ldexp(15.0, 27 - k.in.shift));
    k.radius = radius > 1000 ? 1000 : (int32_t)radius; /* no number of a byte is farther from its zero point */
    return tflite_result_as(n, 0, by_table(n, v, &x, &y, curve_entry, &k), image);
}

bool tflite_op_logistic(tflite_node *n)
{
    return import_curve(n, "sigmoid", false, 1.0f / 256, -128);
}

bool tflite_op_tanh(tflite_node *n)
{
    return import_curve(n, "tanh", true, 1.0f / 128, 0);
}

typedef struct swish {
    int16_t out, relu; /* multipliers of 16 bits */
    int out_shift, relu_shift;
    int64_t zero;
} swish;

/* The multiplier of 31 bits in 16. */
static int16_t narrow(int32_t m)
{
    return (int16_t)(m >= INT32_MAX - (1 << 15) ? INT16_MAX : (m + (1 << 15)) >> 16);
}

static int16_t saturated_shift(int32_t x, int left)
{
    const int64_t y = (int64_t)x * ((int64_t)1 << left);
    return (int16_t)(y > INT16_MAX ? INT16_MAX : y < INT16_MIN ? INT16_MIN : y);
}

/* x * relu6(x + 3) / 6, the second factor from -1 to 1 first. */
static int64_t swish_entry(const void *ctx, int32_t x)
{
    const swish *s = ctx;
    const int16_t high = (int16_t)(x * 128);
    const int16_t on_out = fixed_product16(high, s->out);
    int16_t r = high;
    if (s->relu_shift > 0)
        r = saturated_shift(r, s->relu_shift - 1);
    r = fixed_product16(r, s->relu);
    if (s->relu_shift > 0)
        r = saturated_shift(r, 1);
    if (s->relu_shift < 0)
        r = (int16_t)fixed_divided(r, -s->relu_shift);
    r = (int16_t)((r + (1 << 15)) >> 1);
    const int16_t product = (int16_t)((int32_t)r * on_out / (1 << 15));
    return fixed_divided(product, -s->out_shift) + s->zero;
}

bool tflite_op_hard_swish(tflite_node *n)
{
    graph_value *v;
    bool image;
    tflite_scale x, y;
    if (!tflite_in_one_form(n, 1, &v, &image))
        return false;
    if (!tflite_is_int(n, 0))
        return tflite_result_as(n, 0, tflite_unary(n, "hard_swish", v), image);
    if (!read_scales(n, &x, &y))
        return false;
    const float high = (1.0f / 128.0f) * x.scale, by_out = high / y.scale, by_relu = high / (3.0f / 32768.0f);
    const fixed_scale out = fixed_of((double)by_out), relu = fixed_of((double)by_relu);
    const swish s = {narrow(out.multiplier), narrow(relu.multiplier), out.shift, relu.shift, y.zero};
    if (out.shift > 0 || relu.shift > 15 || relu.shift < -31)
        return tflite_fail(n, DIAG_UNSUPPORTED, "the scales %g and %g are too far apart", (double)x.scale,
                           (double)y.scale);
    return tflite_result_as(n, 0, by_table(n, v, &x, &y, swish_entry, &s), image);
}

/* --- SOFTMAX --- */

/* exp of the 256 differences to the largest number of a row, 0 where that is told by no bit. */
static const tensor_data *exponents(compiler *c, double real)
{
    const int64_t count = 256;
    int32_t *t = arena_array(&c->mem, int32_t, (size_t)count);
    const double scaled = real * 0x1p26, top = 2147483647.0;
    const fixed_scale s = fixed_of(scaled < top ? scaled : top);
    const double radius = floor(ldexp(31.0, 26 - s.shift));
    for (int64_t i = 0; i < count; i++) {
        const int64_t d = i - 255;
        t[i] = (double)d < -radius ? 0 : fixed_exp(fixed_scaled((int32_t)d, s), 5);
    }
    return tensor_dense(c, DT_I32, 1, &count, t);
}

bool tflite_op_softmax(tflite_node *n)
{
    const tfl_softmax_options *o = n->options;
    graph_value *x = tflite_in(n, 0);
    tflite_scale in, out;
    if (!tflite_is_int(n, 0)) {
        x = o->beta == 1.0f ? x : tflite_binary(n, "multiply", x, tflite_number(n, DT_F32, (double)o->beta));
        const attr last = attr_int(n->c, "axis", -1);
        return tflite_result(n, 0, tflite_emit(n, "nn.softmax", 1, &x, 1, &last));
    }
    if (!read_scales(n, &in, &out))
        return false;
    if (out.dt != in.dt || out.scale != 1.0f / 256 || out.zero != dtype_min_int(out.dt))
        return tflite_fail(n, DIAG_UNSUPPORTED, "its result must be %s with the scale 1/256 and the zero point %lld",
                           dtype_name(in.dt), (long long)dtype_min_int(in.dt));
    if (!(o->beta > 0))
        return tflite_fail(n, DIAG_FORMAT, "beta is not above 0");
    graph_value *pair[2] = {x, tflite_const(n, exponents(n->c, (double)o->beta * (double)in.scale), "exponents")};
    return tflite_result(n, 0, tflite_emit(n, "qnn.softmax_fixed", 2, pair, 0, NULL));
}

/* --- QUANTIZE, DEQUANTIZE, CAST --- */

static bool scaled_as(const tflite_scale *x, const tflite_scale *y)
{
    return x->scale == y->scale && x->zero == y->zero && x->dt == y->dt;
}

static bool requantize_bytes(tflite_node *n, graph_value *v, bool image)
{
    tflite_scale x, y;
    if (!read_scales(n, &x, &y))
        return false;
    const rescaled r = {.up = fixed_of((double)x.scale / (double)y.scale),
                        .down = fixed_of((double)x.scale / (double)y.scale),
                        .zero = y.zero,
                        .low = dtype_min_int(y.dt),
                        .high = dtype_max_int(y.dt)};
    if (dtype_bits(x.dt) != 8 || dtype_bits(y.dt) != 8)
        return tflite_fail(n, DIAG_UNSUPPORTED, "%s to %s is not supported yet", dtype_name(x.dt), dtype_name(y.dt));
    graph_value *same = scaled_as(&x, &y) ? tflite_unary(n, "copy", v) : NULL;
    return tflite_result_as(n, 0, same ? same : by_table(n, v, &x, &y, rescaled_entry, &r), image);
}

bool tflite_op_quantize(tflite_node *n)
{
    graph_value *v;
    bool image;
    tflite_scale y;
    if (!tflite_in_one_form(n, 1, &v, &image))
        return false;
    if (tflite_is_int(n, 0))
        return requantize_bytes(n, v, image);
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
    if (t->type.dt != DT_F16 && q && q->scale.len > 1) {
        int64_t extent, dims = q->scale.len;
        graph_value *in[2] = {tflite_in(n, 0), NULL};
        if (n->failed || q->quantized_dimension < 0 || q->quantized_dimension >= t->type.shape.rank)
            return tflite_fail(n, DIAG_FORMAT, "its scales are of an axis that is not there");
        if (!tflite_extent(n, in[0], (uint32_t)q->quantized_dimension, &extent) ||
            !tflite_read_scales(n, 0, q->quantized_dimension, extent, &scales))
            return false;
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
