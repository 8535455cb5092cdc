/* SPDX-License-Identifier: Apache-2.0 */
/* ImageDecoder's pictures in WebP and JPEG 2000, read by libwebp and OpenJPEG. `lathe run` and `lathe verify` build it
 * with a package where both libraries are installed. For a program of your own, build the package and this file with
 * -DLATHE_IMAGE_HOOK=lathe_pictures and `pkg-config --cflags --libs libwebp libopenjp2`. Both libraries allocate. */
#include <openjpeg.h>
#include <stdint.h>
#include <string.h>
#include <webp/decode.h>

/* A file of JPEG 2000 in memory. */
typedef struct stream {
    const uint8_t *data;
    size_t len, at;
} stream;

static OPJ_SIZE_T read_some(void *to, OPJ_SIZE_T wanted, void *ctx)
{
    stream *s = ctx;
    const size_t left = s->len - s->at, n = wanted < left ? wanted : left;
    if (n == 0)
        return (OPJ_SIZE_T)-1; /* the end */
    memcpy(to, s->data + s->at, n);
    s->at += n;
    return n;
}

static OPJ_OFF_T skip_some(OPJ_OFF_T wanted, void *ctx)
{
    stream *s = ctx;
    const size_t left = s->len - s->at;
    if (wanted < 0)
        return -1;
    const size_t n = (uint64_t)wanted < left ? (size_t)wanted : left;
    s->at += n;
    return (OPJ_OFF_T)n;
}

static OPJ_BOOL seek_to(OPJ_OFF_T place, void *ctx)
{
    stream *s = ctx;
    if (place < 0 || (uint64_t)place > s->len)
        return OPJ_FALSE;
    s->at = (size_t)place;
    return OPJ_TRUE;
}

/* One color that is as large as the picture. */
static int is_whole(const opj_image_comp_t *k, int64_t height, int64_t width)
{
    return k->w == (uint64_t)width && k->h == (uint64_t)height && k->prec >= 1 && k->prec <= 16;
}

/* Red, green and blue, or gray; transparency is left out. */
static int has_size(const opj_image_t *x, int64_t height, int64_t width)
{
    const uint32_t colors = x->numcomps >= 3 ? 3 : 1;
    int ok = x->numcomps >= 1 && x->color_space != OPJ_CLRSPC_SYCC && x->color_space != OPJ_CLRSPC_EYCC &&
             x->color_space != OPJ_CLRSPC_CMYK;
    for (uint32_t i = 0; i < colors && ok; i++)
        ok = is_whole(&x->comps[i], height, width);
    return ok;
}

/* To eight bits, as Pillow does. */
static uint8_t eight_bits(const opj_image_comp_t *k, int64_t at)
{
    const int32_t bits = (int32_t)k->prec, more = bits - 8;
    int32_t v = k->data[at] + (k->sgnd ? (int32_t)1 << (bits - 1) : 0);
    if (more > 0)
        v = (v + ((int32_t)1 << (more - 1))) >> more;
    else if (more < 0)
        v = (int32_t)((uint32_t)v << -more);
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static void write_rows(const opj_image_t *x, uint8_t *rgb, int64_t pixels)
{
    for (int64_t i = 0; i < pixels; i++)
        for (uint32_t k = 0; k < 3; k++)
            rgb[3 * i + k] = eight_bits(&x->comps[x->numcomps >= 3 ? k : 0], i);
}

static int decode_with(opj_codec_t *codec, opj_stream_t *from, uint8_t *rgb, int64_t height, int64_t width)
{
    opj_dparameters_t settings;
    opj_image_t *x = NULL;
    opj_set_default_decoder_parameters(&settings);
    int ok = opj_setup_decoder(codec, &settings) && opj_read_header(from, codec, &x) && x &&
             has_size(x, height, width) && opj_decode(codec, from, x) && opj_end_decompress(codec, from) &&
             has_size(x, height, width);
    for (uint32_t i = 0; ok && i < x->numcomps && i < 3; i++)
        ok = x->comps[i].data != NULL;
    if (ok)
        write_rows(x, rgb, height * width);
    if (x)
        opj_image_destroy(x);
    return ok;
}

static int decode_jpeg2000(const uint8_t *file, int64_t len, uint8_t *rgb, int64_t height, int64_t width)
{
    stream s = {file, (size_t)len, 0};
    /* A file with boxes, or the stream of codes alone. */
    opj_codec_t *codec = opj_create_decompress(file[0] == 0 ? OPJ_CODEC_JP2 : OPJ_CODEC_J2K);
    opj_stream_t *from = opj_stream_default_create(OPJ_TRUE);
    int ok = codec && from;
    if (ok) {
        opj_stream_set_user_data(from, &s, NULL);
        opj_stream_set_user_data_length(from, (OPJ_UINT64)len);
        opj_stream_set_read_function(from, read_some);
        opj_stream_set_skip_function(from, skip_some);
        opj_stream_set_seek_function(from, seek_to);
        ok = decode_with(codec, from, rgb, height, width);
    }
    if (from)
        opj_stream_destroy(from);
    if (codec)
        opj_destroy_codec(codec);
    return ok;
}

static int decode_webp(const uint8_t *file, int64_t len, uint8_t *rgb, int64_t height, int64_t width)
{
    int w = 0, h = 0;
    return WebPGetInfo(file, (size_t)len, &w, &h) && w == width && h == height && width <= INT32_MAX / 3 &&
           WebPDecodeRGBInto(file, (size_t)len, rgb, (size_t)(3 * width * height), (int)(3 * width)) != NULL;
}

/* 0, or 1: this is neither WebP nor JPEG 2000, or not of that size. */
int32_t lathe_pictures(const uint8_t *file, int64_t len, uint8_t *rgb, int64_t height, int64_t width);
int32_t lathe_pictures(const uint8_t *file, int64_t len, uint8_t *rgb, int64_t height, int64_t width)
{
    static const uint8_t boxes[12] = {0, 0, 0, 12, 'j', 'P', ' ', ' ', '\r', '\n', 0x87, '\n'};
    static const uint8_t codes[4] = {0xff, 0x4f, 0xff, 0x51};
    if (len < 12 || height < 1 || width < 1)
        return 1;
    if (memcmp(file, "RIFF", 4) == 0 && memcmp(file + 8, "WEBP", 4) == 0)
        return !decode_webp(file, len, rgb, height, width);
    if (memcmp(file, boxes, sizeof boxes) == 0 || memcmp(file, codes, sizeof codes) == 0)
        return !decode_jpeg2000(file, len, rgb, height, width);
    return 1;
}
