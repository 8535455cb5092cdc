/* SPDX-License-Identifier: Apache-2.0 */
/* x * k, k the bits of a double above 0, rounded exactly, ties to even, within 2^30, by products of 32 bits. rough: how
 * far k is from the factor that it stands for. A function, for it is called once in a thousand times. */
#ifndef LATHE_KERNEL_ROUND_PRODUCT_H
#define LATHE_KERNEL_ROUND_PRODUCT_H
#include <stdint.h>

#if defined(__GNUC__)
__attribute__((noinline, unused))
#endif
static int64_t lathe_rounded_product(int64_t x, int64_t k, int64_t rough)
{
    const uint64_t size = x < 0 ? (uint64_t)0 - (uint64_t)x : (uint64_t)x, mask = 0xffffffffu;
    const uint64_t most = (uint64_t)1 << 24, one = (uint64_t)1 << 52;
    const uint64_t number = (((uint64_t)k & (one - 1)) | one) << 9;
    const int32_t all = 62 + 1022 - (int32_t)((uint64_t)k >> 52 & 2047u);
    const int32_t by = all < 32 ? 32 : all > 127 ? 127 : all, down = by < 65 ? 1 : by - 64;
    const uint64_t n = by < 65 ? (size < most ? size : most) << (65 - by) : size;
    const uint64_t off = n * (uint64_t)rough, k0 = number & mask, k1 = number >> 32;
    const uint64_t first = (n & mask) * k0, middle = (n >> 32) * k0 + (first >> 32);
    const uint64_t cross = (n & mask) * k1 + (middle & mask), low = cross << 32 | (first & mask);
    const uint64_t high = (n >> 32) * k1 + (middle >> 32) + (cross >> 32);
    const int64_t part = (int64_t)(high & (((uint64_t)1 << down) - 1)) - ((int64_t)1 << (down - 1));
    uint64_t y = high >> down;
    if ((part == 0 && low <= off) ||
        (part == -1 && low != 0 && (uint64_t)0 - low <= off))
        y += y & 1u;
    else
        y += part >= 0 ? 1u : 0u;
    y = y < (uint64_t)1 << 30 ? y : (uint64_t)1 << 30;
    return x < 0 ? -(int64_t)y : (int64_t)y;
}

#endif
