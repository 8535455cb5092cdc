/* SPDX-License-Identifier: Apache-2.0 */
/* dot_rows.h by weights of 4 bits, for an even r. A step of two channels is four bytes: byte 2 * h + c has elements h
 * and h + 2 of channel c, the first one in its upper half. */
#ifndef LATHE_KERNEL_DSP_NIBBLE_ROWS_H
#define LATHE_KERNEL_DSP_NIBBLE_ROWS_H
#include "kernel/common/always.h"
#include "kernel/common/half.h"
#include "kernel/common/words.h"
#include "kernel/dsp/acle.h"
#include "kernel/dsp/nibbles_asm.h"
#include "kernel/dsp/rows_asm.h"
#include <stdint.h>

#if LATHE_DSP == 2
#define LATHE_NAME(size) lathe_nibbles_##size
#define LATHE_WEIGHTS    LATHE_NIBBLE_WEIGHTS
#define LATHE_PAIR(s, t) LATHE_NIBBLES_BY("x", "f", s, t)
#define LATHE_STEP_BYTES 4
#define LATHE_GET(i)     0
#define LATHE_PUT(i, s)  out[i] += (s) >> 4
#include "kernel/dsp/row_tiles.inc"
#elif LATHE_DSP == 1
static LATHE_ALWAYS void lathe_nibble_words(int32_t *out, const int16_t *a, const int8_t *w, int m, int r, int n,
                                           int row, int step)
{
    int32_t s[12];
    int i, j, k;
    for (i = 0; i < m * r; i++)
        s[i] = 0;
    for (k = 0; k < n; k++, a += step, w += 2 * r)
        for (j = 0; j < r; j += 2) {
            const int32_t v = lathe_word(w + 2 * j), high = lathe_high(v), low = lathe_low(v);
            for (i = 0; i < m; i++) {
                const int32_t x = lathe_word(a + i * row), y = lathe_word(a + i * row + 2);
                int32_t *to = &s[i * r + j];
                to[0] = __smlad(y, __sxtb16(low), __smlad(x, __sxtb16(high), to[0]));
                to[1] = __smlad(y, __sxtb16(lathe_turned(low)), __smlad(x, __sxtb16(lathe_turned(high)), to[1]));
            }
        }
    for (i = 0; i < m * r; i++)
        out[i] += s[i] >> 4;
}
#endif

static LATHE_ALWAYS void lathe_nibble_rows(int32_t *out, const int16_t *a, const int8_t *w, int m, int r, int n,
                                           int row, int step, int words)
{
#if LATHE_DSP == 1
    (void)words;
    lathe_nibble_words(out, a, w, m, r, n, row, step);
#else
    int i, j, k, e;
#if LATHE_DSP == 2
    if (lathe_nibbles_tile(out, a, w, m, r, n, row, step, words))
        return;
#endif
    (void)words;
    for (k = 0; k < n; k++, a += step, w += 2 * r) {
/* The elements 0, 2, 1, 3: both halves of a byte. */
#define LATHE_TERM a[i * row + e % 2 * 2 + e / 2] * LATHE_HALF(w[j / 2 * 4 + e / 2 * 2 + j % 2], e % 2)
#include "kernel/dsp/four_products.inc"
    }
#endif
}

#endif
