/* SPDX-License-Identifier: Apache-2.0 */
/* Type relation of qnn.conv2d_rows, and what follows from its attributes. */
#include "graph/op/rows.h"

#include <string.h>

#define MOST_PATCH     4  /* steps in two rows of a window: below, a loop over its rows costs more than the products */
#define MOST_CHUNKS    65536
#define PATCH_CHANNELS 16 /* of the result: that many times a patch is read */

static int64_t up_to(int64_t x, int64_t multiple)
{
    return (x + multiple - 1) / multiple * multiple;
}

/* Whole windows where their rows fill vectors badly. */
static void derive_lanes(rows_conv *v)
{
    const nn_window *w = &v->win;
    bool dense = w->dilation[1] == 1;
    int64_t run = (dense ? w->kernel[1] : 1) * v->in, apart = up_to(run, ROWS_LANES) * w->kernel[0],
            together = up_to(run * w->kernel[0], ROWS_LANES);
    v->pixel = v->in;
    v->block = 1;
    v->taps = dense ? 1 : w->kernel[1];
    v->patches = !v->depthwise && dense && w->kernel[0] > 1 && (run < ROWS_LANES || apart * 2 > together * 3);
    v->run = v->patches ? run * w->kernel[0] : run;
    v->line = ((v->out_extent[1] - 1) * w->stride[1] + (w->kernel[1] - 1) * w->dilation[1] + 1) * v->in;
}

/* Whether a line's last tile may be made whole: its own code is saved where the products take at most a tenth more. A
 * tile of three pixels takes 20 instructions for a step, one of two 15, one of one 10. */
static bool last_is_whole(const rows_conv *v)
{
    const int64_t full = v->out_extent[1] / ROWS_TILE, rest = v->out_extent[1] % ROWS_TILE;
    const int64_t as_it_is = 20 * full + 10 + 5 * (rest - 1), more = 20 * (full + 1) - as_it_is;
    return rest > 0 && full > 0 && more * 10 <= as_it_is;
}

#define MOST_OF_BYTE  32768   /* of a number of 9 bits by a weight: a byte less its zero point */
#define MOST_OF_HALF  4194304 /* of a number of 16 bits by a weight */

/* Whether no sum leaves 32 bits: kernels add signed numbers. Other sums of 16 bits are made in chunks that fit, which
 * depends on the weights. */
static bool sums_have_room(const rows_conv *v)
{
    const int64_t most = INT32_MAX / (v->halves ? MOST_OF_HALF : MOST_OF_BYTE), channels = v->depthwise ? 1 : v->in;
    return (v->halves && !v->depthwise) ||
           (v->win.kernel[0] <= most && v->win.kernel[1] <= most / v->win.kernel[0] &&
            channels <= most / (v->win.kernel[0] * v->win.kernel[1]));
}

/* Whether the window fits into the padded input, and all that follows from these numbers has room: no product below is
 * more than images, rows and columns with some strides beside them, and channels make. */
static bool has_room(const rows_conv *v)
{
    const nn_window *w = &v->win;
    int64_t most = v->images > 1 ? v->images : 1, more = 0;
    for (uint32_t i = 0; i < 2; i++) {
        int64_t reach, extent, apart;
        if (!i64_mul(w->kernel[i] - 1, w->dilation[i], &reach) ||
            !i64_add(v->extent[i], w->pad_begin[i], &extent) || !i64_add(extent, w->pad_end[i], &extent) ||
            reach >= extent || !i64_mul(w->stride[i], 2 * ROWS_TILE, &apart) || !i64_add(extent, apart, &extent) ||
            !i64_mul(most, extent, &most))
            return false;
    }
    return sums_have_room(v) && i64_add(v->in, ROWS_LANES * ROWS_GRANULE, &more) && i64_mul(most, more, &most) &&
           i64_mul(most, 2 * ROWS_LANES * ROWS_GRANULE, &most);
}

/* Whether one run holds all rows of a window, whose own runs would be short. */
static bool windows_are_patches(const rows_conv *v)
{
    const nn_window *w = &v->win;
    return !v->depthwise && v->steps * 2 <= MOST_PATCH && w->kernel[0] > 1 && w->dilation[1] == 1 &&
           v->out >= PATCH_CHANNELS;
}

/* Rows of granules, for instructions that multiply a word of numbers at a time. */
static void derive_granules(rows_conv *v)
{
    const nn_window *w = &v->win;
    const bool dense = w->dilation[1] == 1, one_tap = w->kernel[0] == 1 && w->kernel[1] == 1;
    /* One or two channels stay as they are: filling them up would double the products. */
    v->pixel = v->in < 3 && dense ? v->in : up_to(v->in, ROWS_GRANULE);
    v->taps = dense ? 1 : w->kernel[1];
    v->steps = up_to(dense ? w->kernel[1] * v->pixel : v->pixel, ROWS_GRANULE) / ROWS_GRANULE;
    v->patches = windows_are_patches(v);
    if (v->patches)
        v->steps = up_to(w->kernel[0] * w->kernel[1] * v->in, ROWS_GRANULE) / ROWS_GRANULE;
    if (v->chunks > 1)
        v->steps = up_to(v->steps, v->chunks);
    v->whole = v->words && !v->depthwise && !v->patches && last_is_whole(v);
    const int64_t wide = v->whole ? up_to(v->out_extent[1], ROWS_TILE) : v->out_extent[1];
    v->line = ((wide - 1) * w->stride[1] + (v->taps - 1) * w->dilation[1]) * v->pixel +
              v->steps * ROWS_GRANULE;
    v->tiled = v->words && !v->depthwise && v->pixel % ROWS_GRANULE == 0 && one_tap && v->out_extent[1] > 1;
    bool one = v->images * v->out_extent[0] * v->out_extent[1] == 1;
    v->block = one && v->out % 4 == 0 ? 4 : v->out > 1 ? 2 : 1;
}

bool rows_conv_derive(rows_conv *v)
{
    if (!has_room(v))
        return false;
    const nn_window *w = &v->win;
    for (uint32_t i = 0; i < 2; i++)
        v->out_extent[i] =
            (v->extent[i] + w->pad_begin[i] + w->pad_end[i] - (w->kernel[i] - 1) * w->dilation[i] - 1) / w->stride[i] +
            1;
    if (v->lanes)
        derive_lanes(v);
    else
        derive_granules(v);
    return true;
}

bool rows_conv_can_be_direct(const rows_conv *v)
{
    const nn_window *w = &v->win;
    bool one = v->images * v->extent[0] * v->extent[1] * w->kernel[0] * w->kernel[1] == 1;
    for (uint32_t i = 0; i < 2; i++)
        one = one && w->pad_begin[i] == 0 && w->pad_end[i] == 0;
    return one && !v->planar && !v->depthwise && !v->halves && v->in % ROWS_GRANULE == 0;
}

uint32_t rows_conv_weights(const rows_conv *v, int64_t dims[6])
{
    const int64_t blocks = up_to(v->out, v->block) / v->block, rows = v->patches ? 1 : v->win.kernel[0];
    int64_t sums[6] = {blocks, rows, v->taps, v->steps, v->block, ROWS_GRANULE};
    const int64_t channels = v->lanes && v->nibbles ? v->out / 2 : v->out;
    int64_t single[3] = {channels, v->win.kernel[0], v->win.kernel[1]};
    if (v->lanes && !v->depthwise) {
        memcpy(dims, (int64_t[]){channels, v->patches ? 1 : v->win.kernel[0], v->taps, v->run}, 4 * sizeof *dims);
        return 4;
    }
    if (v->nibbles)
        sums[4] = v->block / 2;
    memcpy(dims, v->depthwise ? single : sums, v->depthwise ? sizeof single : sizeof sums);
    return !v->depthwise ? 6 : v->nibbles && !v->lanes ? 2 : 3;
}

dtype rows_conv_weight_type(const rows_conv *v)
{
    if (!v->nibbles || !v->depthwise || v->lanes)
        return DT_I8;
    return v->win.kernel[1] * 2 <= ROWS_NIBBLES ? DT_I16 : DT_I32;
}

bool rows_conv_has_pairs(const rows_conv *v)
{
    return v->lanes ? v->out % 2 == 0 : !v->depthwise && v->out % 2 == 0;
}

int64_t rows_conv_nibble(const rows_conv *v, int64_t e, int64_t c, int64_t *out_half)
{
    *out_half = v->direct ? e % 2 : e / 2;
    return 2 * (v->direct ? e / 2 : e % 2) + c;
}

static bool read_extents(compiler *c, const graph_node *n, rows_conv *v)
{
    const type *x = infer_in(n, 0);
    uint32_t image = v->planar ? 2 : 1;
    bool known = dim_is_const(x->shape.dims[0], &v->images) && dim_is_const(x->shape.dims[v->planar ? 1 : 3], &v->in);
    for (uint32_t i = 0; i < 2; i++)
        known = known && dim_is_const(x->shape.dims[image + i], &v->extent[i]);
    return known || infer_error(c, n, "the extents of the data must be constants");
}

static bool weights_fit(compiler *c, const graph_node *n, const rows_conv *v)
{
    const type *w = infer_in(n, 1);
    int64_t dims[6];
    uint32_t rank = rows_conv_weights(v, dims);
    bool ok = w->shape.rank == (int32_t)rank && w->dt == rows_conv_weight_type(v);
    for (uint32_t i = 0; ok && i < rank; i++)
        ok = dim_is(w->shape.dims[i], dims[i]);
    return ok || infer_error(c, n, "the weights are not packed for this window and these channels");
}

/* What the attributes say. */
static bool read_attributes(compiler *c, const graph_node *n, rows_conv *out)
{
    const char *layout = graph_attr_string(n, "data_layout");
    if (strcmp(layout, "NHWC") != 0 && strcmp(layout, "NCHW") != 0)
        return infer_error(c, n, "data_layout %s is neither NHWC nor NCHW", layout);
    out->planar = strcmp(layout, "NCHW") == 0;
    out->depthwise = graph_attr_int(n, "depthwise") != 0;
    out->direct = graph_attr_int(n, "direct") != 0;
    out->lanes = graph_attr_int(n, "lanes") != 0;
    out->words = graph_attr_int(n, "words") != 0;
    out->nibbles = graph_attr_int(n, "nibbles") != 0;
    out->chunks = graph_attr_int(n, "chunks");
    out->out = graph_attr_int(n, "channels");
    out->halves = dtype_bits(infer_in(n, 0)->dt) == 16;
    if (dtype_bits(infer_in(n, 0)->dt) > 16 || (out->halves && out->lanes))
        return infer_error(c, n, "the data is %s; numbers of 8 bits%s are needed", dtype_name(infer_in(n, 0)->dt),
                           out->lanes ? "" : ", or of 16,");
    if (out->chunks < 1 || out->chunks > MOST_CHUNKS || (out->chunks > 1 && (!out->halves || out->depthwise)))
        return infer_error(c, n, "1 to %d chunks of sums are needed, 1 of bytes and of depthwise ones", MOST_CHUNKS);
    return true;
}

/* Whether weights of 4 bits have an instruction: two channels, or a row of a depthwise window, in a word. */
static bool nibbles_have_form(const rows_conv *v)
{
    return rows_conv_has_pairs(v) || (v->depthwise && !v->lanes && v->win.kernel[1] <= ROWS_NIBBLES);
}

bool rows_conv_read(compiler *c, const graph_node *n, rows_conv *out)
{
    const int64_t *kernel = NULL;
    memset(out, 0, sizeof *out);
    if (graph_attr_ints(n, "kernel", &kernel) != 2 || kernel[0] < 1 || kernel[1] < 1)
        return infer_error(c, n, "kernel must have two extents above 0");
    if (!read_attributes(c, n, out) || !read_extents(c, n, out) || !nn_window_read(c, n, 2, &out->win))
        return false;
    memcpy(out->win.kernel, kernel, 2 * sizeof *kernel);
    if (out->in < 1 || out->out < 1 || (out->depthwise && out->in != out->out))
        return infer_error(c, n, "%lld channels of data do not go with %lld of the result", (long long)out->in,
                           (long long)out->out);
    if (!rows_conv_derive(out))
        return infer_error(c, n, "the window does not fit into the input, or both are too large");
    if (out->direct && (!rows_conv_can_be_direct(out) || n->n_inputs > 2))
        return infer_error(c, n, "direct reads need one pixel, no zero point, and channels in multiples of four");
    if (out->nibbles && !nibbles_have_form(out))
        return infer_error(c, n, "weights of 4 bits are those of an even number of channels, or of a depthwise window "
                                 "of up to %d columns", ROWS_NIBBLES);
    return weights_fit(c, n, out);
}

bool infer_conv2d_rows(compiler *c, const graph_node *n, type *out)
{
    rows_conv v;
    if (!rows_conv_read(c, n, &v))
        return false;
    dim d[4] = {dim_const(c, v.images), dim_const(c, v.out_extent[0]), dim_const(c, v.out_extent[1]),
                dim_const(c, v.out)};
    out[0] = type_tensor(v.chunks > 1 ? DT_I64 : DT_I32, shape_make(c, 4, d));
    return true;
}
