/* SPDX-License-Identifier: Apache-2.0 */
/* Turns some rows of an image into one. If all stages go through rows and columns together, elements are contiguous,
 * whatever counts as the length of a row. A length that divides better into tiles then costs nothing. The computation
 * is built anew. A stage that reads neighbors, or depends on its position in the row, refuses. */
#include "te/merge.h"
#include "tir/map.h"
#include "tir/walk.h"

typedef struct merger {
    const te_graph *from;
    te_graph *to;
    uint32_t axis;
    int64_t height, width, rows;
    tir_map tensors;                  /* buffer of the old graph -> tensor of the new one */
    const te_axis *old[2]; /* rows and columns of the image that is built, or reduced; NULL: it is none */
    tir_expr_ref now[2];   /* what stands for them */
    bool refused;          /* it is read out of step */
} merger;

static bool extent_is(tir_expr_ref e, int64_t n)
{
    return tir_is_const(e, n);
}

static bool is_image(const merger *m, uint32_t rank, tir_expr_ref const *dims)
{
    return rank > m->axis + 1 && extent_is(dims[m->axis], m->height) && extent_is(dims[m->axis + 1], m->width);
}

static tir_expr_ref const *merged_shape(merger *m, uint32_t rank, tir_expr_ref const *dims)
{
    compiler *c = m->to->c;
    tir_expr_ref *out = arena_array(&c->mem, tir_expr_ref, rank);
    for (uint32_t i = 0; i < rank; i++)
        out[i] = dims[i];
    if (is_image(m, rank, dims)) {
        out[m->axis] = tir_i64(c, m->height / m->rows);
        out[m->axis + 1] = tir_i64(c, m->width * m->rows);
    }
    return out;
}

/* Is index i of e, which reads an image, the axis of the stage? */
static bool in_step(const merger *m, tir_expr_ref e, uint32_t i)
{
    return m->old[0] && e->args[i]->kind == TIR_VAR && e->args[i]->u.var == m->old[i - m->axis]->var;
}

static tir_expr_ref move_load(tir_rewriter *r, tir_expr_ref e)
{
    merger *m = r->ctx;
    te_tensor *t = e->kind == TIR_LOAD ? (te_tensor *)(uintptr_t)tir_map_get(&m->tensors, e->u.buffer) : NULL;
    if (!t)
        return e;
    tir_expr_ref *idx = arena_array(&r->c->mem, tir_expr_ref, e->n_args);
    for (uint32_t i = 0; i < e->n_args; i++)
        idx[i] = e->args[i];
    for (uint32_t i = m->axis; is_image(m, t->rank, e->u.buffer->shape) && i < m->axis + 2; i++) {
        m->refused |= !in_step(m, e, i);
        idx[i] = in_step(m, e, i) ? m->now[i - m->axis] : idx[i];
    }
    return te_read(m->to, t, idx);
}

/* e, with new variables for old ones. */
static tir_expr_ref move_expr(merger *m, tir_expr_ref e, uint32_t n, const tir_var *const *vars,
                              tir_expr_ref const *values)
{
    tir_rewriter r = {.c = m->to->c, .ctx = m, .expr = move_load};
    if (!e)
        return NULL;
    tir_expr_ref moved = tir_rewrite_expr(&r, tir_substitute(r.c, e, n, vars, values));
    for (uint32_t i = 0; m->old[0] && i < 2; i++)
        m->refused |= tir_uses_var(moved, m->old[i]->var); /* it asks where in a row it stands */
    return moved;
}

static void keep_hints(te_node *to, const te_node *from)
{
    to->label = from->label;
    to->tag = from->tag;
    to->inline_hint = from->inline_hint;
}

static void move_placeholder(merger *m, const te_node *n)
{
    const te_tensor *x = n->outputs[0];
    te_tensor *t = te_placeholder(m->to, n->name, x->dt, x->rank, merged_shape(m, x->rank, x->shape));
    keep_hints(t->node, n);
    tir_map_put(&m->tensors, x->buffer, t);
}

typedef struct moved_axes {
    te_axis *const *data, **reduce;
    const tir_var **vars; /* the old ones, but those of rows and columns, and what stands for them */
    tir_expr_ref *values;
    uint32_t n, n_reduce;
} moved_axes;

static void stand_for(moved_axes *a, const tir_var *old, tir_expr_ref now)
{
    a->vars[a->n] = old;
    a->values[a->n++] = now;
}

static void move_data_axes(merger *m, const te_node *n, moved_axes *a)
{
    bool image = is_image(m, n->n_axes, n->outputs[0]->shape);
    for (uint32_t i = 0; i < n->n_axes; i++) {
        uint32_t k = i - m->axis;
        if (!image || i < m->axis || k > 1) {
            stand_for(a, n->axes[i]->var, te_var(m->to, a->data[i]));
            continue;
        }
        m->old[k] = n->axes[i];
        m->now[k] = te_var(m->to, a->data[i]);
    }
}

/* Does an image that is reduced begin with reduction i? All of it becomes one row. */
static bool begins_image(const merger *m, const te_node *n, uint32_t i)
{
    return m->rows == m->height && m->height > 1 && !m->old[0] && i + 2 == n->n_reduce &&
           extent_is(n->reduce_axes[i]->extent, m->height) && extent_is(n->reduce_axes[i + 1]->extent, m->width);
}

/* A window of one tap is at 0. */
static void move_reduce_axes(merger *m, const te_node *n, moved_axes *a)
{
    te_graph *g = m->to;
    for (uint32_t i = 0; i < n->n_reduce; i++) {
        const te_axis *from = n->reduce_axes[i];
        bool image = begins_image(m, n, i);
        tir_expr_ref extent = image ? tir_i64(g->c, m->height * m->width) : from->extent;
        te_axis *to = a->reduce[a->n_reduce++] = te_reduce_axis(g, from->var->name, extent);
        if (!image) {
            stand_for(a, from->var, extent_is(extent, 1) ? tir_i64(g->c, 0) : te_var(g, to));
            continue;
        }
        m->old[0] = from;
        m->old[1] = n->reduce_axes[++i];
        m->now[0] = tir_i64(g->c, 0);
        m->now[1] = te_var(g, to);
    }
}

static void move_compute(merger *m, const te_node *n)
{
    te_graph *g = m->to;
    compiler *c = g->c;
    tir_expr_ref const *dims = merged_shape(m, n->n_axes, n->outputs[0]->shape);
    moved_axes a = {.data = te_data_axes(g, n->n_axes, dims),
                    .reduce = arena_array(&c->mem, te_axis *, n->n_reduce),
                    .vars = arena_array(&c->mem, const tir_var *, n->n_axes + n->n_reduce),
                    .values = arena_array(&c->mem, tir_expr_ref, n->n_axes + n->n_reduce)};
    tir_expr_ref *bodies = arena_array(&c->mem, tir_expr_ref, n->n_outputs);
    dtype *dts = arena_array(&c->mem, dtype, n->n_outputs);
    m->old[0] = m->old[1] = NULL;
    move_data_axes(m, n, &a);
    move_reduce_axes(m, n, &a);
    for (uint32_t i = 0; i < n->n_outputs; i++) {
        dts[i] = n->outputs[i]->dt;
        bodies[i] = move_expr(m, n->body[i], a.n, a.vars, a.values);
    }
    tir_expr_ref where = move_expr(m, n->where, a.n, a.vars, a.values);
    te_tensor **out = arena_array(&c->mem, te_tensor *, n->n_outputs);
    te_compute_n(g, n->name, n->n_axes, dims, a.data, a.n_reduce, a.reduce, n->reducer, where, n->n_outputs, dts,
                 bodies, out);
    keep_hints(out[0]->node, n);
    for (uint32_t i = 0; i < n->n_outputs; i++)
        tir_map_put(&m->tensors, n->outputs[i]->buffer, out[i]);
}

static bool move_nodes(merger *m)
{
    const te_graph *g = m->from;
    m->refused = g->checks.len > 0;
    for (uint32_t i = 0; !m->refused && i < g->nodes.len; i++) {
        const te_node *n = g->nodes.data[i];
        if (n->kind == TE_PLACEHOLDER)
            move_placeholder(m, n);
        else if (n->kind == TE_COMPUTE)
            move_compute(m, n);
        else
            m->refused = true;
    }
    return !m->refused;
}

te_graph *te_merge_rows(const te_graph *g, uint32_t axis, int64_t height, int64_t width, int64_t rows)
{
    compiler *c = g->c;
    merger m = {.from = g, .to = te_graph_new(c), .axis = axis, .height = height, .width = width, .rows = rows};
    tir_map_init(&m.tensors, &c->mem);
    for (uint32_t i = 0; i < g->symbols.len; i++)
        vec_push(&c->mem, &m.to->symbols, g->symbols.data[i]);
    if (!move_nodes(&m))
        return NULL;
    te_tensor **outs = arena_array(&c->mem, te_tensor *, g->params.len);
    for (uint32_t i = g->n_inputs; i < g->params.len; i++)
        outs[i] = (te_tensor *)(uintptr_t)tir_map_get(&m.tensors, g->params.data[i]->buffer);
    te_set_outputs(m.to, g->params.len - g->n_inputs, outs + g->n_inputs);
    m.to->loc = g->loc;
    m.to->macs = g->macs;
    m.to->unbounded = g->unbounded;
    return m.to;
}
