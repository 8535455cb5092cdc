/* SPDX-License-Identifier: Apache-2.0 */
/* Stores of bytes in lanes of four for Cortex-M with vectors (Helium): the end of a quantisation is one helper, which
 * rounds, saturates and narrows. Conversions and calls for it are in expr.c, the helpers' texts in mve_text.c. */
#include "codegen/c/mve.h"
#include "tir/build.h"
#include "type/target.h"

#include <math.h>
#include <string.h>

static tir_expr_ref under(tir_expr_ref x)
{
    return x->kind == TIR_BROADCAST ? x->args[0] : x;
}

static bool is_op(tir_expr_ref x, tir_op op)
{
    return x->kind == TIR_BINOP && x->op == op;
}

static bool is_literal(tir_expr_ref x, double v)
{
    x = under(x);
    return x->kind == TIR_FLOAT && x->u.f == v;
}

/* What is added behind the rounding as i32, the same for all lanes; an integer of a byte or so. */
static bool zero_text(c_emit *e, tir_expr_ref x, bool negative, const char **out)
{
    x = under(x);
    if (x->kind == TIR_FLOAT && x->u.f == nearbyint(x->u.f) && fabs(x->u.f) < 65536) {
        *out = arena_printf(e->tmp, "%d", (int)(negative ? -x->u.f : x->u.f));
        return true;
    }
    if (negative || x->kind != TIR_CAST || x->type.lanes > 1 || dtype_is_float(x->args[0]->type.dt) ||
        dtype_bits(x->args[0]->type.dt) > 16)
        return false;
    *out = expr_text(e, x->args[0]).s;
    return true;
}

/* The number of i32 that the factor is, NULL: it is none. */
static tir_expr_ref integer_of(tir_expr_ref x)
{
    return x->kind == TIR_CAST && x->type.dt == DT_F32 && x->args[0]->type.dt == DT_I32 ? x->args[0] : NULL;
}

void mve_open_loop(c_emit *e, const tir_stmt *s)
{
    if (!mve_vectors(e) || s->for_kind != FOR_SERIAL || s->body->kind != TIR_STORE || s->body->value->type.lanes < 2 ||
        s->body->value->kind != TIR_CAST)
        return;
    needs_add(e->needs, (c_need){.kind = NEED_MVE});
    w_line(e->w, "LATHE_ROLLED");
}

bool mve_store(c_emit *e, const tir_stmt *s, tir_expr_ref at)
{
    tir_expr_ref x = s->value;
    dtype to = x->type.dt;
    if (!mve_vectors(e) || x->type.lanes != MVE_LANES || x->kind != TIR_CAST || (to != DT_I8 && to != DT_U8) ||
        at->kind != TIR_RAMP || !tir_is_const(at->args[1], 1))
        return false;
    tir_expr_ref top = x->args[0], low = is_op(top, TIR_MIN) ? top->args[0] : NULL;
    if (!low || top->type.dt != DT_F32 || !is_op(low, TIR_MAX) ||
        !is_literal(top->args[1], (double)dtype_max_int(to)) || !is_literal(low->args[1], (double)dtype_min_int(to)))
        return false;
    tir_expr_ref sum = low->args[0];
    const char *zero = "0";
    if (is_op(sum, TIR_ADD) || is_op(sum, TIR_SUB)) {
        if (!zero_text(e, sum->args[1], sum->op == TIR_SUB, &zero))
            return false;
        sum = sum->args[0];
    }
    if (sum->kind != TIR_CALL || sum->op != TIR_RINT)
        return false;
    tir_expr_ref v = sum->args[0], acc = NULL;
    uint32_t i = 0;
    for (; is_op(v, TIR_MUL) && i < 2 && !acc; i++)
        acc = integer_of(v->args[i]);
    mve_need_lanes(e);
    needs_add(e->needs, (c_need){.kind = NEED_SMALL});
    needs_add(e->needs, (c_need){.kind = NEED_ROUNDED, .to = to});
    const char *p = arena_printf(e->tmp, "%s + %s", expr_name(e, s->buffer), expr_text(e, at->args[0]).s);
    if (acc)
        needs_add(e->needs, (c_need){.kind = NEED_SCALED, .to = to});
    needs_add(e->needs, (c_need){.kind = acc ? NEED_MVE_SCALED : NEED_MVE_ROUNDED, .to = to});
    if (acc)
        w_line(e->w, "lathe_%sx4_scaled(%s, %s, %s, %s);", dtype_name(to), p, expr_text(e, acc).s,
               expr_text(e, v->args[2 - i]).s, zero);
    else
        w_line(e->w, "lathe_%sx4_rounded(%s, %s, %s);", dtype_name(to), p, expr_text(e, v).s, zero);
    return true;
}
