/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about a finished function that the plan builds on: what may share storage, how far it can be divided, what
 * scratch it needs, and whether two functions are the same. */
#include "tir/build.h"
#include "tir/facts.h"
#include "tir/linear.h"
#include "tir/node.h"
#include "tir/walk.h"

#include <stdlib.h>
#include <string.h>

/* --- may an output take the place of an input? --- */

#define MAX_STORES 16u
#define MAX_LOOPS  64u

typedef struct placed_store {
    tir_expr_ref index; /* of the first lane */
    int64_t lane_stride;
    uint32_t lanes;
    tir_range span; /* of all elements it writes */
} placed_store;

typedef struct alias_check {
    compiler *c;
    tir_bounds *bounds;
    const tir_buffer *in, *out;
    tir_stmt *loops[MAX_LOOPS]; /* enclosing, outermost first */
    uint32_t n_loops;
    placed_store stores[MAX_STORES];
    uint32_t n_stores;
    tir_expr_ref index; /* of the store whose parts are being looked at; NULL outside */
    bool ok;
} alias_check;

static tir_expr_ref flat_index(alias_check *k, const tir_buffer *b, uint32_t n, tir_expr_ref const *idx)
{
    if (n != b->rank || (n == 1 && !b->strides && !b->offset))
        return tir_simplify(k->bounds, idx[0]);
    if (b->strides || b->offset) {
        k->ok = false;
        return NULL;
    }
    tir_expr_ref sum = tir_i64(k->c, 0);
    for (uint32_t i = 0; i < n; i++)
        sum = tir_add(k->c, tir_mul(k->c, sum, tir_cast(k->c, DT_I64, b->shape[i])), tir_cast(k->c, DT_I64, idx[i]));
    return tir_simplify(k->bounds, sum);
}

/* Every load of `in` must be at the very element that the store around it writes. */
static void check_load(void *ctx, tir_expr_ref e)
{
    alias_check *k = ctx;
    k->ok &= e->kind != TIR_ADDRESS; /* whoever gets it may read and write at any time */
    if (e->kind != TIR_LOAD || e->u.buffer != k->in)
        return;
    tir_expr_ref at = flat_index(k, k->in, e->n_args, e->args);
    k->ok = k->ok && k->index && at && tir_expr_equal(tir_cast(k->c, DT_I64, at), tir_cast(k->c, DT_I64, k->index));
}

static void check_exprs(void *ctx, tir_expr_ref e)
{
    tir_visit_expr(e, check_load, ctx);
}

static int by_coeff(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (x[0] > y[0]) - (x[0] < y[0]);
}

/* Whether different iterations of the enclosing loops write different elements: strides as in a mixed-radix number. */
static bool is_injective(alias_check *k, const placed_store *s)
{
    int64_t digits[MAX_LOOPS + 1][2]; /* stride, iterations */
    uint32_t n = 0;
    linear l;
    if (!linear_of(k->bounds, s->index, &l))
        return false;
    if (s->lanes > 1) {
        digits[n][0] = s->lane_stride;
        digits[n++][1] = (int64_t)s->lanes;
    }
    for (uint32_t i = 0; i < k->n_loops; i++) {
        int64_t extent, coeff = 0;
        if (!tir_is_int(k->loops[i]->extent, &extent))
            return false;
        for (uint32_t t = 0; t < l.len; t++)
            if (l.terms[t].n == 1 && l.terms[t].atoms[0]->kind == TIR_VAR &&
                l.terms[t].atoms[0]->u.var == k->loops[i]->var)
                coeff = llabs(l.terms[t].coeff);
        if (extent <= 1)
            continue;
        digits[n][0] = coeff;
        digits[n++][1] = extent;
    }
    qsort(digits, n, sizeof *digits, by_coeff);
    int64_t reach = 0; /* largest difference that smaller digits can make */
    for (uint32_t i = 0; i < n; i++) {
        int64_t step;
        if (digits[i][0] <= reach || !i64_mul(digits[i][0], digits[i][1] - 1, &step) || !i64_add(reach, step, &reach))
            return false;
    }
    return true;
}

static bool only_loop_vars(alias_check *k, tir_expr_ref index)
{
    linear l;
    if (!linear_of(k->bounds, index, &l))
        return false;
    for (uint32_t t = 0; t < l.len; t++) {
        bool found = false;
        for (uint32_t i = 0; i < k->n_loops; i++)
            found |= l.terms[t].n == 1 && l.terms[t].atoms[0]->kind == TIR_VAR &&
                     l.terms[t].atoms[0]->u.var == k->loops[i]->var;
        if (!found)
            return false;
    }
    return true;
}

static bool overlaps(tir_range a, tir_range b)
{
    bool known = a.known_min && a.known_max && b.known_min && b.known_max;
    return !known || (a.min <= b.max && b.min <= a.max);
}

static void add_store(alias_check *k)
{
    placed_store s = {.index = k->index, .lanes = 1};
    if (k->index->kind == TIR_RAMP) {
        s.lanes = k->index->type.lanes;
        s.index = k->index->args[0];
        k->ok = k->ok && tir_is_int(k->index->args[1], &s.lane_stride) && s.lane_stride > 0;
    }
    k->ok = k->ok && s.index->type.lanes == 1 && k->n_stores < MAX_STORES && only_loop_vars(k, s.index) &&
            is_injective(k, &s);
    if (!k->ok)
        return;
    s.span = tir_range_of(k->bounds, s.index);
    s.span.known_max = s.span.known_max && i64_add(s.span.max, s.lane_stride * ((int64_t)s.lanes - 1), &s.span.max);
    for (uint32_t i = 0; i < k->n_stores; i++)
        k->ok = k->ok && !overlaps(k->stores[i].span, s.span);
    k->stores[k->n_stores++] = s;
}

static void alias_stmt(alias_check *k, tir_stmt *s)
{
    if (!k->ok)
        return;
    if (s->kind == TIR_STORE) {
        bool to_out = s->buffer == k->out;
        k->ok = s->buffer != k->in;
        k->index = to_out ? flat_index(k, k->out, s->n_indices, s->indices) : NULL;
        tir_stmt_exprs(s, check_exprs, k);
        if (k->ok && to_out)
            add_store(k);
        k->index = NULL;
        return;
    }
    tir_stmt_exprs(s, check_exprs, k);
    bool loop = s->kind == TIR_FOR;
    if (loop && k->n_loops == MAX_LOOPS) {
        k->ok = false;
        return;
    }
    if (loop) {
        tir_bounds_push(k->bounds, s->var, s->min, s->extent);
        k->loops[k->n_loops++] = s;
    }
    if (s->body)
        alias_stmt(k, s->body);
    if (s->orelse)
        alias_stmt(k, s->orelse);
    for (uint32_t i = 0; i < s->n_stmts; i++)
        alias_stmt(k, s->stmts[i]);
    if (loop) {
        tir_bounds_pop(k->bounds);
        k->n_loops--;
    }
}

bool tir_can_alias(compiler *c, const tir_func *f, uint32_t in, uint32_t out)
{
    alias_check k = {.c = c, .in = f->params[in], .out = f->params[out], .ok = true};
    if (k.in == k.out || dtype_bytes(k.in->dt) != dtype_bytes(k.out->dt))
        return false;
    k.bounds = tir_bounds_new(c);
    alias_stmt(&k, f->body);
    return k.ok;
}

/* --- parallelism and scratch --- */

typedef struct parallel_scan {
    const tir_func *f;
    tir_bounds *bounds; /* what was asserted before the loop */
    tir_stmt *loop; /* the outermost parallel loop that encloses the stores seen so far */
    tir_stmt *inside;
    bool outside; /* a store that no parallel loop encloses, or another one */
} parallel_scan;

static bool is_shared(const tir_func *f, const tir_buffer *b)
{
    (void)f;
    return b->scope == SCOPE_GLOBAL;
}

static void scan_parallel(parallel_scan *p, tir_stmt *s)
{
    bool enters = s->kind == TIR_FOR && s->for_kind == FOR_PARALLEL && !p->inside;
    if (enters)
        p->inside = s;
    bool effect = s->kind == TIR_EVALUATE || (s->kind == TIR_STORE && is_shared(p->f, s->buffer));
    if (effect) {
        p->outside |= !p->inside || (p->loop && p->loop != p->inside);
        p->loop = p->inside;
    }
    if (s->kind == TIR_ASSERT && !p->inside)
        bounds_push_cond(p->bounds, s->cond, true);
    if (s->body)
        scan_parallel(p, s->body);
    if (s->orelse)
        scan_parallel(p, s->orelse);
    for (uint32_t i = 0; i < s->n_stmts; i++)
        scan_parallel(p, s->stmts[i]);
    if (enters)
        p->inside = NULL;
}

int64_t tir_parallel_extent(compiler *c, const tir_func *f)
{
    parallel_scan p = {.f = f, .bounds = tir_bounds_new(c)};
    scan_parallel(&p, f->body);
    if (!p.loop || p.outside)
        return 1;
    tir_range r = tir_range_of(p.bounds, p.loop->extent);
    return r.known_max && r.max > 0 ? r.max : 1;
}

typedef struct scratch_scan {
    compiler *c;
    VEC(tir_scratch) found;
    uint32_t depth; /* parallel loops around */
} scratch_scan;

static void scan_scratch(scratch_scan *k, tir_stmt *s)
{
    bool parallel = s->kind == TIR_FOR && s->for_kind == FOR_PARALLEL;
    if (s->kind == TIR_ALLOCATE && s->buffer->scope == SCOPE_GLOBAL)
        vec_push(&k->c->mem, &k->found, (tir_scratch){s->buffer, k->depth > 0});
    k->depth += parallel;
    if (s->body)
        scan_scratch(k, s->body);
    if (s->orelse)
        scan_scratch(k, s->orelse);
    for (uint32_t i = 0; i < s->n_stmts; i++)
        scan_scratch(k, s->stmts[i]);
    k->depth -= parallel;
}

uint32_t tir_find_scratch(compiler *c, const tir_func *f, const tir_scratch **out)
{
    scratch_scan k = {.c = c};
    scan_scratch(&k, f->body);
    *out = k.found.data;
    return k.found.len;
}

/* --- what innermost loops test --- */

static void find_value(void *ctx, tir_expr_ref e)
{
    *(bool *)ctx |= e->kind == TIR_LOAD || e->kind == TIR_EXTERN || dtype_is_float(e->type.dt);
}

static bool on_indices(tir_expr_ref cond)
{
    bool values = false;
    tir_visit_expr(cond, find_value, &values);
    return !values && cond->kind != TIR_INT;
}

static void count_select(void *ctx, tir_expr_ref e)
{
    *(uint32_t *)ctx += e->kind == TIR_SELECT && on_indices(e->args[0]);
}

static void count_if(void *ctx, tir_stmt *s)
{
    *(uint32_t *)ctx += s->kind == TIR_IF && on_indices(s->cond);
}

static void find_loop(void *ctx, tir_stmt *s)
{
    *(bool *)ctx |= s->kind == TIR_FOR;
}

static void count_in_loop(void *ctx, tir_stmt *s)
{
    bool outer = false;
    if (s->kind != TIR_FOR)
        return;
    tir_visit_stmt(s->body, find_loop, NULL, &outer);
    if (!outer)
        tir_visit_stmt(s->body, count_if, count_select, ctx);
}

uint32_t tir_count_guards(const tir_func *f)
{
    uint32_t n = 0;
    tir_visit_stmt(f->body, count_in_loop, NULL, &n);
    return n;
}
