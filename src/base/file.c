/* SPDX-License-Identifier: Apache-2.0 */
/* Files: maps in, atomic writes out. */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
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

/* Never at the start of a page, which is how file_unmap tells maps from copies. */
static uint8_t *copy_buffer(arena *a, size_t cap)
{
    uint8_t *p = arena_try_alloc(a, cap + 64, 64);
    return p && (uintptr_t)p % 4096 == 0 ? p + 64 : p;
}

static bool read_all(diags *d, arena *a, int fd, const char *path, span *out)
{
    size_t cap = 1 << 16, len = 0;
    uint8_t *buf = copy_buffer(a, cap);
    for (;;) {
        if (!buf)
            return diag_error(d, DIAG_ENVIRONMENT, at(path), "out of memory");
        ssize_t n = read(fd, buf + len, cap - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return diag_error(d, DIAG_IO, at(path), "cannot read: %s", strerror(errno));
        if (n == 0)
            break;
        len += (size_t)n;
        if (len == cap) {
            uint8_t *grown = copy_buffer(a, cap * 2);
            if (grown)
                memcpy(grown, buf, len);
            buf = grown;
            cap *= 2;
        }
    }
    *out = (span){buf, len};
    return true;
}

bool file_map(diags *d, arena *a, const char *path, span *out)
{
    struct stat st;
    *out = (span){NULL, 0};
    if (strcmp(path, "-") == 0)
        return read_all(d, a, STDIN_FILENO, path, out);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return diag_error(d, DIAG_IO, at(path), "cannot open: %s", strerror(errno));
    bool ok = true;
    if (fstat(fd, &st) != 0) {
        ok = diag_error(d, DIAG_IO, at(path), "cannot stat: %s", strerror(errno));
    } else if (S_ISDIR(st.st_mode)) {
        ok = diag_error(d, DIAG_IO, at(path), "is a directory");
    } else if (!S_ISREG(st.st_mode)) {
        ok = read_all(d, a, fd, path, out);
    } else if (st.st_size > 0) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED)
            ok = read_all(d, a, fd, path, out);
        else
            *out = (span){p, (size_t)st.st_size};
    }
    (void)close(fd);
    return ok;
}

void file_unmap(span s)
{
    if (s.data && (uintptr_t)s.data % 4096 == 0)
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

bool file_make_dirs(diags *d, const char *path)
{
    arena a;
    arena_init(&a);
    char *p = arena_strdup(&a, path);
    bool ok = true;
    for (char *s = p + 1; ok && s[-1]; s++) {
        if (*s != '/' && *s != 0)
            continue;
        char keep = *s;
        *s = 0;
        if (mkdir(p, 0777) != 0 && !(errno == EEXIST && file_is_dir(p)))
            ok = diag_error(d, DIAG_ENVIRONMENT, at(path), "cannot make folder %s: %s", p, strerror(errno));
        *s = keep;
        if (keep == 0)
            break;
    }
    arena_free(&a);
    return ok;
}

static bool write_all(int fd, const char *p, size_t len)
{
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

bool file_write(diags *d, const char *path, const void *data, size_t len)
{
    arena a;
    arena_init(&a);
    bool ok = file_make_dirs(d, path_dir(&a, path));
    char *tmp = arena_printf(&a, "%s.tmpXXXXXX", path);
    int fd = ok ? mkstemp(tmp) : -1;
    if (ok && fd < 0)
        ok = diag_error(d, DIAG_ENVIRONMENT, at(path), "cannot write: %s", strerror(errno));
    if (fd >= 0) {
        mode_t mask = umask(0);
        (void)umask(mask);
        bool done = write_all(fd, data, len) && fchmod(fd, 0666 & ~mask) == 0;
        done = close(fd) == 0 && done;
        done = done && rename(tmp, path) == 0;
        if (!done) {
            ok = diag_error(d, DIAG_ENVIRONMENT, at(path), "cannot write: %s", strerror(errno));
            (void)unlink(tmp);
        }
    }
    arena_free(&a);
    return ok;
}

bool file_remove_tree(diags *d, const char *path)
{
    struct stat st;
    if (lstat(path, &st) != 0)
        return true;
    bool ok = true;
    if (S_ISDIR(st.st_mode)) {
        DIR *dir = opendir(path);
        arena a;
        arena_init(&a);
        for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir))
            if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
                ok = file_remove_tree(d, path_join(&a, path, e->d_name)) && ok;
        if (dir)
            (void)closedir(dir);
        arena_free(&a);
        if (ok && rmdir(path) == 0)
            return true;
    } else if (unlink(path) == 0) {
        return true;
    }
    return ok ? diag_error(d, DIAG_ENVIRONMENT, at(path), "cannot remove: %s", strerror(errno)) : false;
}
