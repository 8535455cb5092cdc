/* SPDX-License-Identifier: Apache-2.0 */
/* The loop over runs that run_tiles.inc puts around the steps of rows_asm.h. t: in front of
 * the entry of `runs` that comes next; end: where the weights of this run end; last: where those of all runs end. There
 * is at least one run, and one step in it: the loops test behind their steps. */
#ifndef LATHE_KERNEL_DSP_RUNS_ASM_H
#define LATHE_KERNEL_DSP_RUNS_ASM_H
#include "kernel/dsp/rows_asm.h"
#include <stdint.h>

#if LATHE_ALL_REGISTERS
#define LATHE_RUNS_ASM(before, text, r1, r2, ...)                                           \
    __asm__ volatile("2:\n ldr %[x], %[t]\n ldr %[a], [%[x]], #4\n str %[x], %[t]\n" before \
                     "1:\n" text "ldr %[x], %[end]\n cmp %[w], %[x]\n bne 1b\n"             \
                     "ldr %[e], %[by]\n add %[x], %[x], %[e]\n str %[x], %[end]\n"          \
                     "ldr %[e], %[last]\n cmp %[w], %[e]\n bne 2b\n"                        \
                     : __VA_ARGS__, [a] "=&r"(a), [w] "+r"(w), [x] "=&r"(x),                \
                       [u] "=&r"(u), [v] "=&r"(v), [e] "=&r"(e), [f] "=&r"(f),              \
                       [t] "+m"(t), [end] "+m"(end)                                         \
                     : [by] "m"(by), [last] "m"(last), [p] "i"(r1), [q] "i"(r2),            \
                       [s] "i"(2 * step)                                                    \
                     : "cc", "memory")
/* Runs of a few steps, which have no loop of their own. */
#define LATHE_RUNS_FLAT(before, text, r1, r2, ...)                                          \
    __asm__ volatile("2:\n ldr %[x], %[t]\n ldr %[a], [%[x]], #4\n str %[x], %[t]\n" before \
                     text "ldr %[e], %[last]\n cmp %[w], %[e]\n bne 2b\n"                   \
                     : __VA_ARGS__, [a] "=&r"(a), [w] "+r"(w), [x] "=&r"(x),                \
                       [u] "=&r"(u), [v] "=&r"(v), [e] "=&r"(e), [f] "=&r"(f),              \
                       [t] "+m"(t)                                                          \
                     : [last] "m"(last), [p] "i"(r1), [q] "i"(r2), [s] "i"(2 * step)        \
                     : "cc", "memory")
#define LATHE_RUNS_N(before, text, r1, r2, ...)                                             \
    do {                                                                                    \
        if (LATHE_KNOWN(n) && n == 1)                                                       \
            LATHE_RUNS_FLAT(before, text, r1, r2, __VA_ARGS__);                             \
        else if (LATHE_KNOWN(n) && n == 2)                                                  \
            LATHE_RUNS_FLAT(before, text text, r1, r2, __VA_ARGS__);                        \
        else if (LATHE_KNOWN(n) && n == 3)                                                  \
            LATHE_RUNS_FLAT(before, text text text, r1, r2, __VA_ARGS__);                   \
        else if (LATHE_KNOWN(n) ? n % 16 == 0 : n % 4 == 0)                                 \
            LATHE_RUNS_ASM(before, text text text text, r1, r2, __VA_ARGS__);               \
        else if (n % 2 == 0)                                                                \
            LATHE_RUNS_ASM(before, text text, r1, r2, __VA_ARGS__);                         \
        else if (LATHE_KNOWN(n) && n % 3 == 0)                                              \
            LATHE_RUNS_ASM(before, text text text, r1, r2, __VA_ARGS__);                    \
        else                                                                                \
            LATHE_RUNS_ASM(before, text, r1, r2, __VA_ARGS__);                              \
    } while (0)
#define LATHE_RUNS_BEGIN(step_bytes)                                                        \
    const int16_t *const *t = runs, *a;                                                     \
    const int32_t by = (step_bytes) * n;                                                    \
    const int8_t *end = w + by, *const last = w + count * by;                               \
    int32_t x, u, v, e, f
#endif

#endif
