/* SPDX-License-Identifier: Apache-2.0 */
/* The first iteration of part `part` of a loop, of `parts` nearly equal ones, where no product leaves 32 bits. */
#ifndef LATHE_KERNEL_COMMON_CUT_I32_H
#define LATHE_KERNEL_COMMON_CUT_I32_H
#include <stdint.h>

static int32_t lathe_cut_i32(uint32_t extent, uint32_t part, uint32_t parts)
{
    return (int32_t)(extent * part / parts);
}

#endif
