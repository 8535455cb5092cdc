/* SPDX-License-Identifier: Apache-2.0 */
/* Stages: working copies of operations, their loops by name, and the errors that speak of them. */
#include "te/stage.h"
#include "base/nearest.h"
#include "tir/intrin.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool te_sched_error(te_lowering *lw, diag_code code, src_loc loc, const char *fmt, ...)
{
    va_list ap, ap2;
    va_start(ap, fmt);
    va_copy(ap2, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *text = arena_alloc(&lw->c->mem, (size_t)(n < 0 ? 0 : n) + 1, 1);
    vsnprintf(text, (size_t)(n < 0 ? 0 : n) + 1, fmt, ap2);
    va_end(ap2);
    return diag_error(&lw->c->diags, code, loc, "schedule: %s", text);
}

bool te_prim_error(te_lowering *lw, const te_prim *p, const char *axis, const char *why)
{
    const char *dot = axis ? "." : "";
    return te_sched_error(lw, DIAG_VERIFY, p->loc, "%s %s%s%s: %s", te_prim_text(p->kind), p->u.stage, dot,
                          axis ? axis : "", why);
}

/* --- stages --- */

te_iter *te_new_iter(te_lowering *lw, const char *name, const te_axis *root, te_axis_kind kind)
{
    te_iter *it = arena_new(&lw->c->mem, te_iter);
    it->name = name;
    it->var = tir_new_var(lw->c, name, TIR_I64);
    it->root = root;
    it->kind = kind;
    return it;
}

bool te_has_iter(const te_stage *st, const char *name)
{
    for (uint32_t i = 0; i < st->roots.len; i++)
        if (strcmp(st->roots.data[i]->name, name) == 0)
            return true;
    for (uint32_t i = 0; i < st->relations.len; i++) {
        const te_relation *r = &st->relations.data[i];
        if (strcmp(r->outer->name, name) == 0 || strcmp(r->inner->name, name) == 0 || strcmp(r->whole->name, name) == 0)
            return true;
    }
    return false;
}

/* Two axes of a computation may carry the same name; its schedule needs to tell them apart. */
static const char *iter_name(te_lowering *lw, const te_stage *st, const char *name)
{
    const char *try = name;
    for (uint32_t n = 1; te_has_iter(st, try); n++)
        try = arena_printf(&lw->c->mem, "%s_%u", name, n);
    return intern(lw->c->names, try);
}

static void add_roots(te_lowering *lw, te_stage *st, uint32_t n, te_axis *const *axes)
{
    for (uint32_t i = 0; i < n; i++) {
        te_iter *it = te_new_iter(lw, iter_name(lw, st, axes[i]->var->name), axes[i], axes[i]->kind);
        vec_push(&lw->c->mem, &st->roots, it);
        vec_push(&lw->c->mem, &st->leaves, it);
    }
}

te_stage *te_new_stage(te_lowering *lw, const te_node *n)
{
    te_stage *st = arena_new(&lw->c->mem, te_stage);
    st->op = *n;
    st->name = n->name;
    st->loc = src_loc_none();
    add_roots(lw, st, n->n_axes, n->axes);
    add_roots(lw, st, n->n_reduce, n->reduce_axes);
    if (n->kind == TE_CHECK && n->n_axes > 0)
        st->leaves.data[0]->loop = FOR_PARALLEL;
    return st;
}

void te_note_stage(te_lowering *lw, te_stage *st)
{
    for (uint32_t k = 0; k < st->op.n_outputs; k++)
        tir_map_put(&lw->stage_of, st->op.outputs[k]->buffer, st);
}

void te_insert_stage(te_lowering *lw, uint32_t at, te_stage *st)
{
    assert(at <= lw->stages.len);
    vec_push(&lw->c->mem, &lw->stages, st);
    for (uint32_t i = lw->stages.len - 1; i > at; i--)
        lw->stages.data[i] = lw->stages.data[i - 1];
    lw->stages.data[at] = st;
    te_note_stage(lw, st);
}

uint32_t te_stage_index(const te_lowering *lw, const te_stage *st)
{
    uint32_t i = 0;
    while (i < lw->stages.len && lw->stages.data[i] != st)
        i++;
    return i;
}

static bool writes(const te_stage *st, const tir_buffer *b, uint32_t *out_index)
{
    for (uint32_t k = 0; k < st->op.n_outputs; k++)
        if (st->op.outputs[k]->buffer == b) {
            if (out_index)
                *out_index = k;
            return true;
        }
    return false;
}

te_stage *te_stage_of(te_lowering *lw, const tir_buffer *b, uint32_t *out_index)
{
    te_stage *known = (te_stage *)(uintptr_t)tir_map_get(&lw->stage_of, b);
    if (known && writes(known, b, out_index))
        return known;
    for (uint32_t i = 0; i < lw->stages.len; i++)
        if (writes(lw->stages.data[i], b, out_index)) {
            tir_map_put(&lw->stage_of, b, lw->stages.data[i]);
            return lw->stages.data[i];
        }
    return NULL;
}

te_stage *te_find_stage(te_lowering *lw, const te_prim *p, const char *name)
{
    for (uint32_t i = 0; i < lw->stages.len; i++)
        if (strcmp(lw->stages.data[i]->name, name) == 0)
            return lw->stages.data[i];
    te_sched_error(lw, DIAG_VERIFY, p->loc, "%s: there is no stage %s", te_prim_text(p->kind), name);
    const char *all = "";
    for (uint32_t i = 0; i < lw->stages.len; i++)
        all = arena_printf(&lw->c->mem, "%s%s%s", all, i ? ", " : "", lw->stages.data[i]->name);
    diag_hint(&lw->c->diags, "%sstages are: %s", nearest_in(name, all, &lw->c->mem), all);
    return NULL;
}

uint32_t te_leaf_position(const te_stage *st, const te_iter *it)
{
    uint32_t i = 0;
    while (i < st->leaves.len && st->leaves.data[i] != it)
        i++;
    return i;
}

te_iter *te_find_leaf(te_lowering *lw, const te_prim *p, te_stage *st, const char *axis)
{
    for (uint32_t i = 0; i < st->leaves.len; i++)
        if (strcmp(st->leaves.data[i]->name, axis) == 0)
            return st->leaves.data[i];
    te_prim_error(lw, p, axis,
                  te_has_iter(st, axis) ? "the axis was split or fused before" : "the stage has no such axis");
    const char *all = "";
    for (uint32_t i = 0; i < st->leaves.len; i++)
        all = arena_printf(&lw->c->mem, "%s%s%s", all, i ? ", " : "", st->leaves.data[i]->name);
    if (st->leaves.len > 0)
        diag_hint(&lw->c->diags, "%saxes of %s are: %s", nearest_in(axis, all, &lw->c->mem), st->name, all);
    return NULL;
}

/* --- changes --- */

bool te_set_scope(te_lowering *lw, const te_prim *p, te_stage *st, const char *scope)
{
    static const char *const texts[] = {
#define X(id, text) [id] = text,
        TIR_SCOPES(X)
#undef X
    };
    if (!tir_is_memory(lw->c, scope)) {
        (void)te_prim_error(lw, p, NULL, arena_printf(&lw->c->mem, "there is no memory %s", scope));
        diag_hint(&lw->c->diags, "%smemories are: %s", nearest_in(scope, tir_list_memories(lw->c), &lw->c->mem),
                  tir_list_memories(lw->c));
        return false;
    }
    st->has_scope = true;
    st->scope = SCOPE_CUSTOM;
    st->scope_name = intern(lw->c->names, scope);
    for (uint32_t i = 0; i < SCOPE_CUSTOM; i++)
        if (strcmp(scope, texts[i]) == 0)
            st->scope = (tir_scope)i;
    if (st->scope != SCOPE_CUSTOM)
        st->scope_name = NULL;
    return true;
}

void te_rewrite_bodies(te_lowering *lw, te_stage *st, tir_rewriter *r)
{
    tir_expr_ref *body = arena_array(&lw->c->mem, tir_expr_ref, st->op.n_outputs);
    for (uint32_t i = 0; st->op.kind == TE_COMPUTE && i < st->op.n_outputs; i++)
        body[i] = tir_rewrite_expr(r, st->op.body[i]);
    st->op.body = body;
    if (st->op.where)
        st->op.where = tir_rewrite_expr(r, st->op.where);
    if (st->op.stmt)
        st->op.stmt = tir_rewrite_stmt(r, st->op.stmt);
}

void te_restart_stage(te_lowering *lw, te_stage *st, const te_node *n)
{
    te_stage *fresh = te_new_stage(lw, n);
    st->op = fresh->op;
    st->roots.len = st->leaves.len = st->relations.len = 0;
    for (uint32_t i = 0; i < fresh->roots.len; i++) {
        vec_push(&lw->c->mem, &st->roots, fresh->roots.data[i]);
        vec_push(&lw->c->mem, &st->leaves, fresh->leaves.data[i]);
    }
}
