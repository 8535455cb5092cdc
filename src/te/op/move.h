/* SPDX-License-Identifier: Apache-2.0 */
/* What the compute definitions of operators that move data share (te/op/shape.c, te/op/gather.c). */
#ifndef LATHE_TE_OP_MOVE_H
#define LATHE_TE_OP_MOVE_H
#include "te/op/util.h"

typedef struct move_ctx {
    const graph_node *n;
    te_tensor *const *in;
    const type *out;
    uint32_t rank; /* of the output */
    int32_t axis;
    uint32_t part; /* split: which result */
    tir_expr_ref offset;
} move_ctx;

/* Adds the stage of that result, which is cheap enough to be computed where it is read; fills in what v says of it. */
bool move_injective(te_graph *g, const graph_node *n, te_tensor *const *in, uint32_t result, te_body_fn body,
                    move_ctx *v, te_tensor **out);
#endif
