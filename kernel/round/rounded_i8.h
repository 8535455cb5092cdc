/* SPDX-License-Identifier: Apache-2.0 */
/* A float to i8: rounded.inc. */
#ifndef LATHE_KERNEL_ROUND_ROUNDED_I8_H
#define LATHE_KERNEL_ROUND_ROUNDED_I8_H
#include "kernel/common/maybe.h"
#include "kernel/round/fpu.h"
#include <math.h>
#include <stdint.h>

#define LATHE_INT      int8_t
#define LATHE_LEAST    (-128)
#define LATHE_MOST     127
#define LATHE_OF(name) name##_i8
#define LATHE_SATURATE "ssat"
#define LATHE_BITS     "8"
#include "kernel/round/rounded.inc"

#endif
