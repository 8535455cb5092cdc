/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of bytes, four side by side: bytes 0 and 2 of each word in the halves of `even`, 1 and 3 in those of `odd`. Up
 * to 256 words have room in 16 bits. */
#ifndef LATHE_KERNEL_DSP_SUM_WORDS_H
#define LATHE_KERNEL_DSP_SUM_WORDS_H
#include "kernel/dsp/words.h"

#if LATHE_DSP == 2
#define LATHE_SUM_WORD(name, byte, add, acle)                                                   \
    static LATHE_ALWAYS void name(uint32_t *even, uint32_t *odd, uint32_t v)                    \
    {                                                                                           \
        __asm__(add " %0, %0, %2\n " add " %1, %1, %2, ror #8" : "+&r"(*even), "+r"(*odd) : "r"(v)); \
    }
#elif LATHE_DSP == 1
#define LATHE_SUM_WORD(name, byte, add, acle)                                   \
    static LATHE_ALWAYS void name(uint32_t *even, uint32_t *odd, uint32_t v)    \
    {                                                                           \
        *even = (uint32_t)acle(*even, v);                                       \
        *odd = (uint32_t)acle(*odd, v >> 8 | v << 24);                          \
    }
#else
#define LATHE_SUM_WORD(name, byte, add, acle)                                                                   \
    static LATHE_ALWAYS void name(uint32_t *even, uint32_t *odd, uint32_t v)                                    \
    {                                                                                                           \
        const int32_t a = (byte)v, b = (byte)(v >> 8), c = (byte)(v >> 16), d = (byte)(v >> 24);                \
        *even = ((*even + (uint32_t)a) & 0xffffu) | ((*even & 0xffff0000u) + ((uint32_t)c << 16));              \
        *odd = ((*odd + (uint32_t)b) & 0xffffu) | ((*odd & 0xffff0000u) + ((uint32_t)d << 16));                 \
    }
#endif

#define LATHE_ADD_I8(s, v) __sxtab16((int32_t)(s), (int32_t)(v))
LATHE_SUM_WORD(lathe_sum_word_i8, int8_t, "sxtab16", LATHE_ADD_I8)
LATHE_SUM_WORD(lathe_sum_word_u8, uint8_t, "uxtab16", __uxtab16)

static LATHE_ALWAYS int32_t lathe_sum_low_i8(uint32_t pair)
{
    return (int16_t)pair;
}

static LATHE_ALWAYS int32_t lathe_sum_high_i8(uint32_t pair)
{
    return (int16_t)(pair >> 16);
}

static LATHE_ALWAYS int32_t lathe_sum_low_u8(uint32_t pair)
{
    return (uint16_t)pair;
}

static LATHE_ALWAYS int32_t lathe_sum_high_u8(uint32_t pair)
{
    return (int32_t)(pair >> 16);
}

#endif
