/* SPDX-License-Identifier: Apache-2.0 */
/* The families of processors for which the C writer does something else: lines of target/targets.def. */
#include "codegen/c/family.h"

static const c_family *const families[] = {
#define TARGET_CODE(name) &c_family_##name,
#include "target/targets.def"
};

const c_family *c_family_of(const struct target *t)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (t && families[i]->fits(t))
            return families[i];
    return NULL;
}
