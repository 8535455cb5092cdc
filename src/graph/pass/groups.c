/* SPDX-License-Identifier: Apache-2.0 */
/* split-groups: on the processors of convert-rows, a quantized convolution in groups becomes one convolution for each
 * group, whose results are put side by side. The kernels there multiply all channels of the data, or one by one: a
 * group of several channels has none, and plain loops take four times as many instructions. The bias and the rounding
 * are done for each group, so that what is put side by side is bytes. */
#include "graph/pass.h"
#include "graph/pass/rewrite.h"

#include <assert.h>
#include <string.h>

#define MOST_GROUPS    32 /* each has kernels of its own */
#define LEAST_PRODUCTS 8  /* of a sum: below, taking the channels apart costs as much as it saves */

typedef struct groups {
    rewriter r;
    graph_node *n; /* the convolution */
    const tensor_data *w;
    graph_value *bias;
    int64_t count, ins, outs; /* groups, and channels of each */
} groups;

static bool read_convolution(groups *v, graph_node *n)
{
    if (strcmp(n->op->name, "qnn.conv2d") != 0 || graph_operand(n, 3))
        return false;
    v->n = n;
    v->w = graph_constant(n->inputs[1]);
    v->count = graph_attr_int(n, "groups");
    if (!v->w || v->w->kind != TENSOR_DENSE || dtype_bits(v->w->dt) != 8 || v->count < 2 || v->count > MOST_GROUPS ||
        !shape_is_static(n->inputs[0]->type.shape))
        return false;
    v->ins = v->w->dims[1];
    v->outs = v->w->dims[0] / v->count;
    return v->ins > 1 && v->ins * v->w->dims[2] * v->w->dims[3] >= LEAST_PRODUCTS;
}

/* The sums that n rounds are those of a convolution in groups. */
static bool read_rounded(groups *v, const graph_node *n)
{
    graph_node *sums = rewrite_rounded_sums(n, &v->bias);
    return sums && read_convolution(v, sums);
}

/* Whether x is a constant of one number, or one whose elements fall to groups: along the axis with as many as there are
 * channels, which has `behind` axes behind it. */
static bool comes_apart(const groups *v, const graph_value *x, uint32_t behind)
{
    const tensor_data *t = graph_constant(x);
    if (!t || t->count == 1)
        return t != NULL;
    const uint32_t at = t->rank > behind ? t->rank - 1 - behind : t->rank;
    bool leads = at < t->rank && t->dims[at] == v->count * v->outs && dtype_bits(t->dt) >= 8;
    for (uint32_t i = 0; i < at && leads; i++)
        leads = t->dims[i] == 1;
    return leads;
}

/* Of such a constant those elements that group g has; one number stays as it is. */
static graph_value *of_group(groups *v, graph_value *x, int64_t g, uint32_t behind)
{
    const tensor_data *t = graph_constant(x);
    int64_t dims[TYPE_MAX_RANK];
    assert(comes_apart(v, x, behind));
    if (t->count == 1)
        return x;
    const size_t bytes = dtype_bits(t->dt) / 8 * (size_t)(t->count / v->count);
    memcpy(dims, t->dims, t->rank * sizeof *dims);
    dims[t->rank - 1 - behind] = v->outs;
    const uint8_t *from = tensor_bytes(&v->r.c->mem, t);
    return rewrite_constant(&v->r, tensor_dense(v->r.c, t->dt, t->rank, dims, from + bytes * (size_t)g), x->name,
                            x->def->loc);
}

static graph_value *convolution(groups *v, int64_t g)
{
    graph_node *n = v->n;
    attr *attrs = arena_array(&v->r.c->mem, attr, n->n_attrs + 1);
    for (uint32_t i = 0; i < n->n_attrs; i++)
        attrs[i] = strcmp(n->attrs[i].name, "groups") == 0 ? attr_int(v->r.c, "groups", 1) : n->attrs[i];
    const int64_t from = g * v->ins, to = from + v->ins, axis = 1;
    graph_value *in[3] = {rewrite_slice(&v->r, n->inputs[0], 1, &from, &to, &axis, NULL, n->loc),
                          of_group(v, n->inputs[1], g, 3), n->n_inputs > 2 ? n->inputs[2] : NULL};
    return in[0] && in[1] ? rewrite_emit(&v->r, n->op->name, in[2] ? 3 : 2, in, n->n_attrs, attrs, n->loc) : NULL;
}

/* Group g of what n rounds. */
static graph_value *rounded_group(groups *v, const graph_node *n, int64_t g)
{
    graph_value *in[REWRITE_ROUNDING_OPERANDS] = {convolution(v, g)};
    graph_value *pair[2] = {in[0], v->bias ? of_group(v, v->bias, g, 2) : NULL};
    if (!in[0] || (v->bias && !pair[1]))
        return NULL;
    if (v->bias)
        in[0] = rewrite_emit(&v->r, "add", 2, pair, 0, NULL, n->loc);
    for (uint32_t i = 1; i < n->n_inputs; i++)
        in[i] = n->inputs[i] ? of_group(v, n->inputs[i], g, 0) : NULL;
    return in[0] ? rewrite_emit(&v->r, n->op->name, n->n_inputs, in, n->n_attrs, n->attrs, n->loc) : NULL;
}

/* Whether all constants can be taken apart, before anything is made. */
static bool come_apart(const groups *v, const graph_node *n)
{
    bool ok = comes_apart(v, v->n->inputs[1], 3) && (!v->bias || comes_apart(v, v->bias, 2));
    for (uint32_t i = 1; i < n->n_inputs && ok; i++)
        ok = !n->inputs[i] || comes_apart(v, n->inputs[i], 0);
    return ok;
}

static bool split(groups *v, const graph_node *n)
{
    graph_value *parts[MOST_GROUPS];
    const attr axis = attr_int(v->r.c, "axis", 1);
    if (!come_apart(v, n))
        return false;
    for (int64_t g = 0; g < v->count; g++)
        if (!(parts[g] = rounded_group(v, n, g)))
            return false;
    graph_value *y = rewrite_emit(&v->r, "concatenate", (uint32_t)v->count, parts, 1, &axis, n->loc);
    return y && rewrite_replace(&v->r, n->outputs[0], y);
}

static bool run(compiler *c, graph_func *f)
{
    groups v = {.n = NULL};
    rewrite_begin(&v.r, c, f);
    for (uint32_t i = 0; i < f->nodes.len && !v.r.failed; i++) {
        graph_node *n = f->nodes.data[i];
        rewrite_operands(n);
        if (!read_rounded(&v, n) || !split(&v, n))
            rewrite_keep(&v.r, n);
    }
    rewrite_end(&v.r);
    graph_remove_dead(f);
    return !v.r.failed;
}

bool graph_pass_groups(compiler *c, graph_module *m, const pass_options *o)
{
    bool ok = true;
    for (uint32_t i = 0; i < m->funcs.len && graph_pass_rows_takes(o->target); i++)
        if (!graph_is_fixed(m->funcs.data[i]))
            ok &= run(c, m->funcs.data[i]);
    return ok;
}
