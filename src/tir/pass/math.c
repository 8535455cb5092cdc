/* SPDX-License-Identifier: Apache-2.0 */
/* expand-math: exp, decay, expm1, log, log1p, erf and tanh of float32 become arithmetic: a range reduction, a
 * polynomial, a scale by bits; sin and cos do where they are in lanes. The same operations in the same order for any
 * number of lanes, so results depend neither on the vector width nor on the C library; errors against exact values stay
 * below 1.1 (exp, decay), 1.8 (expm1), 1.0 (log), 1.3 (log1p), 1.0 (sin, cos), 1.4 (erf), 1.9 (tanh) units of the last
 * place, with and without fused multiply-add (test_math.c, test/py/functions.py). Infinities, NaN and subnormal results
 * are those of the C library. Coefficients: minimax fits, scripts/fit_math.py.
 *
 * Every step is named by a let in front of the statement. A call behind a condition whose argument loads stays as it
 * is, unless the statement loads the same without the condition: the load must not happen when that does not hold. */
#include "tir/build.h"
#include "tir/map.h"
#include "tir/node.h"
#include "tir/pass.h"
#include "tir/walk.h"
#include "type/target.h"

#include <math.h>

typedef struct expander {
    compiler *c;
    bool scales;  /* vectors of 16 floats have an instruction for x * 2^n */
    tir_map done; /* calls of this statement -> what stands for them */
    tir_map seen; /* expressions of it whose loads are known */
    VEC(tir_expr_ref) loads; /* that happen whatever its conditions are */
    VEC(tir_stmt *) lets;
} expander;

/* --- arithmetic ------------------------------------------------------------------------------------------------------
 */

static tir_expr_ref f32(expander *x, double v)
{
    return tir_float(x->c, DT_F32, v);
}
static tir_expr_ref u32(expander *x, int64_t v)
{
    return tir_int(x->c, DT_U32, v);
}
static tir_expr_ref bin(expander *x, tir_op op, tir_expr_ref a, tir_expr_ref b)
{
    return tir_binary(x->c, op, a, b);
}
/* a * b + c */
static tir_expr_ref mul_add(expander *x, tir_expr_ref a, tir_expr_ref b, tir_expr_ref c)
{
    return bin(x, TIR_ADD, bin(x, TIR_MUL, a, b), c);
}
static tir_expr_ref bits(expander *x, tir_expr_ref a)
{
    return tir_call1(x->c, TIR_TO_BITS, a);
}
static tir_expr_ref from_bits(expander *x, tir_expr_ref a)
{
    return tir_call1(x->c, TIR_FROM_BITS, a);
}

/* A name for a value that is used more than once. */
static tir_expr_ref named(expander *x, const char *name, tir_expr_ref value)
{
    if (value->kind == TIR_VAR || value->kind == TIR_FLOAT)
        return value;
    const tir_var *v = tir_new_var(x->c, name, value->type);
    vec_push(&x->c->mem, &x->lets, tir_let(x->c, v, value, NULL));
    return tir_varref(x->c, v);
}

/* NaN compares false and passes through. */
static tir_expr_ref at_most(expander *x, tir_expr_ref a, double limit)
{
    return tir_select(x->c, bin(x, TIR_GT, a, f32(x, limit)), f32(x, limit), a);
}
static tir_expr_ref at_least(expander *x, tir_expr_ref a, double limit)
{
    return tir_select(x->c, bin(x, TIR_LT, a, f32(x, limit)), f32(x, limit), a);
}

/* c[n-1] z^(n-1) + ... + c[0] */
static tir_expr_ref polynomial(expander *x, tir_expr_ref z, uint32_t n, const double *c)
{
    tir_expr_ref p = f32(x, c[n - 1]);
    for (uint32_t i = n - 1; i-- > 0;)
        p = mul_add(x, p, z, f32(x, c[i]));
    return p;
}

/* --- functions -------------------------------------------------------------------------------------------------------
 */

#define LOG2_E       1.4426950408889634
#define LN2          0.6931471805599453
#define LN2_HIGH     0.693145751953125       /* few bits: its product with a small integer is exact */
#define LN2_LOW      1.42860682030941723e-06 /* ln 2 - LN2_HIGH */
#define ROUNDER      12582912.0              /* 1.5 * 2^23: adding it rounds to an integer, kept in the low bits */
#define ROUNDER_BITS 0x4b400000
#define SCALED_LANES 16

/* exp(a) = 2^n exp(r), |r| <= ln 2 / 2. Gives exp(r) - 1, and in *out_t n as an integer in the low bits, `rounder`
 * above it. */
static tir_expr_ref expm1_reduced(expander *x, tir_expr_ref a, double rounder, tir_expr_ref *out_t)
{
    static const double q[] = {0.5, 0.16666512191295624, 0.0416661873459816, 0.008369598537683487,
                               0.0013951719738543034};
    tir_expr_ref t = named(x, "t", mul_add(x, a, f32(x, LOG2_E), f32(x, rounder)));
    tir_expr_ref n = named(x, "n", bin(x, TIR_SUB, t, f32(x, rounder)));
    tir_expr_ref r = mul_add(x, n, f32(x, -LN2_HIGH), a);
    r = named(x, "r", mul_add(x, n, f32(x, -LN2_LOW), r));
    *out_t = t;
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

/* a in [-104, 89] keeps n in [-150, 128]. 2^n is made of two powers, so that results may be subnormal or overflow by
 * themselves; `is_normal`: they do not, and one is enough. */
static tir_expr_ref exp_between(expander *x, tir_expr_ref a, bool is_normal)
{
    tir_expr_ref t, p = exp_reduced(x, a, ROUNDER, &t);
    if (is_normal) {
        tir_expr_ref power = bin(x, TIR_SUB, bits(x, t), u32(x, ROUNDER_BITS - 127));
        return bin(x, TIR_MUL, p, from_bits(x, bin(x, TIR_SHL, power, u32(x, 23))));
    }
    if (scales(x, a))
        return scaled(x, p, t, ROUNDER);
    tir_expr_ref e = named(x, "e", bin(x, TIR_SUB, bits(x, t), u32(x, ROUNDER_BITS - 254)));
    tir_expr_ref half = named(x, "half", bin(x, TIR_SHR, e, u32(x, 1))), rest = bin(x, TIR_SUB, e, half);
    tir_expr_ref first = from_bits(x, bin(x, TIR_SHL, half, u32(x, 23)));
    tir_expr_ref second = from_bits(x, bin(x, TIR_SHL, rest, u32(x, 23)));
    return bin(x, TIR_MUL, bin(x, TIR_MUL, p, first), second);
}

static tir_expr_ref expand_exp(expander *x, tir_expr_ref a)
{
    a = named(x, "low", at_least(x, named(x, "x", a), -104.0));
    return named(x, "exp", exp_between(x, named(x, "high", at_most(x, a, 89.0)), false));
}

/* The same bits for a <= 0: n + 152, which the rounder brings along, is the exponent of a power that is never
 * subnormal, and 2^-25 does the rest. */
static tir_expr_ref expand_decay(expander *x, tir_expr_ref a)
{
    tir_expr_ref t, low = named(x, "low", at_least(x, named(x, "x", a), -104.0));
    tir_expr_ref p = exp_reduced(x, low, ROUNDER + 152, &t);
    if (scales(x, a))
        return named(x, "exp", scaled(x, p, t, ROUNDER + 152));
    p = bin(x, TIR_MUL, p, from_bits(x, bin(x, TIR_SHL, bits(x, t), u32(x, 23))));
    return named(x, "exp", bin(x, TIR_MUL, p, f32(x, 0x1p-25)));
}

/* |a|, and y with the sign of a. */
static tir_expr_ref magnitude(expander *x, tir_expr_ref a)
{
    return named(x, "abs", from_bits(x, bin(x, TIR_BITAND, bits(x, a), u32(x, 0x7fffffff))));
}
static tir_expr_ref with_sign(expander *x, tir_expr_ref y, tir_expr_ref a)
{
    tir_expr_ref sign = bin(x, TIR_BITAND, bits(x, a), u32(x, 0x80000000));
    return from_bits(x, bin(x, TIR_BITOR, bits(x, y), sign));
}

/* (expm1(r) 2^(n-1) + 2^(n-1) - 1/2) 2, whose powers are normal numbers up to the overflow; r itself where n is 0, so
 * that nothing is lost of a subnormal number. From -18 down the result is -1. */
static tir_expr_ref expand_expm1(expander *x, tir_expr_ref a)
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

/* a + a P(a^2) up to 0.875; beyond it 1 - exp(Q(|a|)), Q = log of erfc, which is 1 from 4 on. */
static tir_expr_ref expand_erf(expander *x, tir_expr_ref a)
{
    static const double p[] = {0.12837915122509003,   -0.3761255145072937,  0.11282455176115036,
                               -0.026791462674736977, 0.005032181274145842, -0.0006203255034051836};
    static const double q[] = {-0.00013357507123146206, -1.1279361248016357,  -0.6367372274398804,
                               -0.10432750731706619,    0.022420218214392662, -0.0030922922305762768,
                               0.00020099623361602426};
    a = named(x, "x", a);
    tir_expr_ref abs = magnitude(x, a), z = named(x, "z", bin(x, TIR_MUL, a, a));
    tir_expr_ref near = mul_add(x, abs, polynomial(x, z, 6, p), abs);
    tir_expr_ref far = named(x, "far", at_most(x, abs, 4.0));
    tir_expr_ref tail = exp_between(x, named(x, "log_erfc", polynomial(x, far, 7, q)), true);
    tir_expr_ref rest = bin(x, TIR_SUB, f32(x, 1.0), tail);
    tir_expr_ref y = tir_select(x->c, bin(x, TIR_LT, abs, f32(x, 0.875)), near, rest);
    return named(x, "erf", with_sign(x, y, a));
}

#define TANH_SHIFT 0.3 /* of what is rounded: 1 below starts late, where den / num is small enough */

/* |a| = n ln 2 / 2 + r, and then t = tanh(r) = r + r r^2 P(r^2). With w = 2^n the result is num / den = (w - 1 +
 * (w + 1) t) / (w + 1 + (w - 1) t). num is den - 2 + 2t: den - 2 is exact, so that one rounding is above and below, and
 * where n is 0 t is left, which is exact for small numbers. From 10 on the result is 1. */
static tir_expr_ref expand_tanh(expander *x, tir_expr_ref a)
{
    static const double p[] = {-0.33333158, 0.13319552, -0.050852366};
    const double rounder = ROUNDER + 127; /* so that t's low bits are the exponent of w */
    a = named(x, "x", a);
    tir_expr_ref abs = named(x, "far", at_most(x, magnitude(x, a), 10.0));
    tir_expr_ref shifted = mul_add(x, abs, f32(x, 2 * LOG2_E), f32(x, -TANH_SHIFT));
    tir_expr_ref t = named(x, "t", bin(x, TIR_ADD, shifted, f32(x, rounder)));
    tir_expr_ref n = bin(x, TIR_SUB, t, f32(x, rounder));
    tir_expr_ref r = named(x, "r", mul_add(x, n, f32(x, -LN2 / 2), abs)), z = named(x, "z", bin(x, TIR_MUL, r, r));
    tir_expr_ref near = named(x, "near", mul_add(x, bin(x, TIR_MUL, r, z), polynomial(x, z, 3, p), r));
    tir_expr_ref w = named(x, "power", from_bits(x, bin(x, TIR_SHL, bits(x, t), u32(x, 23)))), one = f32(x, 1.0);
    tir_expr_ref den = mul_add(x, near, bin(x, TIR_SUB, w, one), bin(x, TIR_ADD, w, one));
    den = named(x, "den", den);
    tir_expr_ref num = bin(x, TIR_ADD, bin(x, TIR_ADD, near, near), bin(x, TIR_SUB, den, f32(x, 2.0)));
    return named(x, "tanh", with_sign(x, bin(x, TIR_DIV, num, den), a));
}

#define SQRT_HALF_BITS 0x3f3504f3 /* of the float next to sqrt(1/2) */
#define ONE_BITS       0x3f800000
#define FLOAT_BITS     0x4b000000 /* of 2^23: an integer below that, put into its low bits, is added to it */
#define LN2_FLOAT      0.693359375             /* few bits, as LN2_HIGH, and no more than log wants */
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
static tir_expr_ref expand_log(expander *x, tir_expr_ref a)
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

/* n is that of 1 + a, which is rounded; f = a 2^-n + (2^-n - 1) is rounded once. 2^(2-n) is normal for each n. */
static tir_expr_ref expand_log1p(expander *x, tir_expr_ref a)
{
    a = named(x, "x", a);
    tir_expr_ref b = log_bits(x, bin(x, TIR_ADD, a, f32(x, 1.0))), n = log_power(x, b, f32(x, 0x1p23 + 127));
    tir_expr_ref power = bin(x, TIR_SUB, u32(x, 256), bin(x, TIR_SHR, b, u32(x, 23)));
    tir_expr_ref scale = bin(x, TIR_MUL, from_bits(x, bin(x, TIR_SHL, power, u32(x, 23))), f32(x, 0.25));
    scale = named(x, "scale", scale);
    tir_expr_ref f = named(x, "f", mul_add(x, a, scale, bin(x, TIR_SUB, scale, f32(x, 1.0))));
    return named(x, "log1p", with_sign(x, log_ends(x, a, log_reduced(x, f, n), -1), a));
}

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

#define ROUND_TO_4 (1.5 * 0x1p54) /* the last bit of such numbers is 4 */
#define ROUND_TO_1 (1.5 * 0x1p52)
/* And 2^-24: what is below 1 then is a float. gcc 12 takes vectors from f64 to f32 and back for nothing at -O3, so that
 * a cast does not do. */
#define ROUND_TO_FLOAT (1.5 * 0x1p28)

/* abs = (n + r) pi/2, |r| <= 1/2; n counts up to a few turns, in the low bits of *out_n. Gives r pi/2 as the sum of
 * two floats. */
static tir_expr_ref quarter_turns(expander *x, tir_expr_ref abs, tir_expr_ref *out_low, tir_expr_ref *out_n)
{
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
static tir_expr_ref expand_sin(expander *x, tir_expr_ref a, bool is_cos)
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
    tir_expr_ref is_odd = bin(x, TIR_EQ, bin(x, TIR_BITAND, n, u32(x, 1)), u32(x, 0));
    tir_expr_ref y = named(x, "either", tir_select(x->c, is_odd, odd, even));
    tir_expr_ref sign = bin(x, TIR_SHL, bin(x, TIR_BITAND, n, u32(x, 2)), u32(x, 30));
    if (!is_cos)
        sign = bin(x, TIR_BITXOR, sign, bin(x, TIR_BITAND, bits(x, a), u32(x, 0x80000000)));
    return named(x, is_cos ? "cosine" : "sine", from_bits(x, bin(x, TIR_BITXOR, bits(x, y), sign)));
}

/* --- expressions and statements --------------------------------------------------------------------------------------
 */

/* sin and cos compute in f64: vectors do that, a processor that may have no such arithmetic is better off with its
 * library. */
bool tir_expands_math(tir_op op, uint16_t lanes)
{
    switch (op) {
    case TIR_EXP:
    case TIR_DECAY:
    case TIR_EXPM1:
    case TIR_LOG:
    case TIR_LOG1P:
    case TIR_ERF:
    case TIR_TANH: return true;
    case TIR_SIN:
    case TIR_COS: return lanes > 1;
    default: return false;
    }
}

static bool is_expanded(tir_expr_ref e)
{
    return e->kind == TIR_CALL && e->type.dt == DT_F32 && tir_expands_math(e->op, e->type.lanes);
}

static void look_for_call(void *ctx, tir_expr_ref e)
{
    *(bool *)ctx |= is_expanded(e);
}

static bool has(tir_expr_ref e, void (*look)(void *ctx, tir_expr_ref e))
{
    bool found = false;
    tir_visit_expr(e, look, &found);
    return found;
}

static tir_expr_ref expand_call(expander *x, tir_expr_ref e)
{
    if (e->op == TIR_EXP)
        return expand_exp(x, e->args[0]);
    if (e->op == TIR_DECAY)
        return expand_decay(x, e->args[0]);
    if (e->op == TIR_EXPM1)
        return expand_expm1(x, e->args[0]);
    if (e->op == TIR_LOG)
        return expand_log(x, e->args[0]);
    if (e->op == TIR_LOG1P)
        return expand_log1p(x, e->args[0]);
    if (e->op == TIR_SIN || e->op == TIR_COS)
        return expand_sin(x, e->args[0], e->op == TIR_COS);
    return e->op == TIR_ERF ? expand_erf(x, e->args[0]) : expand_tanh(x, e->args[0]);
}

static bool decides(tir_expr_ref e)
{
    return e->kind == TIR_SELECT || (e->kind == TIR_BINOP && (e->op == TIR_AND || e->op == TIR_OR));
}

#define MOST_LOADS 16 /* that are looked at */

static void note_loads(expander *x, tir_expr_ref e)
{
    if (x->loads.len == MOST_LOADS || tir_map_get(&x->seen, e))
        return;
    tir_map_put(&x->seen, e, e);
    if (e->kind == TIR_LOAD)
        vec_push(&x->c->mem, &x->loads, e);
    for (uint32_t i = 0; i < e->n_args && (i == 0 || !decides(e)); i++)
        note_loads(x, e->args[i]);
}

typedef struct load_search {
    const expander *x;
    bool found; /* a load that may not happen */
} load_search;

static void look_for_load(void *ctx, tir_expr_ref e)
{
    load_search *l = ctx;
    bool known = e->kind != TIR_LOAD;
    for (uint32_t i = 0; i < l->x->loads.len && !known; i++)
        known = tir_expr_equal(l->x->loads.data[i], e);
    l->found |= !known;
}

static bool may_load(const expander *x, tir_expr_ref e)
{
    load_search l = {.x = x};
    tir_visit_expr(e, look_for_load, &l);
    return l.found;
}

/* `maybe`: evaluated only under a condition. */
static tir_expr_ref expand(expander *x, tir_expr_ref e, bool maybe)
{
    tir_expr_ref args[3];
    if (e->n_args == 0 || e->n_args > 3 || !has(e, look_for_call))
        return e;
    if (maybe && may_load(x, e))
        return e;
    tir_expr_ref known = tir_map_get(&x->done, e);
    if (known)
        return known;
    for (uint32_t i = 0; i < e->n_args; i++)
        args[i] = expand(x, e->args[i], maybe || (decides(e) && i > 0));
    tir_expr_ref out = tir_node_rebuild(x->c, e, args);
    if (is_expanded(out))
        out = expand_call(x, out);
    tir_map_put(&x->done, e, out);
    return out;
}

static tir_stmt *expand_stmt(tir_rewriter *r, tir_stmt *s)
{
    bool holds_value = s->kind == TIR_STORE || s->kind == TIR_LET;
    if (!holds_value || !has(s->value, look_for_call) || tir_has_extern(s->value))
        return s;
    const tir_func *f = r->ctx;
    const target *t = f->target ? f->target : target_default();
    expander x = {.c = r->c, .scales = t->vector_bytes == 4 * SCALED_LANES && (t->features & TARGET_MADD) != 0};
    tir_map_init(&x.done, &r->c->mem);
    tir_map_init(&x.seen, &r->c->mem);
    note_loads(&x, s->value);
    tir_expr_ref value = expand(&x, s->value, false);
    tir_stmt *out = s->kind == TIR_STORE ? tir_store(r->c, s->buffer, s->n_indices, s->indices, value)
                                         : tir_let(r->c, s->var, value, s->body);
    for (uint32_t i = x.lets.len; i-- > 0;)
        out = tir_let(r->c, x.lets.data[i]->var, x.lets.data[i]->value, out);
    return out;
}

bool tir_pass_math(compiler *c, tir_func *f)
{
    tir_rewriter r = {.c = c, .ctx = f, .stmt = expand_stmt};
    f->body = tir_rewrite_stmt(&r, f->body);
    return true;
}
