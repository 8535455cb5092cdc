/* SPDX-License-Identifier: Apache-2.0 */
/* A right shift of a negative number keeps its sign, as in all compilers of today; C leaves it open. */
#ifndef LATHE_KERNEL_COMMON_SHIFTS_H
#define LATHE_KERNEL_COMMON_SHIFTS_H
typedef char lathe_shifts_keep_signs[(-1 >> 1) == -1 ? 1 : -1];
#endif
