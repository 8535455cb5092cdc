/* SPDX-License-Identifier: Apache-2.0 */
/* What the C writer does otherwise for Cortex-M with vectors (Helium). */
#ifndef LATHE_CODEGEN_C_MVE_H
#define LATHE_CODEGEN_C_MVE_H
#include "codegen/c/emit.h"

#define MVE_SETUP "kernel/mve/mve.h" /* LATHE_MVE and what goes with it */
#define MVE_LANES 4 /* numbers of 32 bits in a vector */

/* mve_text.c */
/* The body of a helper of floats that chooses by a comparison (NEED_VOP of a minimum or maximum, NEED_VCHOOSE,
 * NEED_VBOUND, NEED_VEXTREME), for LATHE_MVE; NULL: another one, or other lanes. gcc 12 makes such vectors lane by
 * lane, and of two masks that meet it compares the first lane alone. */
const char *mve_choice(arena *a, const c_need *n);
/* Data that stays in registers: where a few pixels' bytes fit into MVE_STILL of them, they stay there while the weights
 * of all channels pass by. What differs in the text: pixels, vectors of each, whether the last one is not whole,
 * whether weights are too far apart for the instruction's own step, whether the sums are added to, whether pixels are a
 * vector apart, so that they share all but one, whether weights are of 4 bits. */
#define MVE_STILL  6
#define MVE_PAIRED 3 /* pixels by two channels, whose weights of 4 bits share bytes, at once */
enum {
    MVE_PIXELS = 0xf, MVE_VECTORS = 4, MVE_TAIL = 1 << 8, MVE_FAR = 1 << 9, MVE_ADDS = 1 << 10, MVE_SHARED = 1 << 11,
    MVE_NIBBLES = 1 << 12
};
const char *mve_still_name(arena *a, uint32_t key);
void mve_write_still(arena *a, writer *w, uint32_t key); /* c_need.lanes of NEED_MVE_STILL */
#endif
