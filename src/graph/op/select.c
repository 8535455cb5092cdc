/* SPDX-License-Identifier: Apache-2.0 */
/* Type relations of operators that choose elements by their values: how many they choose, only the data says. */
#include "graph/op.h"

bool infer_nonzero(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    dim d[2] = {dim_const(c, x->shape.rank),
                infer_open(c, n, 0, 2, 1, "nonzero", dim_bound(shape_elements(c, x->shape)))};
    out[0] = type_tensor(DT_I64, shape_make(c, 2, d));
    return true;
}
