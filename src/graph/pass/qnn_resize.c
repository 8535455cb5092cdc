/* SPDX-License-Identifier: Apache-2.0 */
/* A linear resize of quantised numbers in integers. Between extents whose quotient is a power of two, positions have
 * few bits behind the point, so weights are whole numbers times a power of two, and their sums of bytes are exact. One
 * rounding is left, that of the result. ONNX's own arithmetic, in f32, rounds each product and sum, and may be on the
 * other side where the exact result is half-way between two numbers. */
#include "graph/op/shape.h"
#include "graph/pass/qnn.h"

#include <math.h>
#include <string.h>

/* Whether the factors that the operand has, if it has any, are those of the extents. */
static bool scales_agree(const graph_node *n, const int64_t *from, const int64_t *to)
{
    const int64_t *axes = NULL;
    const uint32_t n_axes = graph_attr_ints(n, "axes", &axes);
    const graph_value *scales = graph_operand(n, 2);
    const tensor_data *s = scales ? graph_constant(scales) : NULL;
    if (!scales || dim_is(scales->type.shape.dims[0], 0))
        return true;
    for (int64_t i = 0; s && i < s->count; i++) {
        int64_t a = n_axes ? axes[i] : i;
        a = a < 0 ? a + n->inputs[0]->type.shape.rank : a;
        if (tensor_get_f64(s, i) != (double)to[a] / (double)from[a])
            return false;
    }
    return s != NULL;
}

const char *qnn_read_resize(const graph_node *n, uint32_t *bits, uint32_t *axes)
{
    int64_t from[TYPE_MAX_RANK], to[TYPE_MAX_RANK];
    if (!resize_is_linear(n))
        return "a resize that is not linear has no integer form";
    if (!shape_get(n->inputs[0]->type.shape, from) || !shape_get(n->outputs[0]->type.shape, to))
        return "its extents are open";
    if (strcmp(graph_attr_string(n, "keep_aspect_ratio_policy"), "stretch") != 0 || !scales_agree(n, from, to))
        return "its scales are not the quotients of its extents";
    if (!resize_whole_weights(n, n->outputs[0]->type.shape, bits, axes) || *bits == 0)
        return "its weights are no whole numbers times a small power of two";
    return NULL;
}
