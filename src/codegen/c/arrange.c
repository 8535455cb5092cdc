/* SPDX-License-Identifier: Apache-2.0 */
/* A package as a build system of firmware wants it: its files in the folders of that one, no main among them, and
 * beside them what templates say. */
#include "codegen/embedded.h"
#include "codegen/c/template.h"

#include <string.h>

#define TEMPLATES "src/codegen/c/as/"
#define END       ".in"
#define NAME      "__name__"

static bool begins(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

/* Where a file of the package lies then; NULL: nowhere. A build of its own, and a main, are the ecosystem's. */
static const char *place_of(const package *p, const char *path)
{
    static const char *const left_out[] = {"src/main.c", "Makefile", "CMakeLists.txt"};
    const ecosystem *e = p->u->as;
    const bool flat = strcmp(e->headers, e->sources) == 0;
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
        if (strcmp(path, left_out[i]) == 0)
            return NULL;
    if (flat && strcmp(path, "src/tvmrt.h") == 0) /* the way from one folder to the other */
        return NULL;
    if (begins(path, "include/"))
        return arena_printf(&p->c->mem, "%s/%s", e->headers, path + sizeof "include/" - 1);
    if (begins(path, "src/"))
        return arena_printf(&p->c->mem, "%s/%s", e->sources, path + sizeof "src/" - 1);
    return path;
}

/* "examples/__name__/main.c.in" -> "examples/tvmgen_default/main.c" */
static const char *target_of(const package *p, const char *path)
{
    writer w;
    const char *at;
    writer_init(&w, &p->c->mem);
    for (; (at = strstr(path, NAME)) != NULL; path = at + sizeof NAME - 1)
        w_fmt(&w, "%.*s%s", (int)(at - path), path, p->prefix);
    w_fmt(&w, "%.*s", (int)(strlen(path) - (sizeof END - 1)), path);
    return w.data;
}

static bool add_templates(const package *p, artifact *out)
{
    const char *folder = arena_printf(&p->c->mem, TEMPLATES "%s/", p->u->as->name);
    const artifact library = *out;
    for (const struct embedded_file *f = lathe_embedded_files; f->name; f++) {
        writer w;
        if (!begins(f->name, folder))
            continue;
        writer_init(&w, &p->c->mem);
        if (!template_write(p, f->name, (const char *)f->data, &library, &w))
            return false;
        vec_push(&p->c->mem, &out->files,
                 ((artifact_file){target_of(p, f->name + strlen(folder)), w.data, w.len, false}));
    }
    return true;
}

/* What a program for an emulator's machine needs beside the package. */
static void add_board(const package *p, artifact *out)
{
    const ecosystem_board *b = p->u->board;
    const char *const names[] = {"board.h", "semihost.c", b->startup, b->script};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct embedded_file *f = embedded_find(arena_printf(&p->c->mem, "runtime/board/%s", names[i]));
        if (f)
            vec_push(&p->c->mem, &out->files,
                     ((artifact_file){arena_printf(&p->c->mem, "example/%s", names[i]), f->data, f->size, false}));
    }
}

bool arrange_for(const package *p, artifact *out)
{
    uint32_t n = 0;
    if (p->u->board)
        add_board(p, out);
    else {
        for (uint32_t i = 0; i < out->files.len; i++) {
            artifact_file f = out->files.data[i];
            f.path = place_of(p, f.path);
            if (f.path)
                out->files.data[n++] = f;
        }
        out->files.len = n;
        out->made.len = 0; /* of a Makefile that is not there */
    }
    return add_templates(p, out);
}
