/* SPDX-License-Identifier: Apache-2.0 */
/* The audio front ends of TensorFlow Lite Micro, operators without memory: windows, spectra, banks of filters. All of
 * it is in integers, which wrap around and are cut off where the kernels' do. */
#include "frontend/tflite/tflite_import.h"

/* A vector's length, or the extent of the last axis. */
static bool last_extent(tflite_node *n, const graph_value *x, int64_t *out)
{
    const int32_t rank = x->type.shape.rank;
    *out = 0;
    if (!n->failed && rank < 1)
        return tflite_fail(n, DIAG_TYPE, "its data is a single number; a vector is needed");
    return tflite_extent(n, x, (uint32_t)(rank - 1), out);
}

static graph_value *whole(tflite_node *n, dtype dt, int64_t v)
{
    return tflite_const(n, tensor_scalar_i64(n->c, dt, v), "");
}

static graph_value *down(tflite_node *n, graph_value *x, int64_t bits)
{
    return n->failed || bits == 0 ? x : tflite_binary(n, "right_shift", x, whole(n, x->type.dt, bits));
}

/* Each frame of the data times the window. */
bool tflite_op_signal_window(tflite_node *n)
{
    graph_value *x = tflite_in(n, 0), *weights = tflite_in(n, 1);
    int64_t shift, last, length, dims[TYPE_MAX_RANK], count = 1;
    if (!tflite_custom_int(n, "shift", 0, 31, &shift) || !last_extent(n, x, &last) || !last_extent(n, weights, &length))
        return false;
    const uint32_t rank = (uint32_t)x->type.shape.rank;
    for (uint32_t i = 0; i < rank; i++)
        if (!tflite_extent(n, x, i, &dims[i]) || !i64_mul(count, dims[i], &count))
            return false;
    if (weights->type.shape.rank != 1 || weights->type.dt != DT_I16 || length < 1 || count % length != 0)
        return tflite_fail(n, DIAG_TYPE, "the window must be a vector of i16, and the data whole frames of its length");
    const bool by_rows = last == length;
    if (!by_rows)
        x = tflite_reshape(n, x, 2, (int64_t[]){count / length, length});
    x = tflite_binary(n, "multiply", tflite_cast(n, x, DT_I32), tflite_cast(n, weights, DT_I32));
    x = tflite_clipped(n, down(n, x, shift), INT16_MIN, INT16_MAX, DT_I16);
    return tflite_result(n, 0, by_rows ? x : tflite_reshape(n, x, rank, dims));
}
