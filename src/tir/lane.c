/* SPDX-License-Identifier: Apache-2.0 */
/* One lane of an expression of lanes, as an expression of one number: of a ramp its element, of a broadcast what it
 * repeats, of an operator that operator on lanes of its operands. */
#include "tir/lane.h"
#include "tir/build.h"
#include "tir/node.h"

#define MOST_ARGS 3u

static tir_expr_ref lane(compiler *c, tir_expr_ref e, uint32_t i)
{
    tir_expr_ref args[MOST_ARGS];
    if (e->type.lanes == 1)
        return e;
    if (e->kind == TIR_BROADCAST)
        return e->args[0];
    if (e->kind == TIR_RAMP)
        return tir_add(c, e->args[0], tir_mul(c, e->args[1], tir_int(c, e->type.dt, i)));
    if ((e->kind != TIR_BINOP && e->kind != TIR_CAST) || e->n_args > MOST_ARGS)
        return NULL;
    for (uint32_t k = 0; k < e->n_args; k++)
        if (!(args[k] = lane(c, e->args[k], i)))
            return NULL;
    return tir_node_rebuild(c, e, args);
}

/* The flat index of lane i. */
static tir_expr_ref lane_of(compiler *c, tir_expr_ref load, uint32_t i)
{
    tir_expr_ref idx[TIR_MAX_RANK];
    for (uint32_t k = 0; k < load->n_args; k++)
        if (!(idx[k] = lane(c, load->args[k], i)))
            return NULL;
    return tir_access_is_flat(load->u.buffer, load->n_args)
               ? idx[0]
               : tir_flat_index(c, idx[0]->type.dt, load->u.buffer, idx);
}

tir_expr_ref tir_first_lane(compiler *c, tir_expr_ref load)
{
    return lane_of(c, load, 0);
}

bool tir_lane_steps(tir_bounds *b, compiler *c, tir_expr_ref load, int64_t steps[TIR_TILE_LANES])
{
    tir_expr_ref first = load->n_args > 0 && load->type.lanes == TIR_TILE_LANES ? lane_of(c, load, 0) : NULL;
    for (uint32_t i = 0; i < TIR_TILE_LANES; i++) {
        tir_expr_ref at = first ? lane_of(c, load, i) : NULL;
        if (!at || !tir_is_int(tir_simplify(b, tir_sub(c, at, first)), &steps[i]))
            return false;
    }
    return true;
}

bool tir_is_row_of_tiles(const int64_t steps[TIR_TILE_LANES])
{
    return steps[1] == 1 && steps[2] == TIR_TILE_LANES && steps[3] == TIR_TILE_LANES + 1;
}

bool tir_constant_row_of_tiles(tir_bounds *b, compiler *c, tir_expr_ref e, int64_t *tile, uint32_t *row)
{
    int64_t steps[TIR_TILE_LANES], first = 0;
    if (e->kind != TIR_LOAD || e->n_args != 1 || e->args[0]->kind == TIR_RAMP || !tir_lane_steps(b, c, e, steps) ||
        !tir_is_row_of_tiles(steps) || !tir_is_int(tir_simplify(b, tir_first_lane(c, e)), &first) || first < 0 ||
        first % 2 != 0)
        return false;
    *tile = first / TIR_TILE_LANES;
    *row = (uint32_t)(first % TIR_TILE_LANES / 2);
    return true;
}

