/* SPDX-License-Identifier: Apache-2.0 */
/* Two numbers, weighted, and a third one, shifted to i8: weighted.inc. */
#ifndef LATHE_KERNEL_ROUND_WEIGHTED_I8_H
#define LATHE_KERNEL_ROUND_WEIGHTED_I8_H
#include "kernel/round/shifted_i8.h"
#include <stdint.h>

#define LATHE_OF(name) name##_i8
#include "kernel/round/weighted.inc"

#endif
