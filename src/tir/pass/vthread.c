/* SPDX-License-Identifier: Apache-2.0 */
/* InjectVirtualThread: the iterations of a loop over virtual threads become neighbors, statement by statement, so that
 * work of one thread can run beside that of another. Each thread has its own copy of every buffer that is allocated in
 * the loop: the allocation grows, and accesses move by the thread's share. */
#include "tir/build.h"
#include "tir/clone.h"
#include "tir/map.h"
#include "tir/node.h"
#include "tir/pass.h"
#include "tir/simplify.h"
#include "tir/walk.h"

#include <string.h>

#define MAX_COPIES 16 /* more threads than that stay a loop */

typedef struct expander {
    const tir_func *f;
    bool ok;
} expander;

typedef struct threads {
    tir_rewriter r;
    const tir_var *v;
    tir_expr_ref min, extent;
    int64_t n;
    tir_map buffers; /* buffer -> its grown copy */
    const tir_buffer *missing;
} threads;

/* --- buffers --- */

static void grow(tir_rewriter *r, tir_stmt *s)
{
    threads *t = r->ctx;
    int64_t count = s->kind == TIR_ALLOCATE ? tir_buffer_count(s->buffer) : 0, total;
    if (s->kind != TIR_ALLOCATE)
        return;
    if (s->buffer->rank != 1 || s->buffer->strides || s->buffer->offset || count < 0 || !i64_mul(count, t->n, &total)) {
        t->missing = s->buffer;
        return;
    }
    tir_buffer *b = arena_new(&r->c->mem, tir_buffer);
    tir_expr_ref size = tir_int(r->c, s->buffer->shape[0]->type.dt, total);
    *b = *s->buffer;
    b->shape = arena_copy(&r->c->mem, &size, sizeof size, _Alignof(tir_expr_ref));
    tir_map_put(&t->buffers, s->buffer, b);
}

/* The index of the thread's own element. */
static tir_expr_ref shifted(threads *t, const tir_buffer *b, tir_expr_ref at)
{
    compiler *c = t->r.c;
    dtype dt = at->type.dt;
    tir_expr_ref thread = tir_cast(c, dt, tir_sub(c, tir_varref(c, t->v), t->min));
    return tir_add(c, tir_mul(c, thread, tir_int(c, dt, tir_buffer_count(b))), at);
}

static tir_expr_ref shift_access(tir_rewriter *r, tir_expr_ref e)
{
    threads *t = r->ctx;
    const tir_buffer *b = tir_is_access(e) ? tir_map_get(&t->buffers, e->u.buffer) : NULL;
    if (!b)
        return e;
    tir_expr_ref at = e->n_args ? e->args[0] : tir_int(r->c, t->v->type.dt, 0);
    at = shifted(t, e->u.buffer, at);
    return tir_node_access(r->c, e, b, 1, &at);
}

static tir_stmt *shift_stmt(tir_rewriter *r, tir_stmt *s)
{
    threads *t = r->ctx;
    const tir_buffer *b = s->buffer ? tir_map_get(&t->buffers, s->buffer) : NULL;
    if (!b)
        return s;
    if (s->kind == TIR_ALLOCATE)
        return tir_allocate(r->c, b, s->body);
    tir_expr_ref at = shifted(t, s->buffer, s->indices[0]);
    return tir_store(r->c, b, 1, &at, s->value);
}

/* --- statements --- */

static void look_for_loop(void *ctx, tir_stmt *s)
{
    *(bool *)ctx |= s->kind == TIR_FOR;
}

/* s, once for every thread. */
static tir_stmt *repeat(threads *t, tir_stmt *s)
{
    compiler *c = t->r.c;
    bool has_loop = false;
    tir_visit_stmt(s, look_for_loop, NULL, &has_loop);
    if (has_loop || t->n >= MAX_COPIES) {
        const tir_var *v = tir_new_var(c, t->v->name, t->v->type);
        return tir_for(c, v, t->min, t->extent, FOR_SERIAL, tir_clone_stmt(c, s, t->v, tir_varref(c, v)));
    }
    tir_stmt *all[MAX_COPIES];
    for (int64_t i = 0; i < t->n; i++)
        all[i] = tir_clone_stmt(c, s, t->v, tir_add(c, t->min, tir_int(c, t->v->type.dt, i)));
    return tir_seq(c, (uint32_t)t->n, all);
}

/* What marks a piece of work stays around the whole of it. */
static bool marks_work(const tir_stmt *s)
{
    return s->kind == TIR_ATTR && (strncmp(s->key, "pragma_", 7) == 0 || strcmp(s->key, "coproc_scope") == 0 ||
                                   strcmp(s->key, "coproc_uop_scope") == 0);
}

static tir_stmt *interleave(threads *t, tir_stmt *s)
{
    compiler *c = t->r.c;
    bool passes = s->kind == TIR_ALLOCATE || (s->kind == TIR_ATTR && !marks_work(s) && !tir_uses_var(s->value, t->v)) ||
                  (s->kind == TIR_FOR && !tir_uses_var(s->min, t->v) && !tir_uses_var(s->extent, t->v)) ||
                  (s->kind == TIR_IF && !tir_uses_var(s->cond, t->v));
    if (s->kind == TIR_SEQ) {
        tir_stmt **all = arena_array(&c->mem, tir_stmt *, s->n_stmts);
        for (uint32_t i = 0; i < s->n_stmts; i++)
            all[i] = interleave(t, s->stmts[i]);
        return tir_seq(c, s->n_stmts, all);
    }
    if (!passes)
        return repeat(t, s);
    struct tir_stmt *copy = tir_node_copy(c, s);
    copy->body = interleave(t, s->body);
    copy->orelse = s->orelse ? interleave(t, s->orelse) : NULL;
    return copy;
}

static tir_stmt *expand(tir_rewriter *r, tir_stmt *s)
{
    expander *x = r->ctx;
    if (s->kind != TIR_FOR || s->for_kind != FOR_VTHREAD)
        return s;
    threads t = {.v = s->var, .min = s->min, .extent = s->extent};
    t.r = (tir_rewriter){.c = r->c, .ctx = &t, .expr = shift_access, .stmt = shift_stmt, .enter = grow};
    tir_map_init(&t.buffers, &r->c->mem);
    if (!tir_is_int(s->extent, &t.n) || t.n < 1) {
        x->ok = diag_error(&r->c->diags, DIAG_UNSUPPORTED, x->f->loc,
                           "the number of virtual threads of '%s' is not a constant", s->var->name);
        return s;
    }
    tir_stmt *body = tir_rewrite_stmt(&t.r, s->body);
    if (t.missing) {
        x->ok =
            diag_error(&r->c->diags, DIAG_UNSUPPORTED, x->f->loc,
                       "buffer '%s' cannot be given to each virtual thread: it has no constant size in one dimension",
                       t.missing->name);
        diag_hint(&r->c->diags, "run flatten before InjectVirtualThread");
        return s;
    }
    return interleave(&t, body);
}

bool tir_pass_inject_virtual_thread(compiler *c, tir_func *f)
{
    expander x = {f, true};
    tir_rewriter r = {.c = c, .ctx = &x, .stmt = expand};
    f->body = tir_simplify_stmt(c, tir_rewrite_stmt(&r, f->body));
    return x.ok;
}
