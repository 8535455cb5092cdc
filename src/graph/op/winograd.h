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
    /* Without fractions: row i of G is multiplied by over[i], column i of A^T by back[i], and the result is over[i] *
     * back[i] times itself along each edge, the same for all i: squared, odd * 2^shift; inverse: of odd, modulo 2^32.
     * Products of transformed bytes fit into i32; their sums may wrap, because what comes out is taken modulo 2^32: a
     * result of 32 - shift bits is exact. */
    int32_t over[WINOGRAD_MAX_SIDE], back[WINOGRAD_MAX_SIDE];
    uint32_t shift, inverse;
} winograd_form;

/* tile 2 or 4; NULL: no such form. */
const winograd_form *winograd_form_of(int64_t tile);

/* Weights of the form in integers: [O, I, 3, 3] of i8 -> [side * side, ceil(O / block), ins / 2, block, 2] of i16,
 * `ins` an even number of input channels, those from I on 0. */
const tensor_data *winograd_integer_weights(compiler *c, const winograd_form *f, const tensor_data *w, int64_t block,
                                            int64_t ins);
/* Whether all sums of i8 weights by data of `dt` (u8, i8) come out of the form. */
bool winograd_integers_fit(const winograd_form *f, const tensor_data *w, dtype dt);

/* Tiles along the image that one part of the kernel takes at least: the smallest divisor of `tiles` that fills a
 * register tile to some degree. Parts are equal, so that none of their loops needs a guard. */
int64_t winograd_least_width(int64_t tiles);
#endif
