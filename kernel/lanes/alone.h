/* SPDX-License-Identifier: Apache-2.0 */
/* The words of templates in lanes (src/codegen/c/kernel.c), for one that is compiled alone: its form of LATHE_ALONE
 * lanes of 32 bits, 4, 8 or 16. Generated C has none of this. */
#ifndef LATHE_KERNEL_LANES_ALONE_H
#define LATHE_KERNEL_LANES_ALONE_H
#include <stdint.h>

#ifndef LATHE_ALONE
#define LATHE_ALONE 4
#endif
#if LATHE_ALONE == 16
#define LATHE_V           i32x16
#define LATHE_OF(name)    i32x16_##name
#define LATHE_WIDTH(name) name##512
#elif LATHE_ALONE == 8
#define LATHE_V           i32x8
#define LATHE_OF(name)    i32x8_##name
#define LATHE_WIDTH(name) name##256
#else
#define LATHE_V           i32x4
#define LATHE_OF(name)    i32x4_##name
#define LATHE_WIDTH(name) name##128
#endif
#define LATHE_LANES LATHE_ALONE
#define LATHE_BYTES (4 * LATHE_LANES)
#define LATHE_RISCV 1

#if defined(__GNUC__) && !defined(LATHE_VECTORS)
#define LATHE_VECTORS 1
#elif !defined(LATHE_VECTORS)
#define LATHE_VECTORS 0
#endif
#if defined(__GNUC__)
#define LATHE_INLINE static inline __attribute__((always_inline))
#else
#define LATHE_INLINE static inline
#endif
#if LATHE_VECTORS
#define LATHE_LANE(x, i) (x)[i]
typedef int32_t LATHE_V __attribute__((vector_size(LATHE_BYTES)));
#else
#define LATHE_LANE(x, i) (x).lane[i]
typedef struct LATHE_V {
    int32_t lane[LATHE_LANES];
} LATHE_V;
#endif

#endif
