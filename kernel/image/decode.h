/* SPDX-License-Identifier: Apache-2.0 */
/* ImageDecoder: a picture of a known size from the bytes of a file, whose beginning says what it is. Nothing is
 * allocated. For other kinds (WebP, JPEG 2000, progressive JPEG) a program may name a function of its own:
 * -DLATHE_IMAGE_HOOK=NAME. It gets the file, whose first bytes say what it is, and room for 3 * height * width bytes.
 * It writes rows of red, green and blue from the top, and returns 0; or another number, if this is no picture of that
 * size, and the run ends with a status. */
#ifndef LATHE_KERNEL_IMAGE_DECODE_H
#define LATHE_KERNEL_IMAGE_DECODE_H
#include "kernel/image/jpeg.h"
#include "kernel/image/plain.h"
#include "kernel/image/png.h"

#ifdef LATHE_IMAGE_HOOK
int32_t LATHE_IMAGE_HOOK(const uint8_t *file, int64_t len, uint8_t *rgb, int64_t height, int64_t width);
#endif

/* 0, or 1: this is no picture of that size, or of a kind that nobody here reads. work: 4 bytes for each pixel of a
 * picture whose sides are multiples of 16, and one for each row. */
static LATHE_MAYBE int32_t lathe_decode_image(const uint8_t *data, int64_t len, uint8_t *rgb, int64_t height,
                                              int64_t width, uint8_t *work)
{
    lathe_file f = {0};
    lathe_picture p;
    int32_t bad = 1;
    if (len < 0 || len > 0x7fffffff)
        return 1;
    f.data = data;
    f.len = (int32_t)len;
    p.rgb = rgb;
    p.height = (int32_t)height;
    p.width = (int32_t)width;
    p.work = work;
    if (lathe_big(&f, 0, 2) == 0x424d)
        bad = lathe_decode_bmp(&f, &p);
    else if (lathe_big(&f, 0, 2) == 0x5036)
        bad = lathe_decode_pnm(&f, &p);
    else if (lathe_big(&f, 0, 4) == 0x49492a00)
        bad = lathe_decode_tiff(&f, &p);
    else if (lathe_big(&f, 0, 2) == 0xffd8)
        bad = lathe_decode_jpeg(&f, &p);
    else if (lathe_big(&f, 1, 3) == 0x504e47)
        bad = lathe_decode_png(&f, &p);
#ifdef LATHE_IMAGE_HOOK
    bad = bad && LATHE_IMAGE_HOOK(data, len, rgb, height, width) != 0;
#endif
    return bad;
}

#endif
