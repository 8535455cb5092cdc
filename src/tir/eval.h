/* SPDX-License-Identifier: Apache-2.0 */
/* What every operator of the loop IR computes on single values. Constant folding and the interpreter both use these, so
 * that a folded expression and an executed one cannot differ. Integers of every type travel as int64 (u64 as its bits).
 */
#ifndef LATHE_TIR_EVAL_H
#define LATHE_TIR_EVAL_H
#include "tir/tir.h"

#include <math.h>
#include <string.h>

static inline int64_t eval_signed(uint64_t u)
{
    int64_t v;
    memcpy(&v, &u, sizeof v);
    return v;
}

/* The value that `v` has after it went through a register of type t. */
static inline int64_t eval_wrap(dtype t, int64_t v)
{
    switch (dtype_bits(t)) {
    case 8: return t == DT_BOOL ? v != 0 : t == DT_I8 ? (int8_t)v : (uint8_t)v;
    case 16: return t == DT_I16 ? (int16_t)v : (uint16_t)v;
    case 32: return t == DT_I32 ? (int32_t)v : (int64_t)(uint32_t)v;
    default: return v;
    }
}

static inline int64_t eval_add(int64_t a, int64_t b)
{
    return eval_signed((uint64_t)a + (uint64_t)b);
}
static inline int64_t eval_sub(int64_t a, int64_t b)
{
    return eval_signed((uint64_t)a - (uint64_t)b);
}
static inline int64_t eval_mul(int64_t a, int64_t b)
{
    return eval_signed((uint64_t)a * (uint64_t)b);
}
static inline int64_t eval_div(int64_t a, int64_t b)
{
    return b == 0 ? 0 : b == -1 ? eval_sub(0, a) : a / b;
}
static inline int64_t eval_mod(int64_t a, int64_t b)
{
    return b == 0 || b == -1 ? 0 : a % b;
}

static inline int64_t eval_floordiv(int64_t a, int64_t b)
{
    int64_t q = eval_div(a, b);
    return b != 0 && eval_mod(a, b) != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

static inline int64_t eval_floormod(int64_t a, int64_t b)
{
    int64_t r = eval_mod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static inline int64_t eval_udiv(int64_t a, int64_t b)
{
    return b == 0 ? 0 : eval_signed((uint64_t)a / (uint64_t)b);
}
static inline int64_t eval_umod(int64_t a, int64_t b)
{
    return b == 0 ? 0 : eval_signed((uint64_t)a % (uint64_t)b);
}
static inline int64_t eval_imin(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t eval_imax(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
static inline int64_t eval_umin(int64_t a, int64_t b)
{
    return (uint64_t)a < (uint64_t)b ? a : b;
}
static inline int64_t eval_umax(int64_t a, int64_t b)
{
    return (uint64_t)a > (uint64_t)b ? a : b;
}

/* Shifts of less than 0 or of `bits` or more: all bits are gone, the sign stays. */
static inline int64_t eval_shl(uint32_t bits, int64_t a, int64_t b)
{
    return b < 0 || b >= (int64_t)bits ? 0 : eval_signed((uint64_t)a << b);
}
static inline int64_t eval_sar(uint32_t bits, int64_t a, int64_t b)
{
    if (b < 0 || b >= (int64_t)bits)
        return a < 0 ? -1 : 0;
    return a >= 0 ? eval_signed((uint64_t)a >> b) : ~eval_signed(~(uint64_t)a >> b);
}
static inline int64_t eval_shr(uint32_t bits, int64_t a, int64_t b)
{
    return b < 0 || b >= (int64_t)bits ? 0 : eval_signed((uint64_t)a >> b);
}

static inline float eval_fminf(float a, float b)
{
    return a != a ? a : b != b ? b : a < b ? a : b;
}
static inline float eval_fmaxf(float a, float b)
{
    return a != a ? a : b != b ? b : a > b ? a : b;
}
static inline double eval_fmin(double a, double b)
{
    return a != a ? a : b != b ? b : a < b ? a : b;
}
static inline double eval_fmax(double a, double b)
{
    return a != a ? a : b != b ? b : a > b ? a : b;
}

static inline float eval_round_f16(float x)
{
    return dtype_f16_to_f32(dtype_f32_to_f16(x));
}
static inline float eval_round_bf16(float x)
{
    return dtype_bf16_to_f32(dtype_f32_to_bf16(x));
}

/* Truncation toward zero, saturating; NaN gives 0. */
static inline int64_t eval_f64_to_int(dtype t, double v)
{
    int64_t i;
    if (t == DT_U64)
        return eval_signed(v != v || v <= 0 ? 0 : v >= 18446744073709551615.0 ? UINT64_MAX : (uint64_t)v);
    if (v != v)
        return 0;
    if (v >= 9223372036854775807.0)
        i = INT64_MAX;
    else
        i = v <= -9223372036854775808.0 ? INT64_MIN : (int64_t)v;
    return eval_imin(eval_imax(i, dtype_min_int(t)), dtype_max_int(t));
}

/* u64 travels as bits: the conversion must know. */
static inline double eval_int_to_f64(dtype t, int64_t v)
{
    return t == DT_U64 ? (double)(uint64_t)v : (double)v;
}
static inline float eval_int_to_f32(dtype t, int64_t v)
{
    return t == DT_U64 ? (float)(uint64_t)v : (float)v;
}

/* The same bits as another type. */
static inline int64_t eval_f32_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return (int64_t)u;
}
static inline int64_t eval_f64_bits(double x)
{
    int64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
static inline float eval_bits_f32(int64_t v)
{
    const uint32_t u = (uint32_t)v;
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}
static inline double eval_bits_f64(int64_t v)
{
    double x;
    memcpy(&x, &v, sizeof x);
    return x;
}

/* x * 2^n, n rounded down; beyond 4000 either way the result is the same. */
static inline double eval_ldexp(double x, double n)
{
    return isnan(n) ? n : ldexp(x, (int)fmin(fmax(floor(n), -4000.0), 4000.0));
}
static inline float eval_ldexpf(float x, float n)
{
    return isnan(n) ? n : ldexpf(x, (int)fminf(fmaxf(floorf(n), -4000.0f), 4000.0f));
}

/* The upper word of a product, the lower one in *low: as generated C makes it, from products of 32 bits. */
static inline uint64_t eval_product(uint64_t x, uint64_t k, uint64_t *low)
{
    const uint64_t mask = UINT32_MAX, x0 = x & mask, x1 = x >> 32, k0 = k & mask, k1 = k >> 32;
    const uint64_t first = x0 * k0, middle = x1 * k0 + (first >> 32), cross = x0 * k1 + (middle & mask);
    *low = cross << 32 | (first & mask);
    return x1 * k1 + (middle >> 32) + (cross >> 32);
}

/* x * k, |x| below 2^62, k the bits of an f64 above 0, rounded exactly to the nearest, ties to even, beyond 2^30 on
 * the same side. rough: what is |x| * rough / 2^62 * 2^e from a tie at most is one, 2^e just above k: k is
 * rounded itself. */
static inline int64_t eval_scaled(int64_t x, int64_t k, int64_t rough)
{
    const uint64_t size = x < 0 ? -(uint64_t)x : (uint64_t)x, most = (uint64_t)1 << 24, one = (uint64_t)1 << 52;
    const uint64_t number = (((uint64_t)k & (one - 1)) | one) << 9;
    const int64_t all = 62 + 1022 - (k >> 52 & 2047), by = all < 32 ? 32 : all > 127 ? 127 : all;
    const int64_t down = by < 65 ? 1 : by - 64;
    const uint64_t n = by < 65 ? (size < most ? size : most) << (65 - by) : size, off = n * (uint64_t)rough;
    uint64_t low, high = eval_product(n, number, &low), y = high >> down;
    const int64_t part = (int64_t)(high & (((uint64_t)1 << down) - 1)) - ((int64_t)1 << (down - 1));
    if ((part == 0 && low <= off) || (part == -1 && low != 0 && -low <= off))
        y += y & 1;
    else
        y += part >= 0;
    y = y < (uint64_t)1 << 30 ? y : (uint64_t)1 << 30;
    return x < 0 ? -(int64_t)y : (int64_t)y;
}

/* Fixed point of i32: TIR_HIGH, TIR_DOUBLED and TIR_SHIFTED. */
static inline int64_t eval_high(int64_t x, int64_t y)
{
    return (x * y) >> 32;
}
static inline int64_t eval_doubled(int64_t x, int64_t y)
{
    const int64_t r = (x * y + ((int64_t)1 << 30)) >> 31;
    return r > INT32_MAX ? INT32_MAX : r;
}
static inline int64_t eval_shifted(int64_t x, int64_t n)
{
    const int64_t by = n < 0 ? 0 : n > 31 ? 31 : n, half = ((int64_t)1 << by) >> 1;
    return x < 0 ? -((half - x) >> by) : (x + half) >> by;
}

/* X(op, value) over x[]: the intrinsics of i32 that constants fold. */
#define EVAL_FIXED_CALLS(X)                  \
    X(TIR_HIGH, eval_high(x[0], x[1]))       \
    X(TIR_DOUBLED, eval_doubled(x[0], x[1])) \
    X(TIR_SHIFTED, eval_shifted(x[0], x[1]))

/* X(op, f32 form, f64 form) over x[]: the intrinsics that give a float. */
#define EVAL_FLOAT_CALLS(X)                                                                                            \
    X(TIR_EXP, expf(x[0]), exp(x[0]))                                                                                  \
    X(TIR_DECAY, expf(x[0]), exp(x[0]))                                                                                \
    X(TIR_LOG, logf(x[0]), log(x[0]))                                                                                  \
    X(TIR_LDEXP, eval_ldexpf(x[0], x[1]), eval_ldexp(x[0], x[1]))                                                      \
    X(TIR_SQRT, sqrtf(x[0]), sqrt(x[0]))                                                                               \
    X(TIR_SIN, sinf(x[0]), sin(x[0])) X(TIR_COS, cosf(x[0]), cos(x[0])) X(TIR_TAN, tanf(x[0]), tan(x[0]))              \
        X(TIR_ASIN, asinf(x[0]), asin(x[0])) X(TIR_ACOS, acosf(x[0]), acos(x[0])) X(TIR_ATAN, atanf(x[0]), atan(x[0])) \
            X(TIR_SINH, sinhf(x[0]), sinh(x[0])) X(TIR_COSH, coshf(x[0]), cosh(x[0]))                                  \
                X(TIR_TANH, tanhf(x[0]), tanh(x[0])) X(TIR_ASINH, asinhf(x[0]), asinh(x[0]))                           \
                    X(TIR_ACOSH, acoshf(x[0]), acosh(x[0])) X(TIR_ATANH, atanhf(x[0]), atanh(x[0]))                    \
                        X(TIR_ERF, erff(x[0]), erf(x[0])) X(TIR_POW, powf(x[0], x[1]), pow(x[0], x[1]))                \
                            X(TIR_FMOD, fmodf(x[0], x[1]), fmod(x[0], x[1])) X(TIR_FLOOR, floorf(x[0]), floor(x[0]))   \
                                X(TIR_CEIL, ceilf(x[0]), ceil(x[0])) X(TIR_RINT, rintf(x[0]), rint(x[0]))              \
                                    X(TIR_TRUNC, truncf(x[0]), trunc(x[0])) X(TIR_FABS, fabsf(x[0]), fabs(x[0]))       \
                                        X(TIR_LOG1P, log1pf(x[0]), log1p(x[0]))                                        \
                                            X(TIR_EXPM1, expm1f(x[0]), expm1(x[0]))                                    \
                                                X(TIR_FMA, fmaf(x[0], x[1], x[2]), fma(x[0], x[1], x[2])) \
    X(TIR_ABOVE, x[0] > x[1] ? x[0] : x[1], x[0] > x[1] ? x[0] : x[1])                                                 \
    X(TIR_BELOW, x[0] < x[1] ? x[0] : x[1], x[0] < x[1] ? x[0] : x[1])                                                 \
    X(TIR_AT_LEAST, x[0] <= x[1] ? x[1] : x[0], x[0] <= x[1] ? x[1] : x[0])                                            \
    X(TIR_AT_MOST, x[0] >= x[1] ? x[1] : x[0], x[0] >= x[1] ? x[1] : x[0])                                             \
    X(TIR_APART, x[0], x[0])

/* a op b in type t. Comparisons and logic give 0 or 1. */
int64_t tir_eval_int(dtype t, tir_op op, int64_t a, int64_t b);
/* Intrinsics of fixed point. */
int64_t tir_eval_fixed(tir_op op, int64_t a, int64_t b);
/* Arithmetic of a float type, result rounded to it. */
double tir_eval_float(dtype t, tir_op op, double a, double b);
bool tir_eval_compare(dtype t, tir_op op, double a, double b);
/* v as a value of float type t. */
double tir_eval_round(dtype t, double v);
/* Conversions as the C of packages makes them: to floats of 16 bits by way of f32, so that what f32 does not hold is
 * rounded twice. v of integer type `from` as a value of float type `to`: */
double tir_eval_int_to_float(dtype to, dtype from, int64_t v);
/* v of f64 or of another float type as a value of float type `to`. */
double tir_eval_float_to_float(dtype to, double v);
/* Intrinsics of float type t. */
double tir_eval_call(dtype t, tir_op op, const double *args);
#endif
