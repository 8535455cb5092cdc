/* SPDX-License-Identifier: Apache-2.0 */
/* What a loop does, by types: loop_work.h. */
#include "tir/pass/loop_work.h"
#include "tir/build.h"
#include "tir/walk.h"

#define LEAST 4 /* rounds, below which no instruction is meant */

typedef struct work_scan {
    const tir_selector *x;
    const tir_stmt *loop;
    loop_work *w;
    uint32_t stores;
    bool lanes, other_loops;
} work_scan;

/* --- what is read --- */

int64_t loop_step(const tir_selector *x, tir_expr_ref at, const tir_var *v)
{
    int64_t by = 0;
    tir_expr_ref next = tir_add(x->c, tir_varref(x->c, v), tir_int(x->c, v->type.dt, 1));
    next = tir_substitute(x->c, at, 1, &v, &next);
    return tir_is_int(tir_simplify(x->bounds, tir_sub(x->c, next, at)), &by) ? by : 0;
}

typedef struct row_search {
    const work_scan *s;
    bool found;
} row_search;

static void find_row(void *ctx, tir_expr_ref e)
{
    row_search *r = ctx;
    const work_scan *s = r->s;
    if (e->kind == TIR_LOAD && e->u.buffer->scope != SCOPE_REG && dtype_bits(e->type.dt) == 8)
        r->found |= loop_step(s->x, tir_select_flat(s->x, e->u.buffer, e->n_args, e->args), s->loop->var) == 1;
}

/* Does a byte of a row say the place? */
static bool is_looked_up(const work_scan *s, tir_expr_ref at)
{
    row_search r = {s, false};
    tir_visit_expr(at, find_row, &r);
    return r.found;
}

static void note_load(work_scan *s, tir_expr_ref e)
{
    loop_work *w = s->w;
    if (e->u.buffer->scope == SCOPE_REG)
        return;
    tir_expr_ref at = tir_select_flat(s->x, e->u.buffer, e->n_args, e->args);
    const bool looked_up = is_looked_up(s, at);
    if (!looked_up && !tir_uses_var(at, s->loop->var))
        return;
    if (w->widest == DT_NONE || dtype_bits(e->type.dt) > dtype_bits(w->widest))
        w->widest = e->type.dt;
    *(looked_up ? &w->looked_up : loop_step(s->x, at, s->loop->var) == 1 ? &w->rows : &w->others) += 1;
}

/* --- what is computed --- */

static uint32_t kind_of(tir_expr_ref e)
{
    if (e->kind == TIR_CAST || e->kind == TIR_SELECT)
        return e->kind == TIR_CAST ? WORK_CASTS : WORK_CHOICES;
    if (e->kind != TIR_BINOP || !dtype_is_int(e->type.dt))
        return WORK_MORE;
    if (e->op == TIR_MIN || e->op == TIR_MAX)
        return dtype_bits(e->type.dt) == 8 ? WORK_EXTREMES : WORK_MORE;
    if (e->op == TIR_ADD || e->op == TIR_SUB)
        return WORK_SUMS;
    return e->op == TIR_MUL ? WORK_PRODUCTS : WORK_MORE;
}

static bool is_leaf(tir_expr_ref e)
{
    return e->kind == TIR_VAR || e->kind == TIR_INT || e->kind == TIR_FLOAT;
}

/* Conditions of selects are no arithmetic on values, and neither is that of indices. */
static void note_value(work_scan *s, tir_expr_ref e, bool counts)
{
    s->lanes |= e->type.lanes > 1;
    if (e->kind == TIR_LOAD) {
        note_load(s, e);
        return;
    }
    if (is_leaf(e))
        return;
    if (counts)
        s->w->kinds |= kind_of(e);
    for (uint32_t i = e->kind == TIR_SELECT ? 1 : 0; i < e->n_args; i++)
        note_value(s, e->args[i], counts);
}

/* depth: loops around s inside of the loop. */
static void note_stmt(work_scan *s, const tir_stmt *at, uint32_t depth)
{
    int64_t n = 0;
    if (!at)
        return;
    if (at->kind == TIR_FOR) {
        s->other_loops |= at->for_kind == FOR_PARALLEL || at->for_kind == FOR_VTHREAD || !tir_is_int(at->extent, &n);
        depth++;
    }
    if (at->kind == TIR_STORE && at->buffer->scope != SCOPE_REG) {
        s->stores++;
        s->w->store = at;
    }
    if (at->kind == TIR_IF)
        s->w->kinds |= WORK_CHOICES;
    if (at->value)
        note_value(s, at->value, (depth > 0) == (s->w->inner > 0));
    for (uint32_t i = 0; i < at->n_stmts; i++)
        note_stmt(s, at->stmts[i], depth);
    note_stmt(s, at->body, depth);
    note_stmt(s, at->orelse, depth);
}

static void note_inner(void *ctx, tir_stmt *s)
{
    loop_work *w = ctx;
    int64_t n = 0;
    if (s->kind != TIR_FOR)
        return;
    n = tir_is_int(s->extent, &n) && n > 0 && n < INT16_MAX ? n : INT16_MAX;
    w->inner = w->inner == 0 ? n : w->inner < INT32_MAX ? w->inner * n : w->inner;
}

bool loop_work_of(const tir_selector *x, tir_stmt *loop, loop_work *out)
{
    work_scan s = {.x = x, .loop = loop, .w = out};
    *out = (loop_work){.rounds = INT64_MAX, .widest = DT_NONE};
    if (loop->for_kind != FOR_SERIAL || (tir_is_int(loop->extent, &out->rounds) && out->rounds < LEAST))
        return false;
    tir_visit_stmt(loop->body, note_inner, NULL, out);
    note_stmt(&s, loop->body, 0);
    if (s.stores != 1)
        out->store = NULL;
    if (out->store)
        out->steps = loop_step(x, tir_select_flat(x, out->store->buffer, out->store->n_indices, out->store->indices),
                                loop->var) == 1;
    return !s.lanes && !s.other_loops;
}

bool loop_is_table(const tir_selector *x, tir_stmt *loop)
{
    loop_work w;
    return loop_work_of(x, loop, &w) && w.store && w.inner == 0 && w.steps &&
           dtype_bits(w.store->buffer->dt) == 8 && w.kinds == 0 && w.looked_up == 1 && w.rows == 0 && w.others == 0 &&
           dtype_bits(w.widest) == 8;
}

bool loop_is_dot(const tir_selector *x, tir_stmt *loop)
{
    loop_work w;
    return loop_work_of(x, loop, &w) && w.inner == 0 &&
           (w.kinds & ~(uint32_t)WORK_CASTS) == (WORK_PRODUCTS | WORK_SUMS) && !w.steps && w.rows + w.others >= 2 &&
           dtype_is_int(w.widest) && dtype_bits(w.widest) <= 16;
}
