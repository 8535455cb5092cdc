/* SPDX-License-Identifier: Apache-2.0 */
/* x / 2^n to the nearest integer, halves away from 0; n: 0 to 31. */
#ifndef LATHE_KERNEL_ROUND_ROUNDED_SHIFT_H
#define LATHE_KERNEL_ROUND_ROUNDED_SHIFT_H
#include "kernel/common/maybe.h"
#include "kernel/common/shifts.h"
#include <stdint.h>

static LATHE_MAYBE int32_t lathe_rounded_shift(int32_t x, int32_t n)
{
    const uint32_t sign = (uint32_t)(x >> 31), half = ((uint32_t)1 << n) >> 1;
    return (int32_t)((((((uint32_t)x ^ sign) - sign) + half) >> n ^ sign) - sign);
}

#endif
