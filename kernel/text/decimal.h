/* SPDX-License-Identifier: Apache-2.0 */
/* Decimal numbers with all their digits, which powers of two multiply and divide exactly: what text and floats become
 * on the way to each other, so that both are rounded once. 767 digits are the most that a float of 64 bits has. */
#ifndef LATHE_KERNEL_TEXT_DECIMAL_H
#define LATHE_KERNEL_TEXT_DECIMAL_H
#include "kernel/common/maybe.h"
#include <stdint.h>

#define LATHE_DIGITS 800
#define LATHE_MOST_SHIFT 27u /* ten times that power of two fits into 32 bits */

/* 0.d[0]d[1]... * 10^point, without zeros at the end; n 0: it is 0. */
typedef struct lathe_decimal {
    int32_t n, point;
    int32_t more; /* 1: digits behind these are left out, and not all of them are 0 */
    uint8_t d[LATHE_DIGITS];
} lathe_decimal;

static LATHE_MAYBE void lathe_decimal_trim(lathe_decimal *x)
{
    while (x->n > 0 && x->d[x->n - 1] == 0)
        x->n--;
    if (x->n == 0)
        x->point = 0;
}

static LATHE_MAYBE void lathe_decimal_set(lathe_decimal *x, uint64_t v)
{
    uint64_t rest = v;
    int32_t n = 0;
    for (; rest > 0; rest /= 10)
        n++;
    x->n = n;
    x->point = n;
    x->more = 0;
    for (; n > 0; v /= 10)
        x->d[--n] = (uint8_t)(v % 10);
    lathe_decimal_trim(x);
}

/* A digit at the end of those that there are. */
static LATHE_MAYBE void lathe_decimal_add(lathe_decimal *x, uint32_t digit)
{
    if (x->n < LATHE_DIGITS)
        x->d[x->n++] = (uint8_t)digit;
    else if (digit != 0)
        x->more = 1;
}

/* Times 2^k, k at most LATHE_MOST_SHIFT. */
static LATHE_MAYBE void lathe_decimal_double(lathe_decimal *x, uint32_t k)
{
    uint32_t carry = 0, extra = 0;
    int32_t i, at;
    for (i = x->n; i > 0; i--)
        carry = (((uint32_t)x->d[i - 1] << k) + carry) / 10;
    for (; carry > 0; carry /= 10)
        extra++;
    at = x->n + (int32_t)extra;
    x->point += (int32_t)extra;
    for (i = x->n; i > 0 || carry > 0;) {
        const uint32_t v = carry + (i > 0 ? (uint32_t)x->d[i - 1] << k : 0);
        carry = v / 10;
        i -= i > 0;
        if (--at < LATHE_DIGITS)
            x->d[at] = (uint8_t)(v % 10);
        else if (v % 10 != 0)
            x->more = 1;
    }
    x->n += (int32_t)extra;
    if (x->n > LATHE_DIGITS)
        x->n = LATHE_DIGITS;
    lathe_decimal_trim(x);
}

/* Divided by 2^k, k at most LATHE_MOST_SHIFT. */
static LATHE_MAYBE void lathe_decimal_halve(lathe_decimal *x, uint32_t k)
{
    const uint32_t mask = ((uint32_t)1 << k) - 1;
    const int32_t n = x->n;
    uint32_t v = 0;
    int32_t i = 0;
    if (n == 0)
        return;
    while (v >> k == 0) {
        v = v * 10 + (i < n ? x->d[i] : 0);
        i++;
    }
    x->point -= i - 1;
    x->n = 0;
    while (i < n || v > 0) {
        lathe_decimal_add(x, v >> k);
        v = (v & mask) * 10 + (i < n ? x->d[i] : 0);
        i++;
    }
    lathe_decimal_trim(x);
}

/* Times 2^k of any size. */
static LATHE_MAYBE void lathe_decimal_scale(lathe_decimal *x, int32_t k)
{
    for (; k > (int32_t)LATHE_MOST_SHIFT; k -= (int32_t)LATHE_MOST_SHIFT)
        lathe_decimal_double(x, LATHE_MOST_SHIFT);
    for (; k < -(int32_t)LATHE_MOST_SHIFT; k += (int32_t)LATHE_MOST_SHIFT)
        lathe_decimal_halve(x, LATHE_MOST_SHIFT);
    if (k > 0)
        lathe_decimal_double(x, (uint32_t)k);
    else if (k < 0)
        lathe_decimal_halve(x, (uint32_t)-k);
}

/* Whether the first `digits` of them, 0 or more, are rounded up: to nearest, halves to even. */
static LATHE_MAYBE int32_t lathe_decimal_up(const lathe_decimal *x, int32_t digits)
{
    if (digits < 0 || digits >= x->n)
        return 0;
    if (x->d[digits] == 5 && digits + 1 == x->n && x->more == 0)
        return digits > 0 && x->d[digits - 1] % 2 == 1;
    return x->d[digits] >= 5;
}

static LATHE_MAYBE void lathe_decimal_round(lathe_decimal *x, int32_t digits)
{
    const int32_t up = lathe_decimal_up(x, digits);
    if (digits >= x->n)
        return;
    x->n = digits;
    while (up && x->n > 0 && x->d[x->n - 1] == 9)
        x->n--;
    if (up && x->n > 0) {
        x->d[x->n - 1]++;
    } else if (up) {
        x->d[0] = 1;
        x->n = 1;
        x->point++;
    }
    x->more = 0;
    lathe_decimal_trim(x);
}

/* To the nearest whole number, which has to fit. */
static LATHE_MAYBE uint64_t lathe_decimal_whole(const lathe_decimal *x)
{
    uint64_t v = 0;
    for (int32_t i = 0; i < x->point; i++)
        v = v * 10 + (i < x->n ? x->d[i] : 0u);
    return v + (uint64_t)lathe_decimal_up(x, x->point);
}

/* How many times a number with `point` digits before its point can be halved, at least, before it is below 1. */
static LATHE_MAYBE uint32_t lathe_decimal_steps(int32_t point)
{
    static const uint8_t steps[9] = {1, 3, 6, 9, 13, 16, 19, 23, 26};
    return point < 9 ? steps[point] : LATHE_MOST_SHIFT;
}

/* The nearest float of 64 bits, by its bits, without a sign; it destroys x. */
static LATHE_MAYBE uint64_t lathe_decimal_bits(lathe_decimal *x)
{
    const uint64_t infinite = (uint64_t)0x7ff << 52, one = (uint64_t)1 << 52;
    int32_t e = 0;
    if (x->n == 0 || x->point < -330)
        return 0;
    if (x->point > 310)
        return infinite;
    while (x->point > 0) {
        const uint32_t k = lathe_decimal_steps(x->point);
        lathe_decimal_halve(x, k);
        e += (int32_t)k;
    }
    while (x->point < 0 || (x->point == 0 && x->d[0] < 5)) {
        const uint32_t k = lathe_decimal_steps(-x->point);
        lathe_decimal_double(x, k);
        e -= (int32_t)k;
    }
    e--; /* from 1/2 up to 1 times 2, that is from 1 up to 2 */
    if (e < -1022) {
        lathe_decimal_scale(x, e + 1022);
        e = -1022;
    }
    lathe_decimal_scale(x, 53);
    uint64_t m = lathe_decimal_whole(x);
    if (m >> 53 != 0) {
        m >>= 1;
        e++;
    }
    if (e > 1023)
        return infinite;
    return m < one ? m : (m & (one - 1)) | (uint64_t)(e + 1023) << 52;
}

#endif
