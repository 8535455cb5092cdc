/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions of several first operands, which the pass join-runs makes: where these begin stands in an array. It is
 * filled in front of the innermost loop around the instruction where the starts do not depend on it: each line and tile
 * has its own, all channels the same. */
#include "codegen/c/emit.h"
#include "tir/instr.h"
#include "tir/node.h"
#include "tir/walk.h"

static bool has_runs(tir_expr_ref x)
{
    return x && x->kind == TIR_INSTR && tir_instr_runs(x) > 1;
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
    if (s->kind == TIR_EVALUATE && has_runs(s->value))
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
    for (uint32_t i = 0; i < tir_instr_runs(call); i++)
        list = arena_printf(e->tmp, "%s%s%s", list, i ? ", " : "", expr_text(e, tir_instr_run(call, i)).s);
    w_line(e->w, "const %s *const %s[] = {%s};", dtype_c_name(call->args[1]->u.buffer->dt), name, list);
}

bool runs_open(c_emit *e, const tir_stmt *loop)
{
    tir_expr_ref call = find_call(loop->body);
    inside in = {.found = false};
    if (!call || e->runs)
        return false;
    tir_map_init(&in.vars, e->tmp);
    tir_visit_stmt(loop, note_var, NULL, &in);
    for (uint32_t i = 0; i < tir_instr_runs(call); i++)
        tir_visit_expr(tir_instr_run(call, i), find_var, &in);
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
    if (!has_runs(call))
        return false;
    needs_add_kernel(e->needs, "kernel/common/rolled.h");
    const bool apart = e->runs != call;
    const uint32_t depth = e->names.len;
    const char *name = apart ? names_push(e, call, "runs", false) : e->runs_name;
    if (apart) {
        w_open(e->w, "%s", "");
        write_starts(e, call, name);
    }
    w_line(e->w, "%s;", instr_text(e, call, expr_operand, name));
    if (apart)
        w_close(e->w, "");
    e->names.len = depth;
    return true;
}
