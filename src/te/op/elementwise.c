/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definitions of element-wise operators. Each is a function from scalar expressions to a scalar expression; two
 * drivers make the stage, one for a single input and one for broadcasting inputs. Float functions of f16 and bf16 are
 * evaluated in f32 and rounded once at the end. */
#include "te/op/util.h"

#include <math.h>
#include <string.h>

typedef struct ew {
    te_graph *g;
    compiler *c;
    const graph_node *n;
    te_tensor *const *in;
    dtype dt; /* of arithmetic: input 0's, f16 and bf16 widened */
    const type *out;
    tir_expr_ref const *extents; /* of the result */
    tir_expr_ref (*fn)(const struct ew *e, tir_expr_ref const *x);
} ew;

static tir_expr_ref ew_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const ew *e = ctx;
    tir_expr_ref x[4] = {0};
    for (uint32_t i = 0; i < e->n->n_inputs; i++) {
        if (!e->in[i])
            continue;
        x[i] = te_read_broadcast(g, e->in[i], (uint32_t)e->out->shape.rank, e->extents, idx);
        x[i] = tir_cast(e->c, te_acc_dtype(e->in[i]->dt), x[i]);
    }
    return tir_cast(e->c, e->out->dt, e->fn(e, x));
}

static bool elementwise(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out,
                        tir_expr_ref (*fn)(const ew *, tir_expr_ref const *))
{
    ew e = {.g = g, .c = g->c, .n = n, .in = in, .dt = te_acc_dtype(in[0]->dt), .out = te_out_type(n, 0), .fn = fn};
    uint32_t rank = (uint32_t)e.out->shape.rank;
    e.extents = te_shape(g, e.out);
    out[0] = te_compute(g, n->op->name, e.out->dt, rank, e.extents, ew_body, &e);
    out[0]->node->inline_hint = true;
    return true;
}

/* --- small vocabulary for the definitions below
 * --------------------------------------------------------------------------- */

static tir_expr_ref num(const ew *e, double v)
{
    return tir_const(e->c, e->dt, v);
}
static tir_expr_ref bin(const ew *e, tir_op op, tir_expr_ref a, tir_expr_ref b)
{
    return tir_binary(e->c, op, a, b);
}
static tir_expr_ref add(const ew *e, tir_expr_ref a, tir_expr_ref b)
{
    return bin(e, TIR_ADD, a, b);
}
static tir_expr_ref sub(const ew *e, tir_expr_ref a, tir_expr_ref b)
{
    return bin(e, TIR_SUB, a, b);
}
static tir_expr_ref mul(const ew *e, tir_expr_ref a, tir_expr_ref b)
{
    return bin(e, TIR_MUL, a, b);
}
static tir_expr_ref quot(const ew *e, tir_expr_ref a, tir_expr_ref b)
{
    return bin(e, TIR_DIV, a, b);
}
static tir_expr_ref call(const ew *e, tir_op op, tir_expr_ref a)
{
    return tir_call1(e->c, op, a);
}
static tir_expr_ref sel(const ew *e, tir_expr_ref p, tir_expr_ref a, tir_expr_ref b)
{
    return tir_select(e->c, p, a, b);
}
static tir_expr_ref attr_num(const ew *e, const char *name)
{
    return num(e, graph_attr_float(e->n, name));
}
static tir_expr_ref positive(const ew *e, tir_expr_ref x)
{
    return bin(e, TIR_GT, x, num(e, 0));
}

/* The hook compute_NAME with `x` the scalar inputs and `e` the context. */
#define DEFINE(name, ...)                                                                        \
    static tir_expr_ref ew_##name(const ew *e, tir_expr_ref const *x)                            \
    {                                                                                            \
        (void)e;                                                                                 \
        return __VA_ARGS__;                                                                      \
    }                                                                                            \
    bool compute_##name(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out) \
    {                                                                                            \
        return elementwise(g, n, in, out, ew_##name);                                            \
    }

/* --- one input
 * -------------------------------------------------------------------------------------------------------------- */

static tir_expr_ref absolute(const ew *e, tir_expr_ref x)
{
    if (dtype_is_float(e->dt))
        return call(e, TIR_FABS, x);
    return dtype_is_signed(e->dt) ? sel(e, bin(e, TIR_LT, x, num(e, 0)), sub(e, num(e, 0), x), x) : x;
}

/* -x keeps the sign of zero; integers wrap */
static tir_expr_ref negated(const ew *e, tir_expr_ref x)
{
    return dtype_is_float(e->dt) ? mul(e, x, num(e, -1)) : sub(e, num(e, 0), x);
}

static tir_expr_ref rounded(const ew *e, tir_op op, tir_expr_ref x)
{
    return dtype_is_float(e->dt) ? call(e, op, x) : x;
}

static tir_expr_ref sign_of(const ew *e, tir_expr_ref x)
{
    tir_expr_ref low = dtype_is_signed(e->dt)
                           ? sel(e, bin(e, TIR_LT, x, num(e, 0)), num(e, -1), dtype_is_float(e->dt) ? x : num(e, 0))
                           : num(e, 0);
    return sel(e, positive(e, x), num(e, 1), low); /* zero and NaN pass through */
}

/* log(1 + exp(x)) without overflow */
static tir_expr_ref softplus_of(const ew *e, tir_expr_ref x)
{
    tir_expr_ref tail = call(e, TIR_LOG1P, call(e, TIR_DECAY, mul(e, call(e, TIR_FABS, x), num(e, -1))));
    return add(e, tail, bin(e, TIR_MAX, x, num(e, 0)));
}

/* 1 / (1 + exp(-x)); exp overflows to infinity and gives 0, as it should */
static tir_expr_ref sigmoid_of(const ew *e, tir_expr_ref x)
{
    return quot(e, num(e, 1), add(e, num(e, 1), call(e, TIR_EXP, mul(e, x, num(e, -1)))));
}

static tir_expr_ref hard_sigmoid_of(const ew *e, tir_expr_ref x, double alpha, double beta)
{
    tir_expr_ref y = add(e, mul(e, x, num(e, alpha)), num(e, beta));
    return bin(e, TIR_MAX, num(e, 0), bin(e, TIR_MIN, num(e, 1), y));
}

DEFINE(copy, x[0])
DEFINE(abs, absolute(e, x[0]))
DEFINE(negative, negated(e, x[0]))
DEFINE(exp, call(e, TIR_EXP, x[0]))
DEFINE(log, call(e, TIR_LOG, x[0]))
DEFINE(sqrt, call(e, TIR_SQRT, x[0]))
DEFINE(reciprocal, quot(e, num(e, 1), x[0]))
DEFINE(floor, rounded(e, TIR_FLOOR, x[0]))
DEFINE(ceil, rounded(e, TIR_CEIL, x[0]))
DEFINE(round, rounded(e, TIR_RINT, x[0]))
DEFINE(sign, sign_of(e, x[0]))
DEFINE(sin, call(e, TIR_SIN, x[0]))
DEFINE(cos, call(e, TIR_COS, x[0]))
DEFINE(tan, call(e, TIR_TAN, x[0]))
DEFINE(asin, call(e, TIR_ASIN, x[0]))
DEFINE(acos, call(e, TIR_ACOS, x[0]))
DEFINE(atan, call(e, TIR_ATAN, x[0]))
DEFINE(sinh, call(e, TIR_SINH, x[0]))
DEFINE(cosh, call(e, TIR_COSH, x[0]))
DEFINE(tanh, call(e, TIR_TANH, x[0]))
DEFINE(asinh, call(e, TIR_ASINH, x[0]))
DEFINE(acosh, call(e, TIR_ACOSH, x[0]))
DEFINE(atanh, call(e, TIR_ATANH, x[0]))
DEFINE(erf, call(e, TIR_ERF, x[0]))
DEFINE(sigmoid, sigmoid_of(e, x[0]))
DEFINE(relu, bin(e, TIR_MAX, x[0], num(e, 0)))
DEFINE(softplus, softplus_of(e, x[0]))
DEFINE(softsign, quot(e, x[0], add(e, num(e, 1), call(e, TIR_FABS, x[0]))))

/* x tanh(log(1 + e^x)): tanh(log u) is (u^2 - 1) / (u^2 + 1), which is 1 from e^20 on. */
static tir_expr_ref mish_of(const ew *e, tir_expr_ref x)
{
    tir_expr_ref power = call(e, TIR_EXP, bin(e, TIR_MIN, x, num(e, 20)));
    tir_expr_ref part = mul(e, power, add(e, power, num(e, 2)));
    return mul(e, x, quot(e, part, add(e, part, num(e, 2))));
}
DEFINE(mish, mish_of(e, x[0]))
DEFINE(hard_swish, mul(e, x[0], hard_sigmoid_of(e, x[0], 1.0 / 6.0, 0.5)))
DEFINE(logical_not, tir_not(e->c, tir_cast(e->c, DT_BOOL, x[0])))
/* Bits up to the highest 1: one for each power of two that x reaches. */
static tir_expr_ref bit_length_of(const ew *e, tir_expr_ref x)
{
    tir_expr_ref many = num(e, 0), from_zero = dtype_is_signed(e->dt) ? bin(e, TIR_MAX, x, num(e, 0)) : x;
    const uint32_t bits = dtype_bits(e->dt) - (dtype_is_signed(e->dt) ? 1 : 0);
    for (uint32_t k = 0; k < bits; k++) {
        tir_expr_ref rest = k == 0 ? from_zero : bin(e, TIR_SHR, from_zero, num(e, k));
        many = add(e, many, tir_cast(e->c, e->dt, bin(e, TIR_NE, rest, num(e, 0))));
    }
    return many;
}

DEFINE(bit_length, bit_length_of(e, x[0]))
DEFINE(bitwise_not, tir_call1(e->c, TIR_BITNOT, x[0]))
DEFINE(isnan, call(e, TIR_ISNAN, x[0]))
DEFINE(leaky_relu, sel(e, bin(e, TIR_LT, x[0], num(e, 0)), mul(e, x[0], attr_num(e, "alpha")), x[0]))
DEFINE(elu, sel(e, bin(e, TIR_LT, x[0], num(e, 0)), mul(e, attr_num(e, "alpha"), call(e, TIR_EXPM1, x[0])), x[0]))
DEFINE(selu, mul(e, attr_num(e, "gamma"),
                 sel(e, positive(e, x[0]), x[0], mul(e, attr_num(e, "alpha"), call(e, TIR_EXPM1, x[0])))))
DEFINE(celu, add(e, bin(e, TIR_MAX, x[0], num(e, 0)),
                 bin(e, TIR_MIN, num(e, 0),
                     mul(e, attr_num(e, "alpha"), call(e, TIR_EXPM1, quot(e, x[0], attr_num(e, "alpha")))))))
DEFINE(hard_sigmoid, hard_sigmoid_of(e, x[0], graph_attr_float(e->n, "alpha"), graph_attr_float(e->n, "beta")))
DEFINE(thresholded_relu, sel(e, bin(e, TIR_GT, x[0], attr_num(e, "alpha")), x[0], num(e, 0)))
DEFINE(swish, mul(e, x[0], sigmoid_of(e, mul(e, x[0], attr_num(e, "alpha")))))
DEFINE(cast, x[0])

/* Shrink: x + bias below -lambd, x - bias above lambd, else 0 */
static tir_expr_ref shrink_of(const ew *e, tir_expr_ref x)
{
    double l = graph_attr_float(e->n, "lambd"), b = graph_attr_float(e->n, "bias");
    dtype f = dtype_is_float(e->dt) ? e->dt : DT_F32;
    tir_expr_ref v = tir_cast(e->c, f, x), zero = tir_const(e->c, f, 0);
    tir_expr_ref above = sel(e, bin(e, TIR_GT, v, tir_const(e->c, f, l)), sub(e, v, tir_const(e->c, f, b)), zero);
    return sel(e, bin(e, TIR_LT, v, tir_const(e->c, f, -l)), add(e, v, tir_const(e->c, f, b)), above);
}
DEFINE(shrink, shrink_of(e, x[0]))

/* 0.5 x (1 + erf(x / sqrt 2)), or its tanh form (ONNX Gelu) */
static tir_expr_ref gelu_of(const ew *e, tir_expr_ref x)
{
    tir_expr_ref inner;
    if (strcmp(graph_attr_string(e->n, "approximate"), "tanh") == 0) {
        tir_expr_ref cube = mul(e, mul(e, x, x), x);
        inner = call(e, TIR_TANH,
                     mul(e, num(e, sqrt(2.0 / 3.14159265358979323846)), add(e, x, mul(e, num(e, 0.044715), cube))));
    } else {
        inner = call(e, TIR_ERF, mul(e, x, num(e, sqrt(0.5))));
    }
    return mul(e, mul(e, num(e, 0.5), x), add(e, num(e, 1), inner));
}
DEFINE(gelu, gelu_of(e, x[0]))

static tir_expr_ref isinf_of(const ew *e, tir_expr_ref x)
{
    bool neg = graph_attr_int(e->n, "detect_negative") != 0, pos = graph_attr_int(e->n, "detect_positive") != 0;
    if (neg && pos)
        return call(e, TIR_ISINF, x);
    if (!neg && !pos)
        return tir_int(e->c, DT_BOOL, 0);
    return tir_and(e->c, call(e, TIR_ISINF, x), bin(e, neg ? TIR_LT : TIR_GT, x, num(e, 0)));
}
DEFINE(isinf, isinf_of(e, x[0]))

/* --- several inputs
 * ------------------------------------------------------------------------------------------------------------ */

/* min(max(x, lo), hi), so that hi wins when lo > hi (ONNX Clip) */
static tir_expr_ref clip_of(const ew *e, tir_expr_ref const *x)
{
    tir_expr_ref y = e->n->n_inputs > 1 && x[1] ? bin(e, TIR_MAX, x[0], x[1]) : x[0];
    return e->n->n_inputs > 2 && x[2] ? bin(e, TIR_MIN, y, x[2]) : y;
}

/* Integer powers stay exact for integer bases through f64 (53 bits); a small constant exponent becomes products. */
static tir_expr_ref power_of(const ew *e, tir_expr_ref const *x)
{
    const tensor_data *k = graph_constant(e->n->inputs[1]);
    double v = k && k->count == 1 ? tensor_get_f64(k, 0) : 0.5;
    if (dtype_is_float(e->dt) && k && k->count == 1 && (v == 1.0 || v == 2.0 || v == 3.0)) {
        tir_expr_ref sq = mul(e, x[0], x[0]);
        return v == 1.0 ? x[0] : v == 2.0 ? sq : mul(e, sq, x[0]);
    }
    dtype f = e->dt == DT_F32 ? DT_F32 : DT_F64;
    return tir_call(e->c, TIR_POW, 2, (tir_expr_ref[]){tir_cast(e->c, f, x[0]), tir_cast(e->c, f, x[1])});
}

/* fmod 0 is Python's modulo (sign of the divisor), fmod 1 C's. */
static tir_expr_ref mod_of(const ew *e, tir_expr_ref const *x)
{
    bool c_mod = graph_attr_int(e->n, "fmod") != 0;
    if (!dtype_is_float(e->dt))
        return bin(e, c_mod ? TIR_MOD : TIR_FLOORMOD, x[0], x[1]);
    tir_expr_ref r = tir_call(e->c, TIR_FMOD, 2, x);
    if (c_mod)
        return r;
    tir_expr_ref differs = bin(e, TIR_LT, mul(e, r, x[1]), num(e, 0));
    return sel(e, differs, add(e, r, x[1]), r);
}

static tir_expr_ref as_bool(const ew *e, tir_expr_ref x)
{
    return tir_cast(e->c, DT_BOOL, x);
}

/* Shifts by the width or more, or by a negative number, leave what fills the value from the side: to the right the sign
 * of signed types, else 0 (BitShift-28). */
static tir_expr_ref shift_of(const ew *e, tir_op op, tir_expr_ref const *x)
{
    const uint32_t bits = dtype_bits(e->dt);
    const bool is_signed = dtype_is_signed(e->dt);
    tir_expr_ref fits = bin(e, TIR_LT, x[1], num(e, bits));
    if (is_signed)
        fits = bin(e, TIR_AND, fits, bin(e, TIR_GE, x[1], num(e, 0)));
    if (is_signed && op == TIR_SHR)
        return bin(e, op, x[0], sel(e, fits, x[1], num(e, bits - 1)));
    return sel(e, fits, bin(e, op, x[0], sel(e, fits, x[1], num(e, 0))), num(e, 0));
}

DEFINE(clip, clip_of(e, x))
DEFINE(add, add(e, x[0], x[1]))
DEFINE(subtract, sub(e, x[0], x[1]))
DEFINE(multiply, mul(e, x[0], x[1]))
DEFINE(divide, quot(e, x[0], x[1]))
DEFINE(power, power_of(e, x))
DEFINE(mod, mod_of(e, x))
DEFINE(maximum, bin(e, TIR_MAX, x[0], x[1]))
DEFINE(minimum, bin(e, TIR_MIN, x[0], x[1]))
DEFINE(equal, bin(e, TIR_EQ, x[0], x[1]))
DEFINE(not_equal, bin(e, TIR_NE, x[0], x[1]))
DEFINE(less, bin(e, TIR_LT, x[0], x[1]))
DEFINE(less_equal, bin(e, TIR_LE, x[0], x[1]))
DEFINE(greater, bin(e, TIR_GT, x[0], x[1]))
DEFINE(greater_equal, bin(e, TIR_GE, x[0], x[1]))
DEFINE(logical_and, bin(e, TIR_AND, as_bool(e, x[0]), as_bool(e, x[1])))
DEFINE(logical_or, bin(e, TIR_OR, as_bool(e, x[0]), as_bool(e, x[1])))
DEFINE(logical_xor, bin(e, TIR_NE, as_bool(e, x[0]), as_bool(e, x[1])))
DEFINE(bitwise_and, bin(e, TIR_BITAND, x[0], x[1]))
DEFINE(bitwise_or, bin(e, TIR_BITOR, x[0], x[1]))
DEFINE(bitwise_xor, bin(e, TIR_BITXOR, x[0], x[1]))
DEFINE(left_shift, shift_of(e, TIR_SHL, x))
DEFINE(right_shift, shift_of(e, TIR_SHR, x))
DEFINE(prelu, sel(e, bin(e, TIR_LT, x[0], num(e, 0)), mul(e, x[0], x[1]), x[0]))

/* where: the condition is input 0, so arithmetic types come from the values */
static tir_expr_ref ew_where(const ew *e, tir_expr_ref const *x)
{
    return sel(e, as_bool(e, x[0]), x[1], x[2]);
}
bool compute_where(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return elementwise(g, n, in, out, ew_where);
}
