/* SPDX-License-Identifier: Apache-2.0 */
/* lines-to-images: convolutions and pools of quantized numbers along one axis become those of images of one row, which
 * is what packed weights, layouts and instructions of products are made for. The form of a value with one row goes from
 * one operator to the next through what works element by element, and through the exchange of channels and places. */
#include "graph/pass.h"
#include "graph/pass/twins.h"

#include <string.h>

#define MAX_OPERANDS 16
#define LINE         3 /* rank: images, channels, places */
#define IMAGE        4 /* images, channels, 1, places */

typedef struct row {
    const char *line, *image;
    bool weights; /* the second operand has a window, too */
} row;

static const row rows[] = {{"qnn.conv1d", "qnn.conv2d", true},
                           {"qnn.conv1d_transpose", "qnn.conv2d_transpose", true},
                           {"qnn.avg_pool1d", "qnn.avg_pool2d", false},
                           {"nn.max_pool1d", "nn.max_pool2d", false}};

static const row *find_row(const char *op)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].line, op) == 0)
            return &rows[i];
    return NULL;
}

static bool is_line(const graph_value *x)
{
    return x && x->type.kind == TYPE_TENSOR && x->type.shape.rank == LINE;
}

/* x with an axis of one in front of its last axis. */
static graph_value *widened(twins *t, graph_value *x, src_loc loc)
{
    const shape s = x->type.shape;
    const tensor_data *constant = graph_constant(x);
    dim dims[TYPE_MAX_RANK];
    int64_t extents[TYPE_MAX_RANK] = {0};
    memcpy(dims, s.dims, (size_t)s.rank * sizeof *dims);
    dims[s.rank] = s.dims[s.rank - 1];
    dims[s.rank - 1] = dim_const(t->r.c, 1);
    for (int32_t i = 0; i <= s.rank && constant; i++)
        (void)dim_is_const(dims[i], &extents[i]);
    if (constant)
        return rewrite_constant(&t->r, tensor_reshape(t->r.c, constant, (uint32_t)s.rank + 1, extents), x->name, loc);
    return rewrite_reshape(&t->r, x, (uint32_t)s.rank + 1, dims, loc);
}

static graph_value *back(twins *t, const graph_value *x, graph_value *other, src_loc loc)
{
    return rewrite_reshape(&t->r, other, LINE, x->type.shape.dims, loc);
}

static graph_value *image(twins *t, graph_value *x, src_loc loc)
{
    twin *known = twins_of(t, x);
    if (known->other)
        return known->other;
    graph_value *made = widened(t, known->plain, loc);
    return twins_of(t, x)->other = made;
}

/* --- nodes --- */

/* What stands in front of the numbers of the one axis in each list of attributes. */
static const struct {
    const char *name;
    int64_t in_front;
} lists[] = {{"strides", 1}, {"dilations", 1}, {"pool_size", 1}, {"output_padding", 0}, {"output_shape", 1}};

static attr for_image(twins *t, const graph_node *n, const attr *a)
{
    const int64_t *v = NULL;
    const uint32_t count = a->kind == ATTR_INTS ? graph_attr_ints(n, a->name, &v) : 0;
    if (count == 2 && strcmp(a->name, "pads") == 0)
        return attr_ints(t->r.c, a->name, 4, (int64_t[]){0, v[0], 0, v[1]});
    for (size_t i = 0; count == 1 && i < sizeof lists / sizeof *lists; i++)
        if (strcmp(lists[i].name, a->name) == 0)
            return attr_ints(t->r.c, a->name, 2, (int64_t[]){lists[i].in_front, v[0]});
    if (strcmp(a->name, "axis") == 0) {
        const int64_t axis = graph_attr_int(n, "axis"), from_start = axis < 0 ? axis + LINE : axis;
        return attr_int(t->r.c, a->name, from_start == LINE - 1 ? IMAGE - 1 : from_start);
    }
    return *a;
}

static bool emit(twins *t, graph_node *n, const char *op, graph_value *const *in)
{
    attr *attrs = arena_array(&t->scratch, attr, n->n_attrs + 1);
    for (uint32_t i = 0; i < n->n_attrs; i++)
        attrs[i] = for_image(t, n, &n->attrs[i]);
    return twins_set(t, n, rewrite_emit(&t->r, op, n->n_inputs, in, n->n_attrs, attrs, n->loc));
}

static bool convert_window(twins *t, graph_node *n, const row *r, bool *done)
{
    graph_value *in[MAX_OPERANDS] = {NULL};
    if (n->n_inputs > MAX_OPERANDS || !is_line(n->inputs[0]) || !is_line(n->outputs[0]) ||
        dtype_bits(n->inputs[0]->type.dt) > 16 || !dtype_is_int(n->inputs[0]->type.dt))
        return true;
    *done = true;
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        const bool wide = i == 0 || (i == 1 && r->weights);
        in[i] = !n->inputs[i] ? NULL : wide ? image(t, n->inputs[i], n->loc) : twins_plain(t, n->inputs[i], n->loc);
        if (n->inputs[i] && !in[i])
            return false;
    }
    return emit(t, n, r->image, in);
}

/* Scales, zero points and tables are lists or single numbers, which stay as they are. */
static graph_value *operand(twins *t, graph_value *x, src_loc loc)
{
    return x->type.shape.rank < 2 ? twins_plain(t, x, loc) : image(t, x, loc);
}

static bool convert_elementwise(twins *t, graph_node *n, bool *done)
{
    graph_value *in[MAX_OPERANDS] = {NULL};
    const bool blocks = graph_attr(n, "block_size") && graph_attr_int(n, "block_size") != 0;
    bool any = false;
    for (uint32_t i = 0; i < n->n_inputs && i < MAX_OPERANDS; i++)
        any |= is_line(n->inputs[i]) && twins_of(t, n->inputs[i])->other;
    if (!any || blocks || n->n_inputs > MAX_OPERANDS || !is_line(n->outputs[0]))
        return true;
    *done = true;
    for (uint32_t i = 0; i < n->n_inputs; i++)
        if (n->inputs[i] && !(in[i] = operand(t, n->inputs[i], n->loc)))
            return false;
    return emit(t, n, n->op->name, in);
}

/* --- channels and places exchanged --- */

static bool exchanges(const graph_node *n)
{
    const int64_t *axes = NULL;
    return strcmp(n->op->name, "transpose") == 0 && is_line(n->inputs[0]) &&
           graph_attr_ints(n, "perm", &axes) == LINE && axes[0] == 0 && axes[1] == 2;
}

/* x [images, places, channels] as [images, channels, 1, places]. */
static graph_value *exchanged(twins *t, graph_value *x, src_loc loc)
{
    const dim *d = x->type.shape.dims, last[IMAGE] = {d[0], dim_const(t->r.c, 1), d[1], d[2]};
    graph_value *image = rewrite_reshape(&t->r, x, IMAGE, last, loc);
    const attr perm = attr_ints(t->r.c, "perm", IMAGE, (int64_t[]){0, 3, 1, 2});
    return image ? rewrite_emit(&t->r, "transpose", 1, &image, 1, &perm, loc) : NULL;
}

/* The image with its channels last is the result of n, a view. */
static bool convert_exchange(twins *t, graph_node *n, bool *done)
{
    graph_value *x = twins_of(t, n->inputs[0])->other;
    const attr perm = attr_ints(t->r.c, "perm", IMAGE, (int64_t[]){0, 2, 3, 1});
    if (!x)
        return true;
    *done = true;
    graph_value *last = rewrite_emit(&t->r, "transpose", 1, &x, 1, &perm, n->loc);
    return last && twins_set_plain(t, n, rewrite_reshape(&t->r, last, LINE, n->outputs[0]->type.shape.dims, n->loc));
}

/* Of a transpose that stays; nothing reads the other form in vain, because what is not read is removed. */
static void kept(twins *t, const graph_node *n)
{
    if (exchanges(n))
        twins_of(t, n->outputs[0])->other = exchanged(t, twins_of(t, n->inputs[0])->plain, n->loc);
}

static bool convert(twins *t, graph_node *n, bool *done)
{
    if (n->n_outputs != 1 || n->op->effect != EFFECT_PURE)
        return true;
    const row *r = find_row(n->op->name);
    if (r)
        return convert_window(t, n, r, done);
    if (exchanges(n))
        return convert_exchange(t, n, done);
    if (n->op->cls <= CLASS_BROADCAST && !(n->op->flags & (OPF_SHAPE_ARGS | OPF_MOVES)))
        return convert_elementwise(t, n, done);
    return true;
}

static bool has_lines(const graph_func *f)
{
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        const row *r = find_row(f->nodes.data[i]->op->name);
        if (r && r->weights)
            return true;
    }
    return false;
}

bool graph_pass_lines(compiler *c, graph_module *m, const pass_options *o)
{
    bool ok = true;
    (void)o;
    for (uint32_t i = 0; i < m->funcs.len; i++) {
        graph_func *f = m->funcs.data[i];
        twins t = {.back = back, .convert = convert, .kept = kept};
        if (graph_is_fixed(f) || !has_lines(f))
            continue;
        twins_begin(&t, c, f);
        ok &= twins_end(&t, twins_walk(&t));
        graph_remove_dead(f);
    }
    return ok;
}
