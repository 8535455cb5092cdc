/* SPDX-License-Identifier: Apache-2.0 */
/* The first iteration of part `part` of a loop, of `parts` nearly equal ones, of any number of iterations. */
#ifndef LATHE_KERNEL_COMMON_CUT_OPEN_I32_H
#define LATHE_KERNEL_COMMON_CUT_OPEN_I32_H
#include <stdint.h>

static int32_t lathe_cut_open_i32(int32_t extent, uint32_t part, uint32_t parts)
{
    const int32_t n = (int32_t)parts, k = (int32_t)part;
    return extent / n * k + extent % n * k / n;
}

#endif
