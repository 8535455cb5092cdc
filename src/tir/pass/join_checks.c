/* SPDX-License-Identifier: Apache-2.0 */
/* join-checks: a loop that asserts something of each element ends at the first one for which it is false, so C
 * compilers make no vectors of it. Where the processor has vectors, a flag gathers what all rounds say, and one
 * assertion stands behind the loop. All rounds read what they would read if all conditions held. */
#include "tir/build.h"
#include "tir/pass.h"
#include "tir/walk.h"
#include "type/target.h"

#define LEAST_ROUNDS 16

typedef struct condition {
    bool fits;
    dtype dt; /* of what is read: the flag has as many bits, so that lanes are as wide */
} condition;

static void find_load(void *ctx, tir_expr_ref e)
{
    *(bool *)ctx |= e->kind == TIR_LOAD;
}

/* Comparisons of integers of one type. An element whose place is read from memory may not be there where an earlier
 * condition is false. */
static void look(void *ctx, tir_expr_ref e)
{
    condition *x = ctx;
    const bool plain = e->kind == TIR_INT || e->kind == TIR_VAR || e->kind == TIR_BINOP || e->kind == TIR_NOT;
    x->fits &= plain || e->kind == TIR_LOAD;
    if (e->kind != TIR_LOAD)
        return;
    bool placed = false;
    for (uint32_t i = 0; i < e->n_args; i++)
        tir_visit_expr(e->args[i], find_load, &placed);
    x->fits &= !placed && (e->type.dt == DT_I32 || e->type.dt == DT_I64) && (x->dt == DT_NONE || x->dt == e->type.dt);
    x->dt = e->type.dt;
}

static tir_stmt *join(tir_rewriter *r, tir_stmt *s)
{
    compiler *c = r->c;
    const int64_t one = 1;
    int64_t rounds = LEAST_ROUNDS;
    condition x = {.fits = true, .dt = DT_NONE};
    if (s->kind != TIR_FOR || s->for_kind != FOR_SERIAL || s->body->kind != TIR_ASSERT)
        return s;
    (void)tir_is_int(s->extent, &rounds);
    tir_visit_expr(s->body->cond, look, &x);
    if (rounds < LEAST_ROUNDS || !x.fits || x.dt == DT_NONE)
        return s;
    const tir_buffer *flag = tir_buffer_static(c, "is_wrong", x.dt, 1, &one, SCOPE_GLOBAL);
    tir_expr_ref zero = tir_int(c, x.dt, 0), first = tir_i64(c, 0), so_far = tir_load(c, flag, 1, &first);
    tir_expr_ref wrong = tir_select(c, s->body->cond, zero, tir_int(c, x.dt, 1));
    tir_stmt *round = tir_store(c, flag, 1, &first, tir_binary(c, TIR_BITOR, so_far, wrong));
    tir_stmt *const all[3] = {tir_store(c, flag, 1, &first, zero),
                              tir_for(c, s->var, s->min, s->extent, FOR_SERIAL, round),
                              tir_assert(c, tir_binary(c, TIR_EQ, so_far, zero), s->body->code, s->body->key)};
    return tir_allocate(c, flag, tir_seq(c, 3, all));
}

bool tir_pass_join_checks(compiler *c, tir_func *f)
{
    tir_rewriter r = {.c = c, .stmt = join};
    if (f->target && !f->target->small && f->target->vector_bytes > 0)
        f->body = tir_rewrite_stmt(&r, f->body);
    return true;
}
