/* SPDX-License-Identifier: Apache-2.0 */
/* acc + the products of each lane's four bytes, u8 of x by i8 of w, all exact. One USDOT where the processor has I8MM.
 * Else there is no product of u8 by i8: both are widened, UXTL and SXTL, the weights once for all rows of a tile, and
 * each product has its 16 bits. x has the same word in all lanes, of which the lower half is enough. */
#ifndef LATHE_KERNEL_NEON_DOT_U8_H
#define LATHE_KERNEL_NEON_DOT_U8_H
#include "kernel/common/always.h"
#include "kernel/neon/exact.h"
#include "kernel/neon/types.h"
#include <stdint.h>

#if defined(__aarch64__)
static LATHE_ALWAYS lathe_neon_words lathe_neon_dot_u8(lathe_neon_words acc, lathe_neon_words x, lathe_neon_words w)
{
#if defined(__ARM_FEATURE_MATMUL_INT8)
    __asm__("usdot %0.4s, %1.16b, %2.16b" : "+w"(acc) : "w"(x), "w"(w));
    return acc;
#else
    lathe_neon_halves wide, even, odd;
    __asm__("uxtl %0.8h, %1.8b" : "=w"(wide) : "w"(x));
    __asm__("sxtl %0.8h, %1.8b" : "=w"(even) : "w"(w));
    __asm__("sxtl2 %0.8h, %1.16b" : "=w"(odd) : "w"(w));
    even *= wide;
    odd *= wide;
    return lathe_neon_exact(acc, even, odd);
#endif
}
#endif

#endif
