/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the place on an axis as arithmetic of integers (along.h). Both forms are exact: they are compared with
 * the function at every place, whose expression folds to the number that the kernel would compute there. */
#include "te/op/along.h"

#include <math.h>

#define MOST_PLACES ((int64_t)1 << 16) /* of an axis, for which the compiler computes them all */
#define MOST_PERIOD 8                  /* weights that repeat */
#define MOST_BITS   15                 /* of a divisor that is a power of two */
#define MOST_VALUE  ((int64_t)1 << 30) /* of a dividend: indices may be of 32 bits */

/* floordiv(a*o + b, d) */
typedef struct quotient {
    int64_t a, b, d;
} quotient;

/* The numbers at all places, in memory that the caller gives back; false: one of them is not constant. */
static bool at_all_places(te_graph *g, te_along_fn f, const void *ctx, int64_t n, tir_expr_ref *out)
{
    for (int64_t o = 0; o < n; o++) {
        out[o] = f(g, ctx, te_i64(g, o));
        if (out[o]->kind != TIR_INT && out[o]->kind != TIR_FLOAT)
            return false;
    }
    return true;
}

/* Chooses q->b for q->a and q->d so that the quotient is right everywhere: d*f - a*o <= b < d*f - a*o + d. */
static bool fits(quotient *q, int64_t n, tir_expr_ref const *at)
{
    int64_t least = -MOST_VALUE, most = MOST_VALUE;
    for (int64_t o = 0; o < n; o++) {
        int64_t low = q->d * at[o]->u.i - q->a * o;
        least = low > least ? low : least;
        most = low + q->d - 1 < most ? low + q->d - 1 : most;
    }
    q->b = least > 0 ? least : most < 0 ? most : 0;
    return least <= most && q->a * n + q->b < MOST_VALUE;
}

/* The smallest divisor that does: first those that a period of the axis can have, then powers of two, with which `step`
 * becomes a number with a fixed point. */
static bool find_quotient(int64_t n, tir_expr_ref const *at, double step, quotient *out)
{
    for (int64_t i = 0; i < n; i++)
        if (at[i]->u.i < -MOST_PLACES || at[i]->u.i > MOST_VALUE >> MOST_BITS)
            return false;
    for (int64_t d = 1; d <= MOST_PERIOD; d++) {
        *out = (quotient){.a = (int64_t)floor(step * (double)d + 0.5), .d = d};
        if (fits(out, n, at))
            return true;
    }
    for (int bits = 4; bits <= MOST_BITS; bits++) {
        *out = (quotient){.a = (int64_t)floor(ldexp(step, bits) + 0.5), .d = (int64_t)1 << bits};
        if (fits(out, n, at))
            return true;
    }
    return false;
}

tir_expr_ref te_position(te_graph *g, te_along_fn f, const void *ctx, tir_expr_ref o, tir_expr_ref extent, double step)
{
    compiler *c = g->c;
    int64_t n = 0;
    quotient q;
    if (!tir_is_int(extent, &n) || n < 1 || n > MOST_PLACES || !(step >= 0) || step > (double)MOST_PLACES)
        return f(g, ctx, o);
    arena_mark mark = arena_get_mark(&c->mem);
    tir_expr_ref *at = arena_array(&c->mem, tir_expr_ref, (size_t)n);
    bool found = at_all_places(g, f, ctx, n, at) && find_quotient(n, at, step, &q);
    arena_reset(&c->mem, mark);
    if (!found)
        return f(g, ctx, o);
    tir_expr_ref sum = tir_add(c, tir_mul(c, o, te_i64(g, q.a)), te_i64(g, q.b));
    return tir_floordiv(c, sum, te_i64(g, q.d));
}

static bool repeats(int64_t n, tir_expr_ref const *at, int64_t period)
{
    for (int64_t o = period; o < n; o++)
        if (at[o]->u.f != at[o - period]->u.f || signbit(at[o]->u.f) != signbit(at[o - period]->u.f))
            return false;
    return true;
}

/* How many of the numbers at all places repeat, and these; 0: they are not known, or too many. */
static int64_t find_period(te_graph *g, te_along_fn f, const void *ctx, tir_expr_ref extent, double *number)
{
    int64_t n = 0, period = 1;
    if (!tir_is_int(extent, &n) || n < 1 || n > MOST_PLACES)
        return 0;
    arena_mark mark = arena_get_mark(&g->c->mem);
    tir_expr_ref *at = arena_array(&g->c->mem, tir_expr_ref, (size_t)n);
    bool found = at_all_places(g, f, ctx, n, at);
    while (found && period <= MOST_PERIOD && !repeats(n, at, period))
        period++;
    found = found && period <= MOST_PERIOD;
    for (int64_t i = 0; found && i < period && i < n; i++)
        number[i] = at[i]->u.f;
    arena_reset(&g->c->mem, mark);
    return !found ? 0 : period < n ? period : n;
}

/* f(o) as a choice among its numbers, each times `factor`; NULL: they do not repeat, or are not known. */
static tir_expr_ref choose(te_graph *g, te_along_fn f, const void *ctx, tir_expr_ref o, tir_expr_ref extent, dtype dt,
                           double factor)
{
    compiler *c = g->c;
    double number[MOST_PERIOD];
    int64_t period = find_period(g, f, ctx, extent, number);
    if (period == 0)
        return NULL;
    tir_expr_ref choice = tir_const(c, dt, number[period - 1] * factor), rest = tir_floormod(c, o, te_i64(g, period));
    for (int64_t i = period - 1; i-- > 0;)
        choice = tir_select(c, tir_binary(c, TIR_EQ, rest, te_i64(g, i)), tir_const(c, dt, number[i] * factor), choice);
    return choice;
}

tir_expr_ref te_weight(te_graph *g, te_along_fn f, const void *ctx, tir_expr_ref o, tir_expr_ref extent)
{
    tir_expr_ref choice = choose(g, f, ctx, o, extent, DT_F32, 1);
    return choice ? choice : f(g, ctx, o);
}

tir_expr_ref te_whole_weight(te_graph *g, te_along_fn f, const void *ctx, tir_expr_ref o, tir_expr_ref extent,
                             uint32_t bits)
{
    const double factor = ldexp(1, (int)bits);
    tir_expr_ref choice = choose(g, f, ctx, o, extent, DT_I32, factor);
    return choice ? choice
                  : tir_cast(g->c, DT_I32, tir_binary(g->c, TIR_MUL, f(g, ctx, o), tir_float(g->c, DT_F32, factor)));
}

typedef struct table_ctx {
    te_along_fn f;
    const void *ctx;
    dtype dt; /* of the table */
} table_ctx;

static tir_expr_ref table_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const table_ctx *t = ctx;
    return tir_cast(g->c, t->dt, t->f(g, t->ctx, idx[0]));
}

static te_tensor *table_of(te_graph *g, const char *name, const table_ctx *t, tir_expr_ref extent)
{
    table_ctx v = *t;
    te_tensor *table = te_compute(g, name, t->dt, 1, &extent, table_body, &v);
    table->node->inline_hint = true;
    table->node->tag = TE_TABLE;
    return table;
}

/* Open extents have a table when the compiler knows how long it gets. */
static bool may_have_table(const te_graph *g, tir_expr_ref extent)
{
    const int64_t most = te_most(g, extent);
    return most > 0 && most <= MOST_PLACES;
}

te_tensor *te_weight_table(te_graph *g, const char *name, te_along_fn f, const void *ctx, tir_expr_ref extent)
{
    double number[MOST_PERIOD];
    if (!may_have_table(g, extent) || find_period(g, f, ctx, extent, number) > 0)
        return NULL;
    return table_of(g, name, &(table_ctx){f, ctx, DT_F32}, extent);
}

te_tensor *te_position_table(te_graph *g, const char *name, te_along_fn f, const void *ctx, tir_expr_ref extent)
{
    if (tir_is_int(extent, &(int64_t){0}) || !may_have_table(g, extent))
        return NULL;
    return table_of(g, name, &(table_ctx){f, ctx, DT_I32}, extent);
}

tir_expr_ref te_on_axis(te_graph *g, tir_expr_ref i, tir_expr_ref extent, tir_expr_ref before, tir_expr_ref behind)
{
    compiler *c = g->c;
    tir_expr_ref below = tir_select(c, tir_binary(c, TIR_LT, i, extent), i, behind);
    return tir_select(c, tir_binary(c, TIR_GE, i, te_i64(g, 0)), below, before);
}

tir_expr_ref te_nearest_on_axis(te_graph *g, tir_expr_ref i, tir_expr_ref extent)
{
    return te_on_axis(g, i, extent, te_i64(g, 0), tir_sub(g->c, extent, te_i64(g, 1)));
}
