/* SPDX-License-Identifier: Apache-2.0 */
/* What x86 multiplies in lanes: LATHE_X86 bytes in a vector, 0 elsewhere, and one name for each instruction that gcc
 * and clang call differently, with the bits of the vector behind it:
 *   LATHE_MADD     VPMADDWD, products of 16 bits, summed in twos
 *   LATHE_MADDUBS  VPMADDUBSW, products of u8 by i8, summed in twos, which saturate in 16 bits
 *   LATHE_ABS      VPABSB
 *   LATHE_DPBUSD   VPDPBUSD, products of u8 by i8, summed in fours and added; where LATHE_VNNI is 1
 *   LATHE_DPWSSD   VPDPWSSD, the same of 16 bits in twos */
#ifndef LATHE_KERNEL_X86_X86_H
#define LATHE_KERNEL_X86_X86_H
#include <stdint.h>

#if defined(__AVX512VNNI__)
#define LATHE_VNNI512 1
#else
#define LATHE_VNNI512 0
#endif
#if defined(__AVXVNNI__) || (defined(__AVX512VNNI__) && defined(__AVX512VL__))
#define LATHE_VNNI256 1
#else
#define LATHE_VNNI256 0
#endif
#define LATHE_VNNI128 LATHE_VNNI256
#if defined(__AVX512BW__) || defined(__AVX512VNNI__)
#define LATHE_X86 64
#elif defined(__AVX2__)
#define LATHE_X86 32
#elif defined(__SSE2__)
#define LATHE_X86 16
#else
#define LATHE_X86 0
#endif
/* Those of bytes are younger. */
#if defined(__SSSE3__)
#define LATHE_X86_BYTES LATHE_X86
#else
#define LATHE_X86_BYTES 0
#endif

#if LATHE_X86 > 0
#define LATHE_MADD256    __builtin_ia32_pmaddwd256
#define LATHE_MADD128    __builtin_ia32_pmaddwd128
#define LATHE_MADDUBS256 __builtin_ia32_pmaddubsw256
#define LATHE_MADDUBS128 __builtin_ia32_pmaddubsw128
#if defined(__clang__)
#define LATHE_DPBUSD512  __builtin_ia32_vpdpbusd512
#define LATHE_DPBUSD256  __builtin_ia32_vpdpbusd256
#define LATHE_DPBUSD128  __builtin_ia32_vpdpbusd128
#define LATHE_DPWSSD512  __builtin_ia32_vpdpwssd512
#define LATHE_DPWSSD256  __builtin_ia32_vpdpwssd256
#define LATHE_DPWSSD128  __builtin_ia32_vpdpwssd128
#define LATHE_MADD512    __builtin_ia32_pmaddwd512
#define LATHE_MADDUBS512 __builtin_ia32_pmaddubsw512
#if __has_builtin(__builtin_elementwise_abs)
typedef signed char lathe_i8x64 __attribute__((vector_size(64)));
typedef signed char lathe_i8x32 __attribute__((vector_size(32)));
typedef signed char lathe_i8x16 __attribute__((vector_size(16)));
#define LATHE_ABS512(a) __builtin_elementwise_abs((lathe_i8x64)(a))
#define LATHE_ABS256(a) __builtin_elementwise_abs((lathe_i8x32)(a))
#define LATHE_ABS128(a) __builtin_elementwise_abs((lathe_i8x16)(a))
#else
#define LATHE_ABS512 __builtin_ia32_pabsb512
#define LATHE_ABS256 __builtin_ia32_pabsb256
#define LATHE_ABS128 __builtin_ia32_pabsb128
#endif
#else
typedef int16_t lathe_i16x32 __attribute__((vector_size(64)));
typedef int32_t lathe_i32x16 __attribute__((vector_size(64)));
#define LATHE_DPBUSD512        __builtin_ia32_vpdpbusd_v16si
#define LATHE_DPBUSD256        __builtin_ia32_vpdpbusd_v8si
#define LATHE_DPBUSD128        __builtin_ia32_vpdpbusd_v4si
#define LATHE_DPWSSD512        __builtin_ia32_vpdpwssd_v16si
#define LATHE_DPWSSD256        __builtin_ia32_vpdpwssd_v8si
#define LATHE_DPWSSD128        __builtin_ia32_vpdpwssd_v4si
#define LATHE_MADD512(a, b)    __builtin_ia32_pmaddwd512_mask((a), (b), (lathe_i32x16){0}, 0xffff)
#define LATHE_MADDUBS512(a, b) __builtin_ia32_pmaddubsw512_mask((a), (b), (lathe_i16x32){0}, 0xffffffffu)
#define LATHE_ABS512(a)        __builtin_ia32_pabsb512_mask((a), (a), -1LL)
#define LATHE_ABS256           __builtin_ia32_pabsb256
#define LATHE_ABS128           __builtin_ia32_pabsb128
#endif
#endif

#endif
