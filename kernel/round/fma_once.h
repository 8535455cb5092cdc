/* SPDX-License-Identifier: Apache-2.0 */
/* a * b + s, rounded once by the instruction. In C the sum is rounded to f64 first: where that lies halfway between two
 * floats, and the exact sum does not, the last bit may be another one. */
#ifndef LATHE_KERNEL_ROUND_FMA_ONCE_H
#define LATHE_KERNEL_ROUND_FMA_ONCE_H
#include "kernel/round/fpu.h"
#include <math.h>

static inline float lathe_fma_once(float a, float b, float s)
{
#if LATHE_SMALL_FPU
    __asm__("vfma.f32 %0, %1, %2" : "+t"(s) : "t"(a), "t"(b));
    return s;
#elif defined(__ARM_FEATURE_FMA) && !defined(__GNUC__)
    return fmaf(a, b, s);
#else
    return (float)((double)a * (double)b + (double)s);
#endif
}

#endif
