/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of quantised operators: rows of qnn.*, i32 sums that are requantised. A model states its rounding as
 * metadata (lathe.rounding, written by `lathe quantize`); ONNX's own is to the nearest even. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

/* The model's rounding; fails the node when it is none that is known. */
static const char *rounding_of(onnx_node *n)
{
    const char *value = onnx_metadata(n->im, "lathe.rounding");
    if (value && strcmp(value, "half_up") != 0 && strcmp(value, "nearest_even") != 0)
        onnx_fail(n, DIAG_FORMAT, "lathe.rounding is '%.40s', neither half_up nor nearest_even", value);
    return value ? value : "nearest_even";
}

/* Into a type of less than a byte, or a float of 8 bits: integers by their range within a byte, floats of what
 * divided by the scale is, plus a zero point that is 0. */
static bool quantize_small(onnx_node *n, dtype small)
{
    const graph_op *op = graph_find_op(n->c, "qnn.quantize");
    const bool real = dtype_is_float(small);
    graph_value *in[3] = {onnx_in(n, 0), onnx_in(n, 1), onnx_optional(n, 2)};
    attr attrs[4] = {attr_dtype(n->c, "out_dtype", real ? DT_F32 : onnx_stored_dtype(small)),
                     attr_string(n->c, "rounding", rounding_of(n))};
    const uint32_t count = 2 + onnx_row_attrs(n, "axis block_size", op, attrs + 2);
    (void)onnx_has_attr(n, "output_dtype");
    if (in[2])
        in[2] = onnx_small_numbers(n, in[2], DT_F32);
    graph_value *y = onnx_emit(n, (onnx_args){op->name, 3, in, count, attrs});
    if (!real) {
        const double low = (double)dtype_min_int(small), high = (double)dtype_max_int(small);
        y = onnx_emit(n, ONNX_ARGS("clip", 0, NULL, y, onnx_const_like(n, y, low), onnx_const_like(n, y, high)));
    }
    return onnx_small_result(n, y, small);
}

bool onnx_op_quantize_linear(onnx_node *n)
{
    const dtype zero = onnx_small_of(n->im, onnx_optional(n, 2));
    const bool given = onnx_attr_int(n, "output_dtype", 0) != 0; /* onnxruntime's optimizer writes 0 for none */
    const dtype asked = given ? onnx_attr_dtype(n, "output_dtype", zero) : zero;
    if (onnx_small_of(n->im, onnx_in(n, 0)) != DT_NONE || onnx_small_of(n->im, onnx_in(n, 1)) != DT_NONE)
        return onnx_fail(n, DIAG_UNSUPPORTED, "data or scale are codes of small numbers, which cannot be quantized");
    if (zero != DT_NONE && asked != zero)
        return onnx_fail(n, DIAG_TYPE, "output_dtype %s differs from the zero point's %s", dtype_name(asked),
                         dtype_name(zero));
    if (onnx_is_small(asked))
        return quantize_small(n, asked);
    const graph_op *op = graph_find_op(n->c, "qnn.quantize");
    attr attrs[8] = {attr_string(n->c, "rounding", rounding_of(n))};
    uint32_t count = n->failed ? 1 : 1 + onnx_row_attrs(n, n->row->attrs, op, attrs + 1);
    onnx_result(n, 0, (onnx_args){op->name, n->n_in, n->in, count, attrs});
    return !n->failed;
}

/* Codes of floats become floats first; their zero point is 0. */
bool onnx_op_dequantize_linear(onnx_node *n)
{
    const dtype dt = onnx_small_of(n->im, onnx_in(n, 0));
    graph_value *scale = onnx_small_numbers(n, onnx_in(n, 1), DT_F32);
    if (!dtype_is_float(dt) && scale == onnx_in(n, 1))
        return onnx_op_direct(n);
    const graph_op *op = graph_find_op(n->c, "qnn.dequantize");
    graph_value *in[3] = {onnx_small_numbers(n, onnx_in(n, 0), DT_F32), scale,
                          dtype_is_float(dt) ? NULL : onnx_optional(n, 2)};
    attr attrs[4];
    const uint32_t count = onnx_row_attrs(n, n->row->attrs, op, attrs);
    onnx_result(n, 0, (onnx_args){op->name, 3, in, count, attrs});
    return !n->failed;
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

graph_value *onnx_requantize(onnx_node *n, graph_value *acc, graph_value *sa, graph_value *sb, int64_t axis,
                             uint32_t y_scale)
{
    compiler *c = n->c;
    attr attrs[2] = {attr_int(c, "axis", axis), attr_string(c, "rounding", rounding_of(n))};
    return onnx_emit(n, ONNX_ARGS("qnn.requantize", 2, attrs, acc, onnx_binary(n, "multiply", sa, sb),
                                       onnx_cast(n, onnx_optional(n, y_scale), DT_F32), onnx_optional(n, y_scale + 1)));
}

static bool requantize(onnx_node *n, graph_value *acc, graph_value *sa, graph_value *sb, int64_t axis)
{
    return onnx_alias(n, 0, onnx_requantize(n, acc, sa, sb, axis, 6));
}

bool onnx_op_matmul_integer(onnx_node *n)
{
    return onnx_alias(n, 0, onnx_emit(n, ONNX_ARGS("qnn.matmul", 0, NULL, onnx_in(n, 0), onnx_in(n, 1),
                                                   onnx_optional(n, 2), onnx_optional(n, 3))));
}

bool onnx_op_conv_integer(onnx_node *n)
{
    graph_value *in[4] = {onnx_in(n, 0), onnx_in(n, 1), onnx_optional(n, 2), onnx_optional(n, 3)};
    return onnx_alias(n, 0, onnx_conv(n, "qnn.conv", 4, in, NULL));
}

bool onnx_op_qlinear_matmul(onnx_node *n)
{
    graph_value *acc = onnx_emit(n, ONNX_ARGS("qnn.matmul", 0, NULL, onnx_in(n, 0), onnx_in(n, 3), onnx_in(n, 2),
                                              onnx_in(n, 5)));
    uint32_t rank = onnx_rank(acc);
    graph_value *sa = laid_out(n, onnx_in(n, 1), rank < 2 ? 0 : rank - 2, rank);
    return requantize(n, acc, sa, onnx_cast(n, onnx_in(n, 4), DT_F32), rank == 0 ? 1 : -1);
}

bool onnx_op_qlinear_conv(onnx_node *n)
{
    graph_value *in[4] = {onnx_in(n, 0), onnx_in(n, 3), onnx_in(n, 2), onnx_in(n, 5)};
    graph_value *acc = onnx_conv(n, "qnn.conv", 4, in, onnx_optional(n, 8));
    return requantize(n, acc, onnx_cast(n, onnx_in(n, 1), DT_F32), onnx_cast(n, onnx_in(n, 4), DT_F32), 1);
}

/* Of all of x: as one row, which has lanes. */
static graph_value *extreme(onnx_node *n, const char *op, graph_value *x)
{
    const int64_t all = -1, none = 0;
    return onnx_reshape_ints(n, onnx_reduce(n, op, onnx_reshape_ints(n, x, 1, &all), 0, NULL, true), 0, &none);
}

/* The specification's function body: the range is widened to hold zero, 255 steps of u8. onnxruntime takes the scale 1
 * where the range is empty, and so it is here: a division by 0 says nothing. */
graph_value *onnx_quantize_dynamically(onnx_node *n, graph_value *x, graph_value **out_scale, graph_value **out_zero)
{
    graph_value *zero = onnx_const_like(n, x, 0), *top = onnx_const_like(n, x, 255);
    graph_value *lo = onnx_binary(n, "minimum", extreme(n, "min", x), zero);
    graph_value *hi = onnx_binary(n, "maximum", extreme(n, "max", x), zero);
    graph_value *scale = onnx_binary(n, "divide", onnx_binary(n, "subtract", hi, lo), top);
    scale = onnx_where(n, onnx_binary(n, "equal", hi, lo), onnx_const_like(n, x, 1), scale);
    graph_value *z = onnx_binary(n, "subtract", zero, onnx_binary(n, "divide", lo, scale));
    z = onnx_unary(n, "round", onnx_emit(n, ONNX_ARGS("clip", 0, NULL, z, zero, top)));
    *out_scale = scale;
    *out_zero = onnx_cast(n, z, DT_U8);
    return onnx_emit(n, ONNX_ARGS("qnn.quantize", 0, NULL, x, scale, *out_zero));
}

bool onnx_op_dynamic_quantize(onnx_node *n)
{
    graph_value *scale, *zero, *y = onnx_quantize_dynamically(n, onnx_in(n, 0), &scale, &zero);
    onnx_alias(n, 1, scale);
    onnx_alias(n, 2, zero);
    return onnx_alias(n, 0, y);
}
