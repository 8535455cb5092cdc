/* SPDX-License-Identifier: Apache-2.0 */
/* Four bytes, wherever they lie, as the word that all lanes multiply. */
#ifndef LATHE_KERNEL_LANES_WORD_H
#define LATHE_KERNEL_LANES_WORD_H
#include <stdint.h>

#if defined(__GNUC__)
typedef int32_t lathe_word_at __attribute__((may_alias, aligned(1)));
#endif

#endif
