/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes of an index, one by one (lane.c): for vectors whose elements lie in two pieces of memory, as the rows of a tile
 * of sums do (type/dot.h). */
#ifndef LATHE_TIR_LANE_H
#define LATHE_TIR_LANE_H
#include "tir/simplify.h"
#include "tir/tir.h"

#define TIR_TILE_LANES 4u

/* Elements from lane 0 of a load of four lanes to each of them. false: these are no numbers. */
bool tir_lane_steps(tir_bounds *b, compiler *c, tir_expr_ref load, int64_t steps[TIR_TILE_LANES]);
/* Lanes 0 and 1, and 2 and 3, lie side by side in tiles that follow each other: a row of two tiles of two by two. */
bool tir_is_row_of_tiles(const int64_t steps[TIR_TILE_LANES]);
/* Load e has such a row, of tiles that are vectors from a constant element on: *tile is the first one's number, *row 0
 * or 1. */
bool tir_constant_row_of_tiles(tir_bounds *b, compiler *c, tir_expr_ref e, int64_t *tile, uint32_t *row);
/* The flat index of lane 0 of a load. NULL: an index is no arithmetic on ramps. */
tir_expr_ref tir_first_lane(compiler *c, tir_expr_ref load);
#endif
