/* SPDX-License-Identifier: Apache-2.0 */
/* Primitives that add a stage: caches before a reader or after a computation, and the parts of a sum. */
#include "te/stage.h"

#include <string.h>

/* --- caches --- */

static te_tensor *cache_tensor(te_lowering *lw, te_node *n, dtype dt, uint32_t index, uint32_t rank,
                               tir_expr_ref const *dims)
{
    te_tensor *t = arena_new(&lw->c->mem, te_tensor);
    *t = (te_tensor){n, index, NULL, dt, rank, dims};
    const char *name = n->n_outputs == 1 ? n->name : arena_printf(&lw->c->mem, "%s_v%u", n->name, index);
    t->buffer = tir_new_buffer(lw->c, name, dt, rank, dims, SCOPE_GLOBAL);
    return t;
}

/* Tensors of the same types as those of `like`. */
static void cache_tensors(te_lowering *lw, te_node *n, const te_node *like, uint32_t rank, tir_expr_ref const *dims)
{
    te_tensor **out = arena_array(&lw->c->mem, te_tensor *, like->n_outputs);
    n->n_outputs = like->n_outputs;
    for (uint32_t i = 0; i < like->n_outputs; i++)
        out[i] = cache_tensor(lw, n, like->outputs[i]->dt, i, rank, dims);
    n->outputs = out;
}

/* A node over `axes` that copies `from`, element by element. */
static te_node *copy_node(te_lowering *lw, const char *name, te_axis *const *axes, te_tensor *const *from,
                          uint32_t n_from)
{
    te_node *n = arena_new(&lw->c->mem, te_node);
    uint32_t rank = from[0]->rank;
    n->kind = TE_COMPUTE;
    n->name = name;
    n->axes = axes;
    n->n_axes = rank;
    tir_expr_ref *idx = arena_array(&lw->c->mem, tir_expr_ref, rank),
                 *body = arena_array(&lw->c->mem, tir_expr_ref, n_from);
    for (uint32_t i = 0; i < rank; i++)
        idx[i] = te_var(lw->g, n->axes[i]);
    for (uint32_t i = 0; i < n_from; i++)
        body[i] = te_read(lw->g, from[i], idx);
    n->body = body;
    return n;
}

static bool new_stage_name(te_lowering *lw, const te_prim *p, const char *name)
{
    for (uint32_t i = 0; i < lw->stages.len; i++)
        if (strcmp(lw->stages.data[i]->name, name) == 0)
            return te_prim_error(lw, p, NULL, "the new stage has the name of another");
    return strchr(name, '.') == NULL || te_prim_error(lw, p, NULL, "the name of a stage has no dot");
}

/* C becomes a copy of a new stage that computes what C did. */
bool te_apply_cache_write(te_lowering *lw, const te_prim *p, te_stage *st)
{
    if (st->op.kind != TE_COMPUTE)
        return te_prim_error(lw, p, NULL, "only a computation can be cached before it is written");
    if (st->relations.len > 0)
        return te_prim_error(lw, p, NULL, "cache_write must come before the stage's axes are split or fused");
    if (!new_stage_name(lw, p, p->u.cache_write.cache))
        return false;
    te_node *n = arena_new(&lw->c->mem, te_node);
    *n = st->op;
    n->name = p->u.cache_write.cache;
    cache_tensors(lw, n, &st->op, st->op.outputs[0]->rank, st->op.outputs[0]->shape);
    te_stage *cache = te_new_stage(lw, n);
    if (!te_set_scope(lw, p, cache, p->u.cache_write.scope))
        return false;
    cache->live = st->live;
    /* the old axes: the schedule goes on speaking of them */
    te_node *copy = copy_node(lw, st->name, st->op.axes, n->outputs, n->n_outputs);
    copy->outputs = st->op.outputs;
    copy->n_outputs = st->op.n_outputs;
    copy->tag = st->op.tag;
    te_restart_stage(lw, st, copy);
    te_insert_stage(lw, te_stage_index(lw, st), cache);
    return true;
}

typedef struct redirect {
    const te_stage *from;
    const te_node *to;
    bool any;
} redirect;

static tir_expr_ref redirect_load(tir_rewriter *r, tir_expr_ref e)
{
    redirect *rd = r->ctx;
    for (uint32_t i = 0; e->kind == TIR_LOAD && i < rd->from->op.n_outputs; i++) {
        if (rd->from->op.outputs[i]->buffer != e->u.buffer)
            continue;
        rd->any = true;
        return tir_load(r->c, rd->to->outputs[i]->buffer, e->n_args, e->args);
    }
    return e;
}

/* One reader reads a copy of A in another scope. */
bool te_apply_cache_read(te_lowering *lw, const te_prim *p, te_stage *st)
{
    te_stage *reader = te_find_stage(lw, p, p->u.cache_read.reader);
    if (!reader || !new_stage_name(lw, p, p->u.cache_read.cache))
        return false;
    if (reader->op.kind != TE_COMPUTE)
        return te_prim_error(lw, p, NULL, "the reader must be a computation");
    te_node *n =
        copy_node(lw, p->u.cache_read.cache, te_data_axes(lw->g, st->op.outputs[0]->rank, st->op.outputs[0]->shape),
                  st->op.outputs, st->op.n_outputs);
    cache_tensors(lw, n, &st->op, st->op.outputs[0]->rank, st->op.outputs[0]->shape);
    te_stage *cache = te_new_stage(lw, n);
    if (!te_set_scope(lw, p, cache, p->u.cache_read.scope))
        return false;
    te_insert_stage(lw, te_stage_index(lw, st) + 1, cache);
    redirect rd = {st, n, false};
    tir_rewriter r = {.c = lw->c, .ctx = &rd, .expr = redirect_load};
    te_rewrite_bodies(lw, reader, &r);
    return rd.any || te_prim_error(lw, p, NULL, arena_printf(&lw->c->mem, "%s does not read it", reader->name));
}

/* --- rfactor --- */

/* Guards of the reduction's splits that do not divide, and the stage's own condition. */
static tir_expr_ref factored_condition(te_lowering *lw, const te_stage *st, uint32_t n, const tir_var *const *vars,
                                       tir_expr_ref const *values)
{
    compiler *c = lw->c;
    tir_bounds *b = tir_bounds_new(c);
    tir_expr_ref cond = st->op.where ? tir_substitute(c, st->op.where, n, vars, values) : NULL;
    for (uint32_t i = 0; i < st->leaves.len; i++)
        if (st->leaves.data[i]->kind == AXIS_REDUCE)
            tir_bounds_push(b, st->leaves.data[i]->var, tir_i64(c, 0), st->leaves.data[i]->extent);
    for (uint32_t i = 0; i < st->relations.len; i++) {
        const te_relation *r = &st->relations.data[i];
        if (r->kind != RELATION_SPLIT)
            continue;
        tir_expr_ref inside = tir_binary(c, TIR_LT, te_iter_value(lw, st, r->whole), r->whole->extent);
        if (!tir_prove(b, tir_simplify(b, inside)))
            cond = tir_and(c, cond, tir_simplify(b, inside));
    }
    return cond;
}

static te_axis *loop_axis(te_lowering *lw, const te_iter *it, te_axis_kind kind)
{
    te_axis *a = arena_new(&lw->c->mem, te_axis);
    *a = (te_axis){it->var, it->extent, kind};
    return a;
}

/* What the stage computes for each value of k alone: k becomes the first data axis, the other reduction loops stay. */
static te_node *partial_node(te_lowering *lw, const te_prim *p, const te_stage *st, const te_iter *k)
{
    compiler *c = lw->c;
    const te_node *op = &st->op;
    te_node *n = arena_new(&c->mem, te_node);
    te_axis **axes = arena_array(&c->mem, te_axis *, op->n_axes + 1),
            **reduce = arena_array(&c->mem, te_axis *, st->leaves.len);
    tir_expr_ref *values = arena_array(&c->mem, tir_expr_ref, op->n_reduce),
                 *body = arena_array(&c->mem, tir_expr_ref, op->n_outputs),
                 *dims = arena_array(&c->mem, tir_expr_ref, op->n_axes + 1);
    const tir_var **vars = arena_array(&c->mem, const tir_var *, op->n_reduce);
    *n = *op;
    n->name = p->u.rfactor.partial;
    axes[0] = loop_axis(lw, k, AXIS_DATA);
    dims[0] = k->extent;
    for (uint32_t i = 0; i < op->n_axes; i++) {
        axes[i + 1] = op->axes[i];
        dims[i + 1] = op->outputs[0]->shape[i];
    }
    n->axes = axes;
    n->n_axes = op->n_axes + 1;
    n->n_reduce = 0;
    n->reduce_axes = reduce;
    for (uint32_t i = 0; i < st->leaves.len; i++)
        if (st->leaves.data[i]->kind == AXIS_REDUCE && st->leaves.data[i] != k)
            reduce[n->n_reduce++] = loop_axis(lw, st->leaves.data[i], AXIS_REDUCE);
    for (uint32_t i = 0; i < op->n_reduce; i++) {
        vars[i] = op->reduce_axes[i]->var;
        values[i] = te_iter_value(lw, st, st->roots.data[op->n_axes + i]);
    }
    for (uint32_t i = 0; i < op->n_outputs; i++)
        body[i] = tir_substitute(c, op->body[i], op->n_reduce, vars, values);
    n->body = body;
    n->where = factored_condition(lw, st, op->n_reduce, vars, values);
    cache_tensors(lw, n, op, op->n_axes + 1, dims);
    return n;
}

/* The sum over k of the partial results. */
static te_node *total_node(te_lowering *lw, const te_stage *st, const te_node *partial, const te_iter *k)
{
    compiler *c = lw->c;
    te_node *n = arena_new(&c->mem, te_node);
    te_axis *axis = arena_new(&c->mem, te_axis), **reduce = arena_array(&c->mem, te_axis *, 1);
    tir_expr_ref *idx = arena_array(&c->mem, tir_expr_ref, st->op.n_axes + 1),
                 *body = arena_array(&c->mem, tir_expr_ref, st->op.n_outputs);
    *n = st->op;
    *axis = (te_axis){tir_new_var(c, k->name, TIR_I64), k->extent, AXIS_REDUCE};
    reduce[0] = axis;
    idx[0] = te_var(lw->g, axis);
    for (uint32_t i = 0; i < st->op.n_axes; i++)
        idx[i + 1] = te_var(lw->g, st->op.axes[i]);
    for (uint32_t i = 0; i < st->op.n_outputs; i++)
        body[i] = te_read(lw->g, partial->outputs[i], idx);
    n->body = body;
    n->reduce_axes = reduce;
    n->n_reduce = 1;
    n->where = NULL;
    return n;
}

bool te_apply_rfactor(te_lowering *lw, const te_prim *p, te_stage *st)
{
    te_iter *k = te_find_leaf(lw, p, st, p->u.rfactor.axis);
    if (!k || !new_stage_name(lw, p, p->u.rfactor.partial))
        return false;
    if (k->kind != AXIS_REDUCE)
        return te_prim_error(lw, p, k->name, "only a reduction axis can be factored out");
    for (uint32_t i = 0; i < st->relations.len; i++)
        if (st->relations.data[i].whole->kind == AXIS_DATA)
            return te_prim_error(lw, p, k->name, "rfactor must come before the stage's data axes are split or fused");
    te_reduce_extents(lw, st);
    te_node *partial = partial_node(lw, p, st, k);
    te_node *total = total_node(lw, st, partial, k);
    te_stage *parts = te_new_stage(lw, partial);
    parts->live = st->live;
    te_restart_stage(lw, st, total);
    te_insert_stage(lw, te_stage_index(lw, st), parts);
    return true;
}
