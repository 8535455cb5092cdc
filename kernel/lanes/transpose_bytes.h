/* SPDX-License-Identifier: Apache-2.0 */
/* out[j][i] = a[i][j] for a tile of m lines of n bytes. 16 lines are interleaved by shuffles, in four rounds, and fewer
 * lines in fewer of them. Lines of fewer than 16 bytes fill a vector together. The last block of lines or columns goes
 * over a part of the one before. */
#ifndef LATHE_KERNEL_LANES_TRANSPOSE_BYTES_H
#define LATHE_KERNEL_LANES_TRANSPOSE_BYTES_H
#include "kernel/common/always.h"
#include "kernel/common/shuffle.h"
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__) && (defined(__SSE2__) || defined(__ARM_NEON))
#define LATHE_TRANSPOSE_BYTES 16
typedef uint8_t lathe_bytes __attribute__((vector_size(16)));
typedef int8_t lathe_byte_places __attribute__((vector_size(16)));
typedef uint64_t lathe_bytes_by_8 __attribute__((vector_size(16)));
typedef uint32_t lathe_bytes_by_4 __attribute__((vector_size(16)));

/* As many lines and columns as are left at once: 16, 8 or 4; 0: too few. */
static LATHE_ALWAYS int lathe_bytes_at_once(int64_t n)
{
    return n >= 16 ? 16 : n >= 8 ? 8 : n >= 4 ? 4 : 0;
}

static LATHE_ALWAYS uint64_t lathe_eight(const uint8_t *a)
{
    uint64_t eight;
    memcpy(&eight, a, sizeof eight);
    return eight;
}

static LATHE_ALWAYS uint32_t lathe_four(const uint8_t *a)
{
    uint32_t four;
    memcpy(&four, a, sizeof four);
    return four;
}

/* The n bytes of 16 / n lines, side by side. 8 bytes that are copied to the place of a vector are stored there, and the
 * load of all 16 waits for this store. So they are numbers that become a vector. */
static LATHE_ALWAYS lathe_bytes lathe_bytes_load(const uint8_t *a, int n, int64_t row)
{
    lathe_bytes all;
    if (n == 8)
        return (lathe_bytes)(lathe_bytes_by_8){lathe_eight(a), lathe_eight(a + row)};
    if (n == 4)
        return (lathe_bytes)(lathe_bytes_by_4){lathe_four(a), lathe_four(a + row), lathe_four(a + 2 * row),
                                               lathe_four(a + 3 * row)};
    memcpy(&all, a, sizeof all);
    return all;
}

/* Bytes n * i to n * i + n - 1 of v. */
static LATHE_ALWAYS void lathe_bytes_store(uint8_t *out, lathe_bytes v, int n, int i)
{
    const uint64_t eight = ((lathe_bytes_by_8)v)[n == 8 ? i : 0];
    const uint32_t four = ((lathe_bytes_by_4)v)[n == 4 ? i : 0];
    if (n == 8)
        memcpy(out, &eight, sizeof eight);
    else if (n == 4)
        memcpy(out, &four, sizeof four);
    else
        memcpy(out, &v, sizeof v);
}

static LATHE_ALWAYS void lathe_transpose_bytes_block(uint8_t *out, const uint8_t *a, int lines, int columns,
                                                     int64_t a_row, int64_t out_row)
{
    lathe_bytes r[16], t[16];
    const int vectors = lines * columns / 16, half = vectors / 2;
    for (int i = 0; i < vectors; i++)
        r[i] = lathe_bytes_load(a + 16 / columns * i * a_row, columns, a_row);
    for (int n = 1; n < lines; n *= 2) {
        for (int i = 0; i < half; i++) {
            t[2 * i] = LATHE_SHUFFLE(r[i], r[i + half], lathe_byte_places, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6,
                                     22, 7, 23);
            t[2 * i + 1] = LATHE_SHUFFLE(r[i], r[i + half], lathe_byte_places, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13,
                                         29, 14, 30, 15, 31);
        }
        for (int i = 0; i < vectors; i++)
            r[i] = t[i];
    }
    for (int j = 0; j < columns; j++)
        lathe_bytes_store(out + j * out_row, r[j * lines / 16], lines, j % (16 / lines));
}
#endif

static LATHE_ALWAYS void lathe_transpose_bytes(void *to, const void *from, int64_t m, int64_t n, int64_t a_row,
                                               int64_t out_row)
{
    uint8_t *out = (uint8_t *)to;
    const uint8_t *a = (const uint8_t *)from;
#if defined(LATHE_TRANSPOSE_BYTES)
    const int h = lathe_bytes_at_once(m), w = lathe_bytes_at_once(n);
    if (h * w >= 32) {
        for (int64_t y = 0; y < m; y += h)
            for (int64_t x = 0; x < n; x += w) {
                const int64_t i = y + h <= m ? y : m - h, j = x + w <= n ? x : n - w;
                lathe_transpose_bytes_block(out + j * out_row + i, a + i * a_row + j, h, w, a_row, out_row);
            }
        return;
    }
#endif
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            out[j * out_row + i] = a[i * a_row + j];
}

#endif
