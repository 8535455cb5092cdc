/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of bytes, four side by side: bytes 0 and 2 of each word in the halves of one word of sums, 1 and 3 in those of
 * another one. Up to 256 words have room in 16 bits. */
#ifndef LATHE_KERNEL_DSP_SUM_WORDS_H
#define LATHE_KERNEL_DSP_SUM_WORDS_H
#include "kernel/dsp/words.h"

#if LATHE_DSP == 2
#define LATHE_SUM_BYTES(name, byte, add, acle, by, turn)                                \
    static LATHE_ALWAYS uint32_t name(uint32_t sums, uint32_t v)                        \
    {                                                                                   \
        __asm__(add " %0, %0, %1" turn : "+r"(sums) : "r"(v));                          \
        return sums;                                                                    \
    }
#elif LATHE_DSP == 1
#define LATHE_SUM_BYTES(name, byte, add, acle, by, turn)                                \
    static LATHE_ALWAYS uint32_t name(uint32_t sums, uint32_t v)                        \
    {                                                                                   \
        return (uint32_t)acle(sums, (by) == 0 ? v : v >> 8 | v << 24);                  \
    }
#else
#define LATHE_SUM_BYTES(name, byte, add, acle, by, turn)                                \
    static LATHE_ALWAYS uint32_t name(uint32_t sums, uint32_t v)                        \
    {                                                                                   \
        const int32_t a = (byte)(v >> (by)), b = (byte)(v >> ((by) + 16));              \
        return ((sums + (uint32_t)a) & 0xffffu) | ((sums & 0xffff0000u) + ((uint32_t)b << 16)); \
    }
#endif

#define LATHE_ADD_I8(s, v) __sxtab16((int32_t)(s), (int32_t)(v))
LATHE_SUM_BYTES(lathe_sum_even_i8, int8_t, "sxtab16", LATHE_ADD_I8, 0, "")
LATHE_SUM_BYTES(lathe_sum_odd_i8, int8_t, "sxtab16", LATHE_ADD_I8, 8, ", ror #8")
LATHE_SUM_BYTES(lathe_sum_even_u8, uint8_t, "uxtab16", __uxtab16, 0, "")
LATHE_SUM_BYTES(lathe_sum_odd_u8, uint8_t, "uxtab16", __uxtab16, 8, ", ror #8")

#endif
