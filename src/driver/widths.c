/* SPDX-License-Identifier: Apache-2.0 */
/* The targets of a compile: one, or for a module for any machine one for each width of vectors. */
#include "driver/widths.h"

#include "type/target.h"

const target *widths_target(compiler *c, const compile_options *o)
{
    target *t = arena_new(&c->mem, target);
    *t = o->target ? *o->target : *target_default();
    t->workers = o->workers ? o->workers : t->workers;
    return t;
}

static bool is_wanted(const compile_options *o, const target *t)
{
    bool wanted = o->n_widths == 0;
    for (uint32_t i = 0; i < o->n_widths; i++)
        wanted |= o->widths[i] == t->vector_bytes;
    return wanted;
}

/* Those that stand for t in a module, with t's width of the schedule; none after a diagnostic. */
static uint32_t find_variants(compiler *c, const compile_options *o, const target *t, target *list)
{
    uint32_t n = 0;
    for (uint32_t i = 0; t->variants[i]; i++) {
        list[n] = *target_lookup(c, t->variants[i]);
        list[n].workers = t->workers;
        list[n].integers = t->integers; /* one answer on all machines */
        n += is_wanted(o, &list[n]);
    }
    if (n < (o->n_widths ? o->n_widths : 1)) {
        diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "--widths: the target %s does not have all of them", t->name);
        diag_hint(&c->diags, "name each of 64, 32 and 16 at most once");
        return 0;
    }
    return n;
}

uint32_t widths_of(compiler *c, const compile_options *o, const target *t, const target **out)
{
    target *list = arena_array(&c->mem, target, COMPILE_MAX_WIDTHS);
    const bool module = compile_makes(o, BACKEND_MODULE);
    list[0] = *t;
    *out = list;
    if (t->variants && module)
        return find_variants(c, o, t, list);
    if (t->variants && !compile_makes(o, BACKEND_C)) /* the text of a stage: for the first of them */
        list[0] = *target_lookup(c, t->variants[0]);
    if ((!t->variants && o->n_widths == 0) || list[0].variants != t->variants)
        return 1;
    diag_error(&c->diags, DIAG_USAGE, src_loc_none(),
               t->variants ? "the target %s is for modules" : "--widths: the target %s has one width", t->name);
    diag_hint(&c->diags, t->variants ? "add --emit module" : "leave --widths out, or take --target my_device");
    return 0;
}
