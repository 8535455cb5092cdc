/* SPDX-License-Identifier: Apache-2.0 */
/* Extremes of windows in two stages: of each column of a window, and then of these. Neighboring windows share their
 * columns, so that each number is compared once for each axis. The order does not matter to an extreme. */
#include "te/windows.h"
#include "te/te_op.h"
#include "tir/walk.h"

#include <assert.h>

#define LEAST_TAPS 6 /* of windows that are worth a second stage */

/* The window's read of planes: rows follow axis 2 and the first reduction, columns axis 3 and the second. */
static tir_expr_ref read_of(const te_node *n)
{
    tir_expr_ref e = n->body[0];
    if (e->kind != TIR_LOAD || e->n_args != 4)
        return NULL;
    for (uint32_t i = 0; i < 4; i++) {
        bool own = i >= 2;
        if (!own && (e->args[i]->kind != TIR_VAR || e->args[i]->u.var != n->axes[i]->var))
            return NULL;
        for (uint32_t k = 0; k < 4; k++)
            if (k != i && tir_uses_var(e->args[i], n->axes[k]->var))
                return NULL;
        for (uint32_t k = 0; k < 2; k++)
            if (k + 2 != i && tir_uses_var(e->args[i], n->reduce_axes[k]->var))
                return NULL;
    }
    return e;
}

/* Of which any part can be taken twice, and in any order. */
static bool is_extreme(const te_reducer *r)
{
    const tir_expr_ref e = r ? r->combine[0] : NULL;
    return e && r->n == 1 && e->kind == TIR_BINOP && (e->op == TIR_MAX || e->op == TIR_MIN);
}

static bool fits(const te_node *n)
{
    int64_t high = 0, wide = 0;
    return n->kind == TE_COMPUTE && is_extreme(n->reducer) && n->n_axes == 4 && n->n_reduce == 2 &&
           n->n_outputs == 1 && !n->where && n->outputs[0]->dt == DT_F32 &&
           tir_is_int(n->reduce_axes[0]->extent, &high) && tir_is_int(n->reduce_axes[1]->extent, &wide) && high > 1 &&
           wide > 1 && high * wide >= LEAST_TAPS;
}

/* The stage of the columns, made behind all others, goes before its reader. */
static void move_before(te_graph *g, const te_node *reader)
{
    te_node *made = vec_last(&g->nodes);
    uint32_t i = g->nodes.len - 1;
    for (; i > 0 && g->nodes.data[i] != reader; i--)
        g->nodes.data[i] = g->nodes.data[i - 1];
    assert(g->nodes.data[i] == reader);
    g->nodes.data[i] = made;
    g->nodes.data[i + 1] = (te_node *)(uintptr_t)reader;
}

bool te_window_columns(te_graph *g, te_node *pool)
{
    compiler *c = g->c;
    tir_expr_ref read = fits(pool) ? read_of(pool) : NULL;
    if (!read)
        return false;
    const te_tensor *x = te_tensor_of(g, read->u.buffer);
    tir_expr_ref dims[4] = {pool->axes[0]->extent, pool->axes[1]->extent, pool->axes[2]->extent, x->shape[3]};
    te_axis *const *axes = te_data_axes(g, 4, dims), *tap = te_reduce_axis(g, "row", pool->reduce_axes[0]->extent);
    const tir_var *vars[2] = {pool->axes[2]->var, pool->reduce_axes[0]->var};
    tir_expr_ref values[2] = {te_var(g, axes[2]), te_var(g, tap)}, at[4];
    at[0] = te_var(g, axes[0]);
    at[1] = te_var(g, axes[1]);
    at[2] = tir_substitute(c, read->args[2], 2, vars, values);
    at[3] = te_var(g, axes[3]);
    tir_expr_ref body = te_read(g, x, at);
    te_tensor *columns = NULL;
    te_compute_n(g, TE_COLUMNS, 4, dims, axes, 1, &tap, pool->reducer, NULL, 1, (dtype[]){DT_F32}, &body, &columns);
    columns->node->tag = TE_COLUMNS;
    move_before(g, pool);
    tir_expr_ref *bodies = arena_array(&c->mem, tir_expr_ref, 1);
    for (uint32_t i = 0; i < 3; i++)
        at[i] = te_var(g, pool->axes[i]);
    at[3] = read->args[3];
    bodies[0] = te_read(g, columns, at);
    pool->body = bodies;
    pool->reduce_axes++;
    pool->n_reduce = 1;
    return true;
}
