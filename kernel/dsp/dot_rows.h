/* SPDX-License-Identifier: Apache-2.0 */
/* out[i * r + j] += the sum of products of run i of a, from a + i * row on, and row j of w: n steps of four elements.
 * Elements 1 and 2 of each step of w have changed places, because SXTB16 widens every second byte; the steps of the r
 * rows lie side by side. words: runs begin at words of memory. m is up to 3, r up to 4; the arguments but n are
 * constants. */
#ifndef LATHE_KERNEL_DSP_DOT_ROWS_H
#define LATHE_KERNEL_DSP_DOT_ROWS_H
#include "kernel/common/always.h"
#include "kernel/common/words.h"
#include "kernel/dsp/acle.h"
#include "kernel/dsp/rows_asm.h"
#include <stdint.h>

#if LATHE_DSP == 2
#define LATHE_NAME(size) lathe_dot_##size
#define LATHE_WEIGHTS    LATHE_BYTE_WEIGHTS
#define LATHE_PAIR       LATHE_BYTE_PAIR
#define LATHE_STEP_BYTES 8
#define LATHE_GET(i)     out[i]
#define LATHE_PUT(i, s)  out[i] = (s)
#include "kernel/dsp/row_tiles.inc"
#elif LATHE_DSP == 1
static LATHE_ALWAYS void lathe_dot_words(int32_t *out, const int16_t *a, const int8_t *w, int m, int r, int n,
                                        int row, int step)
{
    int32_t s[12];
    int i, j, k;
    for (i = 0; i < m * r; i++)
        s[i] = out[i];
    for (k = 0; k < n; k++, a += step, w += 4 * r)
        for (j = 0; j < r; j++) {
            const int32_t v = lathe_word(w + 4 * j), u = __sxtb16(v), t = __sxtb16(lathe_turned(v));
            for (i = 0; i < m; i++) {
                const int16_t *x = a + i * row;
                s[i * r + j] = __smlad(lathe_word(x + 2), t, __smlad(lathe_word(x), u, s[i * r + j]));
            }
        }
    for (i = 0; i < m * r; i++)
        out[i] = s[i];
}
#endif

static LATHE_ALWAYS void lathe_dot_rows(int32_t *out, const int16_t *a, const int8_t *w, int m, int r, int n,
                                        int row, int step, int words)
{
#if LATHE_DSP == 1
    (void)words;
    lathe_dot_words(out, a, w, m, r, n, row, step);
#else
    int i, j, k, e;
#if LATHE_DSP == 2
    if (lathe_dot_tile(out, a, w, m, r, n, row, step, words))
        return;
#endif
    (void)words;
    for (k = 0; k < n; k++, a += step, w += 4 * r) {
#define LATHE_TERM a[i * row + e] * w[4 * j + e % 2 * 2 + e / 2]
#include "kernel/dsp/four_products.inc"
    }
#endif
}

#endif
