/* SPDX-License-Identifier: Apache-2.0 */
/* Primitives that add a stage: caches in front of a reader or behind a computation. */
#include "te/stage.h"

#include <string.h>

/* --- caches --- */

static te_tensor *cache_tensor(te_lowering *lw, te_node *n, const te_tensor *like, uint32_t index)
{
    te_tensor *t = arena_new(&lw->c->mem, te_tensor);
    *t = (te_tensor){n, index, NULL, like->dt, like->rank, like->shape};
    const char *name = n->n_outputs == 1 ? n->name : arena_printf(&lw->c->mem, "%s_v%u", n->name, index);
    t->buffer = tir_new_buffer(lw->c, name, like->dt, like->rank, like->shape, SCOPE_GLOBAL);
    return t;
}

static void cache_tensors(te_lowering *lw, te_node *n, const te_node *like)
{
    te_tensor **out = arena_array(&lw->c->mem, te_tensor *, like->n_outputs);
    n->n_outputs = like->n_outputs;
    for (uint32_t i = 0; i < like->n_outputs; i++)
        out[i] = cache_tensor(lw, n, like->outputs[i], i);
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
    cache_tensors(lw, n, &st->op);
    te_stage *cache = te_new_stage(lw, n);
    te_set_scope(lw, cache, p->u.cache_write.scope);
    cache->live = st->live;
    /* the old axes: the schedule goes on speaking of them */
    te_node *copy = copy_node(lw, st->name, st->op.axes, n->outputs, n->n_outputs);
    copy->outputs = st->op.outputs;
    copy->n_outputs = st->op.n_outputs;
    copy->tag = st->op.tag;
    te_stage fresh = *te_new_stage(lw, copy);
    st->op = fresh.op;
    st->roots.len = st->leaves.len = 0;
    for (uint32_t i = 0; i < fresh.roots.len; i++) {
        vec_push(&lw->c->mem, &st->roots, fresh.roots.data[i]);
        vec_push(&lw->c->mem, &st->leaves, fresh.leaves.data[i]);
    }
    te_insert_stage(lw, te_stage_index(lw, st), cache);
    return true;
}

typedef struct redirect {
    const te_stage *from;
    const te_node *to;
} redirect;

static tir_expr_ref redirect_load(tir_rewriter *r, tir_expr_ref e)
{
    const redirect *rd = r->ctx;
    if (e->kind != TIR_LOAD)
        return e;
    for (uint32_t i = 0; i < rd->from->op.n_outputs; i++)
        if (rd->from->op.outputs[i]->buffer == e->u.buffer)
            return tir_load(r->c, rd->to->outputs[i]->buffer, e->n_args, e->args);
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
    cache_tensors(lw, n, &st->op);
    te_stage *cache = te_new_stage(lw, n);
    te_set_scope(lw, cache, p->u.cache_read.scope);
    te_insert_stage(lw, te_stage_index(lw, st) + 1, cache);
    redirect rd = {st, n};
    tir_rewriter r = {.c = lw->c, .ctx = &rd, .expr = redirect_load};
    te_rewrite_bodies(lw, reader, &r);
    return true;
}
