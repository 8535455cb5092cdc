/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of u8 between two bounds: bounds.inc. */
#ifndef LATHE_KERNEL_DSP_CLIP_U8_H
#define LATHE_KERNEL_DSP_CLIP_U8_H
#include "kernel/dsp/bounds_asm.h"

#define LATHE_BYTE         uint8_t
#define LATHE_OF(name)     name##_u8
#define LATHE_BOUNDS       2
#define LATHE_BOUND_ONE(v) LATHE_BOUND_BOTH("usub8", v)
#define LATHE_BOUND_HIGH   , [high] "r"(high)
#include "kernel/dsp/bounds.inc"

#endif
