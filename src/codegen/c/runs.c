/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions of several first operands, which the pass join-runs makes: where these begin stands in an array. It is
 * filled where the annotation TIR_STARTS is (pass hoist-starts), else where the instruction stands. */
#include "codegen/c/emit.h"
#include "tir/build.h"
#include "tir/instr.h"
#include "tir/walk.h"

static const char *open_array(c_emit *e, const void *key, const tir_buffer *b, const char *list)
{
    w_open(e->w, "%s", "");
    const char *name = names_push(e, key, "runs", false);
    w_line(e->w, "const %s *const %s[] = {%s};", dtype_c_name(b->dt), name, list);
    return name;
}

static const char *add_start(c_emit *e, const char *list, tir_expr_ref start)
{
    return arena_printf(e->tmp, "%s%s%s", list, *list ? ", " : "", expr_text(e, start).s);
}

void runs_write_around(c_emit *e, const tir_stmt *s, c_write_stmt stmt)
{
    tir_expr_ref starts = s->value, before = e->starts;
    const uint32_t depth = e->names.len;
    const char *list = "";
    for (uint32_t i = 0; i < starts->n_args; i++)
        list = add_start(e, list, starts->args[i]);
    (void)open_array(e, starts, starts->args[0]->u.buffer, list);
    e->starts = starts;
    stmt(e, s->body);
    e->starts = before;
    e->names.len = depth;
    w_close(e->w, "");
}

static bool has_starts(tir_expr_ref call, tir_expr_ref starts)
{
    bool same = starts && starts->n_args == tir_instr_runs(call);
    for (uint32_t i = 0; same && i < starts->n_args; i++)
        same = tir_expr_equal(tir_instr_run(call, i), starts->args[i]);
    return same;
}

bool runs_write(c_emit *e, const tir_stmt *s)
{
    tir_expr_ref call = s->kind == TIR_EVALUATE && s->value->kind == TIR_INSTR ? s->value : NULL;
    if (!call || tir_instr_runs(call) == 1)
        return false;
    needs_add_kernel(e->needs, "kernel/common/rolled.h");
    const uint32_t depth = e->names.len;
    if (has_starts(call, e->starts)) {
        w_line(e->w, "%s;", instr_text(e, call, expr_operand, expr_name(e, e->starts)));
        return true;
    }
    const char *list = "";
    for (uint32_t i = 0; i < tir_instr_runs(call); i++)
        list = add_start(e, list, tir_instr_run(call, i));
    w_line(e->w, "%s;",
           instr_text(e, call, expr_operand, open_array(e, call, call->args[1]->u.buffer, list)));
    w_close(e->w, "");
    e->names.len = depth;
    return true;
}
