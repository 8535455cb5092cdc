/* SPDX-License-Identifier: Apache-2.0 */
/* The compiler context's life. */
#include "base/compiler.h"

void compiler_init(compiler *c)
{
    *c = (compiler){.opt_level = 3};
    arena_init(&c->mem);
    diags_init(&c->diags);
    c->names = interner_new(&c->mem);
}

void compiler_free(compiler *c)
{
    diags_free(&c->diags);
    arena_free(&c->mem);
}
