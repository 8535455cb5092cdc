/* SPDX-License-Identifier: Apache-2.0 */
/* The pieces that row_tiles.inc and run_tiles.inc put their assembly together from. A tile is a few runs of data of 16
 * bits by two or four channels of weights. A step is four elements of each: two words of data, four weights of a
 * channel.
 *
 * Registers: %0 to %5 hold the sums; a and w are where data and weights are read; x and y hold words of data; e, f, u
 * and v the weights of a step. gcc has 14 registers to give, and the largest tile takes them all, so the end of the
 * weights lies in memory. */
#ifndef LATHE_KERNEL_DSP_ROWS_ASM_H
#define LATHE_KERNEL_DSP_ROWS_ASM_H
#include "kernel/dsp/dsp.h"

#if LATHE_DSP == 2
/* With -fno-omit-frame-pointer gcc has one register less, which wants -DLATHE_FRAME_POINTER here. */
#if defined(__clang__) || defined(__PIC__) || defined(LATHE_FRAME_POINTER)
#define LATHE_ALL_REGISTERS 0
#else
#define LATHE_ALL_REGISTERS 1
#endif

/* Eight bytes of weights of two channels, made 16 bits wide: e and f are for the first word of data, u and v for the
 * second one. */
#define LATHE_BYTE_WEIGHTS                                                                  \
    "ldrd %[u], %[v], [%[w]], #8\n sxtb16 %[e], %[u]\n sxtb16 %[f], %[v]\n"                 \
    "sxtb16 %[u], %[u], ror #8\n sxtb16 %[v], %[v], ror #8\n"
/* The same eight bytes by the two words of one run in x and f. */
#define LATHE_BYTE_PAIR(s, t)                                                               \
    "ldrd %[u], %[v], [%[w]], #8\n sxtb16 %[e], %[u]\n sxtb16 %[u], %[u], ror #8\n"         \
    "smlad %" s ", %[x], %[e], %" s "\n smlad %" s ", %[f], %[u], %" s "\n"                 \
    "sxtb16 %[e], %[v]\n sxtb16 %[v], %[v], ror #8\n"                                       \
    "smlad %" t ", %[x], %[e], %" t "\n smlad %" t ", %[f], %[v], %" t "\n"

/* Two channels by one word of data. */
#define LATHE_SUM(x, e, f, s, t)                                                            \
    "smlad %" s ", %[" x "], %[" e "], %" s "\n smlad %" t ", %[" x "], %[" f "], %" t "\n"
#define LATHE_LOW(s, t)  LATHE_SUM("x", "e", "f", s, t)
#define LATHE_HIGH(s, t) LATHE_SUM("x", "u", "v", s, t)
#define LATHE_BOTH(s, t) LATHE_LOW(s, t) LATHE_SUM("y", "u", "v", s, t)

/* One run by a step. Data at a word's boundary is read by LDRD, two words at once; anywhere else (_A) by two LDR. BY
 * reads a run that lies `at` behind the first one, NEXT the first one, and goes on to its next step. */
#define LATHE_NEXT(s, t)   "ldrd %[x], %[y], [%[a]], %[s]\n" LATHE_BOTH(s, t)
#define LATHE_BY(at, s, t) "ldrd %[x], %[y], [%[a], %[" at "]]\n" LATHE_BOTH(s, t)
#define LATHE_NEXT_A(s, t)                                                                  \
    "ldr %[x], [%[a], #4]\n" LATHE_HIGH(s, t) "ldr %[x], [%[a]], %[s]\n" LATHE_LOW(s, t)
#define LATHE_BY_A(at, s, t)                                                                \
    "ldr %[x], [%[a], %[" at "]]\n" LATHE_LOW(s, t) "ldr %[x], [%[a], %[" at "]+4]\n" LATHE_HIGH(s, t)

/* A step of a tile: runs by channels. */
#define LATHE_2X2   LATHE_WEIGHTS LATHE_BY("p", "2", "3") LATHE_NEXT("0", "1")
#define LATHE_2X2_A LATHE_WEIGHTS LATHE_BY_A("p", "2", "3") LATHE_NEXT_A("0", "1")
#define LATHE_3X2   LATHE_WEIGHTS LATHE_BY("q", "0", "1") LATHE_BY("p", "4", "5") LATHE_NEXT("2", "3")
#define LATHE_3X2_A LATHE_WEIGHTS LATHE_BY_A("p", "2", "3") LATHE_BY_A("q", "4", "5") LATHE_NEXT_A("0", "1")
#define LATHE_1X2   LATHE_WEIGHTS LATHE_NEXT("0", "1")
#define LATHE_1X2_A LATHE_WEIGHTS LATHE_NEXT_A("0", "1")
#define LATHE_1X4   "ldrd %[x], %[f], [%[a]], %[s]\n" LATHE_PAIR("0", "1") LATHE_PAIR("2", "3")
#define LATHE_1X4_A "ldr %[f], [%[a], #4]\n ldr %[x], [%[a]], %[s]\n" LATHE_PAIR("0", "1") LATHE_PAIR("2", "3")

#define LATHE_SUMS_1 "+r"(s0), "+r"(s1)
#define LATHE_SUMS_2 LATHE_SUMS_1, "+r"(s2), "+r"(s3)
#define LATHE_SUMS_3 LATHE_SUMS_2, "+r"(s4), "+r"(s5)
#define LATHE_SUMS_3_W LATHE_SUMS_3, [y] "=&r"(y)
#define LATHE_SUMS_2_W LATHE_SUMS_2, [y] "=&r"(y)
#define LATHE_SUMS_1_W LATHE_SUMS_1, [y] "=&r"(y)

#define LATHE_DOT(before, text, behind, r1, r2, ...)                                        \
    __asm__ volatile(before text behind                                                     \
                     : __VA_ARGS__, [a] "+r"(a), [w] "+r"(w), [x] "=&r"(x),                 \
                       [u] "=&r"(u), [v] "=&r"(v), [e] "=&r"(e), [f] "=&r"(f)               \
                     : [end] "m"(end), [p] "i"(r1), [q] "i"(r2), [s] "i"(2 * step)          \
                     : "cc", "memory")
#define LATHE_KNOWN(n) __builtin_constant_p(n)
/* gcc counts the lines of the text to know how long it is. */
#define LATHE_LOOP(text, r1, r2, ...)                                                       \
    LATHE_DOT("1:\n", text, "ldr %[x], %[end]\n cmp %[w], %[x]\n bne 1b\n", r1, r2, __VA_ARGS__)
/* n steps, up to four of them in an iteration: the end of one takes three instructions. */
#define LATHE_DOT_N(text, r1, r2, ...)                                                      \
    do {                                                                                    \
        if (!LATHE_KNOWN(n) && n % 4 == 0)                                                  \
            LATHE_LOOP(text text text text, r1, r2, __VA_ARGS__);                           \
        else if (!LATHE_KNOWN(n) && n % 2 == 0)                                             \
            LATHE_LOOP(text text, r1, r2, __VA_ARGS__);                                     \
        else if (!LATHE_KNOWN(n))                                                           \
            LATHE_LOOP(text, r1, r2, __VA_ARGS__);                                          \
        else if (n == 1)                                                                    \
            LATHE_DOT("", text, "", r1, r2, __VA_ARGS__);                                   \
        else if (n == 2)                                                                    \
            LATHE_DOT("", text text, "", r1, r2, __VA_ARGS__);                              \
        else if (n == 3)                                                                    \
            LATHE_DOT("", text text text, "", r1, r2, __VA_ARGS__);                         \
        else if (n % 16 == 0)                                                               \
            LATHE_LOOP(text text text text, r1, r2, __VA_ARGS__);                           \
        else if (n % 2 == 0)                                                                \
            LATHE_LOOP(text text, r1, r2, __VA_ARGS__);                                     \
        else if (n % 3 == 0)                                                                \
            LATHE_LOOP(text text text, r1, r2, __VA_ARGS__);                                \
        else                                                                                \
            LATHE_LOOP(text, r1, r2, __VA_ARGS__);                                          \
    } while (0)
#else
#define LATHE_ALL_REGISTERS 0
#endif

#endif
