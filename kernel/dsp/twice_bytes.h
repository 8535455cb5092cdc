/* SPDX-License-Identifier: Apache-2.0 */
/* Each of n bytes twice, one behind the other: four of them, in halves of two words, become two words, or 16 of them
 * two vectors that are stored in turns. */
#ifndef LATHE_KERNEL_DSP_TWICE_BYTES_H
#define LATHE_KERNEL_DSP_TWICE_BYTES_H
#include "kernel/common/always.h"
#include "kernel/common/rolled.h"
#include "kernel/dsp/words.h"
#include "kernel/mve/mve.h"

#if LATHE_DSP == 2
static LATHE_ALWAYS uint32_t lathe_first_twice(uint32_t even, uint32_t odd)
{
    uint32_t r;
    __asm__("pkhbt %0, %1, %2, lsl #16" : "=r"(r) : "r"(even), "r"(odd));
    return r;
}

static LATHE_ALWAYS uint32_t lathe_last_twice(uint32_t even, uint32_t odd)
{
    uint32_t r;
    __asm__("pkhtb %0, %1, %2, asr #16" : "=r"(r) : "r"(odd), "r"(even));
    return r;
}

static LATHE_ALWAYS uint32_t lathe_even_bytes(uint32_t v)
{
    uint32_t r;
    __asm__("uxtb16 %0, %1" : "=r"(r) : "r"(v));
    return r;
}

static LATHE_ALWAYS uint32_t lathe_odd_bytes(uint32_t v)
{
    uint32_t r;
    __asm__("uxtb16 %0, %1, ror #8" : "=r"(r) : "r"(v));
    return r;
}
#else
static LATHE_ALWAYS uint32_t lathe_first_twice(uint32_t even, uint32_t odd)
{
    return (even & 0xffffu) | odd << 16;
}

static LATHE_ALWAYS uint32_t lathe_last_twice(uint32_t even, uint32_t odd)
{
    return (odd & 0xffff0000u) | even >> 16;
}

static LATHE_ALWAYS uint32_t lathe_even_bytes(uint32_t v)
{
    return v & 0x00ff00ffu;
}

static LATHE_ALWAYS uint32_t lathe_odd_bytes(uint32_t v)
{
    return (v >> 8) & 0x00ff00ffu;
}
#endif

static LATHE_ALWAYS void lathe_bytes_twice(uint8_t *to, const uint8_t *from, int32_t n)
{
#if LATHE_MVE > 0
    for (; n >= 16; n -= 16, from += 16, to += 32) {
        uint8x16x2_t both;
        both.val[0] = vldrbq_u8(from);
        both.val[1] = both.val[0];
        vst2q_u8(to, both);
    }
#elif LATHE_DSP > 0
    LATHE_ROLLED
    for (; n >= 4; n -= 4, from += 4, to += 8) {
        const uint32_t v = lathe_get_word(from);
        uint32_t even = lathe_even_bytes(v), odd = lathe_odd_bytes(v);
        even |= even << 8;
        odd |= odd << 8;
        lathe_put_word(to, lathe_first_twice(even, odd));
        lathe_put_word(to + 4, lathe_last_twice(even, odd));
    }
#endif
    LATHE_ROLLED
    for (; n > 0; n--, from++, to += 2)
        to[0] = to[1] = *from;
}

#endif
