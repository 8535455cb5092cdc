/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolutions of bytes as sums of products of pairs (row_pairs.c). */
#ifndef LATHE_TE_OP_ROW_PAIRS_H
#define LATHE_TE_OP_ROW_PAIRS_H
#include "graph/op/nn.h"
#include "te/te_op.h"

/* Whether node n, whose weights and window these are, can be made so: 8 bits, single channels in equal blocks, at least
 * two rows of taps that follow each other, no zero points of weights. */
bool te_pairs_rows(const graph_node *n, const nn_weights *w, const nn_window *win);
/* The sums of n in i32: stages `pair_data` and `pair_weights` and what adds up their products. */
te_tensor *te_conv_row_pairs(te_graph *g, const graph_node *n, te_tensor *const *in, const nn_window *win);
#endif
