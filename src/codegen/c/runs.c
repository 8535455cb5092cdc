/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of lathe_dot_runs and lathe_nibble_runs, which the pass join-runs makes: where the runs begin stands in an
 * array. It is filled in front of the innermost loop around the call where the starts do not depend on it: each line
 * and tile has its own, all channels the same. */
#include "codegen/c/emit.h"
#include "tir/node.h"
#include "tir/walk.h"

#include <string.h>

#define FIRST_RUN 8 /* argument */

static bool is_call(tir_expr_ref x)
{
    return x && x->kind == TIR_EXTERN && (strcmp(x->u.name, DOT_RUNS) == 0 || strcmp(x->u.name, NIBBLE_RUNS) == 0);
}

typedef struct inside {
    tir_map vars; /* what is declared in a loop */
    bool found;
} inside;

static void note_var(void *ctx, tir_stmt *s)
{
    inside *in = ctx;
    if (s->kind == TIR_FOR || s->kind == TIR_LET)
        tir_map_put(&in->vars, s->var, s);
    if (s->kind == TIR_ALLOCATE)
        tir_map_put(&in->vars, s->buffer, s);
}

static void find_var(void *ctx, tir_expr_ref x)
{
    inside *in = ctx;
    in->found |= (x->kind == TIR_VAR && tir_map_get(&in->vars, x->u.var)) || x->kind == TIR_LOAD ||
                 (x->kind == TIR_ADDRESS && tir_map_get(&in->vars, x->u.buffer));
}

/* The first call in s, in no loop of its own. */
static tir_expr_ref find_call(const tir_stmt *s)
{
    tir_expr_ref found = NULL;
    if (!s || s->kind == TIR_FOR)
        return NULL;
    if (s->kind == TIR_EVALUATE && is_call(s->value))
        return s->value;
    found = s->body ? find_call(s->body) : NULL;
    found = found || !s->orelse ? found : find_call(s->orelse);
    for (uint32_t i = 0; i < s->n_stmts && !found; i++)
        found = find_call(s->stmts[i]);
    return found;
}

static void write_starts(c_emit *e, tir_expr_ref call, const char *name)
{
    const char *list = "";
    for (uint32_t i = FIRST_RUN; i < call->n_args; i++)
        list = arena_printf(e->tmp, "%s%s%s", list, i > FIRST_RUN ? ", " : "", expr_text(e, call->args[i]).s);
    w_line(e->w, "const int16_t *const %s[] = {%s};", name, list);
}

bool runs_open(c_emit *e, const tir_stmt *loop)
{
    tir_expr_ref call = find_call(loop->body);
    inside in = {.found = false};
    if (!call || e->runs)
        return false;
    tir_map_init(&in.vars, e->tmp);
    tir_visit_stmt(loop, note_var, NULL, &in);
    for (uint32_t i = FIRST_RUN; i < call->n_args; i++)
        tir_visit_expr(call->args[i], find_var, &in);
    if (in.found)
        return false;
    w_open(e->w, "%s", "");
    e->runs = call;
    e->runs_name = names_push(e, call, "runs", false);
    write_starts(e, call, e->runs_name);
    return true;
}

void runs_close(c_emit *e, bool opened)
{
    if (!opened)
        return;
    w_close(e->w, "");
    e->runs = NULL;
}

bool runs_write(c_emit *e, const tir_stmt *s)
{
    tir_expr_ref call = s->kind == TIR_EVALUATE ? s->value : NULL;
    if (!is_call(call))
        return false;
    needs_add(e->needs, (c_need){.kind = NEED_ROLLED});
    const bool nibbles = strcmp(call->u.name, NIBBLE_RUNS) == 0;
    needs_add(e->needs, (c_need){.kind = NEED_DOT_ROWS, .macros = nibbles});
    needs_add(e->needs, (c_need){.kind = NEED_DOT_RUNS, .macros = nibbles});
    if (nibbles) {
        needs_add(e->needs, (c_need){.kind = NEED_NIBBLE_ROWS});
        needs_add(e->needs, (c_need){.kind = NEED_NIBBLE_RUNS});
    }
    const bool apart = e->runs != call;
    const uint32_t depth = e->names.len;
    const char *name = apart ? names_push(e, call, "runs", false) : e->runs_name;
    if (apart) {
        w_open(e->w, "%s", "");
        write_starts(e, call, name);
    }
    const char *args = arena_printf(e->tmp, "%s, %s, %u", expr_text(e, call->args[0]).s, name,
                                    call->n_args - FIRST_RUN);
    for (uint32_t i = 1; i < FIRST_RUN; i++)
        args = arena_printf(e->tmp, "%s, %s", args, expr_text(e, call->args[i]).s);
    w_line(e->w, "%s(%s);", call->u.name, args);
    if (apart)
        w_close(e->w, "");
    e->names.len = depth;
    return true;
}
