/* SPDX-License-Identifier: Apache-2.0 */
/* flatten: an access of several dimensions, or of none, gets one index from the buffer's address, strides and offset
 * included. Buffers of one dimension keep their index. Allocations without strides become one-dimensional. */
#include "tir/build.h"
#include "tir/linear.h"
#include "tir/node.h"
#include "tir/pass.h"
#include "tir/walk.h"

/* Horner's form multiplied out, so that each dimension shows its stride. */
static tir_expr_ref row_major(compiler *c, dtype dt, const tir_buffer *b, tir_expr_ref const *idx)
{
    tir_expr_ref sum = NULL, stride = tir_int(c, dt, 1);
    for (uint32_t i = b->rank; i > 0; i--) {
        tir_expr_ref part = tir_mul(c, tir_cast(c, dt, idx[i - 1]), stride);
        sum = sum ? tir_add(c, part, sum) : part;
        stride = tir_mul(c, stride, tir_cast(c, dt, b->shape[i - 1]));
    }
    return sum ? sum : tir_int(c, dt, 0);
}

tir_expr_ref tir_flat_index(compiler *c, dtype dt, const tir_buffer *b, tir_expr_ref const *idx)
{
    tir_expr_ref sum = b->offset ? tir_cast(c, dt, b->offset) : NULL;
    if (!b->strides) {
        tir_expr_ref e = row_major(c, dt, b, idx);
        return sum ? tir_add(c, sum, e) : e;
    }
    for (uint32_t i = 0; i < b->rank; i++) {
        tir_expr_ref part = tir_mul(c, tir_cast(c, dt, idx[i]), tir_cast(c, dt, b->strides[i]));
        sum = sum ? tir_add(c, sum, part) : part;
    }
    return sum ? sum : tir_int(c, dt, 0);
}

typedef struct flattener {
    tir_rewriter r;
    dtype index_type; /* of the function: for accesses without indices */
    const tir_func *f;
} flattener;

static bool is_input(const tir_func *f, const tir_buffer *b)
{
    for (uint32_t i = 0; i < f->n_inputs; i++)
        if (f->params[i] == b)
            return true;
    return false;
}

/* A size that is read from an input goes by the name that a let around the whole body gives it. */
static tir_expr_ref by_name(tir_rewriter *r, tir_expr_ref e)
{
    const tir_func *f = r->ctx;
    if (e->kind != TIR_LOAD || !is_input(f, e->u.buffer))
        return e;
    for (const tir_stmt *s = f->body; s->kind == TIR_LET; s = s->body)
        if (tir_expr_equal(s->value, e))
            return tir_varref(r->c, s->var);
    return e;
}

/* An access's own indices decide the type, shapes follow. */
static tir_expr_ref flat_index(const flattener *f, const tir_buffer *b, tir_expr_ref const *idx)
{
    tir_rewriter r = {.c = f->r.c, .ctx = (void *)(uintptr_t)f->f, .expr = by_name};
    tir_expr_ref at = tir_flat_index(f->r.c, b->rank ? idx[0]->type.dt : f->index_type, b, idx);
    return f->f->body->kind == TIR_LET ? tir_rewrite_expr(&r, at) : at;
}

static tir_expr_ref flatten_access(tir_rewriter *r, tir_expr_ref e)
{
    bool whole = e->kind == TIR_ADDRESS && e->n_args == 0; /* the buffer itself: no index to flatten */
    if (!tir_is_access(e) || whole || e->n_args != e->u.buffer->rank || e->n_args == 1)
        return e;
    tir_expr_ref at = flat_index(r->ctx, e->u.buffer, e->args);
    return tir_node_access(r->c, e, e->u.buffer, 1, &at);
}

static tir_stmt *flatten_stmt(tir_rewriter *r, tir_stmt *s)
{
    flattener *f = r->ctx;
    if (s->kind != TIR_STORE || s->n_indices != s->buffer->rank || s->n_indices == 1)
        return s;
    tir_expr_ref at = flat_index(f, s->buffer, s->indices);
    return tir_store(r->c, s->buffer, 1, &at, s->value);
}

/* Second walk: allocations take the shape that their accesses have. */
typedef struct reshaper {
    tir_rewriter r;
    tir_map buffers;
} reshaper;

static void shrink(tir_rewriter *r, tir_stmt *s)
{
    reshaper *k = r->ctx;
    const tir_buffer *b = s->buffer;
    if (s->kind != TIR_ALLOCATE || b->rank == 1 || b->strides || b->offset)
        return;
    tir_expr_ref n = b->rank ? b->shape[0] : tir_i64(r->c, 1);
    for (uint32_t i = 1; i < b->rank; i++)
        n = tir_mul(r->c, n, tir_cast(r->c, n->type.dt, b->shape[i]));
    tir_buffer *flat = arena_new(&r->c->mem, tir_buffer);
    *flat = *b;
    flat->rank = 1;
    flat->shape = arena_copy(&r->c->mem, &n, sizeof n, _Alignof(tir_expr_ref));
    tir_map_put(&k->buffers, b, flat);
}

static tir_expr_ref reshape_access(tir_rewriter *r, tir_expr_ref e)
{
    reshaper *k = r->ctx;
    const tir_buffer *b = tir_is_access(e) ? tir_map_get(&k->buffers, e->u.buffer) : NULL;
    return b ? tir_node_access(r->c, e, b, e->n_args, e->args) : e;
}

static tir_stmt *reshape_stmt(tir_rewriter *r, tir_stmt *s)
{
    reshaper *k = r->ctx;
    const tir_buffer *b = s->buffer ? tir_map_get(&k->buffers, s->buffer) : NULL;
    if (!b)
        return s;
    struct tir_stmt *copy = tir_node_copy(r->c, s);
    copy->buffer = b;
    return copy;
}

bool tir_pass_flatten(compiler *c, tir_func *f)
{
    flattener flat = {.r = {.c = c, .expr = flatten_access, .stmt = flatten_stmt}, .index_type = f->index_type, .f = f};
    reshaper re = {.r = {.c = c, .expr = reshape_access, .stmt = reshape_stmt, .enter = shrink}};
    flat.r.ctx = &flat;
    re.r.ctx = &re;
    tir_map_init(&re.buffers, &c->mem);
    f->body = tir_rewrite_stmt(&flat.r, f->body);
    f->body = tir_rewrite_stmt(&re.r, f->body);
    f->body = tir_simplify_stmt(c, f->body);
    return true;
}
