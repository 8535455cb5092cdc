/* SPDX-License-Identifier: Apache-2.0 */
/* select: loops become instructions of the processor that runs the function, nodes that name their rows (tir/instr.h).
 * Each folder of src/target that has such instructions says what stands in the place of a loop (tir_selection). It is
 * asked about outer loops before those inside of them. Back ends write a node as its row says, and look for nothing. */
#include "tir/pass/select.h"
#include "tir/build.h"
#include "tir/node.h"
#include "tir/pass.h"

static const tir_selection *const selections[] = {
    &tir_selection_tables,
#define TARGET_SELECTION(name) &tir_selection_##name,
#include "target/targets.def"
};

static tir_stmt *instructions_for(const tir_selector *x, tir_stmt *loop)
{
    tir_stmt *out = NULL;
    for (uint32_t i = 0; i < sizeof selections / sizeof *selections && !out; i++)
        if (selections[i]->fits(x->f->target))
            out = selections[i]->loop(x, loop);
    return out;
}

static const tir_number *number_of(const tir_selector *x, const tir_var *v)
{
    for (uint32_t i = 0; i < x->f->n_numbers && dtype_is_int(v->type.dt); i++)
        if (x->f->numbers[i].var == v)
            return &x->f->numbers[i];
    return NULL;
}

/* What is known of the variable inside of s; whether anything is. */
static bool push_bounds(const tir_selector *x, const tir_stmt *s)
{
    const tir_number *n = s->kind == TIR_LET ? number_of(x, s->var) : NULL;
    const dtype dt = s->var ? s->var->type.dt : DT_NONE;
    if (s->kind == TIR_FOR)
        tir_bounds_push(x->bounds, s->var, s->min, s->extent);
    else if (n)
        tir_bounds_push(x->bounds, s->var, tir_int(x->c, dt, n->least), tir_int(x->c, dt, n->most - n->least + 1));
    return s->kind == TIR_FOR || n;
}

static tir_stmt *select_in(const tir_selector *x, tir_stmt *s);

static tir_stmt *select_parts(const tir_selector *x, tir_stmt *s)
{
    tir_stmt **parts = arena_array(&x->c->mem, tir_stmt *, s->n_stmts + 1u);
    for (uint32_t i = 0; i < s->n_stmts; i++)
        parts[i] = select_in(x, s->stmts[i]);
    return tir_seq(x->c, s->n_stmts, parts);
}

static tir_stmt *select_in(const tir_selector *x, tir_stmt *s)
{
    tir_stmt *loop = s->kind == TIR_FOR ? instructions_for(x, s) : NULL;
    if (loop)
        return loop;
    if (s->kind == TIR_SEQ)
        return select_parts(x, s);
    if (!s->body)
        return s;
    struct tir_stmt *out = tir_node_copy(x->c, s);
    const bool pushed = push_bounds(x, s);
    out->body = select_in(x, s->body);
    if (pushed)
        tir_bounds_pop(x->bounds);
    out->orelse = s->orelse ? select_in(x, s->orelse) : NULL;
    return out;
}

static bool has_instructions(const struct target *t)
{
    bool any = false;
    for (uint32_t i = 0; i < sizeof selections / sizeof *selections; i++)
        any |= t && selections[i]->fits(t);
    return any;
}

bool tir_pass_select(compiler *c, tir_func *f)
{
    tir_selector x = {c, f, tir_bounds_new(c)};
    if (has_instructions(f->target))
        f->body = select_in(&x, f->body);
    return true;
}
