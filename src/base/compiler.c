/* SPDX-License-Identifier: Apache-2.0 */
/* The compiler context. It is made empty and freed as a whole. Folders add their registries to it themselves. */
#include "base/compiler.h"

#include <errno.h>
#include <string.h>

struct input_file {
    const char *path;
    span bytes;
    file_id id;
    bool again; /* may be handed out again under this name */
    bool given; /* the bytes are somebody else's */
    struct input_file *next;
};

void compiler_init_under(compiler *c, const arena *parent)
{
    *c = (compiler){0};
    arena_init(&c->mem, parent);
    diags_init(&c->diags, parent);
    c->names = interner_new(&c->mem);
}

void compiler_init(compiler *c)
{
    compiler_init_under(c, NULL);
}

void compiler_free(compiler *c)
{
    for (const struct input_file *f = c->files; f; f = f->next)
        if (!f->given)
            file_free(f->bytes);
    diags_free(&c->diags);
    arena_free(&c->mem);
    *c = (compiler){0};
}

static bool find(const compiler *c, const char *path, span *out)
{
    const struct input_file *f = c->files;
    while (f && (!f->again || strcmp(f->path, path) != 0))
        f = f->next;
    *out = f ? f->bytes : (span){NULL, 0};
    return f != NULL;
}

static bool add(compiler *c, const char *path, span bytes, file_id id, bool again)
{
    struct input_file *f = arena_new(&c->mem, struct input_file);
    *f = (struct input_file){arena_strdup(&c->mem, path), bytes, id, again, false, c->files};
    c->files = f;
    return true;
}

bool compiler_read_file(compiler *c, const char *path, span *out)
{
    file_id id;
    return find(c, path, out) || (file_read(&c->diags, path, out, &id) && add(c, path, *out, id, true));
}

bool compiler_read_beneath(compiler *c, const char *dir, const char *name, span *out, file_lack *out_lack)
{
    file_id id;
    return file_read_beneath(&c->diags, &c->mem, dir, name, out, &id, out_lack) &&
           add(c, path_join(&c->mem, dir, name), *out, id, false);
}

const char *compiler_next_input(const compiler *c, const struct input_file **at)
{
    *at = *at ? (*at)->next : c->files;
    return *at ? (*at)->path : NULL;
}

bool compiler_may_write(compiler *c, const char *path)
{
    file_id id = file_identify(path);
    for (const struct input_file *f = c->files; f; f = f->next)
        if (file_same(f->id, id)) {
            diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "'%s' is an input of this run, so it is not overwritten",
                       path);
            diag_hint(&c->diags, "choose another name for the output");
            return false;
        }
    return true;
}

bool compiler_write_file(compiler *c, const char *path, const void *data, size_t len)
{
    return compiler_may_write(c, path) && file_write(&c->diags, &c->temps, path, data, len);
}

void compiler_remove_temp_dir(compiler *c, const char *dir)
{
    if (!temps_remove(&c->temps, dir))
        diag_warning(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "the temporary folder '%s' stays: %s", dir,
                     strerror(errno));
}

bool compiler_progress(compiler *c, const char *what, uint32_t done, uint32_t of)
{
    if (c->cancelled)
        return false;
    if (!c->progress || c->progress(c->progress_context, what, done, of))
        return true;
    c->cancelled = true;
    return diag_error(&c->diags, DIAG_CANCELLED, src_loc_none(), "cancelled");
}

bool compiler_goes_on(compiler *c)
{
    return compiler_progress(c, NULL, 0, 0);
}

void compiler_give_file(compiler *c, const char *path, span bytes, file_id id)
{
    (void)add(c, path, bytes, id, true);
    c->files->given = true;
}
