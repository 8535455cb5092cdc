/* SPDX-License-Identifier: Apache-2.0 */
/* A file in memory that is read to its end and no further, and what a picture becomes: rows of red, green and blue. */
#ifndef LATHE_KERNEL_IMAGE_FILE_H
#define LATHE_KERNEL_IMAGE_FILE_H
#include "kernel/common/maybe.h"
#include <stdint.h>

typedef struct lathe_file {
    const uint8_t *data;
    int32_t len, at;
    int32_t past; /* bytes that were asked for behind the end: zeros */
} lathe_file;

typedef struct lathe_picture {
    uint8_t *rgb;
    int32_t height, width;
    uint8_t *work; /* as decode.h says */
} lathe_picture;

static LATHE_MAYBE int32_t lathe_byte_at(const lathe_file *f, int32_t at)
{
    return at >= 0 && at < f->len ? f->data[at] : 0;
}

static LATHE_MAYBE int32_t lathe_next_byte(lathe_file *f)
{
    if (f->at >= f->len) {
        f->past = 1;
        return 0;
    }
    return f->data[f->at++];
}

/* The lowest byte first; numbers of four bytes have 31 bits. */
static LATHE_MAYBE int32_t lathe_little(const lathe_file *f, int32_t at, int32_t bytes)
{
    uint32_t v = 0;
    while (bytes-- > 0)
        v = v << 8 | (uint32_t)lathe_byte_at(f, at + bytes);
    return (int32_t)(v & 0x7fffffffu);
}

/* The highest byte first. */
static LATHE_MAYBE int32_t lathe_big(const lathe_file *f, int32_t at, int32_t bytes)
{
    uint32_t v = 0;
    int32_t i;
    for (i = 0; i < bytes; i++)
        v = v << 8 | (uint32_t)lathe_byte_at(f, at + i);
    return (int32_t)(v & 0x7fffffffu);
}

#endif
