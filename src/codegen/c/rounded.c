/* SPDX-License-Identifier: Apache-2.0 */
/* What the loop IR says in steps of binary32 and binary64, and processors with little memory do in an instruction or
 * two, as it is known again: by the writer of expressions, and where instructions are counted. */
#include "codegen/c/emit.h"
#include "tir/build.h"
#include "tir/linear.h"
#include "tir/walk.h"

#include <math.h>

static bool is_literal(tir_expr_ref x, double v)
{
    x = expr_under(x);
    return x->kind == TIR_FLOAT && x->u.f == v;
}

/* What is added behind the rounding is an integer of a byte or so. */
static bool is_zero_point(tir_expr_ref x, bool negative)
{
    if (x->kind == TIR_FLOAT)
        return x->u.f == nearbyint(x->u.f) && fabs(x->u.f) < 65536;
    return !negative && x->kind == TIR_CAST && !dtype_is_float(x->args[0]->type.dt) &&
           dtype_bits(x->args[0]->type.dt) <= 16;
}

/* Lanes become bytes only. */
static bool is_code(dtype to, uint32_t lanes)
{
    return dtype_is_int(to) && (dtype_bits(to) == 8 || (dtype_bits(to) == 16 && lanes == 1));
}

tir_expr_ref expr_rounded_number(tir_expr_ref x, tir_expr_ref *out_zero)
{
    dtype to = x->type.dt;
    tir_expr_ref top = x->kind == TIR_CAST ? x->args[0] : x, low = expr_is_binary(top, TIR_MIN) ? top->args[0] : NULL;
    *out_zero = NULL;
    if (!is_code(to, x->type.lanes) || !low || top->type.dt != DT_F32 || !expr_is_binary(low, TIR_MAX) ||
        !is_literal(top->args[1], (double)dtype_max_int(to)) || !is_literal(low->args[1], (double)dtype_min_int(to)))
        return NULL;
    tir_expr_ref sum = low->args[0];
    if (expr_is_binary(sum, TIR_ADD) || expr_is_binary(sum, TIR_SUB)) {
        *out_zero = expr_under(sum->args[1]);
        if (!is_zero_point(*out_zero, sum->op == TIR_SUB))
            return NULL;
        sum = sum->args[0];
    }
    return sum->kind == TIR_CALL && sum->op == TIR_RINT ? sum->args[0] : NULL;
}

bool expr_rounded_once(tir_expr_ref x, tir_expr_ref *out_product, tir_expr_ref *out_more)
{
    tir_expr_ref sum = x->kind == TIR_CAST ? x->args[0] : NULL;
    *out_product = sum;
    *out_more = NULL;
    if (!sum || x->type.dt != DT_F32 || sum->type.dt != DT_F64)
        return false;
    if (expr_is_binary(sum, TIR_ADD)) {
        const uint32_t at = expr_is_binary(sum->args[0], TIR_MUL) ? 0 : 1;
        *out_product = sum->args[at];
        *out_more = sum->args[1 - at];
    }
    return expr_is_binary(*out_product, TIR_MUL);
}

bool expr_is_short(tir_expr_ref x)
{
    x = expr_under(x);
    if (x->kind == TIR_CAST)
        return dtype_is_int(x->args[0]->type.dt) && dtype_bits(x->args[0]->type.dt) <= 16;
    if (x->kind == TIR_INT)
        return x->u.i > -(1 << 20) && x->u.i < 1 << 20;
    return (expr_is_binary(x, TIR_ADD) || expr_is_binary(x, TIR_SUB)) && expr_is_short(x->args[0]) &&
           expr_is_short(x->args[1]);
}

/* (p + a) * (q + b) of p * q + b * p + a * q + a * b, which has more additions; else x. Sums wrap, so that both are the
 * same in all cases. */
tir_expr_ref expr_factored(c_emit *e, tir_expr_ref x)
{
    linear l;
    const linear_term *both = NULL;
    int64_t beside[2] = {0, 0};
    if (x->type.lanes > 1 || x->type.dt != DT_I32 || x->kind != TIR_BINOP || !linear_of(e->bounds, x, &l))
        return x;
    for (uint32_t i = 0; i < l.len; i++)
        if (l.terms[i].n == 2)
            both = &l.terms[i];
    if (!both || both->coeff != 1 || tir_expr_equal(both->atoms[0], both->atoms[1]))
        return x;
    for (uint32_t i = 0; i < l.len; i++) {
        const linear_term *t = &l.terms[i];
        const bool first = t->n == 1 && tir_expr_equal(t->atoms[0], both->atoms[0]);
        if (t == both)
            continue;
        if (t->n != 1 || (!first && !tir_expr_equal(t->atoms[0], both->atoms[1])))
            return x;
        beside[first ? 1 : 0] = t->coeff; /* what is added to the other one */
    }
    int64_t product;
    if (!i64_mul(beside[0], beside[1], &product) || product != l.constant)
        return x;
    return tir_mul(e->c, tir_add(e->c, both->atoms[0], tir_int(e->c, DT_I32, beside[0])),
                   tir_add(e->c, both->atoms[1], tir_int(e->c, DT_I32, beside[1])));
}
