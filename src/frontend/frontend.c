/* SPDX-License-Identifier: Apache-2.0 */
/* What all front ends say of extents that the user gives and the model does not have. */
#include "frontend/frontend.h"

#include "base/nearest.h"

bool frontend_no_dimension(compiler *c, src_loc at, const char *name, const char *names)
{
    diag_error(&c->diags, DIAG_USAGE, at, "the model has no dimension '%s'", name);
    if (*names)
        diag_hint(&c->diags, "%sthe dimensions that can be fixed: %s", nearest_in(name, names, &c->mem), names);
    else
        diag_hint(&c->diags, "all dimensions of this model are fixed: leave --dim out");
    return false;
}
