/* SPDX-License-Identifier: Apache-2.0 */
/* Type relations of quantisation. */
#include "graph/op/nn.h"

#include <string.h>

/* Scale and zero point: one number, one for each entry of the axis, or one for each block of it. */
static bool parameters_fit(compiler *c, const graph_node *n)
{
    shape x = infer_in(n, 0)->shape;
    int64_t block = graph_attr_int(n, "block_size"), a = 0, b = 0;
    int32_t axis = 0;
    for (uint32_t i = 1; i < n->n_inputs && i < 3; i++) {
        const type *t = infer_in(n, i);
        if (!t || t->shape.rank == 0 || (t->shape.rank == 1 && block == 0 && dim_is(t->shape.dims[0], 1)))
            continue;
        bool blocked = t->shape.rank > 1 || block != 0;
        if (!infer_axis(c, n, graph_attr_int(n, "axis"), x.rank, &axis))
            return false;
        if (block < 0 || t->shape.rank != (blocked ? x.rank : 1) || infer_in(n, 1)->shape.rank != t->shape.rank)
            return infer_error(c, n, "operand %u has rank %d for data of rank %d", i, t->shape.rank, x.rank);
        for (int32_t k = 0; k < t->shape.rank; k++) {
            int32_t at = blocked ? k : axis;
            if (!dim_is_const(t->shape.dims[k], &a) || !dim_is_const(x.dims[at], &b))
                continue;
            if (a != (at == axis && block > 0 ? b / block + (b % block != 0) : b))
                return infer_error(c, n, "operand %u has extent %lld on axis %d, which does not fit", i, (long long)a,
                                   k);
        }
    }
    return true;
}

/* Output type: out_dtype, else the zero point's, else u8 (ONNX QuantizeLinear). */
bool infer_quantize(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0), *zp = infer_in(n, 2);
    dtype dt = graph_attr_dtype(n, "out_dtype");
    if (zp && dt != DT_NONE && zp->dt != dt)
        return infer_error(c, n, "out_dtype %s differs from the zero point's %s", dtype_name(dt), dtype_name(zp->dt));
    if (dt == DT_NONE)
        dt = zp ? zp->dt : DT_U8;
    out[0] = type_tensor(dt, x->shape);
    return parameters_fit(c, n);
}

/* Output type: out_dtype, else the scale's (ONNX DequantizeLinear). */
bool infer_dequantize(compiler *c, const graph_node *n, type *out)
{
    dtype dt = graph_attr_dtype(n, "out_dtype");
    out[0] = type_tensor(dt == DT_NONE ? infer_in(n, 1)->dt : dt, infer_in(n, 0)->shape);
    return parameters_fit(c, n);
}
