/* SPDX-License-Identifier: Apache-2.0 */
/* out[i] += the sum over k of a[i * step + k * tap] * w[k]: m windows of n taps along a row, as a depthwise convolution
 * has them. Three taps that lie side by side, as most do, have assembly. m, n, step and tap are constants. */
#ifndef LATHE_KERNEL_DSP_TAPS_ROW_H
#define LATHE_KERNEL_DSP_TAPS_ROW_H
#include "kernel/common/always.h"
#include "kernel/dsp/acle.h"
#include "kernel/dsp/taps_asm.h"
#include <stdint.h>

#if LATHE_TAPS_ASM
#define LATHE_ROW(name) lathe_taps_##name
#define LATHE_WEIGHT    const int8_t *
#define LATHE_TAPS                                                                          \
    "ldrsb %[p], [%[w]]\n ldrsb %[q], [%[w], #1]\n ldrsb %[y], [%[w], #2]\n"                \
    "pkhbt %[p], %[p], %[q], lsl #16\n pkhbt %[q], %[q], %[y], lsl #16\n"
#include "kernel/dsp/taps_tile.inc"
#elif LATHE_DSP == 1
/* Two taps at a time, where they lie side by side. */
static LATHE_ALWAYS void lathe_taps_words(int32_t *out, const int16_t *a, const int8_t *w, int m, int n, int step)
{
    int i, k;
    for (k = 0; k + 1 < n; k += 2)
        for (i = 0; i < m; i++)
            out[i] = __smlad(lathe_word(a + i * step + k), lathe_pair(w[k], w[k + 1]), out[i]);
    for (i = 0; n % 2 != 0 && i < m; i++)
        out[i] += a[i * step + n - 1] * w[n - 1];
}
#endif

static LATHE_ALWAYS void lathe_taps_row(int32_t *out, const int16_t *a, const int8_t *w, int m, int n, int step,
                                        int tap)
{
    int i, k;
#if LATHE_TAPS_ASM
    if (n == 3 && tap == 1 && step == 1 && lathe_taps_near(out, a, w, m))
        return;
    if (n == 3 && tap == 1 && step == 2 && lathe_taps_apart(out, a, w, m))
        return;
#elif LATHE_DSP == 1
    if (tap == 1) {
        lathe_taps_words(out, a, w, m, n, step);
        return;
    }
#endif
    for (k = 0; k < n; k++)
        for (i = 0; i < m; i++)
            out[i] += a[i * step + k * tap] * w[k];
}

#endif
