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

graph_value *graph_open_softmax_table(const graph_maker *m, graph_value *x, uint32_t axis, float scale)
{
    const attr part[2] = {attr_int(m->c, "start", axis), attr_int(m->c, "end", (int64_t)axis + 1)};
    graph_value *extent = m->emit(m->ctx, "shape_of", 1, &x, 2, part);
    graph_value *terms = binary(m, "maximum", extent, m->constant(m->ctx, tensor_scalar_i64(m->c, DT_I64, 1)));
    graph_value *most = binary(m, "divide", number(m, DT_F32, (double)FLT_MAX), cast(m, terms, DT_F32));
    graph_value *room = cast(m, unary(m, "log", cast(m, most, DT_F64)), DT_F32);
    room = binary(m, "subtract", cast(m, room, DT_F64), number(m, DT_F64, 5));
    room = binary(m, "maximum", room, number(m, DT_F64, 0));
    graph_value *by = number(m, DT_F64, (double)scale), *up = binary(m, "divide", room, by);
    graph_value *t = binary(m, "multiply", binary(m, "add", differences(m), up), by);
    return binary(m, "multiply", cast(m, unary(m, "exp", t), DT_F32), number(m, DT_F32, 0x1p-64));
}
