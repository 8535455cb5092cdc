/* SPDX-License-Identifier: Apache-2.0 */
/* A register of AArch64, as words and as numbers of 16 bits. */
#ifndef LATHE_KERNEL_NEON_TYPES_H
#define LATHE_KERNEL_NEON_TYPES_H
#include <stdint.h>

#if defined(__aarch64__)
typedef int32_t lathe_neon_words __attribute__((vector_size(16)));
typedef uint32_t lathe_neon_uwords __attribute__((vector_size(16)));
typedef int16_t lathe_neon_halves __attribute__((vector_size(16)));
#endif

#endif
