/* SPDX-License-Identifier: Apache-2.0 */
/* A number, shifted to i8: shifted.inc. */
#ifndef LATHE_KERNEL_ROUND_SHIFTED_I8_H
#define LATHE_KERNEL_ROUND_SHIFTED_I8_H
#include "kernel/round/shifted_right.h"
#include <stdint.h>

#define LATHE_LEAST    (-128)
#define LATHE_MOST     127
#define LATHE_OF(name) name##_i8
#define LATHE_SATURATE "ssat"
#include "kernel/round/shifted.inc"

#endif
