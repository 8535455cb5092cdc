/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of two and more operands that is not in tflite_op_element.c, and products of matrices. */
#include "frontend/tflite/tflite_fixed.h"
#include "frontend/tflite/tflite_import.h"

#include <math.h>
#include <string.h>

/* Both operands at twice the larger scale with 7 more bits, the square of their difference. */
static graph_value *squared_numbers(tflite_node *n, graph_value *const *x)
{
    tflite_scale s[2], y;
    graph_value *v[2];
    if (!tflite_read_scale(n, 0, &s[0]) || !tflite_read_scale(n, 1, &s[1]) || !tflite_read_scale(n, TFLITE_RESULT, &y))
        return x[0];
    const double twice = 2.0 * (double)(s[0].scale > s[1].scale ? s[0].scale : s[1].scale);
    for (uint32_t i = 0; i < 2; i++) {
        v[i] = tflite_binary(n, "multiply", tflite_centered(n, x[i], &s[i]), tflite_i32(n, 1 << 7));
        v[i] = tflite_rescaled(n, v[i], (double)s[i].scale / twice, 0x1p15, NULL);
    }
    graph_value *d = tflite_binary(n, "subtract", v[0], v[1]);
    const double real = twice * twice / (0x1p14 * (double)y.scale);
    return tflite_rescaled(n, tflite_binary(n, "multiply", d, d), real, 0x1p30, &y);
}

bool tflite_op_squared_difference(tflite_node *n)
{
    graph_value *x[2], *y;
    bool image;
    if (!tflite_in_one_form(n, 2, x, &image))
        return false;
    if (tflite_is_int(n, 0)) {
        y = squared_numbers(n, x);
    } else {
        graph_value *d = tflite_binary(n, "subtract", x[0], x[1]);
        y = tflite_binary(n, "multiply", d, d);
    }
    return tflite_result_as(n, 0, y, image);
}

bool tflite_op_square(tflite_node *n)
{
    graph_value *x;
    bool image;
    return tflite_in_one_form(n, 1, &x, &image) && tflite_result_as(n, 0, tflite_binary(n, "multiply", x, x), image);
}

/* Toward the lower number; of integers what is left over is taken off first. */
bool tflite_op_floor_div(tflite_node *n)
{
    graph_value *x[2];
    bool image;
    if (!tflite_in_one_form(n, 2, x, &image) || n->failed)
        return false;
    const bool is_float = dtype_is_float(x[0]->type.dt);
    if (!is_float)
        x[0] = tflite_binary(n, "subtract", x[0], tflite_binary(n, "mod", x[0], x[1]));
    graph_value *y = tflite_binary(n, "divide", x[0], x[1]);
    return tflite_result_as(n, 0, is_float ? tflite_unary(n, "floor", y) : y, image);
}

bool tflite_op_add_n(tflite_node *n)
{
    graph_value **x = arena_array(&n->c->mem, graph_value *, (size_t)n->n_in + 1);
    bool image;
    tflite_scale s, y;
    if (!tflite_in_one_form(n, n->n_in, x, &image))
        return false;
    if (tflite_is_int(n, 0) && n->n_in > 1)
        return tflite_fail(n, DIAG_UNSUPPORTED, "sums of quantized numbers are not supported yet");
    if (tflite_is_int(n, 0) && !(tflite_read_scale(n, 0, &s) && tflite_read_scale(n, TFLITE_RESULT, &y)))
        return false;
    graph_value *sum = n->n_in == 1 ? tflite_unary(n, "copy", x[0]) : x[0];
    for (uint32_t i = 1; i < n->n_in; i++)
        sum = tflite_binary(n, "add", sum, x[i]);
    return tflite_result_as(n, 0, sum, image);
}

/* Numbers from 0 by one scale, those below by the product with a slope of their own. */
static graph_value *prelu_numbers(tflite_node *n, graph_value *const *x)
{
    tflite_scale s, a, y;
    if (!tflite_read_scale(n, 0, &s) || !tflite_read_scale(n, 1, &a) || !tflite_read_scale(n, TFLITE_RESULT, &y))
        return x[0];
    const float up = s.scale / y.scale, product = s.scale * a.scale, down = product / y.scale;
    graph_value *v = tflite_centered(n, x[0], &s), *by = tflite_binary(n, "multiply", v, tflite_centered(n, x[1], &a));
    graph_value *in[3] = {tflite_binary(n, "less", v, tflite_i32(n, 0)),
                          tflite_rescaled(n, by, (double)down, 0x1p16, &y), tflite_rescaled(n, v, (double)up, 255, &y)};
    return tflite_emit(n, "where", 3, in, 0, NULL);
}

bool tflite_op_prelu(tflite_node *n)
{
    graph_value *x[2];
    bool image;
    if (!tflite_in_one_form(n, 2, x, &image))
        return false;
    graph_value *y = tflite_is_int(n, 0) ? prelu_numbers(n, x) : tflite_binary(n, "nn.prelu", x[0], x[1]);
    return tflite_result_as(n, 0, y, image);
}

bool tflite_op_log_softmax(tflite_node *n)
{
    graph_value *x = tflite_in(n, 0);
    const attr last = attr_int(n->c, "axis", -1);
    return tflite_result(n, 0, tflite_emit(n, "nn.log_softmax", 1, &x, 1, &last));
}

/* --- products of matrices --- */

static graph_value *product_of_numbers(tflite_node *n, graph_value *const *x, const attr *attrs)
{
    tflite_scale a, b, y;
    const tflite_tensor *result = tflite_operand(n, TFLITE_RESULT);
    const bool wide = tflite_operand(n, 0)->type.dt == DT_I16;
    if (!tflite_read_scale(n, 0, &a) || !tflite_read_scale(n, 1, &b))
        return x[0];
    const attr all[3] = {attrs[0], attrs[1], attr_dtype(n->c, "out_dtype", wide ? DT_I64 : DT_I32)};
    graph_value *in[4] = {x[0], x[1], tflite_zero(n, &a), tflite_zero(n, &b)};
    graph_value *sums = tflite_emit(n, "qnn.matmul", 4, in, 3, all);
    if (result->type.dt == DT_I32)
        return sums;
    if (!tflite_read_scale(n, TFLITE_RESULT, &y))
        return sums;
    const float product = a.scale * b.scale;
    const double real = (double)product / (double)y.scale;
    return tflite_requantised(n, sums, 1, &real, -1, 0x1p62);
}

bool tflite_op_batch_matmul(tflite_node *n)
{
    const tfl_batch_matmul_options *o = n->options;
    graph_value *x[2] = {tflite_in(n, 0), tflite_in(n, 1)};
    const attr attrs[2] = {attr_int(n->c, "transpose_a", o->adj_x), attr_int(n->c, "transpose_b", o->adj_y)};
    if (n->failed || x[0]->type.dt != x[1]->type.dt)
        return tflite_fail(n, DIAG_UNSUPPORTED, "products of different types are not supported");
    return tflite_result(n, 0, tflite_is_int(n, 0) ? product_of_numbers(n, x, attrs)
                                                   : tflite_emit(n, "nn.matmul", 2, x, 2, attrs));
}
