/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of nodes, between the part of fusion that finds them and the part that makes functions of them. */
#ifndef LATHE_GRAPH_PASS_FUSE_H
#define LATHE_GRAPH_PASS_FUSE_H
#include "base/ptr_map.h"
#include "graph/op.h"

#define FUSE_MAX_NODES  40u
#define FUSE_MAX_PARAMS 12u

/* Nodes of one function that become one kernel. Only results of the tip leave the group. */
typedef struct fuse_group {
    VEC(uint32_t) nodes;      /* positions in the function's list */
    const graph_node *anchor; /* the out-fusable or reduction node; NULL: none */
    uint32_t tip;
} fuse_group;

/* A constant that goes into a primitive with the node that reads it as operand i: as a literal, or for its compute
 * definition to read. Others are parameters, and so are all numbers without `literals`. */
bool fuse_takes_constant(bool literals, const graph_node *n, uint32_t i);

/* Makes the group a primitive function of f's module and returns the call that stands for it; the call has taken over
 * the values that leave the group. Value marks hold the numbers of uses; rounded: graph/pass/rounded.h. */
graph_node *fuse_outline(compiler *c, graph_func *f, const fuse_group *g, const ptr_map *rounded, bool literals);
#endif
