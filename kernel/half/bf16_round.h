/* SPDX-License-Identifier: Apache-2.0 */
/* A number as bf16 holds it. */
#ifndef LATHE_KERNEL_HALF_BF16_ROUND_H
#define LATHE_KERNEL_HALF_BF16_ROUND_H
#include "kernel/common/maybe.h"
#include "kernel/half/bf16_load.h"
#include "kernel/half/bf16_store.h"

static LATHE_MAYBE float lathe_bf16_round(float x)
{
    return lathe_bf16_load(lathe_bf16_store(x));
}

#endif
