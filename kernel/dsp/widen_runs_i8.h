/* SPDX-License-Identifier: Apache-2.0 */
/* lathe_widen_runs_i8: runs of int8, less a zero point, become numbers of 16 bits. */
#ifndef LATHE_KERNEL_DSP_WIDEN_RUNS_I8_H
#define LATHE_KERNEL_DSP_WIDEN_RUNS_I8_H
#include "kernel/dsp/widen_asm.h"

#define LATHE_BYTE     int8_t
#define LATHE_OF(name) name##_i8
#define LATHE_WIDER    "sxtb16"
#define LATHE_WIDE(v)  __sxtb16((int32_t)(v))
#include "kernel/dsp/widen_runs.inc"

#endif
