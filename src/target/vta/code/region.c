/* SPDX-License-Identifier: Apache-2.0 */
/* What the text of a region has in packages and in modules alike. */
#include "target/vta/code/vta_package.h"

static const diag *error_after(const diags *d, diags_mark mark)
{
    const diag *at = mark.last ? mark.last->next : d->first;
    while (at && at->level != DIAG_ERROR)
        at = at->next;
    return at;
}

bool vta_region_lower(compiler *c, const prog_source *s, prog_region *r, vta_code_captured *captured)
{
    const diags_mark mark = diags_get_mark(&c->diags);
    tir_func *f = NULL;
    r->device = NULL;
    if (s->target->lower(c, r->kernel->func, r->kernel->name, &f) &&
        (!f || !captured || vta_code_capture(c, f, captured))) {
        r->device = f;
        r->declined = f == NULL;
        return true;
    }
    const diag *error = error_after(&c->diags, mark);
    if (!error || (error->code != DIAG_UNSUPPORTED && error->code != DIAG_DATA))
        return false;
    r->declined = true;
    r->why = arena_strdup(&c->mem, error->text);
    diags_reset(&c->diags, mark);
    (void)diag_warning(&c->diags, DIAG_UNSUPPORTED, src_loc_none(), "the region %s runs on the CPU: %s",
                       r->kernel->region ? r->kernel->region : r->kernel->name, r->why);
    return true;
}

bool vta_region_is_constant(const prog_region *r, const tir_func *f, uint32_t i)
{
    return i < f->n_inputs && r->kernel->constants && r->kernel->constants[i];
}

void vta_region_print_prototype(writer *w, const prog_region *r, const tir_func *f)
{
    w_fmt(w, "int32_t %s(", r->symbol);
    for (uint32_t i = 0; i < f->n_params; i++)
        w_fmt(w, "%s%s%s *p%u", i ? ", " : "", i < f->n_inputs ? "const " : "", dtype_c_name(f->params[i]->dt), i);
    w_str(w, f->n_params ? ")" : "void)");
}
