/* SPDX-License-Identifier: Apache-2.0 */
/* expand-math: exp and log, and what is made of them. Coefficients: minimax fits, scripts/fit_math.py. */
#include "tir/pass/math_functions.h"

#include <math.h>

#define LOG2_E   1.4426950408889634
#define LN2      0.6931471805599453
#define LN2_HIGH 0.693145751953125       /* few bits: its product with a small integer is exact */
#define LN2_LOW  1.42860682030941723e-06 /* ln 2 - LN2_HIGH */

/* exp(a) = 2^n exp(r), |r| <= ln 2 / 2. Gives r, and in *out_t n as an integer in the low bits, `rounder` above it. */
static tir_expr_ref exp_range(expander *x, tir_expr_ref a, double rounder, tir_expr_ref *out_t)
{
    tir_expr_ref t = named(x, "t", mul_add(x, a, f32(x, LOG2_E), f32(x, rounder)));
    tir_expr_ref n = named(x, "n", bin(x, TIR_SUB, t, f32(x, rounder)));
    tir_expr_ref r = mul_add(x, n, f32(x, -LN2_HIGH), a);
    *out_t = t;
    return named(x, "r", mul_add(x, n, f32(x, -LN2_LOW), r));
}

/* exp(r) - 1 */
static tir_expr_ref expm1_reduced(expander *x, tir_expr_ref a, double rounder, tir_expr_ref *out_t)
{
    static const double q[] = {0.5, 0.16666512191295624, 0.0416661873459816, 0.008369598537683487,
                               0.0013951719738543034};
    tir_expr_ref r = exp_range(x, a, rounder, out_t);
    return mul_add(x, bin(x, TIR_MUL, r, r), named(x, "q", polynomial(x, r, 5, q)), r);
}

static tir_expr_ref exp_reduced(expander *x, tir_expr_ref a, double rounder, tir_expr_ref *out_t)
{
    return bin(x, TIR_ADD, expm1_reduced(x, a, rounder, out_t), f32(x, 1.0));
}

/* p * 2^n by an instruction that rounds once, as the products of p and two powers do. */
static bool scales(const expander *x, tir_expr_ref a)
{
    return x->scales && a->type.lanes == SCALED_LANES;
}
static tir_expr_ref scaled(expander *x, tir_expr_ref p, tir_expr_ref t, double rounder)
{
    tir_expr_ref n = bin(x, TIR_SUB, t, f32(x, rounder));
    return tir_call(x->c, TIR_LDEXP, 2, (tir_expr_ref[]){p, n});
}

/* From -104 to 89, n stays in [-150, 128]. 2^n is made of two powers, so that results may be subnormal or overflow by
 * themselves. */
tir_expr_ref math_exp(expander *x, tir_expr_ref a)
{
    a = named(x, "low", at_least(x, named(x, "x", a), -104.0));
    a = named(x, "high", at_most(x, a, 89.0));
    tir_expr_ref t, p = exp_reduced(x, a, ROUNDER, &t);
    if (scales(x, a))
        return named(x, "exp", scaled(x, p, t, ROUNDER));
    tir_expr_ref e = named(x, "e", bin(x, TIR_SUB, bits(x, t), u32(x, ROUNDER_BITS - 254)));
    tir_expr_ref half = named(x, "half", bin(x, TIR_SHR, e, u32(x, 1))), rest = bin(x, TIR_SUB, e, half);
    tir_expr_ref first = from_bits(x, bin(x, TIR_SHL, half, u32(x, 23)));
    tir_expr_ref second = from_bits(x, bin(x, TIR_SHL, rest, u32(x, 23)));
    return named(x, "exp", bin(x, TIR_MUL, bin(x, TIR_MUL, p, first), second));
}

/* What is below 2^-25 does not count beside 1, so one power does: a normal number, and infinity from 2^127.5 on: a
 * result below 2^-127.5 is 0. Products of r alone make exp(r), so that 1 + 2^n exp(r) is one step more. */
tir_expr_ref math_one_by_1_and_exp(expander *x, tir_expr_ref a)
{
    static const double p[] = {1.0, 1.0, 0.4999999403953552, 0.1666642129421234, 0.041668057441711426,
                               0.008374964818358421, 0.0013842711923643947};
    const double rounder = ROUNDER + 127; /* so that t's low bits are the exponent of the power */
    a = named(x, "low", at_least(x, named(x, "x", a), -86.0));
    tir_expr_ref t, r = exp_range(x, named(x, "high", at_most(x, a, 89.0)), rounder, &t);
    tir_expr_ref power = named(x, "power", from_bits(x, bin(x, TIR_SHL, bits(x, t), u32(x, 23))));
    tir_expr_ref sum = mul_add(x, named(x, "exp", polynomial(x, r, 7, p)), power, f32(x, 1.0));
    return bin(x, TIR_DIV, f32(x, 1.0), sum);
}

/* The same bits for a <= 0: n + 152, which the rounder brings along, is the exponent of a power that is never
 * subnormal, and 2^-25 does the rest. */
tir_expr_ref math_decay(expander *x, tir_expr_ref a)
{
    tir_expr_ref t, low = named(x, "low", at_least(x, named(x, "x", a), -104.0));
    tir_expr_ref p = exp_reduced(x, low, ROUNDER + 152, &t);
    if (scales(x, a))
        return named(x, "exp", scaled(x, p, t, ROUNDER + 152));
    p = bin(x, TIR_MUL, p, from_bits(x, bin(x, TIR_SHL, bits(x, t), u32(x, 23))));
    return named(x, "exp", bin(x, TIR_MUL, p, f32(x, 0x1p-25)));
}

/* (expm1(r) 2^(n-1) + 2^(n-1) - 1/2) 2, whose powers are normal numbers up to the overflow; r itself where n is 0, so
 * that nothing is lost of a subnormal number. From -18 down the result is -1. */
tir_expr_ref math_expm1(expander *x, tir_expr_ref a)
{
    a = named(x, "x", a);
    tir_expr_ref t, low = named(x, "low", at_least(x, a, -18.0)), high = named(x, "high", at_most(x, low, 89.0));
    tir_expr_ref p = named(x, "p", expm1_reduced(x, high, ROUNDER, &t));
    tir_expr_ref power = bin(x, TIR_SUB, bits(x, t), u32(x, ROUNDER_BITS - 126));
    tir_expr_ref half = named(x, "half", from_bits(x, bin(x, TIR_SHL, power, u32(x, 23))));
    tir_expr_ref y = named(x, "y", mul_add(x, p, half, bin(x, TIR_SUB, half, f32(x, 0.5))));
    tir_expr_ref is_near = bin(x, TIR_EQ, t, f32(x, ROUNDER));
    y = named(x, "either", tir_select(x->c, is_near, p, bin(x, TIR_ADD, y, y)));
    return named(x, "expm1", with_sign(x, y, a));
}

/* 2 s / (1 + s^2) for s = |a| P(a^2) / Q(a^2), with the sign of a: 2 u v / ((v - u)^2 + 2 u v) where u / v is s. Where
 * the result is near 1, v - u is small, and the roundings of 2 u v are above and below: so s may be a rough fit there,
 * and nothing is above 1. P and Q have a common factor of 2^24, so that u is no subnormal number where a is one. */
static tir_expr_ref from_half(expander *x, tir_expr_ref a, double limit, uint32_t n_p, const double *p, uint32_t n_q,
                              const double *q)
{
    a = named(x, "x", a);
    tir_expr_ref abs = named(x, "far", at_most(x, magnitude(x, a), limit));
    tir_expr_ref z = named(x, "z", bin(x, TIR_MUL, abs, abs));
    tir_expr_ref u = named(x, "u", bin(x, TIR_MUL, abs, polynomial(x, z, n_p, p)));
    tir_expr_ref v = named(x, "v", polynomial(x, z, n_q, q));
    tir_expr_ref rest = named(x, "rest", bin(x, TIR_SUB, v, u));
    tir_expr_ref num = named(x, "num", bin(x, TIR_MUL, bin(x, TIR_ADD, u, u), v));
    return with_sign(x, bin(x, TIR_DIV, num, mul_add(x, rest, rest, num)), a);
}

tir_expr_ref math_erf(expander *x, tir_expr_ref a)
{
    static const double p[] = {16463402.0, 4221286.5, 461211.8125, 35548.8046875};
    static const double q[] = {29180620.0, 7920451.5, 1393501.5, 170198.84375, 2763.204833984375};
    return named(x, "erf", from_half(x, a, 4.0, 4, p, 5, q));
}

tir_expr_ref math_tanh(expander *x, tir_expr_ref a)
{
    static const double p[] = {15711388.0, 467787.3125, 1795.0732421875};
    static const double q[] = {31422776.0, 3554138.5, 37913.01171875, 38.6176872253418};
    return named(x, "tanh", from_half(x, a, 9.1, 3, p, 4, q));
}

#define SQRT_HALF_BITS 0x3f3504f3 /* of the float next to sqrt(1/2) */
#define ONE_BITS       0x3f800000
#define FLOAT_BITS     0x4b000000  /* of 2^23: an integer below that, put into its low bits, is added to it */
#define LN2_FLOAT      0.693359375 /* few bits, as LN2_HIGH, and no more than log wants */
#define LN2_REST       -2.12194440054690581e-4 /* ln 2 - LN2_FLOAT */

/* log((1 + f) 2^n), f from sqrt(1/2) - 1 to sqrt(2) - 1: f - f^2/2 + f^3 P(f) + n ln 2. */
static tir_expr_ref log_reduced(expander *x, tir_expr_ref f, tir_expr_ref n)
{
    static const double p[] = {0.3333333134651184,  -0.2500081956386566,  0.20001226663589478, -0.16623356938362122,
                               0.14201757311820984, -0.13160182535648346, 0.1276157796382904,  -0.07634499669075012};
    tir_expr_ref z = named(x, "z", bin(x, TIR_MUL, f, f));
    tir_expr_ref y = mul_add(x, n, f32(x, LN2_REST), bin(x, TIR_MUL, bin(x, TIR_MUL, f, z), polynomial(x, f, 8, p)));
    y = bin(x, TIR_ADD, mul_add(x, z, f32(x, -0.5), y), f);
    return mul_add(x, n, f32(x, LN2_FLOAT), y);
}

/* y, but what log and log1p give at the ends: of infinity itself, -infinity at `pole`, NaN below. */
static tir_expr_ref log_ends(expander *x, tir_expr_ref a, tir_expr_ref y, double pole)
{
    y = tir_select(x->c, bin(x, TIR_LT, a, f32(x, INFINITY)), y, a);
    tir_expr_ref below = tir_select(x->c, bin(x, TIR_EQ, a, f32(x, pole)), f32(x, -INFINITY), f32(x, NAN));
    return tir_select(x->c, bin(x, TIR_GT, a, f32(x, pole)), y, below);
}

/* n + 127 above the 23 bits of what makes m from sqrt(1/2) to sqrt(2), for a = m 2^n. */
static tir_expr_ref log_bits(expander *x, tir_expr_ref a)
{
    return named(x, "bits", bin(x, TIR_ADD, bits(x, a), u32(x, ONE_BITS - SQRT_HALF_BITS)));
}
static tir_expr_ref log_power(expander *x, tir_expr_ref b, tir_expr_ref bias)
{
    tir_expr_ref power = bin(x, TIR_BITOR, bin(x, TIR_SHR, b, u32(x, 23)), u32(x, FLOAT_BITS));
    return named(x, "n", bin(x, TIR_SUB, from_bits(x, power), bias));
}

/* A subnormal number is scaled first. */
tir_expr_ref math_log(expander *x, tir_expr_ref a)
{
    a = named(x, "x", a);
    tir_expr_ref tiny = bin(x, TIR_LT, a, f32(x, 0x1p-126));
    tir_expr_ref normal = tir_select(x->c, tiny, bin(x, TIR_MUL, a, f32(x, 0x1p23)), a);
    tir_expr_ref bias = tir_select(x->c, tiny, f32(x, 0x1p23 + 127 + 23), f32(x, 0x1p23 + 127));
    tir_expr_ref b = log_bits(x, normal), n = log_power(x, b, bias);
    tir_expr_ref part = bin(x, TIR_ADD, bin(x, TIR_BITAND, b, u32(x, 0x7fffff)), u32(x, SQRT_HALF_BITS));
    tir_expr_ref f = named(x, "f", bin(x, TIR_SUB, from_bits(x, part), f32(x, 1.0)));
    return named(x, "log", log_ends(x, a, log_reduced(x, f, n), 0));
}

/* n is that of 1 + a, which is rounded; f = a 2^-n + (2^-n - 1) is rounded once. 2^(2-n) is normal for each n. The sign
 * of a zero is lost. */
static tir_expr_ref log1p_of(expander *x, tir_expr_ref a)
{
    tir_expr_ref b = log_bits(x, bin(x, TIR_ADD, a, f32(x, 1.0))), n = log_power(x, b, f32(x, 0x1p23 + 127));
    tir_expr_ref power = bin(x, TIR_SUB, u32(x, 256), bin(x, TIR_SHR, b, u32(x, 23)));
    tir_expr_ref scale = bin(x, TIR_MUL, from_bits(x, bin(x, TIR_SHL, power, u32(x, 23))), f32(x, 0.25));
    scale = named(x, "scale", scale);
    tir_expr_ref f = named(x, "f", mul_add(x, a, scale, bin(x, TIR_SUB, scale, f32(x, 1.0))));
    return log_ends(x, a, log_reduced(x, f, n), -1);
}
tir_expr_ref math_log1p(expander *x, tir_expr_ref a)
{
    a = named(x, "x", a);
    return named(x, "log1p", with_sign(x, log1p_of(x, a), a));
}

/* --- hyperbolic functions --- */

typedef struct halves {
    tir_expr_ref sinh, cosh; /* of n ln 2, halved */
    tir_expr_ref odd, even;  /* sinh(r), cosh(r) - 1 */
    tir_expr_ref is_near;    /* n is 0 */
} halves;

#define SINH_SHIFT 0.1 /* of what is rounded: 1 starts late, where less of the sum is taken away again */

/* abs = n ln 2 + r. Halves, because 2^129 is no float; from 2^-101 on the other power counts for nothing. */
static halves hyperbolic(expander *x, tir_expr_ref abs, double shift)
{
    static const double p[] = {0.1666666716337204, 0.008333141915500164, 0.00019973698363173753};
    static const double q[] = {0.5, 0.041664961725473404, 0.0014007596764713526};
    tir_expr_ref far = named(x, "far", at_most(x, abs, 89.5));
    tir_expr_ref shifted = mul_add(x, far, f32(x, LOG2_E), f32(x, shift == 0 ? ROUNDER : -shift));
    tir_expr_ref t = named(x, "t", shift == 0 ? shifted : bin(x, TIR_ADD, shifted, f32(x, ROUNDER)));
    tir_expr_ref n = named(x, "n", bin(x, TIR_SUB, t, f32(x, ROUNDER)));
    tir_expr_ref r = mul_add(x, n, f32(x, -LN2_HIGH), far);
    r = named(x, "r", mul_add(x, n, f32(x, -LN2_LOW), r));
    tir_expr_ref z = named(x, "z", bin(x, TIR_MUL, r, r));
    tir_expr_ref rise = bin(x, TIR_SUB, bits(x, t), u32(x, ROUNDER_BITS - 125));
    tir_expr_ref fall = bin(x, TIR_SUB, u32(x, ROUNDER_BITS + 125), bits(x, at_most(x, t, ROUNDER + 100)));
    tir_expr_ref high = named(x, "high", from_bits(x, bin(x, TIR_SHL, rise, u32(x, 23))));
    tir_expr_ref low = named(x, "low", from_bits(x, bin(x, TIR_SHL, fall, u32(x, 23))));
    halves h = {.is_near = bin(x, TIR_EQ, t, f32(x, ROUNDER))};
    h.sinh = named(x, "sinh_n", bin(x, TIR_SUB, high, low));
    h.cosh = named(x, "cosh_n", bin(x, TIR_ADD, high, low));
    h.odd = named(x, "odd", mul_add(x, bin(x, TIR_MUL, r, z), polynomial(x, z, 3, p), r));
    h.even = named(x, "even", bin(x, TIR_MUL, z, polynomial(x, z, 3, q)));
    return h;
}

/* sinh(n ln 2) cosh(r) + cosh(n ln 2) sinh(r); sinh(r) itself where n is 0, so that nothing is lost of a subnormal
 * number. */
tir_expr_ref math_sinh(expander *x, tir_expr_ref a)
{
    a = named(x, "x", a);
    halves h = hyperbolic(x, magnitude(x, a), SINH_SHIFT);
    tir_expr_ref rest = mul_add(x, h.sinh, h.even, bin(x, TIR_MUL, h.cosh, h.odd));
    tir_expr_ref y = named(x, "y", bin(x, TIR_ADD, h.sinh, rest));
    y = named(x, "either", tir_select(x->c, h.is_near, h.odd, bin(x, TIR_ADD, y, y)));
    return named(x, "sinh", with_sign(x, y, a));
}

tir_expr_ref math_cosh(expander *x, tir_expr_ref a)
{
    a = named(x, "x", a);
    halves h = hyperbolic(x, magnitude(x, a), 0);
    tir_expr_ref rest = mul_add(x, h.cosh, h.even, bin(x, TIR_MUL, h.sinh, h.odd));
    tir_expr_ref y = named(x, "y", bin(x, TIR_ADD, h.cosh, rest));
    return named(x, "cosh", bin(x, TIR_ADD, y, y));
}

#define LARGE 0x1p40 /* 1 beside such a number, or beside its square, counts for nothing */

/* log(1 + some), or of twice 1 + large where that is the larger part. */
static tir_expr_ref log_of_sum(expander *x, tir_expr_ref large, tir_expr_ref some)
{
    tir_expr_ref is_large = bin(x, TIR_GT, large, f32(x, LARGE));
    tir_expr_ref part = named(x, "part", tir_select(x->c, is_large, large, some));
    tir_expr_ref y = log1p_of(x, part);
    return bin(x, TIR_ADD, y, tir_select(x->c, is_large, f32(x, LN2), f32(x, 0)));
}

/* log(a + sqrt(a^2 + 1)), whose argument less 1 is a + a^2 / (1 + sqrt(a^2 + 1)). */
tir_expr_ref math_asinh(expander *x, tir_expr_ref a)
{
    a = named(x, "x", a);
    tir_expr_ref abs = magnitude(x, a), square = named(x, "square", bin(x, TIR_MUL, abs, abs));
    tir_expr_ref root = tir_call1(x->c, TIR_SQRT, bin(x, TIR_ADD, square, f32(x, 1.0)));
    tir_expr_ref more = bin(x, TIR_DIV, square, bin(x, TIR_ADD, root, f32(x, 1.0)));
    tir_expr_ref y = log_of_sum(x, abs, bin(x, TIR_ADD, abs, more));
    return named(x, "asinh", with_sign(x, y, a));
}

/* log(a + sqrt(a^2 - 1)), with a = 1 + t: an exact t where a is near 1. */
tir_expr_ref math_acosh(expander *x, tir_expr_ref a)
{
    tir_expr_ref t = named(x, "t", bin(x, TIR_SUB, a, f32(x, 1.0)));
    tir_expr_ref root = tir_call1(x->c, TIR_SQRT, bin(x, TIR_MUL, t, bin(x, TIR_ADD, t, f32(x, 2.0))));
    tir_expr_ref y = log_of_sum(x, t, bin(x, TIR_ADD, t, root));
    return named(x, "acosh", tir_select(x->c, bin(x, TIR_LT, t, f32(x, 0)), f32(x, NAN), y));
}

/* log((1 + a) / (1 - a)) / 2, whose argument is 1 + 2a / (1 - a). */
tir_expr_ref math_atanh(expander *x, tir_expr_ref a)
{
    a = named(x, "x", a);
    tir_expr_ref abs = magnitude(x, a);
    tir_expr_ref some = bin(x, TIR_DIV, bin(x, TIR_ADD, abs, abs), bin(x, TIR_SUB, f32(x, 1.0), abs));
    tir_expr_ref y = log1p_of(x, named(x, "some", some));
    return named(x, "atanh", with_sign(x, bin(x, TIR_MUL, y, f32(x, 0.5)), a));
}
