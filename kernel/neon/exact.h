/* SPDX-License-Identifier: Apache-2.0 */
/* acc + products of 16 bits, even and odd: summed in twos in words, and the words in twos, so that each of acc's lanes
 * gets four neighbors. SADDLP twice, ADDP and ADD: nothing leaves 32 bits but the last sum, which wraps. */
#ifndef LATHE_KERNEL_NEON_EXACT_H
#define LATHE_KERNEL_NEON_EXACT_H
#include "kernel/common/always.h"
#include "kernel/neon/types.h"
#include <stdint.h>

#if defined(__aarch64__)
static LATHE_ALWAYS lathe_neon_words lathe_neon_exact(lathe_neon_words acc, lathe_neon_halves even,
                                                      lathe_neon_halves odd)
{
    lathe_neon_words low, high;
    __asm__("saddlp %0.4s, %1.8h" : "=w"(low) : "w"(even));
    __asm__("saddlp %0.4s, %1.8h" : "=w"(high) : "w"(odd));
    __asm__("addp %0.4s, %0.4s, %1.4s" : "+w"(low) : "w"(high));
    return (lathe_neon_words)((lathe_neon_uwords)acc + (lathe_neon_uwords)low);
}
#endif

#endif
