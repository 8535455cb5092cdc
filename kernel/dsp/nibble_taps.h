/* SPDX-License-Identifier: Apache-2.0 */
/* taps_row.h by weights of 4 bits, all in one number: that of tap k in bits 4 * k on of w. */
#ifndef LATHE_KERNEL_DSP_NIBBLE_TAPS_H
#define LATHE_KERNEL_DSP_NIBBLE_TAPS_H
#include "kernel/common/always.h"
#include "kernel/common/shifts.h"
#include "kernel/dsp/taps_asm.h"
#include <stdint.h>

#if LATHE_TAPS_ASM
#define LATHE_ROW(name) lathe_nibble_taps_##name
#define LATHE_WEIGHT    int32_t
#define LATHE_TAPS                                                                          \
    "sbfx %[p], %[w], #0, #4\n sbfx %[q], %[w], #4, #4\n sbfx %[y], %[w], #8, #4\n"         \
    "pkhbt %[p], %[p], %[q], lsl #16\n pkhbt %[q], %[q], %[y], lsl #16\n"
#include "kernel/dsp/taps_tile.inc"
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
#endif
    for (k = 0; k < n; k++)
        for (i = 0; i < m; i++)
            out[i] += a[i * step + k * tap] * ((int32_t)((uint32_t)(w >> 4 * k) << 28) >> 28);
}

#endif
