/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of the window functions (HannWindow and its like) and of MelWeightMatrix. */
#include "frontend/onnx/onnx_import.h"

#include <math.h>
#include <stdlib.h>

/* i32 indices 0..size-1 as floats: constant when the size is, else counted at run time with the declared extent. */
static graph_value *indices(onnx_node *n, graph_value *size)
{
    const type *want = onnx_declared(n, 0);
    graph_value *zero = onnx_const_like(n, size, 0), *one = onnx_const_like(n, size, 1);
    n->expect = want && want->shape.rank == 1 ? &want->shape : NULL;
    graph_value *i = onnx_emit(n, ONNX_ARGS("arange", 0, NULL, zero, size, one));
    n->expect = NULL;
    return onnx_cast(n, i, DT_F32);
}

static graph_value *cosine(onnx_node *n, graph_value *angle, double times, double weight)
{
    graph_value *c = onnx_unary(n, "cos", onnx_binary(n, "multiply", angle, onnx_const_float(n, DT_F32, times)));
    return onnx_binary(n, "multiply", c, onnx_const_float(n, DT_F32, weight));
}

/* a0 - a1 cos(2 pi i / N) + a2 cos(4 pi i / N); target: the three weights. N is the size, less one when not periodic.
 */
bool onnx_op_window(onnx_node *n)
{
    char *end = NULL;
    double a0 = strtod(n->row->target, &end), a1 = strtod(end, &end), a2 = strtod(end, &end);
    graph_value *size = onnx_in(n, 0);
    dtype dt = onnx_attr_dtype(n, "output_datatype", DT_F32);
    bool periodic = onnx_attr_int(n, "periodic", 1) != 0;
    if (onnx_rank(size) != 0)
        return onnx_fail(n, DIAG_TYPE, "the size must be one number");
    graph_value *i = indices(n, size), *steps = onnx_cast(n, size, DT_F32);
    if (!periodic)
        steps = onnx_binary(n, "subtract", steps, onnx_const_float(n, DT_F32, 1));
    graph_value *angle = onnx_binary(n, "multiply", i, onnx_const_float(n, DT_F32, 2 * 3.14159265358979323846));
    angle = onnx_binary(n, "divide", angle, steps);
    graph_value *first = onnx_const_float(n, DT_F32, a0);
    graph_value *y = onnx_binary(n, "subtract", first, cosine(n, angle, 1, a1));
    if (a2 != 0)
        y = onnx_binary(n, "add", y, cosine(n, angle, 2, a2));
    return onnx_alias(n, 0, onnx_cast(n, y, dt));
}

/* --- MelWeightMatrix --- */

/* 0, 1, 2, ... along the axis, [n, 1] or [1, n], as f64: `count` of them, or the declared extent of the axis. */
static graph_value *positions(onnx_node *n, graph_value *count, uint32_t axis)
{
    const type *want = onnx_declared(n, 0);
    shape line = {0};
    dim d[2] = {dim_const(n->c, 1), dim_const(n->c, 1)};
    graph_value *zero = onnx_const_like(n, count, 0), *one = onnx_const_like(n, count, 1);
    if (want && want->shape.rank == 2) {
        line = shape_make(n->c, 1, &want->shape.dims[axis]);
        n->expect = &line;
    }
    graph_value *i = onnx_emit(n, ONNX_ARGS("arange", 0, NULL, zero, count, one));
    n->expect = NULL;
    d[axis] = onnx_dim(n, i, 0);
    return onnx_cast(n, onnx_reshape(n, i, 2, d), DT_F64);
}

static graph_value *number(onnx_node *n, double v)
{
    return onnx_const_float(n, DT_F64, v);
}

/* 2595 log10(1 + f / 700) */
static graph_value *mel_of(onnx_node *n, graph_value *hertz)
{
    graph_value *x = onnx_binary(n, "divide", onnx_cast(n, hertz, DT_F64), number(n, 700));
    x = onnx_unary(n, "log", onnx_binary(n, "add", x, number(n, 1)));
    return onnx_binary(n, "multiply", x, number(n, 2595 / log(10)));
}

/* The edges of the triangles, in numbers of the spectrum: `mels` are equally far apart. */
static graph_value *edges(onnx_node *n, graph_value *mels, graph_value *length, graph_value *rate)
{
    graph_value *x = onnx_unary(n, "exp", onnx_binary(n, "multiply", mels, number(n, log(10) / 2595)));
    x = onnx_binary(n, "multiply", onnx_binary(n, "subtract", x, number(n, 1)), number(n, 700));
    x = onnx_binary(n, "multiply", x, onnx_binary(n, "add", onnx_cast(n, length, DT_F64), number(n, 1)));
    return onnx_unary(n, "floor", onnx_binary(n, "divide", x, onnx_cast(n, rate, DT_F64)));
}

static graph_value *both(onnx_node *n, graph_value *a, graph_value *b)
{
    return onnx_binary(n, "logical_and", a, b);
}

/* Column i is a triangle with the edges i, i + 1 and i + 2 of equal steps in mels. What the edges are is rounded in
 * f64. */
bool onnx_op_mel_weight_matrix(onnx_node *n)
{
    graph_value *mels = onnx_in(n, 0), *length = onnx_in(n, 1), *rate = onnx_in(n, 2);
    dtype dt = onnx_attr_dtype(n, "output_datatype", DT_F32);
    for (uint32_t i = 0; i < 5; i++)
        if (onnx_rank(onnx_in(n, i)) != 0)
            return onnx_fail(n, DIAG_TYPE, "input %u must be one number", i);
    graph_value *low = mel_of(n, onnx_in(n, 3)), *high = mel_of(n, onnx_in(n, 4));
    graph_value *steps = onnx_binary(n, "add", onnx_cast(n, mels, DT_F64), number(n, 2));
    graph_value *step = onnx_binary(n, "divide", onnx_binary(n, "subtract", high, low), steps);
    graph_value *half = onnx_binary(n, "divide", length, onnx_const_like(n, length, 2));
    graph_value *j = positions(n, onnx_binary(n, "add", half, onnx_const_like(n, half, 1)), 0);
    graph_value *i = positions(n, mels, 1), *e[3];
    for (int k = 0; k < 3; k++) {
        graph_value *at = onnx_binary(n, "multiply", onnx_binary(n, "add", i, number(n, k)), step);
        e[k] = edges(n, onnx_binary(n, "add", at, low), length, rate);
    }
    graph_value *rise = onnx_binary(n, "subtract", e[1], e[0]), *fall = onnx_binary(n, "subtract", e[2], e[1]);
    graph_value *up = onnx_binary(n, "divide", onnx_binary(n, "subtract", j, e[0]), rise);
    up = onnx_where(n, onnx_binary(n, "equal", rise, number(n, 0)), number(n, 1), up);
    graph_value *down = onnx_binary(n, "divide", onnx_binary(n, "subtract", e[2], j), fall);
    graph_value *rises = both(n, onnx_binary(n, "greater_equal", j, e[0]), onnx_binary(n, "less_equal", j, e[1]));
    graph_value *falls = both(n, onnx_binary(n, "greater_equal", j, e[1]), onnx_binary(n, "less", j, e[2]));
    graph_value *y = onnx_where(n, falls, down, onnx_where(n, rises, up, number(n, 0)));
    return onnx_alias(n, 0, onnx_cast(n, y, dt));
}
