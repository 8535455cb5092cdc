/* SPDX-License-Identifier: Apache-2.0 */
/* dot.h by weights of 4 bits, for an even r: a byte has those of two channels, the first one's in its upper half. The
 * second one's are taken 16 times as large as they are, which saves a shift for each vector, and so are its sums on the
 * way: a sum has to fit into 28 bits. */
#ifndef LATHE_KERNEL_MVE_NIBBLES_H
#define LATHE_KERNEL_MVE_NIBBLES_H
#include "kernel/common/shifts.h"
#include "kernel/mve/mve.h"
#include "kernel/mve/tiles.h"
#include <stdint.h>

#if LATHE_MVE > 0
#define LATHE_NAME(size) lathe_nibble_tile##size
#define LATHE_LOAD_2     "vldrb.8 q0, [%[w0]], #16\n vshl.i8 q1, q0, #4\n vshr.s8 q0, q0, #4\n"
#define LATHE_LOAD_4     LATHE_LOAD_2 "vldrb.8 q2, [%[w1]], #16\n vshl.i8 q3, q2, #4\n vshr.s8 q2, q2, #4\n"
#define LATHE_ROWS_2     [w0] "+r"(w0)
#define LATHE_ROWS_4     LATHE_ROWS_2, [w1] "+r"(w1)
#define LATHE_ROWS(by)   ((by) / 2)
#define LATHE_WEIGHTS(w, j, in) lathe_mve_nibble(vldrbq_z_s8((w) + (j) / 2 * w_step, in), (j) % 2)
#define LATHE_SHIFT(k)   ((k) % 2 * 4)

#if LATHE_MVE == 1
static LATHE_HERE int8x16_t lathe_mve_nibble(int8x16_t pair, int second)
{
    return second ? vshlq_n_s8(pair, 4) : vshrq_n_s8(pair, 4);
}
#endif

#include "kernel/mve/dot_tiles.inc"
#endif

/* Two sums, the second one 16 times as large as it is. */
static LATHE_HERE void lathe_mve_two(int32_t *s, const int8_t *a, const int8_t *w, int n)
{
#if LATHE_MVE == 2
    register int left __asm__("lr") = n;
    int32_t s0 = s[0], s1 = s[1];
    LATHE_ALONE(s0);
    LATHE_ALONE(s1);
    __asm__ volatile("dlstp.8 lr, lr\n1:\n"
                     "vldrb.8 q0, [%[w0]], #16\n vshl.i8 q1, q0, #4\n vshr.s8 q0, q0, #4\n"
                     "vldrb.8 q2, [%[a0]], #16\n vmladava.s8 %[s0], q0, q2\n vmladava.s8 %[s1], q1, q2\n"
                     "letp lr, 1b\n"
                     : "+r"(left), [s0] "+Te"(s0), [s1] "+Te"(s1), [a0] "+r"(a), [w0] "+r"(w)
                     :
                     : "q0", "q1", "q2", "q3", "q4", "memory");
    LATHE_ALONE(s0);
    s[0] = s0;
    LATHE_ALONE(s1);
    s[1] = s1;
#elif LATHE_MVE == 1
    lathe_nibble_tile_step(s, a, w, n, 0, 0, 1, 2);
#else
    int k;
    for (k = 0; k < n; k++) {
        s[0] += a[k] * (w[k] >> 4);
        s[1] += a[k] * (int8_t)((uint32_t)w[k] << 4);
    }
#endif
}

static LATHE_HERE void lathe_mve_nibbles(int32_t *out, const int8_t *a, const int8_t *w, int m, int r, int h, int n,
                                         int a_step, int a_row, int w_step, int w_row, int out_step, int first)
{
    int i, j = 0, y;
#if LATHE_MVE > 0
    if (m <= 3)
        j = lathe_nibble_tiles(out, a, w, m, m == 1 ? 4 : 2, r, h, n, a_step, a_row, w_step, w_row, out_step, first);
#endif
    for (; j < r; j += 2)
        for (i = 0; i < m; i++) {
            int32_t *to = out + i * out_step + j, s[2];
            s[0] = first ? 0 : to[0];
            s[1] = first ? 0 : to[1] * 16;
            for (y = 0; y < h; y++)
                lathe_mve_two(s, a + i * a_step + y * a_row, w + j / 2 * w_step + y * w_row, n);
            to[0] = s[0];
            to[1] = s[1] >> 4;
        }
}

#endif
