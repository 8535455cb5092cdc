/* SPDX-License-Identifier: Apache-2.0 */
/* out[i * out_step + j] (first: from 0 on) += the sum over x and y of a[i * a_step + x * a_tap + 4 * j + y] by
 * w[j * w_step + y * w_row + x], y below p and x below q: depthwise convolutions, whose data stands in words of four
 * rows (words.h). */
#ifndef LATHE_KERNEL_MVE_WINDOW_H
#define LATHE_KERNEL_MVE_WINDOW_H
#include "kernel/mve/window_asm.h"
#include <stdint.h>

#define LATHE_NAME lathe_mve_window
#define LATHE_FOUR_WINDOWS                                                                         \
    const int8x16_t w0 = lathe_window(w, p, q, w_row), w1 = lathe_window(w + w_step, p, q, w_row), \
                    w2 = lathe_window(w + 2 * w_step, p, q, w_row), w3 = lathe_window(w + 3 * w_step, p, q, w_row)
#define LATHE_WINDOW(j)       lathe_window(w + (j) * w_step, p, q, w_row)
#define LATHE_WEIGHT(j, y, x) w[(j) * w_step + (y) * w_row + (x)]
#include "kernel/mve/window.inc"

#endif
