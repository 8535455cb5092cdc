/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that round numbers to bytes, on Cortex-M with SMLAD and floats: two bytes at a time, because both then share
 * the moves between registers of floats and of integers. */
#include "codegen/c/emit.h"
#include "tir/build.h"
#include "tir/instr.h"
#include "tir/walk.h"
#include "type/target.h"

#define MANY  32 /* elements */
#define LEAST 4  /* iterations */

/* --- rounded bytes --- */

/* Many bytes, of which two share moves between registers. */
static bool is_rounded(c_emit *e, const tir_stmt *loop)
{
    int64_t n = MANY;
    tir_expr_ref x = loop->body->value;
    return (e->f->target->features & TARGET_FPU) != 0 && (!tir_is_int(loop->extent, &n) || n >= MANY) &&
           x->kind == TIR_INSTR && x->u.row->by_two;
}

/* A function that takes no time to speak of stays short. */
static void open_loop(const c_emit *e)
{
    if (!e->few_steps)
        return;
    needs_add_kernel(e->needs, "kernel/common/rolled.h");
    w_line(e->w, "LATHE_ROLLED");
}

/* Two at a time, then the one that is left. */
static void write_by_two(c_emit *e, const tir_stmt *l, c_write_stmt stmt)
{
    const uint32_t depth = e->names.len;
    int64_t n = 0;
    const bool whole = tir_is_int(l->extent, &n) && n % 2 == 0;
    const char *ctype = dtype_c_name(l->var->type.dt), *min = expr_text(e, l->min).s,
               *end = scalar_at(e->tmp, expr_text(e, tir_add(e->c, l->min, l->extent)), PREC_MUL),
               *name = names_push(e, l->var, l->var->name, true);
    tir_expr_ref next = tir_add(e->c, tir_varref(e->c, l->var), tir_int(e->c, l->var->type.dt, 1));
    tir_stmt *both[2] = {l->body, tir_substitute_stmt(e->c, l->body, 1, &l->var, &next)};
    if (!whole) {
        w_str(e->w, "{\n");
        e->w->indent++;
        w_line(e->w, "%s %s = %s;", ctype, name, min);
    }
    open_loop(e);
    if (whole)
        w_open(e->w, "for (%s %s = %s; %s < %s; %s += 2)", ctype, name, min, name, end, name);
    else
        w_open(e->w, "for (; %s <= %s - 2; %s += 2)", name, end, name);
    stmt(e, tir_seq(e->c, 2, both));
    w_close(e->w, "");
    if (!whole) {
        open_loop(e);
        w_open(e->w, "for (; %s < %s; %s++)", name, end, name);
        stmt(e, l->body);
        w_close(e->w, "");
        w_close(e->w, "");
    }
    e->names.len = depth;
}

bool small_loops_write(c_emit *e, const tir_stmt *s, c_write_stmt stmt)
{
    const target *t = e->f->target;
    int64_t n = LEAST;
    if (!t || !t->small || (t->features & (TARGET_DSP | TARGET_MVE)) != TARGET_DSP || s->for_kind != FOR_SERIAL ||
        (tir_is_int(s->extent, &n) && n < LEAST))
        return false;
    const tir_buffer *b = s->body->kind == TIR_STORE ? s->body->buffer : NULL;
    if (!b || b->scope == SCOPE_REG || dtype_bits(b->dt) != 8 || dtype_is_float(b->dt))
        return false;
    tir_bounds_push(e->bounds, s->var, s->min, s->extent);
    const bool rounded = is_rounded(e, s);
    if (rounded)
        write_by_two(e, s, stmt);
    tir_bounds_pop(e->bounds);
    return rounded;
}
