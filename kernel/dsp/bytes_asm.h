/* SPDX-License-Identifier: Apache-2.0 */
/* The pieces that byte_tile.inc puts its assembly together from: one run of bytes by two or four channels.
 * Registers: %0 to %3 hold the sums; x has elements 0 and 2 of a step of data, y has 1 and 3; e (f in C), u and v hold
 * weights. There are registers left for the end of the weights. */
#ifndef LATHE_KERNEL_DSP_BYTES_ASM_H
#define LATHE_KERNEL_DSP_BYTES_ASM_H
#include "kernel/dsp/dsp.h"

#if LATHE_DSP == 2
/* Every second byte, then the others: of four numbers of data, and of four weights of two channels. */
#define LATHE_FOUR(wider) "ldr %[y], [%[a]], #4\n " wider " %[x], %[y]\n " wider " %[y], %[y], ror #8\n"
#define LATHE_FOUR_BY_BYTES(s, t)                                                           \
    "ldrd %[u], %[v], [%[w]], #8\n sxtb16 %[e], %[u]\n sxtb16 %[u], %[u], ror #8\n"         \
    "smlad %" s ", %[x], %[e], %" s "\n smlad %" s ", %[y], %[u], %" s "\n"                 \
    "sxtb16 %[e], %[v]\n sxtb16 %[v], %[v], ror #8\n"                                       \
    "smlad %" t ", %[x], %[e], %" t "\n smlad %" t ", %[y], %[v], %" t "\n"
#define LATHE_BYTES_2(wider) LATHE_FOUR(wider) LATHE_FOUR_BY("0", "1")
#define LATHE_BYTES_4(wider) LATHE_BYTES_2(wider) LATHE_FOUR_BY("2", "3")
#define LATHE_BYTES(text, ...)                                                              \
    __asm__ volatile("1:\n" text "cmp %[w], %[end]\n bne 1b\n"                              \
                     : __VA_ARGS__, [a] "+r"(a), [w] "+r"(w), [x] "=&r"(x), [y] "=&r"(y),   \
                       [u] "=&r"(u), [v] "=&r"(v), [e] "=&r"(f)                             \
                     : [end] "r"(end)                                                       \
                     : "cc", "memory")
#define LATHE_BYTES_BY(wider)                                                               \
    do {                                                                                    \
        if (r == 2)                                                                         \
            LATHE_BYTES(LATHE_BYTES_2(wider), "+r"(s0), "+r"(s1));                          \
        else if (n % 2 != 0)                                                                \
            LATHE_BYTES(LATHE_BYTES_4(wider), "+r"(s0), "+r"(s1), "+r"(s2), "+r"(s3));      \
        else                                                                                \
            LATHE_BYTES(LATHE_BYTES_4(wider) LATHE_BYTES_4(wider), "+r"(s0), "+r"(s1),      \
                        "+r"(s2), "+r"(s3));                                                \
    } while (0)
#endif

#endif
