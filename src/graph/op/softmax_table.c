/* SPDX-License-Identifier: Apache-2.0 */
/* The table of qnn.softmax where only a run knows how many terms a sum has: the run computes what graph_softmax_table
 * does. How far the exponentials are moved up depends on that number, and their last bits on how far. */
#include "graph/op/softmax_table.h"

#include <float.h>

enum { COUNT = 256 };

static graph_value *number(const graph_maker *m, dtype dt, double v)
{
    return m->constant(m->ctx, tensor_scalar_f64(m->c, dt, v));
}

static graph_value *unary(const graph_maker *m, const char *op, graph_value *x)
{
    return m->emit(m->ctx, op, 1, &x, 0, NULL);
}

static graph_value *binary(const graph_maker *m, const char *op, graph_value *a, graph_value *b)
{
    graph_value *in[2] = {a, b};
    return m->emit(m->ctx, op, 2, in, 0, NULL);
}

static graph_value *cast(const graph_maker *m, graph_value *x, dtype dt)
{
    const attr to = attr_dtype(m->c, "dtype", dt);
    return m->emit(m->ctx, "cast", 1, &x, 1, &to);
}

/* -255 to 0, in f64. */
static graph_value *differences(const graph_maker *m)
{
    const int64_t count = COUNT;
    double *down = arena_array(&m->c->mem, double, COUNT);
    for (int i = 0; i < COUNT; i++)
        down[i] = i - (COUNT - 1);
    return m->constant(m->ctx, tensor_dense(m->c, DT_F64, 1, &count, down));
}

/* A call at a time: in which order C evaluates the arguments of one is the compiler's choice. */
graph_value *graph_open_softmax_table(const graph_maker *m, graph_value *x, uint32_t axis, float scale)
{
    const attr part[2] = {attr_int(m->c, "start", axis), attr_int(m->c, "end", (int64_t)axis + 1)};
    graph_value *extent = m->emit(m->ctx, "shape_of", 1, &x, 2, part);
    graph_value *one = m->constant(m->ctx, tensor_scalar_i64(m->c, DT_I64, 1));
    graph_value *terms = cast(m, binary(m, "maximum", extent, one), DT_F32);
    graph_value *greatest = number(m, DT_F32, (double)FLT_MAX), *most = binary(m, "divide", greatest, terms);
    graph_value *room = cast(m, unary(m, "log", cast(m, most, DT_F64)), DT_F32), *wide = cast(m, room, DT_F64);
    graph_value *margin = number(m, DT_F64, 5), *left = binary(m, "subtract", wide, margin);
    graph_value *zero = number(m, DT_F64, 0);
    graph_value *by = number(m, DT_F64, (double)scale), *up = binary(m, "maximum", left, zero);
    graph_value *steps = differences(m), *moved = binary(m, "add", steps, binary(m, "divide", up, by));
    graph_value *t = cast(m, unary(m, "exp", binary(m, "multiply", moved, by)), DT_F32);
    graph_value *down = number(m, DT_F32, 0x1p-64);
    return binary(m, "multiply", t, down);
}
