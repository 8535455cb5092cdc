/* SPDX-License-Identifier: Apache-2.0 */
/* out[i][b][j] += the products of row i of a, u8 or i8, by column j of block b of w, i8: n steps of four numbers, m
 * rows, one block of 16 columns or two. Rows of a and of out, and blocks of w, may lie anywhere; in a block the four
 * numbers of a column lie side by side, 16 columns make a step.
 *
 * With AMX: registers 0 to 3 hold the sums of 32 rows by 32 columns over all steps, 4 and 5 two pieces of 16 rows of
 * data, 6 and 7 the weights of both blocks. 16 steps take four loads and four instructions, each of which does
 * 16 * 16 * 64 products in 16 cycles (Intel's optimization manual, on AMX); a load takes 8, so products take the time.
 * Steps that are left, and all where Linux does not let the process use the registers, are VPDPBUSD, or plain C. */
#ifndef LATHE_KERNEL_X86_AMX_H
#define LATHE_KERNEL_X86_AMX_H
#include "kernel/common/always.h"
#include "kernel/lanes/word.h"
#include "kernel/x86/amx_asm.h"
#include "kernel/x86/x86.h"
#include <stdint.h>

#if LATHE_AMX
static LATHE_ALWAYS void lathe_amx_shapes(unsigned first, unsigned second)
{
    /* Palette 1; from byte 16 on bytes of a row, in 16 bits each; from byte 48 on rows. */
    unsigned char s[64] = {1};
    unsigned i;
    for (i = 0; i < 8; i++) {
        s[16 + 2 * i] = 64;
        s[48 + i] = 16;
    }
    s[48] = s[49] = s[52] = (unsigned char)first;
    s[50] = s[51] = s[53] = (unsigned char)second;
    for (i = 0; second == 0 && i < 8; i++)
        if (i == 2 || i == 3 || i == 5)
            s[16 + 2 * i] = 0;
    LATHE_AMX_SHAPES(s);
}

/* Sums of 16 rows by 16 columns: those in memory, or 0 where the instruction makes them. */
#define LATHE_AMX_SUMS(t, p)                     \
    do {                                         \
        if (begins)                              \
            LATHE_AMX_ZERO(t);                   \
        else                                     \
            LATHE_AMX_LOAD(t, p, 4 * out_row);   \
    } while (0)
#define LATHE_AMX_ADD(c, a, b)                   \
    do {                                         \
        if (is_signed)                           \
            LATHE_AMX_I8(c, a, b);               \
        else                                     \
            LATHE_AMX_U8(c, a, b);               \
    } while (0)

/* 16 steps at a time, of 16 rows, or fewer, and of the `second` ones behind them. */
static LATHE_ALWAYS void lathe_amx_rows(int32_t *out, const unsigned char *a, const int8_t *w, int second, int two,
                                        int64_t whole, int64_t a_row, int64_t block, int64_t out_row, int begins,
                                        int is_signed)
{
    int64_t k;
    int32_t *below = out + 16 * out_row;
    LATHE_AMX_SUMS(0, out);
    if (two)
        LATHE_AMX_SUMS(1, out + 16);
    if (second)
        LATHE_AMX_SUMS(2, below);
    if (second && two)
        LATHE_AMX_SUMS(3, below + 16);
    for (k = 0; k < whole; k++) {
        LATHE_AMX_LOAD(4, a + 64 * k, a_row);
        LATHE_AMX_LOAD(6, w + 1024 * k, 64);
        LATHE_AMX_ADD(0, 4, 6);
        if (two) {
            LATHE_AMX_LOAD(7, w + block + 1024 * k, 64);
            LATHE_AMX_ADD(1, 4, 7);
        }
        if (second) {
            LATHE_AMX_LOAD(5, a + 16 * a_row + 64 * k, a_row);
            LATHE_AMX_ADD(2, 5, 6);
        }
        if (second && two)
            LATHE_AMX_ADD(3, 5, 7);
    }
    LATHE_AMX_STORE(0, out, 4 * out_row);
    if (two)
        LATHE_AMX_STORE(1, out + 16, 4 * out_row);
    if (second)
        LATHE_AMX_STORE(2, below, 4 * out_row);
    if (second && two)
        LATHE_AMX_STORE(3, below + 16, 4 * out_row);
}
#endif

/* Steps from `from` on, of u8 by VPDPBUSD: `rows` of them, a number that the compiler knows, share the weights. */
#if LATHE_VNNI512
typedef int32_t lathe_amx_sums __attribute__((vector_size(64)));
typedef int32_t lathe_amx_memory __attribute__((vector_size(64), aligned(1), may_alias));

static LATHE_ALWAYS void lathe_amx_vnni(int32_t *out, const unsigned char *a, const int8_t *w, int rows, int64_t from,
                                        int64_t n, int64_t a_row, int64_t out_row)
{
    lathe_amx_sums s[8];
    int64_t k;
    int i;
    for (i = 0; i < rows; i++)
        s[i] = *(const lathe_amx_memory *)(const void *)(out + i * out_row);
    for (k = from; k < n; k++) {
        const lathe_amx_sums by = *(const lathe_amx_memory *)(const void *)(w + 64 * k);
        for (i = 0; i < rows; i++)
            s[i] = LATHE_DPBUSD512(s[i], *(const lathe_word_at *)(const void *)(a + i * a_row + 4 * k) -
                                             (lathe_amx_sums){0}, by);
    }
    for (i = 0; i < rows; i++)
        *(lathe_amx_memory *)(void *)(out + i * out_row) = s[i];
}
#endif

/* Steps from `from` on of one block. */
static LATHE_ALWAYS void lathe_amx_steps(int32_t *out, const unsigned char *a, const int8_t *w, int64_t m,
                                         int64_t from, int64_t n, int64_t a_row, int64_t out_row, int is_signed)
{
    int64_t i = 0, k;
    int j, g;
#if LATHE_VNNI512
    for (; !is_signed && i + 8 <= m; i += 8)
        lathe_amx_vnni(out + i * out_row, a + i * a_row, w, 8, from, n, a_row, out_row);
    for (; !is_signed && i < m; i++)
        lathe_amx_vnni(out + i * out_row, a + i * a_row, w, 1, from, n, a_row, out_row);
#endif
    for (; i < m; i++)
        for (k = from; k < n; k++)
            for (g = 0; g < 4; g++) {
                const unsigned char byte = a[i * a_row + 4 * k + g];
                const int32_t x = is_signed ? (int8_t)byte : byte;
                for (j = 0; j < 16; j++)
                    out[i * out_row + j] =
                        (int32_t)((uint32_t)out[i * out_row + j] + (uint32_t)(x * w[64 * k + 4 * j + g]));
            }
}

static LATHE_ALWAYS void lathe_amx_dot(int32_t *out, const void *data, const int8_t *w, int64_t m, int64_t c,
                                       int64_t n, int64_t a_row, int64_t block, int64_t out_row, int begins,
                                       int is_signed)
{
    const unsigned char *a = (const unsigned char *)data;
    int64_t i, j, done = 0;
#if LATHE_AMX
    const int64_t whole = LATHE_AMX_MAY() ? n / 16 : 0;
    int64_t rows = 0;
    for (i = 0; whole > 0 && i < m; i += 32) {
        const int64_t now = m - i < 32 ? m - i : 32;
        const unsigned first = now < 16 ? (unsigned)now : 16, second = (unsigned)now - first;
        if (now != rows)
            lathe_amx_shapes(first, second);
        rows = now;
        lathe_amx_rows(out + i * out_row, a + i * a_row, w, second > 0, c > 1, whole, a_row, block, out_row, begins,
                       is_signed);
    }
    if (whole > 0)
        LATHE_AMX_LEAVE();
    done = 16 * whole;
#endif
    for (i = 0; begins && done == 0 && i < m; i++)
        for (j = 0; j < 16 * c; j++)
            out[i * out_row + j] = 0;
    for (j = 0; done < n && j < c; j++)
        lathe_amx_steps(out + 16 * j, a, w + j * block, m, done, n, a_row, out_row, is_signed);
}

static void lathe_amx_u8(int32_t *out, const uint8_t *a, const int8_t *w, int64_t m, int64_t c, int64_t n,
                         int64_t a_row, int64_t block, int64_t out_row, int begins)
{
    lathe_amx_dot(out, a, w, m, c, n, a_row, block, out_row, begins, 0);
}

static void lathe_amx_i8(int32_t *out, const int8_t *a, const int8_t *w, int64_t m, int64_t c, int64_t n,
                         int64_t a_row, int64_t block, int64_t out_row, int begins)
{
    lathe_amx_dot(out, a, w, m, c, n, a_row, block, out_row, begins, 1);
}

#endif
