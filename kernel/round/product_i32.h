/* SPDX-License-Identifier: Apache-2.0 */
/* The lower 32 bits of a product. With the DSP extension it is made where it is used: of several, gcc would begin all,
 * and move each number first, to multiply by an instruction that is short and takes few registers. */
#ifndef LATHE_KERNEL_ROUND_PRODUCT_I32_H
#define LATHE_KERNEL_ROUND_PRODUCT_I32_H
#include "kernel/common/always.h"
#include "kernel/dsp/dsp.h"
#include <stdint.h>

static LATHE_ALWAYS int32_t lathe_product_i32(int32_t x, int32_t y)
{
#if LATHE_DSP == 2
    int32_t product;
    __asm__ volatile("mul %0, %1, %2" : "=r"(product) : "r"(x), "r"(y));
    return product;
#else
    return (int32_t)((uint32_t)x * (uint32_t)y);
#endif
}

#endif
