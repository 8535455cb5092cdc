/* SPDX-License-Identifier: Apache-2.0 */
/* The upper word of a product, shifted to i8: word.inc. */
#ifndef LATHE_KERNEL_ROUND_WORD_I8_H
#define LATHE_KERNEL_ROUND_WORD_I8_H
#include "kernel/round/word_right.h"
#include <stdint.h>

#define LATHE_LEAST    (-128)
#define LATHE_MOST     127
#define LATHE_OF(name) name##_i8
#define LATHE_SATURATE "ssat"
#include "kernel/round/word.inc"

#endif
