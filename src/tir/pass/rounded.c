/* SPDX-License-Identifier: Apache-2.0 */
/* Roundings to bytes, and steps of binary64 that round once, read from expressions: rounded.h. */
#include "tir/pass/rounded.h"
#include "tir/build.h"
#include "tir/linear.h"
#include "tir/walk.h"

#include <math.h>

#define MOST_FLOAT 1e38 /* what rounding may add is below FLT_MAX then */
#define MOST_ZERO  255

static tir_expr_ref under(tir_expr_ref e)
{
    return e->kind == TIR_BROADCAST ? e->args[0] : e;
}

static bool is_literal(tir_expr_ref e, double v)
{
    e = under(e);
    return e->kind == TIR_INT ? (double)e->u.i == v : e->kind == TIR_FLOAT && e->u.f == v;
}

/* The other operand where one is the number; NULL: neither is, or e is something else. */
static tir_expr_ref beside(tir_expr_ref e, tir_op op, double v)
{
    for (uint32_t i = 0; tir_is_binary(e, op) && i < 2; i++)
        if (is_literal(e->args[i], v))
            return e->args[1 - i];
    return NULL;
}

tir_expr_ref tir_read_within(tir_expr_ref e, dtype dt, dtype to)
{
    tir_expr_ref low = e->type.dt == dt ? beside(e, TIR_MIN, (double)dtype_max_int(to)) : NULL;
    return low ? beside(low, TIR_MAX, (double)dtype_min_int(to)) : NULL;
}

/* --- roundings --- */

/* Lanes become bytes only. */
static bool is_code(tir_expr_ref e)
{
    const dtype to = e->type.dt;
    return e->kind == TIR_CAST && dtype_is_int(to) &&
           (dtype_bits(to) == 8 || (dtype_bits(to) == 16 && e->type.lanes == 1));
}

/* What is added behind the rounding is an integer of a byte or so, one for all lanes. NULL: e is something else. */
static tir_expr_ref zero_point(compiler *c, tir_expr_ref e, bool negative)
{
    e = under(e);
    if (e->type.lanes > 1)
        return NULL;
    if (e->kind == TIR_FLOAT && e->u.f == nearbyint(e->u.f) && fabs(e->u.f) < 65536)
        return tir_int(c, DT_I32, (int64_t)(negative ? -e->u.f : e->u.f));
    const dtype from = !negative && e->kind == TIR_CAST ? e->args[0]->type.dt : DT_NONE;
    return dtype_is_int(from) && dtype_bits(from) <= 16 ? e->args[0] : NULL;
}

static bool is_rint(tir_expr_ref e)
{
    return e->kind == TIR_CALL && e->op == TIR_RINT;
}

/* rint(v), and what is added to it. */
static bool read_sum(compiler *c, tir_expr_ref e, tir_rounded *out)
{
    out->zero = tir_int(c, DT_I32, 0);
    if (tir_is_binary(e, TIR_ADD) || tir_is_binary(e, TIR_SUB)) {
        const uint32_t at = is_rint(e->args[0]) || e->op == TIR_SUB ? 0 : 1;
        out->zero = zero_point(c, e->args[1 - at], e->op == TIR_SUB);
        e = e->args[at];
    }
    out->v = is_rint(e) ? e->args[0] : NULL;
    return out->v && out->zero;
}

/* The most that a float made of integers and literals by products, sums and quotients may be, and of registers `x` may
 * tell (NULL: it does not); not below FLT_MAX: it may be any, or no number. */
static double most_of(const tir_selector *x, tir_expr_ref e);

/* What stores in s may make of a register of floats that sums grow in, `times` over. */
static double most_stored(const tir_buffer *b, tir_stmt *s, double times)
{
    int64_t n;
    double most = 0;
    if (s->kind == TIR_STORE && s->buffer == b) {
        tir_expr_ref e = s->value;
        for (uint32_t i = 0; tir_is_binary(e, TIR_ADD) && i < 2; i++)
            if (e->args[i]->kind == TIR_LOAD && e->args[i]->u.buffer == b)
                return times * most_of(NULL, e->args[1 - i]);
        return most_of(NULL, e);
    }
    if (s->kind == TIR_FOR)
        times = tir_is_int(s->extent, &n) ? times * (double)n : INFINITY;
    for (uint32_t i = 0; s->kind == TIR_SEQ && i < s->n_stmts; i++)
        most += most_stored(b, s->stmts[i], times);
    if (s->body)
        most += most_stored(b, s->body, times);
    if (s->orelse)
        most += most_stored(b, s->orelse, times);
    return most;
}

typedef struct register_search {
    const tir_buffer *b;
    double most;
} register_search;

static void find_register(void *ctx, tir_stmt *s)
{
    register_search *r = ctx;
    if (s->kind == TIR_ALLOCATE && s->buffer == r->b)
        r->most = most_stored(r->b, s->body, 1);
}

static double most_by_parts(const tir_selector *x, tir_expr_ref e)
{
    e = under(e);
    if (e->kind == TIR_FLOAT)
        return isfinite(e->u.f) ? fabs(e->u.f) : INFINITY;
    if (e->kind == TIR_CAST && dtype_is_int(e->args[0]->type.dt))
        return ldexp(1, (int)dtype_bits(e->args[0]->type.dt));
    if ((e->kind == TIR_CAST && e->type.dt != DT_F16) || (e->kind == TIR_CALL && e->op == TIR_APART))
        return most_of(x, e->args[0]);
    if (tir_is_binary(e, TIR_ADD) || tir_is_binary(e, TIR_SUB))
        return most_of(x, e->args[0]) + most_of(x, e->args[1]);
    if (tir_is_binary(e, TIR_DIV) && under(e->args[1])->kind == TIR_FLOAT && !is_literal(e->args[1], 0))
        return most_of(x, e->args[0]) / fabs(under(e->args[1])->u.f);
    if (x && e->kind == TIR_LOAD && e->u.buffer->scope == SCOPE_REG) {
        register_search r = {e->u.buffer, INFINITY};
        tir_visit_stmt(x->f->body, find_register, NULL, &r);
        return r.most;
    }
    return tir_is_binary(e, TIR_MUL) ? most_of(x, e->args[0]) * most_of(x, e->args[1]) : INFINITY;
}

/* A step in floats that goes too far stays infinite, whatever the next one divides it by. */
static double most_of(const tir_selector *x, tir_expr_ref e)
{
    const double most = most_by_parts(x, e);
    return most < MOST_FLOAT ? most : INFINITY;
}

static bool is_sure_number(const tir_selector *x, tir_expr_ref e)
{
    return most_of(x, e) < MOST_FLOAT;
}

static bool is_sum(tir_expr_ref e)
{
    return e->kind == TIR_CAST && e->type.dt == DT_F32 && e->args[0]->type.dt == DT_I32;
}

/* Kernels for sums by scales say nothing of NaN, so that a scale must not be infinite: what is divided by a number that
 * only a run knows may be. */
static bool is_scale(const tir_selector *x, tir_expr_ref e)
{
    e = under(e);
    if (tir_is_binary(e, TIR_MUL))
        return is_scale(x, e->args[0]) && is_scale(x, e->args[1]);
    if (tir_is_binary(e, TIR_DIV))
        return is_scale(x, e->args[0]) && under(e->args[1])->kind == TIR_FLOAT && !is_literal(e->args[1], 0);
    return e->kind == TIR_FLOAT || e->kind == TIR_LOAD || (e->kind == TIR_VAR && tir_select_number(x, e->u.var));
}

/* In integers they are right for the zero points that bytes have (kernel/round/scaled.inc). */
static bool is_byte(const tir_selector *x, tir_expr_ref zero)
{
    const tir_range r = tir_range_of(x->bounds, zero);
    return dtype_bits(zero->type.dt) == 8 ||
           (r.known_min && r.known_max && r.min >= -MOST_ZERO && r.max <= MOST_ZERO);
}

bool tir_read_rounded(const tir_selector *x, tir_expr_ref e, tir_rounded *out)
{
    tir_expr_ref sum = is_code(e) ? tir_read_within(e->args[0], DT_F32, e->type.dt) : NULL;
    *out = (tir_rounded){.v = NULL};
    if (!sum || !read_sum(x->c, sum, out))
        return false;
    out->sure = is_sure_number(x, out->v);
    if (dtype_bits(e->type.dt) != 8 || !tir_is_binary(out->v, TIR_MUL) || !is_byte(x, out->zero))
        return true;
    for (uint32_t i = 0; i < 2 && !out->acc; i++) {
        if (!is_sum(out->v->args[i]) || !is_scale(x, out->v->args[1 - i]))
            continue;
        out->acc = tir_factored(x, out->v->args[i]->args[0]);
        out->k = out->v->args[1 - i];
    }
    return true;
}

/* Of another small integer it is not made: that is a rounding by itself. */
static bool rounds(tir_expr_ref e, tir_op by)
{
    bool any = e->kind == TIR_CALL && e->op == by;
    for (uint32_t i = 0; i < e->n_args && !is_code(e) && !tir_is_access(e); i++)
        any |= rounds(e->args[i], by);
    return any;
}

bool tir_is_made_by(tir_expr_ref e, tir_op rounding)
{
    return is_code(e) && rounds(e->args[0], rounding);
}

/* --- rounded once --- */

bool tir_read_once(tir_expr_ref e, tir_once *out)
{
    tir_expr_ref sum = e->kind == TIR_CAST ? e->args[0] : NULL;
    *out = (tir_once){.a = NULL};
    if (!sum || e->type.dt != DT_F32 || sum->type.dt != DT_F64)
        return false;
    if (tir_is_binary(sum, TIR_ADD)) {
        const uint32_t at = !tir_is_binary(sum->args[0], TIR_MUL) && tir_is_binary(sum->args[1], TIR_MUL) ? 1 : 0;
        out->a = sum->args[at];
        out->s = sum->args[1 - at];
    } else {
        out->a = sum;
    }
    if (!tir_is_binary(out->a, TIR_MUL))
        return out->s != NULL;
    out->b = out->a->args[1];
    out->a = out->a->args[0];
    return true;
}

#define EXACT (1 << 24) /* binary32 has all integers up to there */

/* The farthest that e can be from 0, by its types and literals alone; at most EXACT + 1. */
static int64_t reach_of(tir_expr_ref e)
{
    e = under(e);
    int64_t reach = EXACT + 1;
    if (e->kind == TIR_CAST && dtype_is_int(e->args[0]->type.dt) && dtype_bits(e->args[0]->type.dt) <= 16)
        reach = (int64_t)1 << dtype_bits(e->args[0]->type.dt);
    else if (e->kind == TIR_INT && e->u.i >= -EXACT && e->u.i <= EXACT)
        reach = e->u.i < 0 ? -e->u.i : e->u.i;
    else if (tir_is_binary(e, TIR_ADD) || tir_is_binary(e, TIR_SUB))
        reach = reach_of(e->args[0]) + reach_of(e->args[1]);
    else if (tir_is_binary(e, TIR_MUL))
        reach = reach_of(e->args[0]) * reach_of(e->args[1]);
    return reach > EXACT ? EXACT + 1 : reach;
}

bool tir_is_short(tir_expr_ref e)
{
    return reach_of(e) <= EXACT;
}

/* --- products of sums --- */

/* (p + a) * (q + b) of p * q + b * p + a * q + a * b, which has more additions. Sums wrap, so that both are the same in
 * all cases. */
tir_expr_ref tir_factored(const tir_selector *x, tir_expr_ref e)
{
    compiler *c = x->c;
    linear l;
    const linear_term *both = NULL;
    int64_t beside_of[2] = {0, 0}, product;
    if (e->type.lanes > 1 || e->type.dt != DT_I32 || e->kind != TIR_BINOP || !linear_of(x->bounds, e, &l))
        return e;
    for (uint32_t i = 0; i < l.len; i++)
        if (l.terms[i].n == 2)
            both = &l.terms[i];
    if (!both || both->coeff != 1 || tir_expr_equal(both->atoms[0], both->atoms[1]))
        return e;
    for (uint32_t i = 0; i < l.len; i++) {
        const linear_term *t = &l.terms[i];
        const bool first = t->n == 1 && tir_expr_equal(t->atoms[0], both->atoms[0]);
        if (t == both)
            continue;
        if (t->n != 1 || (!first && !tir_expr_equal(t->atoms[0], both->atoms[1])))
            return e;
        beside_of[first ? 1 : 0] = t->coeff; /* what is added to the other one */
    }
    if (!i64_mul(beside_of[0], beside_of[1], &product) || product != l.constant)
        return e;
    return tir_mul(c, tir_add(c, both->atoms[0], tir_int(c, DT_I32, beside_of[0])),
                   tir_add(c, both->atoms[1], tir_int(c, DT_I32, beside_of[1])));
}
