/* SPDX-License-Identifier: Apache-2.0 */
/* double-buffer: in a loop that fills a buffer and then reads it, `attr [b] "double_buffer"` around the part that fills
 * makes it run one iteration ahead. The buffer becomes two halves; the first piece is filled in front of the loop, and
 * each iteration fills the other half for the next one while it reads its own. On hardware that copies while it
 * computes, the two overlap. */
#include "tir/build.h"
#include "tir/clone.h"
#include "tir/map.h"
#include "tir/node.h"
#include "tir/pass.h"
#include "tir/simplify.h"
#include "tir/walk.h"

#include <string.h>

typedef struct doubler {
    compiler *c;
    tir_map halves; /* buffer -> the one with two halves */
    bool ok;
} doubler;

/* A marked part of a loop's body. */
typedef struct part {
    tir_stmt *attr;
    const tir_buffer *buffer;
    bool allocated; /* its allocation is inside the loop */
} part;

/* --- finding --- */

static void find_store(void *ctx, tir_stmt *s)
{
    part *p = ctx;
    if (s->kind == TIR_STORE && strcmp(s->buffer->name, p->attr->node) == 0)
        p->buffer = s->buffer;
}

/* The first marked part that every iteration of the loop runs once. */
static bool find_part(tir_stmt *s, part *out)
{
    if (s->kind == TIR_ATTR && strcmp(s->key, "double_buffer") == 0) {
        out->attr = s;
        tir_visit_stmt(s->body, find_store, NULL, out);
        return out->buffer != NULL;
    }
    if (s->kind == TIR_ATTR || s->kind == TIR_ALLOCATE)
        return find_part(s->body, out);
    for (uint32_t i = 0; s->kind == TIR_SEQ && i < s->n_stmts; i++)
        if (find_part(s->stmts[i], out))
            return true;
    return false;
}

typedef struct use {
    const tir_buffer *buffer;
    bool found;
} use;

static void find_use(void *ctx, tir_expr_ref e)
{
    use *u = ctx;
    u->found |= tir_is_access(e) && e->u.buffer == u->buffer;
}

/* Whether the part reads something that the loop makes outside of it; then it cannot run before the loop. */
static const tir_buffer *made_outside(tir_stmt *s, const part *p)
{
    const tir_buffer *b = s->kind == TIR_STORE || s->kind == TIR_ALLOCATE ? s->buffer : NULL;
    use u = {b, false};
    if (s == p->attr)
        return NULL;
    if (b && b != p->buffer)
        tir_visit_stmt(p->attr->body, NULL, find_use, &u);
    if (u.found)
        return b;
    const tir_buffer *found = s->body ? made_outside(s->body, p) : NULL;
    if (!found && s->orelse)
        found = made_outside(s->orelse, p);
    for (uint32_t i = 0; !found && i < s->n_stmts; i++)
        found = made_outside(s->stmts[i], p);
    return found;
}

/* --- rewriting --- */

static const tir_buffer *two_halves(compiler *c, const tir_buffer *b)
{
    tir_buffer *two = arena_new(&c->mem, tir_buffer);
    tir_expr_ref *extents = arena_array(&c->mem, tir_expr_ref, b->rank + 1),
                 *strides = arena_array(&c->mem, tir_expr_ref, b->rank + 1);
    dtype dt = b->rank ? b->shape[0]->type.dt : DT_I64;
    *two = *b;
    two->id = c->next_id++;
    two->rank = b->rank + 1;
    extents[0] = tir_int(c, dt, 2);
    for (uint32_t i = 0; i < b->rank; i++) {
        extents[i + 1] = b->shape[i];
        strides[i + 1] = b->strides ? b->strides[i] : NULL;
    }
    two->shape = extents;
    if (b->strides && b->rank) {
        strides[0] = tir_mul(c, b->strides[0], b->shape[0]);
        two->strides = strides;
    }
    return two;
}

typedef struct redirect {
    const tir_buffer *from, *to;
    tir_expr_ref half;
} redirect;

static uint32_t with_half(const redirect *d, uint32_t n, tir_expr_ref const *idx, tir_expr_ref *out)
{
    out[0] = d->half;
    for (uint32_t i = 0; i < n; i++)
        out[i + 1] = idx[i];
    return n + 1;
}

static tir_expr_ref redirect_expr(tir_rewriter *r, tir_expr_ref e)
{
    const redirect *d = r->ctx;
    tir_expr_ref idx[TIR_MAX_RANK + 1];
    if (!tir_is_access(e) || e->u.buffer != d->from)
        return e;
    uint32_t n = with_half(d, e->n_args, e->args, idx);
    return tir_node_access(r->c, e, d->to, n, idx);
}

static tir_stmt *redirect_store(tir_rewriter *r, tir_stmt *s)
{
    const redirect *d = r->ctx;
    tir_expr_ref idx[TIR_MAX_RANK + 1];
    if (s->kind != TIR_STORE || s->buffer != d->from)
        return s;
    return tir_store(r->c, d->to, with_half(d, s->n_indices, s->indices, idx), idx, s->value);
}

static tir_stmt *use_half(compiler *c, tir_stmt *s, const tir_buffer *from, const tir_buffer *to, tir_expr_ref half)
{
    redirect d = {from, to, half};
    tir_rewriter r = {.c = c, .ctx = &d, .expr = redirect_expr, .stmt = redirect_store};
    return tir_rewrite_stmt(&r, s);
}

typedef struct replacing {
    tir_stmt *what, *by;
    const tir_buffer *gone; /* its allocation */
    bool dropped;
} replacing;

/* Copies the spine of the loop's body down to the part; the statements beside it are shared. */
static tir_stmt *replace(compiler *c, tir_stmt *s, replacing *k)
{
    if (s == k->what)
        return k->by;
    if (s->kind == TIR_ALLOCATE && s->buffer == k->gone) {
        k->dropped = true;
        return replace(c, s->body, k);
    }
    if (s->kind == TIR_SEQ) {
        tir_stmt **all = arena_array(&c->mem, tir_stmt *, s->n_stmts);
        for (uint32_t i = 0; i < s->n_stmts; i++)
            all[i] = replace(c, s->stmts[i], k);
        return tir_seq(c, s->n_stmts, all);
    }
    if (s->kind != TIR_ATTR && s->kind != TIR_ALLOCATE)
        return s;
    struct tir_stmt *copy = tir_node_copy(c, s);
    copy->body = replace(c, s->body, k);
    return copy;
}

static tir_stmt *double_buffer(tir_rewriter *r, tir_stmt *s);

/* fill(first); for v { if (v + 1 < end) fill(v + 1); rest }, each in the half of its iteration's parity. */
static tir_stmt *fill_ahead(tir_rewriter *r, tir_stmt *loop, const part *p)
{
    doubler *x = r->ctx;
    compiler *c = x->c;
    dtype dt = loop->var->type.dt;
    tir_expr_ref v = tir_varref(c, loop->var), one = tir_int(c, dt, 1), two = tir_int(c, dt, 2);
    tir_expr_ref at = tir_sub(c, v, loop->min), next = tir_add(c, v, one);
    const tir_buffer *b = two_halves(c, p->buffer);
    tir_stmt *fill = p->attr->body;
    tir_stmt *first = use_half(c, tir_clone_stmt(c, fill, loop->var, loop->min), p->buffer, b, tir_int(c, dt, 0));
    tir_stmt *ahead =
        use_half(c, tir_clone_stmt(c, fill, loop->var, next), p->buffer, b, tir_floormod(c, tir_add(c, at, one), two));
    tir_expr_ref more = tir_binary(c, TIR_LT, next, tir_add(c, loop->min, loop->extent));
    tir_stmt *mark = tir_evaluate(c, one); /* stands for the part while the rest is rewritten */
    replacing out = {.what = p->attr, .by = mark, .gone = p->buffer}, in = {.what = mark};
    tir_stmt *body = use_half(c, replace(c, loop->body, &out), p->buffer, b, tir_floormod(c, at, two));
    in.by = tir_if(c, more, ahead, NULL);
    body = replace(c, body, &in);
    tir_expr_ref any = tir_binary(c, TIR_GT, loop->extent, tir_int(c, dt, 0));
    tir_stmt *rest = tir_for(c, loop->var, loop->min, loop->extent, loop->for_kind, body);
    tir_stmt *s = tir_seq(c, 2, (tir_stmt *[]){tir_if(c, any, first, NULL), double_buffer(r, rest)});
    if (out.dropped)
        return tir_allocate(c, b, s);
    tir_map_put(&x->halves, p->buffer, b);
    return s;
}

static tir_stmt *double_buffer(tir_rewriter *r, tir_stmt *s)
{
    doubler *x = r->ctx;
    part p = {0};
    const tir_buffer *two = s->kind == TIR_ALLOCATE ? tir_map_get(&x->halves, s->buffer) : NULL;
    if (two)
        return tir_allocate(r->c, two, s->body);
    if (s->kind != TIR_FOR || !x->ok || !find_part(s->body, &p))
        return s;
    const tir_buffer *need = made_outside(s->body, &p);
    if (need || s->for_kind != FOR_SERIAL) {
        const char *why = need ? arena_printf(&r->c->mem, "it reads %s, which the same loop computes", need->name)
                               : "the loop around it is not serial: its iterations have no order";
        x->ok =
            diag_error(&r->c->diags, DIAG_VERIFY, src_loc_none(),
                       "double_buffer %s in loop %s: it cannot be filled ahead: %s", p.buffer->name, s->var->name, why);
        return s;
    }
    return fill_ahead(r, s, &p);
}

bool tir_pass_double_buffer(compiler *c, tir_func *f)
{
    doubler x = {.c = c, .ok = true};
    tir_rewriter r = {.c = c, .ctx = &x, .stmt = double_buffer};
    tir_map_init(&x.halves, &c->mem);
    tir_stmt *s = tir_rewrite_stmt(&r, f->body);
    if (s != f->body)
        f->body = tir_simplify_stmt(c, s);
    return x.ok;
}
