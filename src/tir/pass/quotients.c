/* SPDX-License-Identifier: Apache-2.0 */
/* name-quotients: in loops, a quotient or remainder by a number that a run says gets a name, where the last variable
 * that it needs gets its value. Such divisions are what fused loops over open extents find their way by; they are slow,
 * and a C compiler leaves them in the innermost loop, because rounding down is a branch, and then gives that loop no
 * lanes. Division by a constant stays where it is. */
#include "tir/build.h"
#include "tir/node.h"
#include "tir/pass.h"
#include "tir/walk.h"

typedef struct named {
    tir_expr_ref value;
    const tir_var *var;
} named;

typedef struct namer {
    compiler *c;
    uint32_t loops; /* around what is looked at */
    VEC(named) open; /* named, but not bound yet: what they are made of first */
} namer;

static void look_for_read(void *ctx, tir_expr_ref e)
{
    *(bool *)ctx |= e->kind == TIR_LOAD || e->kind == TIR_EXTERN;
}

static tir_expr_ref name(tir_rewriter *r, tir_expr_ref e)
{
    namer *x = r->ctx;
    bool reads = false;
    if (e->kind != TIR_BINOP || (e->op != TIR_FLOORDIV && e->op != TIR_FLOORMOD) || e->type.lanes > 1 ||
        e->args[1]->kind == TIR_INT)
        return e;
    tir_visit_expr(e, look_for_read, &reads);
    if (reads)
        return e;
    for (uint32_t i = 0; i < x->open.len; i++)
        if (tir_expr_equal(x->open.data[i].value, e))
            return tir_varref(x->c, x->open.data[i].var);
    const named n = {e, tir_new_var(x->c, e->op == TIR_FLOORDIV ? "quotient" : "rest", e->type)};
    vec_push(&x->c->mem, &x->open, n);
    return tir_varref(x->c, n.var);
}

static tir_expr_ref in_loops(namer *x, tir_expr_ref e)
{
    tir_rewriter r = {.c = x->c, .ctx = x, .expr = name};
    return e && x->loops > 0 ? tir_rewrite_expr(&r, e) : e;
}

/* The body of v, in which what needs v, or what is bound here, gets its value. */
static tir_stmt *bind(namer *x, const tir_var *v, tir_stmt *body)
{
    VEC(named) here = {0};
    uint32_t left = 0;
    for (uint32_t i = 0; i < x->open.len; i++) {
        const named n = x->open.data[i];
        bool needs = tir_uses_var(n.value, v);
        for (uint32_t k = 0; k < here.len && !needs; k++)
            needs = tir_uses_var(n.value, here.data[k].var);
        if (needs)
            vec_push(&x->c->mem, &here, n);
        else
            x->open.data[left++] = n;
    }
    x->open.len = left;
    for (uint32_t i = here.len; i-- > 0;)
        body = tir_let(x->c, here.data[i].var, here.data[i].value, body);
    return body;
}

static tir_stmt *visit(namer *x, tir_stmt *s)
{
    struct tir_stmt *y = tir_node_copy(x->c, s);
    const bool loop = s->kind == TIR_FOR;
    if (s->kind == TIR_STORE || s->kind == TIR_LET)
        y->value = in_loops(x, s->value);
    if (s->kind == TIR_IF)
        y->cond = in_loops(x, s->cond);
    if (loop && s->for_kind == FOR_SERIAL) { /* what a parallel loop runs over, the plan divides */
        y->min = in_loops(x, s->min);
        y->extent = in_loops(x, s->extent);
    }
    tir_expr_ref *at = arena_array(&x->c->mem, tir_expr_ref, s->n_indices);
    for (uint32_t i = 0; i < s->n_indices; i++)
        at[i] = in_loops(x, s->indices[i]);
    y->indices = at;
    x->loops += loop;
    y->body = s->body ? visit(x, s->body) : NULL;
    x->loops -= loop;
    y->orelse = s->orelse ? visit(x, s->orelse) : NULL;
    tir_stmt **all = arena_array(&x->c->mem, tir_stmt *, s->n_stmts);
    for (uint32_t i = 0; i < s->n_stmts; i++)
        all[i] = visit(x, s->stmts[i]);
    y->stmts = all;
    if (loop || s->kind == TIR_LET)
        y->body = bind(x, s->var, y->body);
    return y;
}

static void look_for_division(void *ctx, tir_expr_ref e)
{
    *(bool *)ctx |= e->kind == TIR_BINOP && (e->op == TIR_FLOORDIV || e->op == TIR_FLOORMOD) &&
                    e->args[1]->kind != TIR_INT;
}

bool tir_pass_quotients(compiler *c, tir_func *f)
{
    namer x = {.c = c};
    bool any = false;
    tir_visit_stmt(f->body, NULL, look_for_division, &any);
    if (any)
        f->body = visit(&x, f->body);
    return true;
}
