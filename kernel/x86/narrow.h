/* SPDX-License-Identifier: Apache-2.0 */
/* The lowest bytes of eight or of four words, side by side, as a number of 64 or 32 bits: VPSHUFB puts those of each
 * half of the register together, VPERMD the halves. gcc takes such vectors apart, where the processor has these two. */
#ifndef LATHE_KERNEL_X86_NARROW_H
#define LATHE_KERNEL_X86_NARROW_H
#include "kernel/common/always.h"
#include <stdint.h>

#if defined(__AVX2__) && !defined(__clang__)
typedef int32_t lathe_words_8 __attribute__((vector_size(32)));

static LATHE_ALWAYS int64_t lathe_x86_narrow_8(lathe_words_8 x)
{
    typedef char all __attribute__((vector_size(32)));
    typedef int64_t pair __attribute__((vector_size(32)));
    const all low = {0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12,
                     0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12};
    const lathe_words_8 halves = {0, 4, 0, 4, 0, 4, 0, 4};
    const lathe_words_8 each = (lathe_words_8)__builtin_ia32_pshufb256((all)x, low);
    return ((pair)__builtin_shuffle(each, halves))[0];
}
#endif

#if defined(__SSSE3__) && !defined(__clang__)
typedef int32_t lathe_words_4 __attribute__((vector_size(16)));

static LATHE_ALWAYS int32_t lathe_x86_narrow_4(lathe_words_4 x)
{
    typedef char bytes __attribute__((vector_size(16)));
    const bytes low = {0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12};
    return ((lathe_words_4)__builtin_ia32_pshufb128((bytes)x, low))[0];
}
#endif

#endif
