/* SPDX-License-Identifier: Apache-2.0 */
/* drop-dead-stores: a store into an element of a private array goes when nothing reads the element: what is left of a
 * tile where a loop was cut short. Only arrays whose accesses all have constant indices, so that elements can be told
 * apart; what one round drops may have been the last reader of something else. An array that nothing touches goes,
 * too. */
#include "tir/build.h"
#include "tir/map.h"
#include "tir/node.h"
#include "tir/pass.h"
#include "tir/simplify.h"
#include "tir/walk.h"

#define MAX_ELEMENTS 4096
#define MAX_ROUNDS   8

/* One allocated buffer. */
typedef struct element_use {
    bool constant; /* all indices so far */
    bool touched;  /* by anything */
    bool *read;    /* of each element */
    int64_t count;
} element_use;

typedef struct dropper {
    compiler *c;
    tir_map uses; /* buffer -> element_use */
    bool changed;
} dropper;

static element_use *use_of(const dropper *d, const tir_buffer *b)
{
    return (element_use *)(uintptr_t)tir_map_get(&d->uses, b);
}

/* Elements first .. first + lanes of the access, when they are constant. */
static bool constant_elements(const element_use *u, uint32_t n, tir_expr_ref const *idx, int64_t *first)
{
    tir_expr_ref at = n == 1 ? idx[0] : NULL;
    if (at && at->kind == TIR_RAMP)
        at = tir_is_const(at->args[1], 1) ? at->args[0] : NULL;
    return at && tir_is_int(at, first) && *first >= 0 && *first <= u->count - (int64_t)idx[0]->type.lanes;
}

static void note_allocate(void *ctx, tir_stmt *s)
{
    dropper *d = ctx;
    if (s->kind != TIR_ALLOCATE)
        return;
    int64_t count = tir_buffer_count(s->buffer);
    element_use *u = arena_new(&d->c->mem, element_use);
    *u = (element_use){.constant = count > 0 && count <= MAX_ELEMENTS && !s->buffer->strides && !s->buffer->offset,
                       .count = count};
    if (u->constant)
        u->read = arena_array(&d->c->mem, bool, (size_t)count);
    tir_map_put(&d->uses, s->buffer, u);
}

/* Reads in the statement `in`. A store that reads only what it writes, a sum that grows, reads for nobody else. */
typedef struct reading {
    dropper *d;
    tir_stmt *in;
} reading;

static bool reads_own(const reading *r, tir_expr_ref load)
{
    return r->in->kind == TIR_STORE && r->in->buffer == load->u.buffer && r->in->n_indices == load->n_args &&
           tir_expr_equal(r->in->indices[0], load->args[0]);
}

static void note_read(void *ctx, tir_expr_ref e)
{
    const reading *r = ctx;
    bool access = e->kind == TIR_LOAD || e->kind == TIR_ADDRESS;
    element_use *u = access ? use_of(r->d, e->u.buffer) : NULL;
    int64_t first = 0;
    if (u)
        u->touched = true;
    if (!u || !u->constant)
        return;
    u->constant = e->kind == TIR_LOAD && constant_elements(u, e->n_args, e->args, &first);
    for (int64_t i = 0; u->constant && !reads_own(r, e) && i < e->args[0]->type.lanes; i++)
        u->read[first + i] = true;
}

static void note_reads(void *ctx, tir_expr_ref e)
{
    tir_visit_expr(e, note_read, ctx);
}

static void note_accesses(void *ctx, tir_stmt *s)
{
    reading r = {ctx, s};
    int64_t first = 0;
    element_use *u = s->buffer && s->kind != TIR_ALLOCATE ? use_of(ctx, s->buffer) : NULL;
    if (u)
        u->touched = true;
    if (u && u->constant && s->kind == TIR_STORE)
        u->constant = constant_elements(u, s->n_indices, s->indices, &first);
    tir_stmt_exprs(s, note_reads, &r);
}

static tir_stmt *drop(tir_rewriter *r, tir_stmt *s)
{
    dropper *d = r->ctx;
    int64_t first = 0;
    if (s->kind == TIR_ALLOCATE && !use_of(d, s->buffer)->touched) {
        d->changed = true;
        return s->body;
    }
    const element_use *u = s->kind == TIR_STORE ? use_of(d, s->buffer) : NULL;
    if (!u || !u->constant || !constant_elements(u, s->n_indices, s->indices, &first) || tir_has_extern(s->value))
        return s;
    for (int64_t i = 0; i < s->indices[0]->type.lanes; i++)
        if (u->read[first + i])
            return s;
    d->changed = true;
    return tir_seq(r->c, 0, NULL);
}

bool tir_pass_dead_stores(compiler *c, tir_func *f)
{
    dropper d = {.c = c, .changed = true};
    tir_rewriter r = {.c = c, .ctx = &d, .stmt = drop};
    bool any = false;
    for (uint32_t round = 0; d.changed && round < MAX_ROUNDS; round++) {
        d.changed = false;
        tir_map_init(&d.uses, &c->mem);
        tir_visit_stmt(f->body, note_allocate, NULL, &d);
        tir_visit_stmt(f->body, note_accesses, NULL, &d);
        f->body = tir_rewrite_stmt(&r, f->body);
        any |= d.changed;
    }
    if (any)
        f->body = tir_simplify_stmt(c, f->body);
    return true;
}
