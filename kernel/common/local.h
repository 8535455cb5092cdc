/* SPDX-License-Identifier: Apache-2.0 */
/* LATHE_LOCAL: a local array of 16 bytes or more. gcc gives such arrays 16 bytes of alignment, and its vector stores
 * count on that. But gcc 12 and others begin the frame of a leaf function at any 8 bytes when all stores go by a
 * register (bug 109780 of gcc). Only what asks for more than the 16 bytes that callers guarantee makes them align the
 * frame. That is so on x86. */
#ifndef LATHE_KERNEL_COMMON_LOCAL_H
#define LATHE_KERNEL_COMMON_LOCAL_H

#if defined(__GNUC__) && !defined(__clang__) && (defined(__x86_64__) || defined(__i386__))
#define LATHE_LOCAL __attribute__((aligned(32)))
#else
#define LATHE_LOCAL
#endif

#endif
