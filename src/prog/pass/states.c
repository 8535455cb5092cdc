/* SPDX-License-Identifier: Apache-2.0 */
/* States without copying: where a run ends with a copy into a state, the operator that made what is copied writes the
 * state itself, if nothing reads the old one behind it, and if it may write over what it reads of it. This is known
 * only when kernels have the loops of their targets. */
#include "prog/prog.h"
#include "tir/build.h"
#include "tir/facts.h"

#include <string.h>

prog_over prog_writes_over(compiler *c, const prog_kernel *k, uint32_t in, uint32_t out)
{
    const tir_func *f = k->loops ? k->loops : prog_kernel_meaning(k);
    tir_distance d;
    if (!f || k->symbol || k->region || in >= f->n_inputs || out >= f->n_params ||
        tir_buffer_count(f->params[in]) != tir_buffer_count(f->params[out]))
        return PROG_OVER_NEVER;
    if (tir_can_alias(c, f, in, out) || tir_can_alias_in_lanes(c, f, in, out))
        return PROG_OVER_ALWAYS;
    const bool vectors = f->target && f->target->vector_bytes > 0; /* their loads are not told one from another */
    const bool near = !vectors && tir_find_distance(c, f, in, out, &d) && (d.below == 0 || d.above == 0);
    return near ? PROG_OVER_IN_ONE_PART : PROG_OVER_NEVER;
}

static bool is_state(const prog_func *f, uint32_t v)
{
    return f->values.data[v].space == SPACE_STATE && f->values.data[v].base == PROG_NONE;
}

/* A step uses bytes of root, or one inside of its blocks does. */
static bool uses(const prog_func *f, const prog_step *s, uint32_t root)
{
    uint64_t at;
    for (uint32_t i = 0; i < s->n_args; i++)
        if (s->kind != STEP_VIEW && prog_root(f, s->args[i], &at) == root)
            return true;
    for (uint32_t b = 0; b < s->n_blocks; b++)
        for (uint32_t i = 0; i < s->blocks[b].len; i++)
            if (uses(f, &s->blocks[b].data[i], root))
                return true;
    return false;
}

/* The one step of the function that writes all of root; PROG_NONE: there are more of them, or it is no kernel. */
static uint32_t maker_of(const prog_func *f, uint32_t root, uint32_t end)
{
    uint32_t found = PROG_NONE, n = 0;
    for (uint32_t i = 0; i < end; i++) {
        const prog_step *s = &f->steps.data[i];
        bool writes = s->n_blocks > 0 && uses(f, s, root);
        for (uint32_t k = s->n_in; k < s->n_args; k++) {
            uint64_t at;
            const bool here = s->kind != STEP_VIEW && prog_root(f, s->args[k], &at) == root;
            writes |= here;
            found = here && s->kind == STEP_KERNEL && s->args[k] == root ? i : found;
        }
        n += writes;
    }
    return n == 1 ? found : PROG_NONE;
}

static bool may_write(compiler *c, const prog_func *f, const prog_step *s, uint32_t made, uint32_t state)
{
    uint32_t out = s->n_in;
    while (s->args[out] != made)
        out++;
    for (uint32_t i = 0; i < s->n_in; i++) {
        uint64_t at;
        if (prog_root(f, s->args[i], &at) == state &&
            (at != 0 || prog_bytes(&f->values.data[s->args[i]]) != prog_bytes(&f->values.data[state]) ||
             prog_writes_over(c, s->kernel, i, out) == PROG_OVER_NEVER))
            return false;
    }
    return true;
}

/* What was the value `from` lies in the value `to` from now on. */
static void move(prog_func *f, uint32_t from, uint32_t to)
{
    prog_walk w;
    for (uint32_t i = 0; i < f->values.len; i++)
        if (f->values.data[i].base == from)
            f->values.data[i].base = to;
    for (prog_step *s = prog_first_step(f, &w); s; s = prog_next_step(&w))
        for (uint32_t k = 0; k < s->n_args; k++)
            s->args[k] = s->args[k] == from ? to : s->args[k];
}

/* Step `at` copies a value into a state at the end of the run; true: it is not needed any more. */
static bool write_in_place(compiler *c, prog_func *f, uint32_t at)
{
    const prog_step *s = &f->steps.data[at];
    uint64_t start;
    if (s->kind != STEP_KERNEL || strcmp(s->kernel->kind, "copy") != 0 || s->n_args != 2 || !is_state(f, s->args[1]))
        return false;
    const uint32_t state = s->args[1], root = prog_root(f, s->args[0], &start);
    const prog_value *v = &f->values.data[root];
    const uint32_t made = maker_of(f, root, at);
    if (v->space != SPACE_WORKSPACE || start != 0 || prog_bytes(v) != prog_bytes(&f->values.data[state]) ||
        made == PROG_NONE || !may_write(c, f, &f->steps.data[made], root, state))
        return false;
    for (uint32_t i = made + 1; i < f->steps.len; i++)
        if (i != at && uses(f, &f->steps.data[i], state))
            return false;
    move(f, root, state);
    return true;
}

bool prog_pass_states(compiler *c, prog_module *m)
{
    for (uint32_t i = 0; i < m->funcs.len; i++) {
        prog_func *f = m->funcs.data[i];
        for (uint32_t k = f->steps.len; k-- > 0 && f->n_states > 0;) {
            if (!write_in_place(c, f, k))
                continue;
            memmove(&f->steps.data[k], &f->steps.data[k + 1], (f->steps.len - k - 1) * sizeof *f->steps.data);
            f->steps.len--;
        }
        prog_place_results(f);
    }
    prog_drop_unused(m);
    return true;
}
