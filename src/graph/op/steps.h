/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of products of u8 by i8 as lists of steps (qnn.conv2d_steps, qnn.matmul_steps): a step multiplies two runs of
 * four numbers of the data, each at a place of its own, and adds both in 16 bits before they are widened. That is exact
 * where the weights that meet in 16 bits, two of each run, have positive ones of at most 128 in all, and negative ones
 * of at least -128. For each block of output channels runs are chosen and paired so that they keep to this: a run
 * begins anywhere, and what of its weights goes beyond the bound is left to the next run, which begins there. The more
 * numbers lie side by side, the shorter are the lists.
 *
 * Data of i8 is multiplied the other way round, by weights without their signs: a weight w below 0 multiplies x + 1,
 * which is the complement of x but for the sign. There the weights that meet may be 256 in all without their signs,
 * which nearly all are; a step takes more instructions. u8 is read so less 128, and `offsets` are what that leaves
 * out.
 *
 * The smaller the numbers of the data, the more the weights may be. Data that is split is at most STEPS_LIMIT in the
 * lists; what its numbers are more is multiplied by all weights, run by run, and runs where none is are left out
 * (te/op/steps.c): for data of which few are. */
#ifndef LATHE_GRAPH_OP_STEPS_H
#define LATHE_GRAPH_OP_STEPS_H
#include "graph/op.h"

#define STEPS_RUN   4   /* numbers of the data that lie side by side */
#define STEPS_RUNS  2   /* of a step */
#define STEPS_LIMIT 160 /* of data that is split. A lower one leaves out fewer runs, a higher one makes longer lists */
#define STEPS_BOUND_I8 256 /* 128 * 256 does, below 0; above 0 it is 127 times as much */
#define STEPS_MOST  (INT32_MAX / (128 * 128)) /* products of a sum whose offset fits into 32 bits */
#define STEPS_EACH  (steps_bound(UINT8_MAX) / 4) /* of each weight, where any four that meet fit */

/* What makes the lists; columns of a product are output channels, and a row of its data is an image of one pixel. */
typedef struct steps_source {
    const tensor_data *weights; /* i8, [O, I, kh, kw] */
    int64_t lanes;              /* output channels of a block */
    int64_t in_block;           /* input channels of a block of the data, STEPS_RUN or more */
    int64_t rows, cols;         /* of the data, its border included: [N, blocks, rows, cols, in_block] */
    int64_t dilations[2];
    bool is_signed; /* the data is i8 */
    int64_t most;   /* of data of u8 */
} steps_source;

typedef struct steps_lists {
    const tensor_data *weights; /* i8, [blocks, steps, STEPS_RUNS, lanes, STEPS_RUN]; what is not needed is 0 */
    const tensor_data *places;  /* i32, [blocks, steps, STEPS_RUNS]: in an image, of its first number */
    const tensor_data *offsets; /* i32, [blocks * lanes]: products by u8 less those by x - 128; NULL: the data is u8 */
    int64_t steps;              /* of the longest list */
} steps_lists;

/* What weights that meet in 16 bits may be in all, those above 0 and those below, by u8 of at most `most`. */
static inline int steps_bound(int64_t most)
{
    return (int)(INT16_MAX / most);
}

/* false, and no lists: they would have more than `most` steps. By data of i8 a sum has STEPS_MOST products at most. */
bool steps_make(compiler *c, const steps_source *from, int64_t most, steps_lists *out);
/* Steps without any that are there for the bound. */
int64_t steps_least(const steps_source *from);
/* Whether the lists of n, qnn.conv2d_steps or qnn.matmul_steps, are such, and lie in its data and keep to 16 bits as
 * far as they are known. An error otherwise. */
bool steps_lists_fit(compiler *c, const graph_node *n);
/* Whether no sum in 16 bits of packed weights leaves these, by data of i8, or of u8 of at most `most`. */
bool steps_fit(const tensor_data *weights, bool is_signed, int64_t most);
#endif
