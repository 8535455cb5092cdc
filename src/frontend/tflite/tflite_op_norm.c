/* SPDX-License-Identifier: Apache-2.0 */
/* L2_NORMALIZATION and LOCAL_RESPONSE_NORMALIZATION, of the last axis, and RSQRT of 16 bits. One over the root, of
 * bytes of the sum of squares of each row, is a multiplier with a shift, by five steps of Newton's method in fixed
 * point: fixed_inverse_root, on numbers of the run. */
#include "frontend/tflite/tflite_compose.h"

#include <math.h>

#define MOST_LENGTH ((INT64_C(1) << 29) / (255 * 255)) /* then no sum has to be divided first */
#define STEPS       13                                 /* 2 * 4^13 is 2^27 */

static bool floats(tflite_node *n, int64_t activation)
{
    graph_value *x = tflite_in(n, 0), *squares = tflite_binary(n, "multiply", x, x);
    graph_value *norm = tflite_unary(n, "sqrt", compose_reduced(n, "sum", squares, -1, true));
    norm = tflite_binary(n, "maximum", norm, tflite_number(n, DT_F32, (double)1e-6f));
    return tflite_result(n, 0, tflite_activated(n, tflite_binary(n, "divide", x, norm), activation));
}

compose_root compose_inverse_root(tflite_node *n, graph_value *sum, bool wide)
{
    graph_value *is_small = compose_by(n, "less", sum, 2), *v = compose_by(n, "maximum", sum, 2);
    graph_value *shift = compose_by(n, "multiply", sum, 0);
    shift = compose_by(n, "add", shift, 11);
    if (wide) {
        graph_value *fits = compose_by(n, "less", v, 1 << 29);
        v = compose_chosen(n, fits, v, compose_down(n, v, 2));
        shift = compose_chosen(n, fits, shift, compose_by(n, "add", shift, 1));
    }
    for (int i = 0; i < STEPS; i++) {
        graph_value *low = compose_by(n, "less", v, 1 << 27);
        v = compose_chosen(n, low, compose_by(n, "multiply", v, 4), v);
        shift = compose_chosen(n, low, compose_by(n, "add", shift, -1), shift);
    }
    graph_value *half = compose_down(n, compose_by(n, "add", compose_down(n, v, 1), 1), 1);
    graph_value *y = compose_number(n, DT_I64, 1 << 28), *more = compose_number(n, DT_I64, (1 << 28) + (1 << 27));
    for (int i = 0; i < 5; i++) {
        graph_value *cube = compose_saturated_left(n, compose_product(n, compose_product(n, y, y), y), 6);
        graph_value *next = tflite_binary(n, "subtract", compose_product(n, more, y), compose_product(n, half, cube));
        y = compose_saturated_left(n, next, 3);
    }
    y = compose_product(n, y, compose_number(n, DT_I64, 1518500250)); /* sqrt(1/2) */
    graph_value *left = compose_by(n, "maximum", compose_by(n, "multiply", shift, -1), 0);
    y = tflite_binary(n, "left_shift", y, left);
    graph_value *exponent = compose_by(n, "minimum", compose_by(n, "multiply", shift, -1), 0);
    return (compose_root){compose_chosen(n, is_small, compose_number(n, DT_I64, INT32_MAX), y),
                          compose_chosen(n, is_small, compose_number(n, DT_I64, 0), exponent)};
}

/* d times the root, with so many more bits. */
static graph_value *by_root(tflite_node *n, graph_value *d, const compose_root *r, int more)
{
    return compose_scaled(n, d, r->multiplier, compose_by(n, "add", r->exponent, more));
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
    graph_value *sum = compose_reduced(n, "sum", tflite_binary(n, "multiply", d, d), -1, true);
    const compose_root r = compose_inverse_root(n, sum, false);
    /* the result has 128 steps in one: signed bytes come to them by the exponent, others before the product */
    graph_value *v = by_root(n, is_signed ? d : compose_by(n, "multiply", d, 128), &r, is_signed ? 7 : 0);
    v = compose_by(n, "add", v, is_signed ? 0 : 128);
    graph_value *in[3] = {v, compose_number(n, DT_I64, dtype_min_int(s.dt)),
                          compose_number(n, DT_I64, dtype_max_int(s.dt))};
    return tflite_result(n, 0, tflite_cast(n, tflite_emit(n, "clip", 3, in, 0, NULL), s.dt));
}

graph_value *tflite_wide_rsqrt(tflite_node *n, graph_value *v, const tflite_scale *x, const tflite_scale *y,
                               double real)
{
    graph_value *d = tflite_cast(n, tflite_centered(n, v, x), DT_I64);
    const compose_root r = compose_inverse_root(n, d, false);
    v = tflite_cast(n, by_root(n, compose_number(n, DT_I64, 1), &r, TFLITE_ROOT_BITS), DT_I32);
    v = tflite_rescaled(n, v, ldexp(real, -TFLITE_ROOT_BITS), ldexp(1, TFLITE_ROOT_BITS), y);
    return compose_chosen(n, compose_by(n, "less", d, 1), compose_number(n, y->dt, dtype_max_int(y->dt)), v);
}

bool tflite_op_l2_norm(tflite_node *n)
{
    const tfl_l2_norm_options *o = n->options;
    return tflite_is_int(n, 0) ? numbers(n, o->fused_activation_function) : floats(n, o->fused_activation_function);
}

/* --- LOCAL_RESPONSE_NORMALIZATION --- */

#define MOST_RADIUS 64

/* x (bias + alpha sum)^-beta, of the squares of neighboring channels: the last one of them is left out. */
bool tflite_op_local_response(tflite_node *n)
{
    const tfl_response_options *o = n->options;
    graph_value *x = tflite_in(n, 0), *sum = NULL;
    int64_t channels = 0;
    if (!compose_last_extent(n, x, &channels) || n->failed)
        return false;
    if (o->radius < 1 || o->radius > MOST_RADIUS)
        return tflite_fail(n, DIAG_UNSUPPORTED, "its radius is not between 1 and %d", MOST_RADIUS);
    const int32_t rank = x->type.shape.rank;
    int64_t pads[2 * TYPE_MAX_RANK] = {0};
    pads[rank - 1] = o->radius;
    pads[2 * rank - 1] = o->radius - 1;
    graph_value *squares = tflite_binary(n, "nn.pad", tflite_binary(n, "multiply", x, x),
                                         tflite_const(n, tensor_from_i64s(n->c, 2 * (uint32_t)rank, pads), "pads"));
    for (int64_t i = 0; i < 2 * o->radius; i++) {
        graph_value *part = compose_slice(n, squares, rank - 1, i, i + channels);
        sum = sum ? tflite_binary(n, "add", sum, part) : part;
    }
    sum = tflite_binary(n, "multiply", sum, tflite_number(n, DT_F32, (double)o->alpha));
    sum = tflite_binary(n, "add", sum, tflite_number(n, DT_F32, (double)o->bias));
    graph_value *by = tflite_binary(n, "power", sum, tflite_number(n, DT_F32, -(double)o->beta));
    return tflite_result(n, 0, tflite_binary(n, "multiply", x, by));
}
