/* SPDX-License-Identifier: Apache-2.0 */
/* round-in-lanes: the end of a quantisation, in vector lanes, becomes arithmetic that every vector has. A number is
 * clamped first and then rounded by adding 1.5 * 2^23, which leaves the integer in the low bits; a bound that is an
 * integer gives the same before and behind the rounding. What was made in f64 and then rounded to f32 is a fused
 * multiply-add where the target has one, or a sum of f32: what goes in is exact in f32, and the product in f64. A sum
 * in f64 is rounded twice then, by 2^-53 and to f32, a fused one once: they differ where the first step makes a tie.
 * An f64 that is rounded by adding 1.5 * 2^52 has its integer in the low word; no conversion has to look at its range.
 */
#include "tir/build.h"
#include "tir/facts.h"
#include "tir/node.h"
#include "tir/pass.h"
#include "tir/walk.h"
#include "type/target.h"

#include <math.h>

#define ROUNDER      12582912.0         /* 1.5 * 2^23: the low 8 bits of its own are 0 */
#define ROUNDER_REAL 6755399441055744.0 /* 1.5 * 2^52: the low 32 bits of its own are 0 */

/* The number in all lanes. */
static bool is_number(tir_expr_ref e, double *out)
{
    if (e->kind == TIR_BROADCAST)
        e = e->args[0];
    *out = e->kind == TIR_FLOAT ? e->u.f : 0;
    return e->kind == TIR_FLOAT && isfinite(e->u.f);
}

/* min(max(x, low), high) */
static bool read_clamp(tir_expr_ref e, tir_expr_ref *x, double *low, double *high)
{
    if (!tir_is_binary(e, TIR_MIN) || !is_number(e->args[1], high) || !tir_is_binary(e->args[0], TIR_MAX) ||
        !is_number(e->args[0]->args[1], low))
        return false;
    *x = e->args[0]->args[0];
    return true;
}

/* A byte as a float, the same in all lanes: a zero point that runs compute. */
static bool is_byte(tir_expr_ref e)
{
    return e->kind == TIR_BROADCAST && e->args[0]->kind == TIR_CAST && dtype_is_int(e->args[0]->args[0]->type.dt) &&
           dtype_bits(e->args[0]->args[0]->type.dt) == 8;
}

/* Which operand of a sum or difference is a number or a byte: of a sum either may be. */
static uint32_t known_side(tir_expr_ref e)
{
    double n;
    return e->op == TIR_ADD && (is_number(e->args[0], &n) || is_byte(e->args[0])) ? 0 : 1;
}

/* rint(x) + zero + byte; *byte NULL: there is none */
static bool read_rounded(tir_expr_ref e, tir_expr_ref *x, double *zero, tir_expr_ref *byte)
{
    double n;
    *byte = NULL;
    for (*zero = 0; tir_is_binary(e, TIR_ADD) || tir_is_binary(e, TIR_SUB);) {
        const uint32_t side = known_side(e);
        tir_expr_ref known = e->args[side];
        if (e->op == TIR_ADD && !*byte && is_byte(known))
            *byte = known;
        else if (is_number(known, &n) && n == rint(n) && fabs(n) <= 1024)
            *zero += e->op == TIR_ADD ? n : -n;
        else
            return false;
        e = e->args[1 - side];
    }
    *x = e->kind == TIR_CALL && e->op == TIR_RINT ? e->args[0] : NULL;
    return *x != NULL;
}

static bool has_one_element(const tir_buffer *b)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < b->rank && n == 1; i++)
        if (!tir_is_int(b->shape[i], &n))
            return false;
    return n == 1;
}

/* A number, or what is computed of operands of one element: scales and zero points. */
static bool is_scale(tir_expr_ref e)
{
    double n;
    if (e->kind == TIR_LOAD)
        return has_one_element(e->u.buffer);
    if (e->kind != TIR_BROADCAST && e->kind != TIR_CAST && e->kind != TIR_BINOP &&
        !(e->kind == TIR_CALL && e->op == TIR_APART))
        return is_number(e, &n);
    for (uint32_t i = 0; i < e->n_args; i++)
        if (!is_scale(e->args[i]))
            return false;
    return true;
}

static bool is_of_integers(tir_expr_ref e);

static bool is_of_integers_or_scale(tir_expr_ref e)
{
    return is_of_integers(e) || is_scale(e);
}

/* A product with an integer, or a sum or bound of such with each other and scales: NaN only where a scale is none. What
 * an integer is multiplied by counts as a scale, as there is one for each channel. */
static bool is_of_integers(tir_expr_ref e)
{
    if (e->kind == TIR_CAST)
        return dtype_is_int(e->args[0]->type.dt) || is_of_integers(e->args[0]);
    if (e->kind == TIR_CALL && e->op == TIR_APART)
        return is_of_integers(e->args[0]);
    if (tir_is_binary(e, TIR_MUL))
        return is_of_integers(e->args[0]) || is_of_integers(e->args[1]);
    if (e->kind == TIR_CALL && e->op == TIR_FMA)
        return (is_of_integers(e->args[0]) || is_of_integers(e->args[1])) &&
               is_of_integers_or_scale(e->args[2]);
    const bool keeps = e->op == TIR_ADD || e->op == TIR_SUB || e->op == TIR_MIN || e->op == TIR_MAX;
    return e->kind == TIR_BINOP && keeps && is_of_integers_or_scale(e->args[0]) &&
           is_of_integers_or_scale(e->args[1]);
}

static tir_expr_ref f32(compiler *c, double v)
{
    return tir_float(c, DT_F32, v);
}

/* What is NaN where x is: what was scaled by a number. A compiler then divides once; of a quotient that is compared and
 * chosen, gcc makes two for AVX-512, the second one under a mask. */
static tir_expr_ref before_scale(tir_expr_ref x)
{
    double n;
    bool scaled = tir_is_binary(x, TIR_DIV) && is_number(x->args[1], &n) && n != 0 && isfinite(n);
    return scaled ? x->args[0] : x;
}

static tir_expr_ref not_nan(compiler *c, tir_expr_ref x, tir_expr_ref none)
{
    tir_expr_ref asked = before_scale(x);
    return tir_select(c, tir_binary(c, TIR_EQ, asked, asked), x, none);
}

/* cast(int8, min(max(rint(x) + zero, low), high)) */
static tir_expr_ref rounded(compiler *c, tir_expr_ref e)
{
    tir_expr_ref sum, x, byte;
    double low, high, zero;
    if (!dtype_is_int(e->type.dt) || dtype_bits(e->type.dt) != 8 || e->args[0]->type.dt != DT_F32 ||
        !read_clamp(e->args[0], &sum, &low, &high) || !read_rounded(sum, &x, &zero, &byte) || low != rint(low) ||
        high != rint(high) || low < (double)dtype_min_int(e->type.dt) || high > (double)dtype_max_int(e->type.dt))
        return e;
    tir_expr_ref none = f32(c, -zero), least = f32(c, low - zero), most = f32(c, high - zero);
    if (byte) {
        none = tir_sub(c, none, byte);
        least = tir_sub(c, least, byte);
        most = tir_sub(c, most, byte);
    }
    if (!is_of_integers(x)) /* NaN becomes 0 */
        x = not_nan(c, x, none);
    x = tir_min(c, tir_max(c, x, least), most);
    tir_expr_ref bits = tir_call1(c, TIR_TO_BITS, tir_add(c, x, f32(c, ROUNDER)));
    if (zero != 0)
        bits = tir_add(c, bits, tir_int(c, DT_U32, (int64_t)zero & UINT8_MAX));
    if (byte)
        bits = tir_add(c, bits, tir_broadcast(c, tir_cast(c, DT_U32, byte->args[0]->args[0]), byte->type.lanes));
    return tir_cast(c, e->type.dt, bits);
}

static double rounder_of(tir_expr_ref e)
{
    return e->type.dt == DT_F64 ? ROUNDER_REAL : ROUNDER;
}

/* x of x + rounder; NULL: e is something else. */
static tir_expr_ref under_rounder(tir_expr_ref e)
{
    double n;
    if (!tir_is_binary(e, TIR_ADD) || e->type.lanes < 2)
        return NULL;
    const uint32_t side = known_side(e);
    return is_number(e->args[side], &n) && n == rounder_of(e) ? e->args[1 - side] : NULL;
}

/* x of x + rounder - rounder */
static tir_expr_ref under_both(tir_expr_ref e)
{
    double n;
    const bool rounds = tir_is_binary(e, TIR_SUB) && is_number(e->args[1], &n) && n == rounder_of(e);
    return rounds ? under_rounder(e->args[0]) : NULL;
}

/* cast(int32, min(max(x, low), high) + 1.5 * 2^52 - 1.5 * 2^52) in f64 */
static tir_expr_ref rounded_real(compiler *c, tir_expr_ref e)
{
    tir_expr_ref clamp = e->args[0]->type.dt == DT_F64 ? under_both(e->args[0]) : NULL, x;
    double low, high;
    if (e->type.dt != DT_I32 || !clamp || !read_clamp(clamp, &x, &low, &high) || low < INT32_MIN ||
        high > INT32_MAX)
        return e;
    if (!is_of_integers(x)) /* NaN becomes 0 */
        x = not_nan(c, x, tir_float(c, DT_F64, 0));
    x = tir_min(c, tir_max(c, x, tir_float(c, DT_F64, low)), tir_float(c, DT_F64, high));
    return tir_cast(c, DT_I32, tir_call1(c, TIR_TO_BITS, tir_add(c, x, tir_float(c, DT_F64, ROUNDER_REAL))));
}

tir_expr_ref tir_clamped_and_rounded(tir_expr_ref e)
{
    const bool bits = e->kind == TIR_CALL && e->op == TIR_TO_BITS;
    tir_expr_ref inner, x = bits ? under_rounder(e->args[0]) : under_both(e);
    double low, high;
    if (!x || !tir_is_binary(x, TIR_MIN) || !tir_is_binary(x->args[0], TIR_MAX))
        return NULL;
    if (x->type.dt == DT_F64 && !read_clamp(x, &inner, &low, &high))
        return NULL; /* pieces of a vector take bounds that are the same in all lanes */
    return bits || is_of_integers(x->args[0]->args[0]) ? x : NULL;
}

/* The number that was rounded so, as an f32; NULL: e is none. */
static tir_expr_ref before_bits(compiler *c, tir_expr_ref e)
{
    double n;
    int64_t zero = 0;
    while (e->kind == TIR_CAST && e->type.dt == DT_I32)
        e = e->args[0];
    if (e->kind != TIR_CAST || dtype_bits(e->type.dt) != 8 || e->args[0]->type.dt != DT_U32)
        return NULL;
    dtype dt = e->type.dt;
    e = e->args[0];
    if (tir_is_binary(e, TIR_ADD)) {
        tir_expr_ref z = e->args[1]->kind == TIR_BROADCAST ? e->args[1]->args[0] : e->args[1];
        if (!tir_is_int(z, &zero))
            return NULL;
        e = e->args[0];
    }
    if (e->kind != TIR_CALL || e->op != TIR_TO_BITS || !tir_is_binary(e->args[0], TIR_ADD) ||
        !is_number(e->args[0]->args[1], &n) || n != ROUNDER)
        return NULL;
    zero = dt == DT_I8 && zero > INT8_MAX ? zero - 256 : zero;
    tir_expr_ref x = tir_sub(c, e->args[0], f32(c, ROUNDER));
    return zero ? tir_add(c, x, f32(c, (double)zero)) : x;
}

/* An integer's distance from 0 at most. */
static double most_of(tir_expr_ref e)
{
    int64_t n;
    if (e->kind == TIR_BROADCAST)
        e = e->args[0];
    if (tir_is_int(e, &n))
        return fabs((double)n);
    double own = dtype_is_int(e->type.dt) ? ldexp(1, (int)dtype_bits(e->type.dt)) : HUGE_VAL, sum = HUGE_VAL;
    if (e->kind == TIR_CAST && dtype_is_int(e->args[0]->type.dt))
        sum = most_of(e->args[0]);
    else if (tir_is_binary(e, TIR_ADD) || tir_is_binary(e, TIR_SUB))
        sum = most_of(e->args[0]) + most_of(e->args[1]);
    return sum < own ? sum : own;
}

static bool is_f32_or_less(dtype dt)
{
    return dtype_is_float(dt) && dtype_bits(dt) <= 32;
}

#define EXACT 16777216.0 /* 2^24: f32 has all integers up to here */
#define SHORT 512        /* numbers of 9 bits: a byte, a zero point taken off */

/* e as an f32, when it is one that was made wider, or an integer that f32 has. */
static tir_expr_ref narrow(compiler *c, tir_expr_ref e)
{
    double n;
    tir_expr_ref known = e->kind == TIR_CAST ? before_bits(c, e->args[0]) : NULL;
    if (known)
        return known;
    if (e->kind == TIR_BROADCAST && e->args[0]->kind == TIR_CAST) {
        tir_expr_ref one = narrow(c, e->args[0]);
        return one ? tir_broadcast(c, one, e->type.lanes) : NULL;
    }
    if (e->kind == TIR_CAST && (is_f32_or_less(e->args[0]->type.dt) || most_of(e->args[0]) <= EXACT))
        return tir_cast(c, DT_F32, e->args[0]);
    return is_number(e, &n) && (double)(float)n == n ? f32(c, n) : NULL;
}

/* A number of few bits, or one that is known. */
static bool is_short(tir_expr_ref e)
{
    double n;
    while (e->kind == TIR_CAST && (dtype_is_float(e->type.dt) || e->type.dt == DT_I32) &&
           dtype_is_int(e->args[0]->type.dt))
        e = e->args[0];
    if (dtype_is_int(e->type.dt))
        return most_of(e) < SHORT;
    return is_number(e, &n) && n == rint(n) && fabs(n) < SHORT;
}

/* cast(f32, a * b + s) in f64 */
static tir_expr_ref fused(compiler *c, tir_expr_ref e)
{
    tir_expr_ref sum = e->args[0];
    if (e->type.dt != DT_F32 || sum->type.dt != DT_F64 || !tir_is_binary(sum, TIR_ADD))
        return e;
    for (uint32_t i = 0; i < 2; i++) {
        tir_expr_ref product = sum->args[i], s = narrow(c, sum->args[1 - i]);
        if (!s)
            continue;
        if (is_short(product)) {
            tir_expr_ref a = narrow(c, product);
            return a ? tir_add(c, a, s) : e;
        }
        if (!tir_is_binary(product, TIR_MUL))
            continue;
        tir_expr_ref a = narrow(c, product->args[0]), b = narrow(c, product->args[1]);
        if (a && b && (is_short(product->args[0]) || is_short(product->args[1])))
            return tir_call(c, TIR_FMA, 3, (tir_expr_ref[]){a, b, s});
    }
    return e;
}

static tir_expr_ref in_lanes(tir_rewriter *r, tir_expr_ref e)
{
    const tir_func *f = r->ctx;
    if (e->kind != TIR_CAST || e->type.lanes < 2)
        return e;
    if (dtype_is_float(e->type.dt))
        return f->target && f->target->fma ? fused(r->c, e) : e;
    return e->type.dt == DT_I32 ? rounded_real(r->c, e) : rounded(r->c, e);
}

bool tir_pass_round(compiler *c, tir_func *f)
{
    tir_rewriter r = {.c = c, .ctx = f, .expr = in_lanes};
    if (f->target && (f->target->features & TARGET_MVE) != 0)
        return true; /* it has instructions that round */
    f->body = tir_rewrite_stmt(&r, f->body);
    return true;
}
