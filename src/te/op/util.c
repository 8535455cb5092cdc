/* SPDX-License-Identifier: Apache-2.0 */
/* Small helpers that several families of compute definitions share. */
#include "te/op/util.h"

#include "abi/package.h"
#include "tir/walk.h"

#include <math.h>
#include <string.h>

dtype te_acc_dtype(dtype dt)
{
    return dt == DT_F16 || dt == DT_BF16 ? DT_F32 : dt;
}

tir_expr_ref te_lowest(compiler *c, dtype dt)
{
    return dtype_is_float(dt) ? tir_float(c, dt, -INFINITY) : tir_int(c, dt, dtype_min_int(dt));
}

static tir_expr_ref cast_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const te_tensor *t = ((te_tensor **)ctx)[0], *like = ((te_tensor **)ctx)[1];
    return tir_cast(g->c, like->dt, te_read(g, t, idx));
}

te_tensor *te_cast_to(te_graph *g, const char *name, te_tensor *t, dtype dt)
{
    if (t->dt == dt)
        return t;
    te_tensor like = {.dt = dt};
    te_tensor *ctx[2] = {t, &like};
    te_tensor *out = te_compute(g, name, dt, t->rank, t->shape, cast_body, ctx);
    out->node->inline_hint = true;
    return out;
}

bool te_is_one(const te_tensor *t)
{
    for (uint32_t i = 0; i < t->rank; i++)
        if (!tir_is_const(t->shape[i], 1))
            return false;
    return true;
}

tir_expr_ref te_read_one(te_graph *g, const te_tensor *t)
{
    tir_expr_ref at[TYPE_MAX_RANK];
    for (uint32_t i = 0; t && i < t->rank; i++)
        at[i] = te_i64(g, 0);
    return t ? te_read(g, t, at) : NULL;
}

tir_expr_ref te_centred(te_graph *g, dtype dt, tir_expr_ref x, tir_expr_ref zero)
{
    x = tir_cast(g->c, dt, x);
    return zero ? tir_sub(g->c, x, tir_cast(g->c, dt, zero)) : x;
}

tir_expr_ref te_in_bounds(te_graph *g, tir_expr_ref i, tir_expr_ref extent)
{
    compiler *c = g->c;
    return tir_and(c, tir_binary(c, TIR_GE, i, te_i64(g, 0)), tir_binary(c, TIR_LT, i, extent));
}

tir_expr_ref te_ceildiv(te_graph *g, tir_expr_ref a, int64_t d)
{
    return d == 1 ? a : tir_floordiv(g->c, tir_add(g->c, a, te_i64(g, d - 1)), te_i64(g, d));
}

int64_t te_most_count(const te_graph *g, const te_tensor *t)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < t->rank; i++)
        if (!i64_mul(n, te_most(g, t->shape[i]), &n))
            return 0;
    return n;
}

void te_count_macs(te_graph *g, uint32_t n, const int64_t *factors)
{
    int64_t product = 1;
    for (uint32_t i = 0; i < n; i++)
        if (!i64_mul(product, factors[i], &product))
            return;
    if (i64_add(g->macs, product, &product))
        g->macs = product;
}

te_axis *te_numbered_axis(te_graph *g, const char *name, uint32_t number, tir_expr_ref extent)
{
    return te_reduce_axis(g, arena_printf(&g->c->mem, "%s%u", name, number), extent);
}

tir_expr_ref te_wrap_index(te_graph *g, tir_expr_ref i, tir_expr_ref extent)
{
    return tir_select(g->c, tir_binary(g->c, TIR_LT, i, te_i64(g, 0)), tir_add(g->c, i, extent), i);
}

tir_expr_ref te_clamp_index(te_graph *g, tir_expr_ref i, tir_expr_ref extent)
{
    return tir_max(g->c, te_i64(g, 0), tir_min(g->c, i, tir_sub(g->c, extent, te_i64(g, 1))));
}

void te_unflatten(te_graph *g, tir_expr_ref flat, uint32_t rank, tir_expr_ref const *extents, tir_expr_ref *idx)
{
    for (uint32_t i = rank; i-- > 0;) {
        idx[i] = i == 0 ? flat : tir_floormod(g->c, flat, extents[i]);
        flat = tir_floordiv(g->c, flat, extents[i]);
    }
}

/* --- operands that are numbers, and what is checked of them --- */

bool te_has_operand(const graph_node *n, uint32_t i)
{
    return i < n->n_inputs && n->inputs[i];
}

int64_t te_operand_length(te_tensor *const *in, uint32_t i)
{
    int64_t n = 0;
    return in[i]->rank && tir_is_int(in[i]->shape[0], &n) ? n : 1;
}

tir_expr_ref te_operand(te_graph *g, const graph_node *n, te_tensor *const *in, uint32_t i, int64_t k)
{
    const tensor_data *t = graph_constant(n->inputs[i]);
    tir_expr_ref at[TYPE_MAX_RANK];
    if (t)
        return te_i64(g, tensor_get_i64(t, k));
    for (uint32_t a = 0; a < in[i]->rank; a++) /* a vector, or one number of any rank */
        at[a] = te_i64(g, a == 0 ? k : 0);
    return tir_cast(g->c, DT_I64, te_read(g, in[i], at));
}

void te_check_shape(te_graph *g, const graph_node *n, tir_expr_ref holds, const char *what)
{
    if (holds)
        te_check(g, arena_printf(&g->c->mem, "%s_fits", n->op->name), 0, NULL, holds, PACKAGE_STATUS_SHAPE,
                 arena_printf(&g->c->mem, "%s: the result's shape does not follow from %s", n->op->name, what));
}

void te_check_range(te_graph *g, const graph_node *n, uint32_t n_axes, te_axis *const *axes, tir_expr_ref holds,
                    const char *what)
{
    te_check(g, arena_printf(&g->c->mem, "%s_in_range", n->op->name), n_axes, axes, holds, PACKAGE_STATUS_INDEX,
             arena_printf(&g->c->mem, "%s: %s is out of range", n->op->name, what));
}

tir_expr_ref te_names_element(te_graph *g, tir_expr_ref i, tir_expr_ref extent)
{
    compiler *c = g->c;
    tir_expr_ref least = tir_sub(c, te_i64(g, 0), extent);
    return tir_and(c, tir_binary(c, TIR_GE, i, least), tir_binary(c, TIR_LT, i, extent));
}

void te_check_lengths(te_graph *g, const graph_node *n, const te_tensor *lengths, tir_expr_ref most)
{
    compiler *c = g->c;
    te_axis *const *axes = te_data_axes(g, 1, lengths->shape);
    tir_expr_ref at[1] = {te_var(g, axes[0])}, len = tir_cast(c, DT_I64, te_read(g, lengths, at));
    te_check_range(g, n, 1, axes,
                   tir_and(c, tir_binary(c, TIR_GE, len, te_i64(g, 0)), tir_binary(c, TIR_LE, len, most)), "a length");
}

void te_check_axes(te_graph *g, const graph_node *n, te_tensor *const *in, uint32_t i, uint32_t rank)
{
    compiler *c = g->c;
    tir_expr_ref holds = NULL, all = te_i64(g, rank);
    for (int64_t k = 0; k < te_operand_length(in, i); k++) {
        tir_expr_ref a = te_operand(g, n, in, i, k);
        holds = tir_and(c, holds, te_names_element(g, a, all));
        for (int64_t j = 0; j < k; j++)
            holds = tir_and(
                c, holds,
                tir_binary(c, TIR_NE, te_wrap_index(g, a, all), te_wrap_index(g, te_operand(g, n, in, i, j), all)));
    }
    if (holds)
        te_check_range(g, n, 0, NULL, holds, "an axis");
}

/* --- extents --- */

tir_expr_ref te_sane(te_graph *g, tir_expr_ref number)
{
    return tir_max(g->c, te_i64(g, -TE_MOST_EXTENT), tir_min(g->c, number, te_i64(g, TE_MOST_EXTENT)));
}

static tir_expr_ref extent_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    (void)g;
    (void)idx;
    return ctx;
}

/* Where the symbol is the extent of a result of n. */
static bool find_symbol(const graph_node *n, const char *symbol, uint32_t *result, uint32_t *axis)
{
    for (*result = 0; *result < n->n_outputs; ++*result)
        for (*axis = 0; *axis < (uint32_t)te_out_type(n, *result)->shape.rank; ++*axis) {
            const char *name = dim_symbol_name(te_out_type(n, *result)->shape.dims[*axis]);
            if (name && strcmp(name, symbol) == 0)
                return true;
        }
    return false;
}

bool te_own_extents(te_graph *g, const graph_node *n, te_extent_fn extent, void *ctx, te_tensor **out)
{
    compiler *c = g->c;
    const char *symbols[TYPE_MAX_RANK + 1];
    uint32_t count = graph_own_symbols(n, TYPE_MAX_RANK + 1, symbols), result = 0, axis = 0;
    if (count > TYPE_MAX_RANK)
        return diag_error(&c->diags, DIAG_UNSUPPORTED, n->loc, "%s: more than %u extents depend on the data",
                          n->op->name, TYPE_MAX_RANK);
    for (uint32_t i = 0; i < count; i++) {
        if (!find_symbol(n, symbols[i], &result, &axis))
            return infer_error(c, n, "no result has the extent %s", symbols[i]);
        tir_expr_ref v = te_sane(g, extent(g, ctx, result, axis));
        int64_t bound = dim_bound(te_out_type(n, result)->shape.dims[axis]);
        tir_expr_ref least = tir_binary(c, TIR_GE, v, te_i64(g, 0)),
                     most = tir_binary(c, TIR_LE, v, te_i64(g, bound < 0 ? TE_MOST_EXTENT : bound));
        te_check_shape(g, n, tir_and(c, least, most), "its operands");
        out[i] = te_compute(g, symbols[i], DT_I64, 0, NULL, extent_body, (void *)(uintptr_t)v);
    }
    return true;
}

tir_expr_ref te_beats(compiler *c, tir_op op, tir_expr_ref a, tir_expr_ref b)
{
    if (!dtype_is_float(a->type.dt))
        return tir_binary(c, op, a, b);
    tir_expr_ref loses = tir_binary(c, op == TIR_GT ? TIR_LE : TIR_GE, a, b); /* never holds with NaN */
    return tir_and(c, tir_not(c, loses), tir_binary(c, TIR_EQ, b, b));
}

tir_expr_ref te_ties(compiler *c, tir_expr_ref a, tir_expr_ref b)
{
    tir_expr_ref equal = tir_binary(c, TIR_EQ, a, b);
    if (!dtype_is_float(a->type.dt))
        return equal;
    tir_expr_ref both = tir_and(c, tir_binary(c, TIR_NE, a, a), tir_binary(c, TIR_NE, b, b));
    return tir_binary(c, TIR_OR, equal, both);
}
