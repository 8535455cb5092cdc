/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definition of qnn.conv2d_rows where vectors of bytes are multiplied (rows_conv.lanes): the rows under a line
 * of results as i8 with the zero point in the border, and sums of products along them. Under a depthwise convolution
 * the rows stand side by side, ROWS_WORD of them, so that a window is a few whole words. */
#include "te/op/rows.h"

#include "te/op/util.h"

typedef struct lanes_ctx {
    rows_conv v;
    const te_tensor *x, *w, *rows;
    tir_expr_ref zero; /* as i8 */
    te_axis *reduce[3];
} lanes_ctx;

static tir_expr_ref times(te_graph *g, tir_expr_ref e, int64_t n)
{
    return tir_mul(g->c, e, te_i64(g, n));
}

static tir_expr_ref less(te_graph *g, tir_expr_ref e, int64_t n)
{
    return tir_sub(g->c, e, te_i64(g, n));
}

/* A byte as i8: u8 less 128, which is its highest bit turned over, so that vectors stay vectors of bytes. */
static tir_expr_ref as_signed(te_graph *g, tir_expr_ref x)
{
    compiler *c = g->c;
    if (x->type.dt == DT_I8)
        return x;
    return tir_binary(c, TIR_BITXOR, tir_cast(c, DT_I8, x), tir_const(c, DT_I8, -128));
}

/* x at that row, column and channel; the zero point where there is nothing. `rows`, `columns`: how far the buffer
 * reaches. */
static tir_expr_ref byte_at(te_graph *g, const lanes_ctx *k, tir_expr_ref image, tir_expr_ref row, tir_expr_ref column,
                            tir_expr_ref channel, const int64_t reach[2])
{
    compiler *c = g->c;
    const rows_conv *v = &k->v;
    const nn_window *w = &v->win;
    tir_expr_ref inside = NULL, at[2] = {less(g, row, w->pad_begin[0]), less(g, column, w->pad_begin[1])};
    for (uint32_t i = 0; i < 2; i++)
        if (w->pad_begin[i] || reach[i] > v->extent[i])
            inside = tir_and(c, inside, te_in_bounds(g, at[i], te_i64(g, v->extent[i])));
    tir_expr_ref idx[4] = {image, at[0], at[1], channel}, planar[4] = {image, channel, at[0], at[1]};
    tir_expr_ref x = as_signed(g, te_read(g, k->x, v->planar ? planar : idx));
    return inside ? tir_select(c, inside, x, k->zero) : x;
}

/* Rows and columns that all windows read; those of words are whole. */
static void reach_of(const rows_conv *v, int64_t reach[2])
{
    const nn_window *w = &v->win;
    int64_t rows = v->depthwise ? (w->kernel[0] + ROWS_WORD - 1) / ROWS_WORD * ROWS_WORD : w->kernel[0];
    reach[0] = (v->out_extent[0] - 1) * w->stride[0] + (rows - 1) * w->dilation[0] + 1;
    reach[1] = v->line / v->in;
}

/* Element l of a row is channel l % in of column l / in. */
static tir_expr_ref line_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const lanes_ctx *k = ctx;
    tir_expr_ref in = te_i64(g, k->v.in);
    int64_t reach[2];
    reach_of(&k->v, reach);
    return byte_at(g, k, idx[0], idx[1], tir_floordiv(g->c, idx[2], in), tir_floormod(g->c, idx[2], in), reach);
}

/* Element e of a patch: row, column and channel of the window as digits. */
static tir_expr_ref patch_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const lanes_ctx *k = ctx;
    compiler *c = g->c;
    const rows_conv *v = &k->v;
    const nn_window *w = &v->win;
    int64_t row = w->kernel[1] * v->in, reach[2];
    tir_expr_ref in = te_i64(g, v->in), e = idx[3];
    tir_expr_ref tap[2] = {tir_floordiv(c, e, te_i64(g, row)),
                           tir_floordiv(c, tir_floormod(c, e, te_i64(g, row)), in)}, at[2];
    reach_of(v, reach);
    for (uint32_t i = 0; i < 2; i++)
        at[i] = tir_add(c, times(g, idx[1 + i], w->stride[i]), times(g, tap[i], w->dilation[i]));
    return byte_at(g, k, idx[0], at[0], at[1], tir_floormod(c, e, in), reach);
}

/* Row 4 * idx[2] + idx[5] of the windows of line idx[1]. */
static tir_expr_ref word_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const lanes_ctx *k = ctx;
    compiler *c = g->c;
    const nn_window *w = &k->v.win;
    tir_expr_ref row = tir_add(c, times(g, idx[2], ROWS_WORD), idx[5]);
    tir_expr_ref at[3] = {idx[0], tir_add(c, times(g, idx[1], w->stride[0]), times(g, row, w->dilation[0])),
                          tir_add(c, times(g, idx[3], k->v.in), idx[4])};
    return te_read(g, k->rows, at);
}

static tir_expr_ref product(te_graph *g, tir_expr_ref a, tir_expr_ref b)
{
    return tir_mul(g->c, tir_cast(g->c, DT_I32, a), tir_cast(g->c, DT_I32, b));
}

/* The weight at idx, whose first index is a channel; of 4 bits a byte has those of two, the first one's in its upper
 * half. */
static tir_expr_ref weight_at(te_graph *g, const lanes_ctx *k, tir_expr_ref *idx)
{
    compiler *c = g->c;
    tir_expr_ref channel = idx[0], two = te_i64(g, 2), four = tir_int(c, DT_I32, 4);
    if (!k->v.nibbles)
        return te_read(g, k->w, idx);
    idx[0] = tir_floordiv(c, channel, two);
    tir_expr_ref up = tir_cast(c, DT_I32, times(g, tir_floormod(c, channel, two), 4));
    tir_expr_ref x = tir_binary(c, TIR_SHL, tir_cast(c, DT_I32, te_read(g, k->w, idx)), up);
    return tir_binary(c, TIR_SHR, tir_cast(c, DT_I32, tir_cast(c, DT_I8, x)), four);
}

/* Where the window reads on axis i. */
static tir_expr_ref swept(te_graph *g, const lanes_ctx *k, tir_expr_ref at, uint32_t i)
{
    const nn_window *w = &k->v.win;
    return tir_add(g->c, times(g, at, w->stride[i]), times(g, te_var(g, k->reduce[i]), w->dilation[i]));
}

static tir_expr_ref depthwise_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const lanes_ctx *k = ctx;
    compiler *c = g->c;
    tir_expr_ref row = te_var(g, k->reduce[0]), word = te_i64(g, ROWS_WORD);
    tir_expr_ref x[6] = {idx[0], idx[1], tir_floordiv(c, row, word), swept(g, k, idx[2], 1), idx[3],
                         tir_floormod(c, row, word)},
                 w[3] = {idx[3], row, te_var(g, k->reduce[1])};
    return product(g, te_read(g, k->rows, x), weight_at(g, k, w));
}

static tir_expr_ref sums_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const lanes_ctx *k = ctx;
    compiler *c = g->c;
    tir_expr_ref run = te_var(g, k->reduce[2]), column = times(g, swept(g, k, idx[2], 1), k->v.in);
    tir_expr_ref x[3] = {idx[0], swept(g, k, idx[1], 0), tir_add(c, column, run)},
                 patch[4] = {idx[0], idx[1], idx[2], run},
                 w[4] = {idx[3], te_var(g, k->reduce[0]), te_var(g, k->reduce[1]), run};
    return product(g, te_read(g, k->rows, k->v.patches ? patch : x), weight_at(g, k, w));
}

static te_tensor *stage(te_graph *g, lanes_ctx *k, const char *name, uint32_t rank, const int64_t *dims,
                        te_body_fn body)
{
    tir_expr_ref extents[6];
    for (uint32_t i = 0; i < rank; i++)
        extents[i] = te_i64(g, dims[i]);
    te_tensor *t = te_compute(g, name, DT_I8, rank, extents, body, k);
    t->node->tag = "pad";
    return t;
}

/* The buffers of a whole convolution; its rule says how much of them there is at a time. */
static void make_rows(te_graph *g, lanes_ctx *k)
{
    const rows_conv *v = &k->v;
    int64_t reach[2], words = (v->win.kernel[0] + ROWS_WORD - 1) / ROWS_WORD;
    reach_of(v, reach);
    const int64_t lines[3] = {v->images, reach[0], v->line},
                  patches[4] = {v->images, v->out_extent[0], v->out_extent[1], v->run},
                  sides[6] = {v->images, v->out_extent[0], words, reach[1], v->in, ROWS_WORD};
    k->rows = v->patches ? stage(g, k, "rows", 4, patches, patch_body) : stage(g, k, "rows", 3, lines, line_body);
    if (v->depthwise)
        k->rows = stage(g, k, "words", 6, sides, word_body);
}

bool compute_conv2d_lanes(te_graph *g, const graph_node *n, const rows_conv *v, te_tensor *const *in, te_tensor **out)
{
    lanes_ctx k = {.v = *v, .x = in[0], .w = in[1]};
    static const char *const names[] = {"kh", "kw", "run"};
    tir_expr_ref zero = n->n_inputs > 2 ? te_read_one(g, in[2]) : NULL;
    k.zero = as_signed(g, zero ? zero : tir_const(g->c, in[0]->dt, 0));
    int64_t counts[3] = {v->patches ? 1 : v->win.kernel[0], v->depthwise ? v->win.kernel[1] : v->taps, v->run};
    uint32_t axes = v->depthwise ? 2 : 3;
    for (uint32_t i = 0; i < axes; i++)
        k.reduce[i] = te_reduce_axis(g, names[i], te_i64(g, counts[i]));
    make_rows(g, &k);
    te_body_fn body = v->depthwise ? depthwise_body : sums_body;
    out[0] = te_reduce(g, "conv", DT_I32, 4, te_shape(g, te_out_type(n, 0)), axes, k.reduce, TE_SUM, body, &k);
    out[0]->node->tag = n->op->name;
    return true;
}
