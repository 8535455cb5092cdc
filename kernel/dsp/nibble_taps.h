/* SPDX-License-Identifier: Apache-2.0 */
/* taps_row.h by weights of 4 bits, all in one number: that of tap k in bits 4 * k on of w. */
#ifndef LATHE_KERNEL_DSP_NIBBLE_TAPS_H
#define LATHE_KERNEL_DSP_NIBBLE_TAPS_H
#include "kernel/common/always.h"
#include "kernel/common/shifts.h"
#include "kernel/dsp/acle.h"
#include "kernel/dsp/taps_asm.h"
#include <stdint.h>

static LATHE_ALWAYS int32_t lathe_tap(int32_t w, int k)
{
    return (int32_t)((uint32_t)(w >> 4 * k) << 28) >> 28;
}

#if LATHE_TAPS_ASM
#define LATHE_ROW(name) lathe_nibble_taps_##name
#define LATHE_WEIGHT    int32_t
#define LATHE_TAPS                                                                          \
    "sbfx %[p], %[w], #0, #4\n sbfx %[q], %[w], #4, #4\n sbfx %[y], %[w], #8, #4\n"         \
    "pkhbt %[p], %[p], %[q], lsl #16\n pkhbt %[q], %[q], %[y], lsl #16\n"
#include "kernel/dsp/taps_tile.inc"
#elif LATHE_DSP == 1
/* Two taps at a time, where they lie side by side. */
static LATHE_ALWAYS void lathe_nibble_taps_words(int32_t *out, const int16_t *a, int32_t w, int m, int n, int step)
{
    int i, k;
    for (k = 0; k + 1 < n; k += 2)
        for (i = 0; i < m; i++)
            out[i] = __smlad(lathe_word(a + i * step + k), lathe_pair(lathe_tap(w, k), lathe_tap(w, k + 1)), out[i]);
    for (i = 0; n % 2 != 0 && i < m; i++)
        out[i] += a[i * step + n - 1] * lathe_tap(w, n - 1);
}
#endif

static LATHE_ALWAYS void lathe_nibble_taps(int32_t *out, const int16_t *a, int32_t w, int m, int n, int step,
                                           int tap)
{
    int i, k;
#if LATHE_TAPS_ASM
    if (n == 3 && tap == 1 && step == 1 && lathe_nibble_taps_near(out, a, w, m))
        return;
    if (n == 3 && tap == 1 && step == 2 && lathe_nibble_taps_apart(out, a, w, m))
        return;
#elif LATHE_DSP == 1
    if (tap == 1) {
        lathe_nibble_taps_words(out, a, w, m, n, step);
        return;
    }
#endif
    for (k = 0; k < n; k++)
        for (i = 0; i < m; i++)
            out[i] += a[i * step + k * tap] * lathe_tap(w, k);
}

#endif
