/* SPDX-License-Identifier: Apache-2.0 */
/* The table of a softmax that use-integers converts: a constant, or what each run computes where its axis is open. */
#include "graph/op/softmax_table.h"
#include "graph/pass/qnn.h"

typedef struct maker {
    rewriter *r;
    src_loc loc;
} maker;

static graph_value *emit(void *ctx, const char *op, uint32_t n_in, graph_value *const *in, uint32_t n_attrs,
                         const attr *attrs)
{
    const maker *m = ctx;
    return m->r->failed ? NULL : rewrite_emit(m->r, op, n_in, in, n_attrs, attrs, m->loc);
}

static graph_value *constant(void *ctx, const tensor_data *t)
{
    const maker *m = ctx;
    return rewrite_constant(m->r, t, "table", m->loc);
}

graph_value *qnn_softmax_table(rewriter *r, graph_value *x, uint32_t axis, float scale, src_loc loc)
{
    maker m = {r, loc};
    int64_t extent;
    if (dim_is_const(x->type.shape.dims[axis], &extent))
        return rewrite_constant(r, graph_softmax_table(r->c, scale, extent), "table", loc);
    return graph_open_softmax_table(&(graph_maker){r->c, &m, emit, constant}, x, axis, scale);
}
