/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG: baseline, Huffman's codes, of one color or three, whole chroma or halves of it along one axis or both. Numbers
 * are those of libjpeg's defaults in every bit: its slow integer transform (13 bits behind the point), triangles
 * between samples of chroma, and conversion of colors with 16 bits behind the point. */
#ifndef LATHE_KERNEL_IMAGE_JPEG_H
#define LATHE_KERNEL_IMAGE_JPEG_H
#include "kernel/image/file.h"

typedef struct lathe_prefix {
    uint8_t count[16]; /* of codes with 1, 2, ... bits */
    uint8_t symbol[256];
} lathe_prefix;

typedef struct lathe_plane {
    int32_t id, across, down; /* blocks of it in a unit */
    int32_t steps, codes[2];  /* numbers of its tables: quantization, codes of first and of other coefficients */
    int32_t before;           /* the first coefficient of the last block */
    int32_t stride;
    uint8_t *samples;
} lathe_plane;

typedef struct lathe_jpeg {
    lathe_file file;
    uint16_t steps[4][64];
    lathe_prefix codes[2][4]; /* of first coefficients, of the others */
    lathe_plane plane[3];
    int32_t planes, across, down; /* most blocks in a unit */
    int32_t restart, transform;   /* units between restarts; what Adobe's mark says, -1: there is none */
    uint32_t bits;
    int32_t have, marked; /* marked: a mark ends the data */
} lathe_jpeg;

static LATHE_MAYBE int32_t lathe_jpeg_bit(lathe_jpeg *j)
{
    if (j->have == 0) {
        int32_t b = 0;
        if (!j->marked) {
            b = lathe_next_byte(&j->file);
            if (b == 0xff && lathe_byte_at(&j->file, j->file.at) != 0) {
                j->marked = 1;
                b = 0;
                j->file.at--;
            } else if (b == 0xff) {
                j->file.at++;
            }
        }
        j->bits = (uint32_t)b;
        j->have = 8;
    }
    j->have--;
    return (int32_t)(j->bits >> j->have & 1u);
}

static LATHE_MAYBE int32_t lathe_jpeg_symbol(lathe_jpeg *j, const lathe_prefix *p)
{
    int32_t code = 0, first = 0, place = 0, len;
    for (len = 0; len < 16; len++) {
        code = 2 * code + lathe_jpeg_bit(j);
        if (code - first < p->count[len])
            return place + code - first < 256 ? p->symbol[place + code - first] : 0;
        place += p->count[len];
        first = 2 * (first + p->count[len]);
    }
    return 0;
}

/* A number of `n` bits; those with a zero in front are negative. */
static LATHE_MAYBE int32_t lathe_jpeg_number(lathe_jpeg *j, int32_t n)
{
    int32_t v = 0, i;
    for (i = 0; i < n; i++)
        v = 2 * v + lathe_jpeg_bit(j);
    return n > 0 && v < 1 << (n - 1) ? v - (1 << n) + 1 : v;
}

/* Eight numbers, `step` apart, transformed in place; what comes out has `shift` bits fewer behind the point. */
static LATHE_MAYBE void lathe_idct_line(int32_t *v, int32_t step, int32_t shift)
{
    const int64_t half = (int64_t)1 << (shift - 1);
    const int64_t a = v[0], b = v[4 * step], c = v[2 * step], d = v[6 * step], w = (c + d) * 4433;
    const int64_t e2 = w - d * 15137, e3 = w + c * 6270, e0 = (a + b) * 8192, e1 = (a - b) * 8192;
    const int64_t even[4] = {e0 + e3, e1 + e2, e1 - e2, e0 - e3};
    const int64_t o0 = v[7 * step], o1 = v[5 * step], o2 = v[3 * step], o3 = v[step];
    const int64_t z5 = (o0 + o2 + o1 + o3) * 9633, z3 = z5 - (o0 + o2) * 16069, z4 = z5 - (o1 + o3) * 3196;
    const int64_t z1 = (o0 + o3) * -7373, z2 = (o1 + o2) * -20995;
    const int64_t odd[4] = {o3 * 12299 + z1 + z4, o2 * 25172 + z2 + z3, o1 * 16819 + z2 + z4, o0 * 2446 + z1 + z3};
    int32_t i;
    for (i = 0; i < 4; i++) {
        v[i * step] = (int32_t)((even[i] + odd[i] + half) >> shift);
        v[(7 - i) * step] = (int32_t)((even[i] - odd[i] + half) >> shift);
    }
}

static LATHE_MAYBE uint8_t lathe_byte_of(int32_t v)
{
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static LATHE_MAYBE void lathe_jpeg_block(lathe_jpeg *j, lathe_plane *p, uint8_t *to)
{
    static const uint8_t zigzag[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                       12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                       35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                       58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};
    int32_t v[64] = {0}, k, i;
    p->before += lathe_jpeg_number(j, lathe_jpeg_symbol(j, &j->codes[0][p->codes[0]]) & 15);
    p->before = p->before > 0xffff ? 0xffff : p->before < -0xffff ? -0xffff : p->before;
    v[0] = p->before * j->steps[p->steps][0];
    for (k = 1; k < 64; k++) {
        const int32_t s = lathe_jpeg_symbol(j, &j->codes[1][p->codes[1]]), run = s >> 4, n = s & 15;
        if (n == 0 && run != 15)
            break;
        k += run;
        if (k < 64 && n > 0)
            v[zigzag[k]] = lathe_jpeg_number(j, n) * j->steps[p->steps][k];
    }
    for (i = 0; i < 64; i++)
        v[i] = v[i] > 0xfffff ? 0xfffff : v[i] < -0xfffff ? -0xfffff : v[i];
    for (i = 0; i < 8; i++)
        lathe_idct_line(v + i, 8, 11);
    for (i = 0; i < 8; i++)
        lathe_idct_line(v + 8 * i, 1, 18);
    for (i = 0; i < 64; i++)
        to[i / 8 * p->stride + i % 8] = lathe_byte_of(v[i] + 128);
}

/* --- marks in front of the data --- */

static LATHE_MAYBE int32_t lathe_jpeg_tables(lathe_jpeg *j, int32_t at, int32_t end, int32_t steps)
{
    int32_t i;
    while (at < end) {
        const int32_t b = lathe_byte_at(&j->file, at++), wide = b >> 4, n = b & 15;
        if (n > 3 || wide > 1)
            return 1;
        if (steps) {
            for (i = 0; i < 64; i++, at += 1 + wide)
                j->steps[n][i] = (uint16_t)lathe_big(&j->file, at, 1 + wide);
        } else {
            lathe_prefix *p = &j->codes[wide][n];
            int32_t all = 0;
            for (i = 0; i < 16; i++)
                all += p->count[i] = (uint8_t)lathe_byte_at(&j->file, at++);
            if (all > 256)
                return 1;
            for (i = 0; i < all; i++)
                p->symbol[i] = (uint8_t)lathe_byte_at(&j->file, at++);
        }
    }
    return at != end;
}

static LATHE_MAYBE int32_t lathe_jpeg_frame(lathe_jpeg *j, const lathe_picture *p, int32_t at, int32_t len)
{
    uint8_t *next = p->work;
    int32_t i;
    j->planes = lathe_byte_at(&j->file, at + 5);
    if (lathe_byte_at(&j->file, at) != 8 || lathe_big(&j->file, at + 1, 2) != p->height ||
        lathe_big(&j->file, at + 3, 2) != p->width || (j->planes != 1 && j->planes != 3) || len < 6 + 3 * j->planes)
        return 1;
    for (i = 0; i < j->planes; i++) {
        lathe_plane *q = &j->plane[i];
        const int32_t size = lathe_byte_at(&j->file, at + 7 + 3 * i);
        q->id = lathe_byte_at(&j->file, at + 6 + 3 * i);
        q->across = j->planes == 1 ? 1 : size >> 4;
        q->down = j->planes == 1 ? 1 : size & 15;
        q->steps = lathe_byte_at(&j->file, at + 8 + 3 * i) & 3;
        if ((q->across != 1 && q->across != 2) || (q->down != 1 && q->down != 2))
            return 1;
        j->across = q->across > j->across ? q->across : j->across;
        j->down = q->down > j->down ? q->down : j->down;
    }
    for (i = 0; i < j->planes; i++) {
        lathe_plane *q = &j->plane[i];
        const int32_t units = (p->width + 8 * j->across - 1) / (8 * j->across);
        const int32_t rows = (p->height + 8 * j->down - 1) / (8 * j->down);
        if (j->down > q->down && j->across == q->across)
            return 1;
        q->stride = units * 8 * q->across;
        q->samples = next;
        next += q->stride * rows * 8 * q->down;
    }
    return 0;
}

static LATHE_MAYBE int32_t lathe_jpeg_scan(lathe_jpeg *j, int32_t at)
{
    int32_t i, k;
    if (j->planes == 0 || lathe_byte_at(&j->file, at) != j->planes)
        return 1;
    for (i = 0; i < j->planes; i++) {
        for (k = 0; k < j->planes && j->plane[k].id != lathe_byte_at(&j->file, at + 1 + 2 * i);)
            k++;
        if (k == j->planes)
            return 1;
        j->plane[k].codes[0] = lathe_byte_at(&j->file, at + 2 + 2 * i) >> 4 & 3;
        j->plane[k].codes[1] = lathe_byte_at(&j->file, at + 2 + 2 * i) & 3;
    }
    return 0;
}

/* What a mark in front of the data says in `len` bytes at `data`; nonzero: it is another kind of file. */
static LATHE_MAYBE int32_t lathe_jpeg_mark(lathe_jpeg *j, const lathe_picture *p, int32_t mark, int32_t data,
                                           int32_t len)
{
    switch (mark) {
    case 0xdb: /* steps */
    case 0xc4: /* codes */
        return lathe_jpeg_tables(j, data, data + len, mark == 0xdb);
    case 0xc0:
    case 0xc1:
        return j->planes != 0 || lathe_jpeg_frame(j, p, data, len);
    case 0xdd:
        j->restart = lathe_big(&j->file, data, 2);
        return 0;
    case 0xee: /* of "Adobe" */
        if (len >= 12 && lathe_big(&j->file, data, 4) == 0x41646f62)
            j->transform = lathe_byte_at(&j->file, data + 11);
        return 0;
    default: /* progressive frames and others; 0xcc is no frame */
        return mark > 0xc1 && mark < 0xd0 && mark != 0xcc;
    }
}

/* Up to the data; nonzero: it is another kind of file. */
static LATHE_MAYBE int32_t lathe_jpeg_head(lathe_jpeg *j, const lathe_picture *p)
{
    int32_t at = 2;
    j->transform = -1;
    while (at + 4 <= j->file.len && lathe_byte_at(&j->file, at) == 0xff) {
        const int32_t mark = lathe_byte_at(&j->file, at + 1), len = lathe_big(&j->file, at + 2, 2);
        const int32_t data = at + 4, end = at + 2 + len;
        if (mark == 0xff) { /* fills up */
            at++;
            continue;
        }
        if (len < 2 || end > j->file.len || lathe_jpeg_mark(j, p, mark, data, len - 2))
            return 1;
        at = end;
        if (mark == 0xda) {
            j->file.at = at;
            return lathe_jpeg_scan(j, data);
        }
    }
    return 1;
}

/* --- the data --- */

static LATHE_MAYBE void lathe_jpeg_restart(lathe_jpeg *j)
{
    int32_t i;
    while (j->file.at < j->file.len && (lathe_byte_at(&j->file, j->file.at) != 0xff ||
                                        (lathe_byte_at(&j->file, j->file.at + 1) & 0xf8) != 0xd0))
        j->file.at++;
    j->file.at += 2;
    j->have = 0;
    j->marked = 0;
    for (i = 0; i < 3; i++)
        j->plane[i].before = 0;
}

static LATHE_MAYBE void lathe_jpeg_units(lathe_jpeg *j, const lathe_picture *p)
{
    const int32_t units = (p->width + 8 * j->across - 1) / (8 * j->across);
    const int32_t all = units * ((p->height + 8 * j->down - 1) / (8 * j->down));
    int32_t unit, i, k;
    for (unit = 0; unit < all; unit++) {
        if (j->restart > 0 && unit > 0 && unit % j->restart == 0)
            lathe_jpeg_restart(j);
        for (i = 0; i < j->planes; i++) {
            lathe_plane *q = &j->plane[i];
            for (k = 0; k < q->across * q->down; k++) {
                const int32_t row = unit / units * q->down + k / q->across;
                const int32_t column = unit % units * q->across + k % q->across;
                lathe_jpeg_block(j, q, q->samples + (row * q->stride + column) * 8);
            }
        }
    }
}

/* --- pixels --- */

/* Sample (y, x) of a plane with half as many along x, or along both: three quarters of the nearer one of each axis. */
static LATHE_MAYBE int32_t lathe_jpeg_between(const lathe_jpeg *j, const lathe_picture *p, const lathe_plane *q,
                                              int32_t y, int32_t x)
{
    const int32_t tall = j->down / q->down, width = (p->width + 1) / 2, height = (p->height + tall - 1) / tall;
    const int32_t at = x / 2, far = x % 2 ? at + 1 : at - 1, line = y / tall;
    int32_t other = y % 2 ? line + 1 : line - 1, near, next;
    const uint8_t *a = q->samples + line * q->stride, *b;
    if (width <= 2) /* too narrow for libjpeg */
        return a[at];
    if (tall == 1)
        return far < 0 || far >= width ? a[at] : (3 * a[at] + a[far] + 1 + x % 2) >> 2;
    other = other < 0 ? 0 : other >= height ? height - 1 : other;
    b = q->samples + other * q->stride;
    near = 3 * a[at] + b[at];
    next = far < 0 || far >= width ? near : 3 * a[far] + b[far];
    return (3 * near + next + 8 - x % 2) >> 4;
}

static LATHE_MAYBE int32_t lathe_jpeg_sample(const lathe_jpeg *j, const lathe_picture *p, const lathe_plane *q,
                                             int32_t y, int32_t x)
{
    return q->across == j->across ? q->samples[y * q->stride + x] : lathe_jpeg_between(j, p, q, y, x);
}

static LATHE_MAYBE int32_t lathe_decode_jpeg(const lathe_file *f, const lathe_picture *p)
{
    lathe_jpeg j = {0};
    int32_t y, x, i, colors;
    j.file = *f;
    if (lathe_jpeg_head(&j, p) != 0)
        return 1;
    lathe_jpeg_units(&j, p);
    if (j.file.past)
        return 1;
    colors = j.transform < 0 ? j.plane[0].id != 'R' || j.plane[1].id != 'G' || j.plane[2].id != 'B' : j.transform != 0;
    for (y = 0; y < p->height; y++)
        for (x = 0; x < p->width; x++) {
            uint8_t *to = p->rgb + 3 * ((int64_t)y * p->width + x);
            int32_t v[3];
            for (i = 0; i < 3; i++)
                v[i] = lathe_jpeg_sample(&j, p, &j.plane[i < j.planes ? i : 0], y, x);
            if (j.planes == 3 && colors) {
                const int32_t luma = v[0], blue = v[1] - 128, red = v[2] - 128;
                v[0] = luma + ((91881 * red + 32768) >> 16);
                v[1] = luma + ((-22554 * blue - 46802 * red + 32768) >> 16);
                v[2] = luma + ((116130 * blue + 32768) >> 16);
            }
            for (i = 0; i < 3; i++)
                to[i] = lathe_byte_of(v[i]);
        }
    return 0;
}

#endif
