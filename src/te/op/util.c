/* SPDX-License-Identifier: Apache-2.0 */
/* Small helpers that several families of compute definitions share. */
#include "te/op/util.h"

#include <math.h>

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

tir_expr_ref te_in_bounds(te_graph *g, tir_expr_ref i, tir_expr_ref extent)
{
    compiler *c = g->c;
    return tir_and(c, tir_binary(c, TIR_GE, i, te_i64(g, 0)), tir_binary(c, TIR_LT, i, extent));
}

tir_expr_ref te_ceildiv(te_graph *g, tir_expr_ref a, int64_t d)
{
    return d == 1 ? a : tir_floordiv(g->c, tir_add(g->c, a, te_i64(g, d - 1)), te_i64(g, d));
}

int64_t te_static_count(const te_tensor *t)
{
    int64_t n = 1, d = 0;
    for (uint32_t i = 0; i < t->rank; i++)
        if (!tir_is_int(t->shape[i], &d) || !i64_mul(n, d, &n))
            return 0;
    return n;
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
