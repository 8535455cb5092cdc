/* SPDX-License-Identifier: Apache-2.0 */
/* Type relations of the Winograd convolution and of its weights' transform, and the matrices of the forms that are
 * built. F(6x6) is left out: it is worth 5 to 10 % more at 56x56, nothing below, and its error is four times F(4x4)'s.
 */
#include "graph/op/winograd.h"

#define ENOUGH_TILES 3

static const winograd_form forms[] = {
    {2,
     4,
     {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}},
     {{1, 0, 0}, {.5, .5, .5}, {.5, -.5, .5}, {0, 0, 1}},
     {{1, 1, 1, 0}, {0, 1, -1, -1}}},
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
     {{1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}}},
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

static const winograd_form *form_of(compiler *c, const graph_node *n)
{
    const winograd_form *f = winograd_form_of(graph_attr_int(n, "tile_size"));
    if (!f)
        infer_error(c, n, "tile_size is %lld; 2 and 4 are built", (long long)graph_attr_int(n, "tile_size"));
    return f;
}

/* [O, I, 3, 3] -> [ceil(O / block), side * side, I, block] */
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
    dim d[4] = {dim_ceildiv(c, w->shape.dims[0], dim_const(c, block)), dim_const(c, f->side * f->side),
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

/* [N, C/v, H, W, v] with transformed weights [O/v, side * side, C, v] -> [N, O/v, H', W', v] */
bool infer_conv2d_winograd(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0), *w = infer_in(n, 1);
    const winograd_form *f = form_of(c, n);
    int64_t block = 0, blocks = 0, channels = 0;
    if (!f)
        return false;
    if (!dim_is_const(x->shape.dims[4], &block) || !dim_is(w->shape.dims[3], block) ||
        !dim_is(w->shape.dims[1], f->side * f->side))
        return infer_error(c, n, "the weights are not transformed for tile_size %lld and the data's blocks",
                           (long long)f->tile);
    if (!dim_is_const(x->shape.dims[1], &blocks) || !dim_is_const(w->shape.dims[2], &channels) ||
        blocks != channels / block + (channels % block != 0))
        return infer_error(c, n, "data has %lld blocks of %lld channels, weights ask for %lld channels",
                           (long long)blocks, (long long)block, (long long)channels);
    dim d[5] = {x->shape.dims[0], w->shape.dims[0], NULL, NULL, x->shape.dims[4]};
    if (!windows_fit(c, n, x, &d[2]))
        return false;
    out[0] = type_tensor(x->dt, shape_make(c, 5, d));
    return true;
}
