/* SPDX-License-Identifier: Apache-2.0 */
/* LATHE_RARE: what stands behind such a condition is not computed ahead of it. */
#ifndef LATHE_KERNEL_COMMON_RARE_H
#define LATHE_KERNEL_COMMON_RARE_H

#if defined(__GNUC__)
#define LATHE_RARE(x) __builtin_expect(!!(x), 0)
#else
#define LATHE_RARE(x) (x)
#endif

#endif
