/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that C compilers for processors with DSP write badly: long copies, which are calls, and rounded bytes, of which
 * two share moves between registers. */
#include "codegen/c/emit.h"
#include "tir/build.h"
#include "tir/instr.h"
#include "tir/walk.h"
#include "type/target.h"

#define MANY  32 /* elements */
#define LEAST 4  /* iterations */

/* --- copies --- */

#define LEAST_COPY 65 /* bytes; compilers move fewer where they are */

/* What the index grows by with v; 0: no number that is known. */
static int64_t step_of(c_emit *e, tir_expr_ref at, const tir_var *v)
{
    int64_t by = 0;
    tir_expr_ref next = tir_add(e->c, tir_varref(e->c, v), tir_int(e->c, v->type.dt, 1));
    next = tir_substitute(e->c, at, 1, &v, &next);
    return tir_is_int(tir_simplify(e->bounds, tir_sub(e->c, next, at)), &by) ? by : 0;
}

static bool shares_storage(const c_emit *e, const tir_buffer *b)
{
    for (uint32_t i = 0; e->may_alias && i < e->f->n_params; i++)
        if (e->f->params[i] == b && e->may_alias[i])
            return true;
    return false;
}

static const char *address_at(c_emit *e, const tir_buffer *b, tir_expr_ref at, const tir_stmt *loop)
{
    for (; loop->kind == TIR_FOR; loop = loop->body)
        at = tir_substitute(e->c, at, 1, &loop->var, &loop->min);
    return arena_printf(e->tmp, "&%s[%s]", expr_name(e, b), expr_text(e, at).s);
}

/* Elements of one run in both places, by the loops around s, which are counted from the innermost one; 0: there are
 * gaps. */
static int64_t run_of(c_emit *e, const tir_stmt *loop, tir_expr_ref to, tir_expr_ref from)
{
    int64_t n = 0, inner = loop->body->kind == TIR_FOR ? run_of(e, loop->body, to, from) : 1;
    if (inner == 0 || loop->for_kind != FOR_SERIAL || !tir_is_int(loop->extent, &n) || n <= 0 || n > INT32_MAX / inner)
        return 0;
    const bool beside = step_of(e, to, loop->var) == inner && step_of(e, from, loop->var) == inner;
    return beside ? n * inner : 0;
}

/* C compilers call memmove, which takes longer, because they lose sight of what `restrict` says. */
static bool write_copy(c_emit *e, const tir_stmt *s)
{
    const tir_stmt *store = s;
    while (store->kind == TIR_FOR)
        store = store->body;
    if (store->kind != TIR_STORE || store->value->type.lanes != 1)
        return false;
    tir_expr_ref x = store->value;
    if (x->kind != TIR_LOAD || x->u.buffer == store->buffer || x->u.buffer->dt != store->buffer->dt ||
        dtype_bits(x->u.buffer->dt) < 8 || shares_storage(e, x->u.buffer) || shares_storage(e, store->buffer))
        return false;
    tir_expr_ref to = expr_flat(e, store->buffer, store->n_indices, store->indices),
                 from = expr_flat(e, x->u.buffer, x->n_args, x->args);
    if (expr_register(e, store->buffer, to) || expr_register(e, x->u.buffer, from))
        return false;
    const int64_t size = run_of(e, s, to, from) * (int64_t)dtype_bytes(store->buffer->dt);
    if (size < LEAST_COPY)
        return false;
    needs_add_kernel(e->needs, "kernel/dsp/words.h");
    w_line(e->w, "(void)memcpy(%s, %s, %lld);", address_at(e, store->buffer, to, s),
           address_at(e, x->u.buffer, from, s), (long long)size);
    return true;
}

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
    if (write_copy(e, s))
        return true;
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
