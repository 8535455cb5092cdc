/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of qnn.conv2d_rows: a convolution of bytes, or of 16 bits by bytes, for processors whose only vectors are a
 * few values in a general register. Its kernel copies the rows under a line of results into a buffer of 16-bit numbers,
 * pixel after pixel and channel after channel, so that a window is one run of neighbors in each of its rows; weights
 * are packed in the same order. Used by the type relation, the pass that makes such nodes, and the definition. */
#ifndef LATHE_GRAPH_OP_ROWS_H
#define LATHE_GRAPH_OP_ROWS_H
#include "graph/op/nn.h"

#define ROWS_GRANULE 4 /* products that one step of the kernel adds */
#define ROWS_TILE    3 /* pixels by two channels: 6 sums, 4 registers of weights, 4 for data and addresses */
#define ROWS_LANES   16 /* the same where vectors of bytes are multiplied */
#define ROWS_NIBBLES 8 /* in a number of 32 bits */
#define ROWS_CHUNKS  "chunks" /* the tag of the stage with a chunk's sums */
#define ROWS_WORD    4 /* rows of a depthwise window that stand side by side there */

typedef struct rows_conv {
    nn_window win;                    /* over rows, columns */
    bool planar;                      /* the data is NCHW, else NHWC; the result is NHWC */
    bool depthwise;                   /* as many groups as channels of data and result */
    bool direct;                      /* one pixel, read as it is, in bytes: there is no buffer */
    bool patches;                     /* a few elements in each row of a window: the buffer holds whole windows */
    bool words;                       /* pairs of products by instructions that take words: the two behind it */
    bool tiled;                       /* of single pixels: those of a tile stand side by side, step by step */
    bool whole;                       /* a line's last tile is one of ROWS_TILE pixels, too: some are not used */
    /* Vectors of bytes are multiplied: the buffer holds i8 with the zero point (u8 less 128), which also stands in the
     * border; the sums have what it adds to them. */
    bool lanes;
    /* Data of 16 bits: the buffer holds i16 with the zero point (u16 less 32768), which also stands in the border; the
     * sums have what it adds to them. */
    bool halves;
    bool nibbles; /* weights of 4 bits, two in a byte; of sums over channels, and of what is read directly, for an even
                   * number of channels; of a depthwise window a row of up to ROWS_NIBBLES in a number. Of lanes, for
                   * an even number of channels: those of two neighboring ones */
    int64_t chunks; /* 16 bits: equal parts of a run's steps, in i32 each and in i64 together; 1: all in i32 */
    int64_t images, extent[2], in, out; /* of the data; channels of data and result */
    int64_t out_extent[2];
    int64_t pixel; /* elements of one pixel in the buffer: its channels, filled up where that keeps steps apart */
    int64_t taps;  /* runs in one row of a window: one where columns are neighbors */
    int64_t steps; /* steps of ROWS_GRANULE elements in a run, filled up to whole chunks; of a patch: in all of it */
    int64_t run;   /* lanes: elements of a run; of a patch: in all of it */
    int64_t line;  /* elements of a row of the buffer */
    int64_t block; /* channels of the result whose weights lie side by side in each step */
} rows_conv;

/* All that follows from attributes and the data's type; false after an error at the node. */
bool rows_conv_read(compiler *c, const graph_node *n, rows_conv *out);
/* The byte of a step's four (of a pair of channels) in which element e of channel c stands, and in which half of it: 0
 * is the upper one. */
int64_t rows_conv_nibble(const rows_conv *v, int64_t e, int64_t c, int64_t *out_half);
/* Whether weights of 4 bits have pairs of channels, all of them. */
bool rows_conv_has_pairs(const rows_conv *v);
/* Whether a convolution may read its data directly: one pixel, whose channels fill all steps. */
bool rows_conv_can_be_direct(const rows_conv *v);
/* The same from a window, for a node that is not made yet: out->win, planar, depthwise, images, extent, in, out and
 * chunks are given. false: the window does not fit into the input, or they are too large. */
bool rows_conv_derive(rows_conv *v);
/* Shape of the weights: depthwise [channels, rows, columns]; else blocks of result channels, rows, runs, steps,
 * channels of the block (0 for those that the last one does not have), elements of the step, where elements 1 and 2
 * have changed places: what an instruction that widens every second byte makes of them are neighbors again; with
 * direct they stand as they are. Of lanes: channels, rows (1: patches), runs, elements of the run. With nibbles the two
 * last are pairs of channels of the block, and four bytes: 2 * h + c has two weights of channel c of the pair, elements
 * h and h + 2 of the step (direct: 2 * h and 2 * h + 1), the first one in the upper half; depthwise [channels, rows],
 * element x of a row in bits 4 * x on. Of lanes the first extent counts pairs of channels, depthwise or not, whose
 * first one is in the upper half. */
uint32_t rows_conv_weights(const rows_conv *v, int64_t dims[6]);
dtype rows_conv_weight_type(const rows_conv *v);
#endif
