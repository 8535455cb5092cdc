/* SPDX-License-Identifier: Apache-2.0 */
/* partition-loops: a serial or unrolled loop is cut where the guards in it change, so that its main part runs without
 * them. For a guard `c*v + rest >= 0` the main part is where it holds for every value that the inner loops give to
 * `rest`; cuts may contain symbols but no variables of enclosing loops. What is left before and after keeps its guards,
 * which ranges then decide where they can. A parallel loop stays whole, because its extent is what the plan divides: a
 * branch in it, on its variable or on the value of one of the loops that were fused to it, chooses between a body for
 * the main part and others for the rest. An unrolled loop that cannot be cut is written out, so that each iteration
 * knows what it is. A vectorized loop is only cut short, never in two; a loop marked "pragma_whole" is not cut, loops
 * in it are: its code once is worth more than its guards cost. Loops that only a limit kept whole are counted
 * (tir_left). */
#include "tir/build.h"
#include "tir/clone.h"
#include "tir/linear.h"
#include "tir/node.h"
#include "tir/pass.h"
#include "tir/pass/overlap.h"
#include "tir/walk.h"

#include <string.h>

#define MAX_BODY  256u /* statements of a loop that may be written out several times */
#define MAX_CUTS  48u  /* loops cut in one function */
#define MAX_CONDS 32u
#define RARELY    256 /* iterations for each test of a branch that make the test free once it has moved out of them */
#define MAX_DEPTH 32u
#define MAX_TRIED 8u  /* parts of the index of a parallel loop that are looked at */
#define SMALL     16u /* statements in a parallel loop that may be written twice for any guard */
#define WRITTEN   16  /* iterations of an unrolled loop */

typedef enum var_place { PLACE_FREE, PLACE_ENCLOSING, PLACE_INNER } var_place;
static const char place_mark[3];

typedef struct partitioner {
    compiler *c;
    tir_bounds *bounds;
    tir_map places; /* variable -> address of its place's mark */
    uint32_t cuts_left;
    const char *kept_whole; /* a loop that is not cut, by the name of its variable; NULL: none */
    tir_left *left;
} partitioner;

/* The interval of v in which a condition surely holds; NULL: not limited on that side. */
typedef struct condition {
    tir_expr_ref expr;
    tir_expr_ref first, last;
    int64_t factor;    /* c, and the least of rest */
    tir_expr_ref rest;
} condition;

/* Which conditions count. */
typedef enum kind {
    ALL,
    IN_LANES, /* that differ between the lanes of a loop */
    IN_SUMS   /* of a loop inside of another one */
} kind;

typedef struct search {
    partitioner *p;
    const tir_var *v;
    condition conds[MAX_CONDS];
    uint32_t n;
    tir_stmt *inner[MAX_DEPTH]; /* loops between v's and what is looked at */
    uint32_t depth;
    bool branch; /* looking at the condition of a branch, which may move out of loops */
    bool full;   /* there were more conditions */
    kind which;
} search;

static tir_stmt *partition(partitioner *p, tir_stmt *s);
static tir_stmt *partition_inside(partitioner *p, tir_stmt *s);

static void set_place(partitioner *p, const tir_var *v, var_place place)
{
    tir_map_put(&p->places, v, &place_mark[place]);
}

static var_place place_of(const partitioner *p, const tir_var *v)
{
    const char *mark = tir_map_get(&p->places, v);
    return mark ? (var_place)(mark - place_mark) : PLACE_FREE;
}

/* --- conditions --- */

typedef struct atom_facts {
    search *s;
    bool uses_v, enclosing, inner, reads;
} atom_facts;

static void look_at(void *ctx, tir_expr_ref e)
{
    atom_facts *f = ctx;
    f->reads |= e->kind == TIR_LOAD || e->kind == TIR_EXTERN;
    if (e->kind != TIR_VAR)
        return;
    var_place place = place_of(f->s->p, e->u.var);
    f->uses_v |= e->u.var == f->s->v;
    f->enclosing |= place == PLACE_ENCLOSING;
    f->inner |= place == PLACE_INNER;
}

/* Adds the least value of a term that is not v's. */
static bool add_least(search *s, linear *rest, const linear_term *t)
{
    atom_facts f = {.s = s};
    for (uint32_t i = 0; i < t->n; i++)
        tir_visit_expr(t->atoms[i], look_at, &f);
    if (f.uses_v || f.enclosing || f.reads)
        return false;
    if (!f.inner)
        return linear_add_term(s->p->bounds, rest, t);
    linear one = {.len = 1, .terms = {*t}};
    tir_range r = linear_range(s->p->bounds, &one);
    return r.known_min && i64_add(rest->constant, r.min, &rest->constant);
}

/* d >= 0 as an interval of v. */
static bool solve(search *s, const linear *d, condition *out)
{
    linear rest = {.constant = d->constant};
    int64_t coeff = 0;
    for (uint32_t i = 0; i < d->len; i++) {
        const linear_term *t = &d->terms[i];
        if (t->n == 1 && t->atoms[0]->kind == TIR_VAR && t->atoms[0]->u.var == s->v)
            coeff = t->coeff;
        else if (!add_least(s, &rest, t))
            return false;
    }
    if (coeff == 0 || coeff == INT64_MIN)
        return false;
    compiler *c = s->p->c;
    dtype dt = s->v->type.dt;
    tir_expr_ref r = linear_build(s->p->bounds, dt, &rest);
    out->factor = coeff;
    out->rest = r;
    if (coeff > 0)
        out->first = tir_sub(c, tir_int(c, dt, 0), tir_floordiv(c, r, tir_int(c, dt, coeff)));
    else
        out->last = tir_floordiv(c, r, tir_int(c, dt, -coeff));
    return true;
}

/* Once it stands right inside the innermost loop that it depends on, the test of a branch is rare. */
static bool is_rare(const search *s, tir_expr_ref cond)
{
    int64_t work = 1, n = 0;
    for (uint32_t i = s->depth; s->branch && i-- > 0 && !tir_uses_var(cond, s->inner[i]->var);)
        if (!tir_is_int(s->inner[i]->extent, &n) || !i64_mul(work, n, &work))
            return false;
    return work >= RARELY;
}

static bool differs_in_lanes(const search *s, tir_expr_ref cond)
{
    bool deep = s->which == IN_LANES;
    for (uint32_t i = 0; i < s->depth; i++) {
        deep |= s->inner[i]->for_kind == FOR_SERIAL;
        if (deep && s->inner[i]->for_kind == FOR_VECTORIZED && tir_uses_var(cond, s->inner[i]->var))
            return true;
    }
    return false;
}

static void note_compare(search *s, tir_expr_ref e)
{
    tir_bounds *b = s->p->bounds;
    if (is_rare(s, e) || (s->which != ALL && !differs_in_lanes(s, e)))
        return;
    tir_expr_ref x = tir_simplify(b, e->args[0]), y = tir_simplify(b, e->args[1]);
    bool swap = e->op == TIR_GT || e->op == TIR_GE, strict = e->op == TIR_LT || e->op == TIR_GT;
    linear d;
    if (x->type.dt != s->v->type.dt || x->type.lanes > 1 || !bounds_is_exact(b, x) || !bounds_is_exact(b, y))
        return;
    condition cond = {.expr = e};
    if (!linear_diff(b, swap ? x : y, swap ? y : x, &d) || !i64_add(d.constant, strict ? -1 : 0, &d.constant) ||
        !solve(s, &d, &cond))
        return;
    s->full |= s->n == MAX_CONDS;
    if (s->n < MAX_CONDS)
        s->conds[s->n++] = cond;
}

static void note_condition(search *s, tir_expr_ref e)
{
    if (e->kind != TIR_BINOP)
        return;
    if (e->op == TIR_AND) {
        note_condition(s, e->args[0]);
        note_condition(s, e->args[1]);
    } else if (e->op == TIR_LT || e->op == TIR_LE || e->op == TIR_GT || e->op == TIR_GE) {
        note_compare(s, e);
    }
}

static void note_select(void *ctx, tir_expr_ref e)
{
    if (e->kind == TIR_SELECT)
        note_condition(ctx, e->args[0]);
}

static void note_exprs(void *ctx, tir_expr_ref e)
{
    tir_visit_expr(e, note_select, ctx);
}

static bool is_whole(tir_stmt *s)
{
    return s->kind == TIR_ATTR && tir_pragma_is_whole(s->key);
}

static void look(search *s, tir_stmt *body)
{
    if (is_whole(body))
        return;
    tir_stmt_exprs(body, note_exprs, s);
    if (body->kind == TIR_IF) {
        s->branch = true;
        note_condition(s, body->cond);
        s->branch = false;
    }
    if (body->kind == TIR_FOR || body->kind == TIR_LET)
        set_place(s->p, body->var, PLACE_INNER);
    bool loop = body->kind == TIR_FOR && s->depth < MAX_DEPTH;
    if (loop)
        s->inner[s->depth++] = body;
    if (body->kind == TIR_FOR)
        tir_bounds_push(s->p->bounds, body->var, body->min, body->extent);
    if (body->body)
        look(s, body->body);
    s->depth -= loop;
    if (body->orelse)
        look(s, body->orelse);
    for (uint32_t i = 0; i < body->n_stmts; i++)
        look(s, body->stmts[i]);
    if (body->kind == TIR_FOR)
        tir_bounds_pop(s->p->bounds);
}

/* --- cutting --- */

typedef struct cut {
    bool before, after;          /* whether there may be something on that side */
    tir_expr_ref from, to, rest; /* the main part: from <= v < to; what comes after it starts at rest */
    tir_expr_ref end;
} cut;

static cut limits(partitioner *p, tir_stmt *loop, const condition *conds, uint32_t n)
{
    compiler *c = p->c;
    tir_expr_ref one = tir_int(c, loop->var->type.dt, 1);
    cut k = {.from = loop->min, .end = tir_simplify(p->bounds, tir_add(c, loop->min, loop->extent))};
    k.to = k.end;
    for (uint32_t i = 0; i < n; i++) {
        if (conds[i].first)
            k.from = tir_max(c, k.from, conds[i].first);
        if (conds[i].last)
            k.to = tir_min(c, k.to, tir_add(c, conds[i].last, one));
        k.before |= conds[i].first != NULL;
        k.after |= conds[i].last != NULL;
    }
    k.from = tir_simplify(p->bounds, k.from);
    k.to = tir_simplify(p->bounds, k.to);
    k.rest = tir_simplify(p->bounds, tir_max(c, k.from, k.to));
    return k;
}

/* Whether the main part surely is the whole loop, or nothing. */
static bool is_useless(partitioner *p, tir_stmt *loop, cut k)
{
    tir_expr_ref min = tir_simplify(p->bounds, loop->min);
    bool whole = tir_expr_equal(k.from, min) && tir_expr_equal(k.to, k.end);
    return whole || tir_prove(p->bounds, tir_binary(p->c, TIR_LE, k.to, k.from)) ||
           tir_prove(p->bounds, tir_binary(p->c, TIR_LE, k.end, k.from));
}

typedef struct decided {
    const condition *conds;
    uint32_t n;
} decided;

static tir_expr_ref decide(tir_rewriter *r, tir_expr_ref e)
{
    const decided *d = r->ctx;
    for (uint32_t i = 0; i < d->n; i++)
        if (d->conds[i].expr == e)
            return tir_int(r->c, DT_BOOL, 1);
    return e;
}

static tir_stmt *piece(partitioner *p, tir_stmt *loop, tir_expr_ref from, tir_expr_ref to, tir_stmt *body, bool again)
{
    compiler *c = p->c;
    const tir_var *v = tir_new_var(c, loop->var->name, loop->var->type);
    tir_expr_ref extent = tir_simplify(p->bounds, tir_sub(c, to, from));
    tir_stmt *s = tir_for(c, v, from, extent, loop->for_kind, tir_clone_stmt(c, body, loop->var, tir_varref(c, v)));
    s = tir_simplify_stmt(c, s);
    return again || s->kind != TIR_FOR ? partition(p, s) : partition_inside(p, s);
}

static bool is_nothing(tir_stmt *s)
{
    return s->kind == TIR_SEQ && s->n_stmts == 0;
}

/* Whether all that was cut away holds for the last tile of F, too, when it begins at n - F: -F*v + rest >= 0 becomes
 * rest - (n - F) >= 0. */
static bool hold_when_moved(partitioner *p, tir_expr_ref n, int64_t factor, const condition *conds, uint32_t n_conds)
{
    compiler *c = p->c;
    for (uint32_t i = 0; i < n_conds; i++) {
        tir_expr_ref left = tir_sub(c, conds[i].rest, tir_sub(c, n, tir_int(c, n->type.dt, factor)));
        if (conds[i].factor != -factor ||
            !tir_prove(p->bounds, tir_binary(c, TIR_GE, left, tir_int(c, left->type.dt, 0))))
            return false;
    }
    return true;
}

/* Whether iterations from..to do nothing. */
static bool are_idle(partitioner *p, tir_stmt *loop, tir_expr_ref from, tir_expr_ref to)
{
    compiler *c = p->c;
    const tir_var *v = tir_new_var(c, loop->var->name, loop->var->type);
    tir_stmt *body = tir_clone_stmt(c, loop->body, loop->var, tir_varref(c, v));
    tir_expr_ref extent = tir_simplify(p->bounds, tir_sub(c, to, from));
    return is_nothing(tir_simplify_stmt(c, tir_for(c, v, from, extent, FOR_SERIAL, body)));
}

/* What is left behind the main part: guarded; or, where there is a whole tile, moved back to it. */
static tir_stmt *after(partitioner *p, tir_stmt *loop, cut k, tir_stmt *whole, bool again, const condition *conds,
                       uint32_t n_conds)
{
    compiler *c = p->c;
    int64_t factor, rest, end;
    tir_expr_ref n;
    bool few = tir_is_int(k.rest, &rest) && tir_is_int(k.end, &end) && end - rest > 1;
    if (few && are_idle(p, loop, tir_int(c, loop->var->type.dt, rest + 1), k.end))
        k.end = tir_int(c, loop->var->type.dt, rest + 1);
    tir_stmt *guarded = piece(p, loop, k.rest, k.end, loop->body, again), *moved = NULL;
    if (!k.before && !again && tir_is_one_tile(p->bounds, loop, k.to, k.end, &factor, &n) &&
        hold_when_moved(p, n, factor, conds, n_conds))
        moved = tir_overlap_end(p->bounds, loop, k.to, k.end, factor, n, whole);
    if (!moved)
        return guarded;
    moved = tir_simplify_stmt(p->c, moved);
    return tir_if(p->c, tir_binary(p->c, TIR_GE, n, tir_int(p->c, n->type.dt, factor)),
                  moved->kind == TIR_FOR ? partition_inside(p, moved) : partition(p, moved), guarded);
}

/* NULL: a loop of lanes that would fall apart. */
static tir_stmt *cut_loop(partitioner *p, tir_stmt *loop, cut k, const condition *conds, uint32_t n)
{
    compiler *c = p->c;
    decided d = {conds, n};
    tir_rewriter r = {.c = c, .ctx = &d, .expr = decide};
    tir_stmt *parts[3] = {tir_seq(c, 0, NULL), NULL, tir_seq(c, 0, NULL)};
    int64_t from, to;
    /* beside a cut at a symbol the same guard is as undecided as before */
    bool again = tir_is_int(k.from, &from) && tir_is_int(k.to, &to);
    p->cuts_left--;
    tir_stmt *whole = tir_rewrite_stmt(&r, loop->body);
    if (k.before)
        parts[0] = piece(p, loop, loop->min, tir_min(c, k.from, k.end), loop->body, again);
    parts[1] = piece(p, loop, k.from, k.to, whole, again);
    if (k.after)
        parts[2] = after(p, loop, k, whole, again, conds, n);
    if (loop->for_kind == FOR_VECTORIZED && !(is_nothing(parts[0]) && is_nothing(parts[2])))
        return NULL;
    return tir_seq(c, 3, parts);
}

/* What to cut: all guards at once when they leave something, else the first that does. False: nothing. */
static bool find_cut(partitioner *p, tir_stmt *loop, const search *s, cut *out, const condition **conds, uint32_t *n)
{
    *conds = s->conds;
    *n = s->n;
    *out = limits(p, loop, *conds, *n);
    if (!is_useless(p, loop, *out))
        return true;
    *n = 1;
    for (uint32_t i = 0; s->n > 1 && i < s->n; i++) {
        *conds = &s->conds[i];
        *out = limits(p, loop, *conds, *n);
        if (!is_useless(p, loop, *out))
            return true;
    }
    return false;
}

/* Iterations one by one. */
static tir_stmt *write_out(partitioner *p, tir_stmt *loop, int64_t first, int64_t extent)
{
    compiler *c = p->c;
    tir_stmt **all = arena_array(&c->mem, tir_stmt *, (size_t)extent);
    dtype dt = loop->var->type.dt;
    for (int64_t i = 0; i < extent; i++)
        all[i] = piece(p, loop, tir_int(c, dt, first + i), tir_int(c, dt, first + i + 1), loop->body, true);
    return tir_seq(c, (uint32_t)extent, all);
}

static bool has_room(partitioner *p, tir_stmt *body)
{
    return p->cuts_left > 0 && tir_count_stmts(body) <= MAX_BODY;
}

/* The guards in a loop's body that depend on its variable. */
static void look_into(partitioner *p, tir_stmt *loop, kind which, search *s)
{
    *s = (search){.p = p, .v = loop->var, .which = which};
    tir_bounds_push(p->bounds, loop->var, loop->min, loop->extent);
    look(s, loop->body);
    tir_bounds_pop(p->bounds);
}

static tir_stmt *try_cut(partitioner *p, tir_stmt *loop)
{
    search s;
    const condition *conds = NULL;
    uint32_t n = 0;
    int64_t first, extent;
    cut k;
    if (loop->for_kind != FOR_SERIAL && loop->for_kind != FOR_VECTORIZED && loop->for_kind != FOR_UNROLLED)
        return NULL;
    look_into(p, loop, ALL, &s);
    bool found = s.n > 0 && find_cut(p, loop, &s, &k, &conds, &n);
    if (found && has_room(p, loop->body))
        return cut_loop(p, loop, k, conds, n);
    if (s.n > 0 && !found && loop->for_kind == FOR_UNROLLED && tir_is_int(loop->min, &first) &&
        tir_is_int(loop->extent, &extent) && extent <= WRITTEN)
        return write_out(p, loop, first, extent);
    p->left->whole += found || s.full;
    return NULL;
}

/* --- branches --- */

/* What guards depend on of the loops around: their variables, and values of the loops that were fused to one. */
typedef struct index_parts {
    partitioner *p;
    tir_expr_ref part[MAX_TRIED];
    uint32_t n;
    bool other;
} index_parts;

static void look_for_other(void *ctx, tir_expr_ref e)
{
    index_parts *x = ctx;
    bool around = e->kind == TIR_VAR && place_of(x->p, e->u.var) == PLACE_ENCLOSING;
    x->other |= e->kind != TIR_INT && e->kind != TIR_BINOP && !around;
}

static void note_part(void *ctx, tir_expr_ref e)
{
    index_parts *x = ctx, within = {.p = x->p};
    bool quotient = e->kind == TIR_BINOP && (e->op == TIR_FLOORDIV || e->op == TIR_FLOORMOD);
    if (!quotient && e->kind != TIR_VAR)
        return;
    tir_visit_expr(e, look_for_other, &within);
    for (uint32_t i = 0; i < x->n; i++)
        within.other |= tir_expr_equal(x->part[i], e);
    if (!within.other && x->n < MAX_TRIED)
        x->part[x->n++] = e;
}

static void note_if(void *ctx, tir_stmt *s)
{
    if (s->kind == TIR_IF)
        tir_visit_expr(s->cond, note_part, ctx);
}

static void note_select_parts(void *ctx, tir_expr_ref e)
{
    if (e->kind == TIR_SELECT)
        tir_visit_expr(e->args[0], note_part, ctx);
}

typedef struct replacement {
    tir_expr_ref from, to;
} replacement;

static tir_expr_ref replace(tir_rewriter *r, tir_expr_ref e)
{
    const replacement *x = r->ctx;
    return tir_expr_equal(e, x->from) ? x->to : e;
}

/* A copy of the body for values from..to of q, which is `value`. */
static tir_stmt *body_for(partitioner *p, tir_stmt *body, const tir_var *q, tir_expr_ref value, int64_t from,
                          int64_t to)
{
    compiler *c = p->c;
    tir_expr_ref first = tir_int(c, q->type.dt, from), extent = tir_int(c, q->type.dt, to - from);
    const tir_var *v = tir_new_var(c, q->name, q->type);
    tir_stmt *s = tir_clone_stmt(c, body, q, tir_varref(c, v));
    s = tir_simplify_stmt(c, tir_for(c, v, first, extent, FOR_SERIAL, s));
    if (s->kind != TIR_FOR || s->var != v)
        return partition(p, s);
    s = partition_inside(p, s);
    return tir_substitute_stmt(c, s->body, 1, &v, &value);
}

/* A branch on `value`, a part of an index, around the statement: a body for the main part, others for the rest. NULL:
 * none of the guards in question is decided by it. */
static tir_stmt *try_branch(partitioner *p, tir_stmt *body, tir_expr_ref value, kind which)
{
    compiler *c = p->c;
    tir_range range = tir_range_of(p->bounds, value);
    const condition *conds = NULL;
    uint32_t n = 0;
    search s;
    cut k;
    int64_t from, to;
    if (!range.known_min || !range.known_max || range.min == range.max)
        return NULL;
    dtype dt = value->type.dt;
    const tir_var *q = tir_new_var(c, "part", value->type);
    replacement x = {value, tir_varref(c, q)};
    tir_rewriter r = {.c = c, .ctx = &x, .expr = replace};
    tir_stmt *loop = tir_for(c, q, tir_int(c, dt, range.min), tir_int(c, dt, range.max - range.min + 1), FOR_SERIAL,
                             tir_rewrite_stmt(&r, body));
    look_into(p, loop, which, &s);
    if (s.n == 0 || !find_cut(p, loop, &s, &k, &conds, &n) || !tir_is_int(k.from, &from) || !tir_is_int(k.to, &to))
        return NULL;
    if (!has_room(p, body)) {
        p->left->whole++;
        return NULL;
    }
    p->cuts_left--;
    decided d = {conds, n};
    tir_rewriter whole = {.c = c, .ctx = &d, .expr = decide};
    tir_stmt *out = body_for(p, tir_rewrite_stmt(&whole, loop->body), q, value, from, to);
    if (to <= range.max)
        out = tir_if(c, tir_binary(c, TIR_LT, value, k.to), out, body_for(p, loop->body, q, value, to, range.max + 1));
    if (from > range.min)
        out = tir_if(c, tir_binary(c, TIR_GE, value, k.from), out, body_for(p, loop->body, q, value, range.min, from));
    return out;
}

static tir_stmt *branch_around(partitioner *p, tir_stmt *body, kind which)
{
    index_parts x = {.p = p};
    tir_stmt *out = NULL;
    tir_visit_stmt(body, note_if, note_select_parts, &x);
    for (uint32_t i = 0; !out && i < x.n; i++)
        out = try_branch(p, body, x.part[i], which);
    return out;
}

/* The body twice, for guards that a reduction's lanes test in every step: private arrays of its sums are then all
 * vectors, or none. Else a branch around the tile that tests them is enough. */
static tir_stmt *branch_parallel(partitioner *p, tir_stmt *loop)
{
    set_place(p, loop->var, PLACE_ENCLOSING);
    tir_bounds_push(p->bounds, loop->var, loop->min, loop->extent);
    tir_stmt *out = branch_around(p, loop->body, tir_count_stmts(loop->body) > SMALL ? IN_SUMS : ALL);
    tir_bounds_pop(p->bounds);
    return out ? tir_for(p->c, loop->var, loop->min, loop->extent, FOR_PARALLEL, out) : NULL;
}

static bool is_tile(const tir_stmt *s)
{
    return s->for_kind == FOR_UNROLLED || s->for_kind == FOR_VECTORIZED;
}

static tir_stmt *partition_seq(partitioner *p, tir_stmt *s)
{
    tir_stmt **all = arena_array(&p->c->mem, tir_stmt *, s->n_stmts);
    uint32_t asserted = 0;
    for (uint32_t i = 0; i < s->n_stmts; i++) {
        all[i] = partition(p, s->stmts[i]);
        if (all[i]->kind != TIR_ASSERT)
            continue;
        bounds_push_cond(p->bounds, all[i]->cond, true);
        asserted++;
    }
    while (asserted-- > 0)
        tir_bounds_pop(p->bounds);
    return tir_seq(p->c, s->n_stmts, all);
}

static tir_stmt *partition_parts(partitioner *p, tir_stmt *s)
{
    struct tir_stmt *copy = tir_node_copy(p->c, s);
    if (s->body)
        copy->body = partition(p, s->body);
    if (s->orelse)
        copy->orelse = partition(p, s->orelse);
    return copy;
}

static tir_stmt *partition(partitioner *p, tir_stmt *s)
{
    if (s->kind == TIR_SEQ)
        return partition_seq(p, s);
    if (is_whole(s))
        return s;
    if (s->kind == TIR_ATTR && strcmp(s->key, "pragma_whole") == 0) { /* allocations may stand before the loop */
        p->kept_whole = s->node;
        return partition(p, s->body);
    }
    if (s->kind != TIR_FOR)
        return partition_parts(p, s);
    if (p->kept_whole && strcmp(p->kept_whole, s->var->name) == 0) {
        p->kept_whole = NULL;
        return partition_inside(p, s);
    }
    tir_stmt *done = s->for_kind == FOR_PARALLEL ? branch_parallel(p, s) : try_cut(p, s);
    if (!done && is_tile(s))
        done = branch_around(p, s, IN_LANES);
    return done ? done : partition_inside(p, s);
}

static tir_stmt *partition_inside(partitioner *p, tir_stmt *s)
{
    set_place(p, s->var, PLACE_ENCLOSING);
    tir_bounds_push(p->bounds, s->var, s->min, s->extent);
    tir_stmt *out = partition_parts(p, s);
    tir_bounds_pop(p->bounds);
    return out;
}

bool tir_pass_partition(compiler *c, tir_func *f)
{
    partitioner p = {.c = c, .bounds = tir_bounds_new(c), .cuts_left = MAX_CUTS, .left = &f->left};
    tir_map_init(&p.places, &c->mem);
    f->body = tir_simplify_stmt(c, partition(&p, f->body));
    return true;
}
