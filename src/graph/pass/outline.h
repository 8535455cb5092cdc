/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of a function become a function of their own, and a call of it: what fusion, patterns and regions share. */
#ifndef LATHE_GRAPH_PASS_OUTLINE_H
#define LATHE_GRAPH_PASS_OUTLINE_H
#include "graph/op.h"

typedef struct outline_spec {
    const char *name;          /* of the function; made unique */
    graph_node *const *nodes;  /* of one function, each after those that make its operands */
    uint32_t n_nodes;
    graph_value *const *results; /* of those nodes: what leaves */
    uint32_t n_results;
    const attr *attrs; /* of the function */
    uint32_t n_attrs;
    /* Whether operand i of n, when it is a constant, becomes one inside of the function, and no parameter. */
    bool (*takes)(const void *context, const graph_node *n, uint32_t i);
    const void *context;
    src_loc loc; /* of the call */
} outline_spec;

/* Copies the nodes into a new function of f's module and returns a call of it, which is not in f's list yet and has
 * taken over the results: the same value objects. The nodes are to be taken out of the list. */
graph_node *graph_outline(compiler *c, graph_func *f, const outline_spec *s);
bool graph_is_shape_arg(const graph_node *n, uint32_t i); /* a short constant that the operator reads as a shape */
/* Those, and constants of one element and splats. */
bool graph_is_literal(const graph_node *n, uint32_t i);
#endif
