/* SPDX-License-Identifier: Apache-2.0 */
/* A float to i16: rounded.inc. */
#ifndef LATHE_KERNEL_ROUND_ROUNDED_I16_H
#define LATHE_KERNEL_ROUND_ROUNDED_I16_H
#include "kernel/common/maybe.h"
#include "kernel/round/fpu.h"
#include <math.h>
#include <stdint.h>

#define LATHE_INT      int16_t
#define LATHE_LEAST    (-32768)
#define LATHE_MOST     32767
#define LATHE_OF(name) name##_i16
#define LATHE_SATURATE "ssat"
#define LATHE_BITS     "16"
#include "kernel/round/rounded.inc"

#endif
