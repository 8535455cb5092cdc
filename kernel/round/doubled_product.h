/* SPDX-License-Identifier: Apache-2.0 */
/* The upper 32 bits of twice a product, halves up; y is above -2^31. */
#ifndef LATHE_KERNEL_ROUND_DOUBLED_PRODUCT_H
#define LATHE_KERNEL_ROUND_DOUBLED_PRODUCT_H
#include "kernel/common/maybe.h"
#include "kernel/common/shifts.h"
#include <stdint.h>

static LATHE_MAYBE int32_t lathe_doubled_product(int32_t x, int32_t y)
{
    return (int32_t)(((int64_t)x * y + ((int64_t)1 << 30)) >> 31);
}

#endif
