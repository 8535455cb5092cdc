/* SPDX-License-Identifier: Apache-2.0 */
/* What follows from the place on one axis alone: positions and weights of a resize. Where the extents are known, the
 * compiler computes them for each place, and finds arithmetic of integers that gives the same. */
#ifndef LATHE_TE_OP_ALONG_H
#define LATHE_TE_OP_ALONG_H
#include "te/op/util.h"

/* An expression of o, an i64, and of nothing else that is not constant. */
typedef tir_expr_ref (*te_along_fn)(te_graph *g, const void *ctx, tir_expr_ref o);

/* f(o), which is an i64, for 0 <= o < extent: as a quotient of integers where there is one, else as f says it. The
 * position moves by about `step` from one o to the next. */
tir_expr_ref te_position(te_graph *g, te_along_fn f, const void *ctx, tir_expr_ref o, tir_expr_ref extent,
                         double step);
/* f(o), an f32: as a choice among a few numbers that repeat, where they do, else as f says it. */
tir_expr_ref te_weight(te_graph *g, te_along_fn f, const void *ctx, tir_expr_ref o, tir_expr_ref extent);
/* f(o) times 2^bits, which is a whole number everywhere, as an i32, in the same way. */
tir_expr_ref te_whole_weight(te_graph *g, te_along_fn f, const void *ctx, tir_expr_ref o, tir_expr_ref extent,
                             uint32_t bits);
/* f(o), an f32, as a stage that rows share; NULL where te_weight chooses among a few numbers, or no bound is known. */
te_tensor *te_weight_table(te_graph *g, const char *name, te_along_fn f, const void *ctx, tir_expr_ref extent);
/* f(o), an i64 that i32 holds, as such a stage; NULL where the extent is known, or no bound of it is. */
te_tensor *te_position_table(te_graph *g, const char *name, te_along_fn f, const void *ctx, tir_expr_ref extent);
/* i where it is an index of the axis, else what stands for those before it and behind it. These are conditions at which
 * loops are cut. */
tir_expr_ref te_on_axis(te_graph *g, tir_expr_ref i, tir_expr_ref extent, tir_expr_ref before, tir_expr_ref behind);
/* The index nearest to i, by such conditions (te_clamp_index is for indices from data). */
tir_expr_ref te_nearest_on_axis(te_graph *g, tir_expr_ref i, tir_expr_ref extent);
#endif
