/* SPDX-License-Identifier: Apache-2.0 */
/* What rows of targets share: flags that gcc and clang both know, and numbers of machines with an operating system. */
#ifndef LATHE_TARGET_FLAGS_H
#define LATHE_TARGET_FLAGS_H

#define CONTRACT " -ffp-contract=fast"
/* Nothing reads errno, so that a square root is an instruction, and nothing stops at an exception of floats, which gcc
 * else expects: a floor or a product below a condition then stays out of vectors. */
#define QUIET  " -fno-math-errno -fno-trapping-math"
#define FLOATS QUIET CONTRACT

/* Everything that whole-model targets of 64 bits share. */
#define HOST .stack_limit = 16384, .workers = 4, .address_bits = 64

#define KB(n) ((n) * 1024u)
#define MB(n) ((n) * 1024u * 1024u)

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))
#endif
