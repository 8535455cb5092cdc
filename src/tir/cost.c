/* SPDX-License-Identifier: Apache-2.0 */
/* How many operations a function does at most, and how often it reads and writes each buffer: static counts over the
 * loops, for reports and for the placement of weights. */
#include "tir/build.h"
#include "tir/facts.h"
#include "tir/instr.h"
#include "tir/linear.h"
#include "tir/simplify.h"
#include "tir/walk.h"

#define UNKNOWN (-1)

typedef struct counter {
    const tir_prices *prices;
    tir_bounds *bounds;
    uint32_t depth;  /* loops and conditions around */
    const char *why; /* the first of what has no bound */
} counter;

static int64_t give_up(counter *k, const char *why)
{
    k->why = k->why ? k->why : why;
    return UNKNOWN;
}

static int64_t plus(counter *k, int64_t a, int64_t b)
{
    int64_t sum;
    if (a < 0 || b < 0)
        return UNKNOWN;
    return i64_add(a, b, &sum) ? sum : give_up(k, "their number does not fit into 63 bits");
}

static int64_t larger(int64_t a, int64_t b)
{
    return a < 0 || b < 0 ? UNKNOWN : a > b ? a : b;
}

static int64_t of_call(counter *k, tir_expr_ref e)
{
    int64_t n = k->prices->call(k->prices->ctx, k->bounds->c, k->bounds, e);
    const char *name = e->kind == TIR_INSTR ? e->u.row->name : e->u.name;
    return n >= 0 ? n : give_up(k, arena_printf(&k->bounds->c->mem, "%s is called, which may do anything", name));
}

static int64_t of_stmt(counter *k, tir_stmt *s);

/* Of an instruction whose result is a value: what one of its lanes does, as an operation on vectors counts once. */
static int64_t of_lane(counter *k, tir_expr_ref e)
{
    compiler *c = k->bounds->c;
    const tir_instr_form *f = tir_instr_form_of(c, e->u.row);
    if (!f)
        return UNKNOWN;
    tir_expr_ref one = tir_i64(c, 1);
    int64_t unit = of_stmt(k, tir_substitute_stmt(c, f->update->body, f->row->n_symbols > 0, f->symbols, &one));
    const uint32_t lanes = f->per_lane[f->n_operands - 1];
    return unit < 0 || lanes == 0 ? unit : (unit + lanes - 1) / lanes;
}

static bool is_call(tir_expr_ref e)
{
    return tir_instr_writes(e) || (e->kind == TIR_INSTR && tir_instr_makes_value(e->u.row));
}

/* Of a SELECT one side is evaluated. */
static int64_t of_expr(counter *k, tir_expr_ref e)
{
    bool is_string = e->kind == TIR_EXTERN && e->type.dt == DT_STRING;
    int64_t sum = is_string                ? 0
                  : e->kind == TIR_EXTERN || is_call(e) ? of_call(k, e)
                  : e->kind == TIR_INSTR  ? of_lane(k, e)
                                          : k->prices->expr(k->prices->ctx, e);
    if (e->kind == TIR_SELECT)
        return plus(k, plus(k, sum, of_expr(k, e->args[0])), larger(of_expr(k, e->args[1]), of_expr(k, e->args[2])));
    for (uint32_t i = 0; i < e->n_args; i++)
        sum = plus(k, sum, of_expr(k, e->args[i]));
    return sum;
}

static int64_t of_inner(counter *k, tir_stmt *s)
{
    k->depth++;
    int64_t n = s ? of_stmt(k, s) : 0;
    k->depth--;
    return n;
}

static int64_t of_loop(counter *k, tir_stmt *s)
{
    tir_range r = tir_range_of(k->bounds, s->extent);
    int64_t all;
    if (!r.known_max)
        return give_up(k, "only a run knows how often a loop runs");
    if (r.max <= 0)
        return 0;
    tir_bounds_push(k->bounds, s->var, s->min, s->extent);
    int64_t one = plus(k, k->prices->stmt(k->prices->ctx, s), of_inner(k, s->body));
    tir_bounds_pop(k->bounds);
    if (one < 0 || !i64_mul(one, r.max, &all))
        return give_up(k, "their number does not fit into 63 bits");
    return plus(k, all, plus(k, of_expr(k, s->min), of_expr(k, s->extent)));
}

static int64_t of_store(counter *k, tir_stmt *s)
{
    int64_t sum = of_expr(k, s->value);
    for (uint32_t i = 0; i < s->n_indices; i++)
        sum = plus(k, sum, of_expr(k, s->indices[i]));
    return sum;
}

static int64_t of_seq(counter *k, tir_stmt *s)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < s->n_stmts; i++)
        sum = plus(k, sum, of_stmt(k, s->stmts[i]));
    return sum;
}

static int64_t of_stmt(counter *k, tir_stmt *s)
{
    const int64_t own = s->kind == TIR_FOR ? 0 : k->prices->stmt(k->prices->ctx, s);
    switch (s->kind) {
    case TIR_FOR: return of_loop(k, s);
    case TIR_IF:
        return plus(k, plus(k, own, of_expr(k, s->cond)), larger(of_inner(k, s->body), of_inner(k, s->orelse)));
    case TIR_LET: return plus(k, plus(k, own, of_expr(k, s->value)), of_stmt(k, s->body));
    case TIR_STORE: return plus(k, own, of_store(k, s));
    case TIR_ALLOCATE:
    case TIR_ATTR: return of_stmt(k, s->body);
    case TIR_EVALUATE: return of_expr(k, s->value);
    case TIR_ASSERT:
        if (k->depth == 0) /* the bounds of open extents hold from here on */
            bounds_push_cond(k->bounds, s->cond, true);
        return plus(k, own, of_expr(k, s->cond));
    case TIR_SEQ: return of_seq(k, s);
    }
    return UNKNOWN;
}

int64_t tir_most_operations(compiler *c, const tir_func *f, const tir_prices *p, const char **out_why)
{
    counter k = {.bounds = tir_bounds_new(c), .prices = p};
    int64_t n = of_stmt(&k, f->body);
    *out_why = n < 0 ? k.why : NULL;
    return n;
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
