/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of computing a stage where it is read, instead of storing it. */
#ifndef LATHE_TE_INLINE_H
#define LATHE_TE_INLINE_H
#include "te/te.h"
#include "tir/map.h"

/* Operations of n's expressions, index arithmetic left out: its own, and with those of all that is inlined in it. */
typedef struct te_operations {
    uint32_t own, whole;
} te_operations;
/* inlined: which nodes are; te_note_inlined adds one. Counts end at UINT32_MAX / 2. */
te_operations te_count_operations(const te_graph *g, const te_node *n, const tir_map *inlined);
void te_note_inlined(tir_map *inlined, const te_node *n, te_operations o);
/* Reads of n by other computations, 100 for each by a node that wants it stored; under a reduction one counts twice. */
uint32_t te_uses_of(te_graph *g, const te_node *n);
/* Whether n has the tag TE_LITERAL: what is inlined of it is a number, whatever it is made of. */
bool te_is_literal(const te_node *n);
#endif
