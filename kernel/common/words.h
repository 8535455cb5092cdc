/* SPDX-License-Identifier: Apache-2.0 */
/* An array of small elements that begins at a word of memory, where the compiler can be told so. */
#ifndef LATHE_KERNEL_COMMON_WORDS_H
#define LATHE_KERNEL_COMMON_WORDS_H
#if defined(__GNUC__)
#define LATHE_WORDS __attribute__((aligned(4)))
#else
#define LATHE_WORDS
#endif
#endif
