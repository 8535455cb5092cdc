/* SPDX-License-Identifier: Apache-2.0 */
/* (high(x * by * y) + more) >> right, to the nearest that i8 has: word_i8.h of a product, x * by, of 32 bits. */
#ifndef LATHE_KERNEL_ROUND_WORD_BY_I8_H
#define LATHE_KERNEL_ROUND_WORD_BY_I8_H
#include "kernel/round/product_i32.h"
#include "kernel/round/word_i8.h"

static LATHE_ALWAYS int32_t lathe_word_by_i8(int32_t x, int32_t by, int32_t y, int32_t more, int32_t right)
{
    return lathe_word_i8(lathe_product_i32(x, by), y, more, right);
}

#endif
