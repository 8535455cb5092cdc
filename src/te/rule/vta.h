/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions for the VTA accelerator: the computation of a quantised layer on packed tensors and the schedule that
 * blocks it, both as text that te_parse and te_sched_parse read (docs/vta.md "2-D convolution"). */
#ifndef LATHE_TE_RULE_VTA_H
#define LATHE_TE_RULE_VTA_H
#include "te/te.h"

/* A layer: input height x width x in_channels (all in scalars) by a square kernel. Its tensors, with b rows and c lanes
 * of the device's tiles: data [batch/b, in/c, height, width, b, c], kernel [out/c, in/c, k, k, c, c] (the last two:
 * out, in), bias [out/c, b, c] int32, res [batch/b, out/c, rows, columns, b, c]. What follows the sums, in this order:
 * bias, half of what the shift drops, shift to the right, low and high limits, the cast to the input's type. */
#define TE_VTA_CONV_KEYS(X)                                              \
    X(batch, 0, "images; 0: one tile's rows")                            \
    X(height, 56, "input rows")                                          \
    X(width, 0, "input columns; 0: as many as rows")                     \
    X(in_channels, 64, "a multiple of the device's lanes")               \
    X(out_channels, 64, "a multiple of the device's lanes")              \
    X(kernel, 3, "rows and columns of the kernel")                       \
    X(stride, 1, "rows and columns from one output to the next")         \
    X(pad, -1, "zeros on every side, at most 15; -1: half the kernel")   \
    X(bias, 1, "1: a bias is added")                                     \
    X(shift, 8, "bits dropped, rounded half up; 0: none")                \
    X(low, -128, "least output")                                         \
    X(high, 127, "greatest output")                                      \
    X(tile_h, 0, "output rows of a tile; 0: chosen, as all that follow") \
    X(tile_w, 0, "output columns of a tile")                             \
    X(tile_ci, 0, "input channel blocks of a tile")                      \
    X(tile_co, 0, "output channel blocks of a tile")                     \
    X(oc_threads, 0, "virtual threads over output channels, 1 or 2")     \
    X(h_threads, 0, "virtual threads over output rows, 1 or 2")
typedef struct te_vta_conv {
#define X(key, value, help) int64_t key;
    TE_VTA_CONV_KEYS(X)
#undef X
} te_vta_conv;

/* Reads "key=value,key=value" over the defaults above. false after DIAG_USAGE. */
bool te_vta_conv_parse(compiler *c, const char *text, te_vta_conv *out);
/* Chooses what is 0 among the tiles and threads: of all blockings that fit c's device the one that moves the fewest
 * bytes. Checks the rest; a blocking that does not fit is refused with the scratchpad, its bytes, and one that does. */
bool te_vta_conv_plan(compiler *c, te_vta_conv *layer);
/* Computation and schedule of a planned layer. */
void te_vta_conv_print(compiler *c, const te_vta_conv *layer, writer *computation, writer *schedule);
/* Outputs per row or column. */
int64_t te_vta_conv_rows(const te_vta_conv *l);
int64_t te_vta_conv_columns(const te_vta_conv *l);
#endif
