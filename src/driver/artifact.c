/* SPDX-License-Identifier: Apache-2.0 */
/* Artifacts on disk, all or not at all: files go to a temporary folder beside the wanted one, which is then renamed. An
 * existing folder gives way only when it is empty or a package of ours. */
#include "base/file.h"
#include "driver/pipeline.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_empty(const char *dir)
{
    DIR *d = opendir(dir);
    bool empty = d != NULL;
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
        empty &= strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
    if (d)
        closedir(d);
    return empty;
}

static bool is_ours(compiler *c, const char *dir)
{
    json_t *report = json_load_file(path_join(&c->mem, dir, "report.json"), 0, NULL);
    const char *generator = json_string_value(json_object_get(report, "generator"));
    bool ours = generator && strcmp(generator, "lathe") == 0;
    json_decref(report);
    return ours;
}

static bool check_place(compiler *c, const char *dir)
{
    struct stat s;
    if (lstat(dir, &s) != 0)
        return true;
    if (S_ISDIR(s.st_mode) && (is_empty(dir) || is_ours(c, dir)))
        return true;
    diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "'%s' exists and is no package of ours, so it is left alone",
               dir);
    diag_hint(&c->diags, "choose another folder with -o, or remove it first");
    return false;
}

static bool write_files(compiler *c, const artifact *a, const char *dir)
{
    for (uint32_t i = 0; i < a->files.len; i++) {
        const artifact_file *f = &a->files.data[i];
        if (!file_write(&c->diags, path_join(&c->mem, dir, f->path), f->data, f->len))
            return false;
    }
    return true;
}

/* The old folder steps aside, so that there is never a moment with half of each. */
static bool replace(compiler *c, const char *from, const char *to)
{
    char *old = arena_printf(&c->mem, "%s.old", from);
    bool had = rename(to, old) == 0;
    if (rename(from, to) != 0) {
        int why = errno;
        if (had)
            (void)rename(old, to);
        return diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "cannot make '%s': %s", to, strerror(why));
    }
    return !had || file_remove_tree(&c->diags, old);
}

static char *without_slash(arena *a, const char *dir)
{
    char *s = arena_strdup(a, dir);
    for (size_t n = strlen(s); n > 1 && s[n - 1] == '/'; n--)
        s[n - 1] = '\0';
    return s;
}

bool artifact_write(compiler *c, const artifact *a, const char *path)
{
    char *dir = without_slash(&c->mem, path), *tmp = arena_printf(&c->mem, "%s.tmpXXXXXX", dir);
    if (!check_place(c, dir) || !file_make_dirs(&c->diags, path_dir(&c->mem, dir)))
        return false;
    if (!mkdtemp(tmp)) {
        diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "cannot write to '%s': %s", path_dir(&c->mem, dir),
                   strerror(errno));
        diag_hint(&c->diags, "choose a folder that you may write to with -o");
        return false;
    }
    (void)chmod(tmp, 0755);
    if (write_files(c, a, tmp) && replace(c, tmp, dir))
        return true;
    diags ignored;
    diags_init(&ignored);
    (void)file_remove_tree(&ignored, tmp);
    diags_free(&ignored);
    return false;
}
