/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of convolution, pooling, matrix products and recurrences. auto_pad is resolved here into pads. */
#include "frontend/onnx/onnx_import.h"

#include <math.h>
#include <string.h>

#define MAX_SPATIAL 8u

/* --- windows --- */

typedef struct window {
    uint32_t n; /* spatial axes */
    int64_t kernel[MAX_SPATIAL], stride[MAX_SPATIAL], dilation[MAX_SPATIAL], pads[2 * MAX_SPATIAL];
    bool open[MAX_SPATIAL], upper; /* axes whose pads only a run tells */
} window;

static void read_list(onnx_node *n, const char *name, uint32_t want, int64_t dflt, int64_t least, int64_t *out)
{
    const int64_t *v = NULL;
    uint32_t len = onnx_attr_ints(n, name, &v);
    if (len != 0 && len != want)
        onnx_fail(n, DIAG_FORMAT, "%s has %u entries; %u are needed", name, len, want);
    for (uint32_t i = 0; i < want && !n->failed; i++) {
        out[i] = len ? v[i] : dflt;
        if (out[i] < least || out[i] > INT32_MAX)
            onnx_fail(n, DIAG_FORMAT, "%s[%u] is %lld, out of range", name, i, (long long)out[i]);
    }
}

/* ONNX auto_pad: as many outputs as ceil(extent / stride); the odd one at the end (SAME_UPPER) or the beginning. Where
 * strides meet an extent that is not known, the pads are not known either: the axis is left to pad_open. */
static void pad_same(onnx_node *n, graph_value *x, window *w, bool upper)
{
    for (uint32_t i = 0; i < w->n && !n->failed; i++) {
        int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1, total = reach - w->stride[i], in = 0;
        if (w->stride[i] != 1) {
            w->open[i] = reach > 1 && !dim_is_const(onnx_dim(n, x, 2 + i), &in);
            in = w->open[i] || reach == 1 ? 0 : onnx_static_dim(n, x, 2 + i);
            total = ((in + w->stride[i] - 1) / w->stride[i] - 1) * w->stride[i] + reach - in;
        }
        total = total < 0 || w->open[i] || reach == 1 ? 0 : total;
        w->pads[i] = upper ? total / 2 : total - total / 2;
        w->pads[w->n + i] = total - w->pads[i];
    }
    w->upper = upper;
}

/* The pads of an axis whose extent a run tells, i64[1]: ceil(extent / stride) windows have so many elements in all.
 * What no window reaches is cut off behind, so that the result has as many windows by its type, too. */
static void pads_of_open(onnx_node *n, graph_value *x, const window *w, uint32_t axis, graph_value **begin,
                         graph_value **end)
{
    const int64_t stride = w->stride[axis], reach = (w->kernel[axis] - 1) * w->dilation[axis] + 1, two = 2;
    const attr part[2] = {attr_int(n->c, "start", 2 + axis), attr_int(n->c, "end", 3 + axis)};
    const int64_t above = stride - 1, over = reach - stride, zero = 0;
    graph_value *extent = onnx_emit(n, ONNX_ARGS("shape_of", 2, part, x));
    graph_value *step = onnx_const_ints(n, 1, &stride);
    graph_value *windows = onnx_binary(n, "add", extent, onnx_const_ints(n, 1, &above));
    windows = onnx_binary(n, "divide", windows, step);
    graph_value *total = onnx_binary(n, "multiply", windows, step);
    total = onnx_binary(n, "add", total, onnx_const_ints(n, 1, &over));
    total = onnx_binary(n, "subtract", total, extent);
    graph_value *added = over < 0 ? onnx_binary(n, "maximum", total, onnx_const_ints(n, 1, &zero)) : total;
    graph_value *half = onnx_binary(n, "divide", added, onnx_const_ints(n, 1, &two));
    *begin = w->upper ? half : onnx_binary(n, "subtract", added, half);
    *end = onnx_binary(n, "subtract", total, *begin);
}

/* x with the pads that only a run tells; fill: NULL for 0. */
static graph_value *pad_open(onnx_node *n, graph_value *x, const window *w, graph_value *fill)
{
    graph_value *pads[2 * MAX_SPATIAL];
    int64_t axes[MAX_SPATIAL];
    uint32_t count = 0;
    for (uint32_t i = 0; i < w->n; i++)
        if (w->open[i])
            axes[count++] = 2 + i;
    for (uint32_t i = 0; i < count; i++)
        pads_of_open(n, x, w, (uint32_t)axes[i] - 2, &pads[i], &pads[count + i]);
    if (count == 0 || n->failed)
        return x;
    graph_value *all = onnx_concat(n, 2 * count, pads, 0);
    graph_value *at = onnx_const_ints(n, count, axes);
    return onnx_emit(n, ONNX_ARGS("nn.pad", 0, NULL, x, all, fill, at));
}

static bool has_open_pads(const window *w)
{
    bool open = false;
    for (uint32_t i = 0; i < w->n; i++)
        open |= w->open[i];
    return open;
}

/* For operators that cannot have pads that only a run tells. */
static bool refuse_open_pads(onnx_node *n, graph_value *x, const window *w)
{
    for (uint32_t i = 0; i < w->n && !n->failed; i++)
        if (w->open[i])
            onnx_static_dim(n, x, 2 + i);
    return !n->failed;
}

/* Everything but the kernel, which the caller sets before or leaves to the attribute. */
static bool read_window(onnx_node *n, graph_value *x, bool own_kernel, window *w)
{
    const char *ap = onnx_attr_string(n, "auto_pad", "NOTSET");
    uint32_t rank = onnx_rank(x);
    if (rank < 3 || rank > 5)
        return onnx_fail(n, DIAG_UNSUPPORTED, "data of %u dimensions; 1 to 3 spatial axes are supported", rank);
    w->n = rank - 2;
    if (!own_kernel && !onnx_has_attr(n, "kernel_shape"))
        return onnx_fail(n, DIAG_FORMAT, "attribute 'kernel_shape' is missing");
    int64_t kernel[MAX_SPATIAL];
    read_list(n, "kernel_shape", w->n, 1, 1, kernel);
    if (!own_kernel)
        memcpy(w->kernel, kernel, sizeof kernel);
    read_list(n, "strides", w->n, 1, 1, w->stride);
    read_list(n, "dilations", w->n, 1, 1, w->dilation);
    read_list(n, "pads", 2 * w->n, 0, 0, w->pads);
    if (n->failed)
        return false;
    if (strcmp(ap, "SAME_UPPER") == 0 || strcmp(ap, "SAME_LOWER") == 0)
        pad_same(n, x, w, strcmp(ap, "SAME_UPPER") == 0);
    else if (strcmp(ap, "VALID") == 0)
        memset(w->pads, 0, sizeof w->pads);
    else if (strcmp(ap, "NOTSET") != 0 && *ap)
        onnx_fail(n, DIAG_FORMAT, "auto_pad '%s' is not known", ap);
    return !n->failed;
}

static const char *with_rank(onnx_node *n, const char *stem, uint32_t spatial, const char *tail)
{
    return arena_printf(&n->c->mem, "%s%ud%s", stem, spatial, tail);
}

/* --- convolution --- */

/* One value per channel, laid out for broadcasting over N, C, spatial. */
static graph_value *per_channel(onnx_node *n, graph_value *v, uint32_t spatial)
{
    int64_t ones[MAX_SPATIAL];
    for (uint32_t i = 0; i < spatial; i++)
        ones[i] = 1 + i;
    if (onnx_rank(v) != 1)
        return onnx_refuse(n, DIAG_TYPE, "one value per channel is needed, not %u dimensions", onnx_rank(v));
    return onnx_expand_dims(n, v, spatial, ones);
}

static bool conv_kernel(onnx_node *n, graph_value *w, window *win)
{
    uint32_t rank = onnx_rank(w);
    if (rank < 3 || rank > 5)
        return onnx_fail(n, DIAG_UNSUPPORTED, "weights of %u dimensions; 1 to 3 spatial axes are supported", rank);
    for (uint32_t i = 0; i + 2 < rank; i++)
        win->kernel[i] = onnx_static_dim(n, w, 2 + i);
    return !n->failed;
}

graph_value *onnx_conv(onnx_node *n, const char *stem, uint32_t n_in, graph_value *const *in, graph_value *bias)
{
    window win = {0};
    if (!conv_kernel(n, in[1], &win) || !read_window(n, in[0], true, &win))
        return onnx_nothing(n);
    compiler *c = n->c;
    graph_value *operands[4] = {pad_open(n, in[0], &win, n_in > 2 ? in[2] : NULL)};
    memcpy(operands + 1, in + 1, (n_in - 1) * sizeof *in);
    attr a[4] = {attr_ints(c, "strides", win.n, win.stride), attr_ints(c, "pads", 2 * win.n, win.pads),
                 attr_ints(c, "dilations", win.n, win.dilation), attr_int(c, "groups", onnx_attr_int(n, "group", 1))};
    graph_value *y = onnx_emit(n, (onnx_args){with_rank(n, stem, win.n, ""), n_in, operands, 4, a});
    return bias ? onnx_binary(n, "add", y, per_channel(n, bias, win.n)) : y;
}

bool onnx_op_conv(onnx_node *n)
{
    graph_value *in[2] = {onnx_in(n, 0), onnx_in(n, 1)};
    return onnx_alias(n, 0, onnx_conv(n, "nn.conv", 2, in, onnx_optional(n, 2)));
}

bool onnx_op_conv_transpose(onnx_node *n)
{
    graph_value *x = onnx_in(n, 0), *w = onnx_in(n, 1);
    compiler *c = n->c;
    uint32_t spatial = onnx_rank(x) - 2, count = 2;
    attr a[8] = {attr_int(c, "groups", onnx_attr_int(n, "group", 1)),
                 attr_string(c, "auto_pad", onnx_attr_string(n, "auto_pad", "NOTSET"))};
    static const char *const lists[] = {"strides", "pads", "dilations", "output_padding", "output_shape"};
    if (onnx_rank(x) < 3 || onnx_rank(x) > 5)
        return onnx_fail(n, DIAG_UNSUPPORTED, "data of %u dimensions; 1 to 3 spatial axes are supported", onnx_rank(x));
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        if (onnx_attr_convert(n, lists[i], lists[i], ATTR_INTS, &a[count]))
            count++;
    (void)onnx_has_attr(n, "kernel_shape"); /* the weights have it too */
    graph_value *y = onnx_emit(n, ONNX_ARGS(with_rank(n, "nn.conv", spatial, "_transpose"), count, a, x, w));
    if (onnx_optional(n, 2))
        y = onnx_binary(n, "add", y, per_channel(n, onnx_optional(n, 2), spatial));
    return onnx_alias(n, 0, y);
}

/* Depthwise convolution over what came before and what comes now; the end of it is the next call's past. */
bool onnx_op_causal_conv(onnx_node *n)
{
    graph_value *x = onnx_in(n, 0), *w = onnx_in(n, 1), *past = onnx_optional(n, 3);
    const char *act = onnx_attr_string(n, "activation", "none");
    if (onnx_rank(x) != 3 || onnx_rank(w) != 3)
        return onnx_fail(n, DIAG_TYPE, "data and weights must have three dimensions");
    int64_t before = onnx_static_dim(n, w, 2) - 1, length = onnx_static_dim(n, x, 2), pads[6] = {0, 0, before, 0, 0, 0};
    attr groups = attr_int(n->c, "groups", onnx_static_dim(n, x, 1));
    graph_value *both[2] = {past, x};
    if (past)
        x = onnx_concat(n, 2, both, 2);
    else
        x = onnx_binary(n, "nn.pad", x, onnx_const_ints(n, 6, pads));
    graph_value *y = onnx_emit(n, ONNX_ARGS("nn.conv1d", 1, &groups, x, w));
    if (onnx_optional(n, 2))
        y = onnx_binary(n, "add", y, per_channel(n, onnx_optional(n, 2), 1));
    if (strcmp(act, "silu") == 0 || strcmp(act, "swish") == 0)
        y = onnx_unary(n, "swish", y);
    else if (strcmp(act, "none") != 0)
        return onnx_fail(n, DIAG_FORMAT, "activation '%s' is not known", act);
    onnx_alias(n, 0, y);
    return onnx_alias(n, 1, n->n_out > 1 ? onnx_slice(n, x, 2, length, length + before) : y);
}

/* --- pooling --- */

static uint32_t pool_attrs(onnx_node *n, const window *w, attr *a)
{
    compiler *c = n->c;
    a[0] = attr_ints(c, "pool_size", w->n, w->kernel);
    a[1] = attr_ints(c, "strides", w->n, w->stride);
    a[2] = attr_ints(c, "pads", 2 * w->n, w->pads);
    a[3] = attr_ints(c, "dilations", w->n, w->dilation);
    a[4] = attr_int(c, "ceil_mode", onnx_attr_int(n, "ceil_mode", 0));
    return 5;
}

/* LpPool-1 has a float p. */
static int64_t norm_order(onnx_node *n)
{
    if (n->version >= 2)
        return onnx_attr_int(n, "p", 2);
    double p = onnx_attr_float(n, "p", 2);
    if (p < 1 || p > 64 || p != (double)(int64_t)p)
        onnx_fail(n, DIAG_UNSUPPORTED, "p must be a whole number");
    return n->failed ? 2 : (int64_t)p;
}

/* 1 in one channel of one image, as high and wide as x. */
static graph_value *ones_of(onnx_node *n, graph_value *x)
{
    const int64_t one[2] = {1, 1};
    const attr part[2] = {attr_int(n->c, "start", 2), attr_int(n->c, "end", onnx_rank(x))};
    graph_value *extents[2] = {onnx_const_ints(n, 2, one), NULL}, *number = onnx_const_like(n, x, 1);
    extents[1] = onnx_emit(n, ONNX_ARGS("shape_of", 2, part, x));
    return onnx_binary(n, "broadcast_to", number, onnx_concat(n, 2, extents, 0));
}

/* What no element of x is below. */
static graph_value *least_of(onnx_node *n, graph_value *x)
{
    dtype dt = onnx_dtype(x);
    return dtype_is_float(dt) ? onnx_const_like(n, x, (double)-INFINITY) : onnx_const_int(n, dt, dtype_min_int(dt));
}

/* target: stem of the operator; attrs: the one attribute that it has beside the window. */
bool onnx_op_pool(onnx_node *n)
{
    window w = {0};
    attr a[6];
    graph_value *x = onnx_in(n, 0);
    bool lp = strcmp(n->row->attrs, "p") == 0;
    if (!read_window(n, x, false, &w))
        return false;
    uint32_t count = pool_attrs(n, &w, a);
    int64_t own = lp ? norm_order(n) : onnx_attr_int(n, n->row->attrs, 0);
    a[count++] = attr_int(n->c, n->row->attrs, own);
    const char *op = with_rank(n, n->row->target, w.n, "");
    if (!has_open_pads(&w) || lp || own)
        return onnx_alias(n, 0, onnx_emit(n, ONNX_ARGS(op, count, a, pad_open(n, x, &w, NULL))));
    /* The mean of what is inside: both means count the pads. */
    graph_value *means = onnx_emit(n, ONNX_ARGS(op, count, a, pad_open(n, x, &w, NULL)));
    graph_value *shares = onnx_emit(n, ONNX_ARGS(op, count, a, pad_open(n, ones_of(n, x), &w, NULL)));
    return onnx_alias(n, 0, onnx_binary(n, "divide", means, shares));
}

graph_value *onnx_quantised_pool(onnx_node *n, uint32_t n_in, graph_value *const *in)
{
    window w = {0};
    attr a[8];
    if (!read_window(n, in[0], false, &w) || !refuse_open_pads(n, in[0], &w))
        return onnx_nothing(n);
    uint32_t count = pool_attrs(n, &w, a);
    a[count++] = attr_int(n->c, "count_include_pad", onnx_attr_int(n, "count_include_pad", 0));
    a[count++] = attr_int(n->c, "as_u8", 0);
    return onnx_emit(n, (onnx_args){with_rank(n, "qnn.avg_pool", w.n, ""), n_in, in, count, a});
}

graph_value *onnx_max_pool(onnx_node *n, graph_value *x)
{
    window w = {0};
    attr a[6];
    if (!read_window(n, x, false, &w))
        return onnx_nothing(n);
    x = pad_open(n, x, &w, has_open_pads(&w) ? least_of(n, x) : NULL);
    return onnx_emit(n, ONNX_ARGS(with_rank(n, "nn.max_pool", w.n, ""), pool_attrs(n, &w, a), a, x));
}

bool onnx_op_max_pool(onnx_node *n)
{
    window w = {0};
    attr a[6];
    graph_value *x = onnx_in(n, 0);
    if (!read_window(n, x, false, &w))
        return false;
    uint32_t count = pool_attrs(n, &w, a);
    int64_t order = onnx_attr_int(n, "storage_order", 0);
    bool indices = n->n_out > 1 && n->out_names[1];
    if (indices && !refuse_open_pads(n, x, &w)) /* they count in x, not in what is padded */
        return false;
    graph_value *padded = pad_open(n, x, &w, has_open_pads(&w) ? least_of(n, x) : NULL);
    onnx_result(n, 0, ONNX_ARGS(with_rank(n, "nn.max_pool", w.n, ""), count, a, padded));
    if (indices) {
        a[count++] = attr_int(n->c, "storage_order", order);
        onnx_result(n, 1, ONNX_ARGS("nn.max_pool_indices", count, a, x));
    }
    return !n->failed;
}

static graph_value *reduce_spatial(onnx_node *n, const char *op, graph_value *x)
{
    int64_t axes[TYPE_MAX_RANK];
    uint32_t rank = onnx_rank(x);
    if (rank < 3)
        return onnx_refuse(n, DIAG_TYPE, "data of %u dimensions has no spatial axes", rank);
    for (uint32_t i = 2; i < rank; i++)
        axes[i - 2] = i;
    return onnx_reduce(n, op, x, rank - 2, axes, true);
}

bool onnx_op_global_pool(onnx_node *n)
{
    return onnx_alias(n, 0, reduce_spatial(n, n->row->target, onnx_in(n, 0)));
}

bool onnx_op_global_lp_pool(onnx_node *n)
{
    graph_value *x = onnx_unary(n, "abs", onnx_in(n, 0));
    double p = n->version >= 2 ? (double)onnx_attr_int(n, "p", 2) : onnx_attr_float(n, "p", 2);
    graph_value *e = onnx_const_like(n, x, p), *root = onnx_const_like(n, x, 1 / p);
    graph_value *s =
        reduce_spatial(n, "sum", p == 2 ? onnx_binary(n, "multiply", x, x) : onnx_binary(n, "power", x, e));
    return onnx_alias(n, 0, p == 2 ? onnx_unary(n, "sqrt", s) : onnx_binary(n, "power", s, root));
}

/* --- products --- */

static graph_value *scaled(onnx_node *n, graph_value *v, double by)
{
    return by == 1 ? v : onnx_binary(n, "multiply", v, onnx_const_like(n, v, by));
}

graph_value *onnx_gemm(onnx_node *n)
{
    graph_value *a = onnx_in(n, 0), *b = onnx_in(n, 1), *c = onnx_optional(n, 2);
    double alpha = onnx_attr_float(n, "alpha", 1), beta = onnx_attr_float(n, "beta", 1);
    bool ta = onnx_attr_int(n, "transA", 0) != 0, tb = onnx_attr_int(n, "transB", 0) != 0;
    (void)onnx_attr_int(n, "broadcast", 0); /* below version 7; the shapes say it */
    if (onnx_rank(a) != 2 || onnx_rank(b) != 2)
        return onnx_refuse(n, DIAG_TYPE, "A and B must be matrices");
    graph_value *y = scaled(n, onnx_matmul(n, a, b, ta, tb, DT_NONE), alpha);
    if (c && beta != 0)
        y = onnx_binary(n, "add", y, scaled(n, c, beta));
    return y;
}

bool onnx_op_gemm(onnx_node *n)
{
    return onnx_alias(n, 0, onnx_gemm(n));
}

/* --- recurrences --- */

bool onnx_op_rnn(onnx_node *n)
{
    const graph_op *op = graph_find_op(n->c, n->row->target);
    attr *a = arena_array(&n->c->mem, attr, op->n_attrs + 1);
    uint32_t count = onnx_row_attrs(n, n->row->attrs, op, a);
    graph_value *r = onnx_in(n, 2);
    if (onnx_rank(r) != 3)
        return onnx_fail(n, DIAG_TYPE, "R must have three dimensions");
    int64_t hidden = onnx_static_dim(n, r, 2);
    if (onnx_attr_int(n, "hidden_size", hidden) != hidden)
        return onnx_fail(n, DIAG_TYPE, "hidden_size is not the extent %lld of R", (long long)hidden);
    a[count++] = attr_int(n->c, "hidden_size", hidden);
    return onnx_results(n, (onnx_args){op->name, n->n_in, n->in, count, a}, (uint32_t)op->max_out);
}
