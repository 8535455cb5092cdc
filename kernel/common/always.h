/* SPDX-License-Identifier: Apache-2.0 */
/* A function that the compiler always writes out where it is called, so that constant arguments choose its code. A file
 * may have it and not call it. */
#ifndef LATHE_KERNEL_COMMON_ALWAYS_H
#define LATHE_KERNEL_COMMON_ALWAYS_H
#if defined(__GNUC__)
#define LATHE_ALWAYS inline __attribute__((always_inline, unused))
#else
#define LATHE_ALWAYS inline
#endif
#endif
