/* SPDX-License-Identifier: Apache-2.0 */
/* (high(x * y) + more) >> right, to the nearest that i8 has; high: the upper word of the product, right: 0 to 31. Two
 * instructions with the DSP extension, where `right` is a number. */
#ifndef LATHE_KERNEL_ROUND_WORD_I8_H
#define LATHE_KERNEL_ROUND_WORD_I8_H
#include "kernel/round/high_sum.h"
#include "kernel/round/shifted_i8.h"
#include <stdint.h>

static LATHE_ALWAYS int32_t lathe_word_i8(int32_t x, int32_t y, int32_t more, int32_t right)
{
    return lathe_shifted_i8(lathe_high_sum(x, y, more), right);
}

#endif
