/* SPDX-License-Identifier: Apache-2.0 */
/* LATHE_EIGHT_TIMES: the compiler writes out eight iterations of the loop behind it, which else stays short. */
#ifndef LATHE_KERNEL_COMMON_EIGHT_TIMES_H
#define LATHE_KERNEL_COMMON_EIGHT_TIMES_H

#if defined(__clang__)
#define LATHE_EIGHT_TIMES _Pragma("unroll(8)")
#elif defined(__GNUC__)
#define LATHE_EIGHT_TIMES _Pragma("GCC unroll 8")
#else
#define LATHE_EIGHT_TIMES
#endif

#endif
