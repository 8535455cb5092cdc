/* SPDX-License-Identifier: Apache-2.0 */
/* Type relations of the Winograd convolution and of its weights' transform, and the matrices of the forms that are
 * built. F(6x6) is left out: it is worth 5 to 10 % more at 56x56, nothing below, and its error is four times F(4x4)'s.
 */
#include "graph/op/winograd.h"

#include <math.h>

#define ENOUGH_TILES 3

static const winograd_form forms[] = {
    {2,
     4,
     {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}},
     {{1, 0, 0}, {.5, .5, .5}, {.5, -.5, .5}, {0, 0, 1}},
     {{1, 1, 1, 0}, {0, 1, -1, -1}},
     {2, 2, 2, 2},
     {1, 1, 1, 1},
     2,
     1},
    {4,
     6,
     {{4, 0, -5, 0, 1, 0},
      {0, -4, -4, 1, 1, 0},
      {0, 4, -4, -1, 1, 0},
      {0, -2, -1, 2, 1, 0},
      {0, 2, -1, -2, 1, 0},
      {0, 4, 0, -5, 0, 1}},
     {{1. / 4, 0, 0},
      {-1. / 6, -1. / 6, -1. / 6},
      {-1. / 6, 1. / 6, -1. / 6},
      {1. / 24, 1. / 12, 1. / 6},
      {1. / 24, -1. / 12, 1. / 6},
      {0, 0, 1}},
     {{1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}},
     {24, 24, 24, 24, 24, 3}, /* 24 in the last row, squared, is too much for 16 bits */
     {1, 1, 1, 1, 1, 8},
     6,           /* 24 * 24 = 9 * 2^6 */
     0x38e38e39}, /* 9 * 0x38e38e39 = 2^33 + 1 */
};

const winograd_form *winograd_form_of(int64_t tile)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (forms[i].tile == tile)
            return &forms[i];
    return NULL;
}

int64_t winograd_least_width(int64_t tiles)
{
    int64_t width = tiles < ENOUGH_TILES ? tiles : ENOUGH_TILES;
    while (width > 0 && tiles % width != 0)
        width++;
    return width;
}

/* --- in integers --- */

bool winograd_integers_fit(const winograd_form *f, const tensor_data *w, dtype dt)
{
    int64_t count = w->rank == 4 ? w->dims[1] * w->dims[2] * w->dims[3] : 0, room = (int64_t)1 << (31 - f->shift);
    for (int64_t at = 0; count > 0 && at + count <= w->count; at += count) {
        int64_t up = 0, down = 0;
        for (int64_t i = at; i < at + count; i++) {
            int64_t x = tensor_get_i64(w, i);
            up += x > 0 ? x : 0;
            down -= x < 0 ? x : 0;
        }
        int64_t high = dtype_max_int(dt), low = -dtype_min_int(dt);
        if (high * up + low * down >= room || high * down + low * up >= room)
            return false;
    }
    return count > 0;
}

/* G without fractions: element [row, k] times over[row]. */
static int64_t factor(const winograd_form *f, int64_t row, int64_t k)
{
    return (int64_t)lround(f->g[row][k] * f->over[row]);
}

/* G g G^T of nine weights, [side, side]. */
static void transform(const winograd_form *f, const int64_t *g, int64_t *out)
{
    int64_t rows[WINOGRAD_MAX_SIDE][WINOGRAD_KERNEL];
    for (int64_t r = 0; r < f->side; r++) {
        const int64_t a = factor(f, r, 0), b = factor(f, r, 1), d = factor(f, r, 2);
        for (int64_t x = 0; x < WINOGRAD_KERNEL; x++)
            rows[r][x] = a * g[x] + b * g[WINOGRAD_KERNEL + x] + d * g[2 * WINOGRAD_KERNEL + x];
    }
    for (int64_t r = 0; r < f->side; r++) {
        const int64_t a = factor(f, r, 0), b = factor(f, r, 1), d = factor(f, r, 2);
        for (int64_t y = 0; y < f->side; y++)
            out[y * f->side + r] = a * rows[y][0] + b * rows[y][1] + d * rows[y][2];
    }
}

const tensor_data *winograd_integer_weights(compiler *c, const winograd_form *f, const tensor_data *w, int64_t block,
                                            int64_t ins)
{
    enum { TAPS = WINOGRAD_KERNEL * WINOGRAD_KERNEL };
    int64_t positions = f->side * f->side, blocks = (w->dims[0] + block - 1) / block;
    int16_t *out = arena_array(&c->mem, int16_t, (size_t)(blocks * positions * ins * block)); /* zeros */
    for (int64_t k = 0; k < w->dims[0] * w->dims[1]; k++) {
        int64_t o = k / w->dims[1], i = k % w->dims[1], g[TAPS], all[WINOGRAD_MAX_SIDE * WINOGRAD_MAX_SIDE];
        for (int64_t t = 0; t < TAPS; t++)
            g[t] = tensor_get_i64(w, k * TAPS + t);
        transform(f, g, all);
        for (int64_t p = 0; p < positions; p++) {
            int64_t line = (p * blocks + o / block) * (ins / 2) + i / 2;
            out[(line * block + o % block) * 2 + i % 2] = (int16_t)all[p];
        }
    }
    return tensor_dense(c, DT_I16, 5, (const int64_t[]){positions, blocks, ins / 2, block, 2}, out);
}

/* --- type relations --- */

static const winograd_form *form_of(compiler *c, const graph_node *n)
{
    const winograd_form *f = winograd_form_of(graph_attr_int(n, "tile_size"));
    if (!f)
        infer_error(c, n, "tile_size is %lld; 2 and 4 are built", (long long)graph_attr_int(n, "tile_size"));
    return f;
}

/* [O, I, 3, 3] -> [side * side, ceil(O / block), I, block] */
bool infer_winograd_weight_transform(compiler *c, const graph_node *n, type *out)
{
    const type *w = infer_in(n, 0);
    const winograd_form *f = form_of(c, n);
    int64_t block = graph_attr_int(n, "block");
    if (!f)
        return false;
    if (!dim_is(w->shape.dims[2], 3) || !dim_is(w->shape.dims[3], 3))
        return infer_error(c, n, "the weights must be 3 x 3");
    if (block < 1 || block > 64)
        return infer_error(c, n, "block is %lld, not 1 to 64", (long long)block);
    dim d[4] = {dim_const(c, f->side * f->side), dim_ceildiv(c, w->shape.dims[0], dim_const(c, block)),
                w->shape.dims[1], dim_const(c, block)};
    out[0] = type_tensor(w->dt, shape_make(c, 4, d));
    return true;
}

static bool windows_fit(compiler *c, const graph_node *n, const type *x, dim *out_extents)
{
    nn_window win;
    if (!nn_window_read(c, n, 2, &win))
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        if (win.stride[i] != 1)
            return infer_error(c, n, "stride %lld; Winograd forms have stride 1", (long long)win.stride[i]);
        int64_t extent = 0, pads = win.pad_begin[i] + win.pad_end[i];
        out_extents[i] = dim_add(c, x->shape.dims[2 + i], dim_const(c, pads - (WINOGRAD_KERNEL - 1)));
        if (!dim_is_const(out_extents[i], &extent))
            return infer_error(c, n, "spatial extents must be constants; fix them with --shape or --dim");
        if (extent < 1)
            return infer_error(c, n, "the window does not fit into the input (output extent %lld)", (long long)extent);
    }
    return true;
}

/* Data in blocks and as many channels as the weights ask for; *out: N, O/v, H', W', v. */
static bool infer_result(compiler *c, const graph_node *n, int64_t block, int64_t channels, dim *out)
{
    const type *x = infer_in(n, 0), *w = infer_in(n, 1);
    int64_t blocks = 0;
    if (!dim_is_const(x->shape.dims[1], &blocks) || blocks != channels / block + (channels % block != 0))
        return infer_error(c, n, "data has %lld blocks of %lld channels, weights ask for %lld channels",
                           (long long)blocks, (long long)block, (long long)channels);
    const dim outer[2] = {x->shape.dims[0], w->shape.dims[1]};
    out[0] = outer[0];
    out[1] = outer[1];
    out[4] = x->shape.dims[4];
    return windows_fit(c, n, x, &out[2]);
}

static bool not_transformed(compiler *c, const graph_node *n, const winograd_form *f)
{
    return infer_error(c, n, "the weights are not transformed for tile_size %lld and the data's blocks",
                       (long long)f->tile);
}

/* The same with weights in integers, [side * side, O/v, C/2, v, 2]; sums are i32. */
bool infer_qnn_conv2d_winograd(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0), *w = infer_in(n, 1);
    const winograd_form *f = form_of(c, n);
    int64_t block = 0, pairs = 0;
    dim d[5];
    if (!f)
        return false;
    if (x->dt != DT_U8 && x->dt != DT_I8)
        return infer_error(c, n, "data is %s, not u8 or i8", dtype_name(x->dt));
    if (!dim_is_const(x->shape.dims[4], &block) || !dim_is(w->shape.dims[3], block) || !dim_is(w->shape.dims[4], 2) ||
        !dim_is(w->shape.dims[0], f->side * f->side) || !dim_is_const(w->shape.dims[2], &pairs))
        return not_transformed(c, n, f);
    if (block % 2 != 0 || pairs * 2 % block != 0)
        return infer_error(c, n, "the weights' input channels are not whole blocks of pairs");
    if (!infer_result(c, n, block, pairs * 2, d))
        return false;
    out[0] = type_tensor(DT_I32, shape_make(c, 5, d));
    return true;
}

/* [N, C/v, H, W, v] with transformed weights [side * side, O/v, C, v] -> [N, O/v, H', W', v] */
bool infer_conv2d_winograd(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0), *w = infer_in(n, 1);
    const winograd_form *f = form_of(c, n);
    int64_t block = 0, channels = 0;
    dim d[5];
    if (!f)
        return false;
    if (!dim_is_const(x->shape.dims[4], &block) || !dim_is(w->shape.dims[3], block) ||
        !dim_is(w->shape.dims[0], f->side * f->side))
        return not_transformed(c, n, f);
    if (!dim_is_const(w->shape.dims[2], &channels) || !infer_result(c, n, block, channels, d))
        return false;
    out[0] = type_tensor(x->dt, shape_make(c, 5, d));
    return true;
}
