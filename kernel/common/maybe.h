/* SPDX-License-Identifier: Apache-2.0 */
/* LATHE_MAYBE: a small function that a file may have and not call. */
#ifndef LATHE_KERNEL_COMMON_MAYBE_H
#define LATHE_KERNEL_COMMON_MAYBE_H

#if defined(__GNUC__)
#define LATHE_MAYBE inline __attribute__((unused))
#else
#define LATHE_MAYBE inline
#endif

#endif
