/* SPDX-License-Identifier: Apache-2.0 */
/* hoist-loads: vectors that a loop reads in each iteration from the same place are read once, in front of it. A C
 * compiler would do that where it knows that no store of the loop goes there, which the functions that put bytes from
 * lanes hide from it. For processors with Helium: elsewhere stores are no such functions. */
#include "tir/build.h"
#include "tir/node.h"
#include "tir/pass.h"
#include "tir/pass/rounded.h"
#include "tir/walk.h"
#include "type/target.h"

#define MOST 3 /* of the 8 vectors that such a processor has, most are for the loop itself */

typedef struct hoister {
    const tir_stmt *loop;
    uint32_t n;
    tir_expr_ref loads[MOST];
    const tir_var *vars[MOST];
    bool plain; /* no statement of the loop declares anything, or is a loop */
} hoister;

/* --- what stays the same --- */

static void look_for_declared(void *ctx, tir_stmt *s)
{
    hoister *x = ctx;
    x->plain &= s == x->loop || s->kind == TIR_SEQ || s->kind == TIR_STORE || s->kind == TIR_EVALUATE ||
                s->kind == TIR_IF;
}

typedef struct writes {
    const tir_buffer *b;
    bool found;
} writes;

static void look_for_store(void *ctx, tir_stmt *s)
{
    writes *w = ctx;
    w->found |= s->kind == TIR_STORE && s->buffer == w->b;
}

/* An address may be where an instruction puts its result. */
static void look_for_address(void *ctx, tir_expr_ref e)
{
    writes *w = ctx;
    w->found |= e->kind == TIR_ADDRESS && e->u.buffer == w->b;
}

static void look_for_read(void *ctx, tir_expr_ref e)
{
    *(bool *)ctx |= e->kind == TIR_LOAD || e->kind == TIR_EXTERN || e->kind == TIR_INSTR;
}

static bool stays(const hoister *x, tir_expr_ref e)
{
    writes w = {.b = e->u.buffer};
    bool reads = false;
    if (e->type.lanes < 2 || e->u.buffer->scope == SCOPE_REG || tir_uses_var(e, x->loop->var))
        return false;
    for (uint32_t i = 0; i < e->n_args; i++)
        tir_visit_expr(e->args[i], look_for_read, &reads);
    if (!reads)
        tir_visit_stmt(x->loop->body, look_for_store, look_for_address, &w);
    return !reads && !w.found;
}

/* --- what is read in any case --- */

static void note_always(compiler *c, hoister *x, tir_expr_ref e)
{
    uint32_t n = e->n_args;
    if (e->kind == TIR_LOAD && x->n < MOST && stays(x, e)) {
        for (uint32_t i = 0; i < x->n; i++)
            if (tir_expr_equal(x->loads[i], e))
                return;
        x->loads[x->n] = e;
        x->vars[x->n++] = tir_new_var(c, "kept", e->type);
        return;
    }
    if (e->kind == TIR_SELECT || tir_is_binary(e, TIR_AND) || tir_is_binary(e, TIR_OR))
        n = 1;
    for (uint32_t i = 0; i < n; i++)
        note_always(c, x, e->args[i]);
}

static void note_statement(compiler *c, hoister *x, const tir_stmt *s)
{
    for (uint32_t i = 0; i < s->n_stmts; i++)
        note_statement(c, x, s->stmts[i]);
    for (uint32_t i = 0; i < s->n_indices; i++)
        note_always(c, x, s->indices[i]);
    if (s->value)
        note_always(c, x, s->value);
}

/* --- the loop --- */

static tir_expr_ref replace(tir_rewriter *r, tir_expr_ref e)
{
    const hoister *x = r->ctx;
    for (uint32_t i = 0; i < x->n && e->kind == TIR_LOAD; i++)
        if (tir_expr_equal(x->loads[i], e))
            return tir_varref(r->c, x->vars[i]);
    return e;
}

static tir_stmt *hoist(tir_rewriter *r, tir_stmt *s)
{
    int64_t extent;
    hoister x = {.loop = s, .plain = true};
    if (s->kind != TIR_FOR || s->for_kind != FOR_SERIAL || !tir_is_int(s->extent, &extent) || extent < 2)
        return s;
    tir_visit_stmt(s, look_for_declared, NULL, &x);
    if (x.plain)
        note_statement(r->c, &x, s->body);
    if (x.n == 0)
        return s;
    tir_rewriter inside = {.c = r->c, .ctx = &x, .expr = replace};
    tir_stmt *out = tir_rewrite_stmt(&inside, s);
    while (x.n-- > 0)
        out = tir_let(r->c, x.vars[x.n], x.loads[x.n], out);
    return out;
}

bool tir_pass_hoist_loads(compiler *c, tir_func *f)
{
    tir_rewriter r = {.c = c, .stmt = hoist};
    if (f->target && (f->target->features & TARGET_MVE))
        f->body = tir_rewrite_stmt(&r, f->body);
    return true;
}
