/* SPDX-License-Identifier: Apache-2.0 */
/* Two sums times their scales to i8: scaled_two.inc. */
#ifndef LATHE_KERNEL_ROUND_SCALED_TWO_I8_H
#define LATHE_KERNEL_ROUND_SCALED_TWO_I8_H
#include "kernel/round/scaled_i8.h"
#include <stdint.h>

#define LATHE_INT      int8_t
#define LATHE_OF(name) name##_i8
#define LATHE_SATURATE "ssat"
#include "kernel/round/scaled_two.inc"

#endif
