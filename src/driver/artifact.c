/* SPDX-License-Identifier: Apache-2.0 */
/* Artifacts on disk, all or nothing. Files go to a temporary folder beside the wanted one, which then changes places
 * with it in one step. The old folder is replaced only if its manifest lists everything in it. This is checked once
 * more after the exchange. */
#define _GNU_SOURCE /* renameat2 */
#include "base/file.h"
#include "driver/manifest.h"
#include "driver/pipeline.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_NAMED = 5 };

/* --- the place
 * -------------------------------------------------------------------------------------------------------- */

static bool refuse(compiler *c, const char *dir, const char *why)
{
    diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "'%s' cannot become a package: %s", dir, why);
    diag_hint(&c->diags, "choose another folder for the package");
    return false;
}

/* A path without links; NULL: it leads nowhere, or, after a diagnostic, nobody can say. */
static const char *real_path(compiler *c, const char *path)
{
    char *real = realpath(path, NULL);
    if (!real && file_code_of(errno) == DIAG_ENVIRONMENT)
        diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "cannot look at '%s': %s", path, strerror(errno));
    const char *out = real ? arena_strdup(&c->mem, real) : NULL;
    free(real);
    return out;
}

/* Whether `place` is the folder `path` or one above it. */
static bool holds(compiler *c, file_id place, const char *path)
{
    bool found = false;
    for (const char *at = real_path(c, path); at && !found; at = strcmp(at, "/") ? path_dir(&c->mem, at) : NULL)
        found = file_same(place, file_identify(at));
    return found;
}

/* An input lies in the folder of its name, and in the one that a link leads to. */
static bool holds_input(compiler *c, file_id place, const char *path)
{
    const char *real = real_path(c, path);
    return holds(c, place, path_dir(&c->mem, path)) || (real && holds(c, place, path_dir(&c->mem, real)));
}

/* `model`: an input that is not read yet, or NULL. */
static bool check_neighbors(compiler *c, const char *dir, const char *model)
{
    file_id place = file_identify(dir);
    const struct input_file *at = NULL;
    uint32_t before = c->diags.errors;
    if (holds(c, place, "."))
        return refuse(c, dir, "it is the current folder, or holds it");
    for (const char *input = model ? model : compiler_next_input(c, &at); input; input = compiler_next_input(c, &at))
        if (holds_input(c, place, input))
            return refuse(c, dir, arena_printf(&c->mem, "it holds the input '%s'", input));
    return c->diags.errors == before;
}

/* Of the firmware that --example writes. */
static bool is_example(const manifest_look *look)
{
    return !look->missing && strncmp(look->in_the_way.data[0], "example/", 8) == 0 && look->in_the_way.data[0][8];
}

static void hint_at(compiler *c, const manifest_look *look, const char *shown)
{
    if (is_example(look))
        diag_hint(&c->diags, "the firmware is yours now: move the folder %s/example elsewhere, and run 'make run "
                             "PACKAGE=...' there, with the path of the package", shown);
    else
        diag_hint(&c->diags, look->missing ? "an earlier version wrote it, or it is not a package: remove it yourself "
                                             "if nothing in it is yours, or choose another folder with -o"
                                           : "move these elsewhere ('make clean' there removes what was built), or "
                                             "choose another folder with -o");
}

static bool check_entries(compiler *c, const char *dir, const char *shown)
{
    manifest_look look;
    writer w;
    if (!manifest_check(c, dir, &look))
        return false;
    if (look.in_the_way.len == 0)
        return true;
    writer_init(&w, &c->mem);
    for (uint32_t i = 0; i < look.in_the_way.len && i < MOST_NAMED; i++)
        w_fmt(&w, "%s%s", i ? ", " : "", look.in_the_way.data[i]);
    if (look.in_the_way.len > MOST_NAMED)
        w_fmt(&w, " and %u more", look.in_the_way.len - MOST_NAMED);
    diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "'%s' is left alone: %s: %s", shown,
               look.missing ? "it has no " MANIFEST_NAME ", the list of the files that lathe wrote, and holds"
                            : "it holds files that do not belong to the package that lathe wrote",
               w.data);
    hint_at(c, &look, shown);
    return false;
}

/* Where the package goes: `path`, or the folder that a link with this name leads to. */
static const char *resolve(compiler *c, const char *path, bool *out_exists)
{
    struct stat st;
    char *dir = arena_strdup(&c->mem, path);
    for (size_t n = strlen(dir); n > 1 && dir[n - 1] == '/'; n--)
        dir[n - 1] = '\0';
    *out_exists = lstat(dir, &st) == 0;
    const char *slash = strrchr(dir, '/'), *name = slash ? slash + 1 : dir;
    bool named = *name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
    if (*out_exists && file_is_dir(dir))
        return real_path(c, dir);
    if (!*out_exists && named)
        return dir;
    refuse(c, path, *out_exists ? "it is not a folder" : "no folder can be made with this name");
    return NULL;
}

bool artifact_check_place(compiler *c, const char *path, const char *model)
{
    bool exists;
    const char *dir = resolve(c, path, &exists);
    return dir && (!exists || (check_neighbors(c, dir, model) && check_entries(c, dir, path)));
}

/* --- writing
 * ---------------------------------------------------------------------------------------------------------- */

static bool write_files(compiler *c, const artifact *a, const char *dir, bool lasting)
{
    arena *m = &c->mem;
    writer list;
    writer_init(&list, m);
    manifest_write(&list, a);
    bool ok = file_create(&c->diags, path_join(m, dir, MANIFEST_NAME), list.data, list.len, lasting);
    for (uint32_t i = 0; ok && i < a->files.len; i++) {
        const artifact_file *f = &a->files.data[i];
        const char *path = path_join(m, dir, f->path), *folder = path_dir(m, path);
        ok = (file_is_dir(folder) || file_make_dirs(&c->diags, folder)) &&
             file_create(&c->diags, path, f->data, f->len, lasting);
    }
    for (uint32_t i = 0; ok && lasting && i < a->files.len; i++) {
        const char *folder = path_dir(m, a->files.data[i].path);
        bool again = false;
        for (uint32_t k = 0; !again && k < i; k++)
            again = strcmp(folder, path_dir(m, a->files.data[k].path)) == 0;
        ok = again || file_sync_dir(&c->diags, path_join(m, dir, folder));
    }
    return ok && (!lasting || file_sync_dir(&c->diags, dir));
}

static bool cannot(compiler *c, const char *dir)
{
    return diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "cannot make '%s': %s", dir, strerror(errno));
}

/* Two folders change places. File systems without an exchange get two renames: in between, the old folder stands under
 * the temporary name `aside`, whole, and nothing under its own. */
static bool swap(const char *tmp, const char *dir, const char *aside)
{
    if (renameat2(AT_FDCWD, tmp, AT_FDCWD, dir, RENAME_EXCHANGE) == 0)
        return true;
    if ((errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) || rename(dir, aside) != 0)
        return false;
    bool placed = rename(tmp, dir) == 0;
    if (placed && rename(aside, tmp) == 0)
        return true;
    int why = errno;
    if (!placed || rename(dir, tmp) == 0)
        (void)rename(aside, dir);
    errno = why;
    return false;
}

/* The old folder goes when it is still what was looked at; if not, it comes back. */
static bool replace(compiler *c, const char *tmp, const char *dir, const char *shown)
{
    const char *aside = arena_printf(&c->mem, "%s-old", tmp);
    if (!swap(tmp, dir, aside)) {
        (void)cannot(c, dir);
        if (file_is_dir(aside))
            diag_hint(&c->diags, "its previous contents are in '%s'", aside);
        return false;
    }
    if (!check_entries(c, tmp, shown)) {
        if (!swap(tmp, dir, aside)) {
            temps_forget(&c->temps, tmp);
            diag_hint(&c->diags, "the new package is in '%s': %s", tmp, strerror(errno));
        }
        return false;
    }
    if (!temps_remove(&c->temps, tmp))
        diag_warning(&c->diags, DIAG_ENVIRONMENT, src_loc_none(),
                     "the previous package of '%s' is left in '%s': %s", shown, tmp, strerror(errno));
    return true;
}

/* From here to the end no signal comes in between: the temporary folder is the new package, then the old one. */
static bool put_in_place(compiler *c, const char *tmp, const char *dir, const char *shown)
{
    temps_held held;
    struct stat st;
    temps_hold(&held);
    bool had = stat(dir, &st) == 0, ok = !had || chmod(tmp, st.st_mode & 07777) == 0;
    if (!ok || rename(tmp, dir) == 0) /* an empty folder gives way by itself */
        ok = ok || cannot(c, dir);
    else if (errno == ENOTEMPTY || errno == EEXIST)
        ok = replace(c, tmp, dir, shown);
    else
        ok = cannot(c, dir);
    if (ok)
        temps_forget(&c->temps, tmp);
    else if (temps_has(&c->temps, tmp))
        (void)temps_remove(&c->temps, tmp);
    temps_release(&held);
    return ok;
}

/* The folder of a package, and those above it that had to be made. */
static bool sync_upward(compiler *c, const char *folder, const char *first_there)
{
    bool ok = file_sync_dir(&c->diags, folder);
    while (ok && strcmp(folder, first_there) != 0) {
        folder = path_dir(&c->mem, folder);
        ok = file_sync_dir(&c->diags, folder);
    }
    return ok;
}

bool artifact_write(compiler *c, const artifact *a, const char *path, bool lasting)
{
    bool exists;
    const char *dir = resolve(c, path, &exists), *parent = dir ? path_dir(&c->mem, dir) : NULL, *there = parent;
    while (there && !file_is_dir(there) && strcmp(there, "/") != 0 && strcmp(there, ".") != 0)
        there = path_dir(&c->mem, there);
    if (!dir || (exists && !artifact_check_place(c, path, NULL)) || !file_make_dirs(&c->diags, parent))
        return false;
    char *tmp = temps_make_dir(&c->temps, &c->mem, dir);
    if (!tmp) {
        diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "cannot create '%s': %s", dir, strerror(errno));
        diag_hint(&c->diags, "choose a folder that you may write to with -o");
        return false;
    }
    if (write_files(c, a, tmp, lasting))
        return put_in_place(c, tmp, dir, path) && (!lasting || sync_upward(c, parent, there));
    (void)temps_remove(&c->temps, tmp);
    return false;
}
