/* SPDX-License-Identifier: Apache-2.0 */
/* out[j] += the sum of products of the bytes of data and row j of w: n steps of four elements, and the steps of the r
 * rows lie side by side. is_signed says what the bytes of data are. r is up to 4, a constant as is_signed. */
#ifndef LATHE_KERNEL_DSP_DOT_BYTES_H
#define LATHE_KERNEL_DSP_DOT_BYTES_H
#include "kernel/common/always.h"
#include "kernel/dsp/acle.h"
#include "kernel/dsp/bytes_asm.h"
#include <stdint.h>

#if LATHE_DSP == 2
#define LATHE_NAME          lathe_dot_bytes_tile
#define LATHE_FOUR_BY(s, t) LATHE_FOUR_BY_BYTES(s, t)
#define LATHE_STEP_BYTES    4
#define LATHE_GET(i)        out[i]
#define LATHE_PUT(i, s)     out[i] = (s)
#include "kernel/dsp/byte_tile.inc"
#elif LATHE_DSP == 1
static LATHE_ALWAYS void lathe_byte_words(int32_t *out, const uint8_t *a, const int8_t *w, int r, int n, int is_signed)
{
    int32_t s[4];
    int j, k;
    for (j = 0; j < r; j++)
        s[j] = out[j];
    for (k = 0; k < n; k++, a += 4, w += 4 * r) {
        const int32_t v = lathe_word(a), u = lathe_turned(v);
        const int32_t x = is_signed ? __sxtb16(v) : (int32_t)__uxtb16((uint32_t)v);
        const int32_t y = is_signed ? __sxtb16(u) : (int32_t)__uxtb16((uint32_t)u);
        for (j = 0; j < r; j++) {
            const int32_t c = lathe_word(w + 4 * j);
            s[j] = __smlad(y, __sxtb16(lathe_turned(c)), __smlad(x, __sxtb16(c), s[j]));
        }
    }
    for (j = 0; j < r; j++)
        out[j] = s[j];
}
#endif

static LATHE_ALWAYS void lathe_dot_bytes(int32_t *out, const void *data, const int8_t *w, int r, int n, int is_signed)
{
    const uint8_t *a = (const uint8_t *)data;
#if LATHE_DSP == 1
    lathe_byte_words(out, a, w, r, n, is_signed);
#else
    const int m = 1;
    int i, j, k, e;
#if LATHE_DSP == 2
    if (r == 4 || r == 2) {
        lathe_dot_bytes_tile(out, a, w, r, n, is_signed);
        return;
    }
#endif
    for (k = 0; k < n; k++, a += 4, w += 4 * r) {
#define LATHE_TERM (is_signed ? (int8_t)a[e] : a[e]) * w[4 * j + e]
#include "kernel/dsp/four_products.inc"
    }
#endif
}

#endif
