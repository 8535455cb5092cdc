/* SPDX-License-Identifier: Apache-2.0 */
/* A number as f16 holds it. */
#ifndef LATHE_KERNEL_HALF_F16_ROUND_H
#define LATHE_KERNEL_HALF_F16_ROUND_H
#include "kernel/common/maybe.h"
#include "kernel/half/f16_load.h"
#include "kernel/half/f16_store.h"

static LATHE_MAYBE float lathe_f16_round(float x)
{
    return lathe_f16_load(lathe_f16_store(x));
}

#endif
