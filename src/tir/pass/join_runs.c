/* SPDX-License-Identifier: Apache-2.0 */
/* join-runs: a loop over the rows of a window in which an instruction such as dot_rows adds to the same sums becomes
 * one instruction that gets where each run begins: compilers write such a loop out, or bring the sums to memory and
 * back around each run. The weights of the rows stand one behind the other. For processors with SMLAD, where the
 * function is one loop of assembly. */
#include "tir/build.h"
#include "tir/instr.h"
#include "tir/linear.h"
#include "tir/node.h"
#include "tir/pass.h"
#include "tir/walk.h"
#include "type/target.h"

#define MOST_RUNS 8

enum { DATA = 1, WEIGHTS = 2 }; /* arguments */

static tir_expr_ref at_iteration(compiler *c, tir_expr_ref e, const tir_var *v, int64_t i)
{
    tir_expr_ref value = tir_int(c, v->type.dt, i);
    return tir_substitute(c, e, 1, &v, &value);
}

static bool may_join(tir_expr_ref e)
{
    return e->kind == TIR_INSTR && e->op == TIR_ADD && e->u.row->runs && tir_instr_runs(e) == 1;
}

/* From row to row, all weights of one. */
static bool weights_follow(compiler *c, tir_expr_ref e, const tir_var *v)
{
    tir_expr_ref w = e->args[WEIGHTS];
    linear apart;
    if (w->n_args != 1)
        return false;
    tir_bounds *b = tir_bounds_new(c);
    return linear_diff(b, tir_simplify(b, at_iteration(c, w->args[0], v, 1)),
                       tir_simplify(b, at_iteration(c, w->args[0], v, 0)), &apart) &&
           apart.len == 0 && apart.constant > 0 && apart.constant == tir_instr_elements(c, e, WEIGHTS - 1);
}

static tir_stmt *join(tir_rewriter *r, tir_stmt *s)
{
    compiler *c = r->c;
    int64_t n;
    if (s->kind != TIR_FOR || s->for_kind != FOR_SERIAL || !tir_is_const(s->min, 0) || !tir_is_int(s->extent, &n) ||
        n < 2 || n > MOST_RUNS || s->body->kind != TIR_EVALUATE)
        return s;
    tir_expr_ref one = s->body->value, args[TIR_INTRIN_OPERANDS + TIR_INTRIN_SYMBOLS + MOST_RUNS];
    if (!may_join(one))
        return s;
    for (uint32_t i = 0; i < one->n_args; i++)
        if (i != DATA && i != WEIGHTS && tir_uses_var(one->args[i], s->var))
            return s;
    if (!weights_follow(c, one, s->var))
        return s;
    uint32_t k = 0;
    for (; k < one->n_args; k++)
        args[k] = at_iteration(c, one->args[k], s->var, 0);
    for (int64_t i = 1; i < n; i++)
        args[k++] = at_iteration(c, one->args[DATA], s->var, i);
    return tir_evaluate(c, tir_instr(c, one->u.row, one->op, k, args));
}

bool tir_pass_join_runs(compiler *c, tir_func *f)
{
    tir_rewriter r = {.c = c, .stmt = join};
    if (f->target && f->target->small && (f->target->features & TARGET_DSP) != 0)
        f->body = tir_rewrite_stmt(&r, f->body);
    return true;
}
