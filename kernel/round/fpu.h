/* SPDX-License-Identifier: Apache-2.0 */
/* LATHE_SMALL_FPU, 1: a Cortex-M whose floating-point unit rounds. VCVTR gives the nearest integer, ties to even, and
 * saturates, as QADD and SSAT do; VFMA rounds once. This is assembly for gcc and clang, because C has no name for
 * VCVTR: rintf is a call on a Cortex-M4. 0: C, in floats or in integers.
 * LATHE_NO_FPU, 1: each operation on floats is a call of a function, of fifty instructions and more, so that the bits
 * of a float are looked at instead. A test sets it. */
#ifndef LATHE_KERNEL_ROUND_FPU_H
#define LATHE_KERNEL_ROUND_FPU_H

#if defined(__GNUC__) && defined(__ARM_FP) && (__ARM_FP & 4) != 0 && defined(__ARM_FEATURE_DSP) && \
    defined(__ARM_FEATURE_FMA) && defined(__thumb2__)
#define LATHE_SMALL_FPU 1
#else
#define LATHE_SMALL_FPU 0
#endif
#if !defined(LATHE_NO_FPU)
#if (defined(__arm__) && !defined(__ARM_FP)) || (defined(__riscv) && !defined(__riscv_flen)) || defined(__AVR__)
#define LATHE_NO_FPU 1
#else
#define LATHE_NO_FPU 0
#endif
#endif
#if defined(__GNUC__)
#define LATHE_APART __attribute__((noinline))
#else
#define LATHE_APART
#endif

#endif
