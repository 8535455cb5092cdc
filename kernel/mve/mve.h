/* SPDX-License-Identifier: Apache-2.0 */
/* Which form of the kernels for Cortex-M with vectors (Helium) this compiler gets:
 *   2  assembly and intrinsics, in the syntax of gcc and clang: loops without a branch that end in the middle of a
 *      vector (DLSTP, LETP), and sums in the even registers that VMLADAVA asks for;
 *   1  the intrinsics of Arm's arm_mve.h alone, for every compiler that has that header;
 *   0  plain C: processors without vectors of integers and floats.
 * All forms compute the same. -DLATHE_MVE=1 or =0 asks for one that is less. */
#ifndef LATHE_KERNEL_MVE_MVE_H
#define LATHE_KERNEL_MVE_MVE_H

#ifndef LATHE_MVE
#if defined(__GNUC__) && defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2) != 0 && defined(__OPTIMIZE__)
#define LATHE_MVE 2
#elif defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2) != 0
#define LATHE_MVE 1
#else
#define LATHE_MVE 0
#endif
#endif
#if LATHE_MVE > 0
#include <arm_mve.h>
#endif
/* A form that only assembly has, and what stands for it elsewhere. */
#if LATHE_MVE == 2
#define LATHE_STILL(here, elsewhere) here
#else
#define LATHE_STILL(here, elsewhere) elsewhere
#endif
#if defined(__clang__)
#define LATHE_PREDICATE "memory" /* the register has no name there */
#else
#define LATHE_PREDICATE "p0"
#endif

#if defined(__GNUC__)
#define LATHE_HERE inline __attribute__((always_inline, unused))
#else
#define LATHE_HERE inline
#endif

#endif
