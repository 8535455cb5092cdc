/* SPDX-License-Identifier: Apache-2.0 */
/* Copies with fresh definitions. */
#include "tir/clone.h"
#include "tir/build.h"
#include "tir/walk.h"

#include "tir/map.h"
#include "tir/node.h"

typedef struct cloner {
    tir_rewriter r;
    tir_map values;  /* variable -> expression that stands for it */
    tir_map buffers; /* buffer -> its copy */
    const tir_var *var;
    tir_expr_ref value;
} cloner;

static tir_expr_ref clone_expr(tir_rewriter *r, tir_expr_ref e)
{
    cloner *k = r->ctx;
    if (e->kind == TIR_VAR) {
        tir_expr_ref v = e->u.var == k->var ? k->value : tir_map_get(&k->values, e->u.var);
        return v ? v : e;
    }
    const tir_buffer *b = tir_is_access(e) ? tir_map_get(&k->buffers, e->u.buffer) : NULL;
    return b ? tir_node_access(r->c, e, b, e->n_args, e->args) : e;
}

/* Runs before the statement's parts are rewritten, so that they see the new definitions. */
static void define(tir_rewriter *r, tir_stmt *s)
{
    cloner *k = r->ctx;
    if ((s->kind == TIR_FOR || s->kind == TIR_LET) && s->var != k->var)
        tir_map_put(&k->values, s->var, tir_varref(r->c, tir_new_var(r->c, s->var->name, s->var->type)));
    if (s->kind == TIR_ALLOCATE) {
        tir_buffer *b = arena_new(&r->c->mem, tir_buffer);
        *b = *s->buffer;
        b->id = r->c->next_id++;
        tir_map_put(&k->buffers, s->buffer, b);
    }
}

static tir_stmt *clone_stmt(tir_rewriter *r, tir_stmt *s)
{
    cloner *k = r->ctx;
    tir_expr_ref v = s->var ? tir_map_get(&k->values, s->var) : NULL;
    const tir_buffer *b = s->buffer ? tir_map_get(&k->buffers, s->buffer) : NULL;
    if (!v && !b)
        return s;
    struct tir_stmt *copy = tir_node_copy(r->c, s);
    copy->var = v ? v->u.var : s->var;
    copy->buffer = b ? b : s->buffer;
    return copy;
}

tir_stmt *tir_clone_stmt(compiler *c, tir_stmt *s, const tir_var *var, tir_expr_ref value)
{
    cloner k = {.r = {.c = c, .expr = clone_expr, .stmt = clone_stmt, .enter = define}, .var = var, .value = value};
    k.r.ctx = &k;
    tir_map_init(&k.values, &c->mem);
    tir_map_init(&k.buffers, &c->mem);
    return tir_rewrite_stmt(&k.r, s);
}

static void count(void *ctx, tir_stmt *s)
{
    (void)s;
    ++*(uint32_t *)ctx;
}

uint32_t tir_count_stmts(tir_stmt *s)
{
    uint32_t n = 0;
    tir_visit_stmt(s, count, NULL, &n);
    return n;
}
