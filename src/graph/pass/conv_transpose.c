/* SPDX-License-Identifier: Apache-2.0 */
/* phase-convolutions: a transposed convolution on constant weights becomes a convolution. With stride s, elements y of
 * the result with the same y mod s, a phase, see the same taps of the window, at most ceil(k / s) of them: one
 * convolution makes all phases as channels of their own, and what it makes is put side by side. Its window is turned
 * round, and filled up with zeros where k is no multiple of s: an infinity of the data becomes a NaN under these, too.
 * Gathering, which asks of every tap whether it meets an element, takes hundreds of times as long. Of quantized numbers
 * the bias and the rounding behind are done for each phase, so that what is put side by side is bytes. */
#include "graph/op/nn.h"
#include "graph/pass.h"
#include "graph/pass/rewrite.h"

#include <string.h>

#define MOST_SPATIAL 3
#define MOST_WASTE   4 /* times the weights: taps of zeros that fill windows up */

/* One spatial axis. */
typedef struct phase_axis {
    int64_t kernel, stride, dilation;
    int64_t taps;       /* of a phase */
    int64_t begin, end; /* border of the convolution */
    dim rows;           /* that it makes, of `stride` elements each */
    int64_t skip, tail; /* elements in front of the result's, and behind them */
} phase_axis;

typedef struct phases {
    rewriter r;
    graph_node *n;
    const tensor_data *w; /* [channels, outs of a group, kernel...] */
    uint32_t spatial;
    phase_axis axes[MOST_SPATIAL];
    dim images;
    int64_t outs, groups, count; /* count: phases */
    bool quantized;
    bool floats; /* are changed, too */
} phases;

/* Where the result's elements come from, before its padding is cut off: `skip` elements lie in front. The result has
 * `more` elements more than `stride` for each of the data's, whose number may be open. */
static bool read_axis(compiler *c, phase_axis *a, dim in, dim out, int64_t pad)
{
    int64_t more, bound = dim_bound(out);
    if (!dim_is_const(dim_sub(c, out, dim_mul(c, in, dim_const(c, a->stride))), &more) || pad < 0 || bound == 0)
        return false;
    int64_t first = pad / a->stride, reach = pad + more + a->stride - 1;
    a->taps = (a->kernel + a->stride - 1) / a->stride;
    a->begin = (a->taps - 1) * a->dilation - first;
    a->end = reach / a->stride - (reach % a->stride < 0);
    a->rows = dim_add(c, in, dim_const(c, a->end - first));
    a->skip = pad - first * a->stride;
    a->tail = (a->end - first) * a->stride - a->skip - more;
    return (a->stride == 1 || a->dilation == 1) && a->begin >= 0 && a->end >= 0;
}

static bool is_one(const graph_node *n, bool *out_quantized)
{
    const char *op = n->op->name;
    *out_quantized = strncmp(op, "qnn.", 4) == 0;
    op += *out_quantized ? 4 : strncmp(op, "nn.", 3) == 0 ? 3 : 0;
    return strcmp(op, "conv1d_transpose") == 0 || strcmp(op, "conv2d_transpose") == 0 ||
           strcmp(op, "conv3d_transpose") == 0;
}

/* f32, or quantized with weights around 0; a window along one to three axes, constant weights. */
static bool read_node(phases *p, graph_node *n)
{
    nn_transpose_window t;
    if (!is_one(n, &p->quantized) || !(p->quantized || p->floats))
        return false;
    const type *x = &n->inputs[0]->type;
    p->n = n;
    p->w = n->n_inputs < 4 || !n->inputs[3] ? graph_constant(n->inputs[1]) : NULL;
    const dtype dt = p->quantized ? DT_I8 : DT_F32;
    if (!p->w || p->w->kind != TENSOR_DENSE || p->w->count == 0 || p->w->dt != dt ||
        (!p->quantized && x->dt != DT_F32) || x->shape.rank < 3 || x->shape.rank > 2 + MOST_SPATIAL ||
        shape_count(x->shape) == 0 || !nn_transpose_window_read(p->r.c, n, &t))
        return false;
    p->spatial = t.w.n;
    p->groups = graph_attr_int(n, "groups");
    p->images = x->shape.dims[0];
    p->outs = p->w->dims[1] * p->groups;
    p->count = 1;
    double waste = 1;
    for (uint32_t i = 0; i < p->spatial; i++) {
        phase_axis *a = &p->axes[i];
        *a = (phase_axis){.kernel = t.w.kernel[i], .stride = t.w.stride[i], .dilation = t.w.dilation[i]};
        if (!read_axis(p->r.c, a, x->shape.dims[2 + i], t.out[i], t.w.pad_begin[i]))
            return false;
        p->count *= a->stride;
        waste *= (double)(a->taps * a->stride) / (double)a->kernel;
    }
    return waste <= MOST_WASTE;
}

/* The place in the old window of tap `tap` of phase `phase`, both over all axes; -1: behind its end. */
static int64_t window_place(const phases *p, int64_t phase, int64_t tap)
{
    int64_t place = 0, size = 1;
    for (uint32_t i = p->spatial; i-- > 0;) {
        const phase_axis *a = &p->axes[i];
        int64_t at = (a->taps - 1 - tap % a->taps) * a->stride + phase % a->stride;
        if (at >= a->kernel)
            return -1;
        place += at * size;
        size *= a->kernel;
        tap /= a->taps;
        phase /= a->stride;
    }
    return place;
}

/* Element `from` of w; 0 where that is below 0. */
static void put_weight(char *to, const tensor_data *w, int64_t from)
{
    const float real = from < 0 ? 0 : (float)tensor_get_f64(w, from);
    const int8_t code = (int8_t)(from < 0 ? 0 : tensor_get_i64(w, from));
    if (w->dt == DT_F32)
        memcpy(to, &real, sizeof real);
    else
        memcpy(to, &code, sizeof code);
}

/* [outs * phases, channels of a group, taps...] */
static graph_value *phase_weights(phases *p)
{
    compiler *c = p->r.c;
    const int64_t ins = p->w->dims[0] / p->groups, outs = p->w->dims[1];
    int64_t dims[2 + MOST_SPATIAL] = {p->outs * p->count, ins}, taps = 1, window = 1, n = 0;
    for (uint32_t i = 0; i < p->spatial; i++) {
        dims[2 + i] = p->axes[i].taps;
        taps *= p->axes[i].taps;
        window *= p->axes[i].kernel;
    }
    const size_t bytes = dtype_bits(p->w->dt) / 8;
    char *to = arena_array(&c->mem, char, (size_t)(dims[0] * ins * taps) * bytes);
    for (int64_t o = 0; o < p->outs; o++)
        for (int64_t phase = 0; phase < p->count; phase++)
            for (int64_t i = 0; i < ins; i++)
                for (int64_t tap = 0; tap < taps; tap++) {
                    int64_t place = window_place(p, phase, tap), from = (o / outs * ins + i) * outs + o % outs;
                    put_weight(to + bytes * (size_t)n++, p->w, place < 0 ? -1 : from * window + place);
                }
    const tensor_data *t = tensor_dense(c, p->w->dt, 2 + p->spatial, dims, to);
    return rewrite_constant(&p->r, t, p->n->inputs[1]->name, p->n->loc);
}

static graph_value *convolution(phases *p)
{
    static const char *const names[2][MOST_SPATIAL] = {{"nn.conv1d", "nn.conv2d", "nn.conv3d"},
                                                       {"qnn.conv1d", "qnn.conv2d", "qnn.conv3d"}};
    compiler *c = p->r.c;
    int64_t pads[2 * MOST_SPATIAL], dilations[MOST_SPATIAL];
    for (uint32_t i = 0; i < p->spatial; i++) {
        pads[i] = p->axes[i].begin;
        pads[p->spatial + i] = p->axes[i].end;
        dilations[i] = p->axes[i].stride == 1 ? p->axes[i].dilation : 1;
    }
    attr attrs[4] = {attr_ints(c, "pads", 2 * p->spatial, pads), attr_ints(c, "dilations", p->spatial, dilations),
                     attr_int(c, "groups", p->groups)};
    if (p->quantized)
        attrs[3] = attr_dtype(c, "out_dtype", graph_attr_dtype(p->n, "out_dtype"));
    graph_value *in[3] = {p->n->inputs[0], phase_weights(p), p->n->n_inputs > 2 ? p->n->inputs[2] : NULL};
    const char *name = names[p->quantized][p->spatial - 1];
    return in[1] ? rewrite_emit(&p->r, name, in[2] ? 3 : 2, in, p->quantized ? 4 : 3, attrs, p->n->loc) : NULL;
}

/* Constants along the channels, which have `behind` axes behind them, for each phase; one number stays as it is. NULL:
 * v is neither. */
static graph_value *for_phases(phases *p, graph_value *v, uint32_t behind)
{
    compiler *c = p->r.c;
    const tensor_data *t = graph_constant(v);
    if (!t || t->count == 1)
        return t ? v : NULL;
    if (t->rank <= behind || t->dims[t->rank - 1 - behind] != p->outs || t->count != p->outs || dtype_bits(t->dt) < 8)
        return NULL;
    const size_t bytes = dtype_bits(t->dt) / 8;
    const uint8_t *from = tensor_bytes(&c->mem, t);
    int64_t dims[TYPE_MAX_RANK];
    memcpy(dims, t->dims, t->rank * sizeof *dims);
    dims[t->rank - 1 - behind] *= p->count;
    uint8_t *to = arena_array(&c->mem, uint8_t, (size_t)(p->outs * p->count) * bytes);
    for (int64_t i = 0; i < p->outs * p->count; i++)
        memcpy(to + (size_t)i * bytes, from + (size_t)(i / p->count) * bytes, bytes);
    return rewrite_constant(&p->r, tensor_dense(c, t->dt, t->rank, dims, to), v->name, v->def->loc);
}

/* Phases, which are channels of y, side by side: [n, o, s, t, h, w] as [n, o, h * s, w * t]. */
static graph_value *side_by_side(phases *p, graph_value *y)
{
    compiler *c = p->r.c;
    dim apart[2 + 2 * MOST_SPATIAL] = {p->images, dim_const(c, p->outs)};
    dim whole[2 + MOST_SPATIAL] = {apart[0], apart[1]};
    int64_t perm[2 + 2 * MOST_SPATIAL] = {0, 1};
    const uint32_t n = p->spatial;
    for (uint32_t i = 0; i < n; i++) {
        apart[2 + i] = dim_const(c, p->axes[i].stride);
        apart[2 + n + i] = p->axes[i].rows;
        perm[2 + 2 * i] = 2 + n + i;
        perm[3 + 2 * i] = 2 + i;
        whole[2 + i] = dim_mul(c, p->axes[i].rows, apart[2 + i]);
    }
    attr order = attr_ints(c, "perm", 2 + 2 * n, perm);
    y = rewrite_reshape(&p->r, y, 2 + 2 * n, apart, p->n->loc);
    y = y ? rewrite_emit(&p->r, "transpose", 1, &y, 1, &order, p->n->loc) : NULL;
    return y ? rewrite_reshape(&p->r, y, 2 + n, whole, p->n->loc) : NULL;
}

static graph_value *cut_out(phases *p, graph_value *y)
{
    int64_t starts[MOST_SPATIAL], ends[MOST_SPATIAL], axes[MOST_SPATIAL], rows;
    bool whole = true;
    for (uint32_t i = 0; i < p->spatial; i++) {
        const phase_axis *a = &p->axes[i];
        starts[i] = a->skip;
        ends[i] = dim_is_const(a->rows, &rows) ? rows * a->stride - a->tail : a->tail > 0 ? -a->tail : INT64_MAX;
        axes[i] = 2 + i;
        whole &= a->skip == 0 && a->tail == 0;
    }
    return whole ? y : rewrite_slice(&p->r, y, p->spatial, starts, ends, axes, NULL, p->n->loc);
}

static bool change(phases *p)
{
    graph_value *y = convolution(p);
    if (y && p->count > 1)
        y = side_by_side(p, y);
    y = cut_out(p, y);
    return y && rewrite_replace(&p->r, p->n->outputs[0], y);
}

/* n rounds the sums of a transposed convolution, with a bias or without. */
static bool change_quantized(phases *p, graph_node *n)
{
    graph_value *in[REWRITE_ROUNDING_OPERANDS] = {NULL}, *bias;
    graph_node *sums = rewrite_rounded_sums(n, &bias);
    if (!sums || !read_node(p, sums) || !p->quantized)
        return false;
    graph_value *pair[2] = {NULL, bias ? for_phases(p, bias, p->spatial) : NULL};
    bool ok = pair[1] || !bias;
    for (uint32_t i = 1; i < n->n_inputs; i++) {
        in[i] = n->inputs[i] ? for_phases(p, n->inputs[i], 0) : NULL;
        ok &= in[i] || !n->inputs[i];
    }
    graph_value *y = pair[0] = ok ? convolution(p) : NULL;
    y = y && bias ? rewrite_emit(&p->r, "add", 2, pair, 0, NULL, n->loc) : y;
    in[0] = y;
    y = y ? rewrite_emit(&p->r, n->op->name, n->n_inputs, in, n->n_attrs, n->attrs, n->loc) : NULL;
    y = y && p->count > 1 ? side_by_side(p, y) : y;
    y = y ? cut_out(p, y) : NULL;
    return y && rewrite_replace(&p->r, n->outputs[0], y);
}

static bool run(compiler *c, graph_func *f, bool floats)
{
    phases p = {.floats = floats};
    rewrite_begin(&p.r, c, f);
    for (uint32_t i = 0; i < f->nodes.len && !p.r.failed; i++) {
        graph_node *n = f->nodes.data[i];
        rewrite_operands(n);
        const bool changed = change_quantized(&p, n) || (read_node(&p, n) && !p.quantized && change(&p));
        if (!changed)
            rewrite_keep(&p.r, n);
    }
    rewrite_end(&p.r);
    return !p.r.failed;
}

bool graph_pass_phases(compiler *c, graph_module *m, const pass_options *o)
{
    bool ok = true;
    for (uint32_t i = 0; i < m->funcs.len; i++)
        if (!graph_is_fixed(m->funcs.data[i]))
            ok &= run(c, m->funcs.data[i], o->target->vector_bytes >= 8);
    return ok;
}
