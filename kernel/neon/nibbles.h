/* SPDX-License-Identifier: Apache-2.0 */
/* acc + the products of each lane's eight codes of 4 bits by a[0] to a[7], i8. A word of w is taken apart in
 * registers, by two masks and a shift, which the rows of a tile share: its low halves of bytes are codes 0 to 3, its
 * high ones 4 to 7. SDOT twice; else codes are below 16, so that sums of four products fit into 16 bits: SMULL and
 * SMLAL, ADDP, SADALP, six instructions for eight products. */
#ifndef LATHE_KERNEL_NEON_NIBBLES_H
#define LATHE_KERNEL_NEON_NIBBLES_H
#include "kernel/common/always.h"
#include "kernel/lanes/word.h"
#include "kernel/neon/types.h"
#include <stdint.h>

#if defined(__AARCH64EL__)
static LATHE_ALWAYS lathe_neon_words lathe_neon_nibbles(lathe_neon_words acc, const int8_t *a, lathe_neon_words w)
{
    const lathe_neon_words mask = (lathe_neon_words){0} + 252645135; /* 0x0f0f0f0f */
    const lathe_neon_words low = w & mask, high = (lathe_neon_words)((lathe_neon_uwords)w >> 4) & mask;
    const lathe_neon_words x = *(const lathe_word_at *)(const void *)a - (lathe_neon_words){0};
    const lathe_neon_words y = *(const lathe_word_at *)(const void *)(a + 4) - (lathe_neon_words){0};
#if defined(__ARM_FEATURE_DOTPROD)
    __asm__("sdot %0.4s, %1.16b, %2.16b" : "+w"(acc) : "w"(low), "w"(x));
    __asm__("sdot %0.4s, %1.16b, %2.16b" : "+w"(acc) : "w"(high), "w"(y));
    return acc;
#else
    lathe_neon_halves even, odd;
    __asm__("smull %0.8h, %1.8b, %2.8b" : "=w"(even) : "w"(low), "w"(x));
    __asm__("smull2 %0.8h, %1.16b, %2.16b" : "=w"(odd) : "w"(low), "w"(x));
    __asm__("smlal %0.8h, %1.8b, %2.8b" : "+w"(even) : "w"(high), "w"(y));
    __asm__("smlal2 %0.8h, %1.16b, %2.16b" : "+w"(odd) : "w"(high), "w"(y));
    __asm__("addp %0.8h, %0.8h, %1.8h" : "+w"(even) : "w"(odd));
    __asm__("sadalp %0.4s, %1.8h" : "+w"(acc) : "w"(even));
    return acc;
#endif
}
#endif

#endif
