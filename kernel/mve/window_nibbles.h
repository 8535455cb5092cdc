/* SPDX-License-Identifier: Apache-2.0 */
/* window.h by weights of 4 bits: a byte has those of two channels, the first one's in its upper half. */
#ifndef LATHE_KERNEL_MVE_WINDOW_NIBBLES_H
#define LATHE_KERNEL_MVE_WINDOW_NIBBLES_H
#include "kernel/common/half.h"
#include "kernel/common/shifts.h"
#include "kernel/mve/window_asm.h"
#include <stdint.h>

#if LATHE_MVE > 0
/* LATHE_HALF of vectors. */
static LATHE_HERE int8x16_t lathe_half(int8x16_t pair, int low)
{
    return vshrq_n_s8(low ? vshlq_n_s8(pair, 4) : pair, 4);
}
#endif

#define LATHE_NAME lathe_mve_window_nibbles
#define LATHE_FOUR_WINDOWS                                                                          \
    const int8x16_t u = lathe_window(w, p, q, w_row), v = lathe_window(w + w_step, p, q, w_row),    \
                    w0 = lathe_half(u, 0), w1 = lathe_half(u, 1), w2 = lathe_half(v, 0), w3 = lathe_half(v, 1)
#define LATHE_WINDOW(j)       lathe_half(lathe_window(w + (j) / 2 * w_step, p, q, w_row), (j) % 2)
#define LATHE_WEIGHT(j, y, x) LATHE_HALF(w[(j) / 2 * w_step + (y) * w_row + (x)], (j) % 2)
#include "kernel/mve/window.inc"

#endif
