/* SPDX-License-Identifier: Apache-2.0 */
/* Which form of the kernels for Cortex-M with the DSP extension this compiler gets:
 *   2  assembly, in the syntax of gcc and clang: the fastest, because it keeps a tile in 13 or 14 registers. It reads
 *      words at any address, so it is not for -mno-unaligned-access;
 *   1  the intrinsics of Arm's arm_acle.h, for every compiler that has that header (Arm Compiler, IAR, ...);
 *   0  plain C: processors without the extension.
 * All forms compute the same. -DLATHE_DSP=1 or =0 asks for one that is less. */
#ifndef LATHE_KERNEL_DSP_DSP_H
#define LATHE_KERNEL_DSP_DSP_H

#ifndef LATHE_DSP
#if defined(__GNUC__) && defined(__ARM_FEATURE_DSP) && defined(__ARM_FEATURE_UNALIGNED) && defined(__thumb2__) && \
    defined(__OPTIMIZE__)
#define LATHE_DSP 2
#elif defined(__ARM_FEATURE_DSP) && defined(__ARM_FEATURE_SIMD32)
#define LATHE_DSP 1
#else
#define LATHE_DSP 0
#endif
#endif

#endif
