/* SPDX-License-Identifier: Apache-2.0 */
/* Type relations of operators on signals in whole numbers: what the audio front ends of TensorFlow Lite Micro have
 * beside sums and products. */
#include "graph/op.h"

bool infer_filter_bank(compiler *c, const graph_node *n, type *out)
{
    const dim starts = infer_in(n, 3)->shape.dims[0];
    int64_t bands = 0;
    for (uint32_t i = 4; i < 6; i++)
        if (!dim_equal(infer_in(n, i)->shape.dims[0], starts))
            return infer_error(c, n, "starts, weight_starts and widths must have one number for each band");
    if (!dim_equal(infer_in(n, 1)->shape.dims[0], infer_in(n, 2)->shape.dims[0]))
        return infer_error(c, n, "weights and unweights must be as many");
    if (!dim_is_const(starts, &bands) || bands < 1)
        return infer_error(c, n, "the number of bands must be known, and 1 at least");
    const dim channels = dim_const(c, bands - 1);
    out[0] = type_tensor(DT_U64, shape_make(c, 1, &channels));
    return true;
}

bool infer_rounded_root(compiler *c, const graph_node *n, type *out)
{
    (void)c;
    out[0] = type_tensor(DT_U32, infer_in(n, 0)->shape);
    return true;
}
