/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of products of u8 by i8 as lists of steps (qnn.conv2d_steps, qnn.matmul_steps): a step multiplies two runs of
 * four numbers of the data, each at a place of its own, and adds both in 16 bits before they are widened. That is exact
 * where the weights that meet in 16 bits, two of each run, have positive ones of at most 128 in all, and negative ones
 * of at least -128. For each block of output channels runs are chosen and paired so that they keep to this: a run
 * begins anywhere, and what of its weights goes beyond the bound is left to the next run, which begins there. The more
 * numbers lie side by side, the shorter are the lists. */
#ifndef LATHE_GRAPH_OP_STEPS_H
#define LATHE_GRAPH_OP_STEPS_H
#include "graph/op.h"

#define STEPS_RUN   4   /* numbers of the data that lie side by side */
#define STEPS_RUNS  2   /* of a step */
#define STEPS_BOUND 128 /* 255 * 128 fits into 16 bits */
#define STEPS_EACH  (STEPS_BOUND / 4) /* of each weight, where any four that meet fit */

/* What makes the lists; columns of a product are output channels, and a row of its data is an image of one pixel. */
typedef struct steps_source {
    const tensor_data *weights; /* i8, [O, I, kh, kw] */
    int64_t lanes;              /* output channels of a block */
    int64_t in_block;           /* input channels of a block of the data, STEPS_RUN or more */
    int64_t rows, cols;         /* of the data, its border included: [N, blocks, rows, cols, in_block] */
    int64_t dilations[2];
} steps_source;

typedef struct steps_lists {
    const tensor_data *weights; /* i8, [blocks, steps, STEPS_RUNS, lanes, STEPS_RUN]; what is not needed is 0 */
    const tensor_data *places;  /* i32, [blocks, steps, STEPS_RUNS]: in an image, of its first number */
    int64_t steps;              /* of the longest list */
} steps_lists;

/* false, and no lists: they would have more than `most` steps. */
bool steps_make(compiler *c, const steps_source *from, int64_t most, steps_lists *out);
/* Steps without any that are there for the bound. */
int64_t steps_least(const steps_source *from);
/* Whether the lists of n, qnn.conv2d_steps or qnn.matmul_steps, are such, and lie in its data and keep to 16 bits as
 * far as they are known. An error otherwise. */
bool steps_lists_fit(compiler *c, const graph_node *n);
/* Whether no sum in 16 bits of packed weights leaves these. */
bool steps_fit(const tensor_data *weights);
#endif
