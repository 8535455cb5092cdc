/* SPDX-License-Identifier: Apache-2.0 */
/* hoist: a guard that does not depend on a loop moves out of it, the part of a conjunction that does not depend on it
 * alone. Conditions with loads stay: the loop may change what they read. Common parts of indices are left to the C
 * compiler, which sees them as well as we do. */
#include "tir/build.h"
#include "tir/clone.h"
#include "tir/node.h"
#include "tir/pass.h"
#include "tir/walk.h"

static void look_for_load(void *ctx, tir_expr_ref e)
{
    *(bool *)ctx |= e->kind == TIR_LOAD || e->kind == TIR_EXTERN;
}

static bool is_invariant(tir_expr_ref cond, const tir_var *v)
{
    bool reads = false;
    tir_visit_expr(cond, look_for_load, &reads);
    return !reads && !tir_uses_var(cond, v);
}

/* Conjuncts of cond that do not depend on v, and the others; NULL for none. */
static void separate(compiler *c, tir_expr_ref cond, const tir_var *v, tir_expr_ref *outside, tir_expr_ref *inside)
{
    if (cond->kind == TIR_BINOP && cond->op == TIR_AND) {
        separate(c, cond->args[0], v, outside, inside);
        separate(c, cond->args[1], v, outside, inside);
        return;
    }
    tir_expr_ref *to = is_invariant(cond, v) ? outside : inside;
    *to = tir_and(c, *to, cond);
}

static tir_stmt *with_body(compiler *c, tir_stmt *loop, tir_stmt *body)
{
    struct tir_stmt *copy = tir_node_copy(c, loop);
    copy->body = body;
    return copy;
}

static tir_stmt *hoist(tir_rewriter *r, tir_stmt *s)
{
    tir_expr_ref outside = NULL, inside = NULL;
    if (s->kind != TIR_FOR || s->body->kind != TIR_IF || s->for_kind == FOR_PARALLEL || s->for_kind == FOR_VTHREAD)
        return s;
    tir_stmt *guard = s->body;
    separate(r->c, guard->cond, s->var, &outside, &inside);
    if (!outside || (guard->orelse && inside))
        return s;
    tir_stmt *other = NULL;
    if (guard->orelse) {
        const tir_var *v = tir_new_var(r->c, s->var->name, s->var->type);
        other = tir_for(r->c, v, s->min, s->extent, s->for_kind,
                        tir_clone_stmt(r->c, guard->orelse, s->var, tir_varref(r->c, v)));
    }
    tir_stmt *body = inside ? tir_if(r->c, inside, guard->body, NULL) : guard->body;
    return tir_if(r->c, outside, with_body(r->c, s, body), other);
}

bool tir_pass_hoist(compiler *c, tir_func *f)
{
    tir_rewriter r = {.c = c, .stmt = hoist};
    f->body = tir_rewrite_stmt(&r, f->body);
    return true;
}
