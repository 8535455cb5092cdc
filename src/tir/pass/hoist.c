/* SPDX-License-Identifier: Apache-2.0 */
/* hoist: a guard that does not depend on a loop moves out of it, the part of a conjunction that does not depend on it
 * alone. Conditions that read memory stay: the loop may change it, as it may a register that it writes. Common parts of
 * indices are left to the C compiler, which sees them as well as we do.
 *
 * unswitch-loops, where there are vectors: neighbors behind the same guard get one; an innermost loop with a guard
 * that its own variable does not decide becomes two, of which the guard chooses one; and one with a guard that its
 * variable decides, which partition-loops could not see before tiles were written out, is cut there. A loop that is
 * all behind a guard runs over what the guard lets through. Small processors keep the code once. */
#include "tir/build.h"
#include "tir/clone.h"
#include "tir/node.h"
#include "tir/pass.h"
#include "tir/pass/guard.h"
#include "tir/simplify.h"
#include "tir/walk.h"
#include "type/target.h"

#define UNSWITCHED 24 /* statements of a loop that may be written twice */
#define CHOICES    3  /* guards that may choose, one inside of the other */
#define TILE       96 /* statements of a loop that may be cut */
#define CUTS       4  /* of one loop, one after the other */

typedef struct reader {
    tir_stmt *loop;
    bool reads; /* memory, or a register that the loop writes */
} reader;

static void look_for_load(void *ctx, tir_expr_ref e)
{
    *(bool *)ctx |= e->kind == TIR_LOAD || e->kind == TIR_EXTERN;
}

typedef struct writer_search {
    const tir_buffer *b;
    bool found;
} writer_search;

static void look_for_store(void *ctx, tir_stmt *s)
{
    writer_search *x = ctx;
    x->found |= s->kind == TIR_STORE && s->buffer == x->b;
}

static void look_for_read(void *ctx, tir_expr_ref e)
{
    reader *r = ctx;
    r->reads |= e->kind == TIR_EXTERN;
    if (e->kind != TIR_LOAD)
        return;
    writer_search x = {e->u.buffer, e->u.buffer->scope != SCOPE_REG};
    if (!x.found)
        tir_visit_stmt(r->loop, look_for_store, NULL, &x);
    r->reads |= x.found;
}

static bool is_invariant(tir_expr_ref cond, tir_stmt *loop)
{
    reader r = {loop, false};
    tir_visit_expr(cond, look_for_read, &r);
    return !r.reads && !tir_uses_var(cond, loop->var);
}

/* Conjuncts of cond that do not depend on the loop, and the others; NULL for none. */
static void separate(compiler *c, tir_expr_ref cond, tir_stmt *loop, tir_expr_ref *outside, tir_expr_ref *inside)
{
    if (tir_is_binary(cond, TIR_AND)) {
        separate(c, cond->args[0], loop, outside, inside);
        separate(c, cond->args[1], loop, outside, inside);
        return;
    }
    tir_expr_ref *to = is_invariant(cond, loop) ? outside : inside;
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
    separate(r->c, guard->cond, s, &outside, &inside);
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

/* --- two loops in place of one --- */

typedef struct guard_search {
    compiler *c;
    tir_stmt *loop;
    tir_expr_ref cond, outside; /* the first guard with a part that the loop does not decide, and that part */
    bool loops;
} guard_search;

static void find_binding(void *ctx, tir_stmt *s)
{
    guard_search *g = ctx;
    bool binds = s->kind == TIR_FOR || s->kind == TIR_LET;
    if (binds && g->outside && tir_uses_var(g->outside, s->var))
        g->outside = NULL;
}

static void try_guard(guard_search *g, tir_expr_ref cond)
{
    tir_expr_ref inside = NULL;
    if (g->outside || cond->type.lanes > 1 || cond->kind == TIR_INT)
        return;
    separate(g->c, cond, g->loop, &g->outside, &inside);
    if (g->outside)
        tir_visit_stmt(g->loop->body, find_binding, NULL, g);
    g->cond = cond;
}

static void look_at_stmt(void *ctx, tir_stmt *s)
{
    guard_search *g = ctx;
    g->loops |= s->kind == TIR_FOR;
    if (s->kind == TIR_IF)
        try_guard(g, s->cond);
}

static void look_at_choice(void *ctx, tir_expr_ref e)
{
    if (e->kind == TIR_SELECT)
        try_guard(ctx, e->args[0]);
}

typedef struct decision {
    tir_expr_ref from;
    bool value;
} decision;

static tir_expr_ref replace_guard(tir_rewriter *r, tir_expr_ref e)
{
    const decision *d = r->ctx;
    return e->type.dt == DT_BOOL && tir_expr_equal(e, d->from) ? tir_int(r->c, DT_BOOL, d->value) : e;
}

static tir_stmt *decided(compiler *c, tir_stmt *loop, tir_expr_ref from, bool value, bool again)
{
    decision d = {from, value};
    tir_rewriter r = {.c = c, .ctx = &d, .expr = replace_guard};
    const tir_var *v = again ? tir_new_var(c, loop->var->name, loop->var->type) : loop->var;
    tir_stmt *body = tir_rewrite_stmt(&r, loop->body);
    if (again)
        body = tir_clone_stmt(c, body, loop->var, tir_varref(c, v));
    return tir_for(c, v, loop->min, loop->extent, loop->for_kind, body);
}

static tir_stmt *unswitched(compiler *c, tir_stmt *loop, uint32_t choices)
{
    guard_search g = {.c = c, .loop = loop};
    if (loop->kind != TIR_FOR || loop->for_kind != FOR_SERIAL || choices == 0 ||
        tir_count_stmts(loop->body) > UNSWITCHED)
        return loop;
    tir_visit_stmt(loop->body, look_at_stmt, look_at_choice, &g);
    if (g.loops || !g.outside)
        return loop;
    tir_stmt *holds = decided(c, loop, g.outside, true, false), *not = decided(c, loop, g.cond, false, true);
    return tir_if(c, g.outside, unswitched(c, holds, choices - 1), unswitched(c, not, choices - 1));
}

/* --- two loops one after the other --- */

typedef struct cut_search {
    const tir_stmt *loop;
    int64_t first, end, at; /* at: where a guard changes, within first + 1..end - 1; else first */
} cut_search;

/* v < k changes at k, v > k at k + 1. */
static void try_cut_at(cut_search *x, tir_expr_ref e)
{
    int64_t k, at;
    if (tir_is_binary(e, TIR_AND)) {
        try_cut_at(x, e->args[0]);
        try_cut_at(x, e->args[1]);
    }
    if (e->kind != TIR_BINOP || e->op < TIR_LT || e->op > TIR_GE)
        return;
    bool left = e->args[0]->kind == TIR_VAR && e->args[0]->u.var == x->loop->var && tir_is_int(e->args[1], &k);
    bool right = e->args[1]->kind == TIR_VAR && e->args[1]->u.var == x->loop->var && tir_is_int(e->args[0], &k);
    if (!left && !right)
        return;
    bool behind = left ? e->op == TIR_GT || e->op == TIR_LE : e->op == TIR_LT || e->op == TIR_GE;
    at = k + behind;
    if (x->at == x->first && at > x->first && at < x->end)
        x->at = at;
}

static void cut_at_stmt(void *ctx, tir_stmt *s)
{
    if (s->kind == TIR_IF)
        try_cut_at(ctx, s->cond);
}

static void cut_at_choice(void *ctx, tir_expr_ref e)
{
    if (e->kind == TIR_SELECT)
        try_cut_at(ctx, e->args[0]);
}

static tir_stmt *piece_of(compiler *c, tir_stmt *loop, int64_t from, int64_t to)
{
    dtype dt = loop->var->type.dt;
    const tir_var *v = tir_new_var(c, loop->var->name, loop->var->type);
    tir_stmt *body = tir_clone_stmt(c, loop->body, loop->var, tir_varref(c, v));
    return tir_simplify_stmt(c, tir_for(c, v, tir_int(c, dt, from), tir_int(c, dt, to - from), loop->for_kind, body));
}

static tir_stmt *cut_where_guards_change(compiler *c, tir_stmt *loop, uint32_t cuts)
{
    cut_search x = {.loop = loop};
    int64_t extent;
    if (loop->kind != TIR_FOR || loop->for_kind != FOR_SERIAL || cuts == 0 || !tir_is_int(loop->min, &x.first) ||
        !tir_is_int(loop->extent, &extent) || tir_count_stmts(loop->body) > TILE)
        return loop;
    x.at = x.first;
    x.end = x.first + extent;
    tir_visit_stmt(loop->body, cut_at_stmt, cut_at_choice, &x);
    if (x.at == x.first)
        return loop;
    tir_stmt *parts[2] = {cut_where_guards_change(c, piece_of(c, loop, x.first, x.at), cuts - 1),
                          cut_where_guards_change(c, piece_of(c, loop, x.at, x.end), cuts - 1)};
    return tir_seq(c, 2, parts);
}

/* --- a loop over what its guard lets through --- */

static void look_for_loop(void *ctx, tir_stmt *s)
{
    *(bool *)ctx |= s->kind == TIR_FOR;
}

static tir_stmt *narrow_to_guard(compiler *c, tir_stmt *loop)
{
    bool loops = false;
    if (loop->kind != TIR_FOR || loop->for_kind != FOR_SERIAL || loop->body->kind != TIR_IF || loop->body->orelse)
        return loop;
    tir_visit_stmt(loop->body->body, look_for_loop, NULL, &loops);
    tir_behind_guard x = tir_behind(c, loop, loop->body->cond);
    if (loops || (x.left && tir_expr_equal(x.left, loop->body->cond)))
        return loop;
    tir_stmt *body = x.left ? tir_if(c, x.left, loop->body->body, NULL) : loop->body->body;
    return tir_for(c, loop->var, x.min, x.extent, FOR_SERIAL, body);
}

/* Whether the second statement may follow the first one behind its guard. */
static bool same_guard(const tir_stmt *a, const tir_stmt *b)
{
    bool reads = false;
    if (a->kind != TIR_IF || b->kind != TIR_IF || a->orelse || b->orelse || !tir_expr_equal(a->cond, b->cond))
        return false;
    tir_visit_expr(a->cond, look_for_load, &reads);
    return !reads;
}

static tir_stmt *join_guards(compiler *c, tir_stmt *s)
{
    tir_stmt **all = arena_array(&c->mem, tir_stmt *, s->n_stmts);
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_stmts; i++) {
        if (n > 0 && same_guard(all[n - 1], s->stmts[i])) {
            tir_stmt *both[2] = {all[n - 1]->body, s->stmts[i]->body};
            all[n - 1] = tir_if(c, s->stmts[i]->cond, tir_seq(c, 2, both), NULL);
        } else {
            all[n++] = s->stmts[i];
        }
    }
    return n < s->n_stmts ? tir_seq(c, n, all) : s;
}

static tir_stmt *unswitch(tir_rewriter *r, tir_stmt *s)
{
    if (s->kind == TIR_SEQ)
        return join_guards(r->c, s);
    tir_stmt *out = unswitched(r->c, s, CHOICES);
    out = out == s ? cut_where_guards_change(r->c, s, CUTS) : out;
    return out == s ? narrow_to_guard(r->c, s) : out;
}

bool tir_pass_unswitch(compiler *c, tir_func *f)
{
    const target *t = f->target ? f->target : target_default();
    tir_rewriter r = {.c = c, .stmt = unswitch};
    if (t->vector_bytes > 0)
        f->body = tir_simplify_stmt(c, tir_rewrite_stmt(&r, f->body));
    return true;
}
