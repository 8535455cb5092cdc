/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of operators that choose elements by their values: Compress, Unique, NonMaxSuppression. Without an axis
 * the first two look at the flattened tensor. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

static graph_value *flat(onnx_node *n, graph_value *x)
{
    if (onnx_rank(x) == 1)
        return x;
    dim all = shape_elements(n->c, x->type.shape);
    return onnx_reshape(n, x, 1, &all);
}

/* Operand 0, and the axis of it that is meant. */
static graph_value *along_axis(onnx_node *n, int64_t *axis)
{
    graph_value *x = onnx_in(n, 0);
    *axis = onnx_attr_int(n, "axis", 0);
    return onnx_has_attr(n, "axis") ? x : flat(n, x);
}

/* A condition that the model knows tells the extent of the result. NULL: it is none, or reaches behind the axis. */
static graph_value *known_places(onnx_node *n, const graph_value *x, int64_t axis)
{
    const tensor_data *known = n->failed ? NULL : graph_constant(onnx_in(n, 1));
    const int64_t rank = (int64_t)onnx_rank(x);
    int64_t extent = 0, count = 0;
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank || !known || known->dt != DT_BOOL ||
        !dim_is_const(x->type.shape.dims[axis], &extent) || known->count > extent)
        return NULL;
    int64_t *at = arena_array(&n->c->mem, int64_t, (uint32_t)known->count + 1u);
    for (int64_t i = 0; i < known->count; i++)
        if (tensor_get_i64(known, i))
            at[count++] = i;
    return onnx_const_ints(n, (uint32_t)count, at);
}

bool onnx_op_compress(onnx_node *n)
{
    int64_t axis = 0;
    graph_value *x = along_axis(n, &axis), *places = known_places(n, x, axis);
    attr a = attr_int(n->c, "axis", axis);
    if (places)
        return onnx_result(n, 0, ONNX_ARGS("take", 1, &a, x, places));
    onnx_result(n, 0, ONNX_ARGS("compress", 1, &a, x, onnx_in(n, 1)));
    return !n->failed;
}

/* Strings are rows of bytes: slices of an axis that the model does not see, or of one that it names. */
static graph_value *text_along_axis(onnx_node *n, int64_t *axis)
{
    graph_value *x = onnx_text(n, onnx_in(n, 0));
    const int64_t rank = (int64_t)onnx_rank(x) - 1;
    *axis = onnx_attr_int(n, "axis", 0);
    if (!onnx_has_attr(n, "axis"))
        return onnx_text_rows(n, x);
    *axis = rank > 0 ? onnx_axis(n, *axis, (uint32_t)rank) : 0;
    return rank > 0 ? x : onnx_refuse(n, DIAG_TYPE, "one string has no axis");
}

bool onnx_op_unique(onnx_node *n)
{
    int64_t axis = 0;
    const bool strings = onnx_is_strings(n->im, onnx_in(n, 0));
    graph_value *x = strings ? text_along_axis(n, &axis) : along_axis(n, &axis);
    attr a[2] = {attr_int(n->c, "axis", axis), attr_int(n->c, "sorted", onnx_attr_int(n, "sorted", 1))};
    if (!onnx_results(n, (onnx_args){"unique", 1, &x, 2, a}, 4))
        return false;
    if (strings)
        onnx_set_text(n->im, n->out[0]);
    return true;
}

/* The number of boxes of a class: 0 when it is left out. A constant bounds the number of rows. */
bool onnx_op_non_max_suppression(onnx_node *n)
{
    graph_value *in[5] = {onnx_in(n, 0), onnx_in(n, 1), onnx_optional(n, 2), onnx_optional(n, 3), onnx_optional(n, 4)};
    int64_t most[2 * TYPE_MAX_RANK] = {0};
    uint32_t n_in = in[4] ? 5 : in[3] ? 4 : in[2] ? 3 : 2, len = 0;
    bool known = !in[2] || (onnx_ints_of(in[2], most, &len) && len == 1);
    attr center = attr_int(n->c, "center_point_box", onnx_attr_int(n, "center_point_box", 0));
    attr bound = attr_int(n->c, "most", !known ? -1 : most[0] < 0 ? 0 : most[0]);
    graph_value *ranks = onnx_emit(n, (onnx_args){"nn.nms", n_in, in, 1, &center});
    onnx_result(n, 0, ONNX_ARGS("nn.nms_rows", 1, &bound, ranks));
    return !n->failed;
}
