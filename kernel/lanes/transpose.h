/* SPDX-License-Identifier: Apache-2.0 */
/* out[j][i] = a[i][j] for a tile of m lines of n floats: blocks of as many lines as a vector has lanes are exchanged by
 * shuffles, 8 x 8 in 24 and 4 x 4 in 8 of them. Compilers load and store such a tile number by number. The last block
 * of lines or columns goes over a part of the one before. */
#ifndef LATHE_KERNEL_LANES_TRANSPOSE_H
#define LATHE_KERNEL_LANES_TRANSPOSE_H
#include "kernel/common/always.h"
#include "kernel/common/shuffle.h"
#include <stdint.h>

/* The lines of a block are variables, and are loaded whole: gcc 12 copies arrays of them 16 bytes at a time through the
 * stack, and a load of 32 bytes waits until both halves are stored. */
#if defined(__GNUC__) && defined(__AVX__)
#define LATHE_TRANSPOSE 8
typedef float lathe_floats __attribute__((vector_size(32)));
typedef float lathe_floats_memory __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t lathe_places __attribute__((vector_size(32)));
#define LATHE_FIRST_PAIRS  0, 8, 1, 9, 4, 12, 5, 13 /* of each half */
#define LATHE_SECOND_PAIRS 2, 10, 3, 11, 6, 14, 7, 15
#define LATHE_FIRST_TWO    0, 1, 8, 9, 4, 5, 12, 13
#define LATHE_SECOND_TWO   2, 3, 10, 11, 6, 7, 14, 15
#elif defined(__GNUC__) && (defined(__SSE2__) || defined(__ARM_NEON))
#define LATHE_TRANSPOSE 4
typedef float lathe_floats __attribute__((vector_size(16)));
typedef float lathe_floats_memory __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t lathe_places __attribute__((vector_size(16)));
#define LATHE_FIRST_PAIRS  0, 4, 1, 5
#define LATHE_SECOND_PAIRS 2, 6, 3, 7
#define LATHE_FIRST_TWO    0, 1, 4, 5
#define LATHE_SECOND_TWO   2, 3, 6, 7
#endif

#if defined(LATHE_TRANSPOSE)
static LATHE_ALWAYS lathe_floats lathe_floats_load(const float *p)
{
    return (lathe_floats) * (const lathe_floats_memory *)(const void *)p;
}

static LATHE_ALWAYS void lathe_floats_store(float *p, lathe_floats x)
{
    *(lathe_floats_memory *)(void *)p = (lathe_floats_memory)x;
}

/* Four columns of four lines; of lines of 8, column k + 4 behind column k. */
typedef struct lathe_columns {
    lathe_floats c0, c1, c2, c3;
} lathe_columns;

static LATHE_ALWAYS lathe_columns lathe_columns_of(const float *a, int64_t a_row)
{
    const lathe_floats r0 = lathe_floats_load(a), r1 = lathe_floats_load(a + a_row),
                       r2 = lathe_floats_load(a + 2 * a_row), r3 = lathe_floats_load(a + 3 * a_row),
                       t0 = LATHE_SHUFFLE(r0, r1, lathe_places, LATHE_FIRST_PAIRS),
                       t1 = LATHE_SHUFFLE(r0, r1, lathe_places, LATHE_SECOND_PAIRS),
                       t2 = LATHE_SHUFFLE(r2, r3, lathe_places, LATHE_FIRST_PAIRS),
                       t3 = LATHE_SHUFFLE(r2, r3, lathe_places, LATHE_SECOND_PAIRS);
    lathe_columns x;
    x.c0 = LATHE_SHUFFLE(t0, t2, lathe_places, LATHE_FIRST_TWO);
    x.c1 = LATHE_SHUFFLE(t0, t2, lathe_places, LATHE_SECOND_TWO);
    x.c2 = LATHE_SHUFFLE(t1, t3, lathe_places, LATHE_FIRST_TWO);
    x.c3 = LATHE_SHUFFLE(t1, t3, lathe_places, LATHE_SECOND_TWO);
    return x;
}

#if LATHE_TRANSPOSE == 8
/* Columns k and k + 4 of eight lines. */
static LATHE_ALWAYS void lathe_store_halves(float *out, int64_t out_row, lathe_floats top, lathe_floats bottom)
{
    lathe_floats_store(out, LATHE_SHUFFLE(top, bottom, lathe_places, 0, 1, 2, 3, 8, 9, 10, 11));
    lathe_floats_store(out + 4 * out_row, LATHE_SHUFFLE(top, bottom, lathe_places, 4, 5, 6, 7, 12, 13, 14, 15));
}
#endif

static LATHE_ALWAYS void lathe_transpose_block(float *out, const float *a, int64_t a_row, int64_t out_row)
{
    const lathe_columns top = lathe_columns_of(a, a_row);
#if LATHE_TRANSPOSE == 8
    const lathe_columns bottom = lathe_columns_of(a + 4 * a_row, a_row);
    lathe_store_halves(out, out_row, top.c0, bottom.c0);
    lathe_store_halves(out + out_row, out_row, top.c1, bottom.c1);
    lathe_store_halves(out + 2 * out_row, out_row, top.c2, bottom.c2);
    lathe_store_halves(out + 3 * out_row, out_row, top.c3, bottom.c3);
#else
    lathe_floats_store(out, top.c0);
    lathe_floats_store(out + out_row, top.c1);
    lathe_floats_store(out + 2 * out_row, top.c2);
    lathe_floats_store(out + 3 * out_row, top.c3);
#endif
}
#endif

static LATHE_ALWAYS void lathe_transpose_lines(float *out, const float *a, int64_t m, int64_t n, int64_t a_row,
                                               int64_t out_row)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            out[j * out_row + i] = a[i * a_row + j];
}

static LATHE_ALWAYS void lathe_transpose(float *out, const float *a, int64_t m, int64_t n, int64_t a_row,
                                         int64_t out_row)
{
#if defined(LATHE_TRANSPOSE)
    const int64_t b = LATHE_TRANSPOSE, down = (m + b - 1) / b, along = (n + b - 1) / b;
    if (m < b || n < b) {
        lathe_transpose_lines(out, a, m, n, a_row, out_row);
        return;
    }
    for (int64_t t = 0; t < down * along; t++) { /* the shorter side first: its lines stay in the cache */
        const int64_t y = (m < n ? t % down : t / along) * b, x = (m < n ? t / down : t % along) * b,
                      i = y + b <= m ? y : m - b, j = x + b <= n ? x : n - b;
        lathe_transpose_block(out + j * out_row + i, a + i * a_row + j, a_row, out_row);
    }
#else
    lathe_transpose_lines(out, a, m, n, a_row, out_row);
#endif
}

#endif
