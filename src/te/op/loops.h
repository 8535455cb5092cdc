/* SPDX-License-Identifier: Apache-2.0 */
/* Vocabulary of compute definitions that are written as loops (te_extern), because no tensor expression says them. */
#ifndef LATHE_TE_OP_LOOPS_H
#define LATHE_TE_OP_LOOPS_H
#include "te/op/util.h"

typedef struct loops_ctx {
    const graph_node *n;
    te_tensor *const *in;
    int32_t axis;
    const void *more; /* what one operator has beside these */
} loops_ctx;

/* Fresh loop variables and their references for a nest over `rank` extents; the nest itself. */
void loops_vars(compiler *c, const char *prefix, uint32_t rank, const tir_var **vars, tir_expr_ref *idx);
tir_stmt *loops_nest(compiler *c, uint32_t rank, const tir_var *const *vars, tir_expr_ref const *extents,
                     tir_stmt *body);
/* The stage of n: its results, four at most, are written by what `build` makes of the first n_in operands. */
bool loops_extern(te_graph *g, const graph_node *n, te_tensor *const *in, uint32_t n_in, te_build_fn build,
                  loops_ctx *v, te_tensor **out);
/* The one element of a buffer, whose extents are all 1. */
tir_expr_ref loops_one(compiler *c, const tir_buffer *b);
/* A local variable: one number, to be allocated around its uses; its value; statements that change it. */
const tir_buffer *loops_number(compiler *c, const char *name, dtype dt);
tir_expr_ref loops_get(compiler *c, const tir_buffer *number);
tir_stmt *loops_set(compiler *c, const tir_buffer *number, tir_expr_ref value);
tir_stmt *loops_count_up(compiler *c, const tir_buffer *number);
/* The loops, which count up, between setting the counter to 0 and comparing it: another number than `want` ends the
 * kernel with PACKAGE_STATUS_SHAPE. */
tir_stmt *loops_counted(compiler *c, const tir_buffer *count, tir_stmt *loops, tir_expr_ref want, const char *message);
/* The number of elements of x that are not 0: i64[]. */
te_tensor *loops_count(te_graph *g, const te_tensor *x);
#endif
