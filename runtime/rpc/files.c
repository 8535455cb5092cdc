/* files.c: one flat folder a session.
 * SPDX-License-Identifier: Apache-2.0 */
#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_name(const uint8_t *name, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (name[i] == '/' || name[i] < ' ' || name[i] == 127)
            return false;
    return size > 0 && size <= 200 && !(name[0] == '.' && (size == 1 || (size == 2 && name[1] == '.')));
}

int32_t rpc_files_path(const rpc_files *f, const uint8_t *name, size_t size, char out[RPC_PATH_MAX],
                       lathe_error *error)
{
    out[0] = '\0';
    if (!is_name(name, size))
        return rpc_fail(error, LATHE_E_ARGUMENT,
                        "'%.*s' names no file of the session: one name of 1 to 200 characters, without folders",
                        (int)(size < 100 ? size : 100), size ? (const char *)name : "");
    int n = snprintf(out, RPC_PATH_MAX, "%s/%.*s", f->folder, (int)size, (const char *)name);
    return n < RPC_PATH_MAX ? LATHE_OK
                            : rpc_fail(error, LATHE_E_ARGUMENT, "the name is too long below %s", f->folder);
}

/* --- walking a folder --- */

typedef bool (*visit)(void *user, int folder, const char *name);

static bool walk(int fd, visit each, void *user)
{
    bool ok = true;
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d) {
        if (fd >= 0)
            (void)close(fd);
        return false;
    }
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            ok &= each(user, dirfd(d), e->d_name);
    (void)closedir(d);
    return ok;
}

static int open_folder(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

enum { DEPTH_MAX = 32 }; /* folders that are open at a time */

struct sum {
    uint64_t bytes;
    int depth;
    bool deep; /* there are folders below DEPTH_MAX */
};

static bool add_size(void *user, int folder, const char *name)
{
    struct sum *sum = user;
    struct stat s;
    if (fstatat(folder, name, &s, AT_SYMLINK_NOFOLLOW) != 0)
        return true;
    if (S_ISREG(s.st_mode))
        sum->bytes += (uint64_t)s.st_size;
    if (!S_ISDIR(s.st_mode))
        return true;
    if (sum->depth >= DEPTH_MAX) {
        sum->deep = true;
        return true;
    }
    sum->depth++;
    (void)walk(open_folder(folder, name), add_size, sum);
    sum->depth--;
    return true;
}

struct removal {
    int depth;
    int top;        /* the folder whose tree is removed; -1: none */
    unsigned moved; /* folders that were put there, because they lay too deep */
};

/* A folder too deep to be opened beside those around it is moved to the top, and removed from there. */
static bool raise_folder(struct removal *r, int folder, const char *name)
{
    char at_top[32];
    if (r->top < 0)
        return false;
    do
        (void)snprintf(at_top, sizeof at_top, ".deep-%u", r->moved++);
    while (faccessat(r->top, at_top, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
    return renameat(folder, name, r->top, at_top) == 0;
}

static bool remove_one(void *user, int folder, const char *name)
{
    struct removal *r = user;
    struct stat s;
    if (unlinkat(folder, name, 0) == 0 || errno == ENOENT)
        return true;
    if (fstatat(folder, name, &s, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(s.st_mode) && (s.st_mode & 0700) != 0700)
        (void)fchmodat(folder, name, 0700, 0); /* an archive may have folders that their owner cannot open */
    if (r->depth >= DEPTH_MAX)
        return raise_folder(r, folder, name);
    r->depth++;
    bool ok = walk(open_folder(folder, name), remove_one, r);
    r->depth--;
    return unlinkat(folder, name, AT_REMOVEDIR) == 0 && ok;
}

bool rpc_files_remove_tree(const char *path)
{
    struct removal r = {.top = open_folder(AT_FDCWD, path)};
    unsigned before;
    do {
        before = r.moved;
        (void)walk(open_folder(AT_FDCWD, path), remove_one, &r);
    } while (r.moved != before);
    if (r.top >= 0)
        (void)close(r.top);
    return rmdir(path) == 0 || errno == ENOENT;
}

/* --- files --- */

static int32_t failed(const char *path, lathe_error *error)
{
    const char *name = strrchr(path, '/');
    return rpc_fail(error, LATHE_E_FILE, "%s: %s", name ? name + 1 : path, strerror(errno));
}

static bool put_all(int fd, const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size > 0) {
        ssize_t put = write(fd, at, size);
        if (put < 0 && errno != EINTR)
            return false;
        if (put > 0) {
            at += put;
            size -= (size_t)put;
        }
    }
    return true;
}

int32_t rpc_files_room(const rpc_files *f, uint64_t more, lathe_error *error)
{
    struct sum there = {0};
    (void)walk(open_folder(AT_FDCWD, f->folder), add_size, &there);
    if (there.deep)
        return rpc_fail(error, LATHE_E_REFUSED, "a session's files may lie in folders %d deep", DEPTH_MAX);
    if (there.bytes <= f->limit && more <= f->limit - there.bytes)
        return LATHE_OK;
    return rpc_fail(error, LATHE_E_REFUSED, "%llu bytes more than %llu: a session's files may have %llu",
                    (unsigned long long)more, (unsigned long long)there.bytes, (unsigned long long)f->limit);
}

int32_t rpc_files_write(const rpc_files *f, const char *path, const void *bytes, size_t size, lathe_error *error)
{
    int32_t status = rpc_files_room(f, size, error);
    if (status != LATHE_OK)
        return status;
    (void)unlink(path); /* one that is loaded keeps what it has */
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return failed(path, error);
    bool ok = put_all(fd, bytes, size);
    int why = errno;
    ok &= close(fd) == 0;
    if (ok)
        return LATHE_OK;
    (void)unlink(path);
    errno = why;
    return failed(path, error);
}

static int32_t read_open(int fd, const char *path, size_t size, uint8_t **out, size_t *out_size, lathe_error *error)
{
    uint8_t *data = malloc(size + 1);
    if (!data)
        return rpc_fail(error, LATHE_E_MEMORY, "no memory for the %zu bytes of a file", size);
    size_t at = 0;
    for (ssize_t got = 1; got != 0 && at < size;) {
        got = read(fd, data + at, size - at);
        if (got < 0 && errno != EINTR) {
            free(data);
            return failed(path, error);
        }
        at += got > 0 ? (size_t)got : 0;
    }
    *out = data;
    *out_size = at;
    return LATHE_OK;
}

int32_t rpc_files_read(const char *path, uint64_t most, uint8_t **out, size_t *out_size, lathe_error *error)
{
    struct stat s;
    *out = NULL;
    *out_size = 0;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return failed(path, error);
    int32_t status;
    if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode))
        status = rpc_fail(error, LATHE_E_FILE, "%s is not a file", strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
    else if ((uint64_t)s.st_size > most)
        status = rpc_fail(error, LATHE_E_REFUSED, "a file of %lld bytes; a packet may have %llu", (long long)s.st_size,
                          (unsigned long long)most);
    else
        status = read_open(fd, path, (size_t)s.st_size, out, out_size, error);
    (void)close(fd);
    return status;
}

int32_t rpc_files_remove(const char *path, lathe_error *error)
{
    if (unlink(path) == 0 || errno == ENOENT)
        return LATHE_OK;
    return rpc_files_remove_tree(path) ? LATHE_OK : failed(path, error);
}

/* --- the list --- */

struct names {
    char **data;
    size_t count, capacity;
};

static bool add_name(void *user, int folder, const char *name)
{
    struct names *n = user;
    (void)folder;
    if (n->count == n->capacity) {
        size_t capacity = n->capacity ? n->capacity * 2 : 16;
        char **data = realloc(n->data, capacity * sizeof *data);
        if (!data)
            return false;
        n->data = data;
        n->capacity = capacity;
    }
    n->data[n->count] = strdup(name);
    return n->data[n->count] != NULL && ++n->count > 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int32_t rpc_files_list(const rpc_files *f, rpc_buffer *out, lathe_error *error)
{
    struct names n = {NULL, 0, 0};
    bool ok = walk(open_folder(AT_FDCWD, f->folder), add_name, &n);
    if (n.count > 0)
        qsort(n.data, n.count, sizeof *n.data, by_name);
    for (size_t i = 0; i < n.count; i++) {
        rpc_put_bytes(out, ",", i > 0);
        rpc_put_bytes(out, n.data[i], strlen(n.data[i]));
        free(n.data[i]);
    }
    free(n.data);
    return ok && !out->full ? LATHE_OK : rpc_fail(error, LATHE_E_FILE, "the session's folder cannot be listed");
}
