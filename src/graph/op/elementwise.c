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

bool infer_encode_float(compiler *c, const graph_node *n, type *out)
{
    (void)c;
    out[0] = type_tensor(DT_U8, infer_in(n, 0)->shape);
    return true;
}

/* Of one width; of floats those whose bits loops can take (f32, f64). */
bool infer_bit_cast(compiler *c, const graph_node *n, type *out)
{
    dtype from = infer_in(n, 0)->dt, to = graph_attr_dtype(n, "dtype");
    const dtype real = dtype_is_float(from) ? from : to;
    const bool both = dtype_is_float(from) && dtype_is_float(to), none = !dtype_is_float(real);
    out[0] = type_tensor(to, infer_in(n, 0)->shape);
    if (dtype_bits(from) != dtype_bits(to) || (to == DT_BOOL && from != DT_BOOL))
        return infer_error(c, n, "%s and %s differ in width", dtype_name(from), dtype_name(to));
    return from == to || none || (!both && (real == DT_F32 || real == DT_F64)) ||
           infer_error(c, n, "the bits of %s as %s are not supported yet", dtype_name(from), dtype_name(to));
}

/* The result has the type of operand `of` and the common shape of all. */
static bool broadcast(compiler *c, const graph_node *n, uint32_t of, type *out)
{
    out[0] = *infer_in(n, of);
    for (uint32_t k = 1; k < n->n_inputs; k++) {
        uint32_t i = (of + k) % n->n_inputs;
        const type *t = infer_in(n, i), so_far = out[0];
        if (!shape_broadcast(c, so_far.shape, t->shape, &out[0].shape))
            return infer_no_broadcast(c, n, i < of ? t : &so_far, i < of ? &so_far : t);
    }
    for (uint32_t i = 0; i < n->n_inputs; i++)
        infer_leads_to(c, infer_in(n, i)->shape, out[0].shape);
    return true;
}

bool infer_broadcast(compiler *c, const graph_node *n, type *out)
{
    return broadcast(c, n, 0, out);
}

bool infer_compare(compiler *c, const graph_node *n, type *out)
{
    if (!infer_broadcast(c, n, out))
        return false;
    out[0].dt = DT_BOOL;
    return true;
}

/* slope broadcasts to x, never the other way round (ONNX PRelu). */
bool infer_prelu(compiler *c, const graph_node *n, type *out)
{
    return infer_same(c, n, out) && infer_stretched(c, n, 1, out[0].shape);
}

bool infer_where(compiler *c, const graph_node *n, type *out)
{
    return broadcast(c, n, 1, out);
}
