/* SPDX-License-Identifier: Apache-2.0 */
/* Fixed-point arithmetic as TensorFlow Lite Micro has it. The polynomial and the Newton steps are part of what a device
 * computes: another way to the same functions would give other last bits. */
#include "frontend/tflite/tflite_fixed.h"

#include "graph/op/nn.h"

fixed_scale fixed_of(double real)
{
    fixed_scale s;
    graph_fixed_scale(real, &s.multiplier, &s.shift);
    return s;
}

int16_t fixed_narrow(int32_t m)
{
    return (int16_t)(m >= INT32_MAX - (1 << 15) ? INT16_MAX : (m + (1 << 15)) >> 16);
}

int32_t fixed_divided(int32_t x, int e)
{
    const int32_t mask = (int32_t)((UINT32_C(1) << e) - 1), rest = x & mask;
    return (int32_t)((x >> e) + (rest > (mask >> 1) + (x < 0)));
}

int32_t fixed_product(int32_t a, int32_t b)
{
    const int64_t p = (int64_t)a * b, half = p >= 0 ? INT64_C(1) << 30 : 1 - (INT64_C(1) << 30);
    return a == INT32_MIN && b == INT32_MIN ? INT32_MAX : (int32_t)((p + half) / (INT64_C(1) << 31));
}

int16_t fixed_product16(int16_t a, int16_t b)
{
    const int32_t p = (int32_t)a * b, half = p >= 0 ? 1 << 14 : 1 - (1 << 14);
    return a == INT16_MIN && b == INT16_MIN ? INT16_MAX : (int16_t)((p + half) / (1 << 15));
}

static int32_t wrapped(int64_t x)
{
    return (int32_t)(uint32_t)(uint64_t)x;
}

int32_t fixed_scaled(int32_t x, fixed_scale s)
{
    const int left = s.shift > 0 ? s.shift : 0, right = s.shift > 0 ? 0 : -s.shift;
    return fixed_divided(fixed_product(wrapped((int64_t)x * (INT64_C(1) << left)), s.multiplier), right);
}

/* x * 2^e, saturated. */
static int32_t saturated_left(int32_t x, int e)
{
    const int64_t y = (int64_t)x * (INT64_C(1) << e);
    return y > INT32_MAX ? INT32_MAX : y < INT32_MIN ? INT32_MIN : (int32_t)y;
}

static const int32_t exp_constant = 1895147668, exp_third = 715827883;      /* Q0.31: exp(-1/8), 1/3 */
static const int32_t inverse_first = 1515870810, inverse_slope = -1010580540; /* Q2.29: 48/17, -32/17 */
static const int32_t exp_factors[] = {1672461947, 1302514674, 790015084, 290630308,
                                      39332535,   720401,     242}; /* Q0.31: exp(-2^k), k from -2 on */

/* exp on [-1/4, 0), Q0.31: Taylor's series around -1/8. */
static int32_t exp_near_zero(int32_t a)
{
    const int32_t constant = exp_constant, third = exp_third;
    const int32_t x = a + (1 << 28);
    const int32_t x2 = fixed_product(x, x), x3 = fixed_product(x2, x), x4 = fixed_product(x2, x2);
    const int32_t inner = fixed_divided(fixed_product(fixed_divided(x4, 2) + x3, third) + x2, 1);
    return constant + fixed_product(constant, x + inner);
}

int32_t fixed_exp(int32_t a, int bits)
{
    const int behind = 31 - bits;
    const int32_t quarter = (int32_t)(INT64_C(1) << (behind - 2));
    if (a == 0)
        return INT32_MAX;
    if (bits > 5 && a < -(int32_t)(INT64_C(1) << (behind + 5)))
        return 0;
    const int32_t near = (a & (quarter - 1)) - quarter, rest = near - a;
    int32_t y = exp_near_zero(saturated_left(near, bits));
    for (int k = -2; k <= 4; k++)
        if (bits > k && (rest >> (behind + k)) & 1)
            y = fixed_product(y, exp_factors[k + 2]);
    return y;
}

/* The middle of a and the largest number, halves away from 0. */
static int32_t half_sum(int32_t a, int32_t b)
{
    const int64_t sum = (int64_t)a + b;
    return (int32_t)((sum + (sum >= 0 ? 1 : -1)) / 2);
}

/* 1 / (1 + a) in Q2.29, a of Q0.31 from 0: three steps of Newton's method. */
static int32_t inverse(int32_t a)
{
    const int32_t h = half_sum(a, INT32_MAX), one = 1 << 29;
    int32_t x = inverse_first + fixed_product(h, inverse_slope);
    for (int i = 0; i < 3; i++) {
        const int32_t error = one - fixed_product(h, x);
        x += saturated_left(fixed_product(x, error), 2);
    }
    return x;
}

int32_t fixed_reciprocal(int32_t x, int *out_bits)
{
    const uint32_t top = UINT32_C(1) << 31;
    uint32_t v = (uint32_t)x;
    for (*out_bits = 31; !(v & top); v <<= 1)
        (*out_bits)--;
    return saturated_left(inverse((int32_t)(v - top)), 1);
}

int32_t fixed_logistic(int32_t a)
{
    if (a == 0)
        return 1 << 30;
    const int32_t p = saturated_left(inverse(fixed_exp(a > 0 ? -a : a, 4)), 1);
    return a < 0 ? INT32_MAX - p : p;
}

int32_t fixed_tanh(int32_t a)
{
    if (a == 0)
        return 0;
    /* (1 - e) / (1 + e) with e = exp(-2 |a|), whose argument has one more bit before the point */
    const int32_t t = saturated_left(inverse(fixed_exp(a > 0 ? -a : a, 5)) - (1 << 29), 2);
    return a < 0 ? -t : t;
}

/* --- the same in 16 bits: what is above is a step of 32 bits, rounded to the upper half --- */

static int16_t narrow16(int32_t x)
{
    return (int16_t)(x > INT16_MAX ? INT16_MAX : x < INT16_MIN ? INT16_MIN : x);
}

static int16_t product16(int32_t a, int32_t b)
{
    return fixed_product16((int16_t)a, (int16_t)b);
}

static int16_t upper(int32_t constant)
{
    return (int16_t)fixed_divided(constant, 16);
}

static int16_t exp_near_zero16(int16_t a)
{
    const int16_t constant = upper(exp_constant), third = upper(exp_third), x = (int16_t)(a + (1 << 12));
    const int16_t x2 = product16(x, x), x3 = product16(x2, x), x4 = product16(x2, x2);
    const int32_t inner = fixed_divided(product16(fixed_divided(x4, 2) + x3, third) + x2, 1);
    return narrow16(constant + product16(constant, x + inner));
}

static int16_t exp16(int16_t a, int bits)
{
    const int behind = 15 - bits;
    const int32_t quarter = 1 << (behind - 2);
    if (a == 0)
        return INT16_MAX;
    if (bits > 5 && a < -(1 << (behind + 5)))
        return 0;
    const int32_t near = (a & (quarter - 1)) - quarter, rest = near - a;
    int16_t y = exp_near_zero16(narrow16(near * (1 << bits)));
    for (int k = -2; k <= 4; k++)
        if (bits > k && (rest >> (behind + k)) & 1)
            y = product16(y, upper(exp_factors[k + 2]));
    return y;
}

static int16_t inverse16(int16_t a)
{
    const int16_t h = (int16_t)half_sum(a, INT16_MAX);
    int16_t x = (int16_t)(upper(inverse_first) + product16(h, upper(inverse_slope)));
    for (int i = 0; i < 3; i++)
        x = (int16_t)(x + narrow16(product16(x, (1 << 13) - product16(h, x)) * 4));
    return x;
}

int16_t fixed_logistic16(int16_t a)
{
    if (a == 0)
        return 1 << 14;
    const int16_t p = narrow16(inverse16(exp16((int16_t)(a > 0 ? -a : a), 3)) * 2);
    return (int16_t)(a < 0 ? INT16_MAX - p : p);
}

int16_t fixed_tanh16(int16_t a, int bits)
{
    if (a == 0)
        return 0;
    const int16_t t = narrow16((inverse16(exp16((int16_t)(a > 0 ? -a : a), bits + 1)) - (1 << 13)) * 4);
    return (int16_t)(a < 0 ? -t : t);
}

/* Five steps of Newton's method in Q3.28, from 1. */
fixed_scale fixed_inverse_root(int32_t x)
{
    fixed_scale s = {INT32_MAX, 11};
    int zeros = 0;
    if (x <= 1)
        return (fixed_scale){INT32_MAX, 0};
    for (; x >= 1 << 29; s.shift++)
        x /= 4;
    while ((uint32_t)x << zeros < UINT32_C(1) << 31)
        zeros++;
    const int pairs = (zeros - 1) / 2 - 1;
    s.shift -= pairs;
    x <<= 2 * pairs;
    const int32_t half = fixed_divided(x >> 1, 1), one_and_half = (1 << 28) + (1 << 27);
    int32_t y = 1 << 28;
    for (int i = 0; i < 5; i++) {
        const int32_t cube = saturated_left(fixed_product(fixed_product(y, y), y), 6);
        y = saturated_left(fixed_product(one_and_half, y) - fixed_product(half, cube), 3);
    }
    s.multiplier = fixed_product(y, 1518500250); /* sqrt(1/2) */
    if (s.shift < 0) {
        s.multiplier *= 1 << -s.shift;
        s.shift = 0;
    }
    s.shift = -s.shift;
    return s;
}
