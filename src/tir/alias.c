/* SPDX-License-Identifier: Apache-2.0 */
/* Whether an output may take the place of an input: each element is read where it is written, and nowhere later.
 * Extents may be symbols, which a function reads before its loops. */
#include "tir/build.h"
#include "tir/facts.h"
#include "tir/linear.h"
#include "tir/node.h"
#include "tir/walk.h"

#include <stdlib.h>
#include <string.h>

#define MAX_STORES 16u
#define MAX_LOOPS  64u

typedef struct placed_store {
    tir_expr_ref index; /* of the first lane */
    int64_t lane_stride;
    uint32_t lanes;
    tir_range span;     /* of all elements it writes */
    linear first, last; /* the same, in symbols */
    bool spanned;       /* these are known */
} placed_store;

typedef struct alias_check {
    compiler *c;
    tir_bounds *bounds;
    const tir_buffer *in, *out;
    tir_stmt *loops[MAX_LOOPS]; /* enclosing, outermost first */
    uint32_t n_loops;
    tir_map symbols; /* variables that stand before all loops */
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

/* --- indices as sums over the loops --- */

/* What one step of a loop adds to an index, and how many steps there are. */
typedef struct digit {
    linear stride, steps;
    uint32_t loop; /* MAX_LOOPS: the lanes */
} digit;

/* The loop whose variable e is; MAX_LOOPS: of none. */
static uint32_t loop_of(const alias_check *k, tir_expr_ref e)
{
    for (uint32_t i = 0; i < k->n_loops; i++)
        if (e->kind == TIR_VAR && e->u.var == k->loops[i]->var)
            return i;
    return MAX_LOOPS;
}

typedef struct symbol_check {
    const alias_check *k;
    bool ok;
} symbol_check;

static void check_symbol(void *ctx, tir_expr_ref e)
{
    symbol_check *s = ctx;
    bool foreign = e->kind == TIR_VAR && !tir_map_get(&s->k->symbols, e->u.var);
    s->ok &= !foreign && e->kind != TIR_LOAD && e->kind != TIR_EXTERN && e->kind != TIR_ADDRESS;
}

/* Whether e is the same in all loops. */
static bool is_symbolic(const alias_check *k, tir_expr_ref e)
{
    symbol_check s = {k, true};
    tir_visit_expr(e, check_symbol, &s);
    return s.ok;
}

static void add_digit(digit *digits, uint32_t *n, uint32_t loop, const linear_term *stride)
{
    digit *d = &digits[(*n)++];
    *d = (digit){.loop = loop, .stride = {.len = 1, .terms = {*stride}}};
    d->stride.terms[0].coeff = stride->coeff < 0 ? -stride->coeff : stride->coeff;
    if (stride->n == 0) {
        d->stride.constant = d->stride.terms[0].coeff;
        d->stride.len = 0;
    }
}

/* The index as digits of the loops and of the lanes, and what is left, `base`. Each term has one loop's variable at
 * most and symbols, and no loop is in two; false: it is something else. */
static bool take_apart(const alias_check *k, const placed_store *s, digit *digits, uint32_t *out_n, linear *base)
{
    linear l;
    uint32_t n = 0;
    *base = (linear){0};
    if (!linear_of(k->bounds, s->index, &l))
        return false;
    base->constant = l.constant;
    if (s->lanes > 1) {
        add_digit(digits, &n, MAX_LOOPS, &(linear_term){.coeff = s->lane_stride});
        digits[0].steps.constant = (int64_t)s->lanes;
    }
    for (uint32_t t = 0; t < l.len; t++) {
        linear_term stride = {.coeff = l.terms[t].coeff};
        uint32_t loop = MAX_LOOPS;
        for (uint32_t a = 0; a < l.terms[t].n; a++) {
            uint32_t of = loop_of(k, l.terms[t].atoms[a]);
            if (of == MAX_LOOPS ? !is_symbolic(k, l.terms[t].atoms[a]) : loop != MAX_LOOPS)
                return false;
            if (of == MAX_LOOPS)
                stride.atoms[stride.n++] = l.terms[t].atoms[a];
            else
                loop = of;
        }
        for (uint32_t i = 0; i < n && loop != MAX_LOOPS; i++)
            if (digits[i].loop == loop)
                return false;
        if (loop == MAX_LOOPS && !linear_add_term(k->bounds, base, &stride))
            return false;
        if (loop != MAX_LOOPS) {
            add_digit(digits, &n, loop, &stride);
            if (!linear_of(k->bounds, tir_simplify(k->bounds, k->loops[loop]->extent), &digits[n - 1].steps))
                return false;
        }
    }
    *out_n = n;
    return true;
}

/* Numbers first, then by how many symbols there are. */
static int by_stride(const void *a, const void *b)
{
    const linear *x = &((const digit *)a)->stride, *y = &((const digit *)b)->stride;
    uint32_t nx = x->len ? x->terms[0].n : 0, ny = y->len ? y->terms[0].n : 0;
    int64_t cx = x->len ? x->terms[0].coeff : x->constant, cy = y->len ? y->terms[0].coeff : y->constant;
    return nx != ny ? (nx > ny) - (nx < ny) : (cx > cy) - (cx < cy);
}

static bool is_at_least(alias_check *k, const linear *x, const linear *y, int64_t more)
{
    linear d = *x;
    if (!linear_add(k->bounds, &d, y, -1) || !i64_add(d.constant, -more, &d.constant))
        return false;
    if (linear_is_nonnegative(k->bounds, &d))
        return true;
    tir_expr_ref e = linear_build(k->bounds, DT_I64, &d);
    return e && tir_prove(k->bounds, tir_binary(k->c, TIR_GE, e, tir_i64(k->c, 0)));
}

/* x += stride * (steps - 1): as far as the digit goes. */
static bool add_reach(alias_check *k, const digit *d, linear *x)
{
    linear far, less = d->steps;
    return i64_add(less.constant, -1, &less.constant) && linear_mul(k->bounds, &d->stride, &less, &far) &&
           linear_add(k->bounds, x, &far, 1);
}

static bool loop_in(const digit *digits, uint32_t n, uint32_t loop)
{
    for (uint32_t i = 0; i < n; i++)
        if (digits[i].loop == loop)
            return true;
    return false;
}

/* Whether different iterations of the enclosing loops write different elements: strides as in a mixed-radix number. A
 * loop that is in no term writes one element again and again. */
static bool is_injective(alias_check *k, digit *digits, uint32_t n)
{
    linear reach = {0}; /* largest difference that smaller digits can make */
    uint32_t in_index = 0;
    int64_t steps = 0;
    for (uint32_t i = 0; i < n; i++)
        in_index += digits[i].loop != MAX_LOOPS;
    for (uint32_t i = 0; i < k->n_loops; i++)
        in_index += tir_is_int(k->loops[i]->extent, &steps) && steps <= 1 && !loop_in(digits, n, i);
    if (in_index != k->n_loops)
        return false;
    qsort(digits, n, sizeof *digits, by_stride);
    for (uint32_t i = 0; i < n; i++) {
        if (digits[i].steps.len == 0 && digits[i].steps.constant <= 1)
            continue;
        if (!is_at_least(k, &digits[i].stride, &reach, 1) || !add_reach(k, &digits[i], &reach))
            return false;
    }
    return true;
}

/* The first and the last element, where loops begin at 0 and no index falls. */
static bool find_span(alias_check *k, placed_store *s, const digit *digits, uint32_t n, const linear *base)
{
    linear l;
    s->first = s->last = *base;
    if (!linear_of(k->bounds, s->index, &l))
        return false;
    for (uint32_t t = 0; t < l.len; t++)
        if (l.terms[t].coeff < 0)
            return false;
    for (uint32_t i = 0; i < n; i++) {
        bool from_zero = digits[i].loop == MAX_LOOPS || tir_is_const(k->loops[digits[i].loop]->min, 0);
        if (!from_zero || !add_reach(k, &digits[i], &s->last))
            return false;
    }
    return true;
}

static bool overlaps(alias_check *k, const placed_store *a, const placed_store *b)
{
    bool known = a->span.known_min && a->span.known_max && b->span.known_min && b->span.known_max;
    if (known)
        return a->span.min <= b->span.max && b->span.min <= a->span.max;
    return !a->spanned || !b->spanned ||
           !(is_at_least(k, &b->first, &a->last, 1) || is_at_least(k, &a->first, &b->last, 1));
}

static void add_store(alias_check *k)
{
    placed_store s = {.index = k->index, .lanes = 1};
    digit digits[LINEAR_MAX_TERMS + 1];
    uint32_t n = 0;
    linear base;
    if (k->index->kind == TIR_RAMP) {
        s.lanes = k->index->type.lanes;
        s.index = k->index->args[0];
        k->ok = k->ok && tir_is_int(k->index->args[1], &s.lane_stride) && s.lane_stride > 0;
    }
    k->ok = k->ok && s.index->type.lanes == 1 && k->n_stores < MAX_STORES &&
            take_apart(k, &s, digits, &n, &base) && is_injective(k, digits, n);
    if (!k->ok)
        return;
    s.span = tir_range_of(k->bounds, s.index);
    s.span.known_max = s.span.known_max && i64_add(s.span.max, s.lane_stride * ((int64_t)s.lanes - 1), &s.span.max);
    s.spanned = find_span(k, &s, digits, n, &base);
    for (uint32_t i = 0; i < k->n_stores; i++)
        k->ok = k->ok && !overlaps(k, &k->stores[i], &s);
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
    if (s->kind == TIR_LET && k->n_loops == 0)
        tir_map_put(&k->symbols, s->var, s->var);
    if (s->kind == TIR_ASSERT && k->n_loops == 0)
        bounds_push_cond(k->bounds, s->cond, true);
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
    tir_map_init(&k.symbols, &c->mem);
    alias_stmt(&k, f->body);
    return k.ok;
}

