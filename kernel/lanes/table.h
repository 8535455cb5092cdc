/* SPDX-License-Identifier: Apache-2.0 */
/* The byte of a table for each of n bytes. A vector looks all of its bytes up in a part of the table at once: 128
 * entries with VBMI, 64 on AArch64, 16 with AVX2. Then the upper bits of the bytes choose among the parts. */
#ifndef LATHE_KERNEL_LANES_TABLE_H
#define LATHE_KERNEL_LANES_TABLE_H
#include "kernel/common/always.h"
#include "kernel/common/shared.h"
#include <stdint.h>
#include <string.h>

#if defined(__aarch64__) && defined(__ARM_NEON)
#include <arm_neon.h>
#define LATHE_TABLE_AT_ONCE 16
typedef struct lathe_table_parts {
    uint8x16x4_t part[4];
} lathe_table_parts;

static LATHE_ALWAYS void lathe_table_read(lathe_table_parts *t, const uint8_t *table)
{
    for (int i = 0; i < 4; i++)
        t->part[i] = vld1q_u8_x4(table + 64 * i);
}
static LATHE_ALWAYS void lathe_table_some(uint8_t *to, const uint8_t *from, const lathe_table_parts *t)
{
    uint8x16_t at = vld1q_u8(from), v = vqtbl4q_u8(t->part[0], at);
    for (int i = 1; i < 4; i++) {
        at = vsubq_u8(at, vdupq_n_u8(64)); /* what is outside of the part stays */
        v = vqtbx4q_u8(v, t->part[i], at);
    }
    vst1q_u8(to, v);
}
#elif defined(__GNUC__) && defined(__AVX512VBMI__)
#define LATHE_TABLE_AT_ONCE 64
typedef char lathe_table_vector __attribute__((vector_size(64)));
typedef struct lathe_table_parts {
    lathe_table_vector part[4];
} lathe_table_parts;
#if defined(__clang__)
#define LATHE_TABLE_OF_TWO(a, b, at) __builtin_ia32_vpermi2varqi512(a, at, b)
#else
#define LATHE_TABLE_OF_TWO(a, b, at) __builtin_shuffle(a, b, at)
#endif

static LATHE_ALWAYS void lathe_table_read(lathe_table_parts *t, const uint8_t *table)
{
    memcpy(t->part, table, 256);
}
static LATHE_ALWAYS void lathe_table_some(uint8_t *to, const uint8_t *from, const lathe_table_parts *t)
{
    lathe_table_vector at, low, high, is_high;
    memcpy(&at, from, sizeof at);
    low = LATHE_TABLE_OF_TWO(t->part[0], t->part[1], at);
    high = LATHE_TABLE_OF_TWO(t->part[2], t->part[3], at);
    is_high = (lathe_table_vector)((at & (char)-128) != 0);
    low = (low & ~is_high) | (high & is_high);
    memcpy(to, &low, sizeof low);
}
#elif defined(__GNUC__) && defined(__AVX2__)
#define LATHE_TABLE_AT_ONCE 32
typedef char lathe_table_vector __attribute__((vector_size(32)));
typedef short lathe_table_pairs __attribute__((vector_size(32)));
typedef struct lathe_table_parts {
    lathe_table_vector part[16];
} lathe_table_parts;

static LATHE_ALWAYS void lathe_table_read(lathe_table_parts *t, const uint8_t *table)
{
    for (int i = 0; i < 16; i++) {
        memcpy(&t->part[i], table + 16 * i, 16);
        memcpy((char *)&t->part[i] + 16, table + 16 * i, 16);
    }
}
static LATHE_ALWAYS void lathe_table_some(uint8_t *to, const uint8_t *from, const lathe_table_parts *t)
{
    lathe_table_vector at, place, v[16];
    memcpy(&at, from, sizeof at);
    place = at & 15;
    for (int i = 0; i < 16; i++)
        v[i] = __builtin_ia32_pshufb256(t->part[i], place);
    for (int n = 8, bit = 4; n > 0; n /= 2, bit++) {
        const lathe_table_vector chosen = (lathe_table_vector)((lathe_table_pairs)at << (7 - bit));
        for (int i = 0; i < n; i++)
            v[i] = __builtin_ia32_pblendvb256(v[2 * i], v[2 * i + 1], chosen);
    }
    memcpy(to, &v[0], sizeof v[0]);
}
#endif

static LATHE_SHARED void lathe_vectors_of_table(uint8_t *to, const uint8_t *from, const uint8_t *table, int64_t n)
{
    int64_t i = 0;
#if defined(LATHE_TABLE_AT_ONCE)
    if (n >= LATHE_TABLE_AT_ONCE) {
        lathe_table_parts t;
        lathe_table_read(&t, table);
        for (; i <= n - LATHE_TABLE_AT_ONCE; i += LATHE_TABLE_AT_ONCE)
            lathe_table_some(to + i, from + i, &t);
    }
#endif
    for (; i < n; i++)
        to[i] = table[from[i]];
}

#endif
