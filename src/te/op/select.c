/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definitions of operators that choose elements by their values. How many there are is computed by a kernel of
 * its own (te_extent_hook); the definitions fill results of that extent, and end with a status when the data chooses
 * more or fewer. */
#include "te/op/loops.h"

#include "abi/package.h"

static tir_expr_ref is_nonzero(te_graph *g, tir_expr_ref x)
{
    return tir_binary(g->c, TIR_NE, x, tir_const(g->c, x->type.dt, 0));
}

static tir_expr_ref one_if(te_graph *g, tir_expr_ref cond)
{
    return tir_select(g->c, cond, te_i64(g, 1), te_i64(g, 0));
}

/* The loops, which count up, between setting the counter to 0 and comparing it. */
static tir_stmt *counted(compiler *c, const tir_buffer *count, tir_stmt *loops, tir_expr_ref want, const char *message)
{
    tir_expr_ref fits = tir_binary(c, TIR_EQ, loops_get(c, count), want);
    tir_stmt *parts[3] = {loops_set(c, count, tir_i64(c, 0)), loops,
                          tir_assert(c, fits, PACKAGE_STATUS_SHAPE, message)};
    return tir_allocate(c, count, tir_seq(c, 3, parts));
}

/* --- NonZero --- */

typedef struct count_ctx {
    const te_tensor *x;
    tir_expr_ref at[TYPE_MAX_RANK];
} count_ctx;

static tir_expr_ref count_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const count_ctx *v = ctx;
    (void)idx;
    return one_if(g, is_nonzero(g, te_read(g, v->x, v->at)));
}

/* The number of elements of x that are not 0: i64[]. */
static te_tensor *count_nonzero(te_graph *g, const te_tensor *x)
{
    count_ctx v = {.x = x};
    te_axis *axes[TYPE_MAX_RANK];
    for (uint32_t i = 0; i < x->rank; i++) {
        axes[i] = te_numbered_axis(g, "r", i, x->shape[i]);
        v.at[i] = te_var(g, axes[i]);
    }
    return x->rank ? te_reduce(g, "count", DT_I64, 0, NULL, x->rank, axes, TE_SUM, count_body, &v)
                   : te_compute(g, "count", DT_I64, 0, NULL, count_body, &v);
}

bool extents_nonzero(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    (void)n;
    out[0] = count_nonzero(g, in[0]);
    return true;
}

static tir_stmt *build_nonzero(te_graph *g, void *ctx, const tir_buffer *const *in, const tir_buffer *const *out)
{
    compiler *c = g->c;
    const tir_buffer *x = in[0], *y = out[0], *count = loops_number(c, "count", DT_I64);
    const tir_var *vars[TYPE_MAX_RANK];
    tir_expr_ref idx[TYPE_MAX_RANK], so_far = loops_get(c, count);
    tir_stmt *rows[TYPE_MAX_RANK];
    (void)ctx;
    loops_vars(c, "i", x->rank, vars, idx);
    for (uint32_t i = 0; i < x->rank; i++)
        rows[i] = tir_store(c, y, 2, (tir_expr_ref[]){te_i64(g, i), so_far}, idx[i]);
    tir_stmt *room = tir_if(c, tir_binary(c, TIR_LT, so_far, y->shape[1]), tir_seq(c, x->rank, rows), NULL);
    tir_stmt *found[2] = {room, loops_count_up(c, count)};
    tir_stmt *look = tir_if(c, is_nonzero(g, tir_load(c, x, x->rank, idx)), tir_seq(c, 2, found), NULL);
    return counted(c, count, loops_nest(c, x->rank, vars, x->shape, look), y->shape[1],
                   "nonzero: the data has another number of elements that are not 0");
}

bool compute_nonzero(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return loops_extern(g, n, in, 1, build_nonzero, &(loops_ctx){0}, out);
}
