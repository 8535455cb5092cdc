/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that a Cortex-M handles four at a time, beside loops over single bytes: bounds, extremes, sums and tables of
 * random ones, of every length up to 40 and from every place in a word. The last line says how many there were. */
#include "kernel/dsp/above_i8.h"
#include "kernel/dsp/above_u8.h"
#include "kernel/dsp/clip_i8.h"
#include "kernel/dsp/clip_u8.h"
#include "kernel/dsp/sum_words.h"
#include "kernel/dsp/table.h"
#include <stdio.h>

#define MOST 40

static uint32_t random_bits(void)
{
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

static long wrong, checked;
static uint8_t table[256];
static struct {
    uint32_t align;
    uint8_t from[MOST + 8], to[MOST + 8];
} memory;

static void check(const char *what, int n, int i, int have, int want)
{
    checked++;
    if (have != want && wrong++ < 5)
        printf("%s of %d, byte %d: %d, not %d\n", what, n, i, have, want);
}

static int bounded(int v, int least, int most)
{
    return v < least ? least : v > most ? most : v;
}

/* None of the neighbors is written. */
static void check_ends(const char *what, const uint8_t *to, int n)
{
    check(what, n, -1, to[-1], 99);
    check(what, n, n, to[n], 99);
}

static void check_runs(int n, const uint8_t *from, uint8_t *to)
{
    const int least = (int)(random_bits() % 200) - 128, most = least + (int)(random_bits() % (uint32_t)(128 - least));
    const int8_t *bytes = (const int8_t *)from;
    int i;
    lathe_above_i8((int8_t *)to, bytes, n, least);
    for (i = 0; i < n; i++)
        check("above_i8", n, i, (int8_t)to[i], bounded(bytes[i], least, 127));
    lathe_clip_i8((int8_t *)to, bytes, n, least, most);
    for (i = 0; i < n; i++)
        check("clip_i8", n, i, (int8_t)to[i], bounded(bytes[i], least, most));
    lathe_above_u8(to, from, n, least + 128);
    for (i = 0; i < n; i++)
        check("above_u8", n, i, to[i], bounded(from[i], least + 128, 255));
    lathe_clip_u8(to, from, n, least + 128, most + 128);
    for (i = 0; i < n; i++)
        check("clip_u8", n, i, to[i], bounded(from[i], least + 128, most + 128));
    lathe_bytes_of_table(to, from, table, n);
    for (i = 0; i < n; i++)
        check("table", n, i, to[i], table[from[i]]);
    check_ends("all", to, n);
}

static uint32_t extreme(uint32_t a, uint32_t b, int is_signed, int larger)
{
    uint32_t r = 0;
    int k;
    for (k = 0; k < 32; k += 8) {
        const int x = (int)((a >> k) & 255), y = (int)((b >> k) & 255), flip = is_signed ? 128 : 0;
        const int first = larger ? (x ^ flip) > (y ^ flip) : (x ^ flip) < (y ^ flip);
        r |= (uint32_t)(first ? x : y) << k;
    }
    return r;
}

static void check_words(void)
{
    uint32_t even[2] = {0, 0}, odd[2] = {0, 0};
    int32_t sums[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
    int n = 1 + (int)(random_bits() % 256), i, k;
    const uint32_t ends = random_bits() % 2 ? 0x80808080u : 0x7f7f7f7fu, mask = random_bits() % 2 ? 0 : UINT32_MAX;
    for (i = 0; i < n; i++) {
        const uint32_t v = ((random_bits() ^ random_bits() << 16) & mask) | (ends & ~mask), w = random_bits() << 8;
        even[0] = lathe_sum_even_i8(even[0], v);
        odd[0] = lathe_sum_odd_i8(odd[0], v);
        even[1] = lathe_sum_even_u8(even[1], v);
        odd[1] = lathe_sum_odd_u8(odd[1], v);
        for (k = 0; k < 4; k++) {
            sums[0][k] += (int8_t)(v >> 8 * k);
            sums[1][k] += (uint8_t)(v >> 8 * k);
        }
        check("words", n, i, lathe_max_word_i8(v, w) == extreme(v, w, 1, 1), 1);
        check("words", n, i, lathe_min_word_i8(v, w) == extreme(v, w, 1, 0), 1);
        check("words", n, i, lathe_max_word_u8(v, w) == extreme(v, w, 0, 1), 1);
        check("words", n, i, lathe_min_word_u8(v, w) == extreme(v, w, 0, 0), 1);
    }
    check("sums", n, 0, (int16_t)even[0], sums[0][0]);
    check("sums", n, 1, (int16_t)odd[0], sums[0][1]);
    check("sums", n, 2, (int16_t)(even[0] >> 16), sums[0][2]);
    check("sums", n, 3, (int16_t)(odd[0] >> 16), sums[0][3]);
    check("sums", n, 0, (uint16_t)even[1], sums[1][0]);
    check("sums", n, 1, (uint16_t)odd[1], sums[1][1]);
    check("sums", n, 2, (uint16_t)(even[1] >> 16), sums[1][2]);
    check("sums", n, 3, (uint16_t)(odd[1] >> 16), sums[1][3]);
}

int main(void)
{
    int n, at, i;
    for (i = 0; i < 256; i++)
        table[i] = (uint8_t)(random_bits() >> 4);
    for (n = 0; n <= MOST; n++)
        for (at = 0; at < 16; at++) {
            for (i = 0; i < MOST + 8; i++) {
                memory.from[i] = (uint8_t)random_bits();
                memory.to[i] = 99;
            }
            check_runs(n, memory.from + at / 4, memory.to + 1 + at % 4);
        }
    for (i = 0; i < 50; i++)
        check_words();
    printf("%ld bytes, %ld wrong\n", checked, wrong);
    return wrong != 0;
}
