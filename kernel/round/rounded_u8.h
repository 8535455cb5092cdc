/* SPDX-License-Identifier: Apache-2.0 */
/* A float to u8: rounded.inc. */
#ifndef LATHE_KERNEL_ROUND_ROUNDED_U8_H
#define LATHE_KERNEL_ROUND_ROUNDED_U8_H
#include "kernel/common/maybe.h"
#include "kernel/round/fpu.h"
#include <math.h>
#include <stdint.h>

#define LATHE_INT      uint8_t
#define LATHE_LEAST    0
#define LATHE_MOST     255
#define LATHE_OF(name) name##_u8
#define LATHE_SATURATE "usat"
#define LATHE_BITS     "8"
#include "kernel/round/rounded.inc"

#endif
