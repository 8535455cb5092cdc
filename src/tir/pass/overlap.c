/* SPDX-License-Identifier: Apache-2.0 */
/* The tile at the end of an open extent: where tiles of F elements do not divide n, the last one is computed from n - F
 * on, whole and without guards, over elements that the tile before it has computed already. That is right only if an
 * iteration depends on its place alone, which is v * F + i, reads nothing that it writes, and calls nothing. */
#include "tir/pass/overlap.h"
#include "tir/build.h"
#include "tir/clone.h"
#include "tir/instr.h"
#include "tir/linear.h"
#include "tir/node.h"
#include "tir/pass.h"
#include "tir/walk.h"

#define MOST_INNER  32 /* loops of a tile */
#define MOST_PLACED 16 /* dimensions of buffers in it */

/* --- iterations that may run again --- */

typedef struct repeat_check {
    tir_map own, written; /* buffers that are allocated inside; those that are stored to, its own included */
    bool ok;
} repeat_check;

static void note_stmt(void *ctx, tir_stmt *s)
{
    repeat_check *k = ctx;
    if (s->kind == TIR_ALLOCATE)
        tir_map_put(&k->own, s->buffer, s);
    if (s->kind == TIR_STORE)
        tir_map_put(&k->written, s->buffer, s);
    k->ok &= s->kind != TIR_ATTR || !tir_pragma_is_whole(s->key);
}

static void note_expr(void *ctx, tir_expr_ref e)
{
    repeat_check *k = ctx;
    bool written = e->kind == TIR_LOAD && tir_map_get(&k->written, e->u.buffer);
    k->ok &= !tir_is_call(e) && (!written || tir_map_get(&k->own, e->u.buffer));
}

static bool may_repeat(compiler *c, tir_stmt *body, tir_map *out_own)
{
    repeat_check k = {.ok = true};
    tir_map_init(&k.own, &c->mem);
    tir_map_init(&k.written, &c->mem);
    tir_visit_stmt(body, note_stmt, NULL, &k);
    tir_visit_stmt(body, NULL, note_expr, &k);
    *out_own = k.own;
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

/* Where an index stands: in an access or a comparison. */
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

/* --- what an iteration does follows from its place, start + i --- */

/* A loop of the tile: an iteration of it goes on by `step` elements. */
typedef struct inner_loop {
    const tir_var *var;
    int64_t step;
} inner_loop;

/* A dimension of a buffer of the tile: element `unit` * i is for place start + i. */
typedef struct placed {
    const tir_buffer *buffer;
    uint32_t axis;
    int64_t unit;
} placed;

typedef struct place {
    tir_bounds *bounds;
    const tir_var *start; /* of the tile */
    int64_t factor;
    const tir_map *own; /* buffers that are allocated in the tile */
    inner_loop inner[MOST_INNER];
    placed placed[MOST_PLACED];
    uint32_t n_inner, n_placed;
    bool ok;
} place;

/* The term that moves with v, and which of its atoms is v; NULL: none does. */
static const linear_term *term_with(const linear *l, const tir_var *v, uint32_t *out_at)
{
    for (uint32_t i = 0; i < l->len; i++)
        for (uint32_t k = 0; k < l->terms[i].n; k++)
            if (tir_uses_var(l->terms[i].atoms[k], v)) {
                *out_at = k;
                return &l->terms[i];
            }
    return NULL;
}

/* Whether two products are the same but for one factor of each. */
static bool is_same_but(const linear_term *a, uint32_t at, const linear_term *b, uint32_t but)
{
    bool same = a->n == b->n;
    for (uint32_t i = 0, k = 0; same && i < a->n; i++) {
        if (i == at)
            continue;
        k += k == but;
        same = tir_expr_equal(a->atoms[i], b->atoms[k++]);
    }
    return same;
}

/* 0: v is no loop of the tile. */
static int64_t step_of(const place *p, const tir_var *v)
{
    for (uint32_t i = 0; i < p->n_inner; i++)
        if (p->inner[i].var == v)
            return p->inner[i].step;
    return 0;
}

static void add_inner(place *p, const tir_var *v, int64_t step)
{
    const int64_t known = step_of(p, v);
    p->ok &= known ? known == step : p->n_inner < MOST_INNER;
    if (!known && p->ok)
        p->inner[p->n_inner++] = (inner_loop){v, step};
}

static int64_t unit_of(const place *p, const tir_buffer *b, uint32_t axis)
{
    for (uint32_t i = 0; i < p->n_placed; i++)
        if (p->placed[i].buffer == b && p->placed[i].axis == axis)
            return p->placed[i].unit;
    return 0;
}

static void add_placed(place *p, const tir_buffer *b, uint32_t axis, int64_t unit)
{
    const int64_t known = unit_of(p, b, axis);
    p->ok &= unit != 0 && (known ? known == unit : p->n_placed < MOST_PLACED);
    if (!known && p->ok)
        p->placed[p->n_placed++] = (placed){b, axis, unit};
}

/* The index of a result has start * q, and (i * step) * q for each loop of the tile. */
static void note_inner(place *p, tir_expr_ref index)
{
    linear l;
    uint32_t at = 0;
    if (!tir_uses_var(index, p->start))
        return;
    const bool is_sum = linear_of(p->bounds, tir_simplify(p->bounds, index), &l);
    const linear_term *tile = is_sum ? term_with(&l, p->start, &at) : NULL;
    p->ok &= tile != NULL;
    for (uint32_t i = 0; tile && i < l.len; i++) {
        const linear_term *t = &l.terms[i];
        const int64_t step = t->coeff / tile->coeff;
        if (t == tile || step < 1 || step >= p->factor || t->coeff % tile->coeff != 0)
            continue;
        for (uint32_t k = 0; k < t->n; k++)
            if (t->atoms[k]->kind == TIR_VAR && is_same_but(t, k, tile, at))
                add_inner(p, t->atoms[k]->u.var, step);
    }
}

static const tir_var *only_var(const linear_term *t)
{
    return t->n == 1 && t->atoms[0]->kind == TIR_VAR ? t->atoms[0]->u.var : NULL;
}

/* A dimension of a buffer of the tile has places where a loop of the tile counts them, and then all loops that count in
 * it where it is written are loops of the tile, too. */
static void note_own(place *p, const tir_buffer *b, uint32_t axis, tir_expr_ref index, bool is_written)
{
    linear l;
    if (!linear_of(p->bounds, tir_simplify(p->bounds, index), &l)) {
        p->ok = false;
        return;
    }
    for (uint32_t i = 0; i < l.len; i++) {
        const tir_var *v = only_var(&l.terms[i]);
        const int64_t step = v ? step_of(p, v) : 0;
        if (step)
            add_placed(p, b, axis, l.terms[i].coeff % step == 0 ? l.terms[i].coeff / step : 0);
    }
    const int64_t unit = unit_of(p, b, axis);
    for (uint32_t i = 0; i < l.len && unit && is_written; i++) {
        const tir_var *v = only_var(&l.terms[i]);
        const int64_t step = l.terms[i].coeff / unit;
        if (v && l.terms[i].coeff % unit == 0 && step >= 1 && step < p->factor)
            add_inner(p, v, step);
    }
}

static void note_results(void *ctx, tir_stmt *s)
{
    place *p = ctx;
    for (uint32_t i = 0; s->kind == TIR_STORE && i < s->n_indices; i++)
        if (tir_map_get(p->own, s->buffer))
            note_own(p, s->buffer, i, s->indices[i], true);
        else
            note_inner(p, s->indices[i]);
}

static void note_reads(void *ctx, tir_expr_ref e)
{
    place *p = ctx;
    for (uint32_t i = 0; tir_is_access(e) && tir_map_get(p->own, e->u.buffer) && i < e->n_args; i++)
        note_own(p, e->u.buffer, i, e->args[i], false);
}

/* Whether e is the same for a tile that starts earlier and an iteration that is as much later in it. */
static bool follows(const place *p, tir_expr_ref e)
{
    compiler *c = p->bounds->c;
    const dtype dt = p->start->type.dt;
    tir_expr_ref was = tir_simplify(p->bounds, e);
    bool moves = !tir_uses_var(e, p->start);
    for (uint32_t i = 0; i < p->n_inner; i++) {
        const inner_loop *in = &p->inner[i];
        if (!tir_uses_var(e, in->var))
            continue;
        tir_expr_ref by = tir_varref(c, tir_new_var(c, "by", in->var->type));
        tir_expr_ref back = tir_mul(c, tir_cast(c, dt, by), tir_int(c, dt, in->step));
        const tir_var *const vars[2] = {in->var, p->start};
        tir_expr_ref const values[2] = {tir_add(c, tir_varref(c, in->var), by),
                                        tir_sub(c, tir_varref(c, p->start), back)};
        if (!tir_expr_equal(tir_simplify(p->bounds, tir_substitute(c, e, 2, vars, values)), was))
            return false;
        moves = true;
    }
    return moves;
}

static void refuse_access(void *ctx, tir_expr_ref e)
{
    place *p = ctx;
    p->ok &= !tir_is_access(e);
}

static void check_expr(void *ctx, tir_expr_ref e)
{
    place *p = ctx;
    const bool compares = e->kind == TIR_BINOP && tir_op_is_compare(e->op) && bounds_is_index_type(e->args[0]->type);
    const bool own = tir_is_access(e) && tir_map_get(p->own, e->u.buffer);
    p->ok &= e->kind != TIR_VAR || !step_of(p, e->u.var);
    if (compares)
        p->ok &= follows(p, tir_sub(p->bounds->c, e->args[0], e->args[1]));
    for (uint32_t i = 0; i < e->n_args && !compares; i++)
        if (own)
            tir_visit_expr(e->args[i], refuse_access, p);
        else if (tir_is_access(e))
            p->ok &= follows(p, e->args[i]);
        else
            check_expr(p, e->args[i]);
}

static void check_stmt(void *ctx, tir_stmt *s)
{
    place *p = ctx;
    if (s->kind != TIR_STORE) {
        tir_stmt_exprs(s, check_expr, p);
        return;
    }
    for (uint32_t i = 0; i < s->n_indices; i++)
        if (tir_map_get(p->own, s->buffer))
            tir_visit_expr(s->indices[i], refuse_access, p);
        else
            p->ok &= follows(p, s->indices[i]);
    check_expr(p, s->value);
}

static bool follows_from_place(place *p, tir_stmt *body)
{
    uint32_t known;
    do { /* each round finds the loops that write what the loops of the round before read */
        known = p->n_inner + p->n_placed;
        tir_visit_stmt(body, note_results, note_reads, p);
    } while (p->ok && p->n_inner + p->n_placed > known);
    if (p->ok)
        tir_visit_stmt(body, check_stmt, NULL, p);
    return p->ok && p->n_inner > 0;
}

/* --- the end of the loop --- */

/* to = n / F and end = (n + F - 1) / F, rounded down: at most one iteration is left. */
bool tir_is_one_tile(tir_bounds *b, tir_stmt *loop, tir_expr_ref to, tir_expr_ref end, int64_t *factor, tir_expr_ref *n)
{
    compiler *c = b->c;
    if (loop->for_kind != FOR_SERIAL || !tir_is_const(loop->min, 0))
        return false;
    if (!tir_is_binary(to, TIR_FLOORDIV) || !tir_is_int(to->args[1], factor) || *factor < 2)
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
    tir_map own;
    if (!may_repeat(c, whole, &own))
        return NULL;
    const tir_var *start = tir_new_var(c, "start", n->type);
    shift s = {.bounds = b, .v = loop->var, .factor = factor, .start = tir_varref(c, start), .ok = true};
    place p = {.bounds = b, .start = start, .factor = factor, .own = &own, .ok = true};
    tir_bounds_push(b, loop->var, loop->min, loop->extent);
    tir_rewriter r = {.c = c, .ctx = &s, .expr = shift_expr, .stmt = shift_stmt};
    tir_stmt *body = tir_rewrite_stmt(&r, whole);
    tir_bounds_pop(b);
    if (!s.ok || tir_stmt_uses_var(body, loop->var) || !follows_from_place(&p, body))
        return NULL;
    tir_expr_ref last = tir_sub(c, n, tir_int(c, n->type.dt, factor));
    body = tir_substitute_stmt(c, body, 1, &start, &last);
    const tir_var *v = tir_new_var(c, loop->var->name, loop->var->type);
    return tir_for(c, v, to, tir_simplify(b, tir_sub(c, end, to)), FOR_SERIAL, tir_clone_stmt(c, body, NULL, NULL));
}
