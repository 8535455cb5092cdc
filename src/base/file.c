/* SPDX-License-Identifier: Apache-2.0 */
/* Files: maps in, atomic writes out. */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static src_loc at(const char *path)
{
    src_loc l = src_loc_none();
    l.file = path;
    return l;
}

/* Streams may never end; a model's own format ends at 2 GiB. */
#define STREAM_LIMIT ((size_t)4 << 30)

/* Read memory must not look like mapped memory to file_unmap: it never starts on a page. */
static uint8_t *off_page(arena *a, size_t size)
{
    uint8_t *p = arena_try_alloc(a, size + 64, 64);
    return p && (uintptr_t)p % 4096 == 0 ? p + 64 : p;
}

static bool read_all(diags *d, arena *a, int fd, const char *path, span *out)
{
    size_t cap = 1 << 16, len = 0;
    uint8_t *buf = off_page(a, cap);
    while (buf) {
        ssize_t n = read(fd, buf + len, cap - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return diag_error(d, DIAG_IO, at(path), "cannot read: %s", strerror(errno));
        if (n == 0) {
            *out = (span){buf, len};
            return true;
        }
        len += (size_t)n;
        if (len == STREAM_LIMIT)
            return diag_error(d, DIAG_IO, at(path), "a stream of more than 4 GiB cannot be read; save it to a file");
        if (len == cap) {
            uint8_t *grown = off_page(a, cap *= 2);
            if (grown)
                memcpy(grown, buf, len);
            buf = grown;
        }
    }
    return diag_error(d, DIAG_ENVIRONMENT, at(path), "out of memory after %zu bytes", len);
}

static bool map_open(diags *d, arena *a, int fd, const char *path, span *out)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return diag_error(d, DIAG_IO, at(path), "cannot read: %s", strerror(errno));
    if (S_ISDIR(st.st_mode))
        return diag_error(d, DIAG_IO, at(path), "is a directory");
    if (S_ISREG(st.st_mode) && st.st_size > 0) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p != MAP_FAILED) {
            *out = (span){p, (size_t)st.st_size};
            return true;
        }
    }
    return read_all(d, a, fd, path, out); /* also the files of /proc, which say that they are empty */
}

bool file_map(diags *d, arena *a, const char *path, span *out)
{
    *out = (span){NULL, 0};
    if (strcmp(path, "-") == 0)
        return read_all(d, a, STDIN_FILENO, path, out);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return diag_error(d, DIAG_IO, at(path), "cannot open: %s", strerror(errno));
    bool ok = map_open(d, a, fd, path, out);
    (void)close(fd);
    return ok;
}

void file_unmap(span s)
{
    if (s.len > 0 && (uintptr_t)s.data % 4096 == 0)
        (void)munmap((void *)(uintptr_t)s.data, s.len);
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
    arena_init(&a);
    bool ok = true;
    for (const char *s = path; ok && *s; s++) {
        bool end = s[1] == '/' || s[1] == 0;
        const char *part = end && *s != '/' ? arena_strndup(&a, path, (size_t)(s - path) + 1) : NULL;
        if (part && !make_dir(part))
            ok = diag_error(d, DIAG_ENVIRONMENT, at(path), "cannot make folder %s: %s", part, strerror(errno));
    }
    arena_free(&a);
    return ok;
}

static bool write_all(int fd, const void *data, size_t len)
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

/* Makes a file that did not exist next to `path`; its name into `tmp`. */
static int open_temporary(arena *a, const char *path, char **tmp)
{
    int fd = -1;
    errno = EEXIST;
    for (int i = 0; fd < 0 && errno == EEXIST && i < 10000; i++) {
        *tmp = arena_printf(a, "%s.tmp%ld-%d", path, (long)getpid(), i);
        fd = open(*tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    return fd;
}

/* Pipes and devices are written as they are: there is nothing to replace. */
static bool is_special(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

static bool write_special(const char *path, const void *data, size_t len)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool ok = write_all(fd, data, len);
    return close(fd) == 0 && ok;
}

static bool write_and_rename(arena *a, const char *path, const void *data, size_t len)
{
    char *tmp = NULL;
    int fd = open_temporary(a, path, &tmp);
    if (fd < 0)
        return false;
    bool ok = write_all(fd, data, len);
    ok = close(fd) == 0 && ok && rename(tmp, path) == 0;
    int error = errno;
    if (!ok)
        (void)unlink(tmp);
    errno = error;
    return ok;
}

bool file_write(diags *d, const char *path, const void *data, size_t len)
{
    arena a;
    arena_init(&a);
    bool ok = file_make_dirs(d, path_dir(&a, path));
    if (ok && !(is_special(path) ? write_special(path, data, len) : write_and_rename(&a, path, data, len)))
        ok = diag_error(d, DIAG_ENVIRONMENT, at(path), "cannot write: %s", strerror(errno));
    arena_free(&a);
    return ok;
}

static bool remove_entries(diags *d, const char *path)
{
    DIR *dir = opendir(path);
    bool ok = true;
    arena a;
    arena_init(&a);
    for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir))
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            ok = file_remove_tree(d, path_join(&a, path, e->d_name)) && ok;
    if (dir)
        (void)closedir(dir);
    arena_free(&a);
    return ok;
}

bool file_remove_tree(diags *d, const char *path)
{
    struct stat st;
    if (lstat(path, &st) != 0)
        return true;
    bool folder = S_ISDIR(st.st_mode); /* a link to a folder is only unlinked */
    if (folder && !remove_entries(d, path))
        return false;
    if ((folder ? rmdir(path) : unlink(path)) == 0)
        return true;
    return diag_error(d, DIAG_ENVIRONMENT, at(path), "cannot remove: %s", strerror(errno));
}
