/* SPDX-License-Identifier: Apache-2.0 */
/* Type relations of reductions along axes: sums and extrema, arg-reductions, softmax, scans, top-k. */
#include "graph/op/shape.h"

#include <string.h>

/* axes empty: all. Marks the reduced axes; false after a diagnostic. */
static bool reduced_axes(compiler *c, const graph_node *n, int32_t rank, bool *is_reduced)
{
    const int64_t *axes = NULL;
    uint32_t len = graph_attr_ints(n, "axes", &axes);
    memset(is_reduced, len == 0, TYPE_MAX_RANK * sizeof *is_reduced);
    for (uint32_t i = 0; i < len; i++) {
        int32_t a = 0;
        if (!infer_axis(c, n, axes[i], rank, &a))
            return false;
        if (is_reduced[a])
            return infer_error(c, n, "axis %d is given twice", a);
        is_reduced[a] = true;
    }
    return true;
}

static shape reduced_shape(compiler *c, shape s, const bool *is_reduced, bool keepdims)
{
    dim d[TYPE_MAX_RANK];
    uint32_t r = 0;
    for (int32_t i = 0; i < s.rank; i++) {
        if (!is_reduced[i])
            d[r++] = s.dims[i];
        else if (keepdims)
            d[r++] = dim_const(c, 1);
    }
    return shape_make(c, r, d);
}

bool infer_reduce(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    bool is_reduced[TYPE_MAX_RANK];
    if (!reduced_axes(c, n, x->shape.rank, is_reduced))
        return false;
    out[0] = type_tensor(x->dt, reduced_shape(c, x->shape, is_reduced, graph_attr_int(n, "keepdims") != 0));
    return true;
}

bool infer_argreduce(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    bool is_reduced[TYPE_MAX_RANK] = {false};
    int32_t axis = 0;
    if (!infer_axis(c, n, graph_attr_int(n, "axis"), x->shape.rank, &axis))
        return false;
    is_reduced[axis] = true;
    out[0] = type_tensor(DT_I64, reduced_shape(c, x->shape, is_reduced, graph_attr_int(n, "keepdims") != 0));
    return true;
}

bool infer_softmax(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    int32_t axis = 0;
    if (x->shape.rank != 0 && !infer_axis(c, n, graph_attr_int(n, "axis"), x->shape.rank, &axis))
        return false;
    int64_t lanes = graph_attr_int(n, "lanes");
    if (lanes < 1 || lanes > 64 || (lanes > 1 && axis + 1 != x->shape.rank))
        return infer_error(c, n, "lanes must be from 1 to 64, and 1 unless the axis is the last");
    return infer_same(c, n, out);
}

bool infer_cumulative(compiler *c, const graph_node *n, type *out)
{
    int64_t given = 0;
    uint32_t len = 0;
    int32_t at = 0;
    if (graph_constant_ints(n->inputs[1], 1, &given, &len) && len == 1 &&
        !infer_axis(c, n, given, infer_in(n, 0)->shape.rank, &at))
        return false;
    return infer_same(c, n, out);
}

bool infer_automaton(compiler *c, const graph_node *n, type *out)
{
    int64_t kinds = 0, count = 0;
    const shape *next = &infer_in(n, 2)->shape;
    if (!dim_is_const(infer_in(n, 1)->shape.dims[0], &kinds) || kinds != 256 ||
        !dim_is_const(next->dims[0], &count) || count < 1 || !dim_is_const(next->dims[1], &count) || count < 1)
        return infer_error(c, n, "256 kinds of bytes, and a state and a kind at least, are needed");
    *out = type_tensor(DT_U16, infer_in(n, 0)->shape);
    return true;
}

bool infer_topk(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0), *dec = infer_declared(n, 0);
    int32_t axis = 0;
    int64_t k = 0, extent = 0;
    shape_value taken;
    if (!infer_axis(c, n, graph_attr_int(n, "axis"), x->shape.rank, &axis))
        return false;
    dim d[TYPE_MAX_RANK];
    memcpy(d, x->shape.dims, (size_t)x->shape.rank * sizeof *d);
    if (infer_elements(c, n, 1, &taken) && taken.n == 1 && taken.at[0])
        d[axis] = taken.at[0];
    else if (dec && dec->shape.rank != x->shape.rank)
        return infer_error(c, n, "the result is declared with rank %d, not %d", dec->shape.rank, x->shape.rank);
    else
        d[axis] = infer_open(c, n, 0, x->shape.rank, axis, "topk", dim_bound(x->shape.dims[axis]));
    if (dim_is_const(x->shape.dims[axis], &extent) && dim_is_const(d[axis], &k) && (k < 0 || k > extent))
        return infer_error(c, n, "k is %lld but the axis has %lld elements", (long long)k, (long long)extent);
    shape s = shape_make(c, (uint32_t)x->shape.rank, d);
    out[0] = type_tensor(x->dt, s);
    out[1] = type_tensor(DT_I64, s);
    return true;
}
