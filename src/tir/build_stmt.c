/* SPDX-License-Identifier: Apache-2.0 */
/* Construction of statements. */
#include "tir/build.h"
#include "tir/node.h"

#include <assert.h>

struct tir_stmt *tir_node_stmt(compiler *c, tir_stmt_kind kind)
{
    struct tir_stmt *s = arena_new(&c->mem, struct tir_stmt);
    s->kind = kind;
    return s;
}

struct tir_stmt *tir_node_copy(compiler *c, tir_stmt *s)
{
    struct tir_stmt *copy = arena_new(&c->mem, struct tir_stmt);
    *copy = *s;
    return copy;
}

tir_stmt *tir_for(compiler *c, const tir_var *v, tir_expr_ref min, tir_expr_ref extent, tir_for_kind k, tir_stmt *body)
{
    assert(min->type.dt == v->type.dt && extent->type.dt == v->type.dt);
    struct tir_stmt *s = tir_node_stmt(c, TIR_FOR);
    s->var = v;
    s->min = min;
    s->extent = extent;
    s->for_kind = k;
    s->body = body;
    return s;
}

tir_stmt *tir_if(compiler *c, tir_expr_ref cond, tir_stmt *then, tir_stmt *orelse)
{
    int64_t v;
    assert(cond->type.dt == DT_BOOL);
    if (tir_is_int(cond, &v))
        return v ? then : orelse ? orelse : tir_seq(c, 0, NULL);
    struct tir_stmt *s = tir_node_stmt(c, TIR_IF);
    s->cond = cond;
    s->body = then;
    s->orelse = orelse;
    return s;
}

tir_stmt *tir_let(compiler *c, const tir_var *v, tir_expr_ref value, tir_stmt *body)
{
    assert(v->type.dt == value->type.dt && v->type.lanes == value->type.lanes);
    struct tir_stmt *s = tir_node_stmt(c, TIR_LET);
    s->var = v;
    s->value = value;
    s->body = body;
    return s;
}

tir_stmt *tir_store(compiler *c, const tir_buffer *b, uint32_t n, tir_expr_ref const *indices, tir_expr_ref value)
{
    uint16_t lanes = 1;
    assert(value->type.dt == b->dt && (n == b->rank || n == 1));
    for (uint32_t i = 0; i < n; i++)
        lanes = indices[i]->type.lanes > lanes ? indices[i]->type.lanes : lanes;
    struct tir_stmt *s = tir_node_stmt(c, TIR_STORE);
    s->buffer = b;
    s->indices = arena_copy(&c->mem, indices, n * sizeof *indices, _Alignof(tir_expr_ref));
    s->n_indices = n;
    s->value = tir_broadcast(c, value, lanes);
    return s;
}

tir_stmt *tir_allocate(compiler *c, const tir_buffer *b, tir_stmt *body)
{
    struct tir_stmt *s = tir_node_stmt(c, TIR_ALLOCATE);
    s->buffer = b;
    s->body = body;
    return s;
}

tir_stmt *tir_attr(compiler *c, const char *node, const char *key, tir_expr_ref value, tir_stmt *body)
{
    struct tir_stmt *s = tir_node_stmt(c, TIR_ATTR);
    s->node = intern(c->names, node);
    s->key = intern(c->names, key);
    s->value = value;
    s->body = body;
    return s;
}

tir_stmt *tir_evaluate(compiler *c, tir_expr_ref value)
{
    struct tir_stmt *s = tir_node_stmt(c, TIR_EVALUATE);
    s->value = value;
    return s;
}

tir_stmt *tir_assert(compiler *c, tir_expr_ref cond, int32_t code, const char *message)
{
    struct tir_stmt *s = tir_node_stmt(c, TIR_ASSERT);
    s->cond = cond;
    s->code = code;
    s->key = intern(c->names, message);
    return s;
}

tir_stmt *tir_seq(compiler *c, uint32_t n, tir_stmt *const *stmts)
{
    uint32_t total = 0;
    tir_stmt *only = NULL;
    for (uint32_t i = 0; i < n; i++) {
        if (!stmts[i])
            continue;
        only = stmts[i];
        total += stmts[i]->kind == TIR_SEQ ? stmts[i]->n_stmts : 1;
    }
    if (total == 1 && only->kind != TIR_SEQ)
        return only;
    tir_stmt **all = arena_array(&c->mem, tir_stmt *, total);
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool nested = stmts[i] && stmts[i]->kind == TIR_SEQ;
        for (uint32_t k = 0; nested && k < stmts[i]->n_stmts; k++)
            all[at++] = stmts[i]->stmts[k];
        if (stmts[i] && !nested)
            all[at++] = stmts[i];
    }
    if (total == 1)
        return all[0];
    struct tir_stmt *s = tir_node_stmt(c, TIR_SEQ);
    s->stmts = all;
    s->n_stmts = total;
    return s;
}
