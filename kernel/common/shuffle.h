/* SPDX-License-Identifier: Apache-2.0 */
/* LATHE_SHUFFLE: numbers of two vectors in another order, by their places in a and, behind those, in b. type: of the
 * list of places, which gcc wants as a vector. */
#ifndef LATHE_KERNEL_COMMON_SHUFFLE_H
#define LATHE_KERNEL_COMMON_SHUFFLE_H

#if defined(__clang__)
#define LATHE_SHUFFLE(a, b, type, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define LATHE_SHUFFLE(a, b, type, ...) __builtin_shuffle(a, b, (type){__VA_ARGS__})
#endif

#endif
