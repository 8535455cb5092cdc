/* SPDX-License-Identifier: Apache-2.0 */
/* lathe_widen_planes_u8: channels of uint8 that lie side by side become a row of numbers of 16 bits each. */
#ifndef LATHE_KERNEL_DSP_WIDEN_PLANES_U8_H
#define LATHE_KERNEL_DSP_WIDEN_PLANES_U8_H
#include "kernel/dsp/widen_asm.h"

#define LATHE_BYTE     uint8_t
#define LATHE_OF(name) name##_u8
#define LATHE_WIDER    "uxtb16"
#define LATHE_WIDE(v)  (int32_t)__uxtb16(v)
#include "kernel/dsp/widen_planes.inc"

#endif
