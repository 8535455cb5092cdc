/* SPDX-License-Identifier: Apache-2.0 */
/* LATHE_PREFETCH: a line that is needed later comes as far as the second cache. */
#ifndef LATHE_KERNEL_COMMON_PREFETCH_H
#define LATHE_KERNEL_COMMON_PREFETCH_H

#if defined(__GNUC__)
#define LATHE_PREFETCH(p) __builtin_prefetch((p), 0, 2)
#else
#define LATHE_PREFETCH(p) ((void)(p))
#endif

#endif
