/* SPDX-License-Identifier: Apache-2.0 */
/* lathe_widen_runs_u8: runs of uint8, less a zero point, become numbers of 16 bits. */
#ifndef LATHE_KERNEL_DSP_WIDEN_RUNS_U8_H
#define LATHE_KERNEL_DSP_WIDEN_RUNS_U8_H
#include "kernel/dsp/widen_asm.h"

#define LATHE_BYTE     uint8_t
#define LATHE_OF(name) name##_u8
#define LATHE_WIDER    "uxtb16"
#define LATHE_WIDE(v)  (int32_t)__uxtb16(v)
#include "kernel/dsp/widen_runs.inc"

#endif
