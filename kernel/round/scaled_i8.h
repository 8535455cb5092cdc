/* SPDX-License-Identifier: Apache-2.0 */
/* A sum times its scale to i8: scaled.inc. */
#ifndef LATHE_KERNEL_ROUND_SCALED_I8_H
#define LATHE_KERNEL_ROUND_SCALED_I8_H
#include "kernel/common/shifts.h"
#include "kernel/round/rounded_i8.h"
#include <stdint.h>

#define LATHE_INT      int8_t
#define LATHE_LEAST    (-128)
#define LATHE_MOST     127
#define LATHE_OF(name) name##_i8
#define LATHE_SATURATE "ssat"
#include "kernel/round/scaled.inc"

#endif
