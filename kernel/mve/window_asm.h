/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of up to four rows and four columns, of which a vector holds one: its words are columns, and the bytes of a
 * word the rows, one above the other. So the data of a window is four words, each at its address (VLDRW), and one
 * VMLADAV is the whole sum. A column that the window has not is its first one again, by weights of 0. */
#ifndef LATHE_KERNEL_MVE_WINDOW_ASM_H
#define LATHE_KERNEL_MVE_WINDOW_ASM_H
#include "kernel/mve/mve.h"
#include <stdint.h>

#if LATHE_MVE > 0
/* Lane 4 * x + y: the weight of row y and column x; 0 where the window has none. */
static LATHE_HERE int8x16_t lathe_window(const int8_t *w, int p, int q, int w_row)
{
    const uint8x16_t lane = vidupq_n_u8(0, 1), x = vshrq_n_u8(lane, 2), y = vandq_u8(lane, vdupq_n_u8(3));
    const uint32_t rows = ((1u << (uint32_t)p) - 1u) * 0x1111u, columns = (1u << (4u * (uint32_t)q)) - 1u;
    const mve_pred16_t in = (mve_pred16_t)(rows & columns);
    return vldrbq_gather_offset_z_s8(w, vaddq_u8(x, vmulq_n_u8(y, (uint8_t)w_row)), in);
}

/* The addresses of the columns. */
static LATHE_HERE uint32x4_t lathe_columns(const int8_t *a, int q, int a_tap)
{
    const uint32_t step = (uint32_t)a_tap;
#if LATHE_MVE == 2
    const uint32x4_t v = {0, q > 1 ? step : 0, q > 2 ? 2 * step : 0, q > 3 ? 3 * step : 0};
#else
    const uint32x4_t v = vpselq_u32(vmulq_n_u32(vidupq_n_u32(0, 1), step), vdupq_n_u32(0), vctp32q((uint32_t)q));
#endif
    return vaddq_n_u32(v, (uint32_t)(uintptr_t)a);
}

/* The data at these addresses. */
static LATHE_HERE int8x16_t lathe_at(uint32x4_t at)
{
    int8x16_t window;
#if LATHE_MVE == 2 /* gcc's builtin says nothing of the memory that it reads */
    __asm__ volatile("vldrw.u32 %q0, [%q1]" : "=&w"(window) : "w"(at) : "memory");
#else
    window = vreinterpretq_s8_u32(vldrwq_gather_base_u32(at, 0));
#endif
    return window;
}
#endif

#if LATHE_MVE == 2
/* Four channels of each of m pixels, whose sums go out by two STRD: 4 loads and 4 VMLADAV for up to 64 products. */
#define LATHE_MVE_WORDS(add)                                                                       \
    "vldrw.u32 q6, [%q[at]]\n" "vmladav" add ".s8 %[s0], q6, %q[w0]\n"                             \
    "vldrw.u32 q7, [%q[at], #4]\n" "vmladav" add ".s8 %[s1], q7, %q[w1]\n"                         \
    "vldrw.u32 q6, [%q[at], #8]\n" "vmladav" add ".s8 %[s2], q6, %q[w2]\n"                         \
    "vldrw.u32 q7, [%q[at], #12]\n" "vadd.i32 %q[at], %q[at], %[step]\n"                           \
    "vmladav" add ".s8 %[s3], q7, %q[w3]\n"                                                        \
    "strd %[s0], %[s1], [%[out]], #8\n strd %[s2], %[s3], [%[out]], #8\n"
#define LATHE_MVE_WORDS_END                                                                        \
    : [out] "+r"(out), [at] "+w"(at), [s0] "=&Te"(s0), [s1] "=&Te"(s1), [s2] "=&Te"(s2),           \
      [s3] "=&Te"(s3)                                                                              \
    : [m] "r"(m), [step] "r"(a_step), [w0] "w"(w0), [w1] "w"(w1), [w2] "w"(w2), [w3] "w"(w3)       \
    : "lr", "memory", "q6", "q7"
static LATHE_HERE void lathe_windows_4(int32_t *out, uint32x4_t at, int8x16_t w0, int8x16_t w1, int8x16_t w2,
                                       int8x16_t w3, int m, int a_step, int first)
{
    int32_t s0, s1, s2, s3;
    if (first)
        __asm__ volatile("dls lr, %[m]\n1:\n" LATHE_MVE_WORDS("") "le lr, 1b\n" LATHE_MVE_WORDS_END);
    else
        __asm__ volatile("dls lr, %[m]\n1:\n"
                         "ldrd %[s0], %[s1], [%[out]]\n ldrd %[s2], %[s3], [%[out], #8]\n"
                         LATHE_MVE_WORDS("a") "le lr, 1b\n" LATHE_MVE_WORDS_END);
}
#endif

#endif
