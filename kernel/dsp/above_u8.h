/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of u8, none of them below a bound: bounds.inc. */
#ifndef LATHE_KERNEL_DSP_ABOVE_U8_H
#define LATHE_KERNEL_DSP_ABOVE_U8_H
#include "kernel/dsp/bounds_asm.h"

#define LATHE_BYTE         uint8_t
#define LATHE_OF(name)     name##_u8
#define LATHE_BOUND_ONE(v) LATHE_BOUND_LOW("usub8", v)
#define LATHE_BOUNDS       1
#define LATHE_BOUND_HIGH
#include "kernel/dsp/bounds.inc"

#endif
