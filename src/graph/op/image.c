/* SPDX-License-Identifier: Apache-2.0 */
/* Type relation of decode_image. */
#include "graph/op.h"

enum { MOST_SIDE = 1 << 14 };

bool infer_decode_image(compiler *c, const graph_node *n, type *out)
{
    const int64_t d[3] = {graph_attr_int(n, "height"), graph_attr_int(n, "width"), 3};
    int64_t len = 0;
    if (d[0] < 1 || d[1] < 1 || d[0] > MOST_SIDE || d[1] > MOST_SIDE)
        return infer_error(c, n, "a picture has 1 to %d rows and columns", MOST_SIDE);
    if (!dim_is_const(infer_in(n, 0)->shape.dims[0], &len))
        return infer_error(c, n, "the number of bytes must be known");
    out[0] = type_tensor(DT_U8, shape_const(c, 3, d));
    return true;
}
