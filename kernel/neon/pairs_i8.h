/* SPDX-License-Identifier: Apache-2.0 */
/* acc + the products of each lane's four bytes, i8 of x by i8 of w, summed in twos in 16 bits: for weights of which
 * none gets there (needs_proof of src/type/dot.h). SMULL, SMULL2, ADDP, and SADALP, which widens and adds: four
 * instructions, two less than dot_i8.h without SDOT. */
#ifndef LATHE_KERNEL_NEON_PAIRS_I8_H
#define LATHE_KERNEL_NEON_PAIRS_I8_H
#include "kernel/common/always.h"
#include "kernel/neon/products.h"
#include "kernel/neon/types.h"
#include <stdint.h>

#if defined(__aarch64__)
static LATHE_ALWAYS lathe_neon_words lathe_neon_pairs_i8(lathe_neon_words acc, lathe_neon_words x, lathe_neon_words w)
{
    lathe_neon_halves even = lathe_neon_low_products(x, w), odd = lathe_neon_high_products(x, w);
    __asm__("addp %0.8h, %0.8h, %1.8h" : "+w"(even) : "w"(odd));
    __asm__("sadalp %0.4s, %1.8h" : "+w"(acc) : "w"(even));
    return acc;
}
#endif

#endif
