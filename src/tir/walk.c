/* SPDX-License-Identifier: Apache-2.0 */
/* Walking and rewriting. Expressions are trees whose parts are often shared (a value used twice after inlining), so
 * rewriting remembers what it has seen: the work is in the number of nodes, not of paths. */
#include "tir/build.h"
#include "tir/node.h"
#include "tir/walk.h"

#include "tir/map.h"

#include <string.h>

/* --- expressions --- */

typedef struct expr_walk {
    tir_rewriter *r;
    tir_map seen;
} expr_walk;

static tir_expr_ref rewrite(expr_walk *w, tir_expr_ref e)
{
    tir_expr_ref inline_args[8], *args = inline_args;
    const void *known = e->n_args ? tir_map_get(&w->seen, e) : NULL;
    bool changed = false;
    if (known)
        return known;
    if (e->n_args > 8)
        args = arena_array(&w->r->c->mem, tir_expr_ref, e->n_args);
    for (uint32_t i = 0; i < e->n_args; i++) {
        args[i] = rewrite(w, e->args[i]);
        changed |= args[i] != e->args[i];
    }
    tir_expr_ref out = changed ? tir_node_rebuild(w->r->c, e, args) : e;
    bool folded = e->n_args && out->kind == TIR_VAR; /* ((v + 1) - 1) is v: rewritten already, when v became (v + 1) */
    if (w->r->expr && !folded)
        out = w->r->expr(w->r, out);
    if (e->n_args)
        tir_map_put(&w->seen, e, out);
    return out;
}

tir_expr_ref tir_rewrite_expr(tir_rewriter *r, tir_expr_ref e)
{
    expr_walk w = {.r = r};
    tir_map_init(&w.seen, &r->c->mem);
    return rewrite(&w, e);
}

void tir_visit_expr(tir_expr_ref e, void (*fn)(void *ctx, tir_expr_ref e), void *ctx)
{
    fn(ctx, e);
    for (uint32_t i = 0; i < e->n_args; i++)
        tir_visit_expr(e->args[i], fn, ctx);
}

/* --- statements --- */

static tir_expr_ref rewrite_opt(tir_rewriter *r, tir_expr_ref e)
{
    return e ? tir_rewrite_expr(r, e) : NULL;
}

static bool rewrite_indices(tir_rewriter *r, tir_stmt *s, tir_expr_ref *out)
{
    bool changed = false;
    for (uint32_t i = 0; i < s->n_indices; i++) {
        out[i] = tir_rewrite_expr(r, s->indices[i]);
        changed |= out[i] != s->indices[i];
    }
    return changed;
}

static tir_stmt *rewrite_seq(tir_rewriter *r, tir_stmt *s)
{
    tir_stmt **all = arena_array(&r->c->mem, tir_stmt *, s->n_stmts);
    bool changed = false;
    for (uint32_t i = 0; i < s->n_stmts; i++) {
        all[i] = tir_rewrite_stmt(r, s->stmts[i]);
        changed |= all[i] != s->stmts[i];
    }
    return changed ? tir_seq(r->c, s->n_stmts, all) : s;
}

static tir_stmt *rewrite_children(tir_rewriter *r, tir_stmt *s)
{
    tir_expr_ref idx[TIR_MAX_RANK];
    if (s->kind == TIR_SEQ)
        return rewrite_seq(r, s);
    tir_expr_ref min = rewrite_opt(r, s->min), extent = rewrite_opt(r, s->extent), cond = rewrite_opt(r, s->cond);
    tir_expr_ref value = rewrite_opt(r, s->value);
    bool moved = rewrite_indices(r, s, idx);
    tir_stmt *body = s->body ? tir_rewrite_stmt(r, s->body) : NULL;
    tir_stmt *orelse = s->orelse ? tir_rewrite_stmt(r, s->orelse) : NULL;
    if (min == s->min && extent == s->extent && cond == s->cond && value == s->value && !moved && body == s->body &&
        orelse == s->orelse)
        return s;
    if (s->kind == TIR_STORE)
        return tir_store(r->c, s->buffer, s->n_indices, idx, value);
    if (s->kind == TIR_IF)
        return tir_if(r->c, cond, body, orelse);
    struct tir_stmt *n = tir_node_copy(r->c, s);
    n->min = min;
    n->extent = extent;
    n->cond = cond;
    n->value = value;
    n->body = body;
    return n;
}

tir_stmt *tir_rewrite_stmt(tir_rewriter *r, tir_stmt *s)
{
    if (r->enter)
        r->enter(r, s);
    tir_stmt *out = rewrite_children(r, s);
    return r->stmt ? r->stmt(r, out) : out;
}

void tir_stmt_exprs(tir_stmt *s, void (*fn)(void *ctx, tir_expr_ref e), void *ctx)
{
    tir_expr_ref direct[] = {s->min, s->extent, s->cond, s->value};
    for (size_t i = 0; i < sizeof direct / sizeof *direct; i++)
        if (direct[i])
            fn(ctx, direct[i]);
    for (uint32_t i = 0; i < s->n_indices; i++)
        fn(ctx, s->indices[i]);
}

typedef struct expr_visitor {
    void (*fn)(void *ctx, tir_expr_ref e);
    void *ctx;
} expr_visitor;

static void visit_whole(void *ctx, tir_expr_ref e)
{
    const expr_visitor *v = ctx;
    tir_visit_expr(e, v->fn, v->ctx);
}

void tir_visit_stmt(tir_stmt *s, void (*stmt)(void *ctx, tir_stmt *s), void (*expr)(void *ctx, tir_expr_ref e),
                    void *ctx)
{
    if (stmt)
        stmt(ctx, s);
    if (expr)
        tir_stmt_exprs(s, visit_whole, &(expr_visitor){expr, ctx});
    if (s->body)
        tir_visit_stmt(s->body, stmt, expr, ctx);
    if (s->orelse)
        tir_visit_stmt(s->orelse, stmt, expr, ctx);
    for (uint32_t i = 0; i < s->n_stmts; i++)
        tir_visit_stmt(s->stmts[i], stmt, expr, ctx);
}

/* --- substitution --- */

typedef struct substitution {
    uint32_t n;
    const tir_var *const *vars;
    tir_expr_ref const *values;
} substitution;

static tir_expr_ref substitute_var(tir_rewriter *r, tir_expr_ref e)
{
    const substitution *s = r->ctx;
    if (e->kind != TIR_VAR)
        return e;
    for (uint32_t i = 0; i < s->n; i++)
        if (s->vars[i] == e->u.var)
            return s->values[i];
    return e;
}

tir_expr_ref tir_substitute(compiler *c, tir_expr_ref e, uint32_t n, const tir_var *const *vars,
                            tir_expr_ref const *values)
{
    substitution s = {n, vars, values};
    tir_rewriter r = {.c = c, .ctx = &s, .expr = substitute_var};
    return tir_rewrite_expr(&r, e);
}

tir_stmt *tir_substitute_stmt(compiler *c, tir_stmt *s, uint32_t n, const tir_var *const *vars,
                              tir_expr_ref const *values)
{
    substitution sub = {n, vars, values};
    tir_rewriter r = {.c = c, .ctx = &sub, .expr = substitute_var};
    return tir_rewrite_stmt(&r, s);
}

/* --- comparison --- */

static bool same_payload(tir_expr_ref a, tir_expr_ref b)
{
    switch (a->kind) {
    case TIR_INT: return a->u.i == b->u.i;
    case TIR_FLOAT: return memcmp(&a->u.f, &b->u.f, sizeof a->u.f) == 0; /* -0 is not 0, a NaN equals itself */
    case TIR_VAR: return a->u.var == b->u.var;
    case TIR_LOAD:
    case TIR_ADDRESS: return a->u.buffer == b->u.buffer;
    case TIR_EXTERN: return strcmp(a->u.name, b->u.name) == 0;
    case TIR_INSTR: return a->u.row == b->u.row;
    case TIR_BINOP:
    case TIR_NOT:
    case TIR_CAST:
    case TIR_SELECT:
    case TIR_CALL:
    case TIR_RAMP:
    case TIR_BROADCAST: return true;
    }
    return false;
}

bool tir_expr_equal(tir_expr_ref a, tir_expr_ref b)
{
    if (a == b)
        return true;
    if (a->kind != b->kind || a->op != b->op || a->n_args != b->n_args || a->type.dt != b->type.dt ||
        a->type.lanes != b->type.lanes)
        return false;
    if (!same_payload(a, b))
        return false;
    for (uint32_t i = 0; i < a->n_args; i++)
        if (!tir_expr_equal(a->args[i], b->args[i]))
            return false;
    return true;
}

bool tir_uses_var(tir_expr_ref e, const tir_var *v)
{
    if (e->kind == TIR_VAR)
        return e->u.var == v;
    for (uint32_t i = 0; i < e->n_args; i++)
        if (tir_uses_var(e->args[i], v))
            return true;
    return false;
}
