/* SPDX-License-Identifier: Apache-2.0 */
/* Names of dimensions that are expressions, as exporters write them: "2*((s53 - 1)//16) + 2", "floor(s0/2)",
 * "past_length + length". They are read with quotients, because "floor(h/2 - 1/2) + 1" is written with halves. What is
 * no expression, or none of names that something states, stays a name: nothing here is an error. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

#define MOST_TEXT  512u
#define MOST_DEPTH 24u
#define MOST_POWER 4u

/* num / den, den a positive number or an extent */
typedef struct ratio {
    dim num, den;
} ratio;

typedef struct reader {
    onnx_importer *im;
    compiler *c;
    const char *at, *end;
    uint32_t depth;
    bool named; /* an extent's name stands in it */
} reader;

static ratio whole(reader *r, dim d)
{
    return (ratio){d, dim_const(r->c, 1)};
}

static ratio add(reader *r, ratio a, ratio b, bool minus)
{
    compiler *c = r->c;
    if (minus)
        b.num = dim_sub(c, dim_const(c, 0), b.num);
    if (dim_equal(a.den, b.den))
        return (ratio){dim_add(c, a.num, b.num), a.den};
    return (ratio){dim_add(c, dim_mul(c, a.num, b.den), dim_mul(c, b.num, a.den)), dim_mul(c, a.den, b.den)};
}

static ratio multiply(reader *r, ratio a, ratio b)
{
    return (ratio){dim_mul(r->c, a.num, b.num), dim_mul(r->c, a.den, b.den)};
}

/* What may be divided by: by 0 there are 0 elements, as when it runs. */
static bool is_divisor(compiler *c, dim d)
{
    return !dim_is(d, 0) && dim_never_above(c, dim_const(c, 0), d);
}

static bool divide(reader *r, ratio a, ratio b, ratio *out)
{
    *out = (ratio){dim_mul(r->c, a.num, b.den), dim_mul(r->c, a.den, b.num)};
    return is_divisor(r->c, b.num);
}

/* Whether the quotient is a number of elements: n/2 + n/2 is. */
static bool is_whole(reader *r, ratio *x)
{
    if (!dim_is(x->den, 1) && dim_is(dim_mod(r->c, x->num, x->den), 0))
        *x = whole(r, dim_floordiv(r->c, x->num, x->den));
    return dim_is(x->den, 1);
}

static dim rounded_down(reader *r, ratio a)
{
    return dim_is(a.den, 1) ? a.num : dim_floordiv(r->c, a.num, a.den);
}

static dim rounded_up(reader *r, ratio a)
{
    return dim_is(a.den, 1) ? a.num : dim_ceildiv(r->c, a.num, a.den);
}

/* --- the text --- */

static bool read_sum(reader *r, ratio *out);

static bool is_letter(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_';
}

static bool is_digit(char ch)
{
    return ch >= '0' && ch <= '9';
}

static bool accept(reader *r, const char *text)
{
    size_t n = strlen(text);
    while (r->at < r->end && *r->at == ' ')
        r->at++;
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, text, n) != 0)
        return false;
    r->at += n;
    return true;
}

/* Digits, and behind a point none but zeros: "2.0*h" is what some tools make of a scale. */
static bool read_number(reader *r, ratio *out)
{
    int64_t v = 0;
    for (; r->at < r->end && is_digit(*r->at); r->at++)
        if (!i64_mul(v, 10, &v) || !i64_add(v, *r->at - '0', &v))
            return false;
    if (r->at < r->end && *r->at == '.')
        for (r->at++; r->at < r->end && is_digit(*r->at); r->at++)
            if (*r->at != '0')
                return false;
    *out = whole(r, dim_const(r->c, v));
    return r->at == r->end || !(is_letter(*r->at) || *r->at == '.');
}

/* Functions of sympy, and of the tools that print with it. */
static bool apply(reader *r, const char *name, uint32_t n, ratio *x, ratio *out)
{
    compiler *c = r->c;
    bool whole_all = true;
    for (uint32_t i = 0; i < n; i++)
        whole_all &= is_whole(r, &x[i]);
    if (n == 1 && (strcmp(name, "floor") == 0 || strcmp(name, "ceiling") == 0 || strcmp(name, "CeilToInt") == 0 ||
                   strcmp(name, "FloorToInt") == 0)) {
        *out = whole(r, name[0] == 'f' || name[0] == 'F' ? rounded_down(r, x[0]) : rounded_up(r, x[0]));
        return true;
    }
    if (n == 2 && (strcmp(name, "FloorDiv") == 0 || strcmp(name, "CleanDiv") == 0)) {
        if (!divide(r, x[0], x[1], out))
            return false;
        *out = whole(r, rounded_down(r, *out));
        return true;
    }
    if (n == 2 && strcmp(name, "IntTrueDiv") == 0)
        return divide(r, x[0], x[1], out);
    if (!whole_all || n < 2)
        return false;
    dim d = x[0].num;
    if (n == 2 && (strcmp(name, "Mod") == 0 || strcmp(name, "PythonMod") == 0)) {
        *out = whole(r, dim_mod(c, d, x[1].num));
        return is_divisor(c, x[1].num);
    }
    bool most = strcmp(name, "Max") == 0;
    if (!most && strcmp(name, "Min") != 0)
        return false;
    for (uint32_t i = 1; i < n; i++)
        d = most ? dim_max(c, d, x[i].num) : dim_min(c, d, x[i].num);
    *out = whole(r, d);
    return true;
}

static bool read_call(reader *r, const char *name, ratio *out)
{
    enum { MOST_ARGUMENTS = 8 };
    ratio x[MOST_ARGUMENTS];
    uint32_t n = 0;
    do {
        if (n == MOST_ARGUMENTS || !read_sum(r, &x[n]))
            return false;
        n++;
    } while (accept(r, ","));
    return accept(r, ")") && apply(r, name, n, x, out);
}

static bool read_name(reader *r, ratio *out)
{
    const char *from = r->at;
    while (r->at < r->end && (is_letter(*r->at) || is_digit(*r->at)))
        r->at++;
    const char *name = intern_n(r->c->names, from, (size_t)(r->at - from));
    if (accept(r, "("))
        return read_call(r, name, out);
    const dim *stated = onnx_map_get(&r->im->stated, name);
    if (!stated)
        return false;
    r->named = true;
    *out = whole(r, *stated);
    return true;
}

static bool read_atom(reader *r, ratio *out)
{
    if (accept(r, "("))
        return read_sum(r, out) && accept(r, ")");
    if (r->at == r->end)
        return false;
    return is_digit(*r->at) ? read_number(r, out) : is_letter(*r->at) && read_name(r, out);
}

static bool read_power(reader *r, ratio *out)
{
    ratio base, power;
    int64_t n = 0;
    if (!read_atom(r, &base))
        return false;
    *out = base;
    if (!accept(r, "**"))
        return true;
    if (!read_atom(r, &power) || !dim_is(power.den, 1) || !dim_is_const(power.num, &n) || n < 1 ||
        n > (int64_t)MOST_POWER)
        return false;
    for (; n > 1; n--)
        *out = multiply(r, *out, base);
    return true;
}

static bool read_sign(reader *r, ratio *out)
{
    bool minus = false;
    while (accept(r, "-"))
        minus = !minus;
    if (!read_power(r, out))
        return false;
    if (minus)
        out->num = dim_sub(r->c, dim_const(r->c, 0), out->num);
    return true;
}

static bool read_product(reader *r, ratio *out)
{
    ratio x;
    bool ok = read_sign(r, out);
    while (ok) {
        if (accept(r, "*")) {
            ok = read_sign(r, &x);
            if (ok)
                *out = multiply(r, *out, x);
        } else if (accept(r, "//")) {
            ok = read_sign(r, &x) && divide(r, *out, x, out);
            if (ok)
                *out = whole(r, rounded_down(r, *out));
        } else if (accept(r, "/")) {
            ok = read_sign(r, &x) && divide(r, *out, x, out);
        } else if (accept(r, "%")) {
            ok = read_sign(r, &x) && is_whole(r, out) && is_whole(r, &x) && is_divisor(r->c, x.num);
            if (ok)
                *out = whole(r, dim_mod(r->c, out->num, x.num));
        } else {
            return true;
        }
    }
    return false;
}

static bool read_sum(reader *r, ratio *out)
{
    ratio x;
    if (r->depth == MOST_DEPTH)
        return false;
    r->depth++;
    bool ok = read_product(r, out);
    for (bool minus; ok && ((minus = accept(r, "-")) || accept(r, "+"));) {
        ok = read_product(r, &x);
        if (ok)
            *out = add(r, *out, x, minus);
    }
    r->depth--;
    return ok;
}

dim onnx_dim_expression(onnx_importer *im, span text)
{
    reader r = {.im = im, .c = im->c, .at = (const char *)text.data};
    ratio x;
    if (text.len == 0 || text.len > MOST_TEXT || im->stated.len == 0)
        return NULL;
    r.end = r.at + text.len;
    bool read = read_sum(&r, &x) && (accept(&r, ""), r.at == r.end) && r.named && is_whole(&r, &x);
    return !read || dim_is_unknown(x.num) || (dim_bound(x.num) == 0 && !dim_is(x.num, 0)) ? NULL : x.num;
}
