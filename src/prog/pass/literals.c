/* SPDX-License-Identifier: Apache-2.0 */
/* A constant with the same number in all places becomes that number in the kernels that read it. If several steps share
 * a kernel, it keeps its operands, because one step may have a number where another one has an array. So this pass
 * comes before sharing. Regions keep their operands too, because their targets know the function as it is. */
#include "base/ptr_map.h"
#include "prog/prog.h"

static bool is_literal(const prog_value *v)
{
    return v->data && v->data->kind == TENSOR_SPLAT && v->data->count > 1;
}

static void drop_operand(compiler *c, prog_step *s, uint32_t i, const tensor_data *t)
{
    prog_kernel *k = s->kernel;
    if (k->plain)
        prog_drop_param(c, k->plain, i, t);
    if (k->loops)
        prog_drop_param(c, k->loops, i, t);
    else
        vec_push(&c->mem, &k->literals, ((prog_literal){i, t}));
    k->joins = false; /* not all of the result is an operand any more */
    for (uint32_t n = i + 1; n < s->n_args; n++)
        s->args[n - 1] = s->args[n];
    s->n_args--;
    s->n_in--;
}

static void in_step(compiler *c, const prog_func *f, prog_step *s)
{
    for (uint32_t i = 0; i < s->n_in;) {
        const prog_value *v = &f->values.data[s->args[i]];
        if (is_literal(v))
            drop_operand(c, s, i, v->data);
        else
            i++;
    }
}

bool prog_pass_literals(compiler *c, prog_module *m)
{
    ptr_map uses;
    arena tmp;
    prog_walk w;
    arena_init(&tmp, &m->c->mem);
    ptr_map_init(&uses, &tmp);
    for (uint32_t i = 0; i < m->funcs.len; i++)
        for (const prog_step *s = prog_first_step(m->funcs.data[i], &w); s; s = prog_next_step(&w)) {
            uint32_t n = 0;
            if (s->kernel) {
                (void)ptr_map_get(&uses, s->kernel, &n);
                ptr_map_set(&uses, s->kernel, n + 1);
            }
        }
    for (uint32_t i = 0; i < m->funcs.len; i++)
        for (prog_step *s = prog_first_step(m->funcs.data[i], &w); s; s = prog_next_step(&w)) {
            uint32_t n = 0;
            if (s->kernel && !s->kernel->region && ptr_map_get(&uses, s->kernel, &n) && n == 1)
                in_step(c, m->funcs.data[i], s);
        }
    arena_free(&tmp);
    prog_drop_unused(m);
    return true;
}
