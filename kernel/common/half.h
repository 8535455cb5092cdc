/* SPDX-License-Identifier: Apache-2.0 */
/* A number of 4 bits with a sign: the upper half of a byte, or the lower one. One instruction where a processor has bit
 * fields, two shifts elsewhere. */
#ifndef LATHE_KERNEL_COMMON_HALF_H
#define LATHE_KERNEL_COMMON_HALF_H
#include "kernel/common/shifts.h"
#include <stdint.h>

#define LATHE_HALF(byte, low) ((low) ? (int8_t)((uint32_t)(byte) << 4) >> 4 : (byte) >> 4)
#endif
