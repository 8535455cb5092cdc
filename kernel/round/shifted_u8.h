/* SPDX-License-Identifier: Apache-2.0 */
/* A number, shifted to u8: shifted.inc. */
#ifndef LATHE_KERNEL_ROUND_SHIFTED_U8_H
#define LATHE_KERNEL_ROUND_SHIFTED_U8_H
#include "kernel/round/shifted_right.h"
#include <stdint.h>

#define LATHE_LEAST    0
#define LATHE_MOST     255
#define LATHE_OF(name) name##_u8
#define LATHE_SATURATE "usat"
#include "kernel/round/shifted.inc"

#endif
