/* SPDX-License-Identifier: Apache-2.0 */
/* out[j][i] = a[i][j] for a tile of m lines of n floats: blocks of as many lines as a vector has lanes are exchanged by
 * shuffles, 8 x 8 in 24 and 4 x 4 in 8 of them. Compilers load and store such a tile number by number. */
#ifndef LATHE_KERNEL_LANES_TRANSPOSE_H
#define LATHE_KERNEL_LANES_TRANSPOSE_H
#include "kernel/common/always.h"
#include "kernel/common/shuffle.h"
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__) && defined(__AVX__)
#define LATHE_TRANSPOSE 8
typedef float lathe_line __attribute__((vector_size(32)));
typedef int32_t lathe_places __attribute__((vector_size(32)));

static LATHE_ALWAYS void lathe_transpose_block(float *out, const float *a, int64_t a_row, int64_t out_row)
{
    lathe_line r[8], t[8];
    for (int i = 0; i < 8; i++)
        memcpy(&r[i], a + i * a_row, sizeof r[i]);
    for (int i = 0; i < 8; i += 2) {
        t[i] = LATHE_SHUFFLE(r[i], r[i + 1], lathe_places, 0, 8, 1, 9, 4, 12, 5, 13);
        t[i + 1] = LATHE_SHUFFLE(r[i], r[i + 1], lathe_places, 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int i = 0; i < 8; i += 4)
        for (int k = 0; k < 2; k++) {
            r[i + 2 * k] = LATHE_SHUFFLE(t[i + k], t[i + k + 2], lathe_places, 0, 1, 8, 9, 4, 5, 12, 13);
            r[i + 2 * k + 1] = LATHE_SHUFFLE(t[i + k], t[i + k + 2], lathe_places, 2, 3, 10, 11, 6, 7, 14, 15);
        }
    for (int i = 0; i < 4; i++) {
        t[i] = LATHE_SHUFFLE(r[i], r[i + 4], lathe_places, 0, 1, 2, 3, 8, 9, 10, 11);
        t[i + 4] = LATHE_SHUFFLE(r[i], r[i + 4], lathe_places, 4, 5, 6, 7, 12, 13, 14, 15);
    }
    for (int i = 0; i < 8; i++)
        memcpy(out + i * out_row, &t[i], sizeof t[i]);
}
#elif defined(__GNUC__) && (defined(__SSE2__) || defined(__ARM_NEON))
#define LATHE_TRANSPOSE 4
typedef float lathe_line __attribute__((vector_size(16)));
typedef int32_t lathe_places __attribute__((vector_size(16)));

static LATHE_ALWAYS void lathe_transpose_block(float *out, const float *a, int64_t a_row, int64_t out_row)
{
    lathe_line r[4], t[4];
    for (int i = 0; i < 4; i++)
        memcpy(&r[i], a + i * a_row, sizeof r[i]);
    for (int i = 0; i < 4; i += 2) {
        t[i] = LATHE_SHUFFLE(r[i], r[i + 1], lathe_places, 0, 4, 1, 5);
        t[i + 1] = LATHE_SHUFFLE(r[i], r[i + 1], lathe_places, 2, 6, 3, 7);
    }
    for (int i = 0; i < 2; i++) {
        r[2 * i] = LATHE_SHUFFLE(t[i], t[i + 2], lathe_places, 0, 1, 4, 5);
        r[2 * i + 1] = LATHE_SHUFFLE(t[i], t[i + 2], lathe_places, 2, 3, 6, 7);
    }
    for (int i = 0; i < 4; i++)
        memcpy(out + i * out_row, &r[i], sizeof r[i]);
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
    const int64_t b = LATHE_TRANSPOSE, high = m / b * b, wide = n / b * b;
    const int64_t down = high / b, along = wide / b;
    for (int64_t t = 0; t < down * along; t++) { /* the shorter side first: its lines stay in the cache */
        const int64_t i = (m < n ? t % down : t / along) * b, j = (m < n ? t / down : t % along) * b;
        lathe_transpose_block(out + j * out_row + i, a + i * a_row + j, a_row, out_row);
    }
    lathe_transpose_lines(out + wide * out_row, a + wide, high, n - wide, a_row, out_row);
    lathe_transpose_lines(out + high, a + high * a_row, m - high, n, a_row, out_row);
#else
    lathe_transpose_lines(out, a, m, n, a_row, out_row);
#endif
}

#endif
