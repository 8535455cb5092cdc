/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of the attributes that convolutions and pools share; used by the type relations (graph/op/nn.c) and by the
 * compute definitions (te/op/nn.c), so that both see the same window. */
#ifndef LATHE_GRAPH_OP_NN_H
#define LATHE_GRAPH_OP_NN_H
#include "graph/op.h"

#define NN_MAX_SPATIAL 8u
/* Whether the sum of so many numbers of 8 bits fits into 32 bits; extents: positive. */
bool nn_sum_fits(dtype dt, uint32_t n, const int64_t *extents);
/* Whether numbers at two scales, powers of two, can be summed in 32 bits at the finer one. */
bool nn_scales_are_near(double a, double b);

/* Window of a convolution or pool over n spatial axes. */
typedef struct nn_window {
    uint32_t n;
    int64_t kernel[NN_MAX_SPATIAL], stride[NN_MAX_SPATIAL], dilation[NN_MAX_SPATIAL];
    int64_t pad_begin[NN_MAX_SPATIAL], pad_end[NN_MAX_SPATIAL];
} nn_window;

/* strides, pads, dilations with their defaults (1, 0, 1); kernel must be filled by the caller. Reports bad lengths and
 * values at the node. */
bool nn_window_read(compiler *c, const graph_node *n, uint32_t spatial, nn_window *out);
bool nn_has_border(const graph_node *n); /* pads that are not all 0 */

/* Weights of a convolution: logical O, I/groups and kernel extents, seen through kernel_layout. Blocks are 0 for the
 * plain layout, else the extents of one block of "OI..{block}o", "OI..{in_block}i{block}o" and
 * "OI..{in_block / granule}i{block}o{granule}i", where each lane has some inputs side by side, or
 * "OIHW{block}o{granule}w", where these are neighbors in a row. */
typedef struct nn_weights {
    dim out_channels, in_per_group;
    int64_t kernel[NN_MAX_SPATIAL];
    int64_t block, in_block, granule;
    bool in_rows; /* a granule lies along the last axis of the window */
    uint32_t spatial;
} nn_weights;
bool nn_weights_read(compiler *c, const graph_node *n, nn_weights *out);

/* Products of data, u8 or i8, by each two weights that lie side by side on the axis, 0 and 1, 2 and 3, ..., have sums
 * of 16 bits. */
bool nn_pairs_fit(dtype data, const tensor_data *w, uint32_t axis);
/* Whether n's weights, where they are known, keep to its attribute `pairs` (graph/op/promise.h). An error otherwise. */
bool nn_pairs_kept(compiler *c, const graph_node *n);
#define NN_PAIRS_BOUND 64 /* of each weight, where nn_pairs_fit whatever the others are */

/* v comes out of unpack_nibbles, and its numbers may be further from 0 than `most`. */
bool nn_nibbles_exceed(const graph_value *v, int64_t most);

/* Extent of the channel blocks that attribute `name` ("data_layout", "out_layout") states; 0: plain. Such data has one
 * axis more, the last: N, C / block, spatial, block. Channels that do not fill the last block leave lanes whose
 * contents nobody may read. */
int64_t nn_data_block(const graph_node *n, const char *name);
/* Whether the data or the result of a convolution or pool stands in blocks. */
bool nn_in_blocks(const graph_node *n);
/* Data of a convolution or pool: the plain layout, or blocks of the channels last. An error at the node otherwise. */
bool nn_check_data_layout(compiler *c, const graph_node *n, const char *name);

/* Two clips as one, each min(max(x, low), high): *low and *high, of the one behind, become those of both. */
void nn_clip_behind(int64_t first_low, int64_t first_high, int64_t *low, int64_t *high);

/* How the mean of a window is taken of its sum where halves round up: sum * M >> n, M = 2^k / terms, rounded. */
typedef struct nn_mean {
    int64_t k;
    bool wide; /* the product needs 64 bits */
} nn_mean;
/* most: terms of a whole window; scales: by how much n is more than k, where that is known. */
nn_mean nn_mean_of(int64_t most, bool known, int64_t scales);

/* A real number above 0 as multiplier * 2^(shift - 31), the multiplier in 2^30..2^31 - 1, as TensorFlow Lite rounds it;
 * both 0 where it is not above 0, or below 2^-32. */
void graph_fixed_scale(double real, int32_t *multiplier, int32_t *shift);

/* What qnn.softmax asks for: exp of the 256 differences of two numbers with that scale, each times one factor. It is
 * 2^-64 of onnxruntime's factor, which is as large as sums of `extent` of them allow: this rounds as that does, and the
 * product with the steps of a small scale stays finite. */
const tensor_data *graph_softmax_table(compiler *c, float scale, int64_t extent);

/* Extent of the last block in a layout of weights such as "OIHW16o" or "NK8n"; 0: none. */
int64_t nn_layout_block(const char *layout);
/* Inputs that lanes of packed weights have side by side, as in "OIHW4i16o4i" or "OIHW16o4w"; 0: none. */
int64_t nn_layout_granule(const char *layout);
/* These are neighbors in a row. */
bool nn_layout_in_rows(const char *layout);

/* Packed weights of a matrix product, "NK16n" or "NK16n4k": columns in a block, and products that a lane has side by
 * side; 0: none. */
void nn_weight_blocks(const graph_node *n, int64_t *out_lanes, int64_t *out_granule);

/* Padding of a transposed convolution with auto_pad and output_shape resolved (ONNX ConvTranspose): begin, end and
 * output extent per spatial axis. An output_shape over an open extent makes the padding open, too: in w it is -1. */
typedef struct nn_transpose_window {
    nn_window w;
    dim out[NN_MAX_SPATIAL], begin[NN_MAX_SPATIAL];
} nn_transpose_window;
bool nn_transpose_window_read(compiler *c, const graph_node *n, nn_transpose_window *out);
#endif
