/* SPDX-License-Identifier: Apache-2.0 */
/* Words of memory, wherever they begin, for the intrinsics of arm_acle.h: form 1 of dsp.h. */
#ifndef LATHE_KERNEL_DSP_ACLE_H
#define LATHE_KERNEL_DSP_ACLE_H
#include "kernel/common/always.h"
#include "kernel/dsp/dsp.h"
#include <stdint.h>
#include <string.h>

#if LATHE_DSP == 1
#include <arm_acle.h>

static LATHE_ALWAYS int32_t lathe_word(const void *from)
{
    int32_t v;
    memcpy(&v, from, sizeof v);
    return v;
}

/* SXTB16 widens bytes 0 and 2; of this the bytes 1 and 3. */
static LATHE_ALWAYS int32_t lathe_turned(int32_t v)
{
    return (int32_t)((uint32_t)v >> 8 | (uint32_t)v << 24);
}

/* The upper halves of four bytes as bytes, 16 times as large as they are, and the lower ones. */
static LATHE_ALWAYS int32_t lathe_high(int32_t v)
{
    return (int32_t)((uint32_t)v & 0xf0f0f0f0u);
}

static LATHE_ALWAYS int32_t lathe_low(int32_t v)
{
    return (int32_t)((uint32_t)v << 4 & 0xf0f0f0f0u);
}

static LATHE_ALWAYS int32_t lathe_pair(int low, int high)
{
    return (int32_t)((uint32_t)(uint16_t)low | (uint32_t)high << 16);
}
#endif

#endif
