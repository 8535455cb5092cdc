/* SPDX-License-Identifier: Apache-2.0 */
/* out[x * out_step + 4 * i + j] = a[j * row + x * step + i], i below n, j below m, x below columns: m rows, up to four,
 * become the bytes of words, as window.h wants them. The last byte of a word of three rows may be anything: its weight
 * is 0. Sixteen channels at a time by VST4, which puts four vectors together. */
#ifndef LATHE_KERNEL_MVE_WORDS_H
#define LATHE_KERNEL_MVE_WORDS_H
#include "kernel/mve/mve.h"
#include <stdint.h>

#if LATHE_MVE == 2
/* Sixteen channels of each column. */
#define LATHE_SIDES(loads, steps)                                                                  \
    __asm__ volatile("dls lr, %[n]\n1:\n" loads "vst40.8 {q0, q1, q2, q3}, [%[o]]\n"              \
                     "vst41.8 {q0, q1, q2, q3}, [%[o]]\n vst42.8 {q0, q1, q2, q3}, [%[o]]\n"       \
                     "vst43.8 {q0, q1, q2, q3}, [%[o]]\n add %[o], %[o], %[out_step]\n"            \
                     steps "le lr, 1b\n"                                                          \
                     : [o] "+r"(o), [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [d] "+r"(d)             \
                     : [n] "r"(columns), [step] "rI"(step), [out_step] "rI"(out_step)              \
                     : "lr", "memory", "q0", "q1", "q2", "q3")
static LATHE_HERE void lathe_sides_16(int8_t *o, const int8_t *a, const int8_t *b, const int8_t *c,
                                      const int8_t *d, int m, int columns, int step, int out_step)
{
    if (m == 4)
        LATHE_SIDES("vldrb.8 q0, [%[a]]\n vldrb.8 q1, [%[b]]\n vldrb.8 q2, [%[c]]\n vldrb.8 q3, [%[d]]\n",
                    "add %[a], %[a], %[step]\n add %[b], %[b], %[step]\n"
                    "add %[c], %[c], %[step]\n add %[d], %[d], %[step]\n");
    else
        LATHE_SIDES("vldrb.8 q0, [%[a]]\n vldrb.8 q1, [%[b]]\n vldrb.8 q2, [%[c]]\n",
                    "add %[a], %[a], %[step]\n add %[b], %[b], %[step]\n add %[c], %[c], %[step]\n");
}
#endif

static LATHE_HERE void lathe_mve_words(int8_t *out, const int8_t *a, int n, int m, int columns, int row,
                                       int step, int out_step)
{
    int i, j, x;
#if LATHE_MVE > 0
    const int8_t *b = m > 1 ? a + row : a, *c = m > 2 ? b + row : a, *d = m > 3 ? c + row : a;
    if (step == n && out_step == 4 * n) { /* one run */
        n *= columns;
        columns = 1;
    }
#if LATHE_MVE == 2
    for (i = 0; columns > 1 && n - i >= 16; i += 16)
        lathe_sides_16(out + 4 * i, a + i, b + i, c + i, d + i, m, columns, step, out_step);
    if (columns == 1 && n >= 16) {
        lathe_sides_16(out, a, b, c, d, m, n / 16, 16, 64);
        i = n / 16 * 16;
    }
#else
    i = 0;
#endif
    for (; i < n && (((uintptr_t)out | (unsigned)out_step) & 3u) == 0; i += 4) {
        const mve_pred16_t in = vctp32q((uint32_t)(n - i));
        for (x = 0; x < columns; x++) {
            const int at = x * step + i;
            uint32x4_t v = vldrbq_z_u32((const uint8_t *)a + at, in);
            v = vsliq_n_u32(v, vldrbq_z_u32((const uint8_t *)b + at, in), 8);
            v = vsliq_n_u32(v, vldrbq_z_u32((const uint8_t *)c + at, in), 16);
            v = vsliq_n_u32(v, vldrbq_z_u32((const uint8_t *)d + at, in), 24);
            vstrwq_p_u32((uint32_t *)(void *)(out + x * out_step + 4 * i), v, in);
        }
    }
#else
    i = 0;
#endif
    for (; i < n; i++)
        for (x = 0; x < columns; x++)
            for (j = 0; j < m; j++)
                out[x * out_step + 4 * i + j] = a[j * row + x * step + i];
}

#endif
