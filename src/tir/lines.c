/* SPDX-License-Identifier: Apache-2.0 */
/* Which lines of its operands a kernel reads and writes in each iteration of its loop over lines, for chains
 * (tir/chain.h). The loop is found, then looked at iteration by iteration; what lies inside is an interval of lines for
 * every access. */
#include "tir/build.h"
#include "tir/chain.h"
#include "tir/linear.h"
#include "tir/node.h"
#include "tir/walk.h"

#define MOST_LINES 4096 /* more are no images on a small processor */
#define MOST_RANK  8u   /* of what kernels hand to each other */

typedef struct finder {
    compiler *c;
    arena tmp;
    const tir_func *f;
    const bool *flows;
    tir_bounds *bounds;
    tir_lines *out;
    int64_t *lo, *hi; /* [parameter * MOST_RANK + dimension]: what the iteration at hand touches */
    bool known;
    const char *why;
} finder;

static uint32_t param_of(const finder *k, const tir_buffer *b)
{
    uint32_t i = 0;
    while (i < k->f->n_params && k->f->params[i] != b)
        i++;
    return i;
}

static bool is_flowing(const finder *k, const tir_buffer *b)
{
    uint32_t p = b ? param_of(k, b) : k->f->n_params;
    return p < k->f->n_params && k->flows[p];
}

/* --- the loop --- */

typedef struct search {
    const finder *k;
    bool reads;
} search;

static void look_expr(void *ctx, tir_expr_ref e)
{
    search *x = ctx;
    uint32_t p = tir_is_access(e) ? param_of(x->k, e->u.buffer) : x->k->f->n_params;
    x->reads |= p < x->k->f->n_inputs && x->k->flows[p];
}

static bool reads_lines(const finder *k, tir_stmt *s)
{
    search x = {k, false};
    tir_visit_stmt(s, NULL, look_expr, &x);
    return x.reads;
}

/* The outermost loop that reads operands; NULL: there is none, or there are two. */
static tir_stmt *find_loop(const finder *k, tir_stmt *s)
{
    tir_stmt *only = NULL;
    switch (s->kind) {
    case TIR_FOR: return s;
    case TIR_ALLOCATE:
    case TIR_ATTR: return find_loop(k, s->body);
    case TIR_SEQ:
        for (uint32_t i = 0; i < s->n_stmts; i++) {
            if (!reads_lines(k, s->stmts[i]))
                continue;
            if (only)
                return NULL;
            only = s->stmts[i];
        }
        return only ? find_loop(k, only) : NULL;
    case TIR_IF:
    case TIR_LET:
    case TIR_STORE:
    case TIR_EVALUATE:
    case TIR_ASSERT: break;
    }
    return NULL;
}

/* --- what one iteration touches --- */

static bool static_extent(const tir_buffer *b, uint32_t i, int64_t *out)
{
    return tir_is_int(b->shape[i], out);
}

static void touch(finder *k, const tir_buffer *b, uint32_t n, tir_expr_ref const *idx)
{
    uint32_t p = param_of(k, b);
    k->known &= n == b->rank && n <= MOST_RANK && !b->strides && !b->offset;
    for (uint32_t i = 0; i < n && k->known; i++) {
        int64_t *lo = &k->lo[p * MOST_RANK + i], *hi = &k->hi[p * MOST_RANK + i], extent = 0;
        tir_range r = tir_range_of(k->bounds, tir_simplify(k->bounds, idx[i]));
        k->known &= static_extent(b, i, &extent);
        int64_t a = r.known_min && r.min > 0 ? r.min : 0, z = r.known_max && r.max < extent ? r.max : extent - 1;
        if (z < a) /* never there */
            continue;
        *lo = a < *lo ? a : *lo;
        *hi = z > *hi ? z : *hi;
    }
}

static void touch_expr(finder *k, tir_expr_ref e)
{
    tir_expr_ref cond = e->kind == TIR_SELECT ? tir_simplify(k->bounds, e->args[0]) : NULL;
    if (tir_is_access(e) && is_flowing(k, e->u.buffer)) {
        k->known &= e->kind == TIR_LOAD;
        touch(k, e->u.buffer, e->n_args, e->args);
    }
    for (uint32_t i = 0; i < e->n_args; i++) {
        if (cond && i > 0 && tir_is_const(cond, i == 1 ? 0 : 1))
            continue;
        if (cond && i > 0)
            bounds_push_cond(k->bounds, cond, i == 1);
        touch_expr(k, e->args[i]);
        if (cond && i > 0)
            tir_bounds_pop(k->bounds);
    }
}

static void touch_exprs(void *ctx, tir_expr_ref e)
{
    touch_expr(ctx, e);
}

static void touch_stmt(finder *k, tir_stmt *s);

static void touch_branch(finder *k, tir_stmt *s, tir_expr_ref cond, bool holds)
{
    if (!s || tir_is_const(cond, holds ? 0 : 1))
        return;
    bounds_push_cond(k->bounds, cond, holds);
    touch_stmt(k, s);
    tir_bounds_pop(k->bounds);
}

static void touch_stmt(finder *k, tir_stmt *s)
{
    if (!k->known)
        return;
    tir_stmt_exprs(s, touch_exprs, k);
    if (s->kind == TIR_STORE && is_flowing(k, s->buffer))
        touch(k, s->buffer, s->n_indices, s->indices);
    if (s->kind == TIR_IF) {
        tir_expr_ref cond = tir_simplify(k->bounds, s->cond);
        touch_branch(k, s->body, cond, true);
        touch_branch(k, s->orelse, cond, false);
        return;
    }
    if (s->kind == TIR_FOR)
        tir_bounds_push(k->bounds, s->var, s->min, s->extent);
    if (s->kind == TIR_LET)
        bounds_push_range(k->bounds, s->var, tir_range_of(k->bounds, s->value), true);
    if (s->body)
        touch_stmt(k, s->body);
    if (s->kind == TIR_FOR || s->kind == TIR_LET)
        tir_bounds_pop(k->bounds);
    for (uint32_t i = 0; i < s->n_stmts; i++)
        touch_stmt(k, s->stmts[i]);
}

/* --- lines --- */

/* The intervals of every iteration, [line][parameter][dimension]. */
static bool look_at_lines(finder *k, int64_t **lo, int64_t **hi)
{
    const size_t each = (size_t)k->f->n_params * MOST_RANK;
    *lo = arena_array(&k->tmp, int64_t, each * (size_t)k->out->n);
    *hi = arena_array(&k->tmp, int64_t, each * (size_t)k->out->n);
    for (int64_t y = 0; y < k->out->n && k->known; y++) {
        k->lo = *lo + (size_t)y * each;
        k->hi = *hi + (size_t)y * each;
        for (size_t i = 0; i < each; i++) {
            k->lo[i] = INT64_MAX;
            k->hi[i] = -1;
        }
        bounds_push_range(k->bounds, k->out->loop->var, bounds_known(y, y), false);
        touch_stmt(k, k->out->loop->body);
        tir_bounds_pop(k->bounds);
    }
    return k->known;
}

/* The one dimension of parameter p whose interval is not the same in all iterations. */
static bool find_axis(finder *k, uint32_t p, const int64_t *lo, const int64_t *hi)
{
    const size_t each = (size_t)k->f->n_params * MOST_RANK;
    int32_t axis = LINES_NO_AXIS;
    for (uint32_t d = 0; d < k->f->params[p]->rank; d++) {
        const size_t at = (size_t)p * MOST_RANK + d;
        bool moves = false;
        int64_t a = 0, z = -1; /* of an iteration that touches it at all */
        for (int64_t y = 0; y < k->out->n; y++) {
            const int64_t from = lo[(size_t)y * each + at], to = hi[(size_t)y * each + at];
            moves |= to >= from && z >= a && (from != a || to != z);
            a = to >= from ? from : a;
            z = to >= from ? to : z;
        }
        if (!moves)
            continue;
        if (axis != LINES_NO_AXIS)
            return false;
        axis = (int32_t)d;
    }
    k->out->axis[p] = axis;
    for (int64_t y = 0; y < k->out->n && axis != LINES_NO_AXIS; y++) {
        const size_t at = (size_t)y * each + (size_t)p * MOST_RANK + (size_t)axis;
        const bool any = hi[at] >= lo[at];
        k->out->from[p * k->out->n + y] = any ? lo[at] : 0;
        k->out->to[p * k->out->n + y] = any ? hi[at] : -1;
    }
    return true;
}

typedef struct store_count {
    const tir_buffer *b;
    uint32_t n;
} store_count;

static void count_store(void *ctx, tir_stmt *s)
{
    store_count *x = ctx;
    x->n += s->kind == TIR_STORE && s->buffer == x->b;
}

static uint32_t stores_of(tir_stmt *s, const tir_buffer *b)
{
    store_count x = {b, 0};
    tir_visit_stmt(s, count_store, NULL, &x);
    return x.n;
}

/* Operands move forwards; of a result with lines, iteration y makes line y, and nothing is made outside. */
static bool in_order(finder *k, uint32_t p)
{
    const tir_lines *l = k->out;
    const bool result = p >= k->f->n_inputs;
    int64_t extent = 0, last = -1;
    if (l->axis[p] == LINES_NO_AXIS)
        return true;
    if (!static_extent(k->f->params[p], (uint32_t)l->axis[p], &extent) || (result && extent != l->n) ||
        tir_buffer_count(k->f->params[p]) == extent || /* single elements */
        (result && stores_of(l->loop, k->f->params[p]) != stores_of(k->f->body, k->f->params[p])))
        return false;
    for (int64_t y = 0; y < l->n; y++) {
        int64_t from = l->from[p * l->n + y], to = l->to[p * l->n + y];
        if (result ? from != y || to != y : to >= from && to < last)
            return false;
        last = to >= from ? to : last;
    }
    return true;
}

static bool fail(finder *k, const char *why)
{
    k->why = why;
    return false;
}

static bool find(finder *k)
{
    int64_t *lo, *hi;
    tir_lines *l = k->out;
    tir_stmt *loop = find_loop(k, k->f->body);
    if (!loop || !tir_is_const(loop->min, 0) || !tir_is_int(loop->extent, &l->n) ||
        (loop->for_kind != FOR_SERIAL && loop->for_kind != FOR_PARALLEL) || k->f->n_symbols > 0)
        return fail(k, "no single loop reads its operands");
    if (l->n < 2 || l->n > MOST_LINES)
        return fail(k, "it has one line, or very many");
    for (uint32_t p = 0; p < k->f->n_params; p++)
        if (k->flows[p] && k->f->params[p]->rank > MOST_RANK)
            return fail(k, "a value has very many dimensions");
    l->loop = loop;
    l->axis = arena_array(&k->c->mem, int32_t, k->f->n_params);
    l->from = arena_array(&k->c->mem, int64_t, k->f->n_params * (size_t)l->n);
    l->to = arena_array(&k->c->mem, int64_t, k->f->n_params * (size_t)l->n);
    if (!look_at_lines(k, &lo, &hi))
        return fail(k, "it is not known which lines it reads");
    for (uint32_t p = 0; p < k->f->n_params; p++) {
        l->axis[p] = LINES_NO_AXIS;
        if (k->flows[p] && (!find_axis(k, p, lo, hi) || !in_order(k, p)))
            return fail(k, "it does not go through its lines in order");
    }
    return true;
}

bool tir_find_lines(compiler *c, tir_func *f, const bool *flows, tir_lines *out, const char **out_why)
{
    tir_func *simple = arena_new(&c->mem, tir_func);
    *simple = *f;
    simple->body = tir_simplify_stmt(c, f->body);
    *out = (tir_lines){.f = simple};
    finder k = {.c = c, .f = simple, .flows = flows, .bounds = tir_bounds_new(c), .out = out, .known = true};
    arena_init(&k.tmp, &c->mem);
    bool ok = find(&k);
    arena_free(&k.tmp);
    *out_why = k.why;
    return ok;
}
