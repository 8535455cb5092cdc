/* SPDX-License-Identifier: Apache-2.0 */
/* A sum of i32 as the model has it: it wraps, while C leaves open what a signed sum beyond 32 bits is. */
#ifndef LATHE_KERNEL_COMMON_ADD_H
#define LATHE_KERNEL_COMMON_ADD_H
#include "kernel/common/always.h"
#include <stdint.h>

static LATHE_ALWAYS int32_t lathe_add(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a + (uint32_t)b);
}

#endif
