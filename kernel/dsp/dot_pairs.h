/* SPDX-License-Identifier: Apache-2.0 */
/* out[i * row + j] += (begins: =) the sum of products of run i of a and run j of b, both of numbers of 16 bits: n steps
 * of four. The steps of two runs of a lie side by side, and those of all runs of b, `step` numbers from one to the
 * next. m and r are up to 2, constants as are step, row and begins; both operands begin at words.
 *
 * 16 multiply-adds take 13 instructions and a share of the loop: 8 SMLAD, 4 LDRD. The end of a lies in memory, so that
 * twelve registers are enough. With vectors (Helium), 32 multiply-adds of two runs by two take 4 VMLADAVA and 4 VLDRD,
 * each of which gathers two steps of one run. */
#ifndef LATHE_KERNEL_DSP_DOT_PAIRS_H
#define LATHE_KERNEL_DSP_DOT_PAIRS_H
#include "kernel/common/always.h"
#include "kernel/common/words.h"
#include "kernel/dsp/acle.h"
#include "kernel/mve/mve.h"
#include <stdint.h>

#if LATHE_DSP == 2
#define LATHE_PAIRS_BY(x, y, s) "smlad %" s ", %[" x "], %[u], %" s "\n smlad %" s ", %[" y "], %[v], %" s "\n"
#define LATHE_PAIRS_A1          "ldrd %[p], %[q], [%[a]], #16\n"
#define LATHE_PAIRS_A2          "ldrd %[p], %[q], [%[a]], #8\n ldrd %[x], %[y], [%[a]], #8\n"
#define LATHE_PAIRS_B(at)       "ldrd %[u], %[v], [%[b], #" at "]\n"
#define LATHE_PAIRS_NEXT        "add %[b], %[b], %[step]\n"
#define LATHE_PAIRS_1X1         LATHE_PAIRS_A1 LATHE_PAIRS_B("0") LATHE_PAIRS_BY("p", "q", "0") LATHE_PAIRS_NEXT
#define LATHE_PAIRS_1X2                                                                                       \
    LATHE_PAIRS_A1 LATHE_PAIRS_B("0") LATHE_PAIRS_BY("p", "q", "0") LATHE_PAIRS_B("8")                        \
    LATHE_PAIRS_BY("p", "q", "1") LATHE_PAIRS_NEXT
#define LATHE_PAIRS_2X1                                                                                       \
    LATHE_PAIRS_A2 LATHE_PAIRS_B("0") LATHE_PAIRS_BY("p", "q", "0") LATHE_PAIRS_BY("x", "y", "1") LATHE_PAIRS_NEXT
#define LATHE_PAIRS_2X2                                                                                       \
    LATHE_PAIRS_A2 LATHE_PAIRS_B("0") LATHE_PAIRS_BY("p", "q", "0") LATHE_PAIRS_BY("x", "y", "2")             \
    LATHE_PAIRS_B("8") LATHE_PAIRS_BY("p", "q", "1") LATHE_PAIRS_BY("x", "y", "3") LATHE_PAIRS_NEXT
#define LATHE_PAIRS_LOOP(text, ...)                                                                           \
    __asm__ volatile("1:\n" text "ldr %[u], %[end]\n cmp %[a], %[u]\n bne 1b\n"                               \
                     : __VA_ARGS__, [a] "+r"(a), [b] "+r"(b), [p] "=&r"(p), [q] "=&r"(q), [u] "=&r"(u),       \
                       [v] "=&r"(v)                                                                           \
                     : [end] "m"(end), [step] "rI"(2 * step)                                                  \
                     : "cc", "memory")
#define LATHE_PAIRS_N(text, ...)                      \
    do {                                              \
        if (n % 2 == 0)                               \
            LATHE_PAIRS_LOOP(text text, __VA_ARGS__); \
        else                                          \
            LATHE_PAIRS_LOOP(text, __VA_ARGS__);      \
    } while (0)

static LATHE_ALWAYS void lathe_pairs_tile(int32_t *out, const int16_t *a, const int16_t *b, int m, int r, int n,
                                          int step, int row, int begins)
{
    const int16_t *end = a + 8 * n;
    int32_t *below = out + (m == 2 ? row : 1); /* the second sum of two, and the third of four */
    int32_t s0 = begins ? 0 : out[0], p, q, u, v;
    if (m == 2 && r == 2) {
        int32_t s1 = begins ? 0 : out[1], s2 = begins ? 0 : below[0], s3 = begins ? 0 : below[1], x, y;
        LATHE_PAIRS_N(LATHE_PAIRS_2X2, "+r"(s0), "+r"(s1), "+r"(s2), "+r"(s3), [x] "=&r"(x), [y] "=&r"(y));
        out[1] = s1;
        below[0] = s2;
        below[1] = s3;
    } else if (m == 2) {
        int32_t s1 = begins ? 0 : below[0], x, y;
        LATHE_PAIRS_N(LATHE_PAIRS_2X1, "+r"(s0), "+r"(s1), [x] "=&r"(x), [y] "=&r"(y));
        below[0] = s1;
    } else if (r == 2) {
        int32_t s1 = begins ? 0 : below[0];
        LATHE_PAIRS_N(LATHE_PAIRS_1X2, "+r"(s0), "+r"(s1));
        below[0] = s1;
    } else {
        LATHE_PAIRS_N(LATHE_PAIRS_1X1, "+r"(s0));
    }
    out[0] = s0;
}
#endif

#if LATHE_MVE > 0
/* Memory is read and written on the side that the text says: gcc does not know that a load from addresses in a vector
 * reads any. */
#if defined(__GNUC__)
#define LATHE_PAIRS_APART(...) __asm__ volatile("" : __VA_ARGS__ : : "memory")
#else
#define LATHE_PAIRS_APART(...) ((void)0)
#endif

/* Two runs by two: of n steps so many as are even, at least two. Words 0 and 2 of a vector are the addresses of a
 * gathering load. */
static LATHE_ALWAYS void lathe_pairs_vectors(int32_t *out, const int16_t *a, const int16_t *b, int n, int step, int row,
                                             int begins)
{
    int32_t s0 = begins ? 0 : out[0], s1 = begins ? 0 : out[1], s2 = begins ? 0 : out[row],
            s3 = begins ? 0 : out[row + 1];
    const uint32_t far = 2u * (uint32_t)step;
    uint32_t a_at = (uint32_t)(uintptr_t)a, b_at = (uint32_t)(uintptr_t)b;
    LATHE_PAIRS_APART("+r"(a_at), "+r"(b_at));
    uint32x4_t at_a = vsetq_lane_u32(a_at + 16, vdupq_n_u32(a_at), 2),
               at_b = vsetq_lane_u32(b_at + far, vdupq_n_u32(b_at), 2);
    int k;
    for (k = n / 2; k > 0; k--) {
        const uint64x2_t x = vreinterpretq_u64_u32(at_a), y = vreinterpretq_u64_u32(at_b);
        const int16x8_t u = vreinterpretq_s16_s64(vldrdq_gather_base_s64(y, 0)),
                        v = vreinterpretq_s16_s64(vldrdq_gather_base_s64(y, 8)),
                        p = vreinterpretq_s16_s64(vldrdq_gather_base_s64(x, 0)),
                        q = vreinterpretq_s16_s64(vldrdq_gather_base_s64(x, 8));
        s0 = vmladavaq_s16(s0, p, u);
        s1 = vmladavaq_s16(s1, p, v);
        s2 = vmladavaq_s16(s2, q, u);
        s3 = vmladavaq_s16(s3, q, v);
        at_a = vaddq_n_u32(at_a, 32);
        at_b = vaddq_n_u32(at_b, 2 * far);
    }
    LATHE_PAIRS_APART("+r"(s0), "+r"(s1), "+r"(s2), "+r"(s3));
    out[0] = s0;
    out[1] = s1;
    out[row] = s2;
    out[row + 1] = s3;
}
#endif

static LATHE_ALWAYS void lathe_dot_pairs(int32_t *out, const int16_t *a, const int16_t *b, int m, int r, int n,
                                         int step, int row, int begins)
{
#if LATHE_MVE > 0
    if (m == 2 && r == 2 && n > 1) {
        lathe_pairs_vectors(out, a, b, n, step, row, begins);
        if (n % 2 == 0)
            return;
        a += 8 * (n - 1);
        b += step * (n - 1);
        n = 1;
        begins = 0;
    }
#endif
#if LATHE_DSP == 2
    lathe_pairs_tile(out, a, b, m, r, n, step, row, begins);
#else
    int i, j, k;
    for (i = 0; begins && i < m * r; i++)
        out[i / r * row + i % r] = 0;
    for (k = 0; k < n; k++, a += 8, b += step)
        for (i = 0; i < m; i++)
            for (j = 0; j < r; j++) {
#if LATHE_DSP == 1
                const int16_t *x = a + 4 * i, *y = b + 4 * j;
                out[i * row + j] = __smlad(lathe_word(x + 2), lathe_word(y + 2),
                                         __smlad(lathe_word(x), lathe_word(y), out[i * row + j]));
#else
                int e;
                for (e = 0; e < 4; e++)
                    out[i * row + j] += a[4 * i + e] * b[4 * j + e];
#endif
            }
#endif
}

#endif
