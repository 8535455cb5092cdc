/* SPDX-License-Identifier: Apache-2.0 */
/* Programs as text (docs/reference/program.md): functions in order, then kernels, each with its loops. */
#include "prog/shape.h"
#include "tir/text.h"

#include <string.h>

static void typed(writer *w, const prog_value *v)
{
    w_name(w, '%', v->name);
    w_str(w, ": ");
    if (!v->extent) {
        type_print(w, &v->type);
        if (v->memory)
            w_fmt(w, " in %s", v->memory);
        return;
    }
    w_str(w, "extent ");
    dim_print(w, v->extent);
    if (dim_bound(v->extent) >= 0)
        w_fmt(w, " <= %lld", (long long)dim_bound(v->extent));
}

/* Constants that were made before value `end` and are not printed yet. */
static void constants(writer *w, const prog_func *f, uint32_t *next, uint32_t end)
{
    for (; *next < end; ++*next) {
        const prog_value *v = &f->values.data[*next];
        if (!v->data)
            continue;
        w_str(w, "constant ");
        typed(w, v);
        w_str(w, " = ");
        tensor_print(w, v->data);
        w_str(w, "\n");
    }
}

static void at(writer *w, const prog_value *v)
{
    if (v->offset)
        w_fmt(w, " at %llu", (unsigned long long)v->offset);
}

/* Constants that the step needs, and those made before its first result. */
static void constants_of(writer *w, const prog_func *f, const prog_step *s, uint32_t *next)
{
    uint32_t end = *next;
    for (uint32_t i = 0; i < s->n_in; i++)
        if (s->args[i] >= end && f->values.data[s->args[i]].data)
            end = s->args[i] + 1;
    if (s->n_args > s->n_in && s->args[s->n_in] > end)
        end = s->args[s->n_in];
    constants(w, f, next, end);
}

/* Results with their types where they appear for the first time: they are numbered in that order. */
static void results(writer *w, const prog_func *f, const prog_step *s, uint32_t *next)
{
    w_str(w, ") -> (");
    for (uint32_t i = s->n_in; i < s->n_args; i++) {
        const prog_value *v = &f->values.data[s->args[i]];
        w_str(w, i > s->n_in ? ", " : "");
        if (s->args[i] < *next)
            w_name(w, '%', v->name);
        else
            typed(w, v);
        *next = s->args[i] < *next ? *next : s->args[i] + 1;
        if (s->kind == STEP_VIEW)
            at(w, v);
    }
    w_str(w, ")");
}

static void operand_list(writer *w, const prog_func *f, const prog_step *s)
{
    uint32_t first = s->n_blocks > 0 ? 1 : 0; /* a condition stands in front of the list */
    for (uint32_t i = first; i < s->n_in; i++) {
        w_str(w, i > first ? ", " : "");
        w_name(w, '%', f->values.data[s->args[i]].name);
        if (s->kind == STEP_JOIN)
            at(w, &f->values.data[s->args[i]]);
    }
}

static void step(writer *w, const prog_func *f, const prog_step *s, uint32_t *next)
{
    constants_of(w, f, s, next);
    w_fmt(w, "%s ", prog_step_text(s->kind));
    if (s->kernel) {
        w_name(w, '@', s->kernel->name);
        w_str(w, " ");
    }
    if (s->n_blocks > 0) {
        w_name(w, '%', f->values.data[s->args[0]].name);
        w_str(w, " ");
    }
    w_str(w, "(");
    operand_list(w, f, s);
    results(w, f, s, next);
    if (s->source && *s->source) {
        w_str(w, " of ");
        w_quoted(w, s->source, strlen(s->source));
    }
    if (s->n_blocks == 0) {
        w_str(w, "\n");
        return;
    }
    w_str(w, " {\n");
    w->indent++;
    for (uint32_t b = 0; b < s->n_blocks; b++) {
        for (uint32_t i = 0; i < s->blocks[b].len; i++)
            step(w, f, &s->blocks[b].data[i], next);
        bool more = b + 1 < s->n_blocks;
        w_close(w, more ? " else {" : "");
        w->indent += more;
    }
}

static void print_state(writer *w, const prog_value *v)
{
    w_str(w, "state ");
    typed(w, v);
    if (v->initial) {
        w_str(w, " = ");
        tensor_print(w, v->initial);
    }
    w_str(w, "\n");
}

static void print_func(writer *w, const prog_func *f)
{
    uint32_t next = f->n_inputs + f->n_states;
    w_str(w, "func ");
    w_name(w, '@', f->name);
    w_str(w, "(");
    for (uint32_t i = 0; i < f->n_inputs; i++) {
        w_str(w, i ? ", " : "");
        typed(w, &f->values.data[i]);
    }
    w_str(w, ") -> (");
    for (uint32_t i = 0; i < f->results.len; i++) {
        const char *name = f->values.data[f->results.data[i].value].name;
        w_str(w, i ? ", " : "");
        w_name(w, '%', name);
        if (strcmp(name, f->results.data[i].name) != 0) {
            w_str(w, " ");
            w_quoted(w, f->results.data[i].name, strlen(f->results.data[i].name));
        }
        if (f->results.data[i].shape_of != PROG_NONE)
            w_fmt(w, " shape of %u", f->results.data[i].shape_of);
    }
    w_open(w, ")");
    for (uint32_t i = f->n_inputs; i < f->n_inputs + f->n_states; i++)
        print_state(w, &f->values.data[i]);
    for (uint32_t i = 0; i < f->steps.len; i++)
        step(w, f, &f->steps.data[i], &next);
    constants(w, f, &next, f->values.len);
    w_close(w, "");
}

/* "as @shape (1, 2)" */
static void print_numbers(writer *w, const prog_kernel *k)
{
    if (!k->shape)
        return;
    w_str(w, " as ");
    w_name(w, '@', k->shape->name);
    for (uint32_t i = 0; i < prog_shape_numbers(k->shape); i++)
        w_fmt(w, "%s%d", i ? ", " : " (", (int)k->numbers[i]);
    w_str(w, ")");
}

static void print_kernel(writer *w, const prog_kernel *k)
{
    w_str(w, "\nkernel ");
    w_name(w, '@', k->name);
    w_str(w, " of ");
    w_quoted(w, k->kind, strlen(k->kind));
    w_str(w, " target ");
    w_quoted(w, k->target->name, strlen(k->target->name));
    w_str(w, k->joins ? " joins" : k->stacks ? " stacks" : k->region ? " region" : "");
    print_numbers(w, k);
    w_str(w, "\n");
    if (prog_kernel_meaning(k))
        tir_print_func(w, prog_kernel_meaning(k));
}

void prog_print(writer *w, const prog_module *m)
{
    w_str(w, "program\n");
    for (uint32_t i = 0; i < m->funcs.len; i++)
        print_func(w, m->funcs.data[i]);
    for (uint32_t i = 0; i < m->kernels.len; i++)
        print_kernel(w, m->kernels.data[i]);
    for (uint32_t i = 0; i < m->shapes.len; i++) {
        w_str(w, "\nshape ");
        w_name(w, '@', m->shapes.data[i]->name);
        w_str(w, "\n");
        tir_print_func(w, m->shapes.data[i]->loops);
    }
}
