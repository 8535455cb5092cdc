/* SPDX-License-Identifier: Apache-2.0 */
/* acc + the products of each lane's four bytes, i8 of x by i8 of w, all exact. One SDOT where the processor has it;
 * else SMULL and SMULL2, and four instructions that sum (exact.h). */
#ifndef LATHE_KERNEL_NEON_DOT_I8_H
#define LATHE_KERNEL_NEON_DOT_I8_H
#include "kernel/common/always.h"
#include "kernel/neon/exact.h"
#include "kernel/neon/products.h"
#include "kernel/neon/types.h"
#include <stdint.h>

#if defined(__aarch64__)
static LATHE_ALWAYS lathe_neon_words lathe_neon_dot_i8(lathe_neon_words acc, lathe_neon_words x, lathe_neon_words w)
{
#if defined(__ARM_FEATURE_DOTPROD)
    __asm__("sdot %0.4s, %1.16b, %2.16b" : "+w"(acc) : "w"(x), "w"(w));
    return acc;
#else
    const lathe_neon_halves even = lathe_neon_low_products(x, w), odd = lathe_neon_high_products(x, w);
    return lathe_neon_exact(acc, even, odd);
#endif
}
#endif

#endif
