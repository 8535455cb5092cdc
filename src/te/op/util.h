/* SPDX-License-Identifier: Apache-2.0 */
/* Small helpers that several families of compute definitions share. */
#ifndef LATHE_TE_OP_UTIL_H
#define LATHE_TE_OP_UTIL_H
#include "te/te_op.h"

dtype te_acc_dtype(dtype dt);                  /* what sums of dt are kept in: f16, bf16 -> f32 */
tir_expr_ref te_lowest(compiler *c, dtype dt); /* -inf, or the smallest integer */
te_tensor *te_cast_to(te_graph *g, const char *name, te_tensor *t,
                      dtype dt); /* t itself when it has that type; inlined */
tir_expr_ref te_in_bounds(te_graph *g, tir_expr_ref i, tir_expr_ref extent); /* 0 <= i && i < extent */
tir_expr_ref te_ceildiv(te_graph *g, tir_expr_ref a, int64_t d);
int64_t te_static_count(const te_tensor *t);                                  /* elements; 0 when not static */
tir_expr_ref te_wrap_index(te_graph *g, tir_expr_ref i, tir_expr_ref extent); /* i, or i + extent when negative */
tir_expr_ref te_clamp_index(te_graph *g, tir_expr_ref i,
                            tir_expr_ref extent); /* i, or the nearest position of an axis */
/* The index whose row-major number is `flat`. */
void te_unflatten(te_graph *g, tir_expr_ref flat, uint32_t rank, tir_expr_ref const *extents, tir_expr_ref *idx);
/* A reduction axis called name0, name1, ...: the names of a stage's axes must differ. */
te_axis *te_numbered_axis(te_graph *g, const char *name, uint32_t number, tir_expr_ref extent);
#endif
