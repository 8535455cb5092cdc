/* SPDX-License-Identifier: Apache-2.0 */
/* hoist-starts: an instruction of several first operands (pass join-runs) reads where these begin from an array. The
 * annotation TIR_STARTS says in front of which loop the array is filled: the innermost one around the instruction,
 * if no start depends on what the loop declares or on memory. Each line and tile has its own starts, all channels the
 * same. Without it, the array is filled where the instruction stands. */
#include "tir/build.h"
#include "tir/instr.h"
#include "tir/map.h"
#include "tir/node.h"
#include "tir/pass.h"
#include "tir/walk.h"

/* The first instruction of several first operands in s, in no loop of its own; NULL: there is none. */
static tir_expr_ref find_instr(const tir_stmt *s)
{
    tir_expr_ref found = NULL;
    if (!s || s->kind == TIR_FOR)
        return NULL;
    if (s->kind == TIR_EVALUATE && s->value->kind == TIR_INSTR && tir_instr_runs(s->value) > 1)
        return s->value;
    found = find_instr(s->body);
    found = found ? found : find_instr(s->orelse);
    for (uint32_t i = 0; i < s->n_stmts && !found; i++)
        found = find_instr(s->stmts[i]);
    return found;
}

typedef struct inside {
    tir_map declared; /* variables and buffers of the loop */
    bool used;        /* of them, or an element of memory */
} inside;

static void note_declared(void *ctx, tir_stmt *s)
{
    inside *in = ctx;
    if (s->kind == TIR_FOR || s->kind == TIR_LET)
        tir_map_put(&in->declared, s->var, s);
    if (s->kind == TIR_ALLOCATE)
        tir_map_put(&in->declared, s->buffer, s);
}

static void note_used(void *ctx, tir_expr_ref x)
{
    inside *in = ctx;
    in->used |= (x->kind == TIR_VAR && tir_map_get(&in->declared, x->u.var)) || x->kind == TIR_LOAD ||
                (x->kind == TIR_ADDRESS && tir_map_get(&in->declared, x->u.buffer));
}

static tir_stmt *hoist(tir_rewriter *r, tir_stmt *s)
{
    tir_expr_ref instr = s->kind == TIR_FOR && s->for_kind == FOR_SERIAL ? find_instr(s->body) : NULL;
    inside in = {.used = false};
    if (!instr)
        return s;
    const uint32_t n = tir_instr_runs(instr);
    tir_expr_ref *starts = arena_array(&r->c->mem, tir_expr_ref, n);
    tir_map_init(&in.declared, &r->c->mem);
    tir_visit_stmt(s, note_declared, NULL, &in);
    for (uint32_t i = 0; i < n; i++) {
        starts[i] = tir_instr_run(instr, i);
        tir_visit_expr(starts[i], note_used, &in);
    }
    if (in.used)
        return s;
    tir_expr_ref all = tir_extern(r->c, TIR_STARTS, tir_scalar(DT_HANDLE), n, starts);
    return tir_attr(r->c, instr->u.row->name, TIR_STARTS, all, s);
}

bool tir_pass_hoist_starts(compiler *c, tir_func *f)
{
    tir_rewriter r = {.c = c, .stmt = hoist};
    f->body = tir_rewrite_stmt(&r, f->body);
    return true;
}
