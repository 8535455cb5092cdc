/* SPDX-License-Identifier: Apache-2.0 */
/* LATHE_SHARED: a function that is not copied into those that call it. gcc would also make a copy of it for the numbers
 * of each call. */
#ifndef LATHE_KERNEL_COMMON_SHARED_H
#define LATHE_KERNEL_COMMON_SHARED_H

#if defined(__clang__)
#define LATHE_SHARED __attribute__((noinline))
#elif defined(__GNUC__)
#define LATHE_SHARED __attribute__((noinline, noclone))
#else
#define LATHE_SHARED
#endif

#endif
