/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions over axes: means, sums, products, the largest and the least, any and all. */
#include "frontend/tflite/tflite_fixed.h"
#include "frontend/tflite/tflite_import.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The axes in rising order, each once. */
static bool reduced_axes(tflite_node *n, int32_t rank, int64_t *axes, uint32_t *count)
{
    int64_t given[TYPE_MAX_RANK * 2], at;
    bool marked[TYPE_MAX_RANK] = {false};
    uint32_t n_given;
    *count = 0;
    if (!tflite_ints(n, 1, "the axes", given, &n_given))
        return false;
    for (uint32_t i = 0; i < n_given; i++) {
        if (!tflite_axis(n, given[i], rank, &at))
            return false;
        marked[at] = true;
    }
    for (int32_t i = 0; i < rank; i++)
        if (marked[i])
            axes[(*count)++] = i;
    return true;
}

/* SUM of quantised numbers. LiteRT's reference kernel reads bytes of i8 as those of u8, which is a fault; here both are
 * as TensorFlow Lite Micro has them. */
static graph_value *sum_of_numbers(tflite_node *n, graph_value *x, const attr *attrs, int64_t count)
{
    tflite_scale s, y;
    if (!tflite_read_scale(n, 0, &s) || !tflite_read_scale(n, TFLITE_RESULT, &y))
        return x;
    graph_value *sum = tflite_emit(n, "sum", 1, (graph_value *[]){tflite_cast(n, x, DT_I32)}, 2, attrs);
    if (s.zero != 0)
        sum = tflite_binary(n, "subtract", sum, tflite_i32(n, s.zero * count));
    return tflite_rescaled(n, sum, (double)s.scale / (double)y.scale, 65535.0 * (double)count, &y);
}

/* The mean of numbers: their sum less the zero points, by a multiplier that is divided by the count first. */
static graph_value *mean_of_numbers(tflite_node *n, graph_value *x, const attr *attrs, int64_t count)
{
    tflite_scale s, y;
    compiler *c = n->c;
    if (!tflite_read_scale(n, 0, &s) || !tflite_read_scale(n, TFLITE_RESULT, &y))
        return x;
    fixed_scale f = fixed_of((double)s.scale / (double)y.scale);
    int up = 0;
    while (count >> (up + 1) && up < 32 && up < 31 + f.shift)
        up++;
    const int32_t multiplier = (int32_t)((((int64_t)f.multiplier) << up) / count);
    graph_value *sum = tflite_emit(n, "sum", 1, (graph_value *[]){tflite_cast(n, x, DT_I32)}, 2, attrs);
    if (s.zero != 0)
        sum = tflite_binary(n, "subtract", sum, tflite_number(n, DT_I32, (double)(s.zero * count)));
    graph_value *in[4] = {sum, tflite_const(n, tensor_scalar_i64(c, DT_I32, multiplier), "multiplier"),
                          tflite_const(n, tensor_scalar_i64(c, DT_I32, f.shift - up), "shift"), tflite_zero(n, &y)};
    const double range = dtype_bits(s.dt) == 16 ? 65535 : 255;
    const attr how[2] = {attr_dtype(c, "out_dtype", y.dt),
                         attr_int(c, "up", ldexp(range * (double)count, f.shift - up) > 0x1p30)};
    return tflite_emit(n, "qnn.rescale", 4, in, 2, how);
}

/* Bools are all true, or any. */
static graph_value *reduced_bools(tflite_node *n, const char *op, graph_value *x, const attr *attrs)
{
    x = tflite_cast(n, x, DT_U8);
    return tflite_cast(n, tflite_emit(n, op, 1, &x, 2, attrs), DT_BOOL);
}

/* target: the operator of the graph. */
bool tflite_op_reduce(tflite_node *n)
{
    const tfl_reducer_options *o = n->options;
    int64_t axes[TYPE_MAX_RANK], count = 1, extent;
    uint32_t n_axes;
    graph_value *x;
    bool image;
    if (!tflite_in_one_form(n, 1, &x, &image) || !reduced_axes(n, x->type.shape.rank, axes, &n_axes))
        return false;
    if (n_axes == 0)
        return tflite_result_as(n, 0, tflite_unary(n, "copy", x), image);
    /* over rows and columns both forms give the same without these axes; over others the plain one is taken */
    const bool whole = n_axes == 2 && axes[0] == 1 && axes[1] == 2;
    if (image && !whole && !o->keep_dims) {
        x = tflite_in(n, 0);
        image = false;
    }
    for (uint32_t i = 0; i < n_axes; i++) {
        axes[i] = image ? tflite_image_axis(axes[i]) : axes[i];
        if (!tflite_extent(n, x, (uint32_t)axes[i], &extent))
            return false;
        const int64_t most = dtype_bits(x->type.dt) == 16 ? INT16_MAX : 1 << 23; /* whose sums have 32 bits */
        if (extent < 1 || !i64_mul(count, extent, &count) || (tflite_is_int(n, 0) && count > most))
            return tflite_fail(n, DIAG_UNSUPPORTED, "%s elements would be reduced to "
                                                    "one", extent < 1 ? "no" : "too many");
    }
    const attr attrs[2] = {attr_ints(n->c, "axes", n_axes, axes), attr_int(n->c, "keepdims", o->keep_dims)};
    const char *op = n->row->target;
    const bool is_int = tflite_is_int(n, 0), sums = strcmp(op, "sum") == 0, means = strcmp(op, "mean") == 0;
    graph_value *y = n->failed               ? x
                     : x->type.dt == DT_BOOL ? reduced_bools(n, op, x, attrs)
                     : is_int && means       ? mean_of_numbers(n, x, attrs, count)
                     : is_int && sums        ? sum_of_numbers(n, x, attrs, count)
                                             : tflite_emit(n, op, 1, &x, 2, attrs);
    return tflite_result_as(n, 0, y, image && o->keep_dims);
}
