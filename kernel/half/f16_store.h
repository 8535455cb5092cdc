/* SPDX-License-Identifier: Apache-2.0 */
/* The bits of the number of f16 that is nearest, ties to even: by the processor's instruction where gcc and clang know
 * it. A NaN stays one. */
#ifndef LATHE_KERNEL_HALF_F16_STORE_H
#define LATHE_KERNEL_HALF_F16_STORE_H
#include "kernel/common/maybe.h"
#include <stdint.h>

static LATHE_MAYBE uint16_t lathe_f16_store(float x)
{
#if defined(__F16C__) && defined(__GNUC__)
    typedef float floats __attribute__((vector_size(16)));
    const floats v = {x};
    return (uint16_t)__builtin_ia32_vcvtps2ph(v, 0)[0];
#elif defined(__ARM_FP16_FORMAT_IEEE)
    union {
        uint16_t u;
        __fp16 f;
    } v;
    v.f = (__fp16)x;
    return v.u;
#else
    union {
        float f;
        uint32_t u;
    } v, small;
    uint32_t sign, rest;
    v.f = x;
    sign = (v.u >> 16) & 0x8000u;
    rest = v.u & 0x7fffffffu;
    if (rest > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u);
    if (rest >= 0x477ff000u)
        return (uint16_t)(sign | 0x7c00u);
    if (rest < 0x38800000u) { /* subnormal: let the addition round */
        v.u = rest;
        small.f = v.f + 0.5f;
        return (uint16_t)(sign | (small.u - 0x3f000000u));
    }
    rest += 0xfffu + ((rest >> 13) & 1u);
    return (uint16_t)(sign | ((rest - 0x38000000u) >> 13));
#endif
}

#endif
