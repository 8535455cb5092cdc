/* SPDX-License-Identifier: Apache-2.0 */
/* Two sums times their scales to u8: scaled_two.inc. */
#ifndef LATHE_KERNEL_ROUND_SCALED_TWO_U8_H
#define LATHE_KERNEL_ROUND_SCALED_TWO_U8_H
#include "kernel/round/scaled_u8.h"
#include <stdint.h>

#define LATHE_INT      uint8_t
#define LATHE_OF(name) name##_u8
#define LATHE_SATURATE "usat"
#include "kernel/round/scaled_two.inc"

#endif
