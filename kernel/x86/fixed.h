/* SPDX-License-Identifier: Apache-2.0 */
/* Fixed point in lanes of 32 bits. LATHE_X86_WIDE: bytes of the vectors that have VPMULDQ, 0 elsewhere. One name for
 * each instruction that gcc and clang call differently, with the bits of the vector behind it:
 *   LATHE_MULDQ  VPMULDQ, products of 64 bits of even lanes
 *   LATHE_MERGE  even lanes of the first vector, odd ones of the second
 *   LATHE_ABSD   VPABSD
 *   LATHE_SIGND  VPSIGND, the first by the sign of the second, which vectors of 512 bits do not have */
#ifndef LATHE_KERNEL_X86_FIXED_H
#define LATHE_KERNEL_X86_FIXED_H
#include "kernel/common/shuffle.h"
#include <stdint.h>

#if defined(__AVX512F__)
#define LATHE_X86_WIDE 64
#elif defined(__AVX2__)
#define LATHE_X86_WIDE 32
#elif defined(__SSE4_1__)
#define LATHE_X86_WIDE 16
#else
#define LATHE_X86_WIDE 0
#endif

#if LATHE_X86_WIDE > 0
typedef int32_t lathe_x86_16 __attribute__((vector_size(64)));
typedef int32_t lathe_x86_8 __attribute__((vector_size(32)));
typedef int32_t lathe_x86_4 __attribute__((vector_size(16)));
#define LATHE_MULDQ256 __builtin_ia32_pmuldq256
#define LATHE_MULDQ128 __builtin_ia32_pmuldq128
#define LATHE_SIGND256 __builtin_ia32_psignd256
#define LATHE_SIGND128 __builtin_ia32_psignd128
#if defined(__clang__)
#define LATHE_MULDQ512 __builtin_ia32_pmuldq512
#define LATHE_ABSD512  __builtin_elementwise_abs
#define LATHE_ABSD256  __builtin_elementwise_abs
#define LATHE_ABSD128  __builtin_elementwise_abs
#else
typedef long long lathe_x86_long_8 __attribute__((vector_size(64)));
#define LATHE_MULDQ512(x, y) __builtin_ia32_pmuldq512_mask(x, y, (lathe_x86_long_8){0}, 255)
#define LATHE_ABSD512(x)     __builtin_ia32_pabsd512_mask(x, (lathe_x86_16){0}, 65535)
#define LATHE_ABSD256        __builtin_ia32_pabsd256
#define LATHE_ABSD128        __builtin_ia32_pabsd128
#endif
#define LATHE_MERGE512(even, odd)                                                                                   \
    LATHE_SHUFFLE((lathe_x86_16)(even), (lathe_x86_16)(odd), lathe_x86_16, 0, 17, 2, 19, 4, 21, 6, 23, 8, 25, 10,   \
                  27, 12, 29, 14, 31)
#define LATHE_MERGE256(even, odd) \
    LATHE_SHUFFLE((lathe_x86_8)(even), (lathe_x86_8)(odd), lathe_x86_8, 0, 9, 2, 11, 4, 13, 6, 15)
#define LATHE_MERGE128(even, odd) LATHE_SHUFFLE((lathe_x86_4)(even), (lathe_x86_4)(odd), lathe_x86_4, 0, 5, 2, 7)
#endif

#endif
