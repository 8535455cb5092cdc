/* SPDX-License-Identifier: Apache-2.0 */
/* How widen_runs.inc and widen_planes.inc take four bytes at a time, wherever these begin: SXTB16 or UXTB16 makes
 * numbers of 16 bits of bytes 0 and 2, and of 1 and 3 after a turn; SSUB16 takes the zero point off two of them; PKHBT
 * and PKHTB put neighbors together again. */
#ifndef LATHE_KERNEL_DSP_WIDEN_ASM_H
#define LATHE_KERNEL_DSP_WIDEN_ASM_H
#include "kernel/common/always.h"
#include "kernel/common/rolled.h"
#include "kernel/common/shared.h"
#include "kernel/dsp/acle.h"
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__ARM_FEATURE_UNALIGNED)
#define LATHE_WIDEN LATHE_DSP
#else
#define LATHE_WIDEN 0
#endif

#if LATHE_WIDEN == 2
#define LATHE_PAIRS(op, d, x, y) __asm__(op " %0, %1, %2" : "=r"(d) : "r"(x), "r"(y))
#define LATHE_HALVES(op, d, x, y, more) __asm__(op " %0, %1, %2, " more : "=r"(d) : "r"(x), "r"(y))
#define LATHE_LOWER(d, x, y) LATHE_HALVES("pkhbt", d, x, y, "lsl #16")
#define LATHE_UPPER(d, x, y) LATHE_HALVES("pkhtb", d, x, y, "asr #16")
/* Bytes 0 and 2, 1 and 3, less the zero point. */
#define LATHE_FOUR_OF(from, low, high)                                                \
    do {                                                                              \
        memcpy(&low, from, 4);                                                        \
        __asm__(LATHE_WIDER " %0, %1, ror #8" : "=r"(high) : "r"(low));               \
        __asm__(LATHE_WIDER " %0, %1" : "=r"(low) : "r"(low));                        \
        LATHE_PAIRS("ssub16", low, low, zeros);                                       \
        LATHE_PAIRS("ssub16", high, high, zeros);                                     \
    } while (0)
#elif LATHE_WIDEN == 1
#define LATHE_LOWER(d, x, y) ((d) = ((x) & 0xffffu) | (y) << 16)
#define LATHE_UPPER(d, x, y) ((d) = ((x) & 0xffff0000u) | (y) >> 16)
#define LATHE_FOUR_OF(from, low, high)                                                \
    do {                                                                              \
        memcpy(&low, from, 4);                                                        \
        high = (uint32_t)__ssub16(LATHE_WIDE(low >> 8 | low << 24), (int32_t)zeros);  \
        low = (uint32_t)__ssub16(LATHE_WIDE(low), (int32_t)zeros);                    \
    } while (0)
#endif

#endif
