/* SPDX-License-Identifier: Apache-2.0 */
/* a * b, rounded once: no part of a sum. */
#ifndef LATHE_KERNEL_ROUND_PRODUCT_ONCE_H
#define LATHE_KERNEL_ROUND_PRODUCT_ONCE_H
#include "kernel/round/fpu.h"

static inline float lathe_product_once(float a, float b)
{
#if LATHE_SMALL_FPU
    float p = a * b;
    __asm__("" : "+t"(p));
    return p;
#else
    return (float)((double)a * (double)b);
#endif
}

#endif
