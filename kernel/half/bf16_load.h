/* SPDX-License-Identifier: Apache-2.0 */
/* A number of bf16 from its bits, which are the upper half of those of binary32. */
#ifndef LATHE_KERNEL_HALF_BF16_LOAD_H
#define LATHE_KERNEL_HALF_BF16_LOAD_H
#include "kernel/common/maybe.h"
#include <stdint.h>

static LATHE_MAYBE float lathe_bf16_load(uint16_t h)
{
    union {
        uint32_t u;
        float f;
    } v;
    v.u = (uint32_t)h << 16;
    return v.f;
}

#endif
