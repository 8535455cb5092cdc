/* SPDX-License-Identifier: Apache-2.0 */
/* The bits of the number of bf16 that is nearest, ties to even. A NaN stays one. */
#ifndef LATHE_KERNEL_HALF_BF16_STORE_H
#define LATHE_KERNEL_HALF_BF16_STORE_H
#include "kernel/common/maybe.h"
#include <stdint.h>

static LATHE_MAYBE uint16_t lathe_bf16_store(float x)
{
    union {
        float f;
        uint32_t u;
    } v;
    v.f = x;
    if ((v.u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)((v.u >> 16) | 0x40u);
    return (uint16_t)((v.u + 0x7fffu + ((v.u >> 16) & 1u)) >> 16);
}

#endif
