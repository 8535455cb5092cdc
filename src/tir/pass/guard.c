/* SPDX-License-Identifier: Apache-2.0 */
/* Guards that are bounds of a loop: where its variable is compared with what does not depend on it. */
#include "tir/pass/guard.h"
#include "tir/build.h"
#include "tir/node.h"
#include "tir/walk.h"

typedef struct narrowing {
    compiler *c;
    const tir_var *v;
    tir_expr_ref from, to, left;
} narrowing;

static void look_for_load(void *ctx, tir_expr_ref e)
{
    *(bool *)ctx |= e->kind == TIR_LOAD || e->kind == TIR_EXTERN;
}

/* e is v and something that does not depend on it. */
static bool adds_var(tir_expr_ref e, const tir_var *v)
{
    if (e->kind == TIR_VAR)
        return e->u.var == v;
    if (e->kind != TIR_BINOP || (e->op != TIR_ADD && e->op != TIR_SUB))
        return false;
    bool first = tir_uses_var(e->args[0], v), second = tir_uses_var(e->args[1], v);
    return first != second && (first || e->op == TIR_ADD) && adds_var(e->args[first ? 0 : 1], v);
}

static void narrow_by(narrowing *x, tir_expr_ref e)
{
    if (tir_is_binary(e, TIR_AND)) {
        narrow_by(x, e->args[0]);
        narrow_by(x, e->args[1]);
        return;
    }
    bool compares = e->kind == TIR_BINOP && e->op >= TIR_LT && e->op <= TIR_GE && e->type.lanes == 1, reads = false;
    tir_visit_expr(e, look_for_load, &reads);
    if (reads || !compares || tir_uses_var(e->args[1], x->v) || !adds_var(e->args[0], x->v)) {
        x->left = tir_and(x->c, x->left, e);
        return;
    }
    tir_expr_ref zero = tir_int(x->c, x->v->type.dt, 0);
    tir_expr_ref limit = tir_sub(x->c, e->args[1], tir_substitute(x->c, e->args[0], 1, &x->v, &zero));
    if (e->op == TIR_GT || e->op == TIR_LE)
        limit = tir_add(x->c, limit, tir_int(x->c, x->v->type.dt, 1));
    if (e->op == TIR_GT || e->op == TIR_GE)
        x->from = tir_max(x->c, x->from, limit);
    else
        x->to = tir_min(x->c, x->to, limit);
}

tir_behind_guard tir_behind(compiler *c, const tir_stmt *loop, tir_expr_ref guard)
{
    narrowing x = {c, loop->var, loop->min, tir_add(c, loop->min, loop->extent), NULL};
    narrow_by(&x, guard);
    tir_expr_ref n = tir_max(c, tir_sub(c, x.to, x.from), tir_int(c, loop->var->type.dt, 0));
    return (tir_behind_guard){x.from, n, x.left};
}
