/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels make becomes results of the function, too, so that a caller sees every step: for finding the operator
 * that computes wrongly. Left out are extents, values whose extents a run decides, and what blocks of a branch or loop
 * make. It comes before joining, which would put values into others. */
#include "prog/prog.h"

#include <string.h>

static bool is_taken(const prog_func *f, const char *name)
{
    for (uint32_t i = 0; i < f->results.len; i++)
        if (strcmp(f->results.data[i].name, name) == 0)
            return true;
    return false;
}

/* Behind the results of the model and before the shapes of those. */
static void add_result(compiler *c, prog_func *f, uint32_t value)
{
    const char *name = f->values.data[value].name;
    uint32_t at = f->results.len;
    while (is_taken(f, name))
        name = intern(c->names, arena_printf(&c->mem, "%s.shown", name));
    vec_push(&c->mem, &f->results, (prog_result){0});
    for (; at > 0 && f->results.data[at - 1].shape_of != PROG_NONE; at--)
        f->results.data[at] = f->results.data[at - 1];
    f->results.data[at] = (prog_result){name, value, PROG_NONE};
}

static void show(compiler *c, prog_func *f)
{
    prog_walk w;
    uint64_t start;
    bool *shared = arena_array(&c->mem, bool, f->values.len + 1u);
    for (const prog_step *s = prog_first_step(f, &w); s; s = prog_next_step(&w))
        for (uint32_t k = 0; s->n_blocks > 0 && k < s->n_args; k++)
            shared[s->args[k]] = true;
    for (uint32_t i = 0; i < f->steps.len; i++) {
        const prog_step *s = &f->steps.data[i];
        for (uint32_t k = s->n_in; s->kernel && k < s->n_args; k++) {
            const prog_value *v = &f->values.data[s->args[k]];
            if (v->space == SPACE_WORKSPACE && v->base == PROG_NONE && !v->extent && !shared[s->args[k]] &&
                shape_is_static(v->type.shape))
                add_result(c, f, s->args[k]);
        }
    }
    for (uint32_t i = 0; i < f->results.len; i++) {
        prog_value *root = &f->values.data[prog_root(f, f->results.data[i].value, &start)];
        root->space = SPACE_OUTPUT;
        root->index = i;
    }
    prog_place_results(f);
}

bool prog_pass_show(compiler *c, prog_module *m)
{
    for (uint32_t i = 0; i < m->funcs.len; i++)
        show(c, m->funcs.data[i]);
    return true;
}
