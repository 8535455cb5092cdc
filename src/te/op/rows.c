/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definition of qnn.conv2d_rows: the rows under a line of results as 16-bit numbers from which the zero point
 * is taken, so that the border is 0, and sums of products along them. Data of 16 bits has no room for that: there the
 * zero point stays, and stands in the border. */
#include "te/op/rows.h"

#include "te/op/util.h"

typedef struct rows_ctx {
    rows_conv v;
    const te_tensor *x, *w, *rows, *parts;
    tir_expr_ref zero;
    te_axis *reduce[5], *chunk;
} rows_ctx;

/* A number of 16 bits as i16: u16 less 32768. */
static tir_expr_ref as_half(te_graph *g, tir_expr_ref x)
{
    compiler *c = g->c;
    if (x->type.dt == DT_I16)
        return x;
    return tir_cast(c, DT_I16, tir_sub(c, tir_cast(c, DT_I32, x), tir_int(c, DT_I32, 32768)));
}

/* x at that row, column and channel, less the zero point; 0 where there is nothing. */
static tir_expr_ref centred_at(te_graph *g, const rows_ctx *k, tir_expr_ref image, tir_expr_ref row,
                               tir_expr_ref column, tir_expr_ref channel)
{
    compiler *c = g->c;
    const rows_conv *v = &k->v;
    const nn_window *w = &v->win;
    int64_t columns = v->extent[1] + w->pad_begin[1], reached = (v->line + v->pixel - 1) / v->pixel;
    tir_expr_ref inside = NULL, idx[4] = {image, row, column, channel}, planar[4] = {image, channel, row, column};
    if (w->pad_begin[0] || w->pad_end[0])
        inside = te_in_bounds(g, row, te_i64(g, v->extent[0]));
    if (w->pad_begin[1] || w->pad_end[1] || (!v->depthwise && !v->patches && reached > columns))
        inside = tir_and(c, inside, te_in_bounds(g, column, te_i64(g, v->extent[1])));
    if (!v->depthwise && !v->patches && (v->pixel != v->in || (v->tiled && v->steps * ROWS_GRANULE != v->in)))
        inside = tir_and(c, inside, tir_binary(c, TIR_LT, channel, te_i64(g, v->in)));
    tir_expr_ref x = te_read(g, k->x, v->planar ? planar : idx);
    x = v->halves ? as_half(g, x) : te_centred(g, DT_I16, x, k->zero);
    return inside ? tir_select(c, inside, x, v->halves ? k->zero : tir_const(c, DT_I16, 0)) : x;
}

static tir_expr_ref less(te_graph *g, tir_expr_ref e, int64_t n)
{
    return tir_sub(g->c, e, te_i64(g, n));
}

/* Element l of a row is channel l % pixel of column l / pixel. */
static tir_expr_ref line_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const rows_ctx *k = ctx;
    compiler *c = g->c;
    const nn_window *w = &k->v.win;
    tir_expr_ref pixel = te_i64(g, k->v.pixel), column = tir_floordiv(c, idx[2], pixel);
    return centred_at(g, k, idx[0], less(g, idx[1], w->pad_begin[0]), less(g, column, w->pad_begin[1]),
                      tir_floormod(c, idx[2], pixel));
}

/* The rows of a depthwise convolution stand channel after channel: neighbors are those of one channel. */
static tir_expr_ref plane_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const rows_ctx *k = ctx;
    const nn_window *w = &k->v.win;
    return centred_at(g, k, idx[0], less(g, idx[1], w->pad_begin[0]), less(g, idx[3], w->pad_begin[1]), idx[2]);
}

/* Element e of a patch: row, column and channel of the window as digits. */
static tir_expr_ref patch_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const rows_ctx *k = ctx;
    compiler *c = g->c;
    const rows_conv *v = &k->v;
    const nn_window *w = &v->win;
    tir_expr_ref in = te_i64(g, v->in), run = te_i64(g, w->kernel[1] * v->in), e = idx[3];
    tir_expr_ref tap[2] = {tir_floordiv(c, e, run), tir_floordiv(c, tir_floormod(c, e, run), in)}, at[2];
    for (uint32_t i = 0; i < 2; i++) {
        tir_expr_ref first = less(g, tir_mul(c, idx[1 + i], te_i64(g, w->stride[i])), w->pad_begin[i]);
        at[i] = tir_add(c, first, tir_mul(c, tap[i], te_i64(g, w->dilation[i])));
    }
    tir_expr_ref x = centred_at(g, k, idx[0], at[0], at[1], tir_floormod(c, e, in));
    int64_t used = w->kernel[0] * w->kernel[1] * v->in;
    if (used == v->steps * ROWS_GRANULE)
        return x;
    return tir_select(c, tir_binary(c, TIR_LT, e, te_i64(g, used)), x, tir_const(c, DT_I16, 0));
}

/* Element e of a step of a pixel: those of neighboring pixels stand side by side. */
static tir_expr_ref tile_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const rows_ctx *k = ctx;
    compiler *c = g->c;
    const nn_window *w = &k->v.win;
    tir_expr_ref at[2];
    for (uint32_t i = 0; i < 2; i++)
        at[i] = less(g, tir_mul(c, idx[i ? 3 : 1], te_i64(g, w->stride[i])), w->pad_begin[i]);
    return centred_at(g, k, idx[0], at[0], at[1],
                      tir_add(c, tir_mul(c, idx[2], te_i64(g, ROWS_GRANULE)), idx[4]));
}

static tir_expr_ref product(te_graph *g, tir_expr_ref a, tir_expr_ref b)
{
    return tir_mul(g->c, tir_cast(g->c, DT_I32, a), tir_cast(g->c, DT_I32, b));
}

/* Where the window reads on axis i. */
static tir_expr_ref swept(te_graph *g, const rows_ctx *k, tir_expr_ref at, te_axis *tap, uint32_t i)
{
    const nn_window *w = &k->v.win;
    return tir_add(g->c, tir_mul(g->c, at, te_i64(g, w->stride[i])),
                   tir_mul(g->c, te_var(g, tap), te_i64(g, w->dilation[i])));
}

static tir_expr_ref depthwise_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const rows_ctx *k = ctx;
    tir_expr_ref x[4] = {idx[0], swept(g, k, idx[1], k->reduce[0], 0), idx[3], swept(g, k, idx[2], k->reduce[1], 1)},
                 w[3] = {idx[3], te_var(g, k->reduce[0]), te_var(g, k->reduce[1])};
    if (!k->v.nibbles)
        return product(g, te_read(g, k->rows, x), te_read(g, k->w, w));
    compiler *c = g->c;
    tir_expr_ref down = tir_cast(c, DT_I32, tir_mul(c, w[2], te_i64(g, 4))), top = tir_int(c, DT_I32, 28);
    tir_expr_ref row = tir_binary(c, TIR_SHR, tir_cast(c, DT_I32, te_read(g, k->w, w)), down);
    return product(g, te_read(g, k->rows, x), tir_binary(c, TIR_SHR, tir_binary(c, TIR_SHL, row, top), top));
}

/* A weight of 4 bits for element 2 * pair + half of a step: graph/op/rows.h says where it stands. */
static tir_expr_ref nibble(te_graph *g, const rows_ctx *k, tir_expr_ref channel, tir_expr_ref pair, tir_expr_ref half)
{
    compiler *c = g->c;
    tir_expr_ref two = te_i64(g, 2), block = te_i64(g, k->v.block), in_block = tir_floormod(c, channel, block);
    tir_expr_ref place = tir_mul(c, k->v.direct ? pair : half, two), low = k->v.direct ? half : pair;
    tir_expr_ref w[6] = {tir_floordiv(c, channel, block), te_var(g, k->reduce[0]), te_var(g, k->reduce[1]),
                         te_var(g, k->reduce[2]), tir_floordiv(c, in_block, two),
                         tir_add(c, place, tir_floormod(c, channel, two))};
    tir_expr_ref up = tir_cast(c, DT_I32, tir_mul(c, low, te_i64(g, 4)));
    tir_expr_ref x = tir_binary(c, TIR_SHL, tir_cast(c, DT_I32, te_read(g, k->w, w)), up);
    return tir_binary(c, TIR_SHR, tir_cast(c, DT_I32, tir_cast(c, DT_I8, x)), tir_int(c, DT_I32, 4));
}

/* Element 2 * pair + half of a step lies at half * 2 + pair of the weights. Of sums in chunks the last index is that of
 * the chunk. */
static tir_expr_ref sums_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const rows_ctx *k = ctx;
    compiler *c = g->c;
    tir_expr_ref step = te_var(g, k->reduce[2]), pair = te_var(g, k->reduce[3]), half = te_var(g, k->reduce[4]),
                 two = te_i64(g, 2), block = te_i64(g, k->v.block);
    if (k->v.chunks > 1)
        step = tir_add(c, tir_mul(c, idx[4], te_i64(g, k->v.steps / k->v.chunks)), step);
    tir_expr_ref column = tir_mul(c, swept(g, k, idx[2], k->reduce[1], 1), te_i64(g, k->v.pixel));
    tir_expr_ref in_step = tir_add(c, tir_mul(c, pair, two), half);
    column = tir_add(c, column, tir_add(c, tir_mul(c, step, te_i64(g, ROWS_GRANULE)), in_step));
    tir_expr_ref x[3] = {idx[0], swept(g, k, idx[1], k->reduce[0], 0), column};
    tir_expr_ref patch[4] = {idx[0], idx[1], idx[2], tir_add(c, tir_mul(c, step, te_i64(g, ROWS_GRANULE)), in_step)};
    tir_expr_ref w[6] = {tir_floordiv(c, idx[3], block), te_var(g, k->reduce[0]), te_var(g, k->reduce[1]), step,
                         tir_floormod(c, idx[3], block), tir_add(c, tir_mul(c, half, two), pair)};
    tir_expr_ref pixel[4] = {idx[0], idx[1], idx[2], patch[3]}, tiled[5] = {idx[0], idx[1], step, idx[2], in_step};
    if (k->v.direct)
        w[5] = in_step;
    const te_tensor *data = k->v.direct ? k->x : k->rows;
    tir_expr_ref const *at = k->v.direct ? pixel : k->v.tiled ? tiled : k->v.patches ? patch : x;
    return product(g, te_read(g, data, at), k->v.nibbles ? nibble(g, k, idx[3], pair, half) : te_read(g, k->w, w));
}

static tir_expr_ref chunks_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const rows_ctx *k = ctx;
    tir_expr_ref at[5] = {idx[0], idx[1], idx[2], idx[3], te_var(g, k->chunk)};
    return tir_cast(g->c, DT_I64, te_read(g, k->parts, at));
}

/* The buffer of a whole convolution; its rule says how much of it there is at a time. */
static te_tensor *rows_of(te_graph *g, rows_ctx *k)
{
    const rows_conv *v = &k->v;
    const nn_window *w = &v->win;
    int64_t reach[2];
    for (uint32_t i = 0; i < 2; i++)
        reach[i] = (v->out_extent[i] - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1;
    int64_t planes[4] = {v->images, reach[0], v->in, reach[1]}, lines[4] = {v->images, reach[0], v->line},
            patches[4] = {v->images, v->out_extent[0], v->out_extent[1], v->steps * ROWS_GRANULE};
    int64_t wide = v->whole ? (v->out_extent[1] + ROWS_TILE - 1) / ROWS_TILE * ROWS_TILE : v->out_extent[1];
    int64_t tiles[5] = {v->images, v->out_extent[0], v->steps, wide, ROWS_GRANULE};
    const int64_t *dims = v->depthwise ? planes : v->tiled ? tiles : v->patches ? patches : lines;
    uint32_t rank = v->tiled ? 5 : v->depthwise || v->patches ? 4 : 3;
    tir_expr_ref extents[5];
    for (uint32_t i = 0; i < rank; i++)
        extents[i] = te_i64(g, dims[i]);
    te_body_fn body = v->depthwise ? plane_body : v->tiled ? tile_body : v->patches ? patch_body : line_body;
    te_tensor *rows = te_compute(g, "rows", DT_I16, rank, extents, body, k);
    rows->node->tag = "pad";
    return rows;
}

bool compute_conv2d_rows(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    rows_ctx k = {.x = in[0], .w = in[1], .zero = n->n_inputs > 2 ? te_read_one(g, in[2]) : NULL};
    static const char *const names[] = {"kh", "kw", "step", "pair", "half"};
    if (!rows_conv_read(g->c, n, &k.v))
        return false;
    const rows_conv *v = &k.v;
    const nn_window *w = &v->win;
    te_count_macs(g, 7, (int64_t[]){v->images, v->out, v->out_extent[0], v->out_extent[1], w->kernel[0], w->kernel[1],
                                    v->depthwise ? 1 : v->in});
    if (v->lanes)
        return compute_conv2d_lanes(g, n, v, in, out);
    if (v->halves)
        k.zero = as_half(g, k.zero ? k.zero : tir_const(g->c, in[0]->dt, 0));
    int64_t counts[5] = {v->patches ? 1 : w->kernel[0], v->depthwise ? w->kernel[1] : v->taps, v->steps / v->chunks,
                         2, 2};
    uint32_t axes = v->depthwise ? 2 : 5;
    for (uint32_t i = 0; i < axes; i++)
        k.reduce[i] = te_reduce_axis(g, names[i], te_i64(g, counts[i]));
    k.rows = v->direct ? NULL : rows_of(g, &k);
    tir_expr_ref const *dims = te_shape(g, te_out_type(n, 0));
    te_body_fn body = v->depthwise ? depthwise_body : sums_body;
    if (v->chunks > 1) {
        tir_expr_ref extents[5] = {dims[0], dims[1], dims[2], dims[3], te_i64(g, v->chunks)};
        te_tensor *parts = te_reduce(g, "parts", DT_I32, 5, extents, axes, k.reduce, TE_SUM, body, &k);
        parts->node->tag = ROWS_CHUNKS;
        k.parts = parts;
        k.chunk = te_reduce_axis(g, "chunk", te_i64(g, v->chunks));
        out[0] = te_reduce(g, "conv", DT_I64, 4, dims, 1, &k.chunk, TE_SUM, chunks_body, &k);
        out[0]->node->tag = n->op->name;
        return true;
    }
    out[0] = te_reduce(g, "conv", DT_I32, 4, dims, axes, k.reduce, TE_SUM, body, &k);
    out[0]->node->tag = n->op->name;
    return true;
}
