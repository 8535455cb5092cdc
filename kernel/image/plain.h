/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures that are not compressed: BMP of 24 bits, binary PNM (P6), and TIFF of RGB in one strip and Intel's order of
 * bytes. */
#ifndef LATHE_KERNEL_IMAGE_PLAIN_H
#define LATHE_KERNEL_IMAGE_PLAIN_H
#include "kernel/image/file.h"

/* Rows of three bytes a pixel, `step` apart, from `first` on. */
static LATHE_MAYBE int32_t lathe_copy_rows(const lathe_file *f, const lathe_picture *p, int64_t first, int64_t step,
                                           int32_t blue_first)
{
    const int64_t last = first + step * (p->height - 1);
    int32_t y, i;
    if (first < 0 || last < 0 || first + 3 * (int64_t)p->width > f->len || last + 3 * (int64_t)p->width > f->len)
        return 1;
    for (y = 0; y < p->height; y++)
        for (i = 0; i < 3 * p->width; i++) {
            const int32_t to = blue_first ? i / 3 * 3 + 2 - i % 3 : i;
            p->rgb[(int64_t)y * 3 * p->width + to] = f->data[first + step * y + i];
        }
    return 0;
}

/* Rows come from below, unless the height is negative, and are filled up to four bytes. */
static LATHE_MAYBE int32_t lathe_decode_bmp(const lathe_file *f, const lathe_picture *p)
{
    const int64_t row = (3 * (int64_t)p->width + 3) / 4 * 4, from = lathe_little(f, 10, 4);
    const int32_t down = lathe_byte_at(f, 25) >> 7;
    const int32_t height = down ? (int32_t)((0x80000000u - (uint32_t)lathe_little(f, 22, 4)) & 0x7fffffffu)
                                : lathe_little(f, 22, 4);
    if (lathe_little(f, 18, 4) != p->width || height != p->height || lathe_little(f, 28, 2) != 24 ||
        lathe_little(f, 30, 4) != 0)
        return 1;
    return lathe_copy_rows(f, p, down ? from : from + (p->height - 1) * row, down ? row : -row, 1);
}

/* The next number, behind blanks and comments. */
static LATHE_MAYBE int32_t lathe_pnm_number(lathe_file *f)
{
    int32_t v = 0, b = lathe_next_byte(f);
    while (!f->past && (b == ' ' || (b >= 9 && b <= 13) || b == '#')) {
        while (b == '#' && !f->past) {
            do {
                b = lathe_next_byte(f);
            } while (b != '\n' && !f->past);
        }
        b = lathe_next_byte(f);
    }
    while (b >= '0' && b <= '9' && v < 1 << 24) {
        v = 10 * v + b - '0';
        b = lathe_next_byte(f);
    }
    return v;
}

static LATHE_MAYBE int32_t lathe_decode_pnm(lathe_file *f, const lathe_picture *p)
{
    int32_t width, height, most;
    f->at = 2;
    width = lathe_pnm_number(f);
    height = lathe_pnm_number(f);
    most = lathe_pnm_number(f);
    if (width != p->width || height != p->height || most != 255)
        return 1;
    return lathe_copy_rows(f, p, f->at, 3 * (int64_t)p->width, 0);
}

static LATHE_MAYBE int32_t lathe_decode_tiff(const lathe_file *f, const lathe_picture *p)
{
    const int32_t directory = lathe_little(f, 4, 4);
    int32_t entry, width = 0, height = 0, packing = 1, kind = 0, from = -1, samples = 0;
    if (directory > f->len)
        return 1;
    for (entry = 0; entry < lathe_little(f, directory, 2) && entry < 256; entry++) {
        const int32_t at = directory + 2 + 12 * entry, short_value = lathe_little(f, at + 8, 2);
        const int32_t value = lathe_little(f, at + 2, 2) == 3 ? short_value : lathe_little(f, at + 8, 4);
        switch (lathe_little(f, at, 2)) {
        case 256: width = value; break;
        case 257: height = value; break;
        case 259: packing = value; break;
        case 262: kind = value; break;
        case 273: from = lathe_little(f, at + 4, 4) == 1 ? value : -1; break;
        case 277: samples = value; break;
        default: break;
        }
    }
    if (width != p->width || height != p->height || packing != 1 || kind != 2 || samples != 3)
        return 1;
    return lathe_copy_rows(f, p, from, 3 * (int64_t)p->width, 0);
}

#endif
