/* SPDX-License-Identifier: Apache-2.0 */
/* The compiler context: made empty, freed whole. Folders hang their registries on it themselves. */
#include "base/compiler.h"

#include <string.h>

struct mapped_file {
    const char *path;
    span bytes;
    struct mapped_file *next;
};

void compiler_init(compiler *c)
{
    *c = (compiler){.opt_level = 3};
    arena_init(&c->mem);
    diags_init(&c->diags);
    c->names = interner_new(&c->mem);
}

void compiler_free(compiler *c)
{
    for (const struct mapped_file *f = c->files; f; f = f->next)
        file_unmap(f->bytes);
    diags_free(&c->diags);
    arena_free(&c->mem);
    *c = (compiler){0};
}

bool compiler_map_file(compiler *c, const char *path, span *out)
{
    *out = (span){NULL, 0};
    struct mapped_file *f = c->files;
    while (f && strcmp(f->path, path) != 0)
        f = f->next;
    if (!f) {
        span bytes;
        if (!file_map(&c->diags, &c->mem, path, &bytes))
            return false;
        f = arena_new(&c->mem, struct mapped_file);
        *f = (struct mapped_file){arena_strdup(&c->mem, path), bytes, c->files};
        c->files = f;
    }
    *out = f->bytes;
    return true;
}
