/* SPDX-License-Identifier: Apache-2.0 */
/* lathe_widen_planes_i8: channels of int8 that lie side by side become a row of numbers of 16 bits each. */
#ifndef LATHE_KERNEL_DSP_WIDEN_PLANES_I8_H
#define LATHE_KERNEL_DSP_WIDEN_PLANES_I8_H
#include "kernel/dsp/widen_asm.h"

#define LATHE_BYTE     int8_t
#define LATHE_OF(name) name##_i8
#define LATHE_WIDER    "sxtb16"
#define LATHE_WIDE(v)  __sxtb16((int32_t)(v))
#include "kernel/dsp/widen_planes.inc"

#endif
