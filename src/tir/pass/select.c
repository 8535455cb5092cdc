/* SPDX-License-Identifier: Apache-2.0 */
/* select: loops, stores and expressions become instructions of the processor that runs the function, nodes that name
 * their rows (tir/instr.h). Each folder of src/target that has such instructions says what stands in the place of one
 * (tir_selection). It is asked about outer loops and expressions before those inside of them, so that it takes the
 * largest that it has an instruction for. Of several selections, the first one that has something is taken. Back ends
 * write a node as its row says, and look for nothing. What stays without an instruction that is meant for it is counted
 * (TIR_LEFT), so that a form which no selection knows is not lost in silence. */
#include "tir/pass/select.h"
#include "tir/build.h"
#include "tir/node.h"
#include "tir/pass.h"

static const tir_selection *const selections[] = {
    &tir_selection_tables,
    &tir_selection_any,
    &tir_selection_round,
#define TARGET_SELECTION(name) &tir_selection_##name,
#include "target/targets.def"
    &tir_selection_extremes,
};

/* For a loop, or for a store. */
static tir_stmt *instructions_for(const tir_selector *x, tir_stmt *s)
{
    tir_stmt *out = NULL;
    for (uint32_t i = 0; i < sizeof selections / sizeof *selections && !out; i++) {
        const tir_selection *by = selections[i];
        tir_stmt *(*ask)(const tir_selector *x, tir_stmt *s) = s->kind == TIR_FOR ? by->loop : by->store;
        if (ask && by->fits(x->f->target))
            out = ask(x, s);
    }
    return out;
}

static tir_stmt *instructions_for_two(const tir_selector *x, tir_stmt *first, tir_stmt *next)
{
    tir_stmt *out = NULL;
    if (first->kind != TIR_STORE || next->kind != TIR_STORE)
        return NULL;
    for (uint32_t i = 0; i < sizeof selections / sizeof *selections && !out; i++)
        if (selections[i]->stores && selections[i]->fits(x->f->target))
            out = selections[i]->stores(x, first, next);
    return out;
}

static tir_expr_ref instruction_for(const tir_selector *x, tir_expr_ref e)
{
    tir_expr_ref out = NULL;
    for (uint32_t i = 0; i < sizeof selections / sizeof *selections && !out; i++)
        if (selections[i]->expr && selections[i]->fits(x->f->target))
            out = selections[i]->expr(x, e);
    return out;
}

/* --- what stays --- */

static void count_loop(const tir_selector *x, tir_stmt *loop)
{
    bool meant = false;
    for (uint32_t i = 0; i < sizeof selections / sizeof *selections; i++)
        meant |= selections[i]->meant_loop && selections[i]->fits(x->f->target) && selections[i]->meant_loop(x, loop);
    *x->missed += meant;
}

static void count_expr(const tir_selector *x, tir_expr_ref e)
{
    bool meant = false;
    for (uint32_t i = 0; i < sizeof selections / sizeof *selections; i++)
        meant |= selections[i]->meant_expr && selections[i]->fits(x->f->target) && selections[i]->meant_expr(x, e);
    *x->missed += meant;
}

/* --- what stands in its place --- */

/* NULL stays NULL. */
static tir_expr_ref select_value(const tir_selector *x, tir_expr_ref e)
{
    if (!e || e->n_args == 0)
        return e;
    tir_expr_ref chosen = instruction_for(x, e), *args = NULL;
    if (!chosen)
        count_expr(x, e);
    e = chosen ? chosen : e;
    for (uint32_t i = 0; i < e->n_args; i++) {
        tir_expr_ref a = select_value(x, e->args[i]);
        if (a == e->args[i])
            continue;
        args = args ? args : arena_copy(&x->c->mem, e->args, e->n_args * sizeof *args, _Alignof(tir_expr_ref));
        args[i] = a;
    }
    return args ? tir_node_rebuild(x->c, e, args) : e;
}

/* The expressions of s, which is a copy, but for bounds of loops. */
static void select_values(const tir_selector *x, struct tir_stmt *s)
{
    tir_expr_ref *indices = arena_array(&x->c->mem, tir_expr_ref, s->n_indices + 1u);
    for (uint32_t i = 0; i < s->n_indices; i++)
        indices[i] = select_value(x, s->indices[i]);
    s->indices = indices;
    s->value = select_value(x, s->value);
    s->cond = select_value(x, s->cond);
}

/* What is known of the variable inside of s; whether anything is. */
static bool push_bounds(const tir_selector *x, const tir_stmt *s)
{
    const bool is_number = s->kind == TIR_LET && dtype_is_int(s->var->type.dt) && s->var->type.lanes == 1;
    const tir_number *n = is_number ? tir_select_number(x, s->var) : NULL;
    if (s->kind == TIR_FOR)
        tir_bounds_push(x->bounds, s->var, s->min, s->extent);
    else if (n)
        tir_bounds_push(x->bounds, s->var, tir_i64(x->c, n->least), tir_i64(x->c, n->most - n->least + 1));
    else if (is_number)
        tir_bounds_push(x->bounds, s->var, s->value, tir_int(x->c, s->var->type.dt, 1));
    return s->kind == TIR_FOR || is_number;
}

static tir_stmt *select_in(const tir_selector *x, tir_stmt *s, bool loops);

static tir_stmt *select_parts(const tir_selector *x, tir_stmt *s, bool loops)
{
    tir_stmt **parts = arena_array(&x->c->mem, tir_stmt *, s->n_stmts + 1u);
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_stmts; i++) {
        tir_stmt *both = i + 1 < s->n_stmts ? instructions_for_two(x, s->stmts[i], s->stmts[i + 1]) : NULL;
        parts[n++] = select_in(x, both ? both : s->stmts[i], both ? false : loops);
        i += both != NULL;
    }
    return tir_seq(x->c, n, parts);
}

/* loops: whether loops in s are asked about. Those of what stands in the place of one are not: they would be replaced
 * again. */
static tir_stmt *select_in(const tir_selector *x, tir_stmt *s, bool loops)
{
    const bool asked = (s->kind == TIR_FOR && loops) || s->kind == TIR_STORE;
    tir_stmt *chosen = asked ? instructions_for(x, s) : NULL;
    if (chosen)
        return select_in(x, chosen, false);
    if (asked && s->kind == TIR_FOR)
        count_loop(x, s);
    if (s->kind == TIR_SEQ)
        return select_parts(x, s, loops);
    struct tir_stmt *out = tir_node_copy(x->c, s);
    select_values(x, out);
    if (!s->body)
        return out;
    const bool pushed = push_bounds(x, s);
    out->body = select_in(x, s->body, loops);
    if (pushed)
        tir_bounds_pop(x->bounds);
    out->orelse = s->orelse ? select_in(x, s->orelse, loops) : NULL;
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
    tir_selector x = {c, f, tir_bounds_new(c), &f->left.instructions};
    f->left.instructions = 0;
    if (has_instructions(f->target))
        f->body = select_in(&x, f->body, true);
    return true;
}
