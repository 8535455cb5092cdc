/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of two rows of data by two columns of weights, eight products each, in one SMMLA or USMMLA: a register of sums
 * takes two of operands, and one instruction does 32 multiply-adds, twice as many as SDOT. w: two columns of eight
 * bytes; x: two rows, which are put together here. Rows lie as they come: side by side, row by row, in pieces of two
 * rows, or in four pieces (row and half, in bytes, are numbers that the compiler knows), one load, two loads, or more.
 */
#ifndef LATHE_KERNEL_NEON_TILE_H
#define LATHE_KERNEL_NEON_TILE_H
#include "kernel/common/always.h"
#include "kernel/common/shuffle.h"
#include <stdint.h>

/* Before functions that call it. gcc would begin a step with all of its loads, for which no registers are left. The
 * others are those of LATHE_TILE: gcc takes the last of several such attributes. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__aarch64__)
#define LATHE_NEON_TILE \
    __attribute__((optimize("no-schedule-insns", "no-move-loop-invariants", "no-predictive-commoning")))
#else
#define LATHE_NEON_TILE
#endif

#if defined(__aarch64__) && defined(__ARM_FEATURE_MATMUL_INT8)
typedef int64_t lathe_neon_two __attribute__((vector_size(16)));
typedef int32_t lathe_neon_four __attribute__((vector_size(16)));
typedef int64_t lathe_eight_bytes __attribute__((aligned(1), may_alias));
typedef int32_t lathe_four_bytes __attribute__((aligned(1), may_alias));
typedef int64_t lathe_all_bytes __attribute__((vector_size(16), aligned(1), may_alias));

static LATHE_ALWAYS lathe_neon_two lathe_neon_rows(const void *p0, const void *p1, const void *p2, const void *p3,
                                                   int row, int half)
{
    if (half == 4 && row == 8)
        return *(const lathe_all_bytes *)p0;
    if (half == 4)
        return (lathe_neon_two){*(const lathe_eight_bytes *)p0, *(const lathe_eight_bytes *)p2};
    if (row == 4) {
        const lathe_neon_four u = (lathe_neon_four)(lathe_neon_two){*(const lathe_eight_bytes *)p0, 0},
                              v = (lathe_neon_four)(lathe_neon_two){*(const lathe_eight_bytes *)p1, 0};
        return (lathe_neon_two)LATHE_SHUFFLE(u, v, lathe_neon_four, 0, 4, 1, 5);
    }
    return (lathe_neon_two)(lathe_neon_four){*(const lathe_four_bytes *)p0, *(const lathe_four_bytes *)p1,
                                             *(const lathe_four_bytes *)p2, *(const lathe_four_bytes *)p3};
}

static LATHE_ALWAYS lathe_neon_four lathe_neon_tile_u8(lathe_neon_four acc, const uint8_t *a, int row, int half,
                                                       const int8_t *b)
{
    const lathe_neon_two w = *(const lathe_all_bytes *)(const void *)b;
    const lathe_neon_two x = lathe_neon_rows(a, a + half, a + row, a + row + half, row, half);
    __asm__("usmmla %0.4s, %1.16b, %2.16b" : "+w"(acc) : "w"(x), "w"(w));
    return acc;
}

static LATHE_ALWAYS lathe_neon_four lathe_neon_tile_i8(lathe_neon_four acc, const int8_t *a, int row, int half,
                                                       const int8_t *b)
{
    const lathe_neon_two w = *(const lathe_all_bytes *)(const void *)b;
    const lathe_neon_two x = lathe_neon_rows(a, a + half, a + row, a + row + half, row, half);
    __asm__("smmla %0.4s, %1.16b, %2.16b" : "+w"(acc) : "w"(x), "w"(w));
    return acc;
}
#endif

#endif
