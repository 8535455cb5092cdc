/* SPDX-License-Identifier: Apache-2.0 */
/* acc + a[0] * the lower number of 16 bits of each lane of w + a[1] * the upper one. SMLAL by one number of a register,
 * twice, in place: gcc would else load the data of a whole tile first, and store it for want of registers. The weights
 * of lanes are taken apart, UZP1 and UZP2, once for the rows of a tile. Of the data's register clang takes all bytes,
 * where gcc would clear those that are not read. */
#ifndef LATHE_KERNEL_NEON_DOT_I16_H
#define LATHE_KERNEL_NEON_DOT_I16_H
#include "kernel/common/always.h"
#include "kernel/lanes/word.h"
#include "kernel/neon/types.h"
#include <stdint.h>

#if defined(__aarch64__)
#if defined(__clang__)
typedef lathe_neon_words lathe_neon_pair;
#else
typedef int32_t lathe_neon_pair __attribute__((vector_size(8)));
#endif

static LATHE_ALWAYS lathe_neon_words lathe_neon_dot_i16(lathe_neon_words acc, const int16_t *a, lathe_neon_words w)
{
    const lathe_neon_pair data = {*(const lathe_word_at *)(const void *)a};
    lathe_neon_halves even, odd;
    __asm__("uzp1 %0.8h, %1.8h, %1.8h" : "=w"(even) : "w"(w));
    __asm__("uzp2 %0.8h, %1.8h, %1.8h" : "=w"(odd) : "w"(w));
    __asm__ __volatile__("smlal %0.4s, %1.4h, %2.h[0]" : "+w"(acc) : "w"(even), "x"(data));
    __asm__ __volatile__("smlal %0.4s, %1.4h, %2.h[1]" : "+w"(acc) : "w"(odd), "x"(data));
    return acc;
}
#endif

#endif
