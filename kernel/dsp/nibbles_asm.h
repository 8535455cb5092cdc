/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of 4 bits for the assembly of rows_asm.h and bytes_asm.h. One half of a byte is for the first word of data,
 * the other one for the second. Both are made 16 times as large, so that their sign is that of a byte: an AND, and for
 * the lower half a shift. The sums are then 16 times as large, too. */
#ifndef LATHE_KERNEL_DSP_NIBBLES_ASM_H
#define LATHE_KERNEL_DSP_NIBBLES_ASM_H
#include "kernel/dsp/dsp.h"

#if LATHE_DSP == 2
/* Four weights of two channels from four bytes, in the registers of LATHE_BYTE_WEIGHTS. */
#define LATHE_NIBBLE_WEIGHTS                                                                \
    "ldr %[v], [%[w]], #4\n and %[f], %[v], #0xf0f0f0f0\n lsl %[v], %[v], #4\n"             \
    "and %[v], %[v], #0xf0f0f0f0\n sxtb16 %[e], %[f]\n sxtb16 %[f], %[f], ror #8\n"         \
    "sxtb16 %[u], %[v]\n sxtb16 %[v], %[v], ror #8\n"
/* The same four bytes by two words of data. */
#define LATHE_NIBBLES_BY(x, y, s, t)                                                        \
    "ldr %[u], [%[w]], #4\n lsl %[v], %[u], #4\n and %[u], %[u], #0xf0f0f0f0\n"             \
    "and %[v], %[v], #0xf0f0f0f0\n sxtb16 %[e], %[u]\n sxtb16 %[u], %[u], ror #8\n"         \
    "smlad %" s ", %[" x "], %[e], %" s "\n smlad %" t ", %[" x "], %[u], %" t "\n"         \
    "sxtb16 %[e], %[v]\n sxtb16 %[v], %[v], ror #8\n"                                       \
    "smlad %" s ", %[" y "], %[e], %" s "\n smlad %" t ", %[" y "], %[v], %" t "\n"
#endif

#endif
