/* SPDX-License-Identifier: Apache-2.0 */
/* SOFTMAX and its like, along the last axis: in floats, and in fixed point. */
#include "frontend/tflite/tflite_compose.h"
#include "frontend/tflite/tflite_fixed.h"

#include <math.h>

/* --- SOFTMAX --- */

/* exp of the 256 differences to the largest number of a row, 0 where that is told by no bit; without those before the
 * last 0 if they are `few`. */
static const tensor_data *exponents(compiler *c, double real, bool few)
{
    int64_t count = 256, first = 0;
    int32_t *t = arena_array(&c->mem, int32_t, (size_t)count);
    const double scaled = real * 0x1p26, top = 2147483647.0;
    const fixed_scale s = fixed_of(scaled < top ? scaled : top);
    const double radius = floor(ldexp(31.0, 26 - s.shift));
    for (int64_t i = 0; i < count; i++) {
        const int64_t d = i - 255;
        t[i] = (double)d < -radius ? 0 : fixed_exp(fixed_scaled((int32_t)d, s), 5);
        first = few && t[i] == 0 ? i : first;
    }
    count -= first;
    return tensor_dense(c, DT_I32, 1, &count, t + first);
}

static double exp_of(double x, bool narrow)
{
    return narrow ? (double)expf((float)x) : exp(x);
}

static double inverse_of(double x, bool narrow)
{
    return tflite_as_wide(1 / tflite_as_wide(1 + x, narrow), narrow);
}

/* From steps of in / 65535 to those of 2 / 65535, which TensorFlow Lite Micro divides in f32. */
static graph_value *on_pieces(tflite_node *n, tflite_piece_fn fn, bool narrow, double in, double in_zero,
                              graph_value *v)
{
    const double out = tflite_as_wide(2.0 / 65535.0, narrow);
    const tflite_pieces p = {fn, tflite_as_wide(in / 65535.0, narrow), in_zero, out, 0, narrow};
    return tflite_on_pieces(n, &p, v);
}

static graph_value *over_rows(tflite_node *n, const char *op, graph_value *x)
{
    const int64_t last = -1;
    const attr attrs[2] = {attr_ints(n->c, "axes", 1, &last), attr_int(n->c, "keepdims", 1)};
    return tflite_emit(n, op, 1, &x, 2, attrs);
}

/* Of 16 bits: exponentials on pieces, their sum without its leading zeros, its reciprocal on other pieces. */
static graph_value *wide_softmax(tflite_node *n, graph_value *x, float scale, float beta)
{
    const double step = 10.0 / 65535.0;
    const bool micro = !tflite_like_litert(n);
    const float product = scale * beta;
    const double scaled = micro ? (double)scale * (double)beta : (double)product;
    graph_value *numbers = tflite_cast(n, x, DT_I32), *none = tflite_i32(n, 0);
    graph_value *down = tflite_binary(n, "subtract", numbers, over_rows(n, "max", numbers));
    down = tflite_binary(n, "add", tflite_rescaled(n, down, scaled / step, 65536, NULL), tflite_i32(n, 32767));
    down = tflite_clipped(n, down, INT16_MIN, INT16_MAX, DT_I32);
    graph_value *e = on_pieces(n, exp_of, micro, 10, 32767, down);
    graph_value *sum = over_rows(n, "sum", e), *zeros = none;
    for (int bits = 16; bits > 0; bits /= 2) { /* leading zeros go, by halves */
        graph_value *low = tflite_binary(n, "less", sum, tflite_i32(n, (int64_t)1 << (31 - bits)));
        graph_value *by = tflite_binary(n, "multiply", tflite_cast(n, low, DT_I32), tflite_i32(n, bits));
        sum = tflite_binary(n, "left_shift", sum, by);
        zeros = tflite_binary(n, "add", zeros, by);
    }
    graph_value *t = compose_down(n, tflite_binary(n, "add", sum, tflite_i32(n, 1 << 13)), 14);
    t = tflite_clipped(n, tflite_binary(n, "subtract", t, tflite_i32(n, 98304)), INT16_MIN, INT16_MAX, DT_I32);
    graph_value *inverse = on_pieces(n, inverse_of, micro, 1, INT16_MIN, t);
    graph_value *right = tflite_binary(n, "subtract", tflite_i32(n, 30), zeros);
    graph_value *half = tflite_binary(n, "left_shift", tflite_i32(n, 1),
                                      tflite_binary(n, "subtract", tflite_i32(n, 29), zeros));
    graph_value *y = tflite_binary(n, "add", tflite_binary(n, "multiply", e, inverse), half);
    return tflite_clipped(n, tflite_binary(n, "right_shift", y, right), 0, INT16_MAX, DT_I16);
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
    if (!(tflite_read_scale(n, 0, &in) && tflite_read_scale(n, TFLITE_RESULT, &out)))
        return false;
    const bool to_wide = in.dt == DT_I8 && out.dt == DT_I16;
    const float steps = to_wide ? 65536 : in.dt == DT_I16 ? 32768 : 256;
    const int64_t least = in.dt == DT_I16 ? 0 : dtype_min_int(out.dt);
    if ((out.dt != in.dt && !to_wide) || out.scale != 1 / steps || out.zero != least)
        return tflite_fail(n, DIAG_UNSUPPORTED, "its result must be %s with the scale 1/%g and the zero point %lld",
                           dtype_name(to_wide ? out.dt : in.dt), (double)steps, (long long)least);
    if (!(o->beta > 0))
        return tflite_fail(n, DIAG_FORMAT, "beta is not above 0");
    if (in.dt == DT_I16)
        return tflite_result(n, 0, wide_softmax(n, x, in.scale, o->beta));
    const attr as = attr_dtype(n->c, "out_dtype", out.dt);
    graph_value *pair[2] = {x, tflite_const(n, exponents(n->c, (double)o->beta * (double)in.scale, true), "exponents")};
    return tflite_result(n, 0, tflite_emit(n, "qnn.softmax_fixed", 2, pair, to_wide, &as));
}

/* --- LOG_SOFTMAX --- */

enum { IN_BITS = 5, SUM_BITS = 12, OUT_BITS = 4, SUM_ROOM = IN_BITS + 1 }; /* before the point */

/* 1 / (1 + a), Q0.31: three steps of Newton's method, fixed_reciprocal's on numbers of the run. */
static graph_value *inverse_of_sum(tflite_node *n, graph_value *a)
{
    graph_value *half = compose_down(n, compose_by(n, "add", a, INT64_C(1) << 31), 1);
    graph_value *x = compose_product(n, half, compose_number(n, DT_I64, -1010580540)); /* -32/17 */
    x = compose_by(n, "add", x, 1515870810);                                          /* 48/17 */
    for (int i = 0; i < 3; i++) {
        graph_value *error = compose_by(n, "multiply", compose_product(n, half, x), -1);
        error = compose_product(n, x, compose_by(n, "add", error, 1 << 29));
        x = tflite_binary(n, "add", x, compose_saturated_left(n, error, 2));
    }
    return compose_saturated_left(n, x, 1);
}

static graph_value *by_constant(tflite_node *n, graph_value *x, int64_t v)
{
    return compose_product(n, x, compose_number(n, DT_I64, v));
}

/* log of r near 2^(-1/4), Q0.31: a quotient of two polynomials in the distance, with SUM_ROOM. */
static graph_value *log_near(tflite_node *n, graph_value *r)
{
    const int64_t middle = 1805811301; /* 2^(-1/4); the others are its kernel's constants */
    graph_value *p = compose_down(n, compose_by(n, "add", r, middle + 1), 1);
    graph_value *q = compose_by(n, "multiply", compose_by(n, "add", r, -middle), 2);
    graph_value *square = compose_product(n, q, q);
    graph_value *above = by_constant(n, compose_product(n, q, square), 117049297);
    above = tflite_binary(n, "add", compose_product(n, q, r), above);
    graph_value *below = tflite_binary(n, "add", compose_by(n, "add", q, 1057819769),
                                       by_constant(n, square, 127690142));
    below = tflite_binary(n, "add", compose_product(n, p, below), by_constant(n, q, 638450708));
    return compose_product(n, compose_divided(n, above, SUM_ROOM), inverse_of_sum(n, below));
}

/* log of sums from 1 on, with IN_BITS: of the two powers of two around it the one whose rest is nearer. */
static graph_value *log_of_sum(tflite_node *n, graph_value *sum)
{
    const int64_t root = 1518500250, quarter = INT64_C(1) << (29 - SUM_ROOM), one = INT64_C(1) << (31 - SUM_ROOM);
    graph_value *bits, *bits_of_root, *power, *other;
    graph_value *a = compose_saturated_left(n, by_constant(n, compose_normalized(n, sum, &bits), root), 1);
    (void)compose_normalized(n, by_constant(n, sum, root), &bits_of_root);
    graph_value *b = compose_by(n, "minimum", tflite_binary(n, "left_shift", sum, bits_of_root), INT32_MAX);
    power = compose_by(n, "add", compose_by(n, "multiply", bits, -one), (SUM_BITS - 1) * one + quarter);
    other = compose_by(n, "add", compose_by(n, "multiply", bits_of_root, -one), SUM_BITS * one - quarter);
    power = by_constant(n, tflite_binary(n, "maximum", power, other), 1488522236); /* log 2 */
    return compose_saturated_left(n, tflite_binary(n, "add", power, log_near(n, tflite_binary(n, "minimum", a, b))), 1);
}

/* The kernel leaves out differences that no exponential tells of, and those whose logarithm is out of its range. */
static graph_value *log_softmax_of_numbers(tflite_node *n, graph_value *x, const tflite_scale *in, dtype dt)
{
    const int64_t count = 256;
    const double scaled = (double)in->scale * 0x1p26;
    const fixed_scale s = fixed_of(scaled < 2147483647.0 ? scaled : 2147483647.0);
    int64_t *distances = arena_array(&n->c->mem, int64_t, (size_t)count);
    for (int64_t i = 0; i < count; i++)
        distances[i] = fixed_scaled((int32_t)(i - 255), s);
    graph_value *numbers = tflite_cast(n, x, DT_I32);
    graph_value *down = tflite_binary(n, "subtract", numbers, over_rows(n, "max", numbers)), *at;
    at = compose_by(n, "add", down, 255);
    graph_value *e = tflite_const(n, exponents(n->c, (double)in->scale, false), "exponents");
    e = compose_divided(n, tflite_cast(n, compose_entry(n, e, at), DT_I64), SUM_BITS);
    graph_value *log = log_of_sum(n, over_rows(n, "sum", e));
    graph_value *least = tflite_cast(n, compose_by(n, "add", log, INT32_MIN), DT_I32);
    least = tflite_rescaled(n, least, ldexp(1, 31 - s.shift) / (double)s.multiplier, 0x1p31, NULL);
    least = compose_by(n, "maximum", least, -(int64_t)floor(ldexp(31.0, 26 - s.shift)) - 1);
    graph_value *y = tflite_const(n, tensor_dense(n->c, DT_I64, 1, &count, distances), "distances");
    y = tflite_binary(n, "subtract", compose_entry(n, y, at), log);
    y = compose_by(n, "add", compose_divided(n, y, 31 - IN_BITS - OUT_BITS), dtype_max_int(dt));
    y = compose_by(n, "minimum", compose_by(n, "maximum", y, dtype_min_int(dt)), dtype_max_int(dt));
    y = compose_chosen(n, tflite_binary(n, "greater", down, least), y, compose_number(n, DT_I64, dtype_min_int(dt)));
    return tflite_cast(n, y, dt);
}

bool tflite_op_log_softmax(tflite_node *n)
{
    graph_value *x = tflite_in(n, 0);
    const attr last = attr_int(n->c, "axis", -1);
    tflite_scale in, out;
    if (!tflite_is_int(n, 0))
        return tflite_result(n, 0, tflite_emit(n, "nn.log_softmax", 1, &x, 1, &last));
    if (!tflite_read_pair(n, &in, &out))
        return false;
    const int64_t most = dtype_max_int(out.dt);
    if (out.dt != in.dt || out.scale != 0.0625f || out.zero != most)
        return tflite_fail(n, DIAG_UNSUPPORTED, "its result must be %s with the scale 1/16 and the zero point %lld",
                           dtype_name(in.dt), (long long)most);
    return tflite_result(n, 0, log_softmax_of_numbers(n, x, &in, out.dt));
}
