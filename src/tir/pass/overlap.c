/* SPDX-License-Identifier: Apache-2.0 */
/* The tile at the end of an open extent: where tiles of F elements do not divide n, the last one is computed from n - F
 * on, whole and without guards, over elements that the tile before it has computed already. Nothing changes by that as
 * long as an iteration only writes what follows from what it reads, and reads nothing of what it writes. */
#include "tir/instr.h"
#include "tir/pass/overlap.h"

#include "tir/build.h"
#include "tir/clone.h"
#include "tir/linear.h"
#include "tir/node.h"
#include "tir/walk.h"

/* --- iterations that may run again --- */

typedef struct repeat_check {
    tir_map own, written; /* buffers allocated inside; buffers of others that are stored to */
    bool ok;
} repeat_check;

static void note_stmt(void *ctx, tir_stmt *s)
{
    repeat_check *k = ctx;
    if (s->kind == TIR_ALLOCATE)
        tir_map_put(&k->own, s->buffer, s);
    if (s->kind == TIR_STORE)
        tir_map_put(&k->written, s->buffer, s);
    k->ok &= s->kind != TIR_ATTR || s->node; /* a pragma of the whole loop is not ours to repeat */
}

static void note_load(void *ctx, tir_expr_ref e)
{
    repeat_check *k = ctx;
    bool written = e->kind == TIR_LOAD && tir_map_get(&k->written, e->u.buffer);
    k->ok &= !tir_is_call(e) && (!written || tir_map_get(&k->own, e->u.buffer));
}

static bool may_repeat(compiler *c, tir_stmt *body)
{
    repeat_check k = {.ok = true};
    tir_map_init(&k.own, &c->mem);
    tir_map_init(&k.written, &c->mem);
    tir_visit_stmt(body, note_stmt, NULL, &k);
    tir_visit_stmt(body, NULL, note_load, &k);
    return k.ok;
}

/* --- v * F becomes n - F --- */

typedef struct shift {
    tir_bounds *bounds;
    const tir_var *v;
    int64_t factor;
    tir_expr_ref start; /* what v * factor becomes */
    bool ok;
} shift;

static tir_expr_ref shift_index(shift *s, compiler *c, tir_expr_ref e)
{
    linear l, moved = {0};
    if (!tir_uses_var(e, s->v))
        return e;
    s->ok = s->ok && bounds_is_index_type(e->type) && linear_of(s->bounds, tir_simplify(s->bounds, e), &l);
    if (!s->ok)
        return e;
    moved.constant = l.constant;
    for (uint32_t i = 0; i < l.len; i++) {
        const linear_term *t = &l.terms[i];
        uint32_t found = 0, at = 0;
        for (uint32_t k = 0; k < t->n; k++)
            if (t->atoms[k]->kind == TIR_VAR && t->atoms[k]->u.var == s->v) {
                found++;
                at = k;
            } else {
                s->ok &= !tir_uses_var(t->atoms[k], s->v);
            }
        s->ok &= found < 2 && (!found || t->coeff % s->factor == 0);
        if (!s->ok)
            return e;
        if (!found) {
            s->ok &= linear_add_term(s->bounds, &moved, t);
            continue;
        }
        linear one = {.len = 1, .terms = {*t}}, start, product;
        one.terms[0].coeff /= s->factor;
        one.terms[0].n--;
        for (uint32_t k = at; k < one.terms[0].n; k++)
            one.terms[0].atoms[k] = one.terms[0].atoms[k + 1];
        if (one.terms[0].n == 0)
            one = (linear){.constant = t->coeff / s->factor};
        s->ok &= linear_of(s->bounds, tir_cast(c, e->type.dt, s->start), &start) &&
                 linear_mul(s->bounds, &one, &start, &product) && linear_add(s->bounds, &moved, &product, 1);
    }
    return s->ok ? linear_build(s->bounds, e->type.dt, &moved) : e;
}

/* The places where an index stands: accesses, ramps, comparisons. */
static tir_expr_ref shift_expr(tir_rewriter *r, tir_expr_ref e)
{
    shift *s = r->ctx;
    bool compares = e->kind == TIR_BINOP && tir_op_is_compare(e->op) && bounds_is_index_type(e->args[0]->type);
    tir_expr_ref args[TIR_MAX_RANK];
    if ((!tir_is_access(e) && !compares) || e->n_args > TIR_MAX_RANK)
        return e;
    for (uint32_t i = 0; i < e->n_args; i++)
        args[i] = shift_index(s, r->c, e->args[i]);
    if (compares)
        return tir_binary(r->c, e->op, args[0], args[1]);
    return e->kind == TIR_LOAD ? tir_load(r->c, e->u.buffer, e->n_args, args)
                               : tir_address(r->c, e->u.buffer, e->n_args, args);
}

static tir_stmt *shift_stmt(tir_rewriter *r, tir_stmt *st)
{
    shift *s = r->ctx;
    tir_expr_ref at[TIR_MAX_RANK];
    if (st->kind != TIR_STORE)
        return st;
    for (uint32_t i = 0; i < st->n_indices; i++)
        at[i] = shift_index(s, r->c, st->indices[i]);
    return tir_store(r->c, st->buffer, st->n_indices, at, st->value);
}

static void look_for_var(void *ctx, tir_expr_ref e)
{
    shift *s = ctx;
    s->ok &= e->kind != TIR_VAR || e->u.var != s->v;
}

/* --- the end of the loop --- */

/* to = n / F and end = (n + F - 1) / F, rounded down: at most one iteration is left. */
bool tir_is_one_tile(tir_bounds *b, tir_stmt *loop, tir_expr_ref to, tir_expr_ref end, int64_t *factor, tir_expr_ref *n)
{
    compiler *c = b->c;
    if (loop->for_kind != FOR_SERIAL || !tir_is_const(loop->min, 0))
        return false;
    if (to->kind != TIR_BINOP || to->op != TIR_FLOORDIV || !tir_is_int(to->args[1], factor) || *factor < 2)
        return false;
    *n = to->args[0];
    dtype dt = to->type.dt;
    tir_expr_ref up = tir_floordiv(c, tir_add(c, *n, tir_int(c, dt, *factor - 1)), tir_int(c, dt, *factor));
    return tir_expr_equal(tir_simplify(b, up), tir_simplify(b, end));
}

tir_stmt *tir_overlap_end(tir_bounds *b, tir_stmt *loop, tir_expr_ref to, tir_expr_ref end, int64_t factor,
                          tir_expr_ref n, tir_stmt *whole)
{
    compiler *c = b->c;
    shift s = {.bounds = b, .v = loop->var, .factor = factor, .ok = true};
    if (!may_repeat(c, whole))
        return NULL;
    s.start = tir_sub(c, n, tir_int(c, n->type.dt, factor));
    tir_bounds_push(b, loop->var, loop->min, loop->extent);
    tir_rewriter r = {.c = c, .ctx = &s, .expr = shift_expr, .stmt = shift_stmt};
    tir_stmt *body = tir_rewrite_stmt(&r, whole);
    tir_bounds_pop(b);
    tir_visit_stmt(body, NULL, look_for_var, &s);
    if (!s.ok)
        return NULL;
    const tir_var *v = tir_new_var(c, loop->var->name, loop->var->type);
    return tir_for(c, v, to, tir_simplify(b, tir_sub(c, end, to)), FOR_SERIAL, tir_clone_stmt(c, body, NULL, NULL));
}
