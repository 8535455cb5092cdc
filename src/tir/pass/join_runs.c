/* SPDX-License-Identifier: Apache-2.0 */
/* join-runs: a loop over the rows of a window in which dot_rows adds to the same sums becomes one call, lathe_dot_runs,
 * that gets where each run begins: compilers write such a loop out, or bring the sums to memory and back around each
 * run. Its arguments are those of lathe_dot_rows but for the data, then the starts. The weights of the rows stand one
 * behind the other. For processors with SMLAD, where the call is one loop of assembly. Calls of lathe_nibble_rows,
 * whose weights take half a byte each, become lathe_nibble_runs. */
#include "tir/build.h"
#include "tir/linear.h"
#include "tir/node.h"
#include "tir/pass.h"
#include "tir/walk.h"
#include "type/target.h"

#include <string.h>

#define MOST_RUNS 8

enum { OUT, DATA, WEIGHTS, PIXELS, CHANNELS, STEPS, N_ARGS = 9 };

static tir_expr_ref at_iteration(compiler *c, tir_expr_ref e, const tir_var *v, int64_t i)
{
    tir_expr_ref value = tir_int(c, v->type.dt, i);
    return tir_substitute(c, e, 1, &v, &value);
}

static bool is_nibbles(tir_expr_ref call)
{
    return strcmp(call->u.name, "lathe_nibble_rows") == 0;
}

static bool is_rows(tir_expr_ref call)
{
    return call->kind == TIR_EXTERN && call->n_args == N_ARGS &&
           (is_nibbles(call) || strcmp(call->u.name, "lathe_dot_rows") == 0);
}

/* From row to row, all weights of one. */
static bool weights_follow(compiler *c, tir_expr_ref call, const tir_var *v)
{
    tir_expr_ref w = call->args[WEIGHTS];
    int64_t rows, channels, steps;
    linear apart;
    if (w->kind != TIR_ADDRESS || w->n_args != 1 || !tir_is_int(call->args[CHANNELS], &channels) ||
        !tir_is_int(call->args[STEPS], &steps))
        return false;
    tir_bounds *b = tir_bounds_new(c);
    bool fixed = linear_diff(b, tir_simplify(b, at_iteration(c, w->args[0], v, 1)),
                             tir_simplify(b, at_iteration(c, w->args[0], v, 0)), &apart);
    rows = fixed && apart.len == 0 ? apart.constant : 0;
    return rows == (is_nibbles(call) ? 2 : 4) * channels * steps;
}

static tir_stmt *join(tir_rewriter *r, tir_stmt *s)
{
    compiler *c = r->c;
    int64_t n;
    if (s->kind != TIR_FOR || s->for_kind != FOR_SERIAL || !tir_is_const(s->min, 0) || !tir_is_int(s->extent, &n) ||
        n < 2 || n > MOST_RUNS || s->body->kind != TIR_EVALUATE)
        return s;
    tir_expr_ref call = s->body->value, args[N_ARGS - 1 + MOST_RUNS];
    if (!is_rows(call))
        return s;
    for (uint32_t i = 0; i < N_ARGS; i++)
        if (i != DATA && i != WEIGHTS && tir_uses_var(call->args[i], s->var))
            return s;
    if (!weights_follow(c, call, s->var))
        return s;
    uint32_t k = 0;
    for (uint32_t i = 0; i < N_ARGS; i++)
        if (i != DATA)
            args[k++] = i == WEIGHTS ? at_iteration(c, call->args[i], s->var, 0) : call->args[i];
    for (int64_t i = 0; i < n; i++)
        args[k++] = at_iteration(c, call->args[DATA], s->var, i);
    const char *name = is_nibbles(call) ? "lathe_nibble_runs" : "lathe_dot_runs";
    return tir_evaluate(c, tir_extern(c, name, call->type, k, args));
}

bool tir_pass_join_runs(compiler *c, tir_func *f)
{
    tir_rewriter r = {.c = c, .stmt = join};
    if (f->target && f->target->small && (f->target->features & TARGET_DSP) != 0)
        f->body = tir_rewrite_stmt(&r, f->body);
    return true;
}
