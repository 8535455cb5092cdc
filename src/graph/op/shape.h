/* SPDX-License-Identifier: Apache-2.0 */
/* What type relations share whose operands say shapes, axes, pads, sizes (graph/extent.c). */
#ifndef LATHE_GRAPH_OP_SHAPE_H
#define LATHE_GRAPH_OP_SHAPE_H
#include "graph/op.h"
#include "graph/shape_value.h"

bool infer_has(const graph_node *n, uint32_t i); /* operand i is there */
/* The elements of operand i as far as they are known, NULL for others. false: not even how many there are. */
bool infer_elements(compiler *c, const graph_node *n, uint32_t i, shape_value *out);
bool infer_knows_any(const shape_value *s);
/* floor(extent * scale) as f32 has it, where that is a number or an expression; NULL: only a run can tell. */
dim infer_scaled(compiler *c, dim extent, double scale);
/* A linear resize in which each result is a sum of two neighbors along each axis. */
bool resize_is_linear(const graph_node *n);
#define RESIZE_MOST_FRACTION 4u /* bits */
#define RESIZE_MOST_BITS     16 /* of all axes together: sums of bytes fit into i32 */
/* Whether the weights of a linear resize to those extents are whole numbers times 2 to minus *bits along each of *axes
 * axes that change. */
bool resize_whole_weights(const graph_node *n, shape to, uint32_t *bits, uint32_t *axes);
/* The operand as constant integers, TYPE_MAX_RANK at most. */
bool infer_ints(const graph_node *n, uint32_t i, int64_t *out, uint32_t *len);
/* The declared shape, which must have that rank (-1: any), or an error that says which operand should have been
 * constant. */
bool infer_as_declared(compiler *c, const graph_node *n, dtype dt, int32_t rank, const char *operand, type *out);
/* Whether operand i has so many entries, as far as that is known. */
bool infer_entries(compiler *c, const graph_node *n, uint32_t i, int64_t want);
/* How many entries operand i has is known: its loops are written out. */
bool infer_counted(compiler *c, const graph_node *n, uint32_t i);
/* The declared shape of a result of the data's rank. `within`: no extent is above the data's (a slice). An axis without
 * elements gives none. */
bool infer_moved_as_declared(compiler *c, const graph_node *n, bool within, const char *operand, type *out);
#endif
