/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bytes as numbers of 16 bits: of the lower half of x and w, and of the upper one. */
#ifndef LATHE_KERNEL_NEON_PRODUCTS_H
#define LATHE_KERNEL_NEON_PRODUCTS_H
#include "kernel/common/always.h"
#include "kernel/neon/types.h"
#include <stdint.h>

#if defined(__aarch64__)
static LATHE_ALWAYS lathe_neon_halves lathe_neon_low_products(lathe_neon_words x, lathe_neon_words w)
{
    lathe_neon_halves r;
    __asm__("smull %0.8h, %1.8b, %2.8b" : "=w"(r) : "w"(x), "w"(w));
    return r;
}

static LATHE_ALWAYS lathe_neon_halves lathe_neon_high_products(lathe_neon_words x, lathe_neon_words w)
{
    lathe_neon_halves r;
    __asm__("smull2 %0.8h, %1.16b, %2.16b" : "=w"(r) : "w"(x), "w"(w));
    return r;
}
#endif

#endif
