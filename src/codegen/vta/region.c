/* SPDX-License-Identifier: Apache-2.0 */
/* What the text of a region has in packages and in modules alike. */
#include "codegen/vta/vta_package.h"

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
