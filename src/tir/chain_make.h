/* SPDX-License-Identifier: Apache-2.0 */
/* What the loops of a chain (chain_make.c) take over from its plan (chain.c). */
#ifndef LATHE_TIR_CHAIN_MAKE_H
#define LATHE_TIR_CHAIN_MAKE_H
#include "tir/chain.h"

/* All dimensions before the axis are 1: lines lie one behind the other. */
bool chain_is_contiguous(const tir_buffer *b, int32_t axis);
bool chain_same_shape(const tir_buffer *a, const tir_buffer *b);
uint32_t chain_written(const tir_chain *x, uint32_t v); /* the writer's parameter for value v */
/* Before line y its driver wants lines 0 to min(step * y + first, all - 1) of the link; false: no such numbers. */
bool chain_demand(const tir_chain *x, uint32_t link, int64_t *step, int64_t *first);
#endif
