/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes as they are written, without folding: for the parser, and for passes that rebuild a node with other children.
 */
#ifndef LATHE_TIR_NODE_H
#define LATHE_TIR_NODE_H
#include "tir/tir.h"

/* Lanes of a vector, at most: the interpreter's strip. */
#define TIR_MAX_LANES 256u
/* Dimensions of a buffer, at most. */
#define TIR_MAX_RANK  32u

tir_expr *tir_node_expr(compiler *c, tir_expr_kind kind, tir_op op, tir_type t, uint32_t n_args,
                        tir_expr_ref const *args);
struct tir_stmt *tir_node_stmt(compiler *c, tir_stmt_kind kind);
/* A copy that may be changed before it is shared. */
struct tir_stmt *tir_node_copy(compiler *c, tir_stmt *s);
/* A copy of e (same kind, op, payload) over other arguments, rebuilt by the folding constructors. */
tir_expr_ref tir_node_rebuild(compiler *c, tir_expr_ref e, tir_expr_ref const *args);
/* The access e (LOAD or ADDRESS) to another buffer, with other indices. */
tir_expr_ref tir_node_access(compiler *c, tir_expr_ref e, const tir_buffer *b, uint32_t n, tir_expr_ref const *indices);
/* An access by dimensions (strides apply), or flattened (one index from the buffer's address). */
static inline bool tir_access_is_flat(const tir_buffer *b, uint32_t n_indices)
{
    return n_indices == 1 && b->rank != 1;
}
/* The index of an element from the buffer's address, strides and offset included; dt is the type of indices. */
tir_expr_ref tir_flat_index(compiler *c, dtype dt, const tir_buffer *b, tir_expr_ref const *idx);
/* Whether op takes operands of type dt. */
bool tir_op_fits(tir_op op, dtype dt);
/* Whether an EXTERN occurs in e: such a value must be computed exactly once. */
bool tir_has_extern(tir_expr_ref e);
/* Calls fn for the expressions that stand directly in s (not those of nested statements). */
void tir_stmt_exprs(tir_stmt *s, void (*fn)(void *ctx, tir_expr_ref e), void *ctx);
#endif
