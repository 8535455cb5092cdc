/* SPDX-License-Identifier: Apache-2.0 */
/* Concatenation without copying: where the operands of a joining kernel lie one behind the other in its result, they
 * are written there at once, and the kernel goes. An operand can be moved when its bytes are all of a workspace value
 * that lies nowhere else, is no result, and is written by one step: what a loop carries or two branches make stays. */
#include "base/ptr_map.h"
#include "prog/prog.h"

/* The value that would move, or PROG_NONE. */
static uint32_t movable(const prog_func *f, const bool *shared, uint32_t v)
{
    uint64_t start;
    uint32_t root = prog_root(f, v, &start);
    const prog_value *r = &f->values.data[root];
    bool whole = start == 0 && prog_bytes(r) == prog_bytes(&f->values.data[v]);
    return r->space == SPACE_WORKSPACE && whole && !shared[root] ? root : PROG_NONE;
}

/* shared: of each value, several steps write it. */
static bool join(compiler *c, prog_func *f, const bool *shared, prog_step *s)
{
    uint32_t *roots = arena_array(&c->mem, uint32_t, s->n_args), whole = s->args[s->n_in];
    uint64_t at = 0;
    ptr_map seen;
    if (shared[whole] || f->values.data[whole].space == SPACE_STATE) /* its old value is read until the kernel runs */
        return false;
    ptr_map_init(&seen, &c->mem);
    for (uint32_t i = 0; i < s->n_in; i++) {
        uint32_t other;
        roots[i] = movable(f, shared, s->args[i]);
        if (roots[i] == PROG_NONE || ptr_map_get(&seen, &f->values.data[roots[i]], &other))
            return false;
        ptr_map_set(&seen, &f->values.data[roots[i]], i);
    }
    for (uint32_t i = 0; i < s->n_in; i++) {
        f->values.data[roots[i]].base = whole;
        f->values.data[roots[i]].offset = at;
        f->values.data[roots[i]].space = f->values.data[whole].space;
        f->values.data[roots[i]].index = f->values.data[whole].index;
        at += prog_bytes(&f->values.data[roots[i]]);
    }
    roots[s->n_in] = whole;
    s->kind = STEP_JOIN;
    s->kernel = NULL;
    s->args = roots;
    return true;
}

bool prog_pass_join(compiler *c, prog_module *m)
{
    for (uint32_t i = 0; i < m->funcs.len; i++) {
        prog_func *f = m->funcs.data[i];
        prog_walk w;
        bool *shared = arena_array(&c->mem, bool, f->values.len + 1u);
        for (const prog_step *s = prog_first_step(f, &w); s; s = prog_next_step(&w))
            for (uint32_t k = 0; s->n_blocks > 0 && k < s->n_args; k++) /* a condition, too: rarely concatenated */
                shared[s->args[k]] = true;
        for (prog_step *s = prog_first_step(f, &w); s; s = prog_next_step(&w))
            if (s->kernel && s->kernel->joins)
                (void)join(c, f, shared, s);
        prog_place_results(f);
    }
    prog_drop_unused(m);
    return true;
}
