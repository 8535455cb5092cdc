/* SPDX-License-Identifier: Apache-2.0 */
/* The pieces that taps_tile.inc puts its assembly together from: a row of three taps by a row of data.
 * Registers: %0 to %5 hold sums; x and y are words of two neighbors of data; p holds the taps 0 and 1, q the taps 1 and
 * 2. Every second window begins in the upper half of a word, and is multiplied by halves of p and q. */
#ifndef LATHE_KERNEL_DSP_TAPS_ASM_H
#define LATHE_KERNEL_DSP_TAPS_ASM_H
#include "kernel/dsp/dsp.h"

#if LATHE_DSP == 2 && !defined(LATHE_FRAME_POINTER)
#define LATHE_TAPS_ASM 1
/* Two windows, one apart: five instructions for six products. */
#define LATHE_TWO(at, s, t, x, y)                                                           \
    "smlad %" s ", %[" x "], %[p], %" s "\n smlatb %" t ", %[" x "], %[p], %" t "\n"        \
    "ldr %[" y "], [%[a], #" at "]\n smlabt %" s ", %[" y "], %[q], %" s "\n"               \
    "smlad %" t ", %[" y "], %[q], %" t "\n"
/* A last one, which reads nothing behind its data. */
#define LATHE_ONE(at, s, x, y)                                                              \
    "smlad %" s ", %[" x "], %[p], %" s "\n ldrsh %[" y "], [%[a], #" at "]\n"              \
    "smlabt %" s ", %[" y "], %[q], %" s "\n"
/* One of windows that are two apart. */
#define LATHE_STEP(at, s, x, y)                                                             \
    "smlad %" s ", %[" x "], %[p], %" s "\n ldr %[" y "], [%[a], #" at "]\n"                \
    "smlabt %" s ", %[" y "], %[q], %" s "\n"
#define LATHE_BEGIN LATHE_TAPS "ldr %[x], [%[a]]\n"
#define LATHE_TAPS_END(...)                                                                 \
    : __VA_ARGS__, [x] "=&r"(x), [y] "=&r"(y), [p] "=&r"(p), [q] "=&r"(q)                   \
    : [a] "r"(a), [w] "r"(w)                                                                \
    : "memory"
#define LATHE_S(i) "+r"(s[i])
#else
#define LATHE_TAPS_ASM 0
#endif

#endif
