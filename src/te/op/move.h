/* SPDX-License-Identifier: Apache-2.0 */
/* What the compute definitions of operators that move data share (te/op/shape.c, slice.c, gather.c). */
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
move_ctx move_context(const graph_node *n, te_tensor *const *in);
/* Operands: whether operand i is there, how many entries it has, entry k of it as i64, the one element of it. */
bool move_has(const move_ctx *v, uint32_t i);
int64_t move_length(const move_ctx *v, uint32_t i);
tir_expr_ref move_operand(te_graph *g, const move_ctx *v, uint32_t i, int64_t k);
tir_expr_ref move_scalar(te_graph *g, const move_ctx *v, uint32_t i);
tir_expr_ref move_extent(te_graph *g, const move_ctx *v, int64_t a); /* of the result */
tir_expr_ref move_same(te_graph *g, tir_expr_ref a, tir_expr_ref b);
tir_expr_ref move_either(te_graph *g, tir_expr_ref a, tir_expr_ref b);
/* Row-major number of an index. */
tir_expr_ref move_flatten(te_graph *g, uint32_t rank, tir_expr_ref const *extents, tir_expr_ref const *idx);
#endif
