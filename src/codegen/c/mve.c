/* SPDX-License-Identifier: Apache-2.0 */
/* Stores of bytes in lanes of four for Cortex-M with vectors (Helium): the end of a quantisation is one helper, which
 * rounds, saturates and narrows. Conversions and calls for it are in expr.c, the helpers' texts in mve_text.c. */
#include "codegen/c/mve.h"
#include "tir/build.h"

void mve_open_loop(c_emit *e, const tir_stmt *s)
{
    if (!mve_vectors(e) || s->for_kind != FOR_SERIAL || s->body->kind != TIR_STORE || s->body->value->type.lanes < 2 ||
        s->body->value->kind != TIR_CAST)
        return;
    needs_add_kernel(e->needs, MVE_SETUP);
    w_line(e->w, "LATHE_MVE_ROLLED");
}

bool mve_store(c_emit *e, const tir_stmt *s, tir_expr_ref at)
{
    tir_expr_ref x = s->value;
    dtype to = x->type.dt;
    if (!mve_vectors(e) || x->type.lanes != MVE_LANES || x->kind != TIR_CAST || (to != DT_I8 && to != DT_U8) ||
        at->kind != TIR_RAMP || !tir_is_const(at->args[1], 1))
        return false;
    c_rounded r;
    c_twice t;
    const bool twice = expr_rounded_twice(e->c, x, &t);
    if (!twice && !expr_rounded(e, x, &r))
        return false;
    mve_need_bytes(e, twice ? "kernel/mve/twice.inc" : MVE_ROUNDED, to);
    const char *p = arena_printf(e->tmp, "%s + %s", expr_name(e, s->buffer), expr_text(e, at->args[0]).s);
    if (twice)
        w_line(e->w, "lathe_%sx4_twice(%s, %s, %s, %s, %d);", dtype_name(to), p, expr_text(e, t.acc).s,
               expr_text(e, t.multiplier).s, expr_text(e, t.shift).s, (int)t.zero);
    else if (r.acc)
        w_line(e->w, "lathe_%sx4_scaled(%s, %s, %s, %s);", dtype_name(to), p, expr_text(e, r.acc).s,
               expr_text(e, r.k).s, r.zero);
    else
        w_line(e->w, "lathe_%sx4_rounded%s(%s, %s, %s);", dtype_name(to), r.sure ? "_number" : "", p,
               expr_text(e, r.v).s, r.zero);
    return true;
}
