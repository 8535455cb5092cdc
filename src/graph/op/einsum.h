/* SPDX-License-Identifier: Apache-2.0 */
/* The equation of an Einsum, read once for the type relation and the compute definition. Every axis of every operand
 * gets a label: a letter, or one of the ellipsis axes counted from the right. */
#ifndef LATHE_GRAPH_OP_EINSUM_H
#define LATHE_GRAPH_OP_EINSUM_H
#include "graph/op.h"

#define EINSUM_LABELS   80u /* 52 letters, then ellipsis axes */
#define EINSUM_OPERANDS 8u

typedef struct einsum {
    uint32_t n_operands;
    uint32_t rank[EINSUM_OPERANDS];
    uint8_t label[EINSUM_OPERANDS][TYPE_MAX_RANK];
    uint32_t out_rank;
    uint8_t out[TYPE_MAX_RANK];
    dim extent[EINSUM_LABELS]; /* NULL: unused; 1 yields to larger (ellipsis axes broadcast) */
} einsum;

bool einsum_read(compiler *c, const graph_node *n, einsum *out);
#endif
