/* SPDX-License-Identifier: Apache-2.0 */
/* From sums to the result's numbers, and fused activations. A scale becomes a multiplier of 31 bits and a shift, as
 * TensorFlow Lite Micro prepares it; the graph operator qnn.rescale rounds behind the product and behind the shift. */
#include "frontend/tflite/tflite_fixed.h"
#include "frontend/tflite/tflite_import.h"

#include <math.h>

/* 0: not known, or beyond 32 bits. */
static attr most_sum(compiler *c, double most)
{
    return attr_int(c, "most_sum", most <= INT32_MAX ? (int64_t)most : 0);
}

graph_value *tflite_requantised(tflite_node *n, graph_value *sums, uint32_t count, const double *real, int64_t axis,
                                double most)
{
    compiler *c = n->c;
    const int64_t dims = count;
    const uint32_t rank = count == 1 ? 0 : 1;
    int32_t *m = arena_array(&c->mem, int32_t, count), *s = arena_array(&c->mem, int32_t, count), top = INT32_MIN;
    tflite_scale y;
    if (!tflite_read_scale(n, TFLITE_RESULT, &y))
        return &n->im->nothing;
    const bool wide = !n->failed && sums->type.dt == DT_I64;
    for (uint32_t i = 0; i < count; i++) {
        const fixed_scale f = fixed_of(real[i]);
        m[i] = wide ? fixed_narrow(f.multiplier) : f.multiplier;
        s[i] = f.shift;
        if (wide && f.shift > 7) /* the kernels stop there, too */
            (void)tflite_fail(n, DIAG_UNSUPPORTED, "the result's scale is more than 2^7 times smaller than the sums'");
        top = s[i] > top ? s[i] : top;
    }
    graph_value *in[4] = {sums, tflite_const(n, tensor_dense(c, DT_I32, rank, &dims, m), "multiplier"),
                          tflite_const(n, tensor_dense(c, DT_I32, rank, &dims, s), "shift"), tflite_zero(n, &y)};
    const attr attrs[4] = {attr_int(c, "axis", axis), attr_dtype(c, "out_dtype", y.dt),
                           attr_int(c, "up", ldexp(most, top) > 0x1p30), most_sum(c, most)};
    return tflite_emit(n, "qnn.rescale", 4, in, 4, attrs);
}

graph_value *tflite_i32(tflite_node *n, int64_t v)
{
    return tflite_const(n, tensor_scalar_i64(n->c, DT_I32, v), "");
}

graph_value *tflite_centered(tflite_node *n, graph_value *v, const tflite_scale *s)
{
    v = tflite_cast(n, v, DT_I32);
    return s->zero == 0 ? v : tflite_binary(n, "subtract", v, tflite_i32(n, s->zero));
}

graph_value *tflite_rescaled(tflite_node *n, graph_value *x, double real, double most, const tflite_scale *y)
{
    compiler *c = n->c;
    const fixed_scale f = fixed_of(real);
    const tflite_scale bare = {.dt = DT_I32};
    const bool wide = !n->failed && x->type.dt == DT_I64;
    y = y ? y : &bare;
    if (wide && f.shift > 7)
        (void)tflite_fail(n, DIAG_UNSUPPORTED, "the result's scale is more than 2^7 times smaller than the sums'");
    graph_value *in[4] = {x, tflite_i32(n, wide ? fixed_narrow(f.multiplier) : f.multiplier), tflite_i32(n, f.shift),
                          tflite_zero(n, y)};
    const attr attrs[3] = {attr_dtype(c, "out_dtype", y->dt), attr_int(c, "up", ldexp(most, f.shift) > 0x1p30),
                           most_sum(c, most)};
    return tflite_emit(n, "qnn.rescale", 4, in, 3, attrs);
}

graph_value *tflite_clipped(tflite_node *n, graph_value *v, int64_t low, int64_t high, dtype dt)
{
    graph_value *in[3] = {v, tflite_i32(n, low), tflite_i32(n, high)};
    return tflite_cast(n, tflite_emit(n, "clip", 3, in, 0, NULL), dt);
}

static graph_value *real_number(tflite_node *n, double v)
{
    return tflite_number(n, DT_F64, v);
}

graph_value *tflite_requantised_real(tflite_node *n, graph_value *sums, uint32_t count, const double *real)
{
    const int64_t dims = count;
    tflite_scale y;
    if (!tflite_read_scale(n, TFLITE_RESULT, &y))
        return &n->im->nothing;
    graph_value *k = tflite_const(n, tensor_dense(n->c, DT_F64, count == 1 ? 0 : 1, &dims, real), "scale");
    graph_value *v = tflite_binary(n, "multiply", tflite_cast(n, sums, DT_F64), k), *amount = tflite_unary(n, "abs", v);
    graph_value *whole = tflite_unary(n, "floor", amount), *rest = tflite_binary(n, "subtract", amount, whole);
    graph_value *up = tflite_cast(n, tflite_binary(n, "greater_equal", rest, real_number(n, 0.5)), DT_F64);
    v = tflite_binary(n, "multiply", tflite_binary(n, "add", whole, up), tflite_unary(n, "sign", v));
    v = tflite_binary(n, "add", v, real_number(n, (double)y.zero));
    graph_value *in[3] = {v, real_number(n, (double)dtype_min_int(y.dt)), real_number(n, (double)dtype_max_int(y.dt))};
    return tflite_cast(n, tflite_emit(n, "clip", 3, in, 0, NULL), y.dt);
}

bool tflite_like_litert(const tflite_node *n)
{
    return n->im->o && n->im->o->like_litert;
}

double tflite_factor(bool in_32_bits, float a, float b, float y)
{
    const float product = a * b, narrow = product / y;
    return in_32_bits ? (double)narrow : (double)a * (double)b / (double)y;
}

/* --- fused activations --- */

enum { ACT_NONE, ACT_RELU, ACT_RELU_N1_TO_1, ACT_RELU6, ACT_TANH, ACT_SIGN_BIT };

int64_t tflite_rounded(float v)
{
    const float y = roundf(v);
    return y >= 0x1p31f ? INT32_MAX : y >= -0x1p31f ? (int64_t)y : INT32_MIN;
}

/* A bound in the result's numbers. */
static int64_t quantised(const tflite_scale *s, float bound)
{
    return s->zero + tflite_rounded(bound / s->scale);
}

static graph_value *clipped_numbers(tflite_node *n, graph_value *v, int64_t activation)
{
    tflite_scale y;
    const dtype dt = v->type.dt;
    if (!tflite_read_scale(n, TFLITE_RESULT, &y))
        return v;
    const int64_t least = dtype_min_int(dt), greatest = dtype_max_int(dt);
    int64_t low = quantised(&y, activation == ACT_RELU_N1_TO_1 ? -1.0f : 0.0f);
    int64_t high = activation == ACT_RELU ? greatest : quantised(&y, activation == ACT_RELU6 ? 6.0f : 1.0f);
    low = low < least ? least : low > greatest ? greatest : low;
    high = high > greatest ? greatest : high < least ? least : high;
    if (low == least && high == greatest)
        return v;
    graph_value *in[3] = {v, low > least ? tflite_number(n, dt, (double)low) : NULL,
                          high < greatest ? tflite_number(n, dt, (double)high) : NULL};
    return tflite_emit(n, "clip", 3, in, 0, NULL);
}

graph_value *tflite_activated(tflite_node *n, graph_value *v, int64_t activation)
{
    const bool is_float = dtype_is_float(v->type.dt);
    const bool is_narrow = dtype_is_int(v->type.dt) && dtype_bits(v->type.dt) <= 16;
    if (n->failed || activation == ACT_NONE)
        return v;
    if (activation < 0 || activation > ACT_SIGN_BIT)
        (void)tflite_fail(n, DIAG_FORMAT, "no fused activation has the code %lld", (long long)activation);
    else if (activation == ACT_SIGN_BIT || (activation == ACT_TANH && !is_float))
        (void)tflite_fail(n, DIAG_UNSUPPORTED, "this fused activation is not supported yet");
    else if (activation == ACT_TANH)
        return tflite_unary(n, "tanh", v);
    else if (is_narrow)
        return clipped_numbers(n, v, activation);
    if (activation == ACT_RELU)
        return tflite_unary(n, "nn.relu", v);
    const double low = activation == ACT_RELU_N1_TO_1 ? -1 : 0, high = activation == ACT_RELU6 ? 6 : 1;
    graph_value *in[3] = {v, tflite_number(n, v->type.dt, low), tflite_number(n, v->type.dt, high)};
    return tflite_emit(n, "clip", 3, in, 0, NULL);
}
