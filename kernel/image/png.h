/* SPDX-License-Identifier: Apache-2.0 */
/* PNG of eight bits a sample, not interlaced: gray, RGB, or colors from a palette; transparency is left out. The data
 * is inflated (RFC 1951) into the working memory as a whole, so that it is its own window, and then unfiltered. */
#ifndef LATHE_KERNEL_IMAGE_PNG_H
#define LATHE_KERNEL_IMAGE_PNG_H
#include "kernel/image/file.h"

typedef struct lathe_code {
    uint16_t count[16];   /* of each length */
    uint16_t symbol[288]; /* in the order of their codes */
} lathe_code;

typedef struct lathe_inflate {
    lathe_file file;
    int32_t chunk;       /* bytes that the chunk at hand still has */
    uint32_t bits, have; /* that were read and not used */
    uint8_t *out;
    int32_t room, used;
    lathe_code literals, distances;
} lathe_inflate;

/* The next byte of the chunks IDAT, which follow one another. */
static LATHE_MAYBE int32_t lathe_idat_byte(lathe_inflate *z)
{
    while (z->chunk == 0 && !z->file.past) {
        const int32_t at = z->file.at + 4; /* behind the sum of the last one */
        z->chunk = lathe_big(&z->file, at, 4);
        if (lathe_big(&z->file, at + 4, 4) != 0x49444154) {
            z->file.past = 1;
            z->chunk = 0;
        }
        z->file.at = at + 8;
    }
    z->chunk -= z->chunk > 0;
    return lathe_next_byte(&z->file);
}

static LATHE_MAYBE uint32_t lathe_bits(lathe_inflate *z, uint32_t n)
{
    uint32_t v;
    while (z->have < n) {
        z->bits |= (uint32_t)lathe_idat_byte(z) << z->have;
        z->have += 8;
    }
    v = z->bits & ((1u << n) - 1u);
    z->bits >>= n;
    z->have -= n;
    return v;
}

/* Nonzero: there are more codes than fit. */
static LATHE_MAYBE int32_t lathe_make_code(lathe_code *c, const uint8_t *lengths, int32_t n)
{
    int32_t i, left = 1;
    uint16_t next[16];
    for (i = 0; i < 16; i++)
        c->count[i] = 0;
    for (i = 0; i < n; i++)
        c->count[lengths[i]]++;
    next[0] = next[1] = 0;
    for (i = 1; i < 16; i++) {
        left = 2 * left - c->count[i];
        if (left < 0)
            return 1;
        if (i < 15)
            next[i + 1] = (uint16_t)(next[i] + c->count[i]);
    }
    for (i = 0; i < n; i++)
        if (lengths[i] != 0)
            c->symbol[next[lengths[i]]++] = (uint16_t)i;
    return 0;
}

/* -1: no code. */
static LATHE_MAYBE int32_t lathe_symbol(lathe_inflate *z, const lathe_code *c)
{
    int32_t code = 0, first = 0, place = 0, len;
    for (len = 1; len < 16; len++) {
        code |= (int32_t)lathe_bits(z, 1);
        if (code - c->count[len] < first)
            return c->symbol[place + code - first];
        place += c->count[len];
        first = (first + c->count[len]) * 2;
        code *= 2;
    }
    return -1;
}

static LATHE_MAYBE int32_t lathe_read_codes(lathe_inflate *z)
{
    static const uint8_t order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    uint8_t lengths[320];
    int32_t literals, distances, few, i;
    for (i = 0; i < 19; i++)
        lengths[i] = 0;
    literals = (int32_t)lathe_bits(z, 5) + 257;
    distances = (int32_t)lathe_bits(z, 5) + 1;
    few = (int32_t)lathe_bits(z, 4) + 4;
    for (i = 0; i < few; i++)
        lengths[order[i]] = (uint8_t)lathe_bits(z, 3);
    if (literals > 286 || lathe_make_code(&z->literals, lengths, 19) != 0)
        return 1;
    for (i = 0; i < literals + distances;) {
        const int32_t s = lathe_symbol(z, &z->literals);
        int32_t many = 1;
        uint8_t length = (uint8_t)s;
        if (s < 0 || (s == 16 && i == 0))
            return 1;
        if (s >= 16) {
            length = s == 16 ? lengths[i - 1] : 0;
            many = s == 16 ? 3 + (int32_t)lathe_bits(z, 2)
                           : s == 17 ? 3 + (int32_t)lathe_bits(z, 3) : 11 + (int32_t)lathe_bits(z, 7);
        }
        if (i + many > literals + distances)
            return 1;
        while (many-- > 0)
            lengths[i++] = length;
    }
    return lathe_make_code(&z->literals, lengths, literals) |
           lathe_make_code(&z->distances, lengths + literals, distances);
}

static LATHE_MAYBE void lathe_fixed_codes(lathe_inflate *z)
{
    uint8_t lengths[288];
    int32_t i;
    for (i = 0; i < 288; i++)
        lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    (void)lathe_make_code(&z->literals, lengths, 288);
    for (i = 0; i < 30; i++)
        lengths[i] = 5;
    (void)lathe_make_code(&z->distances, lengths, 30);
}

static LATHE_MAYBE int32_t lathe_inflate_block(lathe_inflate *z)
{
    static const uint16_t base[29] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                      31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint16_t far[30] = {1,   2,   3,   4,   5,   7,    9,    13,   17,   25,
                                     33,  49,  65,  97,  129, 193,  257,  385,  513,  769,
                                     1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
    for (;;) {
        const int32_t s = lathe_symbol(z, &z->literals);
        int32_t len, distance, d;
        if (s == 256)
            return 0;
        if (s < 0 || s > 285 || z->file.past)
            return 1;
        if (s < 256) {
            if (z->used >= z->room)
                return 1;
            z->out[z->used++] = (uint8_t)s;
            continue;
        }
        len = base[s - 257] + (int32_t)lathe_bits(z, s < 265 || s == 285 ? 0u : (uint32_t)(s - 261) / 4u);
        d = lathe_symbol(z, &z->distances);
        if (d < 0 || d > 29)
            return 1;
        distance = far[d] + (int32_t)lathe_bits(z, d < 4 ? 0u : (uint32_t)(d - 2) / 2u);
        if (distance > z->used || len > z->room - z->used)
            return 1;
        for (; len > 0; len--, z->used++)
            z->out[z->used] = z->out[z->used - distance];
    }
}

static LATHE_MAYBE int32_t lathe_inflate_stored(lathe_inflate *z)
{
    int32_t len;
    z->bits = z->have = 0;
    len = (int32_t)lathe_bits(z, 16);
    if ((int32_t)lathe_bits(z, 16) != (~len & 0xffff) || len > z->room - z->used)
        return 1;
    for (; len > 0; len--)
        z->out[z->used++] = (uint8_t)lathe_bits(z, 8);
    return z->file.past;
}

/* All blocks; nonzero: a fault, or more than there is room for. */
static LATHE_MAYBE int32_t lathe_inflate_all(lathe_inflate *z)
{
    uint32_t last = 0;
    (void)lathe_bits(z, 16); /* the head of zlib's form */
    while (!last && !z->file.past) {
        uint32_t kind;
        int32_t bad = 0;
        last = lathe_bits(z, 1);
        kind = lathe_bits(z, 2);
        if (kind == 3)
            return 1;
        if (kind == 1)
            lathe_fixed_codes(z);
        else if (kind == 2)
            bad = lathe_read_codes(z);
        if (bad || (kind == 0 ? lathe_inflate_stored(z) : lathe_inflate_block(z)))
            return 1;
    }
    return z->file.past;
}

static LATHE_MAYBE int32_t lathe_paeth(int32_t a, int32_t b, int32_t c)
{
    const int32_t p = a + b - c, pa = p > a ? p - a : a - p, pb = p > b ? p - b : b - p, pc = p > c ? p - c : c - p;
    return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
}

/* Rows of `row` bytes, each behind the number of its filter, in place. */
static LATHE_MAYBE int32_t lathe_unfilter(uint8_t *data, int32_t height, int32_t row, int32_t pixel)
{
    int32_t y, i;
    for (y = 0; y < height; y++) {
        uint8_t *x = data + (int64_t)y * (row + 1) + 1;
        const uint8_t *above = x - (row + 1);
        const int32_t filter = x[-1];
        if (filter > 4)
            return 1;
        for (i = 0; i < row; i++) {
            const int32_t a = i < pixel ? 0 : x[i - pixel], b = y == 0 ? 0 : above[i];
            const int32_t c = i < pixel || y == 0 ? 0 : above[i - pixel];
            const int32_t add = filter == 0   ? 0
                                : filter == 1 ? a
                                : filter == 2 ? b
                                : filter == 3 ? (a + b) / 2
                                              : lathe_paeth(a, b, c);
            x[i] = (uint8_t)(x[i] + add);
        }
    }
    return 0;
}

static LATHE_MAYBE int32_t lathe_decode_png(const lathe_file *f, const lathe_picture *p)
{
    static const uint8_t samples[8] = {1, 0, 3, 1, 2, 0, 4, 0};
    const int32_t kind = lathe_byte_at(f, 25), pixel = kind < 8 ? samples[kind] : 0, row = pixel * p->width;
    int32_t at = 8, palette = -1, colors = 0, y, x;
    lathe_inflate z = {0};
    if (lathe_big(f, 16, 4) != p->width || lathe_big(f, 20, 4) != p->height || lathe_byte_at(f, 24) != 8 ||
        pixel == 0 || lathe_byte_at(f, 28) != 0)
        return 1;
    while (lathe_big(f, at + 4, 4) != 0x49444154) {
        const int32_t len = lathe_big(f, at, 4);
        if (len > f->len - at - 12)
            return 1;
        if (lathe_big(f, at + 4, 4) == 0x504c5445) {
            palette = at + 8;
            colors = len / 3;
        }
        at += len + 12;
    }
    z.file = *f;
    z.file.at = at + 8;
    z.chunk = lathe_big(f, at, 4);
    z.out = p->work;
    z.room = p->height * (row + 1);
    if (lathe_inflate_all(&z) || z.used != z.room || lathe_unfilter(z.out, p->height, row, pixel))
        return 1;
    for (y = 0; y < p->height; y++)
        for (x = 0; x < 3 * p->width; x++) {
            const uint8_t *from = z.out + (int64_t)y * (row + 1) + 1 + x / 3 * pixel;
            if (kind == 3 && *from >= colors)
                return 1;
            p->rgb[(int64_t)y * 3 * p->width + x] =
                kind == 3 ? (uint8_t)lathe_byte_at(f, palette + 3 * *from + x % 3) : from[pixel < 3 ? 0 : x % 3];
        }
    return 0;
}

#endif
