/* SPDX-License-Identifier: Apache-2.0 */
/* Products of small integers summed into i32 lanes, which processors have as one instruction or a few: for each kind
 * of target the intrinsic that stands for it (tir/intrin_dot.c) and how its operands lie in memory. Weights are packed,
 * tiles are chosen by the row. */
#ifndef LATHE_TYPE_DOT_H
#define LATHE_TYPE_DOT_H
#include "type/dtype.h"
#include "type/target.h"

/* out[j] += a[0] * b[j][0] + ... + a[granule - 1] * b[j][granule - 1], a the same for all lanes j. */
typedef struct target_dot {
    const char *intrinsic;   /* its name */
    uint32_t features;       /* of target_feature: those that it asks for, 0: none */
    uint32_t vector_bytes;   /* what the target's vectors have at least */
    uint32_t granule;        /* numbers that one lane multiplies at a time */
    dtype a, b;              /* as they are in memory; u4: eight in a word of a lane (tir/intrin_dot.c) */
    bool needs_proof;        /* sums of pairs saturate in 16 bits: only for weights of which none does */
    /* What it costs for a vector of sums: instructions of the multipliers, instructions in all; beside the loads, for
     * each vector of weights and for each granule of data, which the vectors of a tile share; and registers. */
    double multiplies, operations, weight_work, data_work;
    int64_t weight_regs, spare_regs;
    uint32_t tile; /* rows of data, and columns, whose sums are one vector, row by row; 0: a vector is of one row */
    bool steps;    /* for lists of steps: weights are packed otherwise than for a row without it */
} target_dot;

/* The cheapest row for numbers of `a` and weights of `b`; `proved`: no pair of the weights can saturate. NULL: the
 * target has none. */
const target_dot *target_find_dot(const target *t, dtype a, dtype b, bool proved);
/* Vectors of weights that a vector of sums takes for a granule. */
int64_t target_dot_weights(const target_dot *d);
/* The row for tiles of sums of `height` rows of k products each, where it costs less than row `d` of vectors. NULL:
 * that does as well. */
const target_dot *target_find_tile_dot(const target *t, const target_dot *d, int64_t height, int64_t k);
/* The row that weights packed for `granule` are for; proved, NULL: as of target_find_dot. */
const target_dot *target_find_packed_dot(const target *t, dtype a, dtype b, bool proved, int64_t granule);
/* The row for both operands as numbers of 16 bits, where products of these cost no more than the row's of bytes, which
 * are widened again in every tile. NULL: bytes do as well. */
const target_dot *target_find_wide_dot(const target *t, const target_dot *bytes);
/* The same where so many pixels, or rows, read each weight: NULL also where they are too few to widen weights. */
const target_dot *target_find_wide_dot_for(const target *t, const target_dot *bytes, int64_t readers);
/* The row for lists of steps (graph/op/steps.h) by data of `a`, whose granule is both runs, where u8 by i8 is else
 * widened to 16 bits. NULL: there is none. */
const target_dot *target_find_steps_dot(const target *t, dtype a);
/* The row for words of both operands, which hold two numbers of 16 bits: C has it for vectors of any width. */
const target_dot *target_find_words_dot(void);
#endif
