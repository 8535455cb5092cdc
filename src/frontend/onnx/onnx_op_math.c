/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of element-wise operators that need more than a row: old broadcasting, operators of many inputs, attributes
 * that later became operands. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

bool onnx_op_identity(onnx_node *n)
{
    return onnx_alias(n, 0, onnx_in(n, 0));
}

/* Before operator set 7, B was laid over A's axes from `axis` on (from the last ones without it). */
static graph_value *align_legacy(onnx_node *n, graph_value *a, graph_value *b)
{
    uint32_t ra = onnx_rank(a), rb = onnx_rank(b);
    int64_t axis = onnx_attr_int(n, "axis", 0), ones[TYPE_MAX_RANK];
    if (!onnx_attr_int(n, "broadcast", 0) || !onnx_has_attr(n, "axis") || n->failed)
        return b;
    uint32_t at = rb == 0 ? 0 : onnx_axis(n, axis, ra), tail = ra - at - rb;
    if (n->failed || at + rb > ra)
        return onnx_refuse(n, DIAG_TYPE, "an operand of %u dimensions does not fit at axis %lld", rb, (long long)axis);
    for (uint32_t i = 0; i < tail; i++)
        ones[i] = rb + i;
    return onnx_expand_dims(n, b, tail, ones);
}

bool onnx_op_legacy_binary(onnx_node *n)
{
    graph_value *a = onnx_in(n, 0), *b = align_legacy(n, a, onnx_in(n, 1));
    onnx_result(n, 0, ONNX_ARGS(n->row->target, 0, NULL, a, b));
    return !n->failed;
}

/* Slope of one value per channel, before it had to be laid out for broadcasting. */
bool onnx_op_prelu_1(onnx_node *n)
{
    graph_value *x = onnx_in(n, 0), *slope = onnx_in(n, 1);
    int64_t ones[TYPE_MAX_RANK];
    uint32_t tail = onnx_rank(x) > 2 && onnx_rank(slope) == 1 ? onnx_rank(x) - 2 : 0;
    for (uint32_t i = 0; i < tail; i++)
        ones[i] = 1 + i;
    slope = onnx_expand_dims(n, slope, tail, ones);
    onnx_result(n, 0, ONNX_ARGS("nn.prelu", 0, NULL, x, slope));
    return !n->failed;
}

/* target: the operator between two; attrs "mean": times the reciprocal of the count at the end, as onnxruntime. */
bool onnx_op_variadic(onnx_node *n)
{
    bool mean = *n->row->attrs != '\0';
    graph_value *v = onnx_in(n, 0);
    for (uint32_t i = 1; i < n->n_in; i++) {
        onnx_args a = ONNX_ARGS(n->row->target, 0, NULL, v, n->in[i]);
        v = i + 1 == n->n_in && !mean ? onnx_result(n, 0, a) : onnx_emit(n, a);
    }
    if (n->n_in < 2)
        return onnx_alias(n, 0, v);
    if (mean)
        onnx_result(n, 0, ONNX_ARGS("multiply", 0, NULL, v, onnx_const_like(n, v, 1.0 / (double)n->n_in)));
    return !n->failed;
}

bool onnx_op_bit_shift(onnx_node *n)
{
    const char *dir = onnx_attr_string(n, "direction", "");
    bool left = strcmp(dir, "LEFT") == 0;
    if (!left && strcmp(dir, "RIGHT") != 0)
        return onnx_fail(n, DIAG_FORMAT, "direction must be LEFT or RIGHT");
    onnx_result(n, 0, ONNX_ARGS(left ? "left_shift" : "right_shift", 0, NULL, onnx_in(n, 0), onnx_in(n, 1)));
    return !n->failed;
}

bool onnx_op_clip_1(onnx_node *n)
{
    graph_value *x = onnx_in(n, 0), *lo = NULL, *hi = NULL;
    if (onnx_has_attr(n, "min"))
        lo = onnx_const_like(n, x, onnx_attr_float(n, "min", 0));
    if (onnx_has_attr(n, "max"))
        hi = onnx_const_like(n, x, onnx_attr_float(n, "max", 0));
    onnx_result(n, 0, ONNX_ARGS("clip", 0, NULL, x, lo, hi));
    return !n->failed;
}

/* The defaults of version 1 have fewer digits. */
bool onnx_op_selu_1(onnx_node *n)
{
    attr a[2] = {attr_float(n->c, "alpha", onnx_attr_float(n, "alpha", (double)1.6732f)),
                 attr_float(n->c, "gamma", onnx_attr_float(n, "gamma", (double)1.0507f))};
    onnx_result(n, 0, ONNX_ARGS("selu", 2, a, onnx_in(n, 0)));
    return !n->failed;
}

/* x as `to`, which may be a type of less than a byte or a float of 8 bits (onnx_small.c), as x may. */
static bool cast_to(onnx_node *n, graph_value *x, dtype to)
{
    attr a = attr_dtype(n->c, "dtype", to);
    const dtype from = onnx_small_of(n->im, x);
    const bool strings = onnx_is_strings(n->im, x);
    if (!n->failed && strings && to == DT_STRING)
        return onnx_alias(n, 0, x);
    if (!n->failed && to == DT_STRING)
        return onnx_alias(n, 0, onnx_number_text(n, onnx_small_numbers(n, x, DT_F32)));
    if (!n->failed && strings)
        x = onnx_text_number(n, onnx_text(n, x), to);
    if (n->failed || (from == to && from != DT_NONE))
        return !n->failed && onnx_alias(n, 0, x);
    x = onnx_small_numbers(n, x, to == DT_F16 || to == DT_BF16 || to == DT_F64 ? to : DT_F32);
    if (onnx_is_small(to))
        return onnx_small_result(n, x, to);
    onnx_result(n, 0, ONNX_ARGS("cast", 1, &a, x));
    return !n->failed;
}

/* Version 1 names the type: "FLOAT", "INT64". */
bool onnx_op_cast_1(onnx_node *n)
{
    static const struct {
        const char *name;
        dtype dt;
    } names[] = {{"FLOAT", DT_F32},   {"UINT8", DT_U8},   {"INT8", DT_I8},    {"UINT16", DT_U16},
                 {"INT16", DT_I16},   {"INT32", DT_I32},  {"INT64", DT_I64},  {"BOOL", DT_BOOL},
                 {"FLOAT16", DT_F16}, {"DOUBLE", DT_F64}, {"UINT32", DT_U32}, {"UINT64", DT_U64},
                 {"STRING", DT_STRING}};
    const char *to = onnx_attr_string(n, "to", "");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i].name, to) == 0)
            return cast_to(n, onnx_in(n, 0), names[i].dt);
    return onnx_fail(n, DIAG_FORMAT, "cannot cast to '%s'", to);
}

bool onnx_op_cast(onnx_node *n)
{
    const dtype to = onnx_attr_dtype(n, "to", DT_NONE);
    return to == DT_NONE ? onnx_op_direct(n) : cast_to(n, onnx_in(n, 0), to);
}

bool onnx_op_cast_like(onnx_node *n)
{
    if (!onnx_in(n, 1))
        return onnx_fail(n, DIAG_FORMAT, "input 1 is missing");
    const dtype small = onnx_small_of(n->im, onnx_in(n, 1));
    const dtype to = onnx_is_strings(n->im, onnx_in(n, 1)) ? DT_STRING : onnx_dtype(onnx_in(n, 1));
    return cast_to(n, onnx_in(n, 0), small == DT_NONE ? to : small);
}

bool onnx_op_bit_cast(onnx_node *n)
{
    dtype to = onnx_attr_dtype(n, "to", DT_NONE);
    if (n->failed || !onnx_in(n, 0) || to == DT_NONE)
        return onnx_fail(n, DIAG_FORMAT, "input 0 or the attribute 'to' is missing");
    attr a = attr_dtype(n->c, "dtype", to);
    onnx_result(n, 0, ONNX_ARGS("bit_cast", 1, &a, onnx_in(n, 0)));
    return !n->failed;
}

/* --- dropout --- */

/* Everything is kept: the mask is all ones. Before version 10 it has the type of the data. */
static bool keep_all(onnx_node *n, dtype mask)
{
    graph_value *x = onnx_in(n, 0);
    if (!onnx_alias(n, 0, x) || n->n_out < 2 || !n->out_names[1])
        return !n->failed;
    int64_t d[TYPE_MAX_RANK];
    uint8_t one[16] = {0};
    dtype_store_i64(mask, one, 1);
    if (shape_get(x->type.shape, d))
        return onnx_result_constant(n, 1, tensor_splat(n->c, mask, onnx_rank(x), d, one));
    attr value = attr_tensor(n->c, "value", tensor_splat(n->c, mask, 1, (int64_t[]){1}, one));
    graph_value *s = onnx_emit(n, ONNX_ARGS("shape_of", 0, NULL, x));
    onnx_result(n, 1, ONNX_ARGS("full", 1, &value, s));
    return !n->failed;
}

bool onnx_op_dropout_1(onnx_node *n)
{
    (void)onnx_attr_float(n, "ratio", 0.5);
    if (n->version < 7 && !onnx_attr_int(n, "is_test", 0) && n->n_out > 1 && n->out_names[1])
        return onnx_fail(n, DIAG_UNSUPPORTED, "dropout while training is not supported in this version of it");
    return keep_all(n, n->version < 10 ? onnx_dtype(onnx_in(n, 0)) : DT_BOOL);
}

bool onnx_op_dropout(onnx_node *n)
{
    graph_value *ratio = onnx_optional(n, 1), *training = onnx_optional(n, 2);
    double r = 0.5, t = 0;
    const bool known = !training || onnx_float_of(training, &t), given = ratio && !onnx_float_of(ratio, &r);
    if (known && (t == 0 || (!given && r == 0)))
        return keep_all(n, DT_BOOL);
    return onnx_dropout_training(n, known ? NULL : training, ratio);
}
