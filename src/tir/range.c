/* SPDX-License-Identifier: Apache-2.0 */
/* What is known about variables, and the interval of values that an expression can take. Ends that overflow or depend
 * on something unknown are unknown; nothing here is ever too narrow. */
#include "tir/build.h"
#include "tir/eval.h"
#include "tir/linear.h"
#include "tir/walk.h"

#include <assert.h>

static const tir_range unknown = {false, false, 0, 0};

/* --- scopes --- */

tir_bounds *tir_bounds_new(compiler *c)
{
    tir_bounds *b = arena_new(&c->mem, tir_bounds);
    b->c = c;
    tir_map_init(&b->simplified, &c->mem);
    tir_map_init(&b->ranges, &c->mem);
    return b;
}

static void forget(tir_bounds *b)
{
    tir_map_clear(&b->simplified);
    tir_map_clear(&b->ranges);
}

static void open_scope(tir_bounds *b)
{
    vec_push(&b->c->mem, &b->marks, (bounds_mark){b->vars.len, b->facts.len});
    forget(b);
}

void tir_bounds_pop(tir_bounds *b)
{
    assert(b->marks.len > 0);
    bounds_mark m = vec_pop(&b->marks);
    b->vars.len = m.vars;
    b->facts.len = m.facts;
    forget(b);
}

const bounds_entry *bounds_find(const tir_bounds *b, const tir_var *v)
{
    for (uint32_t i = b->vars.len; i > 0; i--)
        if (b->vars.data[i - 1].var == v)
            return &b->vars.data[i - 1];
    return NULL;
}

static void add_fact(tir_bounds *b, const linear *l)
{
    vec_push(&b->c->mem, &b->facts, arena_copy(&b->c->mem, l, sizeof *l, _Alignof(linear)));
}

static tir_range narrowed(tir_range r, tir_range by)
{
    if (by.known_min && (!r.known_min || by.min > r.min))
        r.min = by.min, r.known_min = true;
    if (by.known_max && (!r.known_max || by.max < r.max))
        r.max = by.max, r.known_max = true;
    return r;
}

/* l >= 0. With one variable it narrows the variable's range, else it is kept as it is. */
static void learn(tir_bounds *b, const linear *l)
{
    const linear_term *t = &l->terms[0];
    if (l->len != 1 || t->n != 1 || t->atoms[0]->kind != TIR_VAR || t->coeff == INT64_MIN || l->constant == INT64_MIN) {
        if (l->len)
            add_fact(b, l);
        return;
    }
    const tir_var *v = t->atoms[0]->u.var;
    const bounds_entry *old = bounds_find(b, v);
    tir_range by = unknown;
    if (t->coeff > 0) {
        by.known_min = true;
        by.min = -eval_floordiv(l->constant, t->coeff);
    } else {
        by.known_max = true;
        by.max = eval_floordiv(l->constant, -t->coeff);
    }
    bounds_entry e = {v, narrowed(old ? old->range : unknown, by), old && old->is_value};
    vec_push(&b->c->mem, &b->vars, e);
}

void bounds_push_range(tir_bounds *b, const tir_var *v, tir_range r, bool is_value)
{
    open_scope(b);
    vec_push(&b->c->mem, &b->vars, (bounds_entry){v, r, is_value});
}

/* A loop that runs has no factor of 0 in its extent: those that are not negative are 1 at least. */
static void learn_factors(tir_bounds *b, tir_expr_ref extent)
{
    linear l;
    if (!linear_of(b, extent, &l) || l.len != 1 || l.constant != 0 || l.terms[0].n < 2 || l.terms[0].coeff <= 0)
        return;
    for (uint32_t i = 0; i < l.terms[0].n; i++) {
        linear factor;
        tir_range r = tir_range_of(b, l.terms[0].atoms[i]);
        if (r.known_min && r.min >= 0 && linear_of(b, l.terms[0].atoms[i], &factor) &&
            i64_add(factor.constant, -1, &factor.constant))
            learn(b, &factor);
    }
}

void tir_bounds_push(tir_bounds *b, const tir_var *v, tir_expr_ref min, tir_expr_ref extent)
{
    tir_range lo = tir_range_of(b, min), n = tir_range_of(b, extent), r = unknown;
    r.known_min = lo.known_min;
    r.min = lo.min;
    r.known_max = lo.known_max && n.known_max && i64_add(lo.max, n.max, &r.max) && r.max != INT64_MIN;
    r.max = r.known_max ? r.max - 1 : 0;
    bounds_push_range(b, v, r, false);
    if (extent->kind == TIR_INT && min->kind == TIR_INT)
        return;
    linear upper, lower, x; /* min + extent - 1 - v >= 0, v - min >= 0 */
    tir_expr_ref end = tir_add(b->c, min, extent), var = tir_varref(b->c, v);
    if (linear_diff(b, end, var, &upper) && i64_add(upper.constant, -1, &upper.constant))
        add_fact(b, &upper);
    if (min->kind != TIR_INT && linear_of(b, var, &lower) && linear_of(b, min, &x) && linear_add(b, &lower, &x, -1))
        add_fact(b, &lower);
    learn_factors(b, extent);
}

static void learn_less(tir_bounds *b, tir_expr_ref x, tir_expr_ref y, int64_t slack)
{
    linear l; /* y - x - slack >= 0 */
    if (linear_diff(b, y, x, &l) && i64_add(l.constant, -slack, &l.constant))
        learn(b, &l);
}

static void assume(tir_bounds *b, tir_expr_ref e)
{
    if (e->kind != TIR_BINOP)
        return;
    if (e->op == TIR_AND) {
        assume(b, e->args[0]);
        assume(b, e->args[1]);
        return;
    }
    if (!tir_op_is_compare(e->op) || !bounds_is_index_type(e->args[0]->type) || !bounds_is_exact(b, e->args[0]) ||
        !bounds_is_exact(b, e->args[1]))
        return;
    if (e->op == TIR_LT || e->op == TIR_LE || e->op == TIR_EQ)
        learn_less(b, e->args[0], e->args[1], e->op == TIR_LT);
    if (e->op == TIR_GT || e->op == TIR_GE || e->op == TIR_EQ)
        learn_less(b, e->args[1], e->args[0], e->op == TIR_GT);
}

static void assume_not(tir_bounds *b, tir_expr_ref e)
{
    bool is_or = tir_is_binary(e, TIR_OR);
    if (is_or) {
        assume_not(b, e->args[0]);
        assume_not(b, e->args[1]);
    } else {
        assume(b, tir_not(b->c, e));
    }
}

void bounds_push_cond(tir_bounds *b, tir_expr_ref cond, bool holds)
{
    open_scope(b);
    if (cond->type.lanes > 1)
        return;
    if (holds)
        assume(b, cond);
    else
        assume_not(b, cond);
}

/* --- intervals --- */

static tir_range type_range(dtype dt)
{
    if (dtype_is_float(dt) || dtype_bits(dt) > 32 || dtype_bits(dt) == 0)
        return unknown;
    return bounds_known(dtype_min_int(dt), dtype_max_int(dt));
}

static tir_range add_ranges(tir_range a, tir_range b)
{
    tir_range r = unknown;
    r.known_min = a.known_min && b.known_min && i64_add(a.min, b.min, &r.min);
    r.known_max = a.known_max && b.known_max && i64_add(a.max, b.max, &r.max);
    return r;
}

static bool is_point(tir_range r)
{
    return r.known_min && r.known_max && r.min == r.max;
}

static tir_range scale_range(tir_range a, int64_t k)
{
    tir_range r = unknown;
    bool lo = a.known_min && i64_mul(a.min, k, &r.min), hi = a.known_max && i64_mul(a.max, k, &r.max);
    if (k >= 0) {
        r.known_min = lo || k == 0;
        r.known_max = hi || k == 0;
        return k == 0 ? bounds_known(0, 0) : r;
    }
    return (tir_range){hi, lo, r.max, r.min};
}

static tir_range mul_ranges(tir_range a, tir_range b)
{
    int64_t p[4];
    if (is_point(b))
        return scale_range(a, b.min);
    if (is_point(a))
        return scale_range(b, a.min);
    bool finite = a.known_min && a.known_max && b.known_min && b.known_max;
    if (!finite) {
        bool positive = a.known_min && b.known_min && a.min >= 0 && b.min >= 0;
        tir_range r = {positive, false, 0, 0};
        return positive && i64_mul(a.min, b.min, &r.min) ? r : unknown;
    }
    if (!i64_mul(a.min, b.min, &p[0]) || !i64_mul(a.min, b.max, &p[1]) || !i64_mul(a.max, b.min, &p[2]) ||
        !i64_mul(a.max, b.max, &p[3]))
        return unknown;
    tir_range r = bounds_known(p[0], p[0]);
    for (int i = 1; i < 4; i++) {
        r.min = eval_imin(r.min, p[i]);
        r.max = eval_imax(r.max, p[i]);
    }
    return r;
}

static tir_range floordiv_range(tir_range a, tir_range b)
{
    if (!is_point(b) || b.min <= 0)
        return a.known_min && a.min >= 0 && b.known_min && b.min >= 0 ? (tir_range){true, a.known_max, 0, a.max}
                                                                      : unknown;
    return (tir_range){a.known_min, a.known_max, a.known_min ? eval_floordiv(a.min, b.min) : 0,
                       a.known_max ? eval_floordiv(a.max, b.min) : 0};
}

static tir_range floormod_range(tir_range a, tir_range b)
{
    if (is_point(b) && b.min > 0 && a.known_min && a.known_max &&
        eval_floordiv(a.min, b.min) == eval_floordiv(a.max, b.min))
        return bounds_known(eval_floormod(a.min, b.min), eval_floormod(a.max, b.min));
    if (!b.known_min || b.min < 0)
        return unknown;
    tir_range r = {true, b.known_max, 0, b.known_max ? eval_imax(b.max - 1, 0) : 0};
    if (a.known_min && a.min >= 0 && a.known_max) { /* never above the dividend */
        r.max = r.known_max ? eval_imin(r.max, a.max) : a.max;
        r.known_max = true;
    }
    return r;
}

static tir_range join(tir_range a, tir_range b)
{
    return (tir_range){a.known_min && b.known_min, a.known_max && b.known_max, eval_imin(a.min, b.min),
                       eval_imax(a.max, b.max)};
}

static tir_range min_range(tir_range a, tir_range b)
{
    tir_range r = {a.known_min && b.known_min, a.known_max || b.known_max, eval_imin(a.min, b.min), 0};
    r.max = a.known_max && b.known_max ? eval_imin(a.max, b.max) : a.known_max ? a.max : b.max;
    return r;
}

static tir_range max_range(tir_range a, tir_range b)
{
    tir_range r = {a.known_min || b.known_min, a.known_max && b.known_max, 0, eval_imax(a.max, b.max)};
    r.min = a.known_min && b.known_min ? eval_imax(a.min, b.min) : a.known_min ? a.min : b.min;
    return r;
}

/* Of one operation, in mathematical integers. */
static tir_range op_range(tir_bounds *b, tir_expr_ref e)
{
    tir_range x = tir_range_of(b, e->args[0]), y = tir_range_of(b, e->args[1]);
    if (e->op == TIR_ADD)
        return add_ranges(x, y);
    if (e->op == TIR_SUB)
        return add_ranges(x, scale_range(y, -1));
    if (e->op == TIR_MUL)
        return mul_ranges(x, y);
    if (e->op == TIR_FLOORDIV)
        return floordiv_range(x, y);
    if (e->op == TIR_FLOORMOD)
        return floormod_range(x, y);
    if (e->op == TIR_MIN)
        return min_range(x, y);
    if (e->op == TIR_MAX)
        return max_range(x, y);
    bool positive = x.known_min && x.min >= 0 && is_point(y) && y.min > 0; /* where '/' and '%' are the floor kind */
    if (e->op == TIR_DIV && positive)
        return floordiv_range(x, y);
    if (e->op == TIR_MOD && positive)
        return floormod_range(x, y);
    if (e->op == TIR_BITAND && x.known_min && x.min >= 0 && y.known_min && y.min >= 0)
        return (tir_range){true, x.known_max || y.known_max, 0,
                           x.known_max && y.known_max ? eval_imin(x.max, y.max)
                           : x.known_max              ? x.max
                                                      : y.max};
    return unknown;
}

static bool within(tir_range r, tir_range limits)
{
    return r.known_min && r.known_max && (!limits.known_min || r.min >= limits.min) &&
           (!limits.known_max || r.max <= limits.max);
}

static bool is_sum(tir_expr_ref e)
{
    return e->kind == TIR_BINOP && (e->op == TIR_ADD || e->op == TIR_SUB || e->op == TIR_MUL);
}

static bool is_wrapping(tir_expr_ref e)
{
    return is_sum(e) || (e->kind == TIR_BINOP && (e->op == TIR_DIV || e->op == TIR_FLOORDIV));
}

/* No loads, calls or casts: written to address something, so it does not overflow. */
static bool is_pure_index(const tir_bounds *b, tir_expr_ref e)
{
    if (e->kind == TIR_VAR) {
        const bounds_entry *known = bounds_find(b, e->u.var);
        return !known || !known->is_value;
    }
    if (e->kind == TIR_INT)
        return true;
    if (e->kind != TIR_BINOP)
        return false;
    return is_pure_index(b, e->args[0]) && is_pure_index(b, e->args[1]);
}

bool bounds_is_exact(tir_bounds *b, tir_expr_ref e)
{
    if (e->kind != TIR_BINOP || is_pure_index(b, e))
        return true;
    if (is_wrapping(e) && !within(op_range(b, e), type_range(e->type.dt)))
        return false;
    return bounds_is_exact(b, e->args[0]) && bounds_is_exact(b, e->args[1]);
}

static tir_range compute(tir_bounds *b, tir_expr_ref e)
{
    const bounds_entry *known;
    tir_range limits = type_range(e->type.dt), r;
    linear l;
    switch (e->kind) {
    case TIR_INT: return bounds_known(e->u.i, e->u.i);
    case TIR_VAR: known = bounds_find(b, e->u.var); return known ? narrowed(limits, known->range) : limits;
    case TIR_BINOP:
        if (tir_op_is_compare(e->op) || e->type.dt == DT_BOOL || e->type.dt == DT_U64)
            return limits;
        if (is_sum(e) && bounds_is_index_type(e->type) && bounds_is_exact(b, e) && linear_of(b, e, &l) &&
            !(l.len == 1 && l.terms[0].atoms[0] == e)) /* a product too large for the sum is its own atom */
            return narrowed(linear_range(b, &l), limits);
        r = op_range(b, e);
        if (is_wrapping(e) && !within(r, limits) && !is_pure_index(b, e))
            return limits;
        return narrowed(r, limits);
    case TIR_SELECT: return join(tir_range_of(b, e->args[1]), tir_range_of(b, e->args[2]));
    case TIR_CAST:
        if (dtype_is_float(e->args[0]->type.dt) || e->args[0]->type.dt == DT_U64 || e->type.dt == DT_U64)
            return limits;
        r = tir_range_of(b, e->args[0]);
        return within(r, limits) ? r : limits;
    case TIR_NOT:
    case TIR_FLOAT:
    case TIR_LOAD:
    case TIR_ADDRESS:
    case TIR_CALL:
    case TIR_EXTERN:
    case TIR_INSTR:
    case TIR_RAMP:
    case TIR_BROADCAST: return limits;
    }
    return unknown;
}

tir_range tir_range_of(tir_bounds *b, tir_expr_ref e)
{
    if (e->type.lanes > 1 || dtype_is_float(e->type.dt))
        return unknown;
    if (e->n_args == 0)
        return compute(b, e);
    const tir_range *known = tir_map_get(&b->ranges, e);
    if (known)
        return *known;
    tir_range r = compute(b, e);
    tir_map_put(&b->ranges, e, arena_copy(&b->c->mem, &r, sizeof r, _Alignof(tir_range)));
    return r;
}

tir_range linear_range(tir_bounds *b, const linear *l)
{
    tir_range sum = bounds_known(l->constant, l->constant);
    for (uint32_t i = 0; i < l->len; i++) {
        tir_range p = tir_range_of(b, l->terms[i].atoms[0]);
        for (uint32_t k = 1; k < l->terms[i].n; k++)
            p = mul_ranges(p, tir_range_of(b, l->terms[i].atoms[k]));
        sum = add_ranges(sum, scale_range(p, l->terms[i].coeff));
    }
    return sum;
}
