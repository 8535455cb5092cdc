/* SPDX-License-Identifier: Apache-2.0 */
/* The code generators that come with the compiler become targets. */
#include "codegen/byoc/byoc.h"

bool byoc_register_builtin(compiler *c)
{
    for (const lathe_codegen *const *g = byoc_generators; *g; g++)
        if (!lathe_register(c, *g))
            return false;
    return true;
}
