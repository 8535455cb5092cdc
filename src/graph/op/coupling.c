/* SPDX-License-Identifier: Apache-2.0 */
/* Type relation of pairwise_coupling. */
#include "graph/op.h"

#define MOST_CLASSES 100 /* their matrices stand on the stack */

bool infer_pairwise_coupling(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    const int64_t classes = graph_attr_int(n, "classes");
    if (classes < 2 || classes > MOST_CLASSES || !dim_is(x->shape.dims[1], classes * (classes - 1) / 2))
        return infer_error(c, n, "there must be one column for each pair of %lld classes, and at most %d classes",
                           (long long)classes, MOST_CLASSES);
    const dim d[2] = {x->shape.dims[0], dim_const(c, classes)};
    out[0] = type_tensor(x->dt, shape_make(c, 2, d));
    return true;
}
