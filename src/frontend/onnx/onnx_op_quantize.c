/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of quantised operators, as integer arithmetic in i32: operands are cast, their zero points subtracted, the
 * product is scaled as f32 and quantised again. Padding happens after the subtraction, so it pads with the zero point.
 */
#include "frontend/onnx/onnx_import.h"

/* i32 of v minus its zero point, which is one number or one per index of `axis`. */
static graph_value *centred(onnx_node *n, graph_value *v, graph_value *zero, uint32_t axis)
{
    graph_value *wide = onnx_cast(n, v, DT_I32);
    int64_t ones[TYPE_MAX_RANK];
    uint32_t tail = onnx_rank(zero) == 1 && axis < onnx_rank(v) ? onnx_rank(v) - axis - 1 : 0;
    if (!zero)
        return wide;
    for (uint32_t i = 0; i < tail; i++)
        ones[i] = 1 + i;
    zero = onnx_expand_dims(n, onnx_cast(n, zero, DT_I32), tail, ones);
    return onnx_binary(n, "subtract", wide, zero);
}

/* A scale of one number per index of `axis` in a value of `rank` dimensions, for broadcasting. */
static graph_value *laid_out(onnx_node *n, graph_value *scale, uint32_t axis, uint32_t rank)
{
    int64_t ones[TYPE_MAX_RANK];
    uint32_t tail = onnx_rank(scale) == 1 && axis < rank ? rank - axis - 1 : 0;
    for (uint32_t i = 0; i < tail; i++)
        ones[i] = 1 + i;
    return onnx_expand_dims(n, onnx_cast(n, scale, DT_F32), tail, ones);
}

static bool requantize(onnx_node *n, graph_value *acc, graph_value *sa, graph_value *sb, graph_value *sy,
                       graph_value *zy)
{
    graph_value *real = onnx_cast(n, acc, DT_F32), *scale = onnx_binary(n, "multiply", sa, sb);
    graph_value *y = onnx_binary(n, "multiply", real, scale);
    onnx_result(n, 0, ONNX_ARGS("qnn.quantize", 0, NULL, y, onnx_cast(n, sy, DT_F32), zy));
    return !n->failed;
}

static bool has_inputs(onnx_node *n, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!onnx_in(n, i))
            return onnx_fail(n, DIAG_FORMAT, "input %u is missing", i);
    return true;
}

/* Rows of A and columns of B may have zero points of their own. */
static graph_value *product(onnx_node *n, graph_value *a, graph_value *za, graph_value *b, graph_value *zb)
{
    graph_value *x = centred(n, a, za, onnx_rank(a) < 2 ? 0 : onnx_rank(a) - 2);
    graph_value *y = centred(n, b, zb, onnx_rank(b) ? onnx_rank(b) - 1 : 0);
    return onnx_matmul(n, x, y, false, false, DT_NONE);
}

bool onnx_op_matmul_integer(onnx_node *n)
{
    return has_inputs(n, 2) && onnx_alias(n, 0, product(n, onnx_in(n, 0), onnx_in(n, 2), onnx_in(n, 1), onnx_in(n, 3)));
}

bool onnx_op_conv_integer(onnx_node *n)
{
    if (!has_inputs(n, 2))
        return false;
    graph_value *x = centred(n, onnx_in(n, 0), onnx_in(n, 2), 0), *w = centred(n, onnx_in(n, 1), onnx_in(n, 3), 0);
    return onnx_alias(n, 0, onnx_conv(n, x, w, NULL));
}

bool onnx_op_qlinear_matmul(onnx_node *n)
{
    if (!has_inputs(n, 8))
        return false;
    graph_value *a = onnx_in(n, 0), *b = onnx_in(n, 3);
    graph_value *acc = product(n, a, onnx_in(n, 2), b, onnx_in(n, 5));
    uint32_t rank = onnx_rank(acc);
    graph_value *sa = laid_out(n, onnx_in(n, 1), rank < 2 ? 0 : rank - 2, rank);
    graph_value *sb = laid_out(n, onnx_in(n, 4), rank ? rank - 1 : 0, rank);
    return requantize(n, acc, sa, sb, onnx_in(n, 6), onnx_in(n, 7));
}

bool onnx_op_qlinear_conv(onnx_node *n)
{
    if (!has_inputs(n, 8))
        return false;
    graph_value *x = centred(n, onnx_in(n, 0), onnx_in(n, 2), 0), *w = centred(n, onnx_in(n, 3), onnx_in(n, 5), 0);
    graph_value *acc = onnx_conv(n, x, w, onnx_in(n, 8));
    graph_value *sx = onnx_cast(n, onnx_in(n, 1), DT_F32), *sw = laid_out(n, onnx_in(n, 4), 1, onnx_rank(acc));
    return requantize(n, acc, sx, sw, onnx_in(n, 6), onnx_in(n, 7));
}

/* The specification's function body: the range is widened to hold zero, 255 steps of u8. */
bool onnx_op_dynamic_quantize(onnx_node *n)
{
    graph_value *x = onnx_in(n, 0), *zero = onnx_const_like(n, x, 0), *top = onnx_const_like(n, x, 255);
    graph_value *lo = onnx_binary(n, "minimum", onnx_reduce(n, "min", x, 0, NULL, false), zero);
    graph_value *hi = onnx_binary(n, "maximum", onnx_reduce(n, "max", x, 0, NULL, false), zero);
    graph_value *scale = onnx_binary(n, "divide", onnx_binary(n, "subtract", hi, lo), top);
    graph_value *z = onnx_binary(n, "subtract", zero, onnx_binary(n, "divide", lo, scale));
    z = onnx_unary(n, "round", onnx_emit(n, ONNX_ARGS("clip", 0, NULL, z, zero, top)));
    z = onnx_cast(n, z, DT_U8);
    onnx_alias(n, 1, scale);
    onnx_alias(n, 2, z);
    onnx_result(n, 0, ONNX_ARGS("qnn.quantize", 0, NULL, x, scale, z));
    return !n->failed;
}
