/* SPDX-License-Identifier: Apache-2.0 */
/* begin-sums: a tile of integer sums begins with the bias that would be added to it afterwards, and not with 0:
 *
 *     s[0] = 0; s[1] = 0; dot(s, ...); y[0] = f(s[0] + bias[0]); y[1] = f(s[1] + bias[1])
 *     s[0] = bias[0]; s[1] = bias[1]; dot(s, ...); y[0] = f(s[0]); y[1] = f(s[1])
 *
 * For processors without vectors, where a kernel (tir/instr.h) adds to the sums; the code of others takes a bias along
 * at no cost. Zeros, kernel and readers stand in a row of statements; all readers of an element add the same to it, and
 * nothing in the function writes that. */
#include "tir/build.h"
#include "tir/instr.h"
#include "tir/node.h"
#include "tir/pass.h"
#include "tir/walk.h"
#include "type/target.h"

#define MOST_SUMS 16

typedef struct tile {
    compiler *c;
    const tir_func *f;
    const tir_buffer *b;
    int64_t count;
    tir_expr_ref start[MOST_SUMS];  /* what is added to an element; NULL: nothing yet */
    bool zeroed[MOST_SUMS];
    bool sure[MOST_SUMS];           /* it is added whatever conditions say */
    uint32_t zeros, loads, paired;  /* statements that put 0, reads, those of them that are part of a sum */
    bool guarded;                   /* what is looked at stands under a condition */
    bool ok;
} tile;

/* --- what can be moved --- */

typedef struct written {
    const tir_buffer *b;
    bool found;
} written;

static void note_write(void *ctx, tir_stmt *s)
{
    written *w = ctx;
    w->found |= (s->kind == TIR_STORE || s->kind == TIR_ALLOCATE) && s->buffer == w->b;
}

static void note_address(void *ctx, tir_expr_ref e)
{
    written *w = ctx;
    w->found |= e->kind == TIR_ADDRESS && e->u.buffer == w->b;
}

/* Part of what is added: constants, loop variables, and loads of operands. */
static void check_part(void *ctx, tir_expr_ref e)
{
    tile *t = ctx;
    written w = {e->kind == TIR_LOAD ? e->u.buffer : NULL, false};
    if (w.b)
        tir_visit_stmt(t->f->body, note_write, note_address, &w);
    t->ok &= !w.found && e->kind != TIR_ADDRESS && !tir_is_call(e) && e->type.lanes == 1;
}

/* --- the row of statements --- */

static bool element_of(const tile *t, tir_expr_ref e, int64_t *out)
{
    return e->kind == TIR_LOAD && e->u.buffer == t->b && e->n_args == 1 && tir_is_int(e->args[0], out) && *out >= 0 &&
           *out < t->count;
}

/* The element that the sum e adds to, and what it adds. */
static bool is_start(const tile *t, tir_expr_ref e, int64_t *out, tir_expr_ref *more)
{
    if (!tir_is_binary(e, TIR_ADD) || e->type.dt != DT_I32 || e->type.lanes != 1)
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        *more = e->args[1 - i];
        if (element_of(t, e->args[i], out))
            return true;
    }
    return false;
}

static void note_expr(void *ctx, tir_expr_ref e)
{
    tile *t = ctx;
    int64_t at = 0;
    tir_expr_ref more = NULL;
    t->loads += e->kind == TIR_LOAD && e->u.buffer == t->b;
    if (!is_start(t, e, &at, &more))
        return;
    if (!t->start[at])
        tir_visit_expr(more, check_part, t); /* a load of the tile itself is one that the function writes */
    t->ok &= !t->start[at] || tir_expr_equal(t->start[at], more);
    t->start[at] = more;
    t->sure[at] |= !t->guarded;
    t->paired++;
}

static void note_exprs(void *ctx, tir_expr_ref e)
{
    tir_visit_expr(e, note_expr, ctx);
}

static void check_foreign(void *ctx, tir_expr_ref e)
{
    tile *t = ctx;
    bool takes = false;
    t->ok &= !(e->kind == TIR_LOAD && e->u.buffer == t->b);
    const bool adds = tir_instr_writes(e) && e->op == TIR_ADD; /* to its first argument */
    for (uint32_t i = adds; tir_is_call(e) && i < e->n_args; i++)
        takes |= tir_is_access(e->args[i]) && e->args[i]->u.buffer == t->b;
    t->ok &= !takes;
}

static void check_store(void *ctx, tir_stmt *s)
{
    tile *t = ctx;
    t->ok &= s->kind != TIR_STORE || s->buffer != t->b;
}

static void note_stmt(tile *t, tir_stmt *s)
{
    int64_t at = 0;
    for (uint32_t i = 0; s->kind == TIR_SEQ && i < s->n_stmts; i++)
        note_stmt(t, s->stmts[i]);
    if (s->kind == TIR_SEQ)
        return;
    if (s->kind == TIR_STORE && s->buffer == t->b) {
        t->ok &= s->n_indices == 1 && tir_is_int(s->indices[0], &at) && at >= 0 && at < t->count &&
                 tir_is_const(s->value, 0) && t->loads == 0 && !t->guarded;
        if (t->ok)
            t->zeroed[at] = true;
    } else if (s->kind == TIR_STORE) {
        tir_stmt_exprs(s, note_exprs, t);
    } else if (s->kind == TIR_IF && !s->orelse && !t->guarded) {
        tir_visit_expr(s->cond, check_foreign, t);
        t->guarded = true;
        note_stmt(t, s->body);
        t->guarded = false;
    } else {
        t->ok &= t->loads == 0;
        tir_visit_stmt(s, check_store, check_foreign, t);
    }
}

/* What is added under a condition alone may not be there without it, unless it is added to another element anyway. */
static bool is_sure(const tile *t, int64_t at)
{
    bool found = t->sure[at];
    for (int64_t i = 0; i < t->count && !found; i++)
        found = t->sure[i] && tir_expr_equal(t->start[i], t->start[at]);
    return found;
}

/* --- the pass --- */

static tir_expr_ref without_start(tir_rewriter *r, tir_expr_ref e)
{
    tile *t = r->ctx;
    int64_t at = 0;
    tir_expr_ref more;
    return is_start(t, e, &at, &more) ? e->args[more == e->args[0]] : e;
}

static tir_stmt *with_start(tir_rewriter *r, tir_stmt *s)
{
    tile *t = r->ctx;
    int64_t at = 0;
    if (s->kind != TIR_STORE || s->buffer != t->b || !tir_is_int(s->indices[0], &at))
        return s;
    return tir_store(r->c, s->buffer, s->n_indices, s->indices, t->start[at]);
}

static tir_stmt *begin(tir_rewriter *r, tir_stmt *s)
{
    tile t = {.c = r->c, .f = r->ctx, .ok = true};
    if (s->kind != TIR_ALLOCATE || s->buffer->dt != DT_I32 || s->buffer->strides || s->buffer->offset)
        return s;
    t.b = s->buffer;
    t.count = tir_buffer_count(t.b);
    if (t.count < 1 || t.count > MOST_SUMS || !s->body)
        return s;
    note_stmt(&t, s->body);
    bool ok = t.ok && t.loads > 0 && t.loads == t.paired;
    for (int64_t i = 0; ok && i < t.count; i++)
        ok = t.zeroed[i] == (t.start[i] != NULL) && (!t.start[i] || is_sure(&t, i));
    if (!ok)
        return s;
    tir_rewriter change = {.c = r->c, .ctx = &t, .expr = without_start, .stmt = with_start};
    struct tir_stmt *copy = tir_node_copy(r->c, s);
    copy->body = tir_rewrite_stmt(&change, s->body);
    return copy;
}

bool tir_pass_begin_sums(compiler *c, tir_func *f)
{
    tir_rewriter r = {.c = c, .ctx = f, .stmt = begin};
    if (f->target && f->target->vector_bytes == 0 && f->target->address_bits == 32)
        f->body = tir_rewrite_stmt(&r, f->body);
    return true;
}
