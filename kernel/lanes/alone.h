/* SPDX-License-Identifier: Apache-2.0 */
/* The words of templates in lanes (src/codegen/c/kernel.c), for one that is compiled alone: its form of LATHE_ALONE
 * lanes of 32 bits, 4, 8 or 16, for data of i8, or of u8 with LATHE_ALONE_U8. Generated C has none of this. */
#ifndef LATHE_KERNEL_LANES_ALONE_H
#define LATHE_KERNEL_LANES_ALONE_H
#include <stdint.h>

#ifndef LATHE_ALONE
#define LATHE_ALONE 4
#endif
#if defined(LATHE_ALONE_F64)
#define LATHE_V           f64x2
#define LATHE_OF(name)    f64x2_##name
#define LATHE_WIDTH(name) name##128
#elif LATHE_ALONE == 16
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
#if defined(LATHE_ALONE_F64)
#define LATHE_DOUBLE 1
#define LATHE_LANES  2
#define LATHE_NUMBER double
#define LATHE_BYTES  (8 * LATHE_LANES)
#else
#define LATHE_LANES  LATHE_ALONE
#define LATHE_NUMBER int32_t
#define LATHE_BYTES  (4 * LATHE_LANES)
#endif
#define LATHE_RISCV 1
#if defined(__ARM_FEATURE_MVE)
#define LATHE_HELIUM 1
#else
#define LATHE_HELIUM 0
#endif
/* Where one of two is chosen: the larger one. */
#define LATHE_IS            >
#define LATHE_BUILTIN(name) __builtin_ia32_max##name
#define LATHE_NAME          LATHE_OF(form)
/* The bytes that lanes are made of, or become. */
#define LATHE_JOINED(a, b) a##_##b
#define LATHE_NAMED(a, b)  LATHE_JOINED(a, b)
#if defined(LATHE_ALONE_U8)
#define LATHE_INT      uint8_t
#define LATHE_SIGNED   0
#define LATHE_TO(name) name##_u8
#define LATHE_X4(name) lathe_u8x4_##name
#else
#define LATHE_INT      int8_t
#define LATHE_SIGNED   1
#define LATHE_TO(name) name##_i8
#define LATHE_X4(name) lathe_i8x4_##name
#endif
#define LATHE_OF_INT(name) LATHE_NAMED(LATHE_V, LATHE_TO(name))

#include "kernel/lanes/vectors.inc"
#if LATHE_VECTORS
typedef LATHE_NUMBER LATHE_V __attribute__((vector_size(LATHE_BYTES)));
typedef float f32x4 __attribute__((vector_size(16)));
#else
typedef struct LATHE_V {
    LATHE_NUMBER lane[LATHE_LANES];
} LATHE_V;
typedef struct f32x4 {
    float lane[4];
} f32x4;
#endif

#endif
