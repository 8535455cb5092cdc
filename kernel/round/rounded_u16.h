/* SPDX-License-Identifier: Apache-2.0 */
/* A float to u16: rounded.inc. */
#ifndef LATHE_KERNEL_ROUND_ROUNDED_U16_H
#define LATHE_KERNEL_ROUND_ROUNDED_U16_H
#include "kernel/common/maybe.h"
#include "kernel/round/fpu.h"
#include <math.h>
#include <stdint.h>

#define LATHE_INT      uint16_t
#define LATHE_LEAST    0
#define LATHE_MOST     65535
#define LATHE_OF(name) name##_u16
#define LATHE_SATURATE "usat"
#define LATHE_BITS     "16"
#include "kernel/round/rounded.inc"

#endif
