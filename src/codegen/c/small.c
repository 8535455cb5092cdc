/* SPDX-License-Identifier: Apache-2.0 */
/* Packages for processors with little memory (TVMRT_SMALL): which ones they are, and the little that tells their sizes.
 * calls.c writes how they run. Tables of tensors, operators and layers, which an engine reads, stay in the source for
 * programs that ask for them. */
#include "abi/package.h"
#include "codegen/c/package.h"
#include "codegen/embedded.h"

bool package_is_small(const codegen_unit *u)
{
    const plan *pl = u->plan;
    const plan_problem *pp = pl->problem;
    if (!u->target->small || u->target->workers > 1 || u->opt_level == 0 || pp->steps.len > 1 || pp->ops.len == 0)
        return false;
    for (uint32_t i = 0; i < pp->ops.len; i++) {
        if (pl->tasks[i].parts != 1)
            return false;
        for (uint32_t k = 0; k < pp->ops.data[i].n_args; k++) {
            const plan_value *v = &pp->values.data[pp->ops.data[i].args[k]];
            if (v->storage == STORE_DEVICE || v->bytes == 0) /* it may have no address */
                return false;
        }
    }
    return true;
}

void small_write_tables(const package *p, writer *w)
{
    w_fmt(w, "#if TVMRT_SMALL\n/* Sizes alone. */\nstatic const tvmrt_model_desc_t g_small_model = {\n    %uu, ",
          PACKAGE_ABI_VERSION);
    package_template(p, w, embedded_text("src/codegen/c/text/small.c.in"));
}
