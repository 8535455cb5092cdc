/* SPDX-License-Identifier: Apache-2.0 */
/* What every C compiler's command for a package has: the package by a plain name, flags, files of code generators. */
#include "driver/build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "codegen/embedded.h"

/* The compiler runs in the scratch folder and knows the package by the name `package`: there are characters in the
 * names of folders that one program or another of a tool chain takes for something else. */
bool build_link_package(compiler *c, const char *dir, const char *scratch)
{
    const char *name = path_join(&c->mem, scratch, "package");
    if (file_same(file_identify(name), file_identify(dir)))
        return true;
    char *real = realpath(dir, NULL);
    bool ok = real && symlink(real, name) == 0;
    int why = errno;
    free(real);
    return ok || diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "'%s' cannot be linked to '%s': %s", name, dir,
                            strerror(why));
}

/* A word of $CC that names a file from here, for a program that runs elsewhere. */
const char *build_word_from_anywhere(compiler *c, const char *word)
{
    char *real = *word != '-' && *word != '/' && strchr(word, '/') ? realpath(word, NULL) : NULL;
    const char *out = real ? arena_strdup(&c->mem, real) : word;
    free(real);
    return out;
}

static bool is_cuda(const run_source *s)
{
    return strcmp(s->file + strlen(s->file) - 2, ".c") != 0;
}

/* CUDA has a compiler of its own. */
static bool build_cuda(compiler *c, const run_source *s, const char *scratch, const char *object, const char *path)
{
    const char *nvcc = getenv("NVCC");
    process_words a = {0};
    process_add_words(c, &a, nvcc && *nvcc ? nvcc : "nvcc");
    for (uint32_t i = 0; i < a.len; i++)
        a.data[i] = build_word_from_anywhere(c, a.data[i]);
    process_add_words(c, &a, !nvcc || !*nvcc || strstr(nvcc, "nvcc") ? "-O3 -Xcompiler -fPIC" : "-O3 -fPIC");
    process_add_words(c, &a, s->cflags);
    process_add_words(c, &a, "-Ipackage/src -Ipackage/include -c -o");
    vec_push(&c->mem, &a, object);
    vec_push(&c->mem, &a, path_join(&c->mem, "package", s->file));
    vec_push(&c->mem, &a, NULL);
    return process_run(c, &(process_task){.argv = a.data,
                                          .dir = scratch,
                                          .what = "building the package's CUDA",
                                          .hint = "install CUDA, or name nvcc in the environment variable NVCC",
                                          .whole_log = "",
                                          .name = "package",
                                          .path = path});
}

/* What code generators have written: all in one command with the rest, so their flags are for all. */
bool build_add_sources(compiler *c, const run_model *m, const char *scratch, process_words *a)
{
    for (uint32_t i = 0; i < m->report->n_sources; i++) {
        const run_source *s = &m->report->sources[i];
        const char *object = arena_printf(&c->mem, "cuda_%u.o", i);
        if (is_cuda(s) && !build_cuda(c, s, scratch, object, m->dir))
            return false;
        if (!is_cuda(s))
            process_add_words(c, a, s->cflags);
        if (!is_cuda(s) && strncmp(s->file, "src/", 4) != 0) /* files that its text needs, with headers of their own */
            vec_push(&c->mem, a, arena_printf(&c->mem, "-Ipackage/%.*s", (int)strcspn(s->file, "/"), s->file));
        vec_push(&c->mem, a, is_cuda(s) ? object : path_join(&c->mem, "package", s->file));
    }
    return true;
}

void build_add_flags(compiler *c, const run_model *m, int64_t workers, process_words *a)
{
    const char *own = getenv("CFLAGS"), *cflags = m->report->cflags;
    process_add_words(c, a, "-std=c99 -D_POSIX_C_SOURCE=200809L -w");
    process_add_words(c, a, own && *own ? own : "-O3"); /* as in the package's Makefile */
    process_add_words(c, a, cflags);
    process_add_words(c, a, strstr(cflags, "-ffp-contract") ? "" : "-ffp-contract=off");
    vec_push(&c->mem, a, arena_printf(&c->mem, "-DTVMRT_NUM_WORKERS=%lld", (long long)workers));
    process_add_words(c, a, "-Ipackage/src -Ipackage/include -Wa,-Ipackage/src");
}

bool build_write_embedded(compiler *c, const char *scratch, const char *folder, const char *name)
{
    const char *path = arena_printf(&c->mem, "runtime/%s/%s", folder, name);
    const struct embedded_file *f = embedded_find(path);
    return f ? compiler_write_file(c, path_join(&c->mem, scratch, name), f->data, f->size)
             : diag_error(&c->diags, DIAG_INTERNAL, src_loc_none(), "'%s' is not an embedded file", path);
}
