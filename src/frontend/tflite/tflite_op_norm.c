/* SPDX-License-Identifier: Apache-2.0 */
/* L2_NORMALIZATION, of the last axis. Of bytes, one over the root of the sum of squares is a multiplier with a shift
 * for each row, by five steps of Newton's method in fixed point: fixed_inverse_root, on numbers of the run. */
#include "frontend/tflite/tflite_compose.h"

#define MOST_LENGTH ((INT64_C(1) << 29) / (255 * 255)) /* then no sum has to be divided first */
#define STEPS       13                                 /* 2 * 4^13 is 2^27 */

static bool floats(tflite_node *n, int64_t activation)
{
    graph_value *x = tflite_in(n, 0), *squares = tflite_binary(n, "multiply", x, x);
    graph_value *norm = tflite_unary(n, "sqrt", compose_reduced(n, "sum", squares, -1, true));
    norm = tflite_binary(n, "maximum", norm, tflite_number(n, DT_F32, (double)1e-6f));
    return tflite_result(n, 0, tflite_activated(n, tflite_binary(n, "divide", x, norm), activation));
}

/* The high half of 2 a b, in i64, halves up. */
static graph_value *product(tflite_node *n, graph_value *a, graph_value *b)
{
    return compose_down(n, compose_by(n, "add", tflite_binary(n, "multiply", a, b), INT64_C(1) << 30), 31);
}

/* x * 2^bits as a number of 32 bits. */
static graph_value *saturated_left(tflite_node *n, graph_value *x, int bits)
{
    graph_value *in[3] = {compose_by(n, "multiply", x, INT64_C(1) << bits), compose_number(n, DT_I64, INT32_MIN),
                          compose_number(n, DT_I64, INT32_MAX)};
    return tflite_emit(n, "clip", 3, in, 0, NULL);
}

typedef struct root {
    graph_value *multiplier, *exponent; /* multiplier * 2^(exponent - 31), in i64 */
} root;

static root inverse_root(tflite_node *n, graph_value *sum)
{
    graph_value *is_small = compose_by(n, "less", sum, 2), *v = compose_by(n, "maximum", sum, 2);
    graph_value *shift = compose_by(n, "multiply", sum, 0);
    shift = compose_by(n, "add", shift, 11);
    for (int i = 0; i < STEPS; i++) {
        graph_value *low = compose_by(n, "less", v, 1 << 27);
        v = compose_chosen(n, low, compose_by(n, "multiply", v, 4), v);
        shift = compose_chosen(n, low, compose_by(n, "add", shift, -1), shift);
    }
    graph_value *half = compose_down(n, compose_by(n, "add", compose_down(n, v, 1), 1), 1);
    graph_value *y = compose_number(n, DT_I64, 1 << 28), *more = compose_number(n, DT_I64, (1 << 28) + (1 << 27));
    for (int i = 0; i < 5; i++) {
        graph_value *cube = saturated_left(n, product(n, product(n, y, y), y), 6);
        y = saturated_left(n, tflite_binary(n, "subtract", product(n, more, y), product(n, half, cube)), 3);
    }
    y = product(n, y, compose_number(n, DT_I64, 1518500250)); /* sqrt(1/2) */
    graph_value *left = compose_by(n, "maximum", compose_by(n, "multiply", shift, -1), 0);
    y = tflite_binary(n, "left_shift", y, left);
    graph_value *exponent = compose_by(n, "minimum", compose_by(n, "multiply", shift, -1), 0);
    return (root){compose_chosen(n, is_small, compose_number(n, DT_I64, INT32_MAX), y),
                  compose_chosen(n, is_small, compose_number(n, DT_I64, 0), exponent)};
}

/* d times the root, rounded behind the product and behind the shift, halves away from 0 there. */
static graph_value *scaled(tflite_node *n, graph_value *d, const root *r, int more)
{
    graph_value *e = compose_by(n, "add", r->exponent, more), *left = compose_by(n, "maximum", e, 0);
    graph_value *right = compose_by(n, "maximum", compose_by(n, "multiply", e, -1), 0);
    graph_value *v = product(n, tflite_binary(n, "left_shift", d, left), r->multiplier);
    graph_value *one = compose_number(n, DT_I64, 1);
    graph_value *half = compose_down(n, tflite_binary(n, "left_shift", one, right), 1);
    graph_value *down = tflite_binary(n, "multiply", compose_down(n, v, 63), compose_by(n, "minimum", right, 1));
    v = tflite_binary(n, "add", tflite_binary(n, "add", v, half), down);
    return tflite_binary(n, "right_shift", v, right);
}

static bool numbers(tflite_node *n, int64_t activation)
{
    graph_value *x = tflite_in(n, 0);
    int64_t length = 0;
    tflite_scale s, y;
    if (!tflite_read_pair(n, &s, &y) || !compose_last_extent(n, x, &length))
        return false;
    if (length > MOST_LENGTH || activation != 0)
        return tflite_fail(n, DIAG_UNSUPPORTED, "rows of more than %lld bytes, or a fused activation, are not "
                           "supported yet", (long long)MOST_LENGTH);
    const bool is_signed = s.dt == DT_I8;
    graph_value *d = tflite_cast(n, tflite_centered(n, x, &s), DT_I64);
    const root r = inverse_root(n, compose_reduced(n, "sum", tflite_binary(n, "multiply", d, d), -1, true));
    /* the result has 128 steps in one: signed bytes come to them by the exponent, others before the product */
    graph_value *v = scaled(n, is_signed ? d : compose_by(n, "multiply", d, 128), &r, is_signed ? 7 : 0);
    v = compose_by(n, "add", v, is_signed ? 0 : 128);
    graph_value *in[3] = {v, compose_number(n, DT_I64, dtype_min_int(s.dt)),
                          compose_number(n, DT_I64, dtype_max_int(s.dt))};
    return tflite_result(n, 0, tflite_cast(n, tflite_emit(n, "clip", 3, in, 0, NULL), s.dt));
}

bool tflite_op_l2_norm(tflite_node *n)
{
    const tfl_l2_norm_options *o = n->options;
    return tflite_is_int(n, 0) ? numbers(n, o->fused_activation_function) : floats(n, o->fused_activation_function);
}
