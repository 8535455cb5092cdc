/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definitions of convolutions, pools and matrix products (ONNX Conv, ConvTranspose, MaxPool, AveragePool,
 * LpPool, MatMul). Padding is a stage of its own ("pad"), so that schedules decide where it is computed. Sums of f16
 * and bf16 are kept in f32. Convolutions and products of quantised numbers are the same ones with zero points as
 * operands 2 and 3; their pools are in te/op/qnn.c. */
#include "graph/op/nn.h"

#include "te/op/nn.h"

#include "te/op/along.h"
#include "te/op/product_pairs.h"
#include "te/op/row_pairs.h"
#include "te/op/util.h"

#include <string.h>

#define MAX_IDX (2 + NN_MAX_SPATIAL + 2)

/* --- padding
 * ------------------------------------------------------------------------------------------------------------ */

typedef struct pad_ctx {
    const te_tensor *x;
    const nn_window *w;
    tir_expr_ref fill;
} pad_ctx;

static tir_expr_ref pad_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const pad_ctx *p = ctx;
    tir_expr_ref at[MAX_IDX], inside = NULL;
    at[0] = idx[0];
    at[1] = idx[1];
    if (p->x->rank > p->w->n + 2)
        at[p->w->n + 2] = idx[p->w->n + 2]; /* in a block of channels */
    for (uint32_t i = 0; i < p->w->n; i++) {
        at[2 + i] = tir_sub(g->c, idx[2 + i], te_i64(g, p->w->pad_begin[i]));
        if (p->w->pad_begin[i] || p->w->pad_end[i])
            inside = tir_and(g->c, inside, te_in_bounds(g, at[2 + i], p->x->shape[2 + i]));
    }
    return tir_select(g->c, inside, te_read(g, p->x, at), p->fill);
}

/* x with the window's border of `fill` around its spatial axes; x itself when there is none. extra: rows and columns
 * beyond the end padding that a sweep in ceil mode touches. */
static te_tensor *padded(te_graph *g, te_tensor *x, const nn_window *w, const int64_t *extra, tir_expr_ref fill)
{
    tir_expr_ref dims[MAX_IDX];
    bool any = false;
    memcpy(dims, x->shape, x->rank * sizeof *dims);
    for (uint32_t i = 0; i < w->n; i++) {
        int64_t more = w->pad_begin[i] + w->pad_end[i] + (extra ? extra[i] : 0);
        any |= more != 0;
        dims[2 + i] = tir_add(g->c, dims[2 + i], te_i64(g, more));
    }
    if (!any)
        return x;
    nn_window grown = *w;
    for (uint32_t i = 0; extra && i < w->n; i++)
        grown.pad_end[i] += extra[i];
    pad_ctx ctx = {x, &grown, fill};
    te_tensor *p = te_compute(g, "pad", x->dt, x->rank, dims, pad_body, &ctx);
    p->node->tag = "pad";
    return p;
}

/* At most. */
static int64_t product(const te_graph *g, tir_expr_ref const *dims, uint32_t n)
{
    int64_t r = 1;
    for (uint32_t i = 0; i < n; i++)
        if (!i64_mul(r, te_most(g, dims[i]), &r))
            return 0;
    return r;
}

/* The kernel axis over spatial axis i: kw, kh, kd from the last one on. */
static te_axis *kernel_axis(te_graph *g, const nn_window *w, uint32_t i)
{
    static const char *const names[] = {"kd", "kh", "kw"};
    tir_expr_ref extent = te_i64(g, w->kernel[i]);
    return w->n <= 3 ? te_reduce_axis(g, names[3 - w->n + i], extent) : te_numbered_axis(g, "k", i, extent);
}

/* --- convolution
 * -------------------------------------------------------------------------------------------------------- */

typedef struct conv_ctx {
    const te_tensor *x, *w;
    const te_tensor *x_zero, *w_zero; /* what stands for 0; NULL: 0 */
    const nn_window *win;
    te_axis *const *reduce;      /* input channel, then kernel axes */
    int64_t x_block, y_block;    /* blocks of channels of data and result; 0: plain */
    int64_t w_block, w_in_block; /* of packed weights; 0: plain */
    int64_t granule;             /* inputs side by side in a lane of packed weights; 0: one */
    bool in_rows;                /* these are neighbors in a row */
    int64_t groups;
    bool skips_border; /* x has no border: the sum leaves out what would be read there */
    tir_expr_ref out_per_group, in_per_group;
    tir_expr_ref begin[NN_MAX_SPATIAL]; /* of a transposed convolution: its padding, known at run time only at times */
    dtype acc;
} conv_ctx;

/* An index along the channels: as a whole, and as a block and a place in it where that is known. */
typedef struct split_index {
    tir_expr_ref whole, outer, inner;
} split_index;

/* `from`, which is split into blocks of `have` (0: not at all), by blocks of `block`. */
static split_index split_by(te_graph *g, const split_index *from, int64_t have, int64_t block)
{
    split_index s = *from;
    if (!block || block == have)
        return s;
    s.outer = tir_floordiv(g->c, s.whole, te_i64(g, block));
    s.inner = tir_floormod(g->c, s.whole, te_i64(g, block));
    return s;
}

static bool divides(tir_expr_ref e, int64_t by)
{
    int64_t n = 0;
    return tir_is_int(e, &n) && n % by == 0;
}

/* The output channel of the result at idx. */
static split_index out_channel(te_graph *g, const conv_ctx *v, tir_expr_ref const *idx)
{
    split_index s = {.whole = idx[1]};
    if (!v->y_block)
        return s;
    s.outer = idx[1];
    s.inner = idx[v->win->n + 2];
    s.whole = tir_add(g->c, tir_mul(g->c, s.outer, te_i64(g, v->y_block)), s.inner);
    return s;
}

/* The channel of x under output channel oc. With groups the blocks of x are found from those of the result where groups
 * consist of whole blocks, or of one channel. */
static split_index in_channel(te_graph *g, const conv_ctx *v, const split_index *oc)
{
    compiler *c = g->c;
    tir_expr_ref ic = te_var(g, v->reduce[0]);
    int64_t b = v->x_block;
    if (v->groups == 1)
        return split_by(g, &(split_index){.whole = ic}, 0, b);
    if (tir_is_const(v->in_per_group, 1) && tir_is_const(v->out_per_group, 1))
        return split_by(g, oc, v->y_block, b);
    if (b && b == v->y_block && divides(v->out_per_group, b) && divides(v->in_per_group, b)) {
        tir_expr_ref group = tir_floordiv(c, tir_mul(c, oc->outer, te_i64(g, b)), v->out_per_group);
        split_index s = split_by(g, &(split_index){.whole = ic}, 0, b);
        s.outer = tir_add(c, tir_mul(c, group, tir_floordiv(c, v->in_per_group, te_i64(g, b))), s.outer);
        return s;
    }
    tir_expr_ref group = tir_floordiv(c, oc->whole, v->out_per_group);
    return split_by(g, &(split_index){.whole = tir_add(c, tir_mul(c, group, v->in_per_group), ic)}, 0, b);
}

/* The position on spatial axis i that the window reads, in x. */
static tir_expr_ref window_at(te_graph *g, const conv_ctx *v, tir_expr_ref const *idx, uint32_t i)
{
    compiler *c = g->c;
    const nn_window *w = v->win;
    tir_expr_ref at = tir_add(c, tir_mul(c, idx[2 + i], te_i64(g, w->stride[i])),
                              tir_mul(c, te_var(g, v->reduce[1 + i]), te_i64(g, w->dilation[i])));
    return v->skips_border ? tir_sub(c, at, te_i64(g, w->pad_begin[i])) : at;
}

/* Where the window lies on the image: what the border would add is nothing. NULL: everywhere. */
static tir_expr_ref on_image(te_graph *g, const conv_ctx *v, tir_expr_ref const *idx)
{
    tir_expr_ref inside = NULL;
    for (uint32_t i = 0; v->skips_border && i < v->win->n; i++)
        if (v->win->pad_begin[i] || v->win->pad_end[i])
            inside = tir_and(g->c, inside, te_in_bounds(g, window_at(g, v, idx, i), v->x->shape[2 + i]));
    return inside;
}

/* Lanes behind the last output channel read only what has such lanes as well. */
static tir_expr_ref guard_lanes(te_graph *g, const conv_ctx *v, const split_index *oc, tir_expr_ref term)
{
    tir_expr_ref channels = tir_mul(g->c, v->out_per_group, te_i64(g, v->groups));
    bool same_lanes = v->w_block == v->y_block && (v->groups == 1 || v->x_block == v->y_block);
    if (!v->y_block || same_lanes || divides(channels, v->y_block))
        return term;
    return tir_select(g->c, tir_binary(g->c, TIR_LT, oc->whole, channels), term, tir_const(g->c, v->acc, 0));
}

/* The zero point of output channel oc; lanes behind the last channel get that of the last. */
static tir_expr_ref channel_zero(te_graph *g, const conv_ctx *v, tir_expr_ref oc)
{
    tir_expr_ref at[1] = {oc};
    if (!v->w_zero || te_is_one(v->w_zero))
        return te_read_one(g, v->w_zero);
    if (v->y_block)
        at[0] = te_clamp_index(g, oc, v->w_zero->shape[0]);
    return te_read(g, v->w_zero, at);
}

static tir_expr_ref conv_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const conv_ctx *v = ctx;
    compiler *c = g->c;
    uint32_t n = v->win->n, last = n + 2;
    tir_expr_ref xi[MAX_IDX], wi[MAX_IDX];
    split_index oc = out_channel(g, v, idx), wo = split_by(g, &oc, v->y_block, v->w_block);
    split_index xc = in_channel(g, v, &oc);
    split_index wc = split_by(g, &(split_index){.whole = te_var(g, v->reduce[0])}, 0, v->w_in_block);
    xi[0] = idx[0];
    xi[1] = v->x_block ? xc.outer : xc.whole;
    xi[last] = xc.inner;
    wi[0] = v->w_block ? wo.outer : wo.whole;
    wi[1] = v->w_in_block ? wc.outer : wc.whole;
    for (uint32_t i = 0; i < n; i++) {
        xi[2 + i] = window_at(g, v, idx, i);
        wi[2 + i] = te_var(g, v->reduce[1 + i]);
    }
    if (v->w_in_block)
        wi[last++] = v->granule ? tir_floordiv(c, wc.inner, te_i64(g, v->granule)) : wc.inner;
    if (v->w_block)
        wi[last++] = wo.inner;
    if (v->in_rows) {
        wi[last] = tir_floormod(c, wi[1 + n], te_i64(g, v->granule));
        wi[1 + n] = tir_floordiv(c, wi[1 + n], te_i64(g, v->granule));
    } else if (v->granule) {
        wi[last] = tir_floormod(c, wc.inner, te_i64(g, v->granule));
    }
    tir_expr_ref term = tir_mul(c, te_centred(g, v->acc, te_read(g, v->x, xi), te_read_one(g, v->x_zero)),
                                te_centred(g, v->acc, te_read(g, v->w, wi), channel_zero(g, v, oc.whole)));
    return guard_lanes(g, v, &oc, term);
}

/* --- quantised data and weights as numbers of 16 bits, for targets that multiply these faster than bytes --- */

typedef struct wide_ctx {
    const te_tensor *x;
    const nn_window *from; /* where the window stands on x; NULL: x are weights */
    tir_expr_ref fill;     /* the border */
} wide_ctx;

static tir_expr_ref wide_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const wide_ctx *v = ctx;
    tir_expr_ref at[2 * MAX_IDX], inside = NULL;
    memcpy(at, idx, v->x->rank * sizeof *at);
    for (uint32_t i = 0; v->from && i < v->from->n; i++) {
        const int64_t step = v->from->kernel[i] == 1 ? v->from->stride[i] : 1;
        at[2 + i] = tir_sub(g->c, tir_mul(g->c, idx[2 + i], te_i64(g, step)), te_i64(g, v->from->pad_begin[i]));
        if (v->from->pad_begin[i] || v->from->pad_end[i])
            inside = tir_and(g->c, inside, te_in_bounds(g, at[2 + i], v->x->shape[2 + i]));
    }
    tir_expr_ref x = tir_cast(g->c, DT_I16, te_read(g, v->x, at));
    return inside ? tir_select(g->c, inside, x, v->fill) : x;
}

static te_tensor *widened(te_graph *g, const char *tag, te_tensor *x, tir_expr_ref const *dims, const nn_window *from,
                          tir_expr_ref fill)
{
    wide_ctx ctx = {x, from, fill};
    te_tensor *y = te_compute(g, tag, DT_I16, x->rank, dims, wide_body, &ctx);
    y->node->tag = tag;
    return y;
}

/* Stages for both operands. That of the data has the border, and of an axis over which the window has one place only
 * the places that are read: win becomes the window on the stage. y: extents of the result. */
static void widen(te_graph *g, conv_ctx *v, te_tensor *const *in, nn_window *win, tir_expr_ref const *y,
                  tir_expr_ref fill)
{
    te_tensor *x = in[0], *w = in[1];
    tir_expr_ref dims[MAX_IDX];
    const nn_window from = *win;
    memcpy(dims, x->shape, x->rank * sizeof *dims);
    for (uint32_t i = 0; i < win->n; i++) {
        win->stride[i] = win->kernel[i] == 1 ? 1 : win->stride[i];
        win->pad_begin[i] = win->pad_end[i] = 0;
        dims[2 + i] = tir_add(g->c, tir_mul(g->c, tir_sub(g->c, y[2 + i], te_i64(g, 1)), te_i64(g, win->stride[i])),
                              te_i64(g, (win->kernel[i] - 1) * win->dilation[i] + 1));
    }
    v->x = widened(g, "wide_data", x, dims, &from, tir_cast(g->c, DT_I16, fill));
    v->w = widened(g, "wide_weights", w, w->shape, NULL, NULL);
    v->skips_border = false;
}

static int64_t window_taps(const nn_window *w)
{
    int64_t r = 1;
    for (uint32_t i = 0; i < w->n; i++)
        if (!i64_mul(r, w->kernel[i], &r))
            return 0;
    return r;
}

bool compute_conv(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    nn_weights nw;
    nn_window win;
    if (!nn_weights_read(g->c, n, &nw) || !nn_window_read(g->c, n, nw.spatial, &win))
        return false;
    memcpy(win.kernel, nw.kernel, sizeof win.kernel);
    bool wide = graph_attr(n, "wide") && graph_attr_int(n, "wide") != 0,
         skips = nn_data_block(n, "out_layout") != 0; /* a tile at the border runs over fewer taps, nothing is copied */
    if (wide && te_pairs_rows(n, &nw, &win)) {
        out[0] = te_conv_row_pairs(g, n, in, &win);
        te_count_macs(g, 2, (int64_t[]){te_most_count(g, out[0]), window_taps(&win)});
        return true;
    }
    const type *t = te_out_type(n, 0);
    tir_expr_ref const *dims = te_shape(g, t);
    te_axis *reduce[1 + NN_MAX_SPATIAL];
    reduce[0] = te_reduce_axis(g, "ic", te_dim(g, nw.in_per_group));
    for (uint32_t i = 0; i < win.n; i++)
        reduce[1 + i] = kernel_axis(g, &win, i);
    const te_tensor *x_zero = n->n_inputs > 2 ? in[2] : NULL;
    tir_expr_ref nothing = x_zero ? te_read_one(g, x_zero) : tir_const(g->c, in[0]->dt, 0);
    conv_ctx ctx = {.x = skips || wide ? in[0] : padded(g, in[0], &win, NULL, nothing),
                    .x_zero = x_zero,
                    .w_zero = n->n_inputs > 3 ? in[3] : NULL,
                    .skips_border = skips,
                    .w = in[1],
                    .win = &win,
                    .reduce = reduce,
                    .x_block = nn_data_block(n, "data_layout"),
                    .y_block = nn_data_block(n, "out_layout"),
                    .w_block = nw.block,
                    .w_in_block = nw.in_block,
                    .granule = nw.granule,
                    .in_rows = nw.in_rows,
                    .groups = graph_attr_int(n, "groups"),
                    .in_per_group = te_dim(g, nw.in_per_group),
                    .acc = te_acc_dtype(t->dt)};
    ctx.out_per_group = tir_floordiv(g->c, te_dim(g, nw.out_channels), te_i64(g, ctx.groups));
    if (wide)
        widen(g, &ctx, in, &win, dims, nothing);
    uint32_t rank = (uint32_t)t->shape.rank;
    te_axis *const *axes = te_data_axes(g, rank, dims);
    tir_expr_ref idx[MAX_IDX];
    for (uint32_t i = 0; i < rank; i++)
        idx[i] = te_var(g, axes[i]);
    tir_expr_ref body = conv_body(g, &ctx, idx);
    te_tensor *y;
    te_compute_n(g, "conv", rank, dims, axes, win.n + 1, reduce, te_simple_reducer(g->c, TE_SUM, ctx.acc),
                 on_image(g, &ctx, idx), 1, &ctx.acc, &body, &y);
    y->node->tag = n->op->name;
    int64_t cpg = 0;
    if (dim_is_const(nw.in_per_group, &cpg))
        te_count_macs(g, 3, (int64_t[]){te_most_count(g, y), cpg, window_taps(&win)});
    out[0] = te_cast_to(g, "conv_cast", y, t->dt);
    return true;
}

/* Output o collects the inputs i with i*stride - pad + k*dilation == o (gather form). */
static tir_expr_ref conv_transpose_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const conv_ctx *v = ctx;
    compiler *c = g->c;
    tir_expr_ref ic = te_var(g, v->reduce[0]), xi[MAX_IDX], wi[MAX_IDX], inside = NULL;
    tir_expr_ref group = tir_floordiv(c, idx[1], v->out_per_group);
    xi[0] = idx[0];
    xi[1] = wi[0] = tir_add(c, tir_mul(c, group, v->in_per_group), ic);
    wi[1] = tir_floormod(c, idx[1], v->out_per_group);
    for (uint32_t i = 0; i < v->win->n; i++) {
        tir_expr_ref k = te_var(g, v->reduce[1 + i]), s = te_i64(g, v->win->stride[i]);
        tir_expr_ref at = tir_sub(c, tir_add(c, idx[2 + i], v->begin[i]),
                                  tir_mul(c, k, te_i64(g, v->win->dilation[i])));
        if (v->win->stride[i] != 1)
            inside = tir_and(c, inside, tir_binary(c, TIR_EQ, tir_floormod(c, at, s), te_i64(g, 0)));
        xi[2 + i] = tir_floordiv(c, at, s);
        inside = tir_and(c, inside, te_in_bounds(g, xi[2 + i], v->x->shape[2 + i]));
        wi[2 + i] = k;
    }
    tir_expr_ref xv = te_centred(g, v->acc, te_read(g, v->x, xi), te_read_one(g, v->x_zero));
    tir_expr_ref wv = te_centred(g, v->acc, te_read(g, v->w, wi), channel_zero(g, v, idx[1]));
    return tir_mul(c, tir_select(c, inside, xv, tir_const(c, v->acc, 0)), wv);
}

bool compute_conv_transpose(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    nn_transpose_window t;
    if (!nn_transpose_window_read(g->c, n, &t))
        return false;
    const type *ot = te_out_type(n, 0);
    tir_expr_ref const *dims = te_shape(g, ot);
    int64_t groups = graph_attr_int(n, "groups");
    te_axis *reduce[1 + NN_MAX_SPATIAL];
    conv_ctx ctx = {
        .x = in[0], .w = in[1], .win = &t.w, .reduce = reduce, .groups = groups, .acc = te_acc_dtype(ot->dt)};
    ctx.x_zero = n->n_inputs > 2 ? in[2] : NULL;
    ctx.w_zero = n->n_inputs > 3 ? in[3] : NULL;
    ctx.in_per_group = tir_floordiv(g->c, in[0]->shape[1], te_i64(g, groups));
    ctx.out_per_group = in[1]->shape[1];
    reduce[0] = te_reduce_axis(g, "ic", ctx.in_per_group);
    for (uint32_t i = 0; i < t.w.n; i++) {
        reduce[1 + i] = kernel_axis(g, &t.w, i);
        ctx.begin[i] = te_dim(g, t.begin[i]);
    }
    te_tensor *y =
        te_reduce(g, "conv_transpose", ctx.acc, t.w.n + 2, dims, t.w.n + 1, reduce, TE_SUM, conv_transpose_body, &ctx);
    y->node->tag = n->op->name;
    te_count_macs(g, 2, (int64_t[]){te_most_count(g, in[0]), product(g, &in[1]->shape[1], t.w.n + 1)});
    out[0] = te_cast_to(g, "conv_transpose_cast", y, ot->dt);
    return true;
}

/* --- pools
 * ---------------------------------------------------------------------------------------------------------------- */

static void pool_at(te_graph *g, const te_pool *p, tir_expr_ref const *idx, bool minus_pad, tir_expr_ref *at)
{
    compiler *c = g->c;
    at[0] = idx[0];
    at[1] = idx[1];
    if (p->x->rank > p->w->n + 2)
        at[p->w->n + 2] = idx[p->w->n + 2]; /* in a block of channels */
    for (uint32_t i = 0; i < p->w->n; i++) {
        tir_expr_ref k = tir_mul(c, te_var(g, p->reduce[i]), te_i64(g, p->w->dilation[i]));
        at[2 + i] = tir_add(c, tir_mul(c, idx[2 + i], te_i64(g, p->w->stride[i])), k);
        if (minus_pad)
            at[2 + i] = tir_sub(c, at[2 + i], te_i64(g, p->w->pad_begin[i]));
    }
}

tir_expr_ref te_pool_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const te_pool *p = ctx;
    tir_expr_ref at[MAX_IDX];
    pool_at(g, p, idx, p->unpadded, at);
    return tir_cast(g->c, p->acc, te_read(g, p->x, at));
}

te_tensor *te_pool_reduce(te_graph *g, const graph_node *n, const char *name, te_pool *p, te_reduce_kind kind,
                               te_body_fn body)
{
    tir_expr_ref const *dims = te_shape(g, te_out_type(n, 0));
    te_axis *const *axes = te_data_axes(g, p->x->rank, dims);
    tir_expr_ref idx[MAX_IDX], at[MAX_IDX], inside = NULL;
    for (uint32_t i = 0; i < p->x->rank; i++)
        idx[i] = te_var(g, axes[i]);
    pool_at(g, p, idx, true, at);
    for (uint32_t i = 0; i < p->w->n; i++)
        if (p->skips[i])
            inside = tir_and(g->c, inside, te_in_bounds(g, at[2 + i], p->extent[i]));
    inside = p->only ? tir_and(g->c, p->only(g, p, idx), inside) : inside;
    tir_expr_ref value = body(g, p, idx);
    te_tensor *y;
    te_compute_n(g, name, p->x->rank, dims, axes, p->w->n, p->reduce, te_simple_reducer(g->c, kind, p->acc), inside, 1,
                 &p->acc, &value, &y);
    y->node->tag = n->op->name;
    return y;
}

static tir_expr_ref lp_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const te_pool *p = ctx;
    tir_expr_ref x = te_pool_body(g, ctx, idx);
    if (p->p == 2.0)
        return tir_mul(g->c, x, x);
    tir_expr_ref mag = tir_call1(g->c, TIR_FABS, x);
    return p->p == 1.0 ? mag : tir_call(g->c, TIR_POW, 2, (tir_expr_ref[]){mag, tir_float(g->c, p->acc, p->p)});
}

/* That of a global pool. */
static void whole_window(const te_tensor *x, bool blocks, nn_window *w)
{
    *w = (nn_window){.n = x->rank - (blocks ? 3 : 2)};
    for (uint32_t i = 0; i < w->n; i++) {
        (void)tir_is_int(x->shape[2 + i], &w->kernel[i]); /* the type relation sees to it */
        w->stride[i] = w->dilation[i] = 1;
    }
}

bool te_pool_setup(te_graph *g, const graph_node *n, te_tensor *x, tir_expr_ref fill, nn_window *w,
                       te_axis **reduce, te_pool *p)
{
    const int64_t *k = NULL;
    int64_t extra[NN_MAX_SPATIAL], in = 0, o = 0;
    bool blocks = nn_data_block(n, "data_layout") != 0;
    if (!graph_attr(n, "pool_size"))
        whole_window(x, blocks, w);
    else if (!nn_window_read(g->c, n, x->rank - (blocks ? 3 : 2), w))
        return false;
    else if (graph_attr_ints(n, "pool_size", &k))
        memcpy(w->kernel, k, w->n * sizeof *k);
    tir_expr_ref const *os = te_shape(g, te_out_type(n, 0));
    for (uint32_t i = 0; i < w->n; i++) {
        extra[i] = 0;
        if (tir_is_int(x->shape[2 + i], &in) && tir_is_int(os[2 + i], &o)) {
            int64_t reach =
                (o - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1 - in - w->pad_begin[i] - w->pad_end[i];
            extra[i] = reach > 0 ? reach : 0;
        } else if (graph_attr(n, "ceil_mode") && graph_attr_int(n, "ceil_mode")) {
            extra[i] = w->stride[i] - 1; /* at most */
        }
        reduce[i] = kernel_axis(g, w, i);
    }
    *p = (te_pool){.x = fill && !blocks ? padded(g, x, w, extra, fill) : x,
                    .w = w,
                    .reduce = reduce,
                    .acc = x->dt,
                    .unpadded = blocks,
                    .extent = x->shape + 2};
    for (uint32_t i = 0; i < w->n; i++)
        p->skips[i] = blocks && (w->pad_begin[i] || w->pad_end[i] || extra[i]);
    return true;
}

bool compute_max_pool(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    nn_window w;
    te_axis *reduce[NN_MAX_SPATIAL];
    te_pool p;
    if (!te_pool_setup(g, n, in[0], te_lowest(g->c, in[0]->dt), &w, reduce, &p))
        return false;
    out[0] = te_pool_reduce(g, n, "max_pool", &p, TE_MAX, te_pool_body);
    return true;
}

/* Taps of one axis whose position lies in [lo, hi): positions are o*stride - pad + k*dilation. */
static tir_expr_ref taps(te_graph *g, const te_pool *p, uint32_t i, tir_expr_ref o)
{
    compiler *c = g->c;
    int64_t d = p->w->dilation[i], lo = p->include_pad ? -p->w->pad_begin[i] : 0;
    tir_expr_ref hi = tir_add(c, p->extent[i], te_i64(g, p->include_pad ? p->w->pad_end[i] : 0));
    tir_expr_ref start = tir_sub(c, tir_mul(c, o, te_i64(g, p->w->stride[i])), te_i64(g, p->w->pad_begin[i]));
    tir_expr_ref first = tir_max(c, te_i64(g, 0), te_ceildiv(g, tir_sub(c, te_i64(g, lo), start), d));
    tir_expr_ref end = tir_min(c, te_i64(g, p->w->kernel[i]), te_ceildiv(g, tir_sub(c, hi, start), d));
    return tir_sub(c, end, first);
}

/* Elements along the first n axes. */
static tir_expr_ref count_along(te_graph *g, const te_pool *p, uint32_t n, tir_expr_ref const *idx)
{
    tir_expr_ref count = te_i64(g, 1);
    for (uint32_t i = 0; i < n; i++)
        count = tir_mul(g->c, count, taps(g, p, i, idx[2 + i]));
    return count;
}

tir_expr_ref te_pool_count(te_graph *g, const te_pool *p, tir_expr_ref const *idx)
{
    return count_along(g, p, p->w->n, idx);
}

static tir_expr_ref taps_of_column(te_graph *g, const void *ctx, tir_expr_ref o)
{
    const te_pool *p = ctx;
    return tir_cast(g->c, DT_F32, taps(g, p, p->w->n - 1, o));
}

/* Vectors have no minimum of i64, of which the count is made: along a line they read the part that changes. */
static const te_tensor *table_of_columns(te_graph *g, const te_pool *p, tir_expr_ref columns)
{
    return p->unpadded || p->acc != DT_F32 ? NULL : te_weight_table(g, "avg_pool_taps", taps_of_column, p, columns);
}

/* The product of both parts is the number that the whole count rounds to. */
static tir_expr_ref avg_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const te_pool *p = ctx;
    const uint32_t last = p->w->n - 1;
    tir_expr_ref count = tir_cast(g->c, p->acc, count_along(g, p, p->columns ? last : last + 1, idx));
    if (p->columns)
        count = tir_mul(g->c, count, te_read(g, p->columns, idx + 2 + last));
    return tir_binary(g->c, TIR_DIV, te_read(g, p->sum, idx), count);
}

/* The sum of `body` over each window, then `finish` of it, both named after the pool. */
static void summed_pool(te_graph *g, const graph_node *n, const char *name, te_pool *p, te_body_fn body,
                        te_body_fn finish, te_tensor **out)
{
    const type *t = te_out_type(n, 0);
    tir_expr_ref const *dims = te_shape(g, t);
    const char *sum_name = arena_printf(&g->c->mem, "%s_sum", name);
    p->sum = te_pool_reduce(g, n, sum_name, p, TE_SUM, body);
    te_tensor *y = te_compute(g, name, p->acc, p->x->rank, dims, finish, p);
    out[0] = te_cast_to(g, arena_printf(&g->c->mem, "%s_cast", name), y, t->dt);
}

bool compute_avg_pool(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    nn_window w;
    te_axis *reduce[NN_MAX_SPATIAL];
    te_pool p;
    if (!te_pool_setup(g, n, in[0], tir_const(g->c, in[0]->dt, 0), &w, reduce, &p))
        return false;
    p.acc = te_acc_dtype(in[0]->dt);
    p.include_pad = graph_attr_int(n, "count_include_pad") != 0;
    p.columns = table_of_columns(g, &p, te_shape(g, te_out_type(n, 0))[1 + w.n]);
    summed_pool(g, n, "avg_pool", &p, te_pool_body, avg_body, out);
    return true;
}

static tir_expr_ref lp_root_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const te_pool *p = ctx;
    tir_expr_ref s = te_read(g, p->sum, idx);
    if (p->p == 1.0)
        return s;
    if (p->p == 2.0)
        return tir_call1(g->c, TIR_SQRT, s);
    return tir_call(g->c, TIR_POW, 2, (tir_expr_ref[]){s, tir_float(g->c, p->acc, 1.0 / p->p)});
}

bool compute_lp_pool(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    nn_window w;
    te_axis *reduce[NN_MAX_SPATIAL];
    te_pool p;
    if (!te_pool_setup(g, n, in[0], tir_const(g->c, in[0]->dt, 0), &w, reduce, &p))
        return false;
    p.acc = te_acc_dtype(in[0]->dt);
    p.p = (double)graph_attr_int(n, "p");
    summed_pool(g, n, "lp_pool", &p, lp_body, lp_root_body, out);
    return true;
}

typedef struct pool_place {
    const te_tensor *row_major;
    tir_expr_ref const *extent; /* of the spatial axes */
    uint32_t n;
} pool_place;

/* A place among the spatial axes counted column-major. */
static tir_expr_ref column_major_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const pool_place *v = ctx;
    compiler *c = g->c;
    tir_expr_ref rest = te_read(g, v->row_major, idx), at[NN_MAX_SPATIAL], place = te_i64(g, 0);
    for (uint32_t i = v->n; i-- > 0;) {
        at[i] = tir_floormod(c, rest, v->extent[i]);
        rest = tir_floordiv(c, rest, v->extent[i]);
    }
    for (uint32_t i = v->n; i-- > 0;)
        place = tir_add(c, tir_mul(c, place, v->extent[i]), at[i]);
    for (uint32_t i = 0; i < v->n; i++)
        rest = tir_mul(c, rest, v->extent[i]);
    return tir_add(c, rest, place);
}

/* Of equal values the first one in the order of memory, also where storage_order 1 wants its place counted column-major
 * (ONNX MaxPool Indices: offset in the whole input): so onnxruntime and the reference have it. */
bool compute_max_pool_indices(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    nn_window w;
    te_axis *reduce[NN_MAX_SPATIAL];
    te_pool p;
    compiler *c = g->c;
    tir_expr_ref const *dims = te_shape(g, te_out_type(n, 0));
    if (!te_pool_setup(g, n, in[0], NULL, &w, reduce, &p))
        return false;
    te_axis *const *axes = te_data_axes(g, w.n + 2, dims);
    tir_expr_ref idx[MAX_IDX], at[MAX_IDX], inside = NULL;
    for (uint32_t i = 0; i < w.n + 2; i++)
        idx[i] = te_var(g, axes[i]);
    pool_at(g, &p, idx, true, at);
    tir_expr_ref flat = tir_add(c, tir_mul(c, idx[0], in[0]->shape[1]), idx[1]), spatial = te_i64(g, 0);
    for (uint32_t i = 0; i < w.n; i++) {
        inside = tir_and(c, inside, te_in_bounds(g, at[2 + i], p.extent[i]));
        flat = tir_mul(c, flat, p.extent[i]);
        spatial = tir_add(c, tir_mul(c, spatial, p.extent[i]), at[2 + i]);
    }
    te_tensor *pair[2];
    te_compute_n(g, "max_pool_indices", w.n + 2, dims, axes, w.n, reduce,
                 te_arg_reducer(g, in[0]->dt, true, false), inside, 2,
                 (dtype[]){in[0]->dt, DT_I64}, (tir_expr_ref[]){te_read(g, in[0], at), tir_add(c, flat, spatial)},
                 pair);
    out[0] = pair[1];
    if (graph_attr_int(n, "storage_order") != 0) {
        pool_place *v = arena_new(&c->mem, pool_place);
        *v = (pool_place){.row_major = pair[1], .extent = p.extent, .n = w.n};
        out[0] = te_compute(g, "max_pool_places", DT_I64, w.n + 2, dims, column_major_body, v);
    }
    return true;
}

/* --- matrix products
 * -------------------------------------------------------------------------------------------------------- */

typedef struct matmul_ctx {
    const te_tensor *a, *b;
    const te_tensor *a_zero, *b_zero; /* what stands for 0; NULL: 0 */
    bool ta, tb;
    int64_t block, granule; /* of packed weights; 0: none */
    uint32_t out_rank;
    tir_expr_ref const *extents; /* of the result */
    te_axis *k;
    dtype acc;
} matmul_ctx;

/* Axes of batches, which lie before those of a matrix. */
static uint32_t lead_of(const te_tensor *t)
{
    return t->rank > 2 ? t->rank - 2 : 0;
}

static uint32_t out_lead(const matmul_ctx *v)
{
    const uint32_t rb = v->block ? 2 : v->b->rank;
    return v->out_rank - (v->a->rank > 1 ? 1u : 0u) - (rb > 1 ? 1u : 0u);
}

/* A zero point is one number, one for each row of a or column of b, or broadcasts to its operand t. */
static tir_expr_ref product_zero(te_graph *g, const te_tensor *zero, const te_tensor *t, tir_expr_ref line,
                                 tir_expr_ref const *at)
{
    if (!zero || te_is_one(zero))
        return te_read_one(g, zero);
    if (zero->rank == 1)
        return te_read(g, zero, &line); /* a line there is: the type relation sees to it */
    return te_read_broadcast(g, zero, t->rank, t->shape, at);
}

static tir_expr_ref matmul_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const matmul_ctx *v = ctx;
    compiler *c = g->c;
    uint32_t rb = v->block ? 2 : v->b->rank, lead = out_lead(v), p = lead_of(v->a);
    tir_expr_ref at[TYPE_MAX_RANK], bt[TYPE_MAX_RANK], k = te_var(g, v->k);
    tir_expr_ref m = v->a->rank > 1 ? idx[lead] : NULL, col = rb > 1 ? idx[v->out_rank - 1] : NULL;
    te_broadcast_lead(g, v->a, p, lead, v->extents, idx, at);
    if (m)
        at[p++] = v->ta ? k : m;
    at[p] = m && v->ta ? m : k;
    if (v->block) {
        bt[0] = tir_floordiv(c, col, te_i64(g, v->block));
        bt[1] = v->granule ? tir_floordiv(c, k, te_i64(g, v->granule)) : k;
        bt[2] = tir_floormod(c, col, te_i64(g, v->block));
        if (v->granule)
            bt[3] = tir_floormod(c, k, te_i64(g, v->granule));
    } else {
        p = lead_of(v->b);
        te_broadcast_lead(g, v->b, p, lead, v->extents, idx, bt);
        bt[p] = v->tb && col ? col : k;
        if (col)
            bt[p + 1] = v->tb ? k : col;
    }
    return tir_mul(c, te_centred(g, v->acc, te_read(g, v->a, at), product_zero(g, v->a_zero, v->a, m, at)),
                   te_centred(g, v->acc, te_read(g, v->b, bt), product_zero(g, v->b_zero, v->b, col, bt)));
}

bool compute_matmul(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    const type *t = te_out_type(n, 0);
    matmul_ctx ctx = {.a = in[0],
                      .b = in[1],
                      .a_zero = n->n_inputs > 2 ? in[2] : NULL,
                      .b_zero = n->n_inputs > 3 ? in[3] : NULL,
                      .ta = graph_attr_int(n, "transpose_a") != 0,
                      .tb = graph_attr_int(n, "transpose_b") != 0};
    nn_weight_blocks(n, &ctx.block, &ctx.granule);
    const bool wide = graph_attr(n, "wide") && graph_attr_int(n, "wide") != 0, pairs = wide && ctx.block == 0;
    if (wide && !pairs) {
        ctx.a = widened(g, "wide_data", in[0], in[0]->shape, NULL, NULL);
        ctx.b = widened(g, "wide_weights", in[1], in[1]->shape, NULL, NULL);
    }
    ctx.out_rank = (uint32_t)t->shape.rank;
    ctx.extents = te_shape(g, t);
    ctx.acc = te_acc_dtype(t->dt);
    tir_expr_ref k = in[0]->shape[in[0]->rank - (ctx.ta && in[0]->rank > 1 ? 2 : 1)];
    ctx.k = te_reduce_axis(g, "k", k);
    te_tensor *y = pairs ? te_product_pairs(g, n, in)
                         : te_reduce(g, "matmul", ctx.acc, ctx.out_rank, ctx.extents, 1, &ctx.k, TE_SUM, matmul_body,
                                     &ctx);
    y->node->tag = n->op->name;
    te_count_macs(g, 2, (int64_t[]){te_most_count(g, y), te_most(g, k)});
    out[0] = te_cast_to(g, "matmul_cast", y, t->dt);
    return true;
}
