/* SPDX-License-Identifier: Apache-2.0 */
/* What the sums of dot_tiles.inc have in common. */
#ifndef LATHE_KERNEL_MVE_TILES_H
#define LATHE_KERNEL_MVE_TILES_H
#include "kernel/mve/mve.h"

#if LATHE_MVE == 2
/* A sum in a register of its own: where gcc makes a vector of sums, it looks for the operands of VMLADAVA in its lanes,
 * and ends with an internal error. */
#define LATHE_ALONE(s) __asm__("" : "+r"(s))
#endif

#endif
