/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: any bytes as the file of a picture, for the decoder that packages and the interpreter have. The first
 * two bytes are height and width. What is behind the memory that the decoder may write shows, and so does what it reads
 * before it writes it: the result must not depend on what the memory held. */
#include "kernel/image/decode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t whole(size_t side)
{
    return (side + 15) / 16 * 16;
}

/* The picture, or NULL: the file is none of that size. */
static uint8_t *decode(const uint8_t *file, size_t size, size_t height, size_t width, int held)
{
    const size_t pixels = height * width * 3, scratch = 4 * whole(height) * whole(width) + height;
    uint8_t *rgb = malloc(pixels), *work = malloc(scratch), *copy = malloc(size + !size);
    if (!rgb || !work || !copy)
        abort();
    memset(rgb, held, pixels);
    memset(work, held, scratch);
    memcpy(copy, file, size); /* of its exact size, so that a read behind it shows */
    const int32_t bad = lathe_decode_image(copy, (int64_t)size, rgb, (int64_t)height, (int64_t)width, work);
    free(work);
    free(copy);
    if (!bad)
        return rgb;
    free(rgb);
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const size_t height = data[0] % 64 + 1u, width = data[1] % 64 + 1u;
    uint8_t *zeros = decode(data + 2, size - 2, height, width, 0);
    uint8_t *ones = decode(data + 2, size - 2, height, width, 255);
    if (!zeros != !ones || (zeros && memcmp(zeros, ones, height * width * 3) != 0)) {
        fprintf(stderr, "a picture depends on what the memory held\n");
        abort();
    }
    free(zeros);
    free(ones);
    return 0;
}
