/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the inputs that decide where a program branches and how often it loops, so that test data can be chosen for
 * them. */
#include "prog/prog.h"

static bool reads_into(const prog_step *s, const bool *decides)
{
    for (uint32_t k = s->n_in; k < s->n_args; k++)
        if (decides[s->args[k]])
            return true;
    return false;
}

/* Marks what the step reads; whether any of that is new. */
static bool mark_operands(const prog_step *s, uint32_t n, bool *decides)
{
    bool more = false;
    for (uint32_t k = 0; k < n; k++) {
        more |= !decides[s->args[k]];
        decides[s->args[k]] = true;
    }
    return more;
}

void prog_find_steering(compiler *c, const prog_func *f, bool *out)
{
    prog_walk w;
    bool *decides = arena_array(&c->mem, bool, f->values.len + 1u), more = true;
    for (const prog_step *s = prog_first_step(f, &w); s; s = prog_next_step(&w))
        if (s->kind == STEP_IF || s->kind == STEP_LOOP)
            decides[s->args[0]] = true;
    while (more) { /* a loop's body makes its condition from what is read before */
        more = false;
        for (const prog_step *s = prog_first_step(f, &w); s; s = prog_next_step(&w))
            if (s->n_blocks == 0 && reads_into(s, decides))
                more |= mark_operands(s, s->n_in, decides);
    }
    for (uint32_t i = 0; i < f->n_inputs; i++)
        out[i] = decides[i];
}
