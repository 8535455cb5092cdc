/* SPDX-License-Identifier: Apache-2.0 */
/* A first layer's planes, side by side in rows of pixels (pixel_rows.c). */
#ifndef LATHE_GRAPH_PASS_PIXEL_ROWS_H
#define LATHE_GRAPH_PASS_PIXEL_ROWS_H
#include "graph/pass/rewrite.h"

/* A convolution over one plane. */
typedef struct pixel_rows {
    graph_value *data, *weights;
    int64_t strides[2], dilations[2];
} pixel_rows;

/* Whether the window of convolution n takes fewer products over rows of pixels, `granule` at a time, than over channels
 * filled to blocks of `block`, or as many where channels would have to be filled. Weights are constants, data is
 * plain. */
bool pixel_rows_pay(const graph_node *n, int64_t granule, int64_t block);
/* The convolution of x, n's data, as one over a plane: weights as many as fill granules. false after an error. */
bool pixel_rows_make(rewriter *r, const graph_node *n, graph_value *x, int64_t granule, pixel_rows *out);
#endif
