/* SPDX-License-Identifier: Apache-2.0 */
/* LATHE_ROLLED_CLANG: clang does not unroll the loop behind it, so the sums of a tile stay in registers. */
#ifndef LATHE_KERNEL_COMMON_ROLLED_CLANG_H
#define LATHE_KERNEL_COMMON_ROLLED_CLANG_H

#if defined(__clang__)
#define LATHE_ROLLED_CLANG _Pragma("nounroll")
#else
#define LATHE_ROLLED_CLANG
#endif

#endif
