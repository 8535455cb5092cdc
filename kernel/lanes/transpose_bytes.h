/* SPDX-License-Identifier: Apache-2.0 */
/* out[j][i] = a[i][j] for a tile of m lines of n bytes. 16 lines are interleaved by shuffles, in four rounds, and fewer
 * lines in fewer of them. The last block of lines or columns goes over a part of the one before. */
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

/* As many lines and columns as are left at once: 16, 8 or 4; 0: too few. */
static LATHE_ALWAYS int lathe_bytes_at_once(int64_t n)
{
    return n >= 16 ? 16 : n >= 8 ? 8 : n >= 4 ? 4 : 0;
}

static LATHE_ALWAYS void lathe_transpose_bytes_block(uint8_t *out, const uint8_t *a, int lines, int columns,
                                                     int64_t a_row, int64_t out_row)
{
    lathe_bytes r[16], t[16];
    const int half = lines / 2;
    for (int i = 0; i < lines; i++) {
        r[i] = (lathe_bytes){0};
        memcpy(&r[i], a + i * a_row, (size_t)columns);
    }
    for (int n = 1; n < lines; n *= 2) {
        for (int i = 0; i < half; i++) {
            t[2 * i] = LATHE_SHUFFLE(r[i], r[i + half], lathe_byte_places, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6,
                                     22, 7, 23);
            t[2 * i + 1] = LATHE_SHUFFLE(r[i], r[i + half], lathe_byte_places, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13,
                                         29, 14, 30, 15, 31);
        }
        for (int i = 0; i < lines; i++)
            r[i] = t[i];
    }
    for (int j = 0; j < columns; j++)
        memcpy(out + j * out_row, (const uint8_t *)&r[j * lines / 16] + j * lines % 16, (size_t)lines);
}
#endif

static LATHE_ALWAYS void lathe_transpose_bytes(void *to, const void *from, int64_t m, int64_t n, int64_t a_row,
                                               int64_t out_row)
{
    uint8_t *out = (uint8_t *)to;
    const uint8_t *a = (const uint8_t *)from;
#if defined(LATHE_TRANSPOSE_BYTES)
    const int h = lathe_bytes_at_once(m), w = lathe_bytes_at_once(n);
    if (h > 0 && w > 0 && (h == 16 || w == 16)) {
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
