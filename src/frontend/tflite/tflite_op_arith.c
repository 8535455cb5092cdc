/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of two and more operands that is not in tflite_op_element.c, and products of matrices. */
#include "frontend/tflite/tflite_compose.h"
#include "frontend/tflite/tflite_fixed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Both operands at twice the larger scale, bytes with 7 more bits, the square of their difference. */
static graph_value *squared_numbers(tflite_node *n, graph_value *const *x)
{
    tflite_scale s[2], y;
    graph_value *v[2];
    if (!tflite_read_scale(n, 0, &s[0]) || !tflite_read_scale(n, 1, &s[1]) || !tflite_read_scale(n, TFLITE_RESULT, &y))
        return x[0];
    const double twice = 2.0 * (double)(s[0].scale > s[1].scale ? s[0].scale : s[1].scale);
    const int more = dtype_bits(s[0].dt) == 8 ? 7 : 0;
    for (uint32_t i = 0; i < 2; i++) {
        v[i] = tflite_binary(n, "multiply", tflite_centered(n, x[i], &s[i]), tflite_i32(n, 1 << more));
        v[i] = tflite_rescaled(n, v[i], (double)s[i].scale / twice, 0x1p15, NULL);
    }
    graph_value *d = tflite_binary(n, "subtract", v[0], v[1]);
    const double real = twice * twice / ldexp((double)y.scale, 2 * more);
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

/* Sums of many numbers are made of half of each, with 20 more bits. The kernels begin them with the number 0 less the
 * zero point, as if it was the zero point less itself. */
#define SUM_BITS 19

graph_value *tflite_in_sums(tflite_node *n, graph_value *x, const tflite_scale *s)
{
    return tflite_binary(n, "multiply", tflite_centered(n, x, s), tflite_i32(n, 1 << SUM_BITS));
}

graph_value *tflite_of_sums(tflite_node *n, graph_value *sums, const tflite_scale *x, const tflite_scale *y)
{
    sums = tflite_binary(n, "add", sums, tflite_in_sums(n, tflite_i32(n, 0), x));
    return tflite_rescaled(n, sums, (double)x->scale / ldexp((double)y->scale, SUM_BITS), 0x1p31, y);
}

bool tflite_op_add_n(tflite_node *n)
{
    graph_value **x = arena_array(&n->c->mem, graph_value *, (size_t)n->n_in + 1);
    const bool is_int = tflite_is_int(n, 0);
    bool image;
    tflite_scale s = {0}, y = {0}, other;
    if (!tflite_in_one_form(n, n->n_in, x, &image) || (is_int && !tflite_read_pair(n, &s, &y)))
        return false;
    for (uint32_t i = 0; i < n->n_in && is_int; i++) {
        if (!tflite_read_scale(n, i, &other))
            return false;
        if (!tflite_same_scale(&s, &other))
            return tflite_fail(n, DIAG_UNSUPPORTED, "operands have different scales");
        x[i] = tflite_in_sums(n, x[i], &s);
    }
    graph_value *sum = n->n_in == 1 ? tflite_unary(n, "copy", x[0]) : x[0];
    for (uint32_t i = 1; i < n->n_in; i++)
        sum = tflite_binary(n, "add", sum, x[i]);
    return tflite_result_as(n, 0, is_int ? tflite_of_sums(n, sum, &s, &y) : sum, image);
}

/* --- DIV of bytes --- */

enum { MOST_NUMBER = 255 };

/* What the kernel makes of each number, less its zero point, from -255 to 255: without its leading bits, and how many
 * of them there were. One below 0 has one more if it is a power of two. */
static void dividends(tflite_node *n, graph_value **numbers, graph_value **bits)
{
    const int64_t count = 2 * MOST_NUMBER + 1;
    int64_t *v = arena_array(&n->c->mem, int64_t, (size_t)count), *b = arena_array(&n->c->mem, int64_t, (size_t)count);
    for (int64_t i = 0; i < count; i++) {
        const int64_t x = i - MOST_NUMBER;
        for (b[i] = 0; x != 0 && b[i] < 31 && llabs(2 * x + (x < 0)) * (INT64_C(1) << b[i]) < INT64_C(1) << 31;)
            b[i]++;
        v[i] = x * (INT64_C(1) << b[i]);
    }
    *numbers = tflite_const(n, tensor_dense(n->c, DT_I64, 1, &count, v), "");
    *bits = tflite_const(n, tensor_dense(n->c, DT_I64, 1, &count, b), "");
}

/* Reciprocals of amounts up to 255; that of 0 is 0. */
static void reciprocals(tflite_node *n, graph_value **numbers, graph_value **bits)
{
    const int64_t count = MOST_NUMBER + 1;
    int64_t *v = arena_array(&n->c->mem, int64_t, (size_t)count), *b = arena_array(&n->c->mem, int64_t, (size_t)count);
    v[0] = b[0] = 0;
    for (int64_t i = 1; i < count; i++) {
        int right;
        v[i] = fixed_reciprocal((int32_t)i, &right);
        b[i] = right;
    }
    *numbers = tflite_const(n, tensor_dense(n->c, DT_I64, 1, &count, v), "");
    *bits = tflite_const(n, tensor_dense(n->c, DT_I64, 1, &count, b), "");
}

static graph_value *quotient_of_numbers(tflite_node *n, graph_value *const *x)
{
    tflite_scale a, b, y;
    graph_value *numbers, *leading, *inverses, *right;
    if (!tflite_read_scale(n, 0, &a) || !tflite_read_scale(n, 1, &b) || !tflite_read_scale(n, TFLITE_RESULT, &y))
        return x[0];
    const float product = b.scale * y.scale, narrow = a.scale / product; /* LiteRT's, in 32 bits */
    const double wide = (double)a.scale / ((double)b.scale * (double)y.scale);
    const fixed_scale s = fixed_of(tflite_like_litert(n) ? (double)narrow : wide);
    graph_value *d = tflite_centered(n, x[0], &a), *v = tflite_centered(n, x[1], &b);
    d = compose_chosen(n, compose_by(n, "less", v, 0), compose_by(n, "multiply", d, -1), d);
    d = compose_by(n, "add", d, MOST_NUMBER);
    v = tflite_unary(n, "abs", v);
    dividends(n, &numbers, &leading);
    reciprocals(n, &inverses, &right);
    graph_value *q = compose_product(n, compose_entry(n, numbers, d), compose_entry(n, inverses, v));
    graph_value *down = tflite_binary(n, "add", compose_entry(n, leading, d), compose_entry(n, right, v));
    graph_value *exponent = compose_by(n, "add", compose_by(n, "multiply", down, -1), s.shift);
    /* C does not define the kernel's shift by 32 bits and more: nothing is left here */
    exponent = compose_by(n, "maximum", exponent, -62);
    q = compose_scaled(n, q, compose_number(n, DT_I64, s.multiplier), exponent);
    graph_value *in[3] = {compose_by(n, "add", q, y.zero), compose_number(n, DT_I64, dtype_min_int(y.dt)),
                          compose_number(n, DT_I64, dtype_max_int(y.dt))};
    return tflite_cast(n, tflite_emit(n, "clip", 3, in, 0, NULL), y.dt);
}

bool tflite_op_div(tflite_node *n)
{
    const tfl_div_options *o = n->options;
    graph_value *x[2];
    bool image;
    if (!tflite_is_int(n, 0))
        return tflite_op_binary(n);
    return tflite_in_one_form(n, 2, x, &image) &&
           tflite_result_as(n, 0, tflite_activated(n, quotient_of_numbers(n, x), o->fused_activation_function), image);
}

/* --- slopes --- */

/* Numbers from 0 by one scale, those below by the product with a slope of their own. */
static graph_value *prelu_numbers(tflite_node *n, graph_value *const *x)
{
    tflite_scale s, a, y;
    if (!tflite_read_scale(n, 0, &s) || !tflite_read_scale(n, 1, &a) || !tflite_read_scale(n, TFLITE_RESULT, &y))
        return x[0];
    const bool narrow = tflite_like_litert(n);
    const double up = tflite_factor(narrow, s.scale, 1, y.scale);
    const double down = tflite_factor(narrow, s.scale, a.scale, y.scale);
    graph_value *v = tflite_centered(n, x[0], &s), *by = tflite_binary(n, "multiply", v, tflite_centered(n, x[1], &a));
    graph_value *in[3] = {tflite_binary(n, "less", v, tflite_i32(n, 0)),
                          tflite_rescaled(n, by, down, 0x1p16, &y), tflite_rescaled(n, v, up, 255, &y)};
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
    const float narrow = a.scale * b.scale; /* LiteRT's, in 32 bits */
    const double product = tflite_like_litert(n) ? (double)narrow : (double)a.scale * (double)b.scale;
    const double real = product / (double)y.scale;
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
