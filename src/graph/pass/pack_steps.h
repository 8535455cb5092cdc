/* SPDX-License-Identifier: Apache-2.0 */
/* The part of pack-weights that makes lists of steps (graph/op/steps.h). */
#ifndef LATHE_GRAPH_PASS_PACK_STEPS_H
#define LATHE_GRAPH_PASS_PACK_STEPS_H
#include "graph/pass/packer.h"

/* Convolution n, qnn.conv2d, as lists of steps, where the target would else widen numbers and the lists come out short.
 * false: it stays, or an error. */
bool pack_steps_conv(packer *p, graph_node *n);
/* Product n, qnn.matmul, in the same way: a row of the data is an image of one pixel. */
bool pack_steps_matmul(packer *p, graph_node *n);
/* A constant that n, a sum, adds to sums and their offsets, a bias, is added to the offsets. */
void pack_steps_join_offsets(packer *p, graph_node *n);
#endif
