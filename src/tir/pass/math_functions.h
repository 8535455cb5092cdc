/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of expand-math, a row each, and the words that they are written in (math_powers.c, math_angles.c). */
#ifndef LATHE_TIR_PASS_MATH_FUNCTIONS_H
#define LATHE_TIR_PASS_MATH_FUNCTIONS_H
#include "tir/build.h"
#include "tir/map.h"

typedef struct expander {
    compiler *c;
    bool scales;  /* vectors of 16 floats have an instruction for x * 2^n */
    tir_map done; /* calls of this statement -> what stands for them */
    tir_map seen; /* expressions of it whose loads are known */
    VEC(tir_expr_ref) loads; /* that happen whatever its conditions are */
    VEC(tir_stmt *) lets;
    bool near;        /* angles are below that of FAR_BITS, or their functions are not wanted: */
    tir_expr_ref far; /* the highest bit of these u32 says so; NULL: there are no angles */
} expander;

/* Bits of 2048, the angle of 1304 quarter turns. */
#define FAR_BITS 0x45000000

/* X(op, name, whether it is expanded in lanes alone): those that compute far angles in f64, which vectors do; a
 * processor that may have no such arithmetic is better off with its library. */
#define MATH_FUNCTIONS(X)                                                                                          \
    X(TIR_EXP, exp, false) X(TIR_DECAY, decay, false) X(TIR_EXPM1, expm1, false) X(TIR_LOG, log, false)            \
        X(TIR_LOG1P, log1p, false) X(TIR_ERF, erf, false) X(TIR_SINH, sinh, false) X(TIR_COSH, cosh, false)        \
            X(TIR_TANH, tanh, false) X(TIR_ASINH, asinh, false) X(TIR_ACOSH, acosh, false)                         \
                X(TIR_ATANH, atanh, false) X(TIR_SIN, sin, true) X(TIR_COS, cos, true) X(TIR_TAN, tan, true)       \
                    X(TIR_ASIN, asin, false) X(TIR_ACOS, acos, false) X(TIR_ATAN, atan, false)

#define X(op, name, lanes_only) tir_expr_ref math_##name(expander *x, tir_expr_ref a);
MATH_FUNCTIONS(X)
#undef X

/* 1 / (1 + exp(a)) */
tir_expr_ref math_one_by_1_and_exp(expander *x, tir_expr_ref a);

static inline tir_expr_ref f32(expander *x, double v)
{
    return tir_float(x->c, DT_F32, v);
}
static inline tir_expr_ref u32(expander *x, int64_t v)
{
    return tir_int(x->c, DT_U32, v);
}
static inline tir_expr_ref bin(expander *x, tir_op op, tir_expr_ref a, tir_expr_ref b)
{
    return tir_binary(x->c, op, a, b);
}
/* a * b + c */
static inline tir_expr_ref mul_add(expander *x, tir_expr_ref a, tir_expr_ref b, tir_expr_ref c)
{
    return bin(x, TIR_ADD, bin(x, TIR_MUL, a, b), c);
}
static inline tir_expr_ref bits(expander *x, tir_expr_ref a)
{
    return tir_call1(x->c, TIR_TO_BITS, a);
}
static inline tir_expr_ref from_bits(expander *x, tir_expr_ref a)
{
    return tir_call1(x->c, TIR_FROM_BITS, a);
}

/* A name for a value that is used more than once. */
static inline tir_expr_ref named(expander *x, const char *name, tir_expr_ref value)
{
    if (value->kind == TIR_VAR || value->kind == TIR_FLOAT)
        return value;
    const tir_var *v = tir_new_var(x->c, name, value->type);
    vec_push(&x->c->mem, &x->lets, tir_let(x->c, v, value, NULL));
    return tir_varref(x->c, v);
}

/* a where `bit`, 0 or 1, is set, else b: words, of which every processor with vectors makes masks. */
static inline tir_expr_ref where(expander *x, tir_expr_ref bit, tir_expr_ref a, tir_expr_ref b)
{
    tir_expr_ref mask = bin(x, TIR_SUB, u32(x, 0), bit), rest = named(x, "bits", bits(x, b));
    tir_expr_ref differ = bin(x, TIR_BITAND, bin(x, TIR_BITXOR, bits(x, a), rest), mask);
    return from_bits(x, bin(x, TIR_BITXOR, rest, differ));
}

/* NaN compares false and passes through. */
static inline tir_expr_ref at_most(expander *x, tir_expr_ref a, double limit)
{
    return tir_select(x->c, bin(x, TIR_GT, a, f32(x, limit)), f32(x, limit), a);
}
static inline tir_expr_ref at_least(expander *x, tir_expr_ref a, double limit)
{
    return tir_select(x->c, bin(x, TIR_LT, a, f32(x, limit)), f32(x, limit), a);
}

/* c[n-1] z^(n-1) + ... + c[0] */
static inline tir_expr_ref polynomial(expander *x, tir_expr_ref z, uint32_t n, const double *c)
{
    tir_expr_ref p = f32(x, c[n - 1]);
    for (uint32_t i = n - 1; i-- > 0;)
        p = mul_add(x, p, z, f32(x, c[i]));
    return p;
}

/* |a|, and y with the sign of a. */
static inline tir_expr_ref magnitude(expander *x, tir_expr_ref a)
{
    return named(x, "abs", from_bits(x, bin(x, TIR_BITAND, bits(x, a), u32(x, 0x7fffffff))));
}
static inline tir_expr_ref with_sign(expander *x, tir_expr_ref y, tir_expr_ref a)
{
    tir_expr_ref sign = bin(x, TIR_BITAND, bits(x, a), u32(x, 0x80000000));
    return from_bits(x, bin(x, TIR_BITOR, bits(x, y), sign));
}

/* Adding it rounds to an integer, kept in the low bits: 1.5 * 2^23. */
#define ROUNDER      12582912.0
#define ROUNDER_BITS 0x4b400000

#define SCALED_LANES 16
#endif
