/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definition of unpack_nibbles: weights of 4 bits, two in a byte. It is a stage of the kernel that reads them;
 * rules compute it where a part needs some of them (te/rule/unpack.c). */
#include "te/op/util.h"

typedef struct unpack_ctx {
    const te_tensor *x;
    uint32_t axis;
    int64_t extent, step, least;
    dtype dt;
} unpack_ctx;

static tir_expr_ref unpack_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const unpack_ctx *v = ctx;
    compiler *c = g->c;
    tir_expr_ref at[TYPE_MAX_RANK], k = idx[v->axis], step = te_i64(g, v->step), run = te_i64(g, 2 * v->step);
    for (uint32_t i = 0; i < v->x->rank; i++)
        at[i] = idx[i];
    at[v->axis] = v->step == 1 ? tir_floordiv(c, k, run) : tir_floormod(c, k, step);
    if (v->step > 1 && v->extent > 2 * v->step)
        at[v->axis] = tir_add(c, tir_mul(c, tir_floordiv(c, k, run), step), at[v->axis]);
    tir_expr_ref half = v->extent > 2 * v->step || v->step == 1 ? tir_floordiv(c, tir_floormod(c, k, run), step)
                                                                : tir_floordiv(c, k, step);
    tir_expr_ref code = tir_cast(c, DT_I32, te_read(g, v->x, at));
    code = tir_binary(c, TIR_SHR, code, tir_cast(c, DT_I32, tir_mul(c, half, te_i64(g, 4))));
    code = tir_binary(c, TIR_BITAND, code, tir_int(c, DT_I32, 15));
    return tir_cast(c, v->dt, tir_add(c, code, tir_int(c, DT_I32, v->least)));
}

bool compute_unpack_nibbles(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    unpack_ctx v = {.x = in[0], .extent = graph_attr_int(n, "extent"), .step = graph_attr_int(n, "step"),
                    .least = graph_attr_int(n, "least"), .dt = graph_attr_dtype(n, "dtype")};
    const int64_t axis = graph_attr_int(n, "axis");
    v.axis = (uint32_t)(axis < 0 ? axis + in[0]->rank : axis);
    out[0] = te_compute(g, TE_UNPACKED, v.dt, in[0]->rank, te_shape(g, te_out_type(n, 0)), unpack_body, &v);
    out[0]->node->tag = TE_UNPACKED;
    return true;
}
