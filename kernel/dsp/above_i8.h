/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of i8, none of them below a bound: bounds.inc. */
#ifndef LATHE_KERNEL_DSP_ABOVE_I8_H
#define LATHE_KERNEL_DSP_ABOVE_I8_H
#include "kernel/dsp/bounds_asm.h"

#define LATHE_BYTE         int8_t
#define LATHE_OF(name)     name##_i8
#define LATHE_BOUND_ONE(v) LATHE_BOUND_LOW("ssub8", v)
#define LATHE_BOUNDS       1
#define LATHE_BOUND_HIGH
#include "kernel/dsp/bounds.inc"

#endif
