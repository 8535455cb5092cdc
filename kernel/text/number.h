/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers from text and text from numbers, as onnxruntime's Cast has them. Text is bytes up to a zero or the width. */
#ifndef LATHE_KERNEL_TEXT_NUMBER_H
#define LATHE_KERNEL_TEXT_NUMBER_H
#include "kernel/text/decimal.h"
#include <string.h>

/* What numbers are: int64_t, uint64_t, double. */
#define LATHE_SIGNED 0
#define LATHE_UNSIGNED 1
#define LATHE_FLOAT 2
#define LATHE_FIXED 3 /* double, written with six digits behind the point */

/* --- reading --- */

typedef struct lathe_text {
    const uint8_t *at, *end;
} lathe_text;

/* The next byte, as a small letter; 0: there is none. */
static LATHE_MAYBE uint32_t lathe_text_peek(const lathe_text *t)
{
    const uint32_t c = t->at < t->end ? *t->at : 0;
    return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
}

static LATHE_MAYBE int32_t lathe_text_is_digit(const lathe_text *t)
{
    return lathe_text_peek(t) >= '0' && lathe_text_peek(t) <= '9';
}

/* Takes the word, in small letters, if the text goes on with it. */
static LATHE_MAYBE int32_t lathe_text_takes(lathe_text *t, const char *word)
{
    lathe_text at = *t;
    for (; *word; word++, at.at++)
        if (lathe_text_peek(&at) != (uint32_t)(uint8_t)*word)
            return 0;
    *t = at;
    return 1;
}

/* Takes blanks and a sign; 1: it is a minus. */
static LATHE_MAYBE int32_t lathe_text_sign(lathe_text *t)
{
    while (lathe_text_peek(t) == ' ' || (lathe_text_peek(t) >= '\t' && lathe_text_peek(t) <= '\r'))
        t->at++;
    return lathe_text_takes(t, "-") ? 1 : (lathe_text_takes(t, "+"), 0);
}

/* 0, or 1: there is no number, or it does not fit. */
static LATHE_MAYBE int32_t lathe_read_integer(lathe_text t, int32_t kind, uint64_t *out)
{
    const int32_t minus = lathe_text_sign(&t);
    const uint64_t most = kind == LATHE_UNSIGNED ? UINT64_MAX : (uint64_t)INT64_MAX + (minus ? 1u : 0u);
    uint64_t v = 0;
    if (!lathe_text_is_digit(&t))
        return 1;
    for (; lathe_text_is_digit(&t); t.at++) {
        const uint64_t digit = lathe_text_peek(&t) - '0';
        if (v > (most - digit) / 10)
            return 1;
        v = v * 10 + digit;
    }
    *out = minus ? 0 - v : v;
    return 0;
}

/* Digits with a point among them, and a power of ten; 0: there are none. */
static LATHE_MAYBE int32_t lathe_read_digits(lathe_text *t, lathe_decimal *x)
{
    int32_t any = 0, behind = 0;
    x->n = x->point = x->more = 0;
    for (;; t->at++) {
        const uint32_t c = lathe_text_peek(t);
        if (c == '.' && !behind) {
            behind = 1;
            continue;
        }
        if (!lathe_text_is_digit(t))
            break;
        any = 1;
        if (x->n > 0 || c != '0') {
            lathe_decimal_add(x, c - '0');
            x->point += !behind;
        } else if (behind) {
            x->point--;
        }
    }
    if (any && lathe_text_peek(t) == 'e') {
        lathe_text p = *t;
        int32_t e = 0;
        p.at++;
        const int32_t minus = lathe_text_takes(&p, "-");
        if (!minus)
            (void)lathe_text_takes(&p, "+");
        for (; lathe_text_is_digit(&p); p.at++)
            if (e < 100000)
                e = 10 * e + (int32_t)(lathe_text_peek(&p) - '0');
        x->point += minus ? -e : e;
    }
    lathe_decimal_trim(x);
    return any;
}

/* "0x" and a digit of base 16, perhaps behind a point. */
static LATHE_MAYBE int32_t lathe_is_hex(lathe_text t)
{
    if (!lathe_text_takes(&t, "0x"))
        return 0;
    (void)lathe_text_takes(&t, ".");
    return lathe_text_is_digit(&t) || (lathe_text_peek(&t) >= 'a' && lathe_text_peek(&t) <= 'f');
}

/* The same; numbers in base 16 are none. A float that is too large is infinite. */
static LATHE_MAYBE int32_t lathe_read_float(lathe_text t, uint64_t *out)
{
    lathe_decimal x;
    const uint64_t sign = (uint64_t)lathe_text_sign(&t) << 63;
    if (lathe_text_takes(&t, "inf"))
        *out = sign | (uint64_t)0x7ff << 52;
    else if (lathe_text_takes(&t, "nan"))
        *out = sign | (uint64_t)0xfff << 51;
    else if (lathe_is_hex(t) || !lathe_read_digits(&t, &x))
        return 1;
    else
        *out = sign | lathe_decimal_bits(&x);
    return 0;
}

/* 0, or 1: a text begins with no number, or with one that does not fit. */
static LATHE_MAYBE int32_t lathe_read_numbers(const uint8_t *text, int64_t count, int64_t width, int32_t kind,
                                              void *numbers)
{
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *from = text + i * width;
        const uint8_t *zero = (const uint8_t *)memchr(from, 0, (size_t)width);
        const lathe_text t = {from, zero ? zero : from + width};
        uint64_t v = 0;
        if (kind == LATHE_FLOAT ? lathe_read_float(t, &v) : lathe_read_integer(t, kind, &v))
            return 1;
        memcpy((uint8_t *)numbers + 8 * i, &v, 8);
    }
    return 0;
}

/* --- writing --- */

typedef struct lathe_line {
    uint8_t *to;
    int64_t n, width;
} lathe_line;

static LATHE_MAYBE void lathe_put(lathe_line *l, uint32_t c)
{
    if (l->n < l->width)
        l->to[l->n++] = (uint8_t)c;
}

static LATHE_MAYBE void lathe_put_text(lathe_line *l, const char *s)
{
    for (; *s; s++)
        lathe_put(l, (uint32_t)(uint8_t)*s);
}

static LATHE_MAYBE void lathe_put_integer(lathe_line *l, uint64_t v)
{
    uint8_t digits[20];
    int32_t n = 0;
    do {
        digits[n++] = (uint8_t)('0' + v % 10);
        v /= 10;
    } while (v > 0);
    while (n > 0)
        lathe_put(l, digits[--n]);
}

/* The digits from `first` up to `end`; what is behind them is zeros. */
static LATHE_MAYBE void lathe_put_digits(lathe_line *l, const lathe_decimal *x, int32_t first, int32_t end)
{
    for (int32_t i = first; i < end; i++)
        lathe_put(l, i >= 0 && i < x->n ? (uint32_t)('0' + x->d[i]) : '0');
}

/* The sign, and all digits in x; 0: there are none, and the text is written. */
static LATHE_MAYBE int32_t lathe_put_sign(lathe_line *l, uint64_t bits, const char *nan, const char *inf,
                                          lathe_decimal *x)
{
    const uint64_t fraction = bits & (((uint64_t)1 << 52) - 1);
    const int32_t e = (int32_t)(bits >> 52 & 0x7ff);
    if (e == 0x7ff && fraction != 0) {
        lathe_put_text(l, nan);
        return 0;
    }
    lathe_put_text(l, bits >> 63 ? "-" : "");
    if (e == 0x7ff) {
        lathe_put_text(l, inf);
        return 0;
    }
    lathe_decimal_set(x, e == 0 ? fraction : fraction | (uint64_t)1 << 52);
    lathe_decimal_scale(x, (e == 0 ? 1 : e) - 1075);
    return 1;
}

/* Six digits behind the point, as %f of C. */
static LATHE_MAYBE void lathe_put_fixed(lathe_line *l, uint64_t bits)
{
    lathe_decimal x;
    if (!lathe_put_sign(l, bits, bits >> 63 ? "-nan" : "nan", "inf", &x))
        return;
    if (x.point < -6)
        x.n = 0;
    else
        lathe_decimal_round(&x, x.point + 6);
    const int32_t point = x.n == 0 ? 0 : x.point;
    lathe_put_digits(l, &x, point > 0 ? 0 : -1, point > 0 ? point : 0);
    lathe_put(l, '.');
    lathe_put_digits(l, &x, point, point + 6);
}

/* Eight digits, as %.8g of C: a power of ten where the number is below 1e-4 or has more than eight digits. */
static LATHE_MAYBE void lathe_put_float(lathe_line *l, uint64_t bits)
{
    lathe_decimal x;
    if (!lathe_put_sign(l, bits, "NaN", "INF", &x))
        return;
    lathe_decimal_round(&x, 8);
    const int32_t power = x.n == 0 ? 0 : x.point - 1;
    const int32_t scaled = power < -4 || power >= 8, before = x.n == 0 || scaled ? 1 : x.point;
    lathe_put_digits(l, &x, before > 0 ? 0 : -1, before > 0 ? before : 0);
    if (x.n > before)
        lathe_put(l, '.');
    lathe_put_digits(l, &x, before, x.n);
    if (scaled) {
        const uint32_t size = (uint32_t)(power < 0 ? -power : power);
        lathe_put_text(l, power < 0 ? "e-" : "e+");
        lathe_put_text(l, size < 10 ? "0" : "");
        lathe_put_integer(l, size);
    }
}

/* Zeros stand behind the text. */
static LATHE_MAYBE void lathe_write_numbers(const void *numbers, int64_t count, int64_t width, int32_t kind,
                                            uint8_t *text)
{
    for (int64_t i = 0; i < count; i++) {
        lathe_line l = {text + i * width, 0, width};
        uint64_t v;
        memcpy(&v, (const uint8_t *)numbers + 8 * i, 8);
        if (kind == LATHE_FLOAT) {
            lathe_put_float(&l, v);
        } else if (kind == LATHE_FIXED) {
            lathe_put_fixed(&l, v);
        } else {
            const int32_t minus = kind == LATHE_SIGNED && v >> 63;
            lathe_put_text(&l, minus ? "-" : "");
            lathe_put_integer(&l, minus ? 0 - v : v);
        }
        while (l.n < width)
            lathe_put(&l, 0);
    }
}

#endif
