/* SPDX-License-Identifier: Apache-2.0 */
/* expand-math: functions of float32 become arithmetic (MATH_FUNCTIONS): a range reduction, a polynomial, a scale by
 * bits; sin, cos and tan do where they are in lanes. The same operations in the same order for any number of lanes, so
 * results depend neither on the vector width nor on the C library. Errors against exact values stay below 1.1 (exp,
 * decay), 1.8 (expm1), 1.0 (log), 1.3 (log1p), 1.0 (sin, cos), 2.0 (tan), 4.7 (erf), 1.6 (atan), 4.5 (tanh),
 * 1.9 (sinh), 1.8 (asin), 1.3 (acos), 2.2 (asinh), 2.4 (cosh), 2.6 (acosh, atanh) units of the last place, with and
 * without fused multiply-add (test_math.c, test/py/functions.py). Infinities, NaN and subnormal results are those of
 * the C library.
 *
 * Every step is named by a let in front of the statement. A call behind a condition whose argument loads stays as it
 * is, unless the statement loads the same without the condition: the load must not happen when that does not hold. */
#include "tir/build.h"
#include "tir/map.h"
#include "tir/node.h"
#include "tir/pass.h"
#include "tir/pass/math_functions.h"
#include "tir/walk.h"
#include "type/target.h"

typedef struct function {
    tir_op op;
    bool lanes_only;
    tir_expr_ref (*expand)(expander *x, tir_expr_ref a);
} function;

static const function functions[] = {
#define X(op, name, lanes_only) {op, lanes_only, math_##name},
    MATH_FUNCTIONS(X)
#undef X
};

static const function *function_of(tir_op op)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (functions[i].op == op)
            return &functions[i];
    return NULL;
}

bool tir_expands_math(tir_op op, uint16_t lanes)
{
    const function *f = function_of(op);
    return f && (lanes > 1 || !f->lanes_only);
}

bool tir_widens_math(tir_op op)
{
    const function *f = function_of(op);
    return f && f->lanes_only;
}

static bool is_expanded(tir_expr_ref e)
{
    return e->kind == TIR_CALL && e->type.dt == DT_F32 && tir_expands_math(e->op, e->type.lanes);
}

static void look_for_call(void *ctx, tir_expr_ref e)
{
    *(bool *)ctx |= is_expanded(e);
}

static bool has(tir_expr_ref e, void (*look)(void *ctx, tir_expr_ref e))
{
    bool found = false;
    tir_visit_expr(e, look, &found);
    return found;
}

static bool decides(tir_expr_ref e)
{
    return e->kind == TIR_SELECT || (e->kind == TIR_BINOP && (e->op == TIR_AND || e->op == TIR_OR));
}

#define MOST_ARGS  3
#define MOST_LOADS 16 /* that are looked at */

static void note_loads(expander *x, tir_expr_ref e)
{
    if (x->loads.len == MOST_LOADS || tir_map_get(&x->seen, e))
        return;
    tir_map_put(&x->seen, e, e);
    if (e->kind == TIR_LOAD)
        vec_push(&x->c->mem, &x->loads, e);
    for (uint32_t i = 0; i < e->n_args && (i == 0 || !decides(e)); i++)
        note_loads(x, e->args[i]);
}

typedef struct load_search {
    const expander *x;
    bool found; /* a load that may not happen */
} load_search;

static void look_for_load(void *ctx, tir_expr_ref e)
{
    load_search *l = ctx;
    bool known = e->kind != TIR_LOAD;
    for (uint32_t i = 0; i < l->x->loads.len && !known; i++)
        known = tir_expr_equal(l->x->loads.data[i], e);
    l->found |= !known;
}

static bool may_load(const expander *x, tir_expr_ref e)
{
    load_search l = {.x = x};
    tir_visit_expr(e, look_for_load, &l);
    return l.found;
}

static bool is_one(tir_expr_ref e)
{
    e = e->kind == TIR_BROADCAST ? e->args[0] : e;
    return e->kind == TIR_FLOAT && e->u.f == 1;
}

static bool is_exp(tir_expr_ref e)
{
    return e->kind == TIR_CALL && e->op == TIR_EXP && is_expanded(e);
}

/* a, if e is 1 / (1 + exp(a)) or 1 / (exp(a) + 1) and exp(a) is not known already. */
static tir_expr_ref exp_below_1(const expander *x, tir_expr_ref e)
{
    if (!tir_is_binary(e, TIR_DIV) || !is_one(e->args[0]) || !tir_is_binary(e->args[1], TIR_ADD))
        return NULL;
    for (uint32_t i = 0; i < 2; i++) {
        tir_expr_ref power = e->args[1]->args[i];
        if (is_exp(power) && is_one(e->args[1]->args[1 - i]) && !tir_map_get(&x->done, power))
            return power->args[0];
    }
    return NULL;
}

/* `maybe`: evaluated only under a condition. */
static tir_expr_ref expand(expander *x, tir_expr_ref e, bool maybe)
{
    tir_expr_ref args[MOST_ARGS];
    if (e->n_args == 0 || e->n_args > MOST_ARGS || !has(e, look_for_call))
        return e;
    if (maybe && may_load(x, e))
        return e;
    tir_expr_ref known = tir_map_get(&x->done, e);
    if (known)
        return known;
    tir_expr_ref out, below = exp_below_1(x, e);
    if (below) {
        out = math_one_by_1_and_exp(x, expand(x, below, maybe));
    } else {
        for (uint32_t i = 0; i < e->n_args; i++)
            args[i] = expand(x, e->args[i], maybe || (decides(e) && i > 0));
        out = tir_node_rebuild(x->c, e, args);
        if (is_expanded(out))
            out = function_of(out->op)->expand(x, out->args[0]);
    }
    tir_map_put(&x->done, e, out);
    return out;
}

/* The value of the statement; in x the names that it uses. */
static tir_expr_ref expand_value(compiler *c, const tir_func *f, tir_stmt *s, bool near, expander *x)
{
    const target *t = f->target ? f->target : target_default();
    *x = (expander){.c = c,
                    .scales = t->vector_bytes == 4 * SCALED_LANES && (t->features & TARGET_MADD) != 0,
                    .near = near};
    tir_map_init(&x->done, &c->mem);
    tir_map_init(&x->seen, &c->mem);
    note_loads(x, s->value);
    return expand(x, s->value, false);
}

static tir_stmt *with_lets(const expander *x, tir_stmt *s)
{
    for (uint32_t i = x->lets.len; i-- > 0;)
        s = tir_let(x->c, x->lets.data[i]->var, x->lets.data[i]->value, s);
    return s;
}

static tir_stmt *store_value(compiler *c, tir_stmt *s, tir_expr_ref value)
{
    return tir_store(c, s->buffer, s->n_indices, s->indices, value);
}

static void look_for_wide(void *ctx, tir_expr_ref e)
{
    *(bool *)ctx |= is_expanded(e) && tir_widens_math(e->op);
}

/* Angles of a few turns, which nearly all are, are reduced in f32. Where a lane has another one, it is stored as it is
 * in f64, and its neighbors as without it. */
static tir_stmt *expand_angles(compiler *c, const tir_func *f, tir_stmt *s)
{
    expander x, far;
    tir_expr_ref value = expand_value(c, f, s, true, &x);
    tir_expr_ref wide = expand_value(c, f, s, false, &far);
    if (!x.far) /* a condition keeps the call as it is */
        return with_lets(&x, store_value(c, s, value));
    value = named(&x, "value", value);
    tir_expr_ref is_far = named(&x, "far", x.far);
    tir_expr_ref any = tir_call1(c, TIR_RARE, tir_call1(c, TIR_ANY_SIGN, is_far));
    if (value->type.dt == DT_F32)
        wide = where(&far, bin(&far, TIR_SHR, is_far, u32(&far, 31)), wide, value);
    else
        wide = tir_select(c, bin(&far, TIR_GE, is_far, u32(&far, 0x80000000)), wide, value);
    tir_stmt *slow = with_lets(&far, store_value(c, s, wide));
    return with_lets(&x, tir_if(c, any, slow, store_value(c, s, value)));
}

static tir_stmt *expand_stmt(tir_rewriter *r, tir_stmt *s)
{
    bool holds_value = s->kind == TIR_STORE || s->kind == TIR_LET;
    if (!holds_value || !has(s->value, look_for_call) || tir_has_extern(s->value))
        return s;
    if (s->kind == TIR_STORE && has(s->value, look_for_wide))
        return expand_angles(r->c, r->ctx, s);
    expander x;
    tir_expr_ref value = expand_value(r->c, r->ctx, s, false, &x);
    return with_lets(&x, s->kind == TIR_STORE ? store_value(r->c, s, value) : tir_let(r->c, s->var, value, s->body));
}

bool tir_pass_math(compiler *c, tir_func *f)
{
    tir_rewriter r = {.c = c, .ctx = f, .stmt = expand_stmt};
    f->body = tir_rewrite_stmt(&r, f->body);
    return true;
}
