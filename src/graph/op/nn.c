/* SPDX-License-Identifier: Apache-2.0 */
/* Type relations of convolutions, pools, matrix products and normalisations. Shapes: data N, C, spatial; weights
 * O, I/groups, spatial (ONNX Conv, ConvTranspose, MaxPool, AveragePool, LpPool, MatMul, ...). */
#include "graph/op/nn.h"

#include "graph/op/layout.h"

#include <string.h>

/* --- windows --- */

static bool read_ints(compiler *c, const graph_node *n, const char *name, uint32_t want, int64_t dflt, int64_t least,
                      int64_t *out)
{
    const int64_t *v = NULL;
    uint32_t len = graph_attr_ints(n, name, &v);
    if (len != 0 && len != want)
        return infer_error(c, n, "the length of %s is %u; it has to be %u", name, len, want);
    for (uint32_t i = 0; i < want; i++) {
        out[i] = len ? v[i] : dflt;
        if (out[i] < least || out[i] > INT32_MAX)
            return infer_error(c, n, "%s[%u] is %lld, out of range", name, i, (long long)out[i]);
    }
    return true;
}

static int64_t cut_to(int64_t x, int64_t low, int64_t high)
{
    x = x > low ? x : low;
    return x < high ? x : high;
}

void nn_clip_behind(int64_t first_low, int64_t first_high, int64_t *low, int64_t *high)
{
    int64_t least = cut_to(first_low < first_high ? first_low : first_high, *low, *high);
    *high = cut_to(first_high, *low, *high);
    *low = least;
}

/* 15 bits for M, more where the count has many itself. They do in 32 bits unless so many terms take them, or the half
 * that rounds has no room beside the product. From n = 31 on the half is 2^29 all the same: the product is less. */
nn_mean nn_mean_of(int64_t most, bool known, int64_t scales)
{
    enum { WIDE_BITS = 40 }; /* of M by the count; the largest sum has 30 bits */
    nn_mean m = {.k = 14};
    while (((int64_t)1 << (m.k - 14)) < most && m.k < 23)
        m.k++;
    const int64_t shift = known ? m.k + scales : 31;
    const int64_t product = ((int64_t)255 << m.k) + 128 * most;
    const int64_t half = shift > 30 ? (int64_t)1 << 29 : shift > 0 ? (int64_t)1 << (shift - 1) : 0;
    m.wide = ((int64_t)1 << (m.k - 14)) < most || product + half > INT32_MAX || (shift > 30 && product >= half);
    m.k = m.wide ? WIDE_BITS : m.k;
    return m;
}

bool nn_window_read(compiler *c, const graph_node *n, uint32_t spatial, nn_window *out)
{
    int64_t pads[2 * NN_MAX_SPATIAL];
    out->n = spatial;
    if (spatial > NN_MAX_SPATIAL)
        return infer_error(c, n, "%u spatial axes; at most %u are supported", spatial, NN_MAX_SPATIAL);
    if (!read_ints(c, n, "strides", spatial, 1, 1, out->stride) || !read_ints(c, n, "pads", 2 * spatial, 0, 0, pads))
        return false;
    for (uint32_t i = 0; i < spatial; i++) {
        out->dilation[i] = 1;
        out->pad_begin[i] = pads[i];
        out->pad_end[i] = pads[spatial + i];
    }
    return !graph_attr(n, "dilations") || read_ints(c, n, "dilations", spatial, 1, 1, out->dilation);
}

bool nn_has_border(const graph_node *n)
{
    const int64_t *pads = NULL;
    uint32_t len = graph_attr_ints(n, "pads", &pads);
    for (uint32_t i = 0; i < len; i++)
        if (pads[i] != 0)
            return true;
    return false;
}

int64_t nn_layout_block(const char *text)
{
    tensor_layout l;
    return layout_parse(text, &l) ? l.block[l.n - 1] : 0;
}

void nn_weight_blocks(const graph_node *n, int64_t *out_lanes, int64_t *out_granule)
{
    const char *text = graph_attr_string(n, "weight_layout");
    *out_lanes = layout_text_block(text, 'N');
    *out_granule = layout_text_block(text, 'K');
}

int64_t nn_data_block(const graph_node *n, const char *name)
{
    return graph_attr(n, name) ? layout_text_block(graph_attr_string(n, name), 'C') : 0;
}

bool nn_in_blocks(const graph_node *n)
{
    return nn_data_block(n, "data_layout") || nn_data_block(n, "out_layout");
}

bool nn_check_data_layout(compiler *c, const graph_node *n, const char *name)
{
    if (!graph_attr(n, name))
        return true;
    const char *text = graph_attr_string(n, name);
    tensor_layout l;
    if (strcmp(text, "NCHW") == 0 ||
        (layout_parse(text, &l) && l.n == 5 && strncmp(text, "NCHW", 4) == 0 && l.letter[4] == 'C'))
        return true;
    return infer_error(c, n, "%s %s is neither NCHW nor NCHW with blocks of C behind it", name, text);
}

/* Blocks along dimension `at` of packed weights hold `channels`; dimension `lanes` has `extent` of a block. */
static bool packed_fits(const type *w, uint32_t at, uint32_t lanes, int64_t extent, int64_t block, int64_t channels)
{
    int64_t blocks = 0, room = 0;
    if ((uint32_t)w->shape.rank <= lanes || channels < 0 || !dim_is(w->shape.dims[lanes], extent))
        return false;
    return !dim_is_const(w->shape.dims[at], &blocks) || (i64_mul(blocks, block, &room) && room >= channels);
}

/* The logical channel counts of packed weights. */
static bool read_packed(compiler *c, const graph_node *n, nn_weights *out)
{
    const type *w = infer_in(n, 1);
    uint32_t last = (uint32_t)w->shape.rank - 1, lanes = last - (out->granule != 0);
    int64_t channels = graph_attr_int(n, "channels"), in_channels = graph_attr_int(n, "in_channels");
    if (!packed_fits(w, 0, lanes, out->block, out->block, channels) ||
        (out->granule && !dim_is(w->shape.dims[last], out->granule)))
        return infer_error(c, n, "the packed weights do not hold %lld channels in blocks of %lld", (long long)channels,
                           (long long)out->block);
    int64_t piece = out->in_block / (out->granule ? out->granule : 1);
    if (out->in_block && !packed_fits(w, 1, lanes - 1, piece, out->in_block, in_channels))
        return infer_error(c, n, "the packed weights do not hold %lld input channels in blocks of %lld",
                           (long long)in_channels, (long long)out->in_block);
    out->out_channels = dim_const(c, channels);
    if (out->in_block)
        out->in_per_group = dim_const(c, in_channels);
    return true;
}

/* "OIHW", "OIHW16o", "OIHW16i16o", "OIHW4i16o4i" or "OIHW16o4w". */
static bool read_blocks(const char *text, nn_weights *out)
{
    tensor_layout l;
    *out = (nn_weights){0};
    if (strcmp(text, "OIHW") == 0)
        return true;
    if (!layout_parse(text, &l))
        return false;
    out->block = layout_block(&l, 'O');
    out->in_block = layout_block(&l, 'I');
    uint32_t lanes = layout_find(&l, 'O', true);
    if (out->block && lanes + 2 == l.n && lanes > 0 && l.letter[l.n - 1] == 'I' && l.letter[lanes - 1] == 'I' &&
        l.block[lanes - 1])
        out->granule = l.block[l.n - 1];
    out->in_rows = out->block && !out->in_block && lanes + 2 == l.n && l.letter[l.n - 1] == 'W';
    if (out->in_rows)
        out->granule = l.block[l.n - 1];
    return out->block > 0 && (out->granule || lanes + 1 == l.n);
}

int64_t nn_layout_granule(const char *layout)
{
    nn_weights w;
    return read_blocks(layout, &w) ? w.granule : 0;
}

bool nn_layout_in_rows(const char *layout)
{
    nn_weights w;
    return read_blocks(layout, &w) && w.in_rows;
}

bool nn_weights_read(compiler *c, const graph_node *n, nn_weights *out)
{
    const type *w = infer_in(n, 1);
    const char *text = graph_attr_string(n, "kernel_layout");
    if (!read_blocks(text, out))
        return infer_error(c, n, "kernel_layout %s is not one of OIHW, OIHW16o, OIHW16i16o, OIHW4i16o4i, "
                                 "OIHW16o4w", text);
    uint32_t blocks = (out->block ? 1u : 0u) + (out->in_block ? 1u : 0u) + (out->granule ? 1u : 0u);
    if (w->shape.rank < (int32_t)blocks + 3)
        return infer_error(c, n, "weights of rank %d", w->shape.rank);
    out->spatial = (uint32_t)w->shape.rank - blocks - 2u;
    if (out->spatial > NN_MAX_SPATIAL)
        return infer_error(c, n, "%u spatial axes; at most %u are supported", out->spatial, NN_MAX_SPATIAL);
    out->out_channels = w->shape.dims[0];
    out->in_per_group = w->shape.dims[1];
    if (blocks && !read_packed(c, n, out))
        return false;
    for (uint32_t i = 0; i < out->spatial; i++)
        if (!dim_is_const(w->shape.dims[2 + i], &out->kernel[i]) || out->kernel[i] < 1 || out->kernel[i] > INT32_MAX)
            return infer_error(c, n, "kernel extents must be constants above 0; give the weights a static shape");
    if (out->in_rows && (out->spatial != 2 || !i64_mul(out->kernel[1], out->granule, &out->kernel[1]) ||
                         out->kernel[1] > INT32_MAX))
        return infer_error(c, n, "weights of %lld neighbors in a row are too wide", (long long)out->granule);
    return true;
}

/* Extent of a window sweep over `in` elements; the window spans (k-1)*d+1. */
static dim swept(compiler *c, dim in, const nn_window *w, uint32_t i, bool ceil_mode)
{
    int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
    dim room = dim_add(c, in, dim_const(c, w->pad_begin[i] + w->pad_end[i] - reach));
    dim steps = ceil_mode ? dim_ceildiv(c, room, dim_const(c, w->stride[i]))
                          : dim_floordiv(c, room, dim_const(c, w->stride[i]));
    int64_t s = 0, n = 0;
    if (ceil_mode && dim_is_const(steps, &s) && dim_is_const(in, &n) && s * w->stride[i] >= n + w->pad_begin[i])
        steps = dim_const(c, s - 1); /* a window that would start in the end padding is dropped (ONNX MaxPool-12) */
    else if (ceil_mode && !dim_is_const(steps, &s) && w->stride[i] > reach - w->pad_end[i])
        steps = dim_min(c, steps, dim_floordiv(c, dim_add(c, in, dim_const(c, w->pad_begin[i] - 1)),
                                               dim_const(c, w->stride[i])));
    return dim_add(c, steps, dim_const(c, 1));
}

static bool positive(compiler *c, const graph_node *n, dim d)
{
    int64_t v = 0;
    return !dim_is_const(d, &v) || v > 0 ||
           infer_error(c, n, "the window does not fit into the input (output extent %lld)", (long long)v);
}

/* --- convolution ----------------------------------------------------------------------------------------------------
 */

/* Channels of data against those that the weights ask for: as many, or in blocks as many as fill them. */
static bool channels_fit(compiler *c, const graph_node *n, const nn_weights *nw, int64_t groups)
{
    int64_t have = 0, per_group = 0, outs = 0, block = nn_data_block(n, "data_layout");
    if (groups < 1)
        return infer_error(c, n, "groups is %lld", (long long)groups);
    const dim data = infer_in(n, 0)->shape.dims[1];
    dim want = dim_mul(c, nw->in_per_group, dim_const(c, groups));
    if (block)
        want = dim_ceildiv(c, want, dim_const(c, block));
    (void)dim_is_const(data, &have);
    (void)dim_is_const(nw->in_per_group, &per_group);
    (void)dim_is_const(nw->out_channels, &outs);
    if (!infer_extents(c, data, EXTENTS_EQUAL, want, "channels of data and weights"))
        return infer_error(c, n, "data has %lld %s, weights ask for %lld x %lld groups", (long long)have,
                           block ? "blocks of channels" : "channels", (long long)per_group, (long long)groups);
    if (!infer_extents(c, nw->out_channels, EXTENTS_MULTIPLE, dim_const(c, groups), "channels and groups"))
        return infer_error(c, n, "%lld output channels do not divide into %lld groups", (long long)outs,
                           (long long)groups);
    return true;
}

static bool conv_type(compiler *c, const graph_node *n, dtype dt, type *out)
{
    const type *x = infer_in(n, 0);
    nn_weights nw;
    nn_window win;
    if (!nn_weights_read(c, n, &nw) || !nn_check_data_layout(c, n, "data_layout") ||
        !nn_check_data_layout(c, n, "out_layout"))
        return false;
    int64_t in_block = nn_data_block(n, "data_layout"), block = nn_data_block(n, "out_layout");
    uint32_t rank = nw.spatial + 2 + (in_block != 0);
    if (x->shape.rank != (int32_t)rank)
        return infer_error(c, n, "data has rank %d, weights ask for %u", x->shape.rank, rank);
    if (in_block && !dim_is(x->shape.dims[rank - 1], in_block))
        return infer_error(c, n, "data has no blocks of %lld channels", (long long)in_block);
    if (!nn_window_read(c, n, nw.spatial, &win) || !channels_fit(c, n, &nw, graph_attr_int(n, "groups")))
        return false;
    memcpy(win.kernel, nw.kernel, sizeof win.kernel);
    dim d[3 + NN_MAX_SPATIAL] = {x->shape.dims[0], nw.out_channels};
    if (block)
        d[1] = dim_ceildiv(c, nw.out_channels, dim_const(c, block));
    for (uint32_t i = 0; i < nw.spatial; i++) {
        d[2 + i] = swept(c, x->shape.dims[2 + i], &win, i, false);
        if (!positive(c, n, d[2 + i]))
            return false;
    }
    d[2 + nw.spatial] = dim_const(c, block);
    out[0] = type_tensor(dt, shape_make(c, 2 + nw.spatial + (block != 0), d));
    return true;
}

bool infer_conv(compiler *c, const graph_node *n, type *out)
{
    return conv_type(c, n, infer_in(n, 0)->dt, out);
}

/* Sums are i32 or i64. */
static bool sums_type(compiler *c, const graph_node *n, dtype *out)
{
    *out = graph_attr(n, "out_dtype") ? graph_attr_dtype(n, "out_dtype") : DT_I32;
    return *out == DT_I32 || *out == DT_I64 || infer_error(c, n, "sums are i32 or i64, not %s", dtype_name(*out));
}

/* Products of numbers of up to 16 bits, summed in i32. */
static bool are_narrow(compiler *c, const graph_node *n)
{
    for (uint32_t i = 0; i < 2; i++)
        if (dtype_bits(infer_in(n, i)->dt) > 16)
            return infer_error(c, n, "operand %u is %s; quantized numbers have 16 bits or less", i,
                               dtype_name(infer_in(n, i)->dt));
    return true;
}

static bool is_one(const type *t)
{
    return shape_count(t->shape) == 1;
}

/* Operand i, a zero point: one number, or one for each of `extent`. */
static bool zeros_fit(compiler *c, const graph_node *n, uint32_t i, dim extent)
{
    const type *t = infer_in(n, i);
    if (!t || is_one(t) || (t->shape.rank == 1 && dim_equal(t->shape.dims[0], extent)))
        return true;
    return infer_error(c, n, "operand %u is neither one number nor one for each channel or line", i);
}

bool nn_pairs_fit(dtype data, const tensor_data *w, uint32_t axis)
{
    const int64_t most = data == DT_I8 ? 255 : 128;
    int64_t step = 1;
    for (uint32_t i = axis + 1; i < w->rank; i++)
        step *= w->dims[i];
    const int64_t count = w->kind == TENSOR_SPLAT && w->count > 1 ? 1 : w->count; /* all are alike */
    for (int64_t at = 0; at < count; at++) {
        const int64_t k = at / step % w->dims[axis];
        if (k % 2 != 0 || k + 1 == w->dims[axis])
            continue;
        const int64_t a = tensor_get_i64(w, at), b = tensor_get_i64(w, at + step);
        const int64_t above = (a > 0 ? a : 0) + (b > 0 ? b : 0), below = (a < 0 ? -a : 0) + (b < 0 ? -b : 0);
        if (data == DT_I8 ? above + below > most : above > most || below > most)
            return false;
    }
    return true;
}

/* Both operands are bytes where they are widened to 16 bits before they are multiplied. */
static bool widens_bytes(compiler *c, const graph_node *n)
{
    const bool bytes = dtype_bits(infer_in(n, 0)->dt) == 8 && dtype_bits(infer_in(n, 1)->dt) == 8;
    return bytes || graph_attr_int(n, "wide") == 0 ||
           infer_error(c, n, "the attribute wide is only for operands of 8 bits; leave it out");
}

bool nn_pairs_kept(compiler *c, const graph_node *n)
{
    const graph_value *v = n->inputs[1];
    const tensor_data *w = graph_constant(v);
    int64_t lanes = 0, granule = 0;
    if (graph_attr(n, "kernel_layout"))
        granule = nn_layout_granule(graph_attr_string(n, "kernel_layout"));
    else
        nn_weight_blocks(n, &lanes, &granule);
    return granule == 0 || graph_attr_int(n, "pairs") == 0 ||
           (w ? w->rank > 0 && nn_pairs_fit(n->inputs[0]->type.dt, w, w->rank - 1)
              : !nn_nibbles_exceed(v, NN_PAIRS_BOUND)) ||
           infer_error(c, n, "pairs = 1, but products by two neighboring weights do not fit into 16 bits");
}

bool infer_qnn_conv(compiler *c, const graph_node *n, type *out)
{
    nn_weights nw;
    dtype dt;
    return are_narrow(c, n) && sums_type(c, n, &dt) && conv_type(c, n, dt, out) && nn_weights_read(c, n, &nw) &&
           zeros_fit(c, n, 3, nw.out_channels) && nn_pairs_kept(c, n) && widens_bytes(c, n);
}

static bool transpose_axis(compiler *c, const graph_node *n, nn_transpose_window *t, uint32_t i, dim in,
                           int64_t out_pad, int64_t want)
{
    nn_window *w = &t->w;
    const char *ap = graph_attr_string(n, "auto_pad");
    bool same = strncmp(ap, "SAME", 4) == 0;
    int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1, out = 0;
    dim steps = dim_mul(c, in, dim_const(c, w->stride[i]));
    dim full = dim_add(c, steps, dim_const(c, out_pad + reach - w->stride[i]));
    t->out[i] = want >= 0 ? dim_const(c, want) : same ? steps : NULL;
    if (!t->out[i]) {
        t->out[i] = dim_sub(c, full, dim_const(c, w->pad_begin[i] + w->pad_end[i]));
        t->begin[i] = dim_const(c, w->pad_begin[i]);
    } else { /* what is cut off of the sweep; rows beyond it stay zero */
        dim total = dim_max(c, dim_sub(c, full, t->out[i]), dim_const(c, 0));
        /* the odd one stands at the head, but for SAME_UPPER: output_shape alone as well */
        dim odd = dim_const(c, strcmp(ap, "SAME_UPPER") == 0 ? 0 : 1);
        t->begin[i] = dim_floordiv(c, dim_add(c, total, odd), dim_const(c, 2));
        if (!dim_is_const(t->begin[i], &w->pad_begin[i]) ||
            !dim_is_const(dim_sub(c, total, t->begin[i]), &w->pad_end[i]))
            w->pad_begin[i] = w->pad_end[i] = -1;
    }
    return !dim_is_const(t->out[i], &out) || out > 0 || infer_error(c, n, "output extent %lld", (long long)out);
}

bool nn_transpose_window_read(compiler *c, const graph_node *n, nn_transpose_window *out)
{
    const type *x = infer_in(n, 0), *w = infer_in(n, 1);
    uint32_t spatial = (uint32_t)(x->shape.rank < 2 ? 0 : x->shape.rank - 2);
    int64_t out_pad[NN_MAX_SPATIAL], want[NN_MAX_SPATIAL];
    if (spatial < 1 || w->shape.rank != x->shape.rank)
        return infer_error(c, n, "data of rank %d with weights of rank %d", x->shape.rank, w->shape.rank);
    if (!nn_window_read(c, n, spatial, &out->w) || !read_ints(c, n, "output_padding", spatial, 0, 0, out_pad) ||
        !read_ints(c, n, "output_shape", spatial, -1, -1, want))
        return false;
    for (uint32_t i = 0; i < spatial; i++) {
        int64_t in = 0;
        if (!dim_is_const(w->shape.dims[2 + i], &out->w.kernel[i]))
            return infer_error(c, n, "the extents of the window must be constants; fix them with --shape or --dim");
        (void)dim_is_const(x->shape.dims[2 + i], &in);
        if (out->w.kernel[i] < 1 || out->w.kernel[i] > INT32_MAX || in > INT32_MAX)
            return infer_error(c, n, "kernel extent %lld over %lld elements is out of range",
                               (long long)out->w.kernel[i], (long long)in);
        if (!transpose_axis(c, n, out, i, x->shape.dims[2 + i], out_pad[i], want[i]))
            return false;
    }
    return true;
}

static bool conv_transpose_type(compiler *c, const graph_node *n, dtype dt, type *out)
{
    const type *x = infer_in(n, 0), *w = infer_in(n, 1);
    nn_transpose_window t;
    if (!nn_transpose_window_read(c, n, &t))
        return false;
    int64_t groups = graph_attr_int(n, "groups"), cin = 0, wi = 0;
    if (groups < 1)
        return infer_error(c, n, "groups is %lld", (long long)groups);
    (void)dim_is_const(x->shape.dims[1], &cin);
    (void)dim_is_const(w->shape.dims[0], &wi);
    if (!infer_extents(c, x->shape.dims[1], EXTENTS_EQUAL, w->shape.dims[0], "channels of data and weights") ||
        !infer_extents(c, x->shape.dims[1], EXTENTS_MULTIPLE, dim_const(c, groups), "channels and groups"))
        return infer_error(c, n, "data has %lld channels, weights %lld, groups %lld", (long long)cin, (long long)wi,
                           (long long)groups);
    dim d[2 + NN_MAX_SPATIAL] = {x->shape.dims[0], dim_mul(c, w->shape.dims[1], dim_const(c, groups))};
    for (uint32_t i = 0; i < t.w.n; i++)
        d[2 + i] = t.out[i];
    out[0] = type_tensor(dt, shape_make(c, 2 + t.w.n, d));
    return true;
}

bool infer_conv_transpose(compiler *c, const graph_node *n, type *out)
{
    return conv_transpose_type(c, n, infer_in(n, 0)->dt, out);
}

bool infer_qnn_conv_transpose(compiler *c, const graph_node *n, type *out)
{
    dtype dt;
    return are_narrow(c, n) && sums_type(c, n, &dt) && conv_transpose_type(c, n, dt, out) &&
           zeros_fit(c, n, 3, out[0].shape.dims[1]);
}

/* --- pools ----------------------------------------------------------------------------------------------------------
 */

static bool pool_shape(compiler *c, const graph_node *n, shape *out)
{
    const type *x = infer_in(n, 0);
    nn_window w;
    if (!nn_check_data_layout(c, n, "data_layout"))
        return false;
    int64_t block = nn_data_block(n, "data_layout");
    int32_t least = block ? 4 : 3;
    if (x->shape.rank < least)
        return infer_error(c, n, "data of rank %d; at least %d is needed", x->shape.rank, least);
    if (block && !dim_is(x->shape.dims[x->shape.rank - 1], block))
        return infer_error(c, n, "data has no blocks of %lld channels", (long long)block);
    uint32_t spatial = (uint32_t)(x->shape.rank - least + 1);
    if (!nn_window_read(c, n, spatial, &w) || !read_ints(c, n, "pool_size", spatial, 1, 1, w.kernel))
        return false;
    bool ceil_mode = graph_attr_int(n, "ceil_mode") != 0;
    dim d[3 + NN_MAX_SPATIAL] = {x->shape.dims[0], x->shape.dims[1]};
    for (uint32_t i = 0; i < spatial; i++) {
        d[2 + i] = swept(c, x->shape.dims[2 + i], &w, i, ceil_mode);
        if (!positive(c, n, d[2 + i]))
            return false;
    }
    d[2 + spatial] = dim_const(c, block);
    *out = shape_make(c, 2 + spatial + (block != 0), d);
    return true;
}

bool infer_pool(compiler *c, const graph_node *n, type *out)
{
    shape s;
    if (!pool_shape(c, n, &s))
        return false;
    out[0] = type_tensor(infer_in(n, 0)->dt, s);
    return true;
}

bool infer_pool_indices(compiler *c, const graph_node *n, type *out)
{
    shape s;
    if (!pool_shape(c, n, &s))
        return false;
    out[0] = type_tensor(DT_I64, s);
    return true;
}

/* An index for each element. */
static bool same_extents(compiler *c, const graph_node *n, const type *x, const type *indices)
{
    bool same = indices->shape.rank == x->shape.rank;
    for (int32_t i = 0; same && i < x->shape.rank; i++)
        same = infer_extents(c, indices->shape.dims[i], EXTENTS_EQUAL, x->shape.dims[i], "data and indices");
    return same || infer_error(c, n, "indices must have the data's shape");
}

bool infer_max_unpool(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0), *dec = infer_declared(n, 0);
    nn_window w;
    int64_t want[TYPE_MAX_RANK];
    uint32_t rank = (uint32_t)(x->shape.rank < 3 ? 0 : x->shape.rank), nw = 0;
    if (rank < 3)
        return infer_error(c, n, "data of rank %d; at least 3 is needed", x->shape.rank);
    if (!nn_window_read(c, n, rank - 2, &w) || !read_ints(c, n, "pool_size", rank - 2, 1, 1, w.kernel) ||
        !same_extents(c, n, x, infer_in(n, 1)))
        return false;
    if (graph_operand(n, 2)) {
        int64_t len = 0;
        const dim entries = infer_in(n, 2)->shape.dims[0];
        (void)dim_is_const(entries, &len);
        if (!infer_extents(c, entries, EXTENTS_EQUAL, dim_const(c, rank), "output_shape and data"))
            return infer_error(c, n, "output_shape has %lld entries for rank %u", (long long)len, rank);
        if (graph_constant_ints(n->inputs[2], TYPE_MAX_RANK, want, &nw) && nw == rank)
            out[0] = type_static(c, x->dt, rank, want);
        else if (dec && dec->shape.rank == x->shape.rank)
            out[0] = type_tensor(x->dt, dec->shape);
        else
            return infer_error(c, n, "output_shape is neither constant nor declared");
        return true;
    }
    dim d[2 + NN_MAX_SPATIAL] = {x->shape.dims[0], x->shape.dims[1]};
    for (uint32_t i = 0; i < rank - 2; i++) { /* (in - 1) * stride + kernel - pads */
        dim sweep = dim_mul(c, dim_sub(c, x->shape.dims[2 + i], dim_const(c, 1)), dim_const(c, w.stride[i]));
        d[2 + i] = dim_add(c, sweep, dim_const(c, w.kernel[i] - w.pad_begin[i] - w.pad_end[i]));
    }
    out[0] = type_tensor(x->dt, shape_make(c, rank, d));
    return true;
}

/* --- matrix products
 * -------------------------------------------------------------------------------------------------- */

/* numpy.matmul: rank-1 operands gain an axis that the result loses; leading axes broadcast. */
static bool matmul_type(compiler *c, const graph_node *n, dtype dt, type *out)
{
    const type *a = infer_in(n, 0), *b = infer_in(n, 1);
    bool ta = graph_attr_int(n, "transpose_a") != 0, tb = graph_attr_int(n, "transpose_b") != 0;
    int64_t block, granule;
    nn_weight_blocks(n, &block, &granule);
    int32_t ra = a->shape.rank, rb = block ? 2 : b->shape.rank;
    if (ra < 1 || rb < 1)
        return infer_error(c, n, "operands must have rank 1 or more, not %d and %d", ra, rb);
    if (block && (b->shape.rank != 3 + (granule != 0) || (granule && !dim_is(b->shape.dims[3], granule)) ||
                  !packed_fits(b, 0, 2, block, block, graph_attr_int(n, "units"))))
        return infer_error(c, n, "the packed operand does not hold %lld columns in blocks of %lld",
                           (long long)graph_attr_int(n, "units"), (long long)block);
    const dim *da = a->shape.dims, *db = b->shape.dims;
    dim ka = ra == 1 ? da[0] : da[ta ? ra - 2 : ra - 1];
    dim kb = granule   ? dim_mul(c, db[1], dim_const(c, granule))
             : block   ? db[1]
             : rb == 1 ? db[0]
                       : db[tb ? rb - 1 : rb - 2];
    int64_t x = 0, y = 0;
    (void)dim_is_const(ka, &x);
    (void)dim_is_const(kb, &y);
    if (!infer_extents(c, ka, EXTENTS_EQUAL, kb, "rows and columns"))
        return infer_error(c, n, "inner extents differ: %lld and %lld", (long long)x, (long long)y);
    shape lead, la = {ra > 2 ? ra - 2 : 0, da}, lb = {rb > 2 ? rb - 2 : 0, db};
    if (!shape_broadcast(c, la, lb, &lead))
        return infer_no_broadcast(c, n, a, b);
    infer_leads_to(c, la, lead);
    infer_leads_to(c, lb, lead);
    dim d[TYPE_MAX_RANK];
    uint32_t r = (uint32_t)lead.rank;
    memcpy(d, lead.dims, r * sizeof *d);
    if (ra > 1)
        d[r++] = da[ta ? ra - 1 : ra - 2];
    if (block)
        d[r++] = dim_const(c, graph_attr_int(n, "units"));
    else if (rb > 1)
        d[r++] = db[tb ? rb - 2 : rb - 1];
    out[0] = type_tensor(dt, shape_make(c, r, d));
    return true;
}

bool infer_matmul(compiler *c, const graph_node *n, type *out)
{
    dtype od = graph_attr_dtype(n, "out_dtype");
    return matmul_type(c, n, od == DT_NONE ? infer_in(n, 0)->dt : od, out);
}

/* Zero points of operand i: one, one for each of `lines`, or with the operand's rank. */
static bool product_zeros_fit(compiler *c, const graph_node *n, uint32_t i, dim lines)
{
    const type *x = infer_in(n, i), *zero = infer_in(n, 2 + i);
    if (!zero || zero->shape.rank < 2 || is_one(zero))
        return zeros_fit(c, n, 2 + i, lines);
    bool fits = zero->shape.rank == x->shape.rank;
    for (int32_t k = 0; fits && k < x->shape.rank; k++)
        fits = dim_is(zero->shape.dims[k], 1) || dim_equal(zero->shape.dims[k], x->shape.dims[k]);
    return fits || infer_no_broadcast_to(c, n, zero, x);
}

/* Operands that are widened as they are (te/op/product_pairs.h). */
static bool pairs_fit(compiler *c, const graph_node *n, int64_t packed, dtype sums)
{
    bool fits = infer_in(n, 0)->shape.rank >= 2 && infer_in(n, 1)->shape.rank >= 2 && sums == DT_I32;
    for (uint32_t i = 2; i < n->n_inputs; i++)
        fits = fits && (!n->inputs[i] || shape_count(infer_in(n, i)->shape) == 1);
    return fits || packed || graph_attr_int(n, "wide") == 0 ||
           infer_error(c, n, "the attribute wide is only for packed weights, or for matrices with one zero point each, "
                             "whose sums are i32; leave it out");
}

bool infer_qnn_matmul(compiler *c, const graph_node *n, type *out)
{
    const type *a = infer_in(n, 0), *b = infer_in(n, 1);
    dtype dt;
    if (!are_narrow(c, n) || !sums_type(c, n, &dt) || !matmul_type(c, n, dt, out))
        return false;
    int32_t ra = a->shape.rank, rb = b->shape.rank;
    bool ta = graph_attr_int(n, "transpose_a") != 0, tb = graph_attr_int(n, "transpose_b") != 0;
    int64_t packed, granule;
    nn_weight_blocks(n, &packed, &granule);
    dim one = dim_const(c, 1), rows = ra < 2 ? one : a->shape.dims[ta ? ra - 1 : ra - 2];
    dim columns = packed   ? dim_const(c, graph_attr_int(n, "units"))
                  : rb < 2 ? one
                           : b->shape.dims[tb ? rb - 2 : rb - 1];
    return product_zeros_fit(c, n, 0, rows) && product_zeros_fit(c, n, 1, columns) && nn_pairs_kept(c, n) &&
           widens_bytes(c, n) && pairs_fit(c, n, packed, dt);
}

/* --- normalisations
 * --------------------------------------------------------------------------------------------------- */

/* Operands 1 and on have the extent `channels`. */
static bool per_channel(compiler *c, const graph_node *n, dim channels)
{
    int64_t a = 0, b = 0;
    for (uint32_t i = 1; i < n->n_inputs; i++) {
        const type *t = infer_in(n, i);
        (void)dim_is_const(channels, &a);
        (void)dim_is_const(t->shape.dims[0], &b);
        if (!infer_extents(c, t->shape.dims[0], EXTENTS_EQUAL, channels, "channels of data and parameters"))
            return infer_error(c, n, "operand %u has %lld entries for %lld channels", i, (long long)b, (long long)a);
    }
    return true;
}

bool infer_batch_norm(compiler *c, const graph_node *n, type *out)
{
    shape x = infer_in(n, 0)->shape;
    if (x.rank < 1)
        return infer_error(c, n, "the input has no channels");
    return per_channel(c, n, x.dims[x.rank > 1 ? 1 : 0]) && infer_same(c, n, out);
}

bool infer_group_norm(compiler *c, const graph_node *n, type *out)
{
    shape x = infer_in(n, 0)->shape;
    int64_t groups = graph_attr_int(n, "num_groups"), channels = 0;
    if (x.rank >= 2)
        (void)dim_is_const(x.dims[1], &channels);
    if (x.rank < 2 || groups < 1 ||
        !infer_extents(c, x.dims[1], EXTENTS_MULTIPLE, dim_const(c, groups), "channels and groups"))
        return infer_error(c, n, "rank %d, %lld channels in %lld groups", x.rank, (long long)channels,
                           (long long)groups);
    return per_channel(c, n, x.dims[1]) && infer_same(c, n, out);
}

/* Operands 1 and on broadcast to the data, never the other way round. */
static bool scales_fit(compiler *c, const graph_node *n)
{
    bool ok = true;
    for (uint32_t i = 1; ok && i < n->n_inputs; i++)
        ok = !infer_in(n, i) || infer_stretched(c, n, i, infer_in(n, 0)->shape);
    return ok;
}

bool infer_rms_norm(compiler *c, const graph_node *n, type *out)
{
    int32_t axis = 0;
    return infer_same(c, n, out) && infer_axis(c, n, graph_attr_int(n, "axis"), infer_in(n, 0)->shape.rank, &axis) &&
           scales_fit(c, n);
}

bool infer_layer_norm(compiler *c, const graph_node *n, type *out)
{
    const type *x = infer_in(n, 0);
    int32_t axis = 0;
    if (!infer_same(c, n, out) || !infer_axis(c, n, graph_attr_int(n, "axis"), x->shape.rank, &axis) ||
        !scales_fit(c, n))
        return false;
    dim d[TYPE_MAX_RANK];
    for (int32_t i = 0; i < x->shape.rank; i++)
        d[i] = i < axis ? x->shape.dims[i] : dim_const(c, 1);
    for (uint32_t i = 1; i < n->n_outputs; i++)
        out[i] = type_tensor(x->dt == DT_F64 ? DT_F64 : DT_F32, shape_make(c, (uint32_t)x->shape.rank, d));
    return true;
}
