/* SPDX-License-Identifier: Apache-2.0 */
/* dot_bytes.h by weights of 4 bits, for an even r. Of a step's four bytes number 2 * h + c has the elements 2 * h and
 * 2 * h + 1 of channel c, the first one in its upper half. */
#ifndef LATHE_KERNEL_DSP_NIBBLE_BYTES_H
#define LATHE_KERNEL_DSP_NIBBLE_BYTES_H
#include "kernel/common/always.h"
#include "kernel/common/half.h"
#include "kernel/dsp/acle.h"
#include "kernel/dsp/bytes_asm.h"
#include "kernel/dsp/nibbles_asm.h"
#include <stdint.h>

#if LATHE_DSP == 2
#define LATHE_NAME          lathe_nibble_bytes_tile
#define LATHE_FOUR_BY(s, t) LATHE_NIBBLES_BY("x", "y", s, t)
#define LATHE_STEP_BYTES    2
#define LATHE_GET(i)        0
#define LATHE_PUT(i, s)     out[i] += (s) >> 4
#include "kernel/dsp/byte_tile.inc"
#elif LATHE_DSP == 1
static LATHE_ALWAYS void lathe_nibble_byte_words(int32_t *out, const uint8_t *a, const int8_t *w, int r, int n,
                                                 int is_signed)
{
    int32_t s[4];
    int j, k;
    for (j = 0; j < r; j++)
        s[j] = 0;
    for (k = 0; k < n; k++, a += 4, w += 2 * r) {
        const int32_t v = lathe_word(a), u = lathe_turned(v);
        const int32_t x = is_signed ? __sxtb16(v) : (int32_t)__uxtb16((uint32_t)v);
        const int32_t y = is_signed ? __sxtb16(u) : (int32_t)__uxtb16((uint32_t)u);
        for (j = 0; j < r; j += 2) {
            const int32_t c = lathe_word(w + 2 * j), high = lathe_high(c), low = lathe_low(c);
            s[j] = __smlad(y, __sxtb16(low), __smlad(x, __sxtb16(high), s[j]));
            s[j + 1] = __smlad(y, __sxtb16(lathe_turned(low)), __smlad(x, __sxtb16(lathe_turned(high)), s[j + 1]));
        }
    }
    for (j = 0; j < r; j++)
        out[j] += s[j] >> 4;
}
#endif

static LATHE_ALWAYS void lathe_nibble_bytes(int32_t *out, const void *data, const int8_t *w, int r, int n,
                                            int is_signed)
{
    const uint8_t *a = (const uint8_t *)data;
#if LATHE_DSP == 1
    lathe_nibble_byte_words(out, a, w, r, n, is_signed);
#else
    const int m = 1;
    int i, j, k, e;
#if LATHE_DSP == 2
    if (r == 4 || r == 2) {
        lathe_nibble_bytes_tile(out, a, w, r, n, is_signed);
        return;
    }
#endif
    for (k = 0; k < n; k++, a += 4, w += 2 * r) {
#define LATHE_TERM (is_signed ? (int8_t)a[e] : a[e]) * LATHE_HALF(w[j / 2 * 4 + e / 2 * 2 + j % 2], e % 2)
#include "kernel/dsp/four_products.inc"
    }
#endif
}

#endif
