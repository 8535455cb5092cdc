/* SPDX-License-Identifier: Apache-2.0 */
/* A model of Gemmini, Berkeley's systolic array, in its default configuration: 16 x 16 cells of int8, sums of int32.
 * It computes what the accelerator computes, bit for bit, counts what that costs, and refuses what hardware does not
 * guarantee, so that a program without a fault here is one for the hardware, too. It needs nothing of Lathe.
 *
 * Sources: "Gemmini: Enabling Systematic Deep-Learning Architecture Evaluation via Full-Stack Integration" (DAC 2021),
 * the README of ucb-bar/gemmini, "ISA", and ucb-bar/libgemmini, the functional model in the simulator Spike. */
#ifndef GEMMINI_DEVICE_H
#define GEMMINI_DEVICE_H
#include <stdbool.h>
#include <stdint.h>

#define GEMMINI_DIM 16      /* cells in a row of the array; elements in a row of a local memory */
#define GEMMINI_ROWS 16384u /* of the scratchpad, int8 */
#define GEMMINI_SUMS 1024u  /* rows of the accumulator, int32, in two banks */

/* A block of local memory: address [31:0] of an operand, columns [47:32], rows [63:48]. */
typedef struct gemmini_block {
    uint32_t address, columns, rows;
} gemmini_block;

/* One of the three load units, as config_ld sets it. */
typedef struct gemmini_load {
    uint64_t stride; /* of rows in memory, bytes */
    uint32_t block_stride, repeats;
    float scale;
    bool shrink; /* loads to the accumulator read int8 */
} gemmini_load;

/* What config_st sets. pool_stride 0: no pooling. */
typedef struct gemmini_store {
    float scale;
    bool relu;
    uint32_t stride, row_length; /* of rows in memory, bytes; of a row of the pooled image, pixels */
    uint32_t pool_stride, pool_size, up, left, pooled_rows, pooled_columns, rows, columns;
} gemmini_store;

typedef struct gemmini {
    int8_t scratchpad[GEMMINI_ROWS][GEMMINI_DIM];
    int32_t sums[GEMMINI_SUMS][GEMMINI_DIM], cells[GEMMINI_DIM][GEMMINI_DIM];
    bool weights_stay, relu, transpose_a, transpose_b; /* config_ex */
    uint32_t a_stride, c_stride, shift;
    gemmini_load load[3];
    gemmini_store store;
    gemmini_block preloaded, result; /* the operands of the last preload */
    uint64_t offset; /* added to addresses of main memory: 0 where they are those of this process */
    bool strict;     /* whether what hardware does not order is a fault, too (gemmini_run) */
    /* Of each row the columns, a bit each, that a load wrote and nobody has used yet; those that two loads wrote. */
    uint16_t loaded[GEMMINI_ROWS + GEMMINI_SUMS], raced[GEMMINI_ROWS + GEMMINI_SUMS];
    uint64_t written_from, written_to; /* main memory that stores have written since the last fence */
    /* what it cost: cycles in which the array is busy, bytes of main memory */
    uint64_t instructions, computes, compute_cycles, loads, bytes_loaded, stores, bytes_stored, fences;
    const char *fault; /* NULL: none so far; else the first one, a sentence without an end */
} gemmini;

/* All memories and registers zero, no fault; strict. */
void gemmini_reset(gemmini *g);
/* One instruction, as `.insn r 0x7b, 3, FUNCT, x0, rs1, rs2` gives it. Returns false where there is a fault, now or
 * before: nothing is done then. Faults are local addresses that do not exist, sizes beyond those of an instruction,
 * instructions that this model does not have, and with `strict`
 *  - a load of memory that a store wrote, without a fence between;
 *  - a use of elements that two loads wrote, with nothing between them that waited: either may be the later one;
 *  - sums in the array (output stationary), which has 20 bits in hardware and 32 here;
 *  - a pooling store whose tile lies in both banks of the accumulator, a load whose blocks overlap. */
bool gemmini_run(gemmini *g, uint32_t funct, uint64_t rs1, uint64_t rs2);
/* The fence of the processor: all that is in flight has arrived. */
void gemmini_fence(gemmini *g);
#endif
