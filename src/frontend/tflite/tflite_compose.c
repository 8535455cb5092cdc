/* SPDX-License-Identifier: Apache-2.0 */
/* What importers share that compose many operators: see tflite_compose.h. */
#include "frontend/tflite/tflite_compose.h"

#define MOST_POSITIONS ((int64_t)1 << 20)

bool compose_last_extent(tflite_node *n, const graph_value *x, int64_t *out)
{
    const int32_t rank = x->type.shape.rank;
    *out = 0;
    if (!n->failed && rank < 1)
        return tflite_fail(n, DIAG_TYPE, "its data is a single number; a vector is needed");
    return tflite_extent(n, x, (uint32_t)(rank - 1), out);
}

graph_value *compose_number(tflite_node *n, dtype dt, int64_t v)
{
    return tflite_const(n, tensor_scalar_i64(n->c, dt, v), "");
}

graph_value *compose_down(tflite_node *n, graph_value *x, int64_t bits)
{
    return n->failed || bits == 0 ? x : tflite_binary(n, "right_shift", x, compose_number(n, x->type.dt, bits));
}

graph_value *compose_by(tflite_node *n, const char *op, graph_value *x, int64_t v)
{
    return n->failed ? x : tflite_binary(n, op, x, compose_number(n, x->type.dt, v));
}

graph_value *compose_chosen(tflite_node *n, graph_value *condition, graph_value *x, graph_value *y)
{
    graph_value *in[3] = {condition, x, y};
    return tflite_emit(n, "where", 3, in, 0, NULL);
}

graph_value *compose_reduced(tflite_node *n, const char *op, graph_value *x, int64_t axis, bool keeps)
{
    const attr attrs[2] = {attr_ints(n->c, "axes", 1, &axis), attr_int(n->c, "keepdims", keeps)};
    return tflite_emit(n, op, 1, &x, 2, attrs);
}

graph_value *compose_entry(tflite_node *n, graph_value *table, graph_value *at)
{
    graph_value *in[2] = {table, at};
    return tflite_emit(n, "take", 2, in, 0, NULL);
}

graph_value *compose_product(tflite_node *n, graph_value *a, graph_value *b)
{
    return compose_down(n, compose_by(n, "add", tflite_binary(n, "multiply", a, b), INT64_C(1) << 30), 31);
}

graph_value *compose_saturated_left(tflite_node *n, graph_value *x, int bits)
{
    graph_value *in[3] = {compose_by(n, "multiply", x, INT64_C(1) << bits), compose_number(n, DT_I64, INT32_MIN),
                          compose_number(n, DT_I64, INT32_MAX)};
    return tflite_emit(n, "clip", 3, in, 0, NULL);
}

graph_value *compose_divided(tflite_node *n, graph_value *x, int bits)
{
    graph_value *v = tflite_binary(n, "add", compose_by(n, "add", x, INT64_C(1) << (bits - 1)), compose_down(n, x, 63));
    return compose_down(n, v, bits);
}

graph_value *compose_scaled(tflite_node *n, graph_value *x, graph_value *multiplier, graph_value *exponent)
{
    graph_value *left = compose_by(n, "maximum", exponent, 0);
    graph_value *right = compose_by(n, "maximum", compose_by(n, "multiply", exponent, -1), 0);
    graph_value *v = compose_product(n, tflite_binary(n, "left_shift", x, left), multiplier);
    graph_value *one = compose_number(n, DT_I64, 1);
    graph_value *half = compose_down(n, tflite_binary(n, "left_shift", one, right), 1);
    graph_value *down = tflite_binary(n, "multiply", compose_down(n, v, 63), compose_by(n, "minimum", right, 1));
    v = tflite_binary(n, "add", tflite_binary(n, "add", v, half), down);
    return tflite_binary(n, "right_shift", v, right);
}

graph_value *compose_normalized(tflite_node *n, graph_value *x, graph_value **out_bits)
{
    *out_bits = compose_by(n, "multiply", x, 0);
    for (int bits = 16; bits > 0; bits /= 2) {
        graph_value *low = tflite_cast(n, compose_by(n, "less", x, INT64_C(1) << (31 - bits)), DT_I64);
        graph_value *by = compose_by(n, "multiply", low, bits);
        x = tflite_binary(n, "left_shift", x, by);
        *out_bits = tflite_binary(n, "add", *out_bits, by);
    }
    return x;
}

graph_value *compose_vector(tflite_node *n, uint32_t i, dtype dt, int64_t length, int64_t *out_length)
{
    graph_value *x = tflite_in(n, i);
    int64_t have = 0;
    if (!n->failed && (x->type.dt != dt || x->type.shape.rank != 1))
        (void)tflite_fail(n, DIAG_TYPE, "operand %u must be a vector of %s", i, dtype_name(dt));
    if (compose_last_extent(n, x, &have) && (have < 1 || (length && have != length)))
        (void)tflite_fail(n, DIAG_TYPE, "operand %u has %lld numbers; it must have %lld%s", i, (long long)have,
                          (long long)(length ? length : 1), length ? "" : " at least");
    *(out_length ? out_length : &have) = have;
    return x;
}

graph_value *compose_positions(tflite_node *n, int64_t count)
{
    if (count > MOST_POSITIONS) /* a file names a length in a few bytes */
        (void)tflite_fail(n, DIAG_UNSUPPORTED, "its vectors have %lld numbers; %lld at most are supported",
                          (long long)count, (long long)MOST_POSITIONS);
    if (n->failed)
        return &n->im->nothing;
    int32_t *data = arena_array(&n->c->mem, int32_t, (size_t)count + 1);
    for (int64_t i = 0; i < count; i++)
        data[i] = (int32_t)i;
    return tflite_const(n, tensor_dense(n->c, DT_I32, 1, &count, data), "");
}

graph_value *compose_joined(tflite_node *n, graph_value *a, graph_value *b, int64_t axis)
{
    graph_value *in[2] = {a, b};
    const attr at = attr_int(n->c, "axis", axis);
    return tflite_emit(n, "concatenate", 2, in, 1, &at);
}

graph_value *compose_slice(tflite_node *n, graph_value *x, int64_t axis, int64_t from, int64_t to)
{
    if (n->failed)
        return x;
    graph_value *in[4] = {x, tflite_const(n, tensor_from_i64s(n->c, 1, &from), "from"),
                          tflite_const(n, tensor_from_i64s(n->c, 1, &to), "to"),
                          tflite_const(n, tensor_from_i64s(n->c, 1, &axis), "axis")};
    return tflite_emit(n, "strided_slice", 4, in, 0, NULL);
}

graph_value *compose_rows(tflite_node *n, int64_t *rows, int64_t *length)
{
    graph_value *x = tflite_in(n, 0);
    const int32_t rank = x->type.shape.rank;
    int64_t extent = 0, all = 0;
    *rows = 1;
    *length = 0;
    if (!n->failed && rank < 1)
        (void)tflite_fail(n, DIAG_TYPE, "its data is a single number; a vector is needed");
    for (int32_t i = 0; i < rank && tflite_extent(n, x, (uint32_t)i, &extent); i++) {
        if (i + 1 < rank && !i64_mul(*rows, extent, rows))
            (void)tflite_fail(n, DIAG_TYPE, "its data is too large");
        *length = extent;
    }
    if (!n->failed && !i64_mul(*rows, *length, &all))
        (void)tflite_fail(n, DIAG_TYPE, "its data is too large");
    if (!n->failed && (*rows < 1 || *length < 1))
        (void)tflite_fail(n, DIAG_TYPE, "its data is empty");
    return tflite_reshape(n, x, 2, (int64_t[]){*rows, *length});
}

graph_value *compose_with_rows(tflite_node *n, graph_value *y, uint32_t drop, uint32_t n_more, const int64_t *more)
{
    const shape s = tflite_in(n, 0)->type.shape;
    int64_t dims[TYPE_MAX_RANK];
    if (!n->failed && (uint32_t)s.rank - drop + n_more > TYPE_MAX_RANK)
        (void)tflite_fail(n, DIAG_TYPE, "its result has too many dimensions");
    if (n->failed)
        return y;
    uint32_t rank = (uint32_t)s.rank - drop;
    for (uint32_t i = 0; i < rank; i++)
        (void)dim_is_const(s.dims[i], &dims[i]);
    for (uint32_t i = 0; i < n_more; i++)
        dims[rank++] = more[i];
    return tflite_reshape(n, y, rank, dims);
}

bool compose_several(tflite_node *n, const char *op, uint32_t n_in, graph_value *const *in, const attr *a,
                     uint32_t n_out, graph_value **out)
{
    const char *names[4] = {"", "", "", ""};
    for (uint32_t i = 0; i < n_out; i++)
        out[i] = &n->im->nothing;
    if (n->failed)
        return false;
    graph_node *all = graph_add_node(n->f, graph_find_op(n->c, op), n_in, in, 1, a, n_out, names, n->loc);
    n->failed = !graph_infer_node(n->c, all);
    for (uint32_t i = 0; i < n_out && !n->failed; i++)
        out[i] = all->outputs[i];
    return !n->failed;
}

bool compose_top_k(tflite_node *n, graph_value *x, int64_t k, bool largest, graph_value *out[2])
{
    graph_value *in[2] = {x, tflite_const(n, tensor_from_i64s(n->c, 1, &k), "k")};
    const attr a = attr_int(n->c, "largest", largest);
    return compose_several(n, "topk", 2, in, &a, 2, out);
}
