/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions in lanes of floats that are one of two numbers by how they compare: one instruction, where a minimum or a
 * maximum that is NaN when either is takes two. A choice by a comparison of what it chooses from; a bound that is a
 * number; and bounds of what is rounded to bytes, which is no NaN there (round.c). */
#include "tir/facts.h"
#include "tir/pass/select.h"
#include "tir/walk.h"

#include <math.h>

static bool is_lanes_of_floats(tir_expr_ref e)
{
    return e->type.lanes > 1 && (e->type.dt == DT_F32 || e->type.dt == DT_F64);
}

/* A constant that is no NaN, in all lanes. */
static bool is_number(tir_expr_ref e)
{
    e = e->kind == TIR_BROADCAST ? e->args[0] : e;
    return e->kind == TIR_FLOAT && !isnan(e->u.f);
}

static tir_expr_ref bounded_by_number(compiler *c, tir_expr_ref e)
{
    const bool second = is_number(e->args[1]);
    if (!is_lanes_of_floats(e) || (!second && !is_number(e->args[0])))
        return NULL;
    return tir_call(c, e->op == TIR_MAX ? TIR_AT_LEAST : TIR_AT_MOST, 2,
                    (tir_expr_ref[]){e->args[!second], e->args[second]});
}

/* select(a < b, a, b) and its like. */
static tir_expr_ref chosen(compiler *c, tir_expr_ref e)
{
    tir_expr_ref cond = e->args[0];
    if (!is_lanes_of_floats(e) || cond->type.lanes == 1 ||
        (!tir_is_binary(cond, TIR_LT) && !tir_is_binary(cond, TIR_GT)))
        return NULL;
    const bool same = tir_expr_equal(cond->args[0], e->args[1]) && tir_expr_equal(cond->args[1], e->args[2]),
               turned = tir_expr_equal(cond->args[0], e->args[2]) && tir_expr_equal(cond->args[1], e->args[1]);
    if (!same && !turned)
        return NULL;
    return tir_call(c, (cond->op == TIR_GT) == same ? TIR_ABOVE : TIR_BELOW, 2, e->args + 1);
}

/* e with `now` in the place of `old`. */
static tir_expr_ref replaced(compiler *c, tir_expr_ref e, tir_expr_ref old, tir_expr_ref now)
{
    if (e == old)
        return now;
    tir_expr_ref *args = NULL;
    for (uint32_t i = 0; i < e->n_args; i++) {
        tir_expr_ref a = replaced(c, e->args[i], old, now);
        if (a == e->args[i])
            continue;
        args = args ? args : arena_copy(&c->mem, e->args, e->n_args * sizeof *args, _Alignof(tir_expr_ref));
        args[i] = a;
    }
    return args ? tir_node_rebuild(c, e, args) : e;
}

static tir_expr_ref rounded(compiler *c, tir_expr_ref e)
{
    tir_expr_ref most = e->type.lanes > 1 ? tir_clamped_and_rounded(e) : NULL;
    if (!most || !is_lanes_of_floats(most))
        return NULL;
    tir_expr_ref least = tir_call(c, TIR_ABOVE, 2, most->args[0]->args);
    return replaced(c, e, most, tir_call(c, TIR_BELOW, 2, (tir_expr_ref[]){least, most->args[1]}));
}

static tir_expr_ref value(const tir_selector *x, tir_expr_ref e)
{
    if (e->kind == TIR_SELECT)
        return chosen(x->c, e);
    if (tir_is_binary(e, TIR_MIN) || tir_is_binary(e, TIR_MAX))
        return bounded_by_number(x->c, e);
    return tir_is_binary(e, TIR_SUB) || (e->kind == TIR_CALL && e->op == TIR_TO_BITS) ? rounded(x->c, e) : NULL;
}

static bool fits(const struct target *t)
{
    return t != NULL;
}

const tir_selection tir_selection_extremes = {.fits = fits, .expr = value};
