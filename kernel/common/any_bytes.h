/* SPDX-License-Identifier: Apache-2.0 */
/* Whether any of four or eight neighboring bytes is not 0: one word, wherever it begins. */
#ifndef LATHE_KERNEL_COMMON_ANY_BYTES_H
#define LATHE_KERNEL_COMMON_ANY_BYTES_H
#include "kernel/common/maybe.h"
#include <stdint.h>

static LATHE_MAYBE int lathe_any_4(const uint8_t *x)
{
#if defined(__GNUC__)
    typedef uint32_t word __attribute__((may_alias, aligned(1)));
    return *(const word *)(const void *)x != 0;
#else
    return (x[0] | x[1] | x[2] | x[3]) != 0;
#endif
}

static LATHE_MAYBE int lathe_any_8(const uint8_t *x)
{
#if defined(__GNUC__)
    typedef uint64_t word __attribute__((may_alias, aligned(1)));
    return *(const word *)(const void *)x != 0;
#else
    return lathe_any_4(x) || lathe_any_4(x + 4);
#endif
}

#endif
