/* SPDX-License-Identifier: Apache-2.0 */
/* The byte of a table for each of n bytes. gcc would put four results together into a word, which takes longer than
 * four stores. */
#ifndef LATHE_KERNEL_DSP_TABLE_H
#define LATHE_KERNEL_DSP_TABLE_H
#include "kernel/common/rolled.h"
#include "kernel/common/shared.h"
#include "kernel/dsp/words.h"

#if defined(__GNUC__)
#define LATHE_STORED __asm__ volatile("" ::: "memory")
#else
#define LATHE_STORED ((void)0)
#endif
#define LATHE_FOUR_OF_TABLE(i)                  \
    do {                                        \
        const uint32_t v = lathe_get_word(&from[i]); \
        to[i] = table[v & 0xffu];               \
        LATHE_STORED;                            \
        to[(i) + 1] = table[(v >> 8) & 0xffu];  \
        LATHE_STORED;                            \
        to[(i) + 2] = table[(v >> 16) & 0xffu]; \
        LATHE_STORED;                            \
        to[(i) + 3] = table[v >> 24];           \
        LATHE_STORED;                            \
    } while (0)

static LATHE_SHARED void lathe_bytes_of_table(uint8_t *to, const uint8_t *from, const uint8_t *table, int32_t n)
{
    LATHE_ROLLED
    for (; n >= 8; n -= 8, from += 8, to += 8) {
        LATHE_FOUR_OF_TABLE(0);
        LATHE_FOUR_OF_TABLE(4);
    }
    LATHE_ROLLED
    for (; n > 0; n--)
        *to++ = table[*from++];
}

#endif
