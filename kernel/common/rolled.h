/* SPDX-License-Identifier: Apache-2.0 */
/* LATHE_ROLLED: the compiler does not unroll the loop behind it. */
#ifndef LATHE_KERNEL_COMMON_ROLLED_H
#define LATHE_KERNEL_COMMON_ROLLED_H

#if defined(__clang__)
#define LATHE_ROLLED _Pragma("nounroll")
#elif defined(__GNUC__)
#define LATHE_ROLLED _Pragma("GCC unroll 1")
#else
#define LATHE_ROLLED
#endif

#endif
