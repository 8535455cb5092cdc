/* SPDX-License-Identifier: Apache-2.0 */
/* The pieces that bounds.inc puts its assembly together from: two words, each brought within the bounds by
 * LATHE_BOUND_ONE. */
#ifndef LATHE_KERNEL_DSP_BOUNDS_ASM_H
#define LATHE_KERNEL_DSP_BOUNDS_ASM_H
#include "kernel/common/rolled.h"
#include "kernel/common/shared.h"
#include "kernel/dsp/words.h"

#if LATHE_DSP == 2
#define LATHE_BOUND_LOW(less, v)  less " %[x], %[" v "], %[low]\n sel %[" v "], %[" v "], %[low]\n"
#define LATHE_BOUND_BOTH(less, v) \
    LATHE_BOUND_LOW(less, v) less " %[x], %[" v "], %[high]\n sel %[" v "], %[high], %[" v "]\n"
#define LATHE_BOUND_TWO                                                      \
    "ldrd %[u], %[v], [%[from]], #8\n" LATHE_BOUND_ONE("u") LATHE_BOUND_ONE("v") "strd %[u], %[v], [%[to]], #8\n"
#endif

#endif
