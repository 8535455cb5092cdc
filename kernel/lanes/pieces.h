/* SPDX-License-Identifier: Apache-2.0 */
/* LATHE_PIECE: bytes of the processor's widest register. Vectors of f64 are wider than that where lanes of 32 bits
 * beside them ask for it: compilers cut their sums and products into registers, but make comparisons lane by lane,
 * without any vector. Helpers that compare take such a vector in pieces. */
#ifndef LATHE_KERNEL_LANES_PIECES_H
#define LATHE_KERNEL_LANES_PIECES_H

#if defined(__AVX512F__)
#define LATHE_PIECE 64
#elif defined(__AVX__)
#define LATHE_PIECE 32
#else
#define LATHE_PIECE 16
#endif

#endif
