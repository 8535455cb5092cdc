/* SPDX-License-Identifier: Apache-2.0 */
/* How many operations a function does at most, and how often it reads and writes each buffer: static counts over the
 * loops, for reports and for the placement of weights. */
#include "tir/facts.h"
#include "tir/linear.h"
#include "tir/simplify.h"
#include "tir/walk.h"

/* An unbounded loop, a call of something outside, or more than fits. */
#define UNKNOWN (-1)

static int64_t plus(int64_t a, int64_t b)
{
    int64_t sum;
    return a < 0 || b < 0 || !i64_add(a, b, &sum) ? UNKNOWN : sum;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a < 0 || b < 0 ? UNKNOWN : a > b ? a : b;
}

/* Of a SELECT one side is evaluated; a vector's operation is one. */
static int64_t of_expr(tir_expr_ref e)
{
    int64_t sum = e->n_args > 0 || e->kind == TIR_LOAD;
    if (e->kind == TIR_EXTERN)
        return UNKNOWN;
    if (e->kind == TIR_SELECT)
        return plus(plus(1, of_expr(e->args[0])), larger(of_expr(e->args[1]), of_expr(e->args[2])));
    for (uint32_t i = 0; i < e->n_args; i++)
        sum = plus(sum, of_expr(e->args[i]));
    return sum;
}

typedef struct counter {
    tir_bounds *bounds;
    uint32_t depth; /* loops and conditions around */
} counter;

static int64_t of_stmt(counter *k, tir_stmt *s);

static int64_t of_inner(counter *k, tir_stmt *s)
{
    k->depth++;
    int64_t n = s ? of_stmt(k, s) : 0;
    k->depth--;
    return n;
}

/* Each iteration compares and counts. */
static int64_t of_loop(counter *k, tir_stmt *s)
{
    tir_range r = tir_range_of(k->bounds, s->extent);
    int64_t all;
    if (!r.known_max)
        return UNKNOWN;
    if (r.max <= 0)
        return 0;
    tir_bounds_push(k->bounds, s->var, s->min, s->extent);
    int64_t one = plus(2, of_inner(k, s->body));
    tir_bounds_pop(k->bounds);
    return one < 0 || !i64_mul(one, r.max, &all) ? UNKNOWN : plus(all, plus(of_expr(s->min), of_expr(s->extent)));
}

static int64_t of_store(tir_stmt *s)
{
    int64_t sum = plus(1, of_expr(s->value));
    for (uint32_t i = 0; i < s->n_indices; i++)
        sum = plus(sum, of_expr(s->indices[i]));
    return sum;
}

static int64_t of_seq(counter *k, tir_stmt *s)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < s->n_stmts; i++)
        sum = plus(sum, of_stmt(k, s->stmts[i]));
    return sum;
}

static int64_t of_stmt(counter *k, tir_stmt *s)
{
    switch (s->kind) {
    case TIR_FOR: return of_loop(k, s);
    case TIR_IF: return plus(plus(1, of_expr(s->cond)), larger(of_inner(k, s->body), of_inner(k, s->orelse)));
    case TIR_LET: return plus(plus(1, of_expr(s->value)), of_stmt(k, s->body));
    case TIR_STORE: return of_store(s);
    case TIR_ALLOCATE:
    case TIR_ATTR: return of_stmt(k, s->body);
    case TIR_EVALUATE: return of_expr(s->value);
    case TIR_ASSERT:
        if (k->depth == 0) /* the bounds of open extents hold from here on */
            bounds_push_cond(k->bounds, s->cond, true);
        return plus(1, of_expr(s->cond));
    case TIR_SEQ: return of_seq(k, s);
    }
    return UNKNOWN;
}

int64_t tir_most_operations(compiler *c, const tir_func *f)
{
    counter k = {.bounds = tir_bounds_new(c)};
    return of_stmt(&k, f->body);
}

/* --- accesses --- */

typedef struct access_counter {
    tir_bounds *bounds;
    const tir_func *f;
    double times; /* how often what is looked at runs */
    double *params, *scratch;
    bool called; /* what an address is handed to reads and writes there, too */
} access_counter;

static void count_access(const access_counter *k, const tir_buffer *b, double lanes)
{
    for (uint32_t i = 0; i < k->f->n_params; i++)
        if (k->f->params[i] == b) {
            k->params[i] += k->times * lanes;
            return;
        }
    if (b->scope == SCOPE_GLOBAL)
        *k->scratch += k->times * lanes;
}

static void count_load(void *ctx, tir_expr_ref e)
{
    access_counter *k = ctx;
    k->called |= e->kind == TIR_ADDRESS;
    if (e->kind == TIR_LOAD)
        count_access(k, e->u.buffer, e->type.lanes);
}

static void count_exprs(access_counter *k, const tir_stmt *s)
{
    tir_expr_ref const all[] = {s->min, s->extent, s->cond, s->value};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i])
            tir_visit_expr(all[i], count_load, k);
    for (uint32_t i = 0; s->kind == TIR_STORE && i < s->n_indices; i++)
        tir_visit_expr(s->indices[i], count_load, k);
}

static void count_stmt(access_counter *k, tir_stmt *s)
{
    const double times = k->times;
    count_exprs(k, s);
    if (s->kind == TIR_STORE)
        count_access(k, s->buffer, s->value->type.lanes);
    if (s->kind == TIR_FOR) {
        tir_range r = tir_range_of(k->bounds, s->extent);
        k->times *= r.known_max ? (double)(r.max > 0 ? r.max : 0) : 1;
        tir_bounds_push(k->bounds, s->var, s->min, s->extent);
    }
    if (s->body)
        count_stmt(k, s->body);
    if (s->orelse)
        count_stmt(k, s->orelse);
    for (uint32_t i = 0; i < s->n_stmts; i++)
        count_stmt(k, s->stmts[i]);
    if (s->kind == TIR_FOR)
        tir_bounds_pop(k->bounds);
    k->times = times;
}

bool tir_count_accesses(compiler *c, const tir_func *f, double *params, double *scratch)
{
    access_counter k = {tir_bounds_new(c), f, 1, params, scratch, false};
    count_stmt(&k, f->body);
    return !k.called;
}
