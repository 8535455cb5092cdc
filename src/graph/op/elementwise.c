/* SPDX-License-Identifier: Apache-2.0 */
/* Type relations of element-wise operators: one input, several inputs under broadcasting, comparisons, casts. */
#include "graph/op.h"

bool infer_unary(compiler *c, const graph_node *n, type *out)
{
    return infer_same(c, n, out);
}

bool infer_bool_unary(compiler *c, const graph_node *n, type *out)
{
    (void)c;
    out[0] = type_tensor(DT_BOOL, infer_in(n, 0)->shape);
    return true;
}

bool infer_cast(compiler *c, const graph_node *n, type *out)
{
    (void)c;
    out[0] = type_tensor(graph_attr_dtype(n, "dtype"), infer_in(n, 0)->shape);
    return true;
}

/* min and max are scalars of x's type (ONNX Clip). */
bool infer_clip(compiler *c, const graph_node *n, type *out)
{
    for (uint32_t i = 1; i < n->n_inputs; i++) {
        const type *t = infer_in(n, i);
        if (t && t->dt != infer_in(n, 0)->dt)
            return infer_error(c, n, "bound is %s but the data is %s", dtype_name(t->dt),
                               dtype_name(infer_in(n, 0)->dt));
        if (t && shape_is_static(t->shape) && shape_count(t->shape) != 1)
            return infer_error(c, n, "bound %u is not one number", i);
    }
    return infer_same(c, n, out);
}

/* Common shape of inputs first..n_inputs; all of one dtype. */
static bool broadcast_from(compiler *c, const graph_node *n, uint32_t first, dtype *dt, shape *s)
{
    *s = infer_in(n, first)->shape;
    *dt = infer_in(n, first)->dt;
    for (uint32_t i = first + 1; i < n->n_inputs; i++) {
        const type *t = infer_in(n, i);
        if (t->dt != *dt)
            return infer_error(c, n, "operands are %s and %s", dtype_name(*dt), dtype_name(t->dt));
        if (!shape_broadcast(c, *s, t->shape, s))
            return infer_error(c, n, "shapes of the operands do not broadcast");
    }
    return true;
}

bool infer_broadcast(compiler *c, const graph_node *n, type *out)
{
    dtype dt;
    shape s;
    if (!broadcast_from(c, n, 0, &dt, &s))
        return false;
    out[0] = type_tensor(dt, s);
    return true;
}

bool infer_compare(compiler *c, const graph_node *n, type *out)
{
    if (!infer_broadcast(c, n, out))
        return false;
    out[0].dt = DT_BOOL;
    return true;
}

/* The exponent may have a type of its own. */
bool infer_power(compiler *c, const graph_node *n, type *out)
{
    shape s;
    if (!shape_broadcast(c, infer_in(n, 0)->shape, infer_in(n, 1)->shape, &s))
        return infer_error(c, n, "shapes of the operands do not broadcast");
    out[0] = type_tensor(infer_in(n, 0)->dt, s);
    return true;
}

/* slope broadcasts to x, never the other way round (ONNX PRelu). */
bool infer_prelu(compiler *c, const graph_node *n, type *out)
{
    if (!infer_broadcast(c, n, out))
        return false;
    return shape_equal(out[0].shape, infer_in(n, 0)->shape) ||
           infer_error(c, n, "slope does not broadcast to the data");
}

bool infer_where(compiler *c, const graph_node *n, type *out)
{
    dtype dt;
    shape s;
    if (infer_in(n, 0)->dt != DT_BOOL)
        return infer_error(c, n, "condition is %s, not bool", dtype_name(infer_in(n, 0)->dt));
    if (!broadcast_from(c, n, 1, &dt, &s))
        return false;
    if (!shape_broadcast(c, s, infer_in(n, 0)->shape, &s))
        return infer_error(c, n, "the condition does not broadcast with the values");
    out[0] = type_tensor(dt, s);
    return true;
}
