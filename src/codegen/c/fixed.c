/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes that fixed point rounds behind a product and behind a shift, as they are known again by the writer of stores
 * for Helium. */
#include "codegen/c/emit.h"
#include "tir/build.h"

/* The number in all lanes. */
static bool same_number(tir_expr_ref x, int64_t *out)
{
    if (x->kind == TIR_BROADCAST)
        x = x->args[0];
    *out = x->kind == TIR_INT ? x->u.i : 0;
    return x->kind == TIR_INT;
}

static bool is_fixed(tir_expr_ref x, tir_op op)
{
    return x->kind == TIR_CALL && x->op == op;
}

/* Minus n, which is a number or what 0 is less by; NULL: it would have to be computed. */
static tir_expr_ref minus(compiler *c, tir_expr_ref n)
{
    int64_t number;
    if (same_number(n, &number))
        return tir_broadcast(c, tir_int(c, DT_I32, -number), n->type.lanes);
    return expr_is_binary(n, TIR_SUB) && same_number(n->args[0], &number) && number == 0 ? n->args[1] : NULL;
}

bool expr_rounded_twice(compiler *c, tir_expr_ref x, c_twice *out)
{
    int64_t least, most;
    tir_expr_ref top = x->args[0], low = expr_is_binary(top, TIR_MIN) ? top->args[0] : NULL;
    if (top->type.dt != DT_I32 || !low || !expr_is_binary(low, TIR_MAX) || !same_number(top->args[1], &most) ||
        !same_number(low->args[1], &least) || most != dtype_max_int(x->type.dt) || least != dtype_min_int(x->type.dt))
        return false;
    tir_expr_ref y = low->args[0];
    *out = (c_twice){.zero = 0};
    if (expr_is_binary(y, TIR_ADD) && same_number(y->args[1], &out->zero))
        y = y->args[0];
    if (!is_fixed(y, TIR_SHIFTED) || !is_fixed(y->args[0], TIR_DOUBLED))
        return false;
    out->acc = y->args[0]->args[0];
    out->multiplier = y->args[0]->args[1];
    out->shift = minus(c, y->args[1]);
    return out->shift != NULL;
}
