/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions of a nest as ranges of its loops, and ranges of integers that depend on few loops, found by counting. */
#include "tir/build.h"
#include "tir/eval.h"
#include "target/vta/pass/vta.h"
#include "tir/walk.h"

enum { MOST_VARS = 4, MOST_VALUES = 1 << 14 };

/* --- conditions --- */

static vta_range *range_of(vta_range *ranges, uint32_t n, linear *l, int64_t *out_coeff)
{
    vta_range *found = NULL;
    for (uint32_t i = 0; i < n; i++) {
        int64_t coeff;
        if (!vta_take_var(l, ranges[i].var, &coeff) || (coeff && found))
            return NULL;
        if (coeff) {
            found = &ranges[i];
            *out_coeff = coeff;
        }
    }
    return found;
}

/* low <= high - slack, where both differ by a multiple of one loop's variable: a bound of that loop. */
static bool add_bound(vta_pass *p, vta_range *ranges, uint32_t n, tir_expr_ref low, tir_expr_ref high, int64_t slack)
{
    linear l, negative = {0};
    int64_t coeff = 0;
    if (!linear_diff(p->bounds, tir_simplify(p->bounds, high), tir_simplify(p->bounds, low), &l))
        return false;
    l.constant -= slack; /* l >= 0 now */
    vta_range *r = range_of(ranges, n, &l, &coeff);
    if (!r || coeff == INT64_MIN)
        return false;
    dtype dt = r->var->type.dt;
    if (coeff < 0) { /* v <= floor(l / -coeff) */
        tir_expr_ref most = tir_floordiv(p->c, linear_build(p->bounds, dt, &l), tir_int(p->c, dt, -coeff));
        r->most = r->most ? tir_min(p->c, r->most, most) : most;
        return true;
    }
    if (coeff > 1) { /* v >= ceil(-l / coeff) */
        tir_expr_ref whole = tir_floordiv(p->c, linear_build(p->bounds, dt, &l), tir_int(p->c, dt, coeff));
        tir_expr_ref least = tir_sub(p->c, tir_int(p->c, dt, 0), whole);
        r->least = r->least ? tir_max(p->c, r->least, least) : least;
        return true;
    }
    if (!linear_add(p->bounds, &negative, &l, -1))
        return false;
    tir_expr_ref least = linear_build(p->bounds, dt, &negative);
    r->least = r->least ? tir_max(p->c, r->least, least) : least;
    return true;
}

static bool uses_loops(const vta_range *ranges, uint32_t n, tir_expr_ref e)
{
    for (uint32_t i = 0; i < n; i++)
        if (tir_uses_var(e, ranges[i].var))
            return true;
    return false;
}

bool vta_add_condition(vta_pass *p, vta_range *ranges, uint32_t n, tir_expr_ref cond, tir_expr_ref *out_rest)
{
    if (out_rest && !uses_loops(ranges, n, cond)) {
        *out_rest = tir_and(p->c, *out_rest, cond);
        return true;
    }
    if (cond->kind != TIR_BINOP)
        return false;
    tir_expr_ref a = cond->args[0], b = cond->args[1];
    switch ((int)cond->op) {
    case TIR_AND: return vta_add_condition(p, ranges, n, a, out_rest) && vta_add_condition(p, ranges, n, b, out_rest);
    case TIR_LT: return add_bound(p, ranges, n, a, b, 1);
    case TIR_LE: return add_bound(p, ranges, n, a, b, 0);
    case TIR_GT: return add_bound(p, ranges, n, b, a, 1);
    case TIR_GE: return add_bound(p, ranges, n, b, a, 0);
    case TIR_EQ: return add_bound(p, ranges, n, a, b, 0) && add_bound(p, ranges, n, b, a, 0);
    }
    return false;
}

/* --- counting --- */

bool vta_value(tir_expr_ref e, uint32_t n, const tir_var *const *vars, const int64_t *values, int64_t *out)
{
    int64_t a, b;
    switch ((int)e->kind) {
    case TIR_INT: *out = e->u.i; return true;
    case TIR_VAR:
        for (uint32_t i = n; i-- > 0;)
            if (vars[i] == e->u.var) {
                *out = values[i];
                return true;
            }
        return false;
    case TIR_BINOP:
        if (dtype_is_float(e->args[0]->type.dt) || !vta_value(e->args[0], n, vars, values, &a) ||
            !vta_value(e->args[1], n, vars, values, &b))
            return false;
        *out = tir_eval_int(e->args[0]->type.dt, e->op, a, b);
        return true;
    case TIR_CAST:
        if (!dtype_is_int(e->type.dt) || dtype_is_float(e->args[0]->type.dt) ||
            !vta_value(e->args[0], n, vars, values, &a))
            return false;
        *out = eval_wrap(e->type.dt, a);
        return true;
    case TIR_NOT:
        if (!vta_value(e->args[0], n, vars, values, &a))
            return false;
        *out = !a;
        return true;
    case TIR_SELECT:
        return vta_value(e->args[0], n, vars, values, &a) && vta_value(e->args[a ? 1 : 2], n, vars, values, out);
    }
    return false;
}

typedef struct var_list {
    const tir_var *vars[MOST_VARS];
    uint32_t n;
    bool full;
} var_list;

static void note_var(void *ctx, tir_expr_ref e)
{
    var_list *l = ctx;
    if (e->kind != TIR_VAR)
        return;
    for (uint32_t i = 0; i < l->n; i++)
        if (l->vars[i] == e->u.var)
            return;
    if (l->n == MOST_VARS)
        l->full = true;
    else
        l->vars[l->n++] = e->u.var;
}

bool vta_exact_range(vta_pass *p, tir_expr_ref e, int64_t *out_min, int64_t *out_max)
{
    var_list l = {.n = 0};
    int64_t first[MOST_VARS], last[MOST_VARS], at[MOST_VARS], all = 1, v;
    tir_visit_expr(e, note_var, &l);
    for (uint32_t i = 0; i < l.n; i++) {
        tir_range r = tir_range_of(p->bounds, tir_varref(p->c, l.vars[i]));
        if (l.full || !r.known_min || !r.known_max || r.max < r.min || r.max - r.min >= MOST_VALUES)
            return false;
        all *= r.max - r.min + 1;
        first[i] = at[i] = r.min;
        last[i] = r.max;
        if (all > MOST_VALUES)
            return false;
    }
    *out_min = INT64_MAX;
    *out_max = INT64_MIN;
    while (vta_value(e, l.n, l.vars, at, &v)) {
        *out_min = v < *out_min ? v : *out_min;
        *out_max = v > *out_max ? v : *out_max;
        uint32_t i = 0;
        for (; i < l.n && at[i] == last[i]; i++)
            at[i] = first[i];
        if (i == l.n)
            return true;
        at[i]++;
    }
    return false;
}
