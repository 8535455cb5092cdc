/* SPDX-License-Identifier: Apache-2.0 */
/* Fixed point in four lanes, in AArch64's own instructions: SQRDMULH; SMULL, SMULL2 and UZP2; and SRSHL, which rounds
 * halves up, of what is one less where it is negative. */
#ifndef LATHE_KERNEL_NEON_FIXED_H
#define LATHE_KERNEL_NEON_FIXED_H
#include "kernel/common/maybe.h"
#include "kernel/neon/types.h"
#include <stdint.h>

#if defined(__aarch64__)
static LATHE_MAYBE lathe_neon_words lathe_neon_doubled(lathe_neon_words x, lathe_neon_words y)
{
    lathe_neon_words r;
    __asm__("sqrdmulh %0.4s, %1.4s, %2.4s" : "=w"(r) : "w"(x), "w"(y));
    return r;
}

static LATHE_MAYBE lathe_neon_words lathe_neon_high(lathe_neon_words x, lathe_neon_words y)
{
    lathe_neon_words low, high;
    __asm__("smull %0.2d, %1.2s, %2.2s" : "=w"(low) : "w"(x), "w"(y));
    __asm__("smull2 %0.2d, %1.4s, %2.4s" : "=w"(high) : "w"(x), "w"(y));
    __asm__("uzp2 %0.4s, %0.4s, %1.4s" : "+w"(low) : "w"(high));
    return low;
}

static LATHE_MAYBE lathe_neon_words lathe_neon_rounded_shift(lathe_neon_words x, lathe_neon_words n)
{
    const lathe_neon_words by = -n, down = (x & by) >> 31;
    __asm__("sqadd %0.4s, %0.4s, %1.4s" : "+w"(x) : "w"(down));
    __asm__("srshl %0.4s, %0.4s, %1.4s" : "+w"(x) : "w"(by));
    return x;
}
#endif

#endif
