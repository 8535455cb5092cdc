/* SPDX-License-Identifier: Apache-2.0 */
/* Computations of files, lowered for the accelerator. What a schedule gives to it is marked; without a mark all of the
 * computation would run on the host. */
#include "driver/vta/vta_computation.h"

#include "target/vta/code/vta_code.h"

static const char host_text[] = "%s: the schedule gives nothing to the accelerator";
static const char host_hint[] =
    "mark what should run there: set_scope, pragma \"dma_copy\" and \"alu\", tensorize (docs/explanation/vta.md)";

void vta_computation_warn(compiler *c, const tir_func *f)
{
    if (vta_code_on_device(f))
        return;
    (void)diag_warning(&c->diags, DIAG_USAGE, f->loc, host_text, f->name);
    diag_hint(&c->diags, "%s", host_hint);
}

bool vta_computation_lower(compiler *c, const computation *t, const char *name, tir_func **out)
{
    if (!computation_lower(c, t, false, name, out) || !computation_has_numbers(c, *out) ||
        !computation_passes(c, *out, "vta"))
        return false;
    if (vta_code_on_device(*out))
        return true;
    diag_error(&c->diags, DIAG_UNSUPPORTED, (*out)->loc, host_text, (*out)->name);
    diag_hint(&c->diags, "%s", host_hint);
    return false;
}
