/* SPDX-License-Identifier: Apache-2.0 */
/* phase-convolutions: a transposed convolution on constant weights becomes a convolution. With stride s, elements y of
 * the result with the same y mod s, a phase, see the same taps of the window, at most ceil(k / s) of them: one
 * convolution makes all phases as channels of their own, and what it makes is put side by side. Its window is turned
 * round, and filled up with zeros where k is no multiple of s: an infinity of the data becomes a NaN under these, too.
 * Gathering, which asks of every tap whether it meets an element, takes hundreds of times as long. */
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

/* f32, a window along one to three axes, constant weights. */
static bool read_node(phases *p, graph_node *n)
{
    nn_transpose_window t;
    const type *x = &n->inputs[0]->type;
    p->n = n;
    p->w = n->n_inputs == 2 ? graph_constant(n->inputs[1]) : NULL;
    if (!p->w || p->w->kind != TENSOR_DENSE || p->w->dt != DT_F32 || p->w->count == 0 || x->dt != DT_F32 ||
        x->shape.rank < 3 || x->shape.rank > 2 + MOST_SPATIAL || shape_count(x->shape) == 0 ||
        !nn_transpose_window_read(p->r.c, n, &t))
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
    float *to = arena_array(&c->mem, float, (size_t)(dims[0] * ins * taps));
    for (int64_t o = 0; o < p->outs; o++)
        for (int64_t phase = 0; phase < p->count; phase++)
            for (int64_t i = 0; i < ins; i++)
                for (int64_t tap = 0; tap < taps; tap++) {
                    int64_t place = window_place(p, phase, tap), from = (o / outs * ins + i) * outs + o % outs;
                    to[n++] = place < 0 ? 0 : (float)tensor_get_f64(p->w, from * window + place);
                }
    return rewrite_constant(&p->r, tensor_dense(c, DT_F32, 2 + p->spatial, dims, to), p->n->inputs[1]->name, p->n->loc);
}

static graph_value *convolution(phases *p)
{
    static const char *const names[MOST_SPATIAL] = {"nn.conv1d", "nn.conv2d", "nn.conv3d"};
    compiler *c = p->r.c;
    int64_t pads[2 * MOST_SPATIAL], dilations[MOST_SPATIAL];
    for (uint32_t i = 0; i < p->spatial; i++) {
        pads[i] = p->axes[i].begin;
        pads[p->spatial + i] = p->axes[i].end;
        dilations[i] = p->axes[i].stride == 1 ? p->axes[i].dilation : 1;
    }
    attr attrs[3] = {attr_ints(c, "pads", 2 * p->spatial, pads), attr_ints(c, "dilations", p->spatial, dilations),
                     attr_int(c, "groups", p->groups)};
    graph_value *in[2] = {p->n->inputs[0], phase_weights(p)};
    return in[1] ? rewrite_emit(&p->r, names[p->spatial - 1], 2, in, 3, attrs, p->n->loc) : NULL;
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

static bool run(compiler *c, graph_func *f)
{
    phases p = {.spatial = 0};
    rewrite_begin(&p.r, c, f);
    for (uint32_t i = 0; i < f->nodes.len && !p.r.failed; i++) {
        graph_node *n = f->nodes.data[i];
        rewrite_operands(n);
        const char *op = n->op->name;
        bool ours = strcmp(op, "nn.conv1d_transpose") == 0 || strcmp(op, "nn.conv2d_transpose") == 0 ||
                    strcmp(op, "nn.conv3d_transpose") == 0;
        if (!ours || !read_node(&p, n) || !change(&p))
            rewrite_keep(&p.r, n);
    }
    rewrite_end(&p.r);
    return !p.r.failed;
}

bool graph_pass_phases(compiler *c, graph_module *m, const pass_options *o)
{
    bool ok = true;
    for (uint32_t i = 0; i < m->funcs.len && o->target->vector_bytes >= 8; i++)
        if (!graph_is_fixed(m->funcs.data[i]))
            ok &= run(c, m->funcs.data[i]);
    return ok;
}
