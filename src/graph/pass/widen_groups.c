/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions in groups of fewer channels than a block has. As planes they run with lines of pixels in lanes: what a
 * line leaves of its last vectors is lost, and with a stride pixels are read one by one. Some groups as one, with zeros
 * in the weights, multiply as many times as much and fill blocks. Both are counted in multiply-adds of whole vectors,
 * and so are weights that are read, and elements that move between planes and blocks. Integers have no lanes in planes:
 * there all numbers are multiplied one by one. An infinity or NaN by these zeros gives the other groups of its own NaN.
 * The module has a note of each. */
#include "graph/pass/widen_groups.h"
#include "graph/op/nn.h"

/* In multiply-adds of whole vectors. Estimates: with them the groups that docs/notes/performance.md names ("Layout")
 * take the form that is faster. */
#define MOVED   20 /* for each element that changes between planes and blocks */
#define READ    2  /* for each weight: a second cache brings a vector while two are multiplied */
#define STRIDED 8  /* times as long, where neighbors are not read from neighbors */
#define ONE_BY_ONE 2 /* products of integers in a lane, at least, while one is computed alone */

/* Of an open one the most. */
static int64_t extent(const graph_value *x, uint32_t axis)
{
    const int64_t n = dim_bound(x->type.shape.dims[axis]);
    return n > 0 ? n : 0;
}

static double elements(const graph_value *x)
{
    return (double)extent(x, 1) * (double)extent(x, 2) * (double)extent(x, 3);
}

/* Groups that together fill blocks on both sides. Else all of them, which are a convolution without groups. */
static int64_t filling(int64_t groups, int64_t ins, int64_t outs, int64_t lanes)
{
    for (int64_t by = 2; by <= lanes; by *= 2)
        if (ins * by % lanes == 0 && outs * by % lanes == 0)
            return groups % by == 0 ? by : groups;
    return groups;
}

static bool are_integers(const graph_node *n)
{
    return n->inputs[0]->type.dt != DT_F32;
}

/* What a line of planes takes, over what its pixels would. */
static double line_loss(const graph_node *n, int64_t lanes)
{
    if (are_integers(n))
        return (double)(ONE_BY_ONE * lanes);
    const int64_t *strides = NULL, width = extent(n->outputs[0], 3);
    uint32_t len = graph_attr_ints(n, "strides", &strides);
    int64_t vectors = width / lanes;
    if (len == 2 && strides[1] != 1)
        return STRIDED;
    for (int64_t rest = width % lanes; rest > 0; rest &= rest - 1)
        vectors++;
    return (double)(vectors * lanes) / (double)width;
}

int64_t widen_groups_by(const graph_node *n, int64_t lanes, bool packed)
{
    const graph_value *x = n->inputs[0], *y = n->outputs[0];
    const tensor_data *w = graph_constant(n->inputs[1]);
    int64_t groups = graph_attr_int(n, "groups"), ins = w->dims[1], outs = w->dims[0] / groups;
    int64_t by = groups > 1 && (are_integers(n) || w->dt == DT_F32) ? filling(groups, ins, outs, lanes) : 0;
    double work = elements(y) * (double)(ins * w->dims[2] * w->dims[3]), moved = MOVED * (elements(x) + elements(y)),
           weights = READ * (double)w->count;
    double planes = work * line_loss(n, lanes) + weights + (packed ? moved : 0),
           blocks = (work + weights) * (double)by + (packed ? 0 : moved);
    return by > 0 && blocks < planes ? by : 0;
}

graph_value *widen_groups_weights(rewriter *r, const graph_node *n, int64_t by)
{
    compiler *c = r->c;
    const tensor_data *w = graph_constant(n->inputs[1]);
    int64_t ins = w->dims[1], outs = w->dims[0] / graph_attr_int(n, "groups"), taps = w->dims[2] * w->dims[3];
    const int64_t dims[4] = {w->dims[0], ins * by, w->dims[2], w->dims[3]};
    const size_t size = dtype_bytes(w->dt);
    uint8_t *out = arena_alloc_array(&c->mem, (size_t)(w->count * by), size, size); /* zeros */
    for (int64_t o = 0; o < w->dims[0]; o++)
        for (int64_t i = 0; i < ins * taps; i++)
            dtype_store_f64(w->dt, out + (size_t)((o * by + o / outs % by) * ins * taps + i) * size,
                            tensor_get_f64(w, o * ins * taps + i));
    const char *text = arena_printf(
        &c->mem, "%lld groups each as one, filled up by zeros: its weights take %lld bytes, not %lld", (long long)by,
        (long long)(w->count * by) * (long long)size, (long long)w->count * (long long)size);
    graph_note note = {"convert-layout", n->op->name, n->outputs[0]->name, text, n->loc};
    vec_push(&c->mem, &r->f->module->notes, note);
    return rewrite_constant(r, tensor_dense(c, w->dt, 4, dims, out), n->inputs[1]->name, n->loc);
}
