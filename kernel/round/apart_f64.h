/* SPDX-License-Identifier: Apache-2.0 */
/* A product of f64 that is rounded by itself: apart.inc. */
#ifndef LATHE_KERNEL_ROUND_APART_F64_H
#define LATHE_KERNEL_ROUND_APART_F64_H

#define LATHE_FLOAT    double
#define LATHE_KEPT     lathe_apart_f64
#define LATHE_ARM_FP   8 /* the bit of __ARM_FP, */
#define LATHE_ARM_REG  "+w" /* and the letter of its registers */
#define LATHE_RISCV_FP 64
#include "kernel/round/apart.inc"

#endif
