/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of the window functions. */
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

/* a0 - a1 cos(2 pi i / N) + a2 cos(4 pi i / N); target: the three weights. N is the size, less one when not periodic. */
bool onnx_op_window(onnx_node *n)
{
    char *end = NULL;
    double a0 = strtod(n->row->target, &end), a1 = strtod(end, &end), a2 = strtod(end, &end);
    graph_value *size = onnx_in(n, 0);
    dtype dt = onnx_attr_dtype(n, "output_datatype", DT_F32);
    bool periodic = onnx_attr_int(n, "periodic", 1) != 0;
    if (!size || onnx_rank(size) != 0)
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
