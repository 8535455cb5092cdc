/* SPDX-License-Identifier: Apache-2.0 */
/* out[i * out_step + j] (first: from 0 on) += the sum of the products of bytes from a + i * a_step + y * a_row and from
 * w + j * w_step + y * w_row on: n of them for each y below h. */
#ifndef LATHE_KERNEL_MVE_DOT_H
#define LATHE_KERNEL_MVE_DOT_H
#include "kernel/mve/mve.h"
#include "kernel/mve/tiles.h"
#include <stdint.h>

#if LATHE_MVE > 0
#define LATHE_NAME(size) lathe_tile##size
#define LATHE_LOAD_2     "vldrb.8 q0, [%[w0]], #16\n vldrb.8 q1, [%[w1]], #16\n"
#define LATHE_LOAD_4     LATHE_LOAD_2 "vldrb.8 q2, [%[w2]], #16\n vldrb.8 q3, [%[w3]], #16\n"
#define LATHE_ROWS_2     [w0] "+r"(w0), [w1] "+r"(w1)
#define LATHE_ROWS_4     LATHE_ROWS_2, [w2] "+r"(w2), [w3] "+r"(w3)
#define LATHE_ROWS(by)   (by)
#define LATHE_WEIGHTS(w, j, in) vldrbq_z_s8((w) + (j) * w_step, in)
#define LATHE_SHIFT(k)   0
#include "kernel/mve/dot_tiles.inc"
#endif

/* One sum. */
static LATHE_HERE int32_t lathe_mve_sum(int32_t s, const int8_t *a, const int8_t *w, int n)
{
#if LATHE_MVE == 2
    register int left __asm__("lr") = n;
    LATHE_ALONE(s);
    __asm__ volatile("dlstp.8 lr, lr\n1:\n"
                     "vldrb.8 q0, [%[w0]], #16\n vldrb.8 q1, [%[a0]], #16\n vmladava.s8 %[s0], q0, q1\n"
                     "letp lr, 1b\n"
                     : "+r"(left), [s0] "+Te"(s), [a0] "+r"(a), [w0] "+r"(w)
                     :
                     : "q0", "q1", "q2", "q3", "q4", "memory");
    LATHE_ALONE(s);
#elif LATHE_MVE == 1
    lathe_tile_step(&s, a, w, n, 0, 0, 1, 1);
#else
    int k;
    for (k = 0; k < n; k++)
        s += a[k] * w[k];
#endif
    return s;
}

static LATHE_HERE void lathe_mve_dot(int32_t *out, const int8_t *a, const int8_t *w, int m, int r, int h, int n,
                                     int a_step, int a_row, int w_step, int w_row, int out_step, int first)
{
    int i, j = 0, y;
#if LATHE_MVE > 0
    if (m <= 3)
        j = lathe_tiles(out, a, w, m, m == 1 ? 4 : 2, r, h, n, a_step, a_row, w_step, w_row, out_step, first);
#endif
    for (; j < r; j++)
        for (i = 0; i < m; i++) {
            int32_t s = first ? 0 : out[i * out_step + j];
            for (y = 0; y < h; y++)
                s = lathe_mve_sum(s, a + i * a_step + y * a_row, w + j * w_step + y * w_row, n);
            out[i * out_step + j] = s;
        }
}

#endif
