/* SPDX-License-Identifier: Apache-2.0 */
/* Files: read whole into memory, written whole or not at all. */
#define _GNU_SOURCE /* O_PATH */
#include "base/file.h"

#include "base/nearest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static src_loc at(const char *path)
{
    src_loc l = src_loc_none();
    l.file = path;
    return l;
}

/* --- reading
 * ---------------------------------------------------------------------------------------------------------- */

/* Streams may never end; a model's own format ends at 2 GiB. */
#define STREAM_LIMIT ((size_t)4 << 30)

/* Fills `room` bytes, or as many as there are; -1: errno says why. */
static ssize_t read_some(int fd, uint8_t *to, size_t room)
{
    size_t len = 0;
    while (len < room) {
        ssize_t n = read(fd, to + len, room - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        len += (size_t)n;
    }
    return (ssize_t)len;
}

diag_code file_code_of(int error)
{
    return error == EIO || error == ENOMEM || error == EMFILE || error == ENFILE ? DIAG_ENVIRONMENT : DIAG_IO;
}

static bool read_failed(diags *d, const char *path, uint8_t *buf)
{
    diag_error(d, file_code_of(errno), at(path), "cannot read: %s", strerror(errno));
    free(buf);
    return false;
}

static bool no_memory(diags *d, const char *path, uint64_t bytes)
{
    return diag_error(d, DIAG_ENVIRONMENT, at(path), "no memory for a file of %llu bytes", (unsigned long long)bytes);
}

/* What gives no size beforehand: standard input, the files of /proc. */
static bool read_stream(diags *d, int fd, const char *path, span *out)
{
    size_t cap = (size_t)1 << 16, len = 0;
    uint8_t *buf = malloc(cap);
    while (buf) {
        ssize_t n = read_some(fd, buf + len, cap - len);
        if (n < 0)
            return read_failed(d, path, buf);
        len += (size_t)n;
        if (len < cap) {
            *out = (span){buf, len};
            return true;
        }
        if (cap == STREAM_LIMIT) {
            free(buf);
            return diag_error(d, DIAG_IO, at(path), "a stream of more than 4 GiB cannot be read; save it to a file");
        }
        uint8_t *grown = realloc(buf, cap * 2);
        if (!grown)
            free(buf);
        buf = grown;
        cap *= 2;
    }
    return no_memory(d, path, cap);
}

/* A file that another program cuts, extends or rewrites meanwhile is an error: what was read is neither state of it. */
static bool read_sized(diags *d, int fd, const char *path, const struct stat *before, span *out)
{
    struct stat after;
    uint8_t *buf = (uint64_t)before->st_size < SIZE_MAX / 2
                       ? aligned_alloc(64, ((size_t)before->st_size + 63) & ~(size_t)63)
                       : NULL;
    if (!buf)
        return no_memory(d, path, (uint64_t)before->st_size);
    ssize_t n = read_some(fd, buf, (size_t)before->st_size);
    if (n < 0 || fstat(fd, &after) != 0)
        return read_failed(d, path, buf);
    if (n == before->st_size && after.st_size == before->st_size && after.st_mtim.tv_sec == before->st_mtim.tv_sec &&
        after.st_mtim.tv_nsec == before->st_mtim.tv_nsec) {
        *out = (span){buf, (size_t)n};
        return true;
    }
    free(buf);
    return diag_error(d, DIAG_IO, at(path), "changed while it was read");
}

static const char *kind_of(mode_t mode)
{
    return S_ISDIR(mode)    ? "is a directory"
           : S_ISFIFO(mode) ? "is a pipe"
           : S_ISSOCK(mode) ? "is a socket"
                            : "is a device";
}

/* Takes fd. The descriptor is judged, not the name, so that nothing can be put in its place in between. */
static bool read_opened(diags *d, int fd, const char *path, span *out, file_id *out_id)
{
    struct stat st;
    bool ok = fstat(fd, &st) == 0;
    if (!ok)
        (void)diag_error(d, file_code_of(errno), at(path), "cannot read: %s", strerror(errno));
    else if (!S_ISREG(st.st_mode))
        ok = diag_error(d, DIAG_IO, at(path), "%s, not a file%s", kind_of(st.st_mode),
                        S_ISFIFO(st.st_mode) ? "; for standard input write -" : "");
    else
        ok = st.st_size > 0 ? read_sized(d, fd, path, &st, out) : read_stream(d, fd, path, out);
    if (ok)
        *out_id = (file_id){st.st_dev, st.st_ino};
    (void)close(fd);
    return ok;
}

/* Not to wait for a pipe's other end, nor to take a terminal. */
enum { OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

static bool open_failed(diags *d, const char *path)
{
    if (errno == ENXIO) /* a socket, or a device without its hardware */
        return diag_error(d, DIAG_IO, at(path), "is a socket or a device, not a file");
    return diag_error(d, file_code_of(errno), at(path), "cannot open: %s", strerror(errno));
}

void file_hint_missing(diags *d, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, **names;
    nearest near = nearest_to(name, strlen(name));
    uint32_t n = 0;
    if (file_exists(path) || !file_list(&d->mem, path_dir(&d->mem, path), &names, &n))
        return;
    for (uint32_t i = 0; i < n; i++)
        nearest_offer(&near, names[i]);
    if (near.best)
        diag_hint(d, "%s", nearest_question(&near, arena_strndup(&d->mem, path, (size_t)(name - path)), &d->mem));
}

bool file_read(diags *d, const char *path, span *out, file_id *out_id)
{
    *out = (span){NULL, 0};
    *out_id = (file_id){0, 0};
    if (strcmp(path, "-") == 0) {
        *out_id = file_identify_fd(STDIN_FILENO);
        return read_stream(d, STDIN_FILENO, path, out);
    }
    int fd = open(path, OPEN_FLAGS);
    return fd < 0 ? open_failed(d, path) : read_opened(d, fd, path, out, out_id);
}

void file_free(span s)
{
    free((void *)(uintptr_t)s.data);
}

/* --- reading below a folder
 * ------------------------------------------------------------------------------------------------------------- */

static bool is_link(int dir, const char *name)
{
    struct stat st;
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

/* Before Linux 5.6: one part of the name after the other, and no part may be a symbolic link. */
static int open_parts(int dir, const char *name)
{
    int fd = dir;
    if (*name == '/' || *name == '\0') {
        errno = *name ? EXDEV : ENOENT;
        return -1;
    }
    for (const char *part = name; fd >= 0 && *part;) {
        char one[256];
        size_t n = strcspn(part, "/"), rest = n + strspn(part + n, "/");
        int parent = fd;
        bool last = part[n] == '\0'; /* a slash behind it asks for a folder */
        if (n >= sizeof one || (n == 2 && memcmp(part, "..", 2) == 0)) {
            fd = -1;
            errno = n == 2 ? EXDEV : ENAMETOOLONG;
        } else {
            memcpy(one, part, n);
            one[n] = '\0';
            fd = openat(parent, one, O_NOFOLLOW | (last ? OPEN_FLAGS : O_PATH | O_DIRECTORY | O_CLOEXEC));
            if (fd < 0 && errno == ENOTDIR)
                errno = is_link(parent, one) ? ELOOP : ENOTDIR;
        }
        if (parent != dir) {
            int why = errno;
            (void)close(parent);
            errno = why;
        }
        part += rest;
    }
    return fd;
}

static int open_beneath(int dir, const char *name)
{
    struct open_how how = {.flags = (uint64_t)OPEN_FLAGS, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    long fd = -1;
    errno = EAGAIN; /* somebody renames folders meanwhile */
    for (int i = 0; fd < 0 && errno == EAGAIN && i < 100; i++)
        fd = syscall(SYS_openat2, dir, name, &how, sizeof how);
    if (fd < 0 && (errno == ENOSYS || errno == EPERM)) /* an old kernel, or one that a sandbox hides */
        return open_parts(dir, name);
    return (int)fd;
}

bool file_read_beneath(diags *d, arena *a, const char *dir, const char *name, span *out, file_id *out_id,
                       file_lack *out_lack)
{
    const char *path = path_join(a, dir, name);
    *out = (span){NULL, 0};
    *out_id = (file_id){0, 0};
    int folder = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = folder < 0 ? -1 : open_beneath(folder, name), why = errno;
    if (folder >= 0)
        (void)close(folder);
    errno = why;
    *out_lack = fd >= 0                        ? FILE_THERE
                : why == ENOENT                ? FILE_MISSING
                : why == EXDEV || why == ELOOP ? FILE_OUTSIDE
                                               : FILE_THERE;
    if (*out_lack != FILE_THERE)
        return false;
    return fd < 0 ? open_failed(d, path) : read_opened(d, fd, path, out, out_id);
}

/* --- names
 * ------------------------------------------------------------------------------------------------------------ */

static file_id id_of(const struct stat *st, bool known)
{
    return known ? (file_id){st->st_dev, st->st_ino} : (file_id){0, 0};
}

file_id file_identify(const char *path)
{
    struct stat st;
    bool known = stat(path, &st) == 0;
    return id_of(&st, known);
}

file_id file_identify_fd(int fd)
{
    struct stat st;
    bool known = fstat(fd, &st) == 0;
    return id_of(&st, known);
}

bool file_same(file_id a, file_id b)
{
    return a.ino != 0 && a.ino == b.ino && a.dev == b.dev;
}

bool file_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

bool file_is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool file_is_regular(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

char *path_join(arena *a, const char *dir, const char *name)
{
    size_t n = strlen(dir);
    if (n == 0 || name[0] == '/')
        return arena_strdup(a, name);
    return arena_printf(a, "%s%s%s", dir, dir[n - 1] == '/' ? "" : "/", name);
}

char *path_dir(arena *a, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return arena_strdup(a, ".");
    return slash == path ? arena_strdup(a, "/") : arena_strndup(a, path, (size_t)(slash - path));
}

static bool make_dir(const char *path)
{
    if (mkdir(path, 0777) == 0)
        return true;
    int error = errno;
    if (file_is_dir(path))
        return true;
    errno = error == EEXIST ? ENOTDIR : error;
    return false;
}

bool file_make_dirs(diags *d, const char *path)
{
    arena a;
    arena_init(&a, &d->mem);
    bool ok = true;
    for (const char *s = path; ok && *s; s++) {
        bool end = s[1] == '/' || s[1] == 0;
        const char *part = end && *s != '/' ? arena_strndup(&a, path, (size_t)(s - path) + 1) : NULL;
        if (part && !make_dir(part))
            ok = diag_error(d, DIAG_ENVIRONMENT, at(path), "cannot make the folder %s: %s", part, strerror(errno));
    }
    arena_free(&a);
    return ok;
}

bool file_put(int fd, const void *data, size_t len)
{
    const char *p = data;
    while (len > 0) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        len -= (size_t)n;
    }
    return true;
}

/* --- writing
 * ------------------------------------------------------------------------------------------------------------- */

/* Pipes and devices are written as they are: there is nothing to replace. */
static bool is_special(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

static bool write_and_close(int fd, const void *data, size_t len, bool lasting)
{
    bool ok = fd >= 0 && file_put(fd, data, len) && (!lasting || fsync(fd) == 0);
    int why = errno;
    bool closed = fd < 0 || close(fd) == 0;
    errno = ok ? errno : why;
    return ok && closed;
}

static bool write_and_rename(arena *a, temps *t, const char *path, const void *data, size_t len)
{
    char *tmp;
    int fd = temps_make_file(t, a, path, &tmp);
    if (fd < 0)
        return false;
    bool ok = write_and_close(fd, data, len, false) && rename(tmp, path) == 0;
    int why = errno;
    if (ok)
        temps_forget(t, tmp);
    else
        (void)temps_remove(t, tmp);
    errno = why;
    return ok;
}

static bool write_failed(diags *d, const char *path)
{
    return diag_error(d, DIAG_ENVIRONMENT, at(path), "cannot write: %s", strerror(errno));
}

bool file_write(diags *d, temps *t, const char *path, const void *data, size_t len)
{
    arena a;
    arena_init(&a, &d->mem);
    bool ok = file_make_dirs(d, path_dir(&a, path));
    if (ok && !(is_special(path) ? write_and_close(open(path, O_WRONLY | O_CLOEXEC), data, len, false)
                                 : write_and_rename(&a, t, path, data, len)))
        ok = write_failed(d, path);
    arena_free(&a);
    return ok;
}

bool file_append(diags *d, const char *path, const void *data, size_t len)
{
    return write_and_close(open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666), data, len, false) ||
           write_failed(d, path);
}

bool file_create(diags *d, const char *path, const void *data, size_t len, bool lasting)
{
    return write_and_close(open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666), data, len, lasting) ||
           write_failed(d, path);
}

bool file_sync_dir(diags *d, const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && (fsync(fd) == 0 || errno == EINVAL); /* EINVAL: this file system does not sync folders */
    if (!ok)
        (void)write_failed(d, path);
    if (fd >= 0)
        (void)close(fd);
    return ok;
}

bool file_remove_tree(diags *d, temps *t, const char *path)
{
    return temps_remove(t, path) || diag_error(d, DIAG_ENVIRONMENT, at(path), "cannot remove: %s", strerror(errno));
}

/* --- folders
 * ---------------------------------------------------------------------------------------------------------- */

/* Text of names, each with its end. */
typedef struct name_list {
    char *text; /* `room` bytes of it are there; NULL: names are only counted */
    size_t room, used;
    uint32_t n;
} name_list;

/* Fills the list; what has no room is counted only. False: errno. */
static bool read_names(const char *path, name_list *l)
{
    DIR *d = opendir(path);
    if (!d)
        return false;
    l->used = l->n = 0;
    errno = 0;
    for (const struct dirent *e = readdir(d); e; errno = 0, e = readdir(d)) {
        const size_t size = strlen(e->d_name) + 1;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (l->text && l->used + size <= l->room)
            memcpy(l->text + l->used, e->d_name, size);
        l->used += size;
        l->n++;
    }
    const int why = errno;
    (void)closedir(d);
    errno = why;
    return why == 0;
}

static int by_text(const void *x, const void *y)
{
    const char *const *a = x, *const *b = y;
    return strcmp(*a, *b);
}

bool file_list(arena *a, const char *path, const char ***out, uint32_t *out_n)
{
    name_list l = {NULL, 0, 0, 0};
    *out = NULL;
    *out_n = 0;
    do { /* again when it has grown meanwhile */
        if (!l.text && !read_names(path, &l))
            return false;
        l.room = l.used + l.used / 2 + 1;
        l.text = arena_alloc(a, l.room, 1);
        if (!read_names(path, &l))
            return false;
    } while (l.used > l.room);
    *out = arena_array(a, const char *, (size_t)l.n + 1);
    const char *next = l.text;
    for (; *out_n < l.n; next += strlen(next) + 1)
        (*out)[(*out_n)++] = next;
    qsort(*out, l.n, sizeof **out, by_text);
    return true;
}
