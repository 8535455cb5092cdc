/* SPDX-License-Identifier: Apache-2.0 */
/* A number of f16 from its bits: by the processor's instruction where gcc and clang know it, as F16C and Armv8 have
 * one. Subnormal numbers are a product, whose factor is 2^-24. */
#ifndef LATHE_KERNEL_HALF_F16_LOAD_H
#define LATHE_KERNEL_HALF_F16_LOAD_H
#include "kernel/common/maybe.h"
#include <stdint.h>

static LATHE_MAYBE float lathe_f16_load(uint16_t h)
{
#if defined(__F16C__) && defined(__GNUC__)
    typedef short halves __attribute__((vector_size(16)));
    const halves v = {(short)h};
    return __builtin_ia32_vcvtph2ps(v)[0];
#elif defined(__ARM_FP16_FORMAT_IEEE)
    union {
        uint16_t u;
        __fp16 f;
    } v;
    v.u = h;
    return (float)v.f;
#else
    union {
        uint32_t u;
        float f;
    } v;
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, rest = h & 0x7fffu;
    if (rest >= 0x7c00u)
        v.u = 0x7f800000u | ((rest & 0x3ffu) << 13);
    else if (rest >= 0x400u)
        v.u = (rest << 13) + 0x38000000u;
    else
        v.f = (float)rest * 5.9604644775390625e-8f;
    v.u |= sign;
    return v.f;
#endif
}

#endif
