/* SPDX-License-Identifier: Apache-2.0 */
/* The upper word of a product, shifted to u8: word.inc. */
#ifndef LATHE_KERNEL_ROUND_WORD_U8_H
#define LATHE_KERNEL_ROUND_WORD_U8_H
#include "kernel/round/word_right.h"
#include <stdint.h>

#define LATHE_LEAST    0
#define LATHE_MOST     255
#define LATHE_OF(name) name##_u8
#define LATHE_SATURATE "usat"
#include "kernel/round/word.inc"

#endif
