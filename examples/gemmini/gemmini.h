/* SPDX-License-Identifier: Apache-2.0 */
/* What generated code calls: Gemmini's instructions, and layers made of them. On RISC-V they are instructions of the
 * accelerator (custom-3, as the README of ucb-bar/gemmini has them under "ISA"); elsewhere, or with -DGEMMINI_MODEL,
 * calls of its model (device.h, host.c). A layer sends config once, loads the next tile before it computes the one at
 * hand, in the other half of the memories, and ends with a fence: what the next layer loads has arrived. */
#ifndef GEMMINI_H
#define GEMMINI_H
#include <stdint.h>
#include <string.h>

#if defined(__riscv) && !defined(GEMMINI_MODEL)
#define GEMMINI(funct, rs1, rs2)                                                                             \
    __asm__ volatile(".insn r 0x7b, 3, " #funct ", x0, %0, %1" : : "r"((uint64_t)(rs1)), "r"((uint64_t)(rs2)) \
                     : "memory")
static inline int32_t gemmini_fence_all(void)
{
    __asm__ volatile("fence" : : : "memory");
    return 0;
}
#else
#define GEMMINI(funct, rs1, rs2) gemmini_issue(funct, (uint64_t)(rs1), (uint64_t)(rs2))
void gemmini_issue(uint32_t funct, uint64_t rs1, uint64_t rs2);
int32_t gemmini_fence_all(void); /* 0, or another number after a fault */
#endif

#define GEMMINI_HALF 8192 /* rows of the scratchpad, in two banks: one for data, one for weights */
#define GEMMINI_BANK 4096
#define GEMMINI_ONE 0x3F800000u /* 1.0F */
#define GEMMINI_NOTHING 0xFFFFFFFFu
#define GEMMINI_SUM 0x80000000u
#define GEMMINI_ADD 0x40000000u
#define GEMMINI_WIDE 0x20000000u

static inline int32_t gemmini_min(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static inline uint64_t gemmini_at(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

static inline uint64_t gemmini_place(uint32_t row, int32_t columns, int32_t rows)
{
    return row | (uint64_t)columns << 32 | (uint64_t)rows << 48;
}

static inline void gemmini_load_unit(uint32_t unit, int32_t stride, int32_t block_stride, int32_t repeats)
{
    GEMMINI(0, (uint64_t)GEMMINI_ONE << 32 | (uint64_t)block_stride << 16 | (uint64_t)repeats << 8 | unit << 3 | 1,
            stride);
}

/* A convolution of images NHWC by weights HWIO, or a product: an image of one row by a kernel of 1 x 1. */
typedef struct gemmini_conv {
    int32_t images, height, width, channels, out_height, out_width, outs;
    int32_t kernel_height, kernel_width, stride, dilation, top, left;
    int32_t repeats;  /* pixels side by side in a row of the scratchpad: few channels fill more of it */
    int32_t separate; /* each channel by itself (depthwise); the weights are what gemmini_diagonal makes */
    int32_t relu, wide; /* wide: the result is the int32 sums */
    const int8_t *second; /* of a sum: the second line of the image, which lies elsewhere; else NULL */
    float scale;
    /* the tile: of the result, and input channels in blocks of 16 */
    int32_t tile_height, tile_width, tile_outs, tile_blocks;
} gemmini_conv;

#define GEMMINI_MOST_K 256    /* of a step: weights of 16 rows each in a bank */
#define GEMMINI_MOST_PIECES 32 /* of a tile: sums of 16 rows each in a bank of 512 */

/* Up to 16 rows of weights: a tap and 16 of its input channels, or all channels of neighboring taps. */
typedef struct gemmini_k {
    int32_t line, column, rows; /* of the first tap, in the tile's image; rows of the weights */
    int32_t block;              /* of input channels, from the first one of the step on */
    int64_t weights;            /* row of the weights in memory */
} gemmini_k;

/* Up to 16 pixels of a line of the result, at (y, x) of the tile. */
typedef struct gemmini_piece {
    int32_t y, x, rows;
} gemmini_piece;

/* A step: a tile of the result, and a range of input channels that are added to it. */
typedef struct gemmini_start {
    int32_t image, out, y, x, block;
    uint32_t number, tile, since; /* of the step, of the tile; steps since the weights were others */
} gemmini_start;

typedef struct gemmini_step {
    gemmini_start at;
    int32_t outs, blocks, n_k, n_pieces;
    gemmini_k k[GEMMINI_MOST_K];
    gemmini_piece pieces[GEMMINI_MOST_PIECES];
} gemmini_step;

/* Input pixels from the first that `pixels` of the result read to the last. */
static inline int32_t gemmini_span(const gemmini_conv *l, int32_t pixels, int32_t taps)
{
    return (pixels - 1) * l->stride + (taps - 1) * l->dilation + 1;
}

/* Rows of the scratchpad that a line of a tile's image takes, and all of its lines. */
static inline int32_t gemmini_line(const gemmini_conv *l)
{
    return gemmini_span(l, l->tile_width, l->kernel_width);
}

static inline int32_t gemmini_area(const gemmini_conv *l)
{
    return gemmini_span(l, l->tile_height, l->kernel_height) * gemmini_line(l);
}

static inline int32_t gemmini_all_blocks(const gemmini_conv *l)
{
    return l->separate ? 1 : (l->channels + 15) / 16;
}

/* The lists of a step from where it begins. */
static inline void gemmini_plan(const gemmini_conv *l, gemmini_step *s)
{
    const int32_t depth = l->separate ? 16 : l->channels; /* rows of weights of a tap */
    int32_t y, x, b;
    s->outs = gemmini_min(l->tile_outs, l->outs - s->at.out);
    s->blocks = gemmini_min(l->tile_blocks, gemmini_all_blocks(l) - s->at.block);
    s->n_k = s->n_pieces = 0;
    for (y = 0; y < l->kernel_height; y++)
        for (x = 0; x < l->kernel_width; x += l->repeats)
            for (b = 0; b < s->blocks; b++) {
                gemmini_k *k = &s->k[s->n_k++];
                k->line = y * l->dilation;
                k->column = x * l->dilation;
                k->block = b;
                k->rows = l->repeats > 1 ? gemmini_min(l->repeats, l->kernel_width - x) * depth
                                         : gemmini_min(16, depth - (s->at.block + b) * 16);
                k->weights = (int64_t)(y * l->kernel_width + x) * depth + (s->at.block + b) * 16;
            }
    for (y = 0; y < gemmini_min(l->tile_height, l->out_height - s->at.y); y++)
        for (x = 0; x < gemmini_min(l->tile_width, l->out_width - s->at.x); x += 16) {
            gemmini_piece *p = &s->pieces[s->n_pieces++];
            p->y = y;
            p->x = x;
            p->rows = gemmini_min(16, gemmini_min(l->tile_width, l->out_width - s->at.x) - x);
        }
}

/* --- places in local memory: steps use its halves in turns, tiles the banks of the sums --- */

static inline uint32_t gemmini_data(const gemmini_conv *l, const gemmini_step *s)
{
    return (s->at.number & 1) * GEMMINI_HALF + (uint32_t)l->repeats - 1; /* repeated pixels go to rows above */
}

/* 16 channels from j * 16 on: of the weights of entry k, of the sums of piece p. */
static inline uint32_t gemmini_weights(const gemmini_step *s, int32_t k, int32_t j)
{
    return (s->at.number & 1) * GEMMINI_HALF + GEMMINI_BANK + (uint32_t)((k * ((s->outs + 15) / 16) + j) * 16);
}

static inline uint32_t gemmini_sums(const gemmini_step *s, int32_t p, int32_t j)
{
    return GEMMINI_SUM | ((s->at.tile & 1) * 512 + (uint32_t)((p * ((s->outs + 15) / 16) + j) * 16));
}

/* --- loads --- */

/* Pixels first to last - 1 of a line, zeros where `from` is NULL; up to 64 channels. */
static inline void gemmini_load_pixels(const int8_t *from, int32_t step, uint32_t row, int32_t first, int32_t last,
                                       int32_t columns)
{
    for (; first < last; first += 16)
        GEMMINI(2, from ? gemmini_at(from) + (uint64_t)((int64_t)first * step) : 0,
                gemmini_place(row + (uint32_t)first, columns, gemmini_min(16, last - first)));
}

/* Line `line` of the image, which it may leave, from channel `channel` on. */
static inline void gemmini_load_line(const gemmini_conv *l, const gemmini_step *s, const int8_t *x, int32_t line,
                                     uint32_t row, int32_t channel, int32_t columns)
{
    const int32_t begin = s->at.x * l->stride - l->left;
    const int32_t n = gemmini_span(l, gemmini_min(l->tile_width, l->out_width - s->at.x), l->kernel_width);
    const int64_t pixel = ((int64_t)s->at.image * l->height + (l->second ? 0 : line)) * l->width + begin;
    int32_t first = begin < 0 ? gemmini_min(-begin, n) : 0, last = gemmini_min(n, l->width - begin);
    if (line < 0 || line >= l->height || last < first)
        first = last = n;
    if (line == 1 && l->second)
        x = l->second;
    gemmini_load_pixels(NULL, 0, row, 0, first, columns);
    if (first < last)
        gemmini_load_pixels(x + (pixel * l->channels + channel), l->channels, row, first, last, columns);
    gemmini_load_pixels(NULL, 0, row, last, n, columns);
}

static inline void gemmini_load_data(const gemmini_conv *l, const gemmini_step *s, const int8_t *x)
{
    const int32_t lines = gemmini_span(l, gemmini_min(l->tile_height, l->out_height - s->at.y), l->kernel_height);
    const int32_t from = l->separate ? s->at.out : s->at.block * 16, area = gemmini_area(l);
    const int32_t channels = l->separate ? s->outs : gemmini_min(s->blocks * 16, l->channels - from);
    int32_t c, i;
    for (c = 0; c < channels; c += 64)
        for (i = 0; i < lines; i++)
            if (i % l->stride <= (l->kernel_height - 1) * l->dilation) /* a tap reads it */
                gemmini_load_line(l, s, x, s->at.y * l->stride - l->top + i,
                                  gemmini_data(l, s) + (uint32_t)(c / 16 * area + i * gemmini_line(l)), from + c,
                                  gemmini_min(64, channels - c));
}

static inline void gemmini_load_step(const gemmini_conv *l, const gemmini_step *s, const int8_t *x, const int8_t *w,
                                const int32_t *bias)
{
    int32_t i, j;
    for (i = 0; s->at.block == 0 && bias && i < s->n_pieces; i++)
        for (j = 0; j < s->outs; j += 16)
            GEMMINI(14, gemmini_at(bias + s->at.out + j),
                    gemmini_place(gemmini_sums(s, i, j / 16), gemmini_min(16, s->outs - j), s->pieces[i].rows));
    /* Each half keeps its weights while they are the same. */
    for (i = 0; (s->at.since < 2 || l->tile_blocks < gemmini_all_blocks(l)) && i < s->n_k; i++)
        GEMMINI(1, gemmini_at(w + s->k[i].weights * l->outs + s->at.out),
                gemmini_place(gemmini_weights(s, i, 0), s->outs, s->k[i].rows));
    gemmini_load_data(l, s, x);
}

/* --- computes and stores --- */

/* Entry number i along K, output channels from j * 16 on: the weights stay in the array for all pieces. */
static inline void gemmini_compute(const gemmini_conv *l, const gemmini_step *s, int32_t i, int32_t j, int adds)
{
    const gemmini_k *k = &s->k[i];
    const int32_t columns = gemmini_min(16, s->outs - j * 16), line = gemmini_line(l);
    const int32_t depth = l->separate ? columns : k->rows;
    const uint64_t nothing = gemmini_place(GEMMINI_NOTHING, 16, 16);
    const uint32_t image = gemmini_data(l, s) + (uint32_t)((l->separate ? j : k->block) * gemmini_area(l));
    int32_t p;
    for (p = 0; p < s->n_pieces; p++) {
        const gemmini_piece *t = &s->pieces[p];
        const uint32_t row = image + (uint32_t)((t->y * l->stride + k->line) * line + t->x * l->stride + k->column);
        GEMMINI(6, p ? nothing : gemmini_place(gemmini_weights(s, i, j), columns, depth),
                gemmini_place(gemmini_sums(s, p, j) | (adds ? GEMMINI_ADD : 0), columns, t->rows));
        if (p)
            GEMMINI(5, gemmini_place(row, depth, t->rows), nothing);
        else
            GEMMINI(4, gemmini_place(row, depth, t->rows), nothing);
    }
}

static inline void gemmini_store_tile(const gemmini_conv *l, const gemmini_step *s, void *y)
{
    const int32_t size = l->wide ? 4 : 1, most = l->wide ? 16 : 64;
    int32_t i, j;
    for (i = 0; i < s->n_pieces; i++)
        for (j = 0; j < s->outs; j += most) {
            const gemmini_piece *p = &s->pieces[i];
            const int64_t line = (int64_t)s->at.image * l->out_height + s->at.y + p->y;
            const int64_t element = (line * l->out_width + s->at.x + p->x) * l->outs + s->at.out + j;
            GEMMINI(3, gemmini_at((int8_t *)y + element * size),
                    gemmini_place(gemmini_sums(s, i, j / 16) | (l->wide ? GEMMINI_WIDE : 0),
                                  gemmini_min(most, s->outs - j), p->rows));
        }
}

static inline void gemmini_set_up(const gemmini_conv *l)
{
    uint32_t scale;
    memcpy(&scale, &l->scale, 4);
    (void)gemmini_fence_all(); /* the processor may just have written the data */
    GEMMINI(0, (uint64_t)GEMMINI_ONE << 32 | (uint64_t)l->stride << 16 | 4, (uint64_t)1 << 48);
    gemmini_load_unit(0, l->channels, gemmini_area(l), l->repeats);
    gemmini_load_unit(1, l->outs, 16, 1);
    gemmini_load_unit(2, 0, 16, 1);
    GEMMINI(0, (l->relu ? 4 : 0) | 2, (uint64_t)scale << 32 | (uint32_t)(l->outs * (l->wide ? 4 : 1)));
}

/* What is loaded is computed, and stored where it was the last step of its tile. */
static inline void gemmini_end_step(const gemmini_conv *l, const gemmini_step *s, int has_bias, void *y)
{
    int32_t i, j;
    for (j = 0; j * 16 < s->outs; j++)
        for (i = 0; i < s->n_k; i++)
            gemmini_compute(l, s, i, j, has_bias || s->at.block || i);
    if (s->at.block + s->blocks == gemmini_all_blocks(l))
        gemmini_store_tile(l, s, y);
}

/* x: NHWC; w: HWIO, or of gemmini_diagonal; bias: may be NULL; y: NHWC, int32 where it is wide. A step is loaded before
 * the one in front of it is computed. */
static inline int32_t gemmini_run_conv(const gemmini_conv *l, const int8_t *x, const int8_t *w, const int32_t *bias,
                                       void *y)
{
    gemmini_start at = {0, 0, 0, 0, 0, 0, 0, 0};
    gemmini_step steps[2], *s = steps;
    gemmini_set_up(l);
    for (at.out = 0; at.out < l->outs; at.out += l->tile_outs)
        for (at.image = 0, at.since = 0; at.image < l->images; at.image++)
            for (at.y = 0; at.y < l->out_height; at.y += l->tile_height)
                for (at.x = 0; at.x < l->out_width; at.x += l->tile_width, at.tile++)
                    for (at.block = 0; at.block < gemmini_all_blocks(l); at.block += l->tile_blocks) {
                        s = &steps[at.number & 1];
                        s->at = at;
                        gemmini_plan(l, s);
                        gemmini_load_step(l, s, x, w, bias);
                        if (at.number++)
                            gemmini_end_step(l, &steps[at.number & 1], bias != NULL, y);
                        at.since++;
                    }
    gemmini_end_step(l, s, bias != NULL, y);
    return gemmini_fence_all();
}

/* The weights of channels that are separate, HW1O, as diagonal tiles: [taps][16][channels]. */
static inline const int8_t *gemmini_diagonal(int8_t *to, const int8_t *w, int32_t taps, int32_t channels)
{
    int32_t t, c;
    memset(to, 0, (size_t)taps * 16 * (size_t)channels);
    for (t = 0; t < taps; t++)
        for (c = 0; c < channels; c++)
            to[(t * 16 + c % 16) * channels + c] = w[t * channels + c];
    return to;
}

/* The largest number of each window, NHWC; what lies outside of the image counts as 0. `lines` of the result are made
 * at a time. */
typedef struct gemmini_pool {
    int32_t images, height, width, channels, out_height, out_width, size, stride, top, left, lines;
} gemmini_pool;

static inline void gemmini_pool_tile(const gemmini_pool *l, const int8_t *x, int8_t *y, int32_t line, int32_t channel,
                                     uint32_t base)
{
    const int32_t lines = gemmini_min(l->lines, l->out_height - line), begin = line * l->stride - l->top;
    const int32_t first = begin < 0 ? 0 : begin, together = gemmini_min(64, l->channels - channel);
    const int32_t rows = gemmini_min(begin + (lines - 1) * l->stride + l->size, l->height) - first;
    int32_t i, j;
    for (i = 0; i < rows; i++)
        gemmini_load_pixels(x + (int64_t)(first + i) * l->width * l->channels + channel, l->channels,
                            base + (uint32_t)(i * l->width), 0, l->width, together);
    GEMMINI(0, (uint64_t)l->width << 56 | (uint64_t)rows << 48 | (uint64_t)l->out_width << 40 | (uint64_t)lines << 32 |
                   (uint64_t)l->out_width << 24 | (uint64_t)l->left << 10 | (uint64_t)(first - begin) << 8 |
                   (uint64_t)l->size << 6 | (uint64_t)l->stride << 4 | 2,
            (uint64_t)GEMMINI_ONE << 32 | (uint32_t)l->channels);
    for (j = 0; j < together; j += 16)
        GEMMINI(3, gemmini_at(y + (int64_t)line * l->out_width * l->channels + channel + j),
                gemmini_place(base + (uint32_t)(j / 16 * l->width * ((l->lines - 1) * l->stride + l->size)),
                              gemmini_min(16, together - j), 1));
}

static inline int32_t gemmini_run_pool(const gemmini_pool *l, const int8_t *x, int8_t *y)
{
    uint32_t number = 0;
    int32_t n, channel, line;
    (void)gemmini_fence_all();
    gemmini_load_unit(0, l->channels, l->width * ((l->lines - 1) * l->stride + l->size), 1);
    for (n = 0; n < l->images; n++)
        for (channel = 0; channel < l->channels; channel += 64)
            for (line = 0; line < l->out_height; line += l->lines, number++)
                gemmini_pool_tile(l, x + (int64_t)n * l->height * l->width * l->channels,
                                  y + (int64_t)n * l->out_height * l->out_width * l->channels, line, channel,
                                  (number & 1) * GEMMINI_HALF);
    return gemmini_fence_all();
}

/* Of each of n matrices the transposed one: images from NCHW to NHWC and back, at the border of a region. */
static inline void gemmini_turn(int8_t *to, const int8_t *from, int32_t n, int32_t rows, int32_t columns)
{
    int32_t i, j;
    for (; n > 0; n--, from += rows * columns, to += rows * columns)
        for (i = 0; i < rows; i++)
            for (j = 0; j < columns; j++)
                to[j * rows + i] = from[i * columns + j];
}
#endif
