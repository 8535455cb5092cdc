/* SPDX-License-Identifier: Apache-2.0 */
/* Four bytes in a word, wherever they begin: the larger or the smaller ones of two words. SSUB8 notes which bytes are
 * not below the other ones, and SEL chooses by that. */
#ifndef LATHE_KERNEL_DSP_WORDS_H
#define LATHE_KERNEL_DSP_WORDS_H
#include "kernel/common/always.h"
#include "kernel/dsp/acle.h"
#include <stdint.h>
#include <string.h>

/* Before functions with windows of words: gcc would keep an address for each place of a window, more than there are
 * registers. */
#if defined(__GNUC__) && !defined(__clang__)
#define LATHE_WINDOWS __attribute__((optimize("no-ivopts")))
#else
#define LATHE_WINDOWS
#endif

static LATHE_ALWAYS uint32_t lathe_get_word(const void *from)
{
    uint32_t v;
    memcpy(&v, from, sizeof v);
    return v;
}

static LATHE_ALWAYS void lathe_put_word(void *to, uint32_t v)
{
    memcpy(to, &v, sizeof v);
}

#if LATHE_DSP == 2
#define LATHE_CHOOSE(name, byte, less, acle, first, second)                                                     \
    static LATHE_ALWAYS uint32_t name(uint32_t a, uint32_t b)                                                   \
    {                                                                                                           \
        uint32_t r;                                                                                             \
        __asm__(less " %0, %1, %2\n sel %0, %" first ", %" second : "=&r"(r) : "r"(a), "r"(b) : "cc");          \
        return r;                                                                                               \
    }
#define LATHE_MAX_WORD(name, byte, less, acle) LATHE_CHOOSE(name, byte, less, acle, "1", "2")
#define LATHE_MIN_WORD(name, byte, less, acle) LATHE_CHOOSE(name, byte, less, acle, "2", "1")
#elif LATHE_DSP == 1
#define LATHE_MAX_WORD(name, byte, less, acle)                  \
    static LATHE_ALWAYS uint32_t name(uint32_t a, uint32_t b)   \
    {                                                           \
        (void)acle(a, b);                                       \
        return __sel(a, b);                                     \
    }
#define LATHE_MIN_WORD(name, byte, less, acle)                  \
    static LATHE_ALWAYS uint32_t name(uint32_t a, uint32_t b)   \
    {                                                           \
        (void)acle(a, b);                                       \
        return __sel(b, a);                                     \
    }
#else
#define LATHE_EXTREME_WORD(name, byte, op)                                              \
    static LATHE_ALWAYS uint32_t name(uint32_t a, uint32_t b)                           \
    {                                                                                   \
        uint32_t r = 0;                                                                 \
        int k;                                                                          \
        for (k = 0; k < 32; k += 8) {                                                   \
            const uint32_t x = (a >> k) & 0xffu, y = (b >> k) & 0xffu;                  \
            r |= ((byte)x op (byte)y ? x : y) << k;                                     \
        }                                                                               \
        return r;                                                                       \
    }
#define LATHE_MAX_WORD(name, byte, less, acle) LATHE_EXTREME_WORD(name, byte, >)
#define LATHE_MIN_WORD(name, byte, less, acle) LATHE_EXTREME_WORD(name, byte, <)
#endif

#define LATHE_LESS_I8(a, b) __ssub8((int32_t)(a), (int32_t)(b))
LATHE_MAX_WORD(lathe_max_word_i8, int8_t, "ssub8", LATHE_LESS_I8)
LATHE_MIN_WORD(lathe_min_word_i8, int8_t, "ssub8", LATHE_LESS_I8)
LATHE_MAX_WORD(lathe_max_word_u8, uint8_t, "usub8", __usub8)
LATHE_MIN_WORD(lathe_min_word_u8, uint8_t, "usub8", __usub8)

#endif
