/* SPDX-License-Identifier: Apache-2.0 */
/* A sum times its scale to u8: scaled.inc. */
#ifndef LATHE_KERNEL_ROUND_SCALED_U8_H
#define LATHE_KERNEL_ROUND_SCALED_U8_H
#include "kernel/common/shifts.h"
#include "kernel/round/rounded_u8.h"
#include <stdint.h>

#define LATHE_INT      uint8_t
#define LATHE_LEAST    0
#define LATHE_MOST     255
#define LATHE_OF(name) name##_u8
#define LATHE_SATURATE "usat"
#include "kernel/round/scaled.inc"

#endif
