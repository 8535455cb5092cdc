/* SPDX-License-Identifier: Apache-2.0 */
/* expand-math: functions of angles, and their inverses. Coefficients: minimax fits, scripts/fit_math.py. */
#include "tir/pass/math_functions.h"

static tir_expr_ref f64(expander *x, double v)
{
    return tir_float(x->c, DT_F64, v);
}

/* a without its nearest multiple of a power of two, which is that of the last bit of `rounder`. */
static tir_expr_ref without_multiple(expander *x, tir_expr_ref a, double rounder)
{
    return bin(x, TIR_SUB, a, bin(x, TIR_SUB, bin(x, TIR_ADD, a, f64(x, rounder)), f64(x, rounder)));
}

/* Numbers below 2^53, and then in steps of 2^25: such a number times 2^-25k has no bit below 32, and from 2/pi times
 * 2^25k what is 1/8 and more may be taken away: its products are whole turns. What is left of 2/pi is in two pieces of
 * 29 bits, whose products with a float are exact in f64, and the rest. */
#define TURN_STEPS  4
#define TURN_PIECES 3
static const struct {
    double least, scale, piece[TURN_PIECES];
} turn_steps[TURN_STEPS] = {
    {0, 1, {0x1.45f306dp-1, 0x1.9391054p-30, 0x1.4fe13abe8fa9ap-59}},
    {0x1p53, 0x1p-25, {0x1.c9c882ap-4, 0x1.4fe13aap-34, 0x1.e8fa9a6ee06dbp-62}},
    {0x1p78, 0x1p-50, {0x1.4a7f09dp-4, 0x1.7d1f534p-34, 0x1.bb81b6c52b328p-63}},
    {0x1p103, 0x1p-75, {0x1.abe8fa9p-4, 0x1.4ddc0dbp-33, 0x1.8a5664f10e41p-63}},
};

/* The scale (piece -1) or the piece for a number of that magnitude. */
static tir_expr_ref turn_number(expander *x, tir_expr_ref abs, int piece)
{
    tir_expr_ref v = f64(x, piece < 0 ? turn_steps[0].scale : turn_steps[0].piece[piece]);
    for (int i = 1; i < TURN_STEPS; i++)
        v = tir_select(x->c, bin(x, TIR_GE, abs, f64(x, turn_steps[i].least)),
                       f64(x, piece < 0 ? turn_steps[i].scale : turn_steps[i].piece[piece]), v);
    return v;
}

#define ROUND_TO_4     (1.5 * 0x1p54) /* the last bit of such numbers is 4 */
#define ROUND_TO_1     (1.5 * 0x1p52)
/* And 2^-24: what is below 1 then is a float. gcc 12 takes vectors from f64 to f32 and back for nothing at -O3, so that
 * a cast does not do. */
#define ROUND_TO_FLOAT (1.5 * 0x1p28)

/* pi/2 in pieces. Below FAR_BITS n has 11 bits, and the first three pieces have 12 or 13: their products with n are
 * exact, with and without fused multiply-add. The first two end at 2^-24, so that what they leave of a float above 1/2
 * is exact, too. */
static const double quarter[4] = {0x1.921p+0, 0x1.f6ap-13, 0x1.111p-26, -0x1.2e7b96p-40};

/* quarter_turns in f32, for numbers below FAR_BITS. */
static tir_expr_ref near_turns(expander *x, tir_expr_ref abs, tir_expr_ref *out_low, tir_expr_ref *out_n)
{
    tir_expr_ref far = bin(x, TIR_SUB, u32(x, FAR_BITS - 1), bits(x, abs));
    x->far = x->far ? bin(x, TIR_BITOR, x->far, far) : far;
    tir_expr_ref turns = named(x, "turns", mul_add(x, abs, f32(x, 0.6366197723675814), f32(x, ROUNDER)));
    tir_expr_ref n = named(x, "n", bin(x, TIR_SUB, turns, f32(x, ROUNDER))), product[4];
    for (int i = 0; i < 4; i++)
        product[i] = bin(x, TIR_MUL, n, f32(x, quarter[i]));
    tir_expr_ref main = named(x, "main", bin(x, TIR_SUB, bin(x, TIR_SUB, abs, product[0]), product[1]));
    tir_expr_ref r = named(x, "r", bin(x, TIR_SUB, main, product[2]));
    tir_expr_ref lost = bin(x, TIR_SUB, bin(x, TIR_SUB, main, r), product[2]); /* what rounding r took away */
    *out_low = named(x, "rest", bin(x, TIR_SUB, lost, product[3]));
    *out_n = named(x, "quarter", bits(x, turns));
    return r;
}

/* abs = (n + r) pi/2, |r| <= 1/2; n counts up to a few turns, in the low bits of *out_n. Gives r pi/2 as the sum of
 * two floats. */
static tir_expr_ref quarter_turns(expander *x, tir_expr_ref abs, tir_expr_ref *out_low, tir_expr_ref *out_n)
{
    if (x->near)
        return near_turns(x, abs, out_low, out_n);
    tir_expr_ref part[TURN_PIECES], wide = named(x, "wide", tir_cast(x->c, DT_F64, abs));
    tir_expr_ref y = named(x, "y", bin(x, TIR_MUL, wide, turn_number(x, wide, -1)));
    for (int i = 0; i < TURN_PIECES; i++)
        part[i] = named(x, "part", bin(x, TIR_MUL, y, turn_number(x, wide, i)));
    tir_expr_ref high = named(x, "high", without_multiple(x, part[0], ROUND_TO_4));
    tir_expr_ref low = named(x, "low", without_multiple(x, part[1], ROUND_TO_4));
    tir_expr_ref sum = bin(x, TIR_ADD, bin(x, TIR_ADD, high, low), part[2]);
    tir_expr_ref n = named(x, "n", bin(x, TIR_SUB, bin(x, TIR_ADD, sum, f64(x, ROUND_TO_1)), f64(x, ROUND_TO_1)));
    tir_expr_ref r = bin(x, TIR_ADD, bin(x, TIR_ADD, bin(x, TIR_SUB, high, n), low), part[2]);
    tir_expr_ref whole = tir_cast(x->c, DT_F32, n);
    *out_n = named(x, "quarter", bits(x, bin(x, TIR_ADD, whole, f32(x, ROUNDER))));
    r = named(x, "angle", bin(x, TIR_MUL, r, f64(x, 1.5707963267948966)));
    tir_expr_ref near = bin(x, TIR_SUB, bin(x, TIR_ADD, r, f64(x, ROUND_TO_FLOAT)), f64(x, ROUND_TO_FLOAT));
    near = named(x, "near", near);
    *out_low = named(x, "rest", tir_cast(x->c, DT_F32, bin(x, TIR_SUB, r, near)));
    return named(x, "r", tir_cast(x->c, DT_F32, near));
}

/* sin(a), or cos(a), which is a quarter ahead and the same for -a: of r one or the other, with a sign. */
static tir_expr_ref sine(expander *x, tir_expr_ref a, bool is_cos)
{
    static const double p[] = {-0.16666655242443085, 0.008332155644893646, -0.0001951463200384751};
    static const double q[] = {0.04166664555668831, -0.0013887309469282627, 2.443241282890085e-05};
    a = named(x, "x", a);
    tir_expr_ref n, low, r = quarter_turns(x, magnitude(x, a), &low, &n), z = named(x, "z", bin(x, TIR_MUL, r, r));
    tir_expr_ref odd = bin(x, TIR_ADD, r, mul_add(x, bin(x, TIR_MUL, z, r), polynomial(x, z, 3, p), low));
    /* 1 - z/2 is rounded: what that took away is added to the small terms. */
    tir_expr_ref half = bin(x, TIR_MUL, z, f32(x, 0.5)), main = named(x, "main", bin(x, TIR_SUB, f32(x, 1.0), half));
    tir_expr_ref lost = bin(x, TIR_SUB, bin(x, TIR_SUB, f32(x, 1.0), main), half);
    tir_expr_ref small = bin(x, TIR_MUL, bin(x, TIR_MUL, z, z), polynomial(x, z, 3, q));
    small = bin(x, TIR_ADD, lost, bin(x, TIR_SUB, small, bin(x, TIR_MUL, r, low)));
    tir_expr_ref even = bin(x, TIR_ADD, main, small);
    if (is_cos)
        n = named(x, "quarter", bin(x, TIR_ADD, n, u32(x, 1)));
    tir_expr_ref y = named(x, "either", where(x, bin(x, TIR_BITAND, n, u32(x, 1)), even, odd));
    tir_expr_ref sign = bin(x, TIR_SHL, bin(x, TIR_BITAND, n, u32(x, 2)), u32(x, 30));
    if (!is_cos)
        sign = bin(x, TIR_BITXOR, sign, bin(x, TIR_BITAND, bits(x, a), u32(x, 0x80000000)));
    return named(x, is_cos ? "cosine" : "sine", from_bits(x, bin(x, TIR_BITXOR, bits(x, y), sign)));
}
tir_expr_ref math_sin(expander *x, tir_expr_ref a)
{
    return sine(x, a, false);
}
tir_expr_ref math_cos(expander *x, tir_expr_ref a)
{
    return sine(x, a, true);
}

/* tan(r), or -1 / tan(r) after an odd number of quarters. The rest of r counts with the slope there, 1 + tan(r)^2, and
 * 1 + r^2 is near enough to that. */
tir_expr_ref math_tan(expander *x, tir_expr_ref a)
{
    static const double p[] = {0.33333155512809753,  0.1333886682987213,    0.05340556427836418,
                               0.024450931698083878, 0.0030859699472784996, 0.009405833669006824};
    a = named(x, "x", a);
    tir_expr_ref n, low, r = quarter_turns(x, magnitude(x, a), &low, &n), z = named(x, "z", bin(x, TIR_MUL, r, r));
    tir_expr_ref rest = mul_add(x, z, low, low);
    rest = mul_add(x, bin(x, TIR_MUL, z, r), polynomial(x, z, 6, p), rest);
    tir_expr_ref y = named(x, "y", bin(x, TIR_ADD, r, rest));
    y = named(x, "either", where(x, bin(x, TIR_BITAND, n, u32(x, 1)), bin(x, TIR_DIV, f32(x, -1.0), y), y));
    tir_expr_ref sign = bin(x, TIR_BITAND, bits(x, a), u32(x, 0x80000000));
    return named(x, "tangent", from_bits(x, bin(x, TIR_BITXOR, bits(x, y), sign)));
}

/* pi/2 as the sum of two floats. */
#define HALF_PI      1.57079637050628662109375
#define HALF_PI_REST (-4.37113900018624283e-8)

/* r + r r^2 P(r^2) with r = |a|, or 1 / |a| beyond 1, where that is taken away from pi/2. */
tir_expr_ref math_atan(expander *x, tir_expr_ref a)
{
    static const double p[] = {-0.33333152532577515, 0.19993773102760315, -0.14211055636405945, 0.10666004568338394,
                               -0.07552214711904526, 0.04321186617016792, -0.01636793091893196, 0.0029206930194050074};
    a = named(x, "x", a);
    tir_expr_ref abs = magnitude(x, a), one = f32(x, 1.0);
    tir_expr_ref is_far = bin(x, TIR_GT, abs, one);
    tir_expr_ref r = named(x, "r", tir_select(x->c, is_far, bin(x, TIR_DIV, one, abs), abs));
    tir_expr_ref z = named(x, "z", bin(x, TIR_MUL, r, r));
    tir_expr_ref small = named(x, "small", bin(x, TIR_MUL, bin(x, TIR_MUL, r, z), polynomial(x, z, 8, p)));
    tir_expr_ref rest = bin(x, TIR_SUB, r, bin(x, TIR_SUB, f32(x, HALF_PI_REST), small));
    tir_expr_ref far = bin(x, TIR_SUB, f32(x, HALF_PI), rest), near = bin(x, TIR_ADD, r, small);
    tir_expr_ref y = named(x, "either", tir_select(x->c, is_far, far, near));
    return named(x, "atan", with_sign(x, y, a));
}

typedef struct arc {
    tir_expr_ref is_far; /* |a| is above 1/2 */
    tir_expr_ref r;      /* |a|, or beyond 1/2 the sine of half of the angle that is left to the quarter */
    tir_expr_ref small;  /* asin(r) - r */
} arc;

static arc arc_of(expander *x, tir_expr_ref a)
{
    static const double p[] = {0.16666752099990845, 0.07495297491550446, 0.04547037556767464, 0.02417951449751854,
                               0.04216630756855011};
    tir_expr_ref abs = magnitude(x, a);
    arc c = {.is_far = bin(x, TIR_GT, abs, f32(x, 0.5))};
    tir_expr_ref half = bin(x, TIR_MUL, bin(x, TIR_SUB, f32(x, 1.0), abs), f32(x, 0.5));
    half = named(x, "half", half);
    tir_expr_ref root = tir_call1(x->c, TIR_SQRT, half);
    tir_expr_ref z = named(x, "z", tir_select(x->c, c.is_far, half, bin(x, TIR_MUL, abs, abs)));
    c.r = named(x, "r", tir_select(x->c, c.is_far, root, abs));
    c.small = named(x, "small", bin(x, TIR_MUL, bin(x, TIR_MUL, c.r, z), polynomial(x, z, 5, p)));
    return c;
}

/* asin(r), or beyond 1/2 pi/2 - 2 asin(r). */
tir_expr_ref math_asin(expander *x, tir_expr_ref a)
{
    a = named(x, "x", a);
    arc c = arc_of(x, a);
    tir_expr_ref rest = bin(x, TIR_ADD, c.r, bin(x, TIR_SUB, c.small, f32(x, HALF_PI_REST / 2)));
    tir_expr_ref far = bin(x, TIR_SUB, f32(x, HALF_PI), bin(x, TIR_ADD, rest, rest));
    tir_expr_ref near = bin(x, TIR_ADD, c.r, c.small);
    tir_expr_ref y = named(x, "either", tir_select(x->c, c.is_far, far, near));
    return named(x, "asin", with_sign(x, y, a));
}

/* pi/2 - asin(a), or beyond 1/2 twice asin(r), taken away from pi below -1/2. */
tir_expr_ref math_acos(expander *x, tir_expr_ref a)
{
    a = named(x, "x", a);
    arc c = arc_of(x, a);
    tir_expr_ref sign = named(x, "sign", bin(x, TIR_BITAND, bits(x, a), u32(x, 0x80000000)));
    tir_expr_ref r = from_bits(x, bin(x, TIR_BITXOR, bits(x, c.r), sign));
    tir_expr_ref small = from_bits(x, bin(x, TIR_BITXOR, bits(x, c.small), sign));
    tir_expr_ref rest = bin(x, TIR_ADD, r, bin(x, TIR_SUB, small, f32(x, HALF_PI_REST)));
    tir_expr_ref near = bin(x, TIR_SUB, f32(x, HALF_PI), rest);
    tir_expr_ref half = named(x, "arc", bin(x, TIR_ADD, c.r, c.small));
    tir_expr_ref most = bin(x, TIR_ADD, c.r, bin(x, TIR_SUB, c.small, f32(x, HALF_PI_REST)));
    tir_expr_ref below = bin(x, TIR_SUB, f32(x, 2 * HALF_PI), bin(x, TIR_ADD, most, most));
    tir_expr_ref above = bin(x, TIR_ADD, half, half);
    tir_expr_ref far = tir_select(x->c, bin(x, TIR_LT, a, f32(x, 0)), below, above);
    return named(x, "acos", tir_select(x->c, c.is_far, far, near));
}
