/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions of the loop IR (tir/instr.h) as C: the text of the row with its operands in their places, and the
 * kernel that it calls. */
#include "codegen/c/family.h"
#include "tir/build.h"
#include "tir/instr.h"
#include "tir/walk.h"

#include <ctype.h>
#include <string.h>

const char *c_vector_name(c_emit *e, dtype dt, uint32_t lanes)
{
    needs_add(e->needs, (c_need){.kind = NEED_VECTOR, .dt = dt, .lanes = lanes});
    uint32_t bytes = needs_vector_bytes(dt, lanes);
    e->vector_bytes = bytes > e->vector_bytes ? bytes : e->vector_bytes;
    return needs_vector_name(e->tmp, dt, lanes);
}

/* A template in so many lanes, which converts between integers and floats. */
static void add_lanes(c_emit *e, const tir_intrin *row)
{
    c_vector_name(e, DT_I32, row->lanes);
    c_vector_name(e, DT_F32, row->lanes);
    if (e->needs->family)
        needs_add_kernel(e->needs, e->needs->family->setup);
    e->needs->fallback = e->needs->family != NULL;
    for (uint32_t i = 0; i < sizeof row->of_lane / sizeof *row->of_lane && row->of_lane[i]; i++)
        needs_add(e->needs, (c_need){.kind = NEED_KERNEL, .file = row->of_lane[i]});
    e->needs->fallback = false;
    needs_add_lanes_kernel(e->needs, row->kernel, DT_I32, row->bytes, row->lanes);
}

static void add_kernels(c_emit *e, tir_expr_ref x)
{
    const tir_intrin *row = x->u.row;
    if (row->kernel && tir_instr_gives_value(row) && !tir_instr_makes_value(row))
        needs_add_lanes_kernel(e->needs, row->kernel, x->type.dt, tir_instr_form_of(e->c, row)->params[0]->dt,
                               x->type.lanes);
    else if (row->kernel && row->lanes)
        add_lanes(e, row);
    else if (row->kernel)
        needs_add_kernel(e->needs, row->kernel);
    if (row->runs_kernel && tir_instr_runs(x) > 1)
        needs_add_kernel(e->needs, row->runs_kernel);
    if (row->attribute)
        e->attribute = row->attribute;
}

/* The argument that is called so; NULL: none is. */
static tir_expr_ref named(const tir_instr_form *f, tir_expr_ref x, const char *name)
{
    for (uint32_t i = 0; i < tir_instr_operands(f->row); i++)
        if (strcmp(f->params[tir_instr_param(f->row, i)]->name, name) == 0)
            return x->args[i];
    return tir_instr_arg(x, name);
}

typedef struct filler {
    c_emit *e;
    const tir_instr_form *form;
    tir_expr_ref x;
    c_operand operand;
    const char *starts; /* the array of first operands; NULL: there is one */
    const char *at;     /* what is left of the text */
} filler;

static const char *take_name(filler *f)
{
    const char *start = f->at;
    while (isalnum((unsigned char)*f->at) || *f->at == '_')
        f->at++;
    return arena_strndup(f->e->tmp, start, (size_t)(f->at - start));
}

/* The name of an argument, or a word that stands for itself. */
static const char *take_word(filler *f)
{
    const char *name = take_name(f);
    tir_expr_ref arg = named(f->form, f->x, name);
    if (arg && f->at[0] == '*' && isdigit((unsigned char)f->at[1])) {
        arg = tir_mul(f->e->c, arg, tir_int(f->e->c, arg->type.dt, f->at[1] - '0'));
        f->at += 2;
    }
    /* As loads and stores of vectors: the parts of the index are added one by one, which compilers step better. */
    const bool is_run = arg && arg->kind == TIR_ADDRESS && arg->n_args > 0 && f->x->u.row->lanes > 0;
    return arg ? f->operand(f->e, arg, is_run) : name;
}

/* Behind a $. */
static const char *take_special(filler *f)
{
    const char *name = take_name(f);
    if (strcmp(name, "begins") == 0)
        return f->x->op == TIR_ADD ? "0" : "1";
    if (strcmp(name, "starts") == 0)
        return f->starts;
    if (strcmp(name, "count") == 0)
        return arena_printf(f->e->tmp, "%u", tir_instr_runs(f->x));
    const char *v = c_vector_name(f->e, f->x->type.dt, f->x->type.lanes);
    return arena_printf(f->e->tmp, "%s%s", v, name + 1); /* v and what follows it */
}

/* The index that is `step` behind `at`, whose terms stay in their order: x + q and p - q make x + p. */
static tir_expr_ref index_behind(compiler *c, tir_expr_ref at, tir_expr_ref step)
{
    const bool meet = tir_is_binary(step, TIR_SUB) && tir_is_binary(at, TIR_ADD) && at->type.dt == step->type.dt &&
                      tir_expr_equal(at->args[1], step->args[1]);
    return meet ? tir_add(c, at->args[0], step->args[0]) : tir_add(c, at, tir_cast(c, at->type.dt, step));
}

/* Where the elements of an operand are read; with "+step" behind it the address of the one that is so many behind the
 * first. */
static const char *take_address(filler *f)
{
    tir_expr_ref a = named(f->form, f->x, take_name(f));
    if (*f->at != '+')
        return f->operand(f->e, a, true);
    f->at++;
    tir_expr_ref step = named(f->form, f->x, take_name(f)), at = index_behind(f->e->c, a->args[0], step);
    return f->operand(f->e, tir_address(f->e->c, a->u.buffer, 1, &at), false);
}

const char *instr_text(c_emit *e, tir_expr_ref x, c_operand operand, const char *starts)
{
    const tir_instr_form *form = tir_instr_form_of(e->c, x->u.row);
    filler f = {e, form, x, operand, starts, starts ? x->u.row->runs : x->u.row->call};
    writer w;
    writer_init(&w, e->tmp);
    while (*f.at) {
        if (isalpha((unsigned char)*f.at))
            w_str(&w, take_word(&f));
        else if (*f.at == '$' && *++f.at)
            w_str(&w, take_special(&f));
        else if (*f.at == '&' && *++f.at)
            w_str(&w, take_address(&f));
        else
            w_fmt(&w, "%c", *f.at++);
    }
    add_kernels(e, x);
    return w.data;
}
