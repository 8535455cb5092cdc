/* SPDX-License-Identifier: Apache-2.0 */
/* What the position of a loop means for the tensor: the values of its axes, and guards. Without a guard, too much would
 * be computed by a box that reaches beyond the tensor, or by a rolling window that already has a row. */
#include "te/stage.h"
#include "tir/instr.h"

#include <assert.h>

/* --- values of loops --- */

tir_expr_ref te_iter_value(te_lowering *lw, const te_stage *st, const te_iter *it)
{
    compiler *c = lw->c;
    if (te_leaf_position(st, it) < st->leaves.len)
        return tir_is_const(it->extent, 1) ? tir_i64(c, 0) : tir_varref(c, it->var);
    for (uint32_t i = st->relations.len; i-- > 0;) {
        const te_relation *r = &st->relations.data[i];
        if (r->kind == RELATION_SPLIT && r->whole == it)
            return tir_add(c, tir_mul(c, te_iter_value(lw, st, r->outer), r->inner->extent),
                           te_iter_value(lw, st, r->inner));
        if (r->kind == RELATION_FUSE && r->outer == it)
            return tir_floordiv(c, te_iter_value(lw, st, r->whole), r->inner->extent);
        if (r->kind == RELATION_FUSE && r->inner == it) {
            tir_expr_ref whole = te_iter_value(lw, st, r->whole);
            return tir_is_const(r->outer->extent, 1) ? whole : tir_floormod(c, whole, r->inner->extent);
        }
    }
    assert(false); /* a loop is a leaf, or a split or fuse took its place */
    return NULL;
}

void te_root_values(te_lowering *lw, te_stage *st, const tir_var ***out_vars, tir_expr_ref **out_values)
{
    compiler *c = lw->c;
    *out_vars = arena_array(&c->mem, const tir_var *, st->roots.len);
    *out_values = arena_array(&c->mem, tir_expr_ref, st->roots.len);
    for (uint32_t i = 0; i < st->roots.len; i++) {
        tir_expr_ref v = te_iter_value(lw, st, st->roots.data[i]);
        if (i < st->op.n_axes)
            v = tir_add(c, st->lo[i], v);
        (*out_vars)[i] = st->roots.data[i]->root->var;
        (*out_values)[i] = tir_simplify(lw->bounds, v);
    }
}

/* --- guards --- */

typedef struct safe_ctx {
    te_lowering *lw;
    te_stage *st;
    const tir_var *axis;
    uint32_t n_axis; /* its number */
    const tir_var *const *vars;
    tir_expr_ref const *values;
    bool safe;
} safe_ctx;

static bool computes_axis(te_lowering *lw, te_stage *st, uint32_t axis);

static void push_loops(compiler *c, tir_bounds *b, const te_stage *st, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        tir_bounds_push(b, st->leaves.data[i]->var, tir_i64(c, 0), st->leaves.data[i]->extent);
}

static void push_place(compiler *c, tir_bounds *b, const te_stage *st)
{
    if (st->attach != ATTACH_AT)
        return;
    push_place(c, b, st->at);
    push_loops(c, b, st->at, te_leaf_position(st->at, st->at_iter) + 1);
}

/* What holds where the stage computes an element. lw->bounds knows the loops of all stages, those that do not run
 * around this one too: a loop over n, in whose body n is at least 1, says nothing outside of it. */
static tir_bounds *bounds_in(te_lowering *lw, const te_stage *st)
{
    tir_bounds *b = te_new_bounds(lw);
    push_place(lw->c, b, st);
    push_loops(lw->c, b, st, st->leaves.len);
    return b;
}

static bool within(te_lowering *lw, tir_expr_ref at, tir_expr_ref extent)
{
    compiler *c = lw->c;
    tir_expr_ref low = tir_binary(c, TIR_GE, at, tir_i64(c, 0)), high = tir_binary(c, TIR_LT, at, extent);
    return tir_prove(lw->bounds, low) && tir_prove(lw->bounds, high);
}

/* Whether e has the axis in quotients by one number alone, *by. */
static bool in_blocks(tir_expr_ref e, const tir_var *axis, int64_t *by)
{
    int64_t n = 0;
    if (!tir_uses_var(e, axis))
        return true;
    if (tir_is_binary(e, TIR_FLOORDIV) && e->args[0]->kind == TIR_VAR && tir_is_int(e->args[1], &n)) {
        const bool same = n > 0 && (*by == 0 || *by == n);
        *by = n;
        return same;
    }
    for (uint32_t i = 0; i < e->n_args; i++)
        if (!in_blocks(e->args[i], axis, by))
            return false;
    return e->n_args > 0;
}

/* Whether an element of the tensor has the index, which no bounds are known of, as well: the first of the block of the
 * axis, where it has one for each block (a place in a list, te/op/steps.c). */
static bool is_of_block(const safe_ctx *x, tir_expr_ref index, uint32_t axis)
{
    compiler *c = x->lw->c;
    int64_t by = 0;
    if (!in_blocks(index, x->axis, &by))
        return false;
    tir_expr_ref n = tir_i64(c, by), first = tir_mul(c, tir_floordiv(c, x->values[axis], n), n);
    return within(x->lw, tir_simplify(x->lw->bounds, first), x->st->op.outputs[0]->shape[axis]);
}

static void check_load(void *ctx, tir_expr_ref e)
{
    safe_ctx *x = ctx;
    if (tir_is_call(e))
        x->safe = false;
    if (e->kind != TIR_LOAD)
        return;
    te_stage *p = te_stage_of(x->lw, e->u.buffer, NULL);
    bool boxed = p && p->attach == ATTACH_AT; /* a box is cut off where the tensor ends */
    for (uint32_t i = 0; i < e->n_args; i++) {
        if (!tir_uses_var(e->args[i], x->axis) || (!boxed && is_of_block(x, e->args[i], x->n_axis)))
            continue;
        tir_expr_ref at = tir_substitute(x->lw->c, e->args[i], x->st->roots.len, x->vars, x->values);
        if (boxed)
            at = tir_sub(x->lw->c, at, p->lo[i]);
        x->safe &= within(x->lw, tir_simplify(x->lw->bounds, at), boxed ? p->extent[i] : e->u.buffer->shape[i]);
        x->safe = x->safe && (!boxed || computes_axis(x->lw, p, i));
    }
}

/* A private buffer may hold elements that lie outside of the tensor, if computing them reads nothing outside of its
 * own. */
static bool overflow_is_safe(te_lowering *lw, te_stage *st, uint32_t axis, const tir_var *const *vars,
                             tir_expr_ref const *values)
{
    safe_ctx x = {lw, st, st->op.axes[axis]->var, axis, vars, values, true};
    for (uint32_t i = 0; i < st->op.n_outputs; i++)
        tir_visit_expr(st->op.body[i], check_load, &x);
    if (st->op.where)
        tir_visit_expr(st->op.where, check_load, &x);
    return x.safe;
}

/* Whether every element of the stage's box along the axis is computed: no guard leaves some out. */
static bool computes_axis(te_lowering *lw, te_stage *st, uint32_t axis)
{
    const tir_var **vars;
    tir_expr_ref *values;
    tir_bounds *all = lw->bounds;
    lw->bounds = bounds_in(lw, st);
    te_root_values(lw, st, &vars, &values);
    bool computed = st->whole[axis] || within(lw, values[axis], st->op.outputs[0]->shape[axis]) ||
                    overflow_is_safe(lw, st, axis, vars, values);
    lw->bounds = all;
    return computed;
}

typedef VEC(tir_expr_ref) guard_list;

static void add_guard(te_lowering *lw, guard_list *g, tir_op op, tir_expr_ref a, tir_expr_ref b)
{
    tir_expr_ref cond = tir_simplify(lw->bounds, tir_binary(lw->c, op, a, b));
    if (!tir_prove(lw->bounds, cond))
        vec_push(&lw->c->mem, g, cond);
}

tir_expr_ref te_roll_guard(te_lowering *lw, const te_stage *st)
{
    compiler *c = lw->c;
    tir_expr_ref first = tir_binary(c, TIR_EQ, tir_varref(c, st->at_iter->var), tir_i64(c, 0));
    tir_expr_ref at = tir_simplify(lw->bounds, te_iter_value(lw, st, st->roots.data[st->roll.axis]));
    tir_expr_ref is_new = tir_binary(c, TIR_GE, at, tir_i64(c, st->roll.length - st->roll.step));
    return tir_binary(c, TIR_OR, first, is_new);
}

tir_expr_ref const *te_stage_guards(te_lowering *lw, te_stage *st)
{
    compiler *c = lw->c;
    guard_list g = {0};
    const tir_var **vars;
    tir_expr_ref *values;
    tir_bounds *all = lw->bounds;
    lw->bounds = bounds_in(lw, st);
    for (uint32_t i = 0; i < st->relations.len; i++) {
        const te_relation *r = &st->relations.data[i];
        if (r->kind == RELATION_SPLIT)
            add_guard(lw, &g, TIR_LT, tir_simplify(lw->bounds, te_iter_value(lw, st, r->whole)), r->whole->extent);
    }
    te_root_values(lw, st, &vars, &values);
    for (uint32_t i = 0; i < st->op.n_axes; i++) {
        tir_expr_ref extent = st->whole[i] ? NULL : st->op.outputs[0]->shape[i];
        if (st->whole[i] || within(lw, values[i], extent) || overflow_is_safe(lw, st, i, vars, values))
            continue;
        add_guard(lw, &g, TIR_GE, values[i], tir_i64(c, 0));
        add_guard(lw, &g, TIR_LT, values[i], extent);
    }
    if (st->roll.length)
        vec_push(&c->mem, &g, te_roll_guard(lw, st));
    lw->bounds = all;
    vec_push(&c->mem, &g, NULL);
    return g.data;
}
