/* SPDX-License-Identifier: Apache-2.0 */
/* Type relations of operators that choose elements by their values: how many they choose, only the data says. */
#include "graph/op.h"

#include <string.h>

bool infer_nonzero(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    dim d[2] = {dim_const(c, x->shape.rank),
                infer_open(c, n, 0, 2, 1, "nonzero", dim_bound(shape_elements(c, x->shape)))};
    out[0] = type_tensor(DT_I64, shape_make(c, 2, d));
    return true;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* The data's dimensions, of which the axis gets another one. */
static bool data_dims(compiler *c, const graph_node *n, dim *out, int32_t *out_axis)
{
    shape x = infer_in(n, 0)->shape;
    memcpy(out, x.dims, (size_t)x.rank * sizeof *out);
    return infer_axis(c, n, graph_attr_int(n, "axis"), x.rank, out_axis);
}

bool infer_compress(compiler *c, const graph_node *n, type *out)
{
    shape x = infer_in(n, 0)->shape;
    int32_t axis = 0;
    dim d[TYPE_MAX_RANK];
    if (!data_dims(c, n, d, &axis))
        return false;
    d[axis] = infer_open(c, n, 0, x.rank, axis, "compress",
                         least(dim_bound(x.dims[axis]), dim_bound(infer_in(n, 1)->shape.dims[0])));
    out[0] = type_tensor(infer_in(n, 0)->dt, shape_make(c, (uint32_t)x.rank, d));
    return true;
}

bool infer_unique(compiler *c, const graph_node *n, type *out)
{
    shape x = infer_in(n, 0)->shape;
    int32_t axis = 0;
    dim d[TYPE_MAX_RANK];
    if (!data_dims(c, n, d, &axis))
        return false;
    dim found = infer_open(c, n, 0, x.rank, axis, "unique", dim_bound(x.dims[axis])), all = x.dims[axis];
    d[axis] = found;
    out[0] = type_tensor(infer_in(n, 0)->dt, shape_make(c, (uint32_t)x.rank, d));
    out[1] = type_tensor(DT_I64, shape_make(c, 1, &found));
    out[2] = type_tensor(DT_I64, shape_make(c, 1, &all));
    out[3] = out[1];
    return true;
}

bool infer_nms(compiler *c, const graph_node *n, type *out)
{
    shape boxes = infer_in(n, 0)->shape, scores = infer_in(n, 1)->shape;
    if (!dim_is(boxes.dims[2], 4) ||
        !infer_extents(c, boxes.dims[0], EXTENTS_EQUAL, scores.dims[0], "boxes and scores") ||
        !infer_extents(c, boxes.dims[1], EXTENTS_EQUAL, scores.dims[2], "boxes and scores"))
        return infer_error(c, n, "boxes must be [batches, boxes, 4], scores [batches, classes, boxes]");
    out[0] = type_tensor(DT_I64, scores);
    return true;
}

bool infer_nms_rows(compiler *c, const graph_node *n, type *out)
{
    shape x = infer_in(n, 0)->shape;
    int64_t most = graph_attr_int(n, "most"), all = dim_bound(shape_elements(c, x)), rows = 0;
    int64_t groups = dim_bound(dim_mul(c, x.dims[0], x.dims[1]));
    if (most >= 0 && groups >= 0 && i64_mul(most, groups, &rows))
        all = least(all, rows);
    dim d[2] = {infer_open(c, n, 0, 2, 0, "selected", all), dim_const(c, 3)};
    out[0] = type_tensor(DT_I64, shape_make(c, 2, d));
    return true;
}
