/* SPDX-License-Identifier: Apache-2.0 */
/* Small helpers that several families of compute definitions share. */
#ifndef LATHE_TE_OP_UTIL_H
#define LATHE_TE_OP_UTIL_H
#include "te/te_op.h"

dtype te_acc_dtype(dtype dt);                  /* what sums of dt are kept in: f16, bf16 -> f32 */
tir_expr_ref te_lowest(compiler *c, dtype dt); /* -inf, or the smallest integer */
te_tensor *te_cast_to(te_graph *g, const char *name, te_tensor *t,
                      dtype dt); /* t itself when it has that type; inlined */
/* Operands that have one element, or may be left out: whether t has one, and what it is (NULL of NULL). */
bool te_is_one(const te_tensor *t);
tir_expr_ref te_read_one(te_graph *g, const te_tensor *t);
/* x - zero as dt; zero NULL: 0. */
tir_expr_ref te_centred(te_graph *g, dtype dt, tir_expr_ref x, tir_expr_ref zero);
tir_expr_ref te_in_bounds(te_graph *g, tir_expr_ref i, tir_expr_ref extent); /* 0 <= i && i < extent */
tir_expr_ref te_ceildiv(te_graph *g, tir_expr_ref a, int64_t d);
int64_t te_most_count(const te_graph *g, const te_tensor *t); /* elements, at most; 0: unknown */
/* The function has as many more multiply-adds as the product of `factors`, extents by te_most; what is unknown (0), or
 * more than a number holds, is not counted. */
void te_count_macs(te_graph *g, uint32_t n, const int64_t *factors);
tir_expr_ref te_wrap_index(te_graph *g, tir_expr_ref i, tir_expr_ref extent); /* i, or i + extent when negative */
tir_expr_ref te_clamp_index(te_graph *g, tir_expr_ref i,
                            tir_expr_ref extent); /* i, or the nearest position of an axis */
/* Operands of n that are numbers. Whether it is there; how many it has; number k of it as i64, a literal when it is a
 * constant. */
bool te_has_operand(const graph_node *n, uint32_t i);
int64_t te_operand_length(te_tensor *const *in, uint32_t i);
tir_expr_ref te_operand(te_graph *g, const graph_node *n, te_tensor *const *in, uint32_t i, int64_t k);
/* The kernel ends with PACKAGE_STATUS_SHAPE unless the condition holds: an operand that says a shape, and says what the
 * result's type does not. `what` names the operands. NULL holds. */
void te_check_shape(te_graph *g, const graph_node *n, tir_expr_ref holds, const char *what);
/* The kernel ends with PACKAGE_STATUS_INDEX unless the condition holds for all values of the axes. */
void te_check_range(te_graph *g, const graph_node *n, uint32_t n_axes, te_axis *const *axes, tir_expr_ref holds,
                    const char *what);
/* Whether i names an element of the axis, counted from the end when negative. */
tir_expr_ref te_names_element(te_graph *g, tir_expr_ref i, tir_expr_ref extent);
/* Checks that lengths[b] lies in 0..most for each b. */
void te_check_lengths(te_graph *g, const graph_node *n, const te_tensor *lengths, tir_expr_ref most);
/* Checks that each tuple of operand 1, along its last axis, names an element of operand 0's axes from `first` on. */
void te_check_tuples(te_graph *g, const graph_node *n, te_tensor *const *in, uint32_t first);
/* Checks that the entries of operand i are different axes of a tensor of that rank. */
void te_check_axes(te_graph *g, const graph_node *n, te_tensor *const *in, uint32_t i, uint32_t rank);
/* For extent hooks: out[k] is what `extent` says of the axis of that result where own symbol k of n is the extent. The
 * kernel ends with PACKAGE_STATUS_SHAPE when that is negative or above the symbol's bound. */
typedef tir_expr_ref (*te_extent_fn)(te_graph *g, void *ctx, uint32_t result, uint32_t axis);
bool te_own_extents(te_graph *g, const graph_node *n, te_extent_fn extent, void *ctx, te_tensor **out);
/* The number, or the nearest whose sums and differences with extents do not overflow. */
tir_expr_ref te_sane(te_graph *g, tir_expr_ref number);
/* The index whose row-major number is `flat`. */
void te_unflatten(te_graph *g, tir_expr_ref flat, uint32_t rank, tir_expr_ref const *extents, tir_expr_ref *idx);
/* A reduction axis called name0, name1, ...: the names of a stage's axes must differ. */
te_axis *te_numbered_axis(te_graph *g, const char *name, uint32_t number, tir_expr_ref extent);
/* a stands before b in the order of op, TIR_GT (larger ones first) or TIR_LT: op holds, or a is NaN and b is a number.
 * docs/reference/operators.md has the rule for NaN. */
tir_expr_ref te_beats(compiler *c, tir_op op, tir_expr_ref a, tir_expr_ref b);
/* a equals b, or both are NaN. */
tir_expr_ref te_ties(compiler *c, tir_expr_ref a, tir_expr_ref b);
/* Pairs of value and index (reduce.c): keeps the better value; among equals the smaller index, or the larger when
 * `last`. */
const te_reducer *te_arg_reducer(te_graph *g, dtype dt, bool want_max, bool last);
#endif
