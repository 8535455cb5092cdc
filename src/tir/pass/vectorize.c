/* SPDX-License-Identifier: Apache-2.0 */
/* vectorize: the variable of a "vectorized" loop becomes a ramp and everything that depends on it gets its lanes. A
 * loop that cannot be one becomes serial, and is counted (tir_left): indices that are no ramps, a guard or inner bounds
 * that differ between lanes, a store that all lanes share, calls of external functions, a buffer that is read elsewhere
 * than where it is written. A number of lanes that is no power of two becomes several vectors. */
#include "tir/build.h"
#include "tir/clone.h"
#include "tir/lane.h"
#include "tir/node.h"
#include "tir/pass.h"
#include "tir/walk.h"

typedef struct vectorizer {
    compiler *c;
    uint16_t lanes;
    const tir_var *vars[64]; /* the loop's variable, then those of lets that got lanes */
    tir_expr_ref values[64];
    uint32_t n;
    tir_bounds *bounds;     /* of no variable; NULL: nobody asked yet */
    bool ok;
} vectorizer;

static tir_stmt *widen(vectorizer *v, tir_stmt *s);

/* --- what must hold --- */

typedef struct store_list {
    VEC(tir_stmt *) stores;
    arena *a;
    bool conflict;
} store_list;

static void collect_store(void *ctx, tir_stmt *s)
{
    store_list *l = ctx;
    if (s->kind == TIR_STORE)
        vec_push(l->a, &l->stores, s);
}

static bool same_indices(uint32_t n, tir_expr_ref const *a, uint32_t m, tir_expr_ref const *b)
{
    for (uint32_t i = 0; i < n && n == m; i++)
        if (!tir_expr_equal(a[i], b[i]))
            return false;
    return n == m;
}

static void check_load(void *ctx, tir_expr_ref e)
{
    store_list *l = ctx;
    for (uint32_t i = 0; e->kind == TIR_LOAD && i < l->stores.len; i++) {
        tir_stmt *s = l->stores.data[i];
        l->conflict |= s->buffer == e->u.buffer && !same_indices(s->n_indices, s->indices, e->n_args, e->args);
    }
}

/* Lanes run together: what one lane writes, no other may read or write. */
static bool lanes_are_independent(compiler *c, tir_stmt *body)
{
    store_list l = {.a = &c->mem};
    tir_visit_stmt(body, collect_store, NULL, &l);
    tir_visit_stmt(body, NULL, check_load, &l);
    for (uint32_t i = 0; i < l.stores.len; i++)
        for (uint32_t k = 0; k < i; k++) {
            tir_stmt *a = l.stores.data[i], *b = l.stores.data[k];
            l.conflict |= a->buffer == b->buffer && !same_indices(a->n_indices, a->indices, b->n_indices, b->indices);
        }
    return !l.conflict;
}

static void look_for_lanes(void *ctx, tir_expr_ref e)
{
    *(bool *)ctx |= e->type.lanes > 1;
}

static bool has_lanes(tir_stmt *s)
{
    bool found = false;
    tir_visit_stmt(s, NULL, look_for_lanes, &found);
    return found;
}

typedef struct load_search {
    tir_expr_ref load;
    bool found;
} load_search;

static void look_for_same(void *ctx, tir_expr_ref e)
{
    load_search *x = ctx;
    x->found |= tir_expr_equal(e, x->load);
}

typedef struct guard_check {
    tir_expr_ref cond;
    bool decides;
} guard_check;

static void check_guarded(void *ctx, tir_expr_ref e)
{
    guard_check *g = ctx;
    load_search x = {e, false};
    if (e->kind == TIR_LOAD)
        tir_visit_expr(g->cond, look_for_same, &x);
    g->decides |= e->kind == TIR_LOAD && !x.found;
}

/* A condition that differs between lanes decides about a load: lanes cannot skip it. One that reads the same itself
 * decides nothing. */
static void find_guarded_load(void *ctx, tir_expr_ref e)
{
    bool guards = e->kind == TIR_SELECT || (e->kind == TIR_BINOP && (e->op == TIR_AND || e->op == TIR_OR));
    if (!guards || e->args[0]->type.lanes == 1)
        return;
    guard_check g = {e->args[0], false};
    for (uint32_t i = 1; i < e->n_args; i++)
        tir_visit_expr(e->args[i], check_guarded, &g);
    *(bool *)ctx |= g.decides;
}

static bool is_scattered(tir_expr_ref index)
{
    return index->type.lanes > 1 && index->kind != TIR_RAMP;
}

/* Sums in registers as tiles of two by two: a row of them is an instruction. */
static bool is_of_tile(vectorizer *v, tir_expr_ref load)
{
    int64_t steps[TIR_TILE_LANES];
    if (load->u.buffer->scope != SCOPE_REG)
        return false;
    v->bounds = v->bounds ? v->bounds : tir_bounds_new(v->c);
    return tir_lane_steps(v->bounds, v->c, load, steps) && tir_is_row_of_tiles(steps);
}

static void find_scattered_load(void *ctx, tir_expr_ref e)
{
    vectorizer *v = ctx;
    for (uint32_t i = 0; e->kind == TIR_LOAD && i < e->n_args; i++)
        if (is_scattered(e->args[i]) && !is_of_tile(v, e))
            v->ok = false;
}

static tir_expr_ref lanes_of(vectorizer *v, tir_expr_ref e)
{
    bool guarded = false;
    if (tir_has_extern(e)) {
        v->ok = false;
        return e;
    }
    tir_expr_ref out = tir_substitute(v->c, e, v->n, v->vars, v->values);
    tir_visit_expr(out, find_guarded_load, &guarded);
    tir_visit_expr(out, find_scattered_load, v);
    v->ok = v->ok && !guarded;
    return out;
}

static tir_expr_ref scalar(vectorizer *v, tir_expr_ref e)
{
    tir_expr_ref out = lanes_of(v, e);
    v->ok = v->ok && out->type.lanes == 1;
    return out;
}

/* --- statements --- */

static tir_stmt *widen_store(vectorizer *v, tir_stmt *s)
{
    tir_expr_ref idx[TIR_MAX_RANK];
    uint16_t lanes = 1;
    for (uint32_t i = 0; i < s->n_indices; i++) {
        idx[i] = lanes_of(v, s->indices[i]);
        v->ok = v->ok && !is_scattered(idx[i]);
        lanes = idx[i]->type.lanes > lanes ? idx[i]->type.lanes : lanes;
    }
    tir_expr_ref value = lanes_of(v, s->value);
    v->ok = v->ok && lanes == v->lanes; /* else all lanes write one place */
    return v->ok ? tir_store(v->c, s->buffer, s->n_indices, idx, value) : s;
}

static tir_stmt *widen_let(vectorizer *v, tir_stmt *s)
{
    tir_expr_ref value = lanes_of(v, s->value);
    const tir_var *var = s->var;
    if (value->type.lanes > 1) {
        if (v->n == sizeof v->vars / sizeof *v->vars) {
            v->ok = false;
            return s;
        }
        var = tir_new_var(v->c, s->var->name, value->type);
        v->vars[v->n] = s->var;
        v->values[v->n++] = tir_varref(v->c, var);
    }
    tir_stmt *body = widen(v, s->body);
    return tir_let(v->c, var, value, body);
}

static tir_stmt *widen_seq(vectorizer *v, tir_stmt *s)
{
    tir_stmt **all = arena_array(&v->c->mem, tir_stmt *, s->n_stmts);
    for (uint32_t i = 0; i < s->n_stmts; i++)
        all[i] = v->ok ? widen(v, s->stmts[i]) : s->stmts[i];
    return tir_seq(v->c, s->n_stmts, all);
}

static tir_stmt *widen(vectorizer *v, tir_stmt *s)
{
    tir_expr_ref min, extent, cond;
    switch (s->kind) {
    case TIR_STORE: return widen_store(v, s);
    case TIR_LET: return widen_let(v, s);
    case TIR_SEQ: return widen_seq(v, s);
    case TIR_FOR:
        min = scalar(v, s->min);
        extent = scalar(v, s->extent);
        return v->ok ? tir_for(v->c, s->var, min, extent, s->for_kind, widen(v, s->body)) : s;
    case TIR_IF:
        cond = scalar(v, s->cond);
        return v->ok ? tir_if(v->c, cond, widen(v, s->body), s->orelse ? widen(v, s->orelse) : NULL) : s;
    case TIR_ATTR: {
        tir_expr_ref value = scalar(v, s->value);
        return v->ok ? tir_attr(v->c, s->node, s->key, value, widen(v, s->body)) : s;
    }
    case TIR_ALLOCATE: /* one buffer for all lanes would be shared, one each is not worth it */
    case TIR_EVALUATE:
    case TIR_ASSERT: v->ok = false; return s;
    }
    return s;
}

/* The iterations at..at+n as n lanes, a power of two; NULL: that cannot be. */
static tir_stmt *as_lanes(compiler *c, tir_stmt *loop, tir_stmt *body, tir_expr_ref at, uint16_t n)
{
    if (n == 1)
        return tir_clone_stmt(c, body, loop->var, at);
    vectorizer v = {.c = c, .lanes = n, .vars = {loop->var}, .n = 1, .ok = true};
    v.values[0] = tir_ramp(c, at, tir_int(c, loop->var->type.dt, 1), n);
    tir_stmt *out = widen(&v, body);
    return v.ok ? out : NULL;
}

/* All iterations; where their number is no power of two, as vectors that become shorter. */
static tir_stmt *all_lanes(compiler *c, tir_stmt *loop, uint32_t n)
{
    tir_stmt *parts[16];
    uint32_t n_parts = 0;
    for (uint32_t at = 0, m; at < n; at += m) {
        for (m = 1; 2 * m <= n - at; m *= 2)
            continue;
        tir_expr_ref from = tir_add(c, loop->min, tir_int(c, loop->var->type.dt, at));
        tir_stmt *body = at > 0 ? tir_clone_stmt(c, loop->body, NULL, NULL) : loop->body;
        parts[n_parts] = as_lanes(c, loop, body, from, (uint16_t)m);
        if (!parts[n_parts++])
            return NULL;
    }
    return n_parts == 1 ? parts[0] : tir_seq(c, n_parts, parts);
}

static tir_stmt *vectorize(tir_rewriter *r, tir_stmt *s)
{
    int64_t n;
    if (s->kind != TIR_FOR || s->for_kind != FOR_VECTORIZED)
        return s;
    bool lanes_ok = tir_is_int(s->extent, &n) && n > 1 && n <= (int64_t)TIR_MAX_LANES;
    if (lanes_ok && !has_lanes(s->body) && lanes_are_independent(r->c, s->body)) {
        tir_stmt *lanes = all_lanes(r->c, s, (uint32_t)n);
        if (lanes)
            return lanes;
    }
    ((tir_func *)r->ctx)->left.serial++;
    return tir_for(r->c, s->var, s->min, s->extent, FOR_SERIAL, s->body);
}

bool tir_pass_vectorize(compiler *c, tir_func *f)
{
    tir_rewriter r = {.c = c, .ctx = f, .stmt = vectorize};
    f->body = tir_rewrite_stmt(&r, f->body);
    return true;
}
