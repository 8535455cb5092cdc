/* SPDX-License-Identifier: Apache-2.0 */
/* The first iteration of part `part` of a loop, of `parts` nearly equal ones. */
#ifndef LATHE_KERNEL_COMMON_CUT_H
#define LATHE_KERNEL_COMMON_CUT_H
#include <stdint.h>

static int64_t lathe_cut(int64_t extent, uint32_t part, uint32_t parts)
{
    return extent * (int64_t)part / (int64_t)parts;
}

#endif
