/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolutions of bytes for processors that multiply pairs of 16 bits: a word of 32 bits has the same pixel
 * of two rows, rows 2 k and 2 k + 1 of the image with its border, and a word of weights what two rows of taps multiply
 * these by. Where the stride is odd, a window begins at the first row of a pair or at the second, and the weights are
 * there for both; what has no tap is 0. So each pair is read by all windows over it, which neighbors in a row would
 * not be, and the border is in the words. */
#include "te/op/row_pairs.h"

#include "te/op/util.h"

#define LOW 65535
#define HIGH 65536

enum { BATCH, BLOCK, ROW, COL, LANE, RANK };

typedef struct pair_ctx {
    const te_tensor *x, *w, *x_zero; /* x_zero NULL: 0 */
    const nn_window *win;
    const te_tensor *data, *weights; /* words */
    te_axis *const *reduce;
} pair_ctx;

/* One output channel for each channel of the data, which are in blocks as the result is. */
static bool is_depthwise_in_blocks(const graph_node *n, const nn_weights *w)
{
    const int64_t block = nn_data_block(n, "data_layout");
    int64_t channels = 0, one = 0;
    const bool in_blocks = block > 0 && block == nn_data_block(n, "out_layout") && block == w->block &&
                           w->in_block == 0 && w->granule == 0;
    return in_blocks && dim_is_const(w->in_per_group, &one) && one == 1 &&
           dim_is_const(w->out_channels, &channels) && channels == graph_attr_int(n, "groups");
}

bool te_pairs_rows(const graph_node *n, const nn_weights *w, const nn_window *win)
{
    const bool has_pairs = win->n == 2 && win->kernel[0] >= 2 && win->dilation[0] == 1;
    const bool bytes = dtype_bits(te_in_type(n, 0)->dt) == 8 && dtype_bits(te_in_type(n, 1)->dt) == 8;
    return has_pairs && bytes && n->n_inputs < 4 && is_depthwise_in_blocks(n, w);
}

/* Windows begin at so many places of a pair. */
static int64_t phases(const nn_window *win)
{
    return win->stride[0] % 2 ? 2 : 1;
}

/* Pairs under a window, wherever it begins. */
static int64_t pairs_of(const nn_window *win)
{
    return (win->kernel[0] + phases(win)) / 2;
}

/* The word of two numbers of 16 bits. */
static tir_expr_ref word(compiler *c, tir_expr_ref low, tir_expr_ref high)
{
    return tir_add(c, tir_binary(c, TIR_BITAND, low, tir_int(c, DT_I32, LOW)),
                   tir_mul(c, high, tir_int(c, DT_I32, HIGH)));
}

/* The pixel of x in row `row` of the image with its border, which is 0. */
static tir_expr_ref pixel(te_graph *g, const pair_ctx *v, tir_expr_ref const *idx, tir_expr_ref row)
{
    compiler *c = g->c;
    tir_expr_ref at[RANK] = {idx[BATCH], idx[BLOCK], tir_sub(c, row, te_i64(g, v->win->pad_begin[0])),
                             tir_sub(c, idx[COL], te_i64(g, v->win->pad_begin[1])), idx[LANE]},
                 inside = tir_and(c, te_in_bounds(g, at[ROW], v->x->shape[ROW]),
                                  te_in_bounds(g, at[COL], v->x->shape[COL])),
                 x = te_centred(g, DT_I32, te_read(g, v->x, at), te_read_one(g, v->x_zero));
    return tir_select(c, inside, x, tir_const(c, DT_I32, 0));
}

static tir_expr_ref data_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const pair_ctx *v = ctx;
    tir_expr_ref row = tir_mul(g->c, idx[ROW], te_i64(g, 2)), low = pixel(g, v, idx, row),
                 high = pixel(g, v, idx, tir_add(g->c, row, te_i64(g, 1)));
    if (v->x->dt == DT_U8 && !v->x_zero) /* nothing to cut off */
        return tir_add(g->c, low, tir_mul(g->c, high, tir_int(g->c, DT_I32, HIGH)));
    return word(g->c, low, high);
}

/* The weight of row `tap` of taps; idx: block, phase, pair, column, lane. */
static tir_expr_ref weight(te_graph *g, const pair_ctx *v, tir_expr_ref const *idx, tir_expr_ref tap)
{
    tir_expr_ref at[RANK] = {idx[0], te_i64(g, 0), tap, idx[3], idx[4]},
                 inside = te_in_bounds(g, tap, te_i64(g, v->win->kernel[0]));
    return tir_select(g->c, inside, tir_cast(g->c, DT_I32, te_read(g, v->w, at)), tir_const(g->c, DT_I32, 0));
}

static tir_expr_ref weights_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    tir_expr_ref tap = tir_sub(g->c, tir_mul(g->c, idx[2], te_i64(g, 2)), idx[1]);
    return word(g->c, weight(g, ctx, idx, tap), weight(g, ctx, idx, tir_add(g->c, tap, te_i64(g, 1))));
}

static tir_expr_ref low_of(compiler *c, tir_expr_ref x)
{
    return tir_cast(c, DT_I32, tir_cast(c, DT_I16, x));
}

static tir_expr_ref high_of(compiler *c, tir_expr_ref x)
{
    return tir_binary(c, TIR_SHR, x, tir_int(c, DT_I32, 16));
}

static tir_expr_ref sum_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const pair_ctx *v = ctx;
    compiler *c = g->c;
    const nn_window *w = v->win;
    tir_expr_ref first = tir_mul(c, idx[ROW], te_i64(g, w->stride[0])), two = te_i64(g, 2),
                 pair = te_var(g, v->reduce[0]), kw = te_var(g, v->reduce[1]),
                 col = tir_add(c, tir_mul(c, idx[COL], te_i64(g, w->stride[1])),
                               tir_mul(c, kw, te_i64(g, w->dilation[1]))),
                 x = te_read(g, v->data, (tir_expr_ref[]){idx[BATCH], idx[BLOCK],
                                                          tir_add(c, tir_floordiv(c, first, two), pair), col,
                                                          idx[LANE]}),
                 k = te_read(g, v->weights, (tir_expr_ref[]){idx[BLOCK], tir_floormod(c, first, two), pair, kw,
                                                             idx[LANE]});
    return tir_add(c, tir_mul(c, low_of(c, x), low_of(c, k)), tir_mul(c, high_of(c, x), high_of(c, k)));
}

te_tensor *te_conv_row_pairs(te_graph *g, const graph_node *n, te_tensor *const *in, const nn_window *win)
{
    compiler *c = g->c;
    tir_expr_ref const *y = te_shape(g, te_out_type(n, 0));
    te_axis *reduce[2] = {te_reduce_axis(g, "pair", te_i64(g, pairs_of(win))),
                          te_reduce_axis(g, "kw", te_i64(g, win->kernel[1]))};
    pair_ctx v = {.x = in[0], .w = in[1], .x_zero = n->n_inputs > 2 ? in[2] : NULL, .win = win, .reduce = reduce};
    tir_expr_ref last = tir_mul(c, tir_sub(c, y[ROW], te_i64(g, 1)), te_i64(g, win->stride[0])),
                 end = tir_mul(c, tir_sub(c, y[COL], te_i64(g, 1)), te_i64(g, win->stride[1]));
    te_tensor *data = te_compute(
        g, "pair_data", DT_I32, RANK,
        (tir_expr_ref[]){y[BATCH], y[BLOCK], tir_add(c, tir_floordiv(c, last, te_i64(g, 2)), te_i64(g, pairs_of(win))),
                         tir_add(c, end, te_i64(g, (win->kernel[1] - 1) * win->dilation[1] + 1)), y[LANE]},
        data_body, &v);
    te_tensor *weights = te_compute(g, "pair_weights", DT_I32, RANK,
                                    (tir_expr_ref[]){y[BLOCK], te_i64(g, phases(win)), te_i64(g, pairs_of(win)),
                                                     te_i64(g, win->kernel[1]), y[LANE]},
                                    weights_body, &v);
    data->node->tag = "pair_data";
    weights->node->tag = "pair_weights";
    v.data = data;
    v.weights = weights;
    te_tensor *sums = te_reduce(g, "conv", DT_I32, RANK, y, 2, reduce, TE_SUM, sum_body, &v);
    sums->node->tag = n->op->name;
    return sums;
}
