/* SPDX-License-Identifier: Apache-2.0 */
/* The upper 32 bits of a product, and a number: one instruction with the DSP extension. */
#ifndef LATHE_KERNEL_ROUND_HIGH_SUM_H
#define LATHE_KERNEL_ROUND_HIGH_SUM_H
#include "kernel/common/always.h"
#include "kernel/dsp/dsp.h"
#include "kernel/round/high_product.h"

static LATHE_ALWAYS int32_t lathe_high_sum(int32_t x, int32_t y, int32_t more)
{
#if LATHE_DSP == 2
    int32_t sum;
    __asm__("smmla %0, %1, %2, %3" : "=r"(sum) : "r"(x), "r"(y), "r"(more));
    return sum;
#else
    return (int32_t)((uint32_t)lathe_high_product(x, y) + (uint32_t)more);
#endif
}

#endif
