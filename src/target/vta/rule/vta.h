/* SPDX-License-Identifier: Apache-2.0 */
/* Layers for the VTA accelerator: a quantised layer in plain numbers becomes a computation on packed tensors and the
 * schedule that blocks it, by rule, for the device of the compiler (docs/explanation/vta.md "Layers"). */
#ifndef LATHE_TE_RULE_VTA_H
#define LATHE_TE_RULE_VTA_H
#include "te/schedule.h"
#include "te/te.h"

/* Tensors have b rows and c lanes of the device's tiles: data [batch/b, in/c, height, width, b, c], result
 * [batch/b, out/c, rows, columns, b, c], both of the input's type. Parameters stand in the order below; the result is
 * the last one.
 *   conv2d            data, kernel [out/c, in/groups/c, kh, kw, c, c] (the last two: out, in), bias, other.
 *                     A product of matrices is one of 1 x 1 pixels: width 0 with height 1, kernel 1, pad 0.
 *   conv2d_transpose  the same; the kernel's rows and columns are reversed, pad is that of the transposed convolution.
 *   max_pool2d, sum_pool2d  data, other: in_channels are out_channels; an average is a sum with `mul` and `shift`.
 *   upsampling        data, other: each pixel `stride` by `stride_w` times
 *   elementwise       data, bias, other
 *   add               data, other: (data << shift_a) + (other << shift_b), then shift, low and high
 * bias: [out/c, b, c] of the accumulator's type; other: as the result, present with `residual` and in add. */
#define TE_VTA_KINDS(X)                                                                     \
    X(TE_VTA_CONV, "conv2d", "a convolution, in groups or not")                             \
    X(TE_VTA_CONV_TRANSPOSE, "conv2d_transpose", "a transposed convolution")                \
    X(TE_VTA_MAX_POOL, "max_pool2d", "largest values of windows")                           \
    X(TE_VTA_SUM_POOL, "sum_pool2d", "sums of windows: averages by mul and shift")          \
    X(TE_VTA_UPSAMPLING, "upsampling", "each pixel several times")                          \
    X(TE_VTA_ELEMENTWISE, "elementwise", "bias, factor, shift and limits of every element") \
    X(TE_VTA_ADD, "add", "the sum of two tensors")

/* What follows the sums, in this order: bias, mul, shift, low and high; then with `residual` the result << shift_a plus
 * other << shift_b, sum_shift, sum_low and sum_high; the cast to the input's type. */
#define TE_VTA_LAYER_KEYS(X)                                                    \
    X(batch, 0, "images; 0: one tile's rows")                                   \
    X(height, 56, "input rows")                                                 \
    X(width, 0, "input columns; 0: as many as rows")                            \
    X(in_channels, 64, "a multiple of the device's lanes")                      \
    X(out_channels, 64, "a multiple of the device's lanes")                     \
    X(groups, 1, "each of whole blocks of channels (vta_layer_groups)")         \
    X(kernel, 3, "rows of the kernel or window")                                \
    X(kernel_w, 0, "its columns; 0: as many as rows")                           \
    X(stride, 1, "rows from one output to the next")                            \
    X(stride_w, 0, "columns; 0: as for rows")                                   \
    X(pad, -1, "zeros above; -1: half the kernel")                              \
    X(pad_left, -1, "zeros on the left; -1: as above")                          \
    X(pad_bottom, -1, "zeros below; -1: as above")                              \
    X(pad_right, -1, "zeros on the right; -1: as on the left")                  \
    X(output_pad, 0, "conv2d_transpose: rows more at the bottom")               \
    X(output_pad_w, 0, "columns more on the right")                             \
    X(positive, 0, "max_pool2d: 1: no input is below 0, so zeros may pad it")   \
    X(bias, 1, "1: a bias is added")                                            \
    X(mul, 0, "factor of 16 bits; 0: none")                                     \
    X(shift, 8, "bits dropped, rounded half up; 0: none; below 0: to the left") \
    X(half, 1, "0: bias holds half of what shift drops")                        \
    X(low, -128, "least output")                                                \
    X(high, 127, "greatest output")                                             \
    X(residual, 0, "1: another tensor is added then")                           \
    X(shift_a, 0, "bits to the left before the addition")                       \
    X(shift_b, 0, "the same of the other tensor")                               \
    X(sum_shift, 0, "as shift, of the sum")                                     \
    X(sum_low, -128, "least sum")                                               \
    X(sum_high, 127, "greatest sum")                                            \
    X(tile_h, 0, "output rows of a tile; 0: chosen, as all that follow")        \
    X(tile_w, 0, "output columns of a tile")                                    \
    X(tile_ci, 0, "input channel blocks of a tile")                             \
    X(tile_co, 0, "output channel blocks of a tile")                            \
    X(rows_first, 0, "pools: 1: rows of each column, then columns; 2: all taps") \
    X(oc_threads, 0, "virtual threads over output channels, at most 7")            \
    X(h_threads, 0, "virtual threads over output rows, at most 7")

typedef enum te_vta_kind {
#define X(id, name, help) id,
    TE_VTA_KINDS(X)
#undef X
        TE_VTA_KIND_COUNT
} te_vta_kind;

typedef struct te_vta_layer {
    te_vta_kind kind;
#define X(key, value, help) int64_t key;
    TE_VTA_LAYER_KEYS(X)
#undef X
} te_vta_layer;

/* A layer of that kind with the defaults above; those of kinds without a window have kernel 1, stride 1 and no pad. */
te_vta_layer te_vta_layer_new(te_vta_kind kind);
bool te_vta_kind_find(const char *name, te_vta_kind *out);
const char *te_vta_kind_name(te_vta_kind kind);
/* Reads "key=value,key=value" over the defaults. false after DIAG_USAGE. */
bool te_vta_layer_parse(compiler *c, te_vta_kind kind, const char *text, te_vta_layer *out);
/* Fills in what is open (sizes that follow from others, and among tiles and threads what is 0): of all blockings that
 * fit c's device, several virtual threads first, one that moves the fewest bytes. NULL, or the reason why none does:
 * the first rule that the layer breaks, or the scratchpad that is too small, with its bytes. Reports nothing. */
const char *te_vta_layer_plan(compiler *c, te_vta_layer *layer);
/* The same with a diagnostic; one for a blocking that does not fit names one that does. */
bool te_vta_layer_check(compiler *c, te_vta_layer *layer);
/* Computation and schedule of a planned layer, as te_parse and te_sched_parse read them. */
void te_vta_layer_print(compiler *c, const te_vta_layer *layer, writer *computation, writer *schedule);
/* Both as values, of a planned layer. false after a diagnostic. */
bool te_vta_layer_make(compiler *c, const te_vta_layer *layer, te_graph **out_graph, te_sched **out_schedule);
/* The layer down to calls of the run-time: plan, computation, schedule, lowering, the passes for VTA. */
bool te_vta_layer_lower(compiler *c, te_vta_layer *layer, const char *name, tir_func **out);
/* Outputs per row or column of a layer whose open sizes are filled in. */
int64_t te_vta_layer_rows(const te_vta_layer *l);
int64_t te_vta_layer_columns(const te_vta_layer *l);
#endif
