/* SPDX-License-Identifier: Apache-2.0 */
/* out[j][i] = a[i][j] for a tile of m lines of n numbers of 16 bits. Shuffles interleave a block of 8 lines of 8
 * numbers in three rounds of 8, each of which puts line i + 4 between the numbers of line i. The last block of lines or
 * columns goes over a part of the one before. */
#ifndef LATHE_KERNEL_LANES_TRANSPOSE_HALVES_H
#define LATHE_KERNEL_LANES_TRANSPOSE_HALVES_H
#include "kernel/common/always.h"
#include "kernel/common/shuffle.h"
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__) && (defined(__SSE2__) || defined(__ARM_NEON))
#define LATHE_TRANSPOSE_HALVES 8
typedef uint16_t lathe_halves __attribute__((vector_size(16)));
typedef int16_t lathe_half_places __attribute__((vector_size(16)));

static LATHE_ALWAYS lathe_halves lathe_halves_load(const uint16_t *a)
{
    lathe_halves v;
    memcpy(&v, a, sizeof v);
    return v;
}

/* Variables, not an array, which gcc keeps in memory. */
#define LATHE_LOW(x, y)  LATHE_SHUFFLE(x, y, lathe_half_places, 0, 8, 1, 9, 2, 10, 3, 11)
#define LATHE_HIGH(x, y) LATHE_SHUFFLE(x, y, lathe_half_places, 4, 12, 5, 13, 6, 14, 7, 15)
#define LATHE_ROUND(to, from)                                                                                          \
    const lathe_halves to##0 = LATHE_LOW(from##0, from##4), to##1 = LATHE_HIGH(from##0, from##4),                      \
                       to##2 = LATHE_LOW(from##1, from##5), to##3 = LATHE_HIGH(from##1, from##5),                      \
                       to##4 = LATHE_LOW(from##2, from##6), to##5 = LATHE_HIGH(from##2, from##6),                      \
                       to##6 = LATHE_LOW(from##3, from##7), to##7 = LATHE_HIGH(from##3, from##7)

static LATHE_ALWAYS void lathe_transpose_halves_block(uint16_t *out, const uint16_t *a, int64_t a_row, int64_t out_row)
{
    const lathe_halves r0 = lathe_halves_load(a), r1 = lathe_halves_load(a + a_row),
                       r2 = lathe_halves_load(a + 2 * a_row), r3 = lathe_halves_load(a + 3 * a_row),
                       r4 = lathe_halves_load(a + 4 * a_row), r5 = lathe_halves_load(a + 5 * a_row),
                       r6 = lathe_halves_load(a + 6 * a_row), r7 = lathe_halves_load(a + 7 * a_row);
    LATHE_ROUND(s, r);
    LATHE_ROUND(t, s);
    LATHE_ROUND(u, t);
    memcpy(out, &u0, sizeof u0);
    memcpy(out + out_row, &u1, sizeof u1);
    memcpy(out + 2 * out_row, &u2, sizeof u2);
    memcpy(out + 3 * out_row, &u3, sizeof u3);
    memcpy(out + 4 * out_row, &u4, sizeof u4);
    memcpy(out + 5 * out_row, &u5, sizeof u5);
    memcpy(out + 6 * out_row, &u6, sizeof u6);
    memcpy(out + 7 * out_row, &u7, sizeof u7);
}
#endif

static LATHE_ALWAYS void lathe_transpose_halves(void *to, const void *from, int64_t m, int64_t n, int64_t a_row,
                                                int64_t out_row)
{
    uint16_t *out = (uint16_t *)to;
    const uint16_t *a = (const uint16_t *)from;
#if defined(LATHE_TRANSPOSE_HALVES)
    const int64_t b = LATHE_TRANSPOSE_HALVES, down = (m + b - 1) / b, along = (n + b - 1) / b;
    if (m >= b && n >= b) {
        for (int64_t t = 0; t < down * along; t++) { /* the shorter side first: its lines stay in the cache */
            const int64_t y = (m < n ? t % down : t / along) * b, x = (m < n ? t / down : t % along) * b,
                          i = y + b <= m ? y : m - b, j = x + b <= n ? x : n - b;
            lathe_transpose_halves_block(out + j * out_row + i, a + i * a_row + j, a_row, out_row);
        }
        return;
    }
#endif
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            out[j * out_row + i] = a[i * a_row + j];
}

#endif
