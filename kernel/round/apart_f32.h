/* SPDX-License-Identifier: Apache-2.0 */
/* A product of f32 that is rounded by itself: apart.inc. */
#ifndef LATHE_KERNEL_ROUND_APART_F32_H
#define LATHE_KERNEL_ROUND_APART_F32_H

#define LATHE_FLOAT    float
#define LATHE_KEPT     lathe_apart_f32
#define LATHE_ARM_FP   4 /* the bit of __ARM_FP, */
#define LATHE_ARM_REG  "+t" /* and the letter of its registers */
#define LATHE_RISCV_FP 32
#include "kernel/round/apart.inc"

#endif
