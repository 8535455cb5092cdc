/* SPDX-License-Identifier: Apache-2.0 */
/* Type relations of linear algebra beyond products: determinants of square matrices (ONNX Det). */
#include "graph/op.h"

bool infer_det(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    int32_t r = x->shape.rank;
    int64_t rows = 0, columns = 0;
    (void)dim_is_const(x->shape.dims[r - 2], &rows);
    (void)dim_is_const(x->shape.dims[r - 1], &columns);
    if (!infer_extents(c, x->shape.dims[r - 2], EXTENTS_EQUAL, x->shape.dims[r - 1], "rows and columns"))
        return infer_error(c, n, "a matrix of %lld x %lld is not square", (long long)rows, (long long)columns);
    out[0] = type_tensor(x->dt, shape_make(c, (uint32_t)r - 2, x->shape.dims));
    return true;
}
