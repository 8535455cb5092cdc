/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd's minimal filtering F(m x m, 3 x 3): what the type relations, the compute definitions and the pass that
 * chooses it share. A tile of m x m outputs needs (m+2)^2 multiplications per pair of channels, where the direct form
 * needs 9 m^2. Source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015. */
#ifndef LATHE_GRAPH_OP_WINOGRAD_H
#define LATHE_GRAPH_OP_WINOGRAD_H
#include "graph/op/nn.h"

#define WINOGRAD_KERNEL   3
#define WINOGRAD_MAX_TILE 4
#define WINOGRAD_MAX_SIDE (WINOGRAD_MAX_TILE + WINOGRAD_KERNEL - 1)

/* Y = A^T [(G g G^T) * (B^T d B)] A. Rows beyond `tile` or `side` are zero. */
typedef struct winograd_form {
    int64_t tile, side; /* outputs and inputs along one edge */
    double bt[WINOGRAD_MAX_SIDE][WINOGRAD_MAX_SIDE];
    double g[WINOGRAD_MAX_SIDE][WINOGRAD_KERNEL];
    double at[WINOGRAD_MAX_TILE][WINOGRAD_MAX_SIDE];
} winograd_form;

/* tile 2 or 4; NULL: no such form. */
const winograd_form *winograd_form_of(int64_t tile);

/* Tiles along the image that one part of the kernel takes at least: the smallest divisor of `tiles` that fills a
 * register tile to some degree. Parts are equal, so that none of their loops needs a guard. */
int64_t winograd_least_width(int64_t tiles);
#endif
