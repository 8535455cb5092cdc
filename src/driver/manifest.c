/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest as text, one entry a line:
 *
 *     lathe-manifest 1
 *     file 5123 00c0ffee00c0ffee src/ops.c       bytes, hash of the content, name
 *     made build/workers-*                       a product of the Makefile; * ends a name, and stands for any rest
 */
#include "driver/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char first_line[] = "lathe-manifest 1\n";

typedef struct entry {
    const char *name;
    bool made;
    uint64_t bytes, hash;
} entry;

typedef struct manifest {
    entry *data;
    uint32_t len, cap;
} manifest;

/* --- content
 * ---------------------------------------------------------------------------------------------------------- */

enum { CHUNK = 1 << 16 };

/* Words of 8 bytes, little-endian on every machine; the last one is filled up with zeros. It tells an edit, and is no
 * protection against a forger. Pieces of a file but the last must be multiples of 8. */
static uint64_t hash_more(uint64_t h, const uint8_t *p, size_t len)
{
    for (size_t i = 0; i < len; i += 8) {
        uint8_t b[8] = {0};
        memcpy(b, p + i, len - i < 8 ? len - i : 8);
        uint64_t low = b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 | (uint64_t)b[3] << 24;
        uint64_t high = b[4] | (uint64_t)b[5] << 8 | (uint64_t)b[6] << 16 | (uint64_t)b[7] << 24;
        h = (h ^ (low | high << 32)) * 0x9e3779b97f4a7c15u;
        h ^= h >> 32;
    }
    return h;
}

static bool fill(int fd, uint8_t *room, size_t *out_len)
{
    *out_len = 0;
    while (*out_len < CHUNK) {
        ssize_t n = read(fd, room + *out_len, CHUNK - *out_len);
        if (n < 0 && errno != EINTR)
            return false;
        if (n == 0)
            break;
        *out_len += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* Whether the file is still what was written; one that cannot be read is not, and errno says why. */
static bool unchanged(const char *path, const entry *e)
{
    struct stat st;
    uint8_t room[CHUNK];
    uint64_t hash = e->bytes;
    size_t n = CHUNK;
    errno = 0;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool ok = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == e->bytes;
    while (ok && n == CHUNK) {
        ok = fill(fd, room, &n);
        hash = hash_more(hash, room, n);
    }
    int why = errno;
    if (fd >= 0)
        (void)close(fd);
    errno = why;
    return ok && hash == e->hash;
}

void manifest_write(writer *w, const artifact *a)
{
    w_str(w, first_line);
    w_str(w, "# What lathe wrote here, and what the Makefile makes. `lathe compile -o` replaces a folder only when "
             "there is\n"
             "# nothing else in it, and nothing that was changed.\n");
    for (uint32_t i = 0; i < a->files.len; i++) {
        const artifact_file *f = &a->files.data[i];
        w_fmt(w, "file %zu %016" PRIx64 " %s\n", f->len, hash_more(f->len, f->data, f->len), f->path);
    }
    for (uint32_t i = 0; i < a->made.len; i++)
        w_fmt(w, "made %s\n", a->made.data[i]);
}

/* --- reading
 * ---------------------------------------------------------------------------------------------------------- */

static bool read_line(compiler *c, char *line, manifest *m)
{
    entry e = {.made = strncmp(line, "made ", 5) == 0};
    char *at = line + 5;
    if (*line == '#' || *line == '\0')
        return true;
    if (!e.made) {
        if (strncmp(line, "file ", 5) != 0)
            return false;
        e.bytes = strtoull(at, &at, 10);
        e.hash = strtoull(at, &at, 16);
        if (*at++ != ' ')
            return false;
    }
    e.name = at;
    vec_push(&c->mem, m, e);
    return *at != '\0';
}

static bool cannot_look(compiler *c, const char *path, const char *why)
{
    return diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "cannot look at '%s': %s", path, why);
}

/* out_missing: there is none, or it is none. */
static bool read_manifest(compiler *c, const char *dir, manifest *m, bool *out_missing)
{
    const char *path = path_join(&c->mem, dir, MANIFEST_NAME);
    diags ignored;
    span s = {NULL, 0};
    file_id id;
    *m = (manifest){NULL, 0, 0};
    diags_init(&ignored, &c->mem);
    bool ok = file_read(&ignored, path, &s, &id) && s.len >= sizeof first_line - 1 &&
              memcmp(s.data, first_line, sizeof first_line - 1) == 0;
    char *text = arena_strndup(&c->mem, (const char *)s.data, ok ? s.len : 0);
    for (char *line = text + (ok ? sizeof first_line - 1 : 0); ok && *line;) {
        size_t n = strcspn(line, "\n");
        char *next = line + n + (line[n] == '\n');
        line[n] = '\0';
        ok = read_line(c, line, m);
        line = next;
    }
    file_free(s);
    *out_missing = !ok;
    ok = diags_exit_status(&ignored) != 3 || cannot_look(c, path, ignored.first->text);
    diags_free(&ignored);
    return ok;
}

/* --- looking
 * ---------------------------------------------------------------------------------------------------------- */

typedef struct looker {
    compiler *c;
    const char *dir;
    manifest m;
    manifest_look *out;
} looker;

static const entry *find(const manifest *m, const char *name)
{
    for (uint32_t i = 0; i < m->len; i++) {
        const entry *e = &m->data[i];
        size_t n = strlen(e->name);
        bool open_end = e->made && n > 0 && e->name[n - 1] == '*';
        if (open_end ? strncmp(e->name, name, n - 1) == 0 && !strchr(name + n - 1, '/') : strcmp(e->name, name) == 0)
            return e;
    }
    return NULL;
}

static bool has_below(const manifest *m, const char *folder)
{
    size_t n = strlen(folder);
    for (uint32_t i = 0; i < m->len; i++)
        if (strncmp(m->data[i].name, folder, n) == 0 && m->data[i].name[n] == '/')
            return true;
    return false;
}

static bool look_into(looker *l, const char *below);

static bool look_at(looker *l, const char *name)
{
    arena *a = &l->c->mem;
    const char *path = path_join(a, l->dir, name);
    struct stat st;
    if (lstat(path, &st) != 0)
        return errno == ENOENT || cannot_look(l->c, path, strerror(errno));
    if (S_ISDIR(st.st_mode) && has_below(&l->m, name))
        return look_into(l, name);
    const entry *e = S_ISREG(st.st_mode) ? find(&l->m, name) : NULL;
    if (strcmp(name, MANIFEST_NAME) == 0 ? S_ISREG(st.st_mode) && !l->out->missing
                                         : e && (e->made || unchanged(path, e)))
        return true;
    if (e && file_code_of(errno) == DIAG_ENVIRONMENT)
        return cannot_look(l->c, path, strerror(errno));
    vec_push(a, &l->out->in_the_way,
             arena_printf(a, "%s%s", name,
                          S_ISDIR(st.st_mode) ? "/"
                          : e                 ? " (changed since lathe wrote it)"
                                              : ""));
    return true;
}

/* `below`: "" or the name of a folder inside. */
static bool look_into(looker *l, const char *below)
{
    arena *a = &l->c->mem;
    const char *path = path_join(a, l->dir, below);
    const char **names = NULL;
    uint32_t n = 0;
    bool ok = file_list(a, path, &names, &n) || cannot_look(l->c, path, strerror(errno));
    for (uint32_t i = 0; ok && i < n; i++)
        ok = look_at(l, *below ? path_join(a, below, names[i]) : names[i]);
    return ok;
}

bool manifest_check(compiler *c, const char *dir, manifest_look *out)
{
    looker l = {.c = c, .dir = dir, .out = out};
    *out = (manifest_look){0};
    if (!read_manifest(c, dir, &l.m, &out->missing))
        return false;
    if (out->missing)
        l.m = (manifest){NULL, 0, 0};
    return look_into(&l, "");
}
