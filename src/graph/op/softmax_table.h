/* SPDX-License-Identifier: Apache-2.0 */
/* The table of qnn.softmax along an axis of open extent, as nodes. */
#ifndef LATHE_GRAPH_OP_SOFTMAX_TABLE_H
#define LATHE_GRAPH_OP_SOFTMAX_TABLE_H
#include "graph/op/nn.h"

/* How whoever makes a graph appends to it. Both return NULL after an error, and take NULL for an operand then. */
typedef struct graph_maker {
    compiler *c;
    void *ctx;
    graph_value *(*emit)(void *ctx, const char *op, uint32_t n_in, graph_value *const *in, uint32_t n_attrs,
                         const attr *attrs);
    graph_value *(*constant)(void *ctx, const tensor_data *t);
} graph_maker;

/* What graph_softmax_table gives for the extent that axis of x has in a run. */
graph_value *graph_open_softmax_table(const graph_maker *m, graph_value *x, uint32_t axis, float scale);
#endif
