/* SPDX-License-Identifier: Apache-2.0 */
/* Files and folders of the run-time compiler. What others may read at any time appears under its name only when it is
 * whole and on the disk. */
#if defined(__linux__)
#define _GNU_SOURCE /* syscall */
#endif
#include "jit_file.h"

#include "jit_util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif
#include <time.h>
#include <unistd.h>

bool jit_file_write(int fd, const void *data, size_t n)
{
    const uint8_t *p = data;
    while (n > 0) {
        ssize_t did = write(fd, p, n);
        if (did < 0 && errno != EINTR)
            return false;
        if (did > 0) {
            p += did;
            n -= (size_t)did;
        }
    }
    return true;
}

/* Opens a new file; its name goes to `name`. The clock only makes a free name likely: O_EXCL makes it sure. */
static int open_temporary(int dir, mode_t mode, char name[64])
{
    for (int i = 0; i < 100; i++) {
        struct timespec now = {0};
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        (void)snprintf(name, 64, JIT_FILE_TEMPORARY "%ld.%ld.%d", (long)getpid(), now.tv_nsec, i);
        int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

static bool write_parts(int fd, const jit_part *parts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!jit_file_write(fd, parts[i].at, parts[i].n))
            return false;
    return fsync(fd) == 0;
}

bool jit_file_put(int dir, const char *name, mode_t mode, const jit_part *parts, size_t n)
{
    char temporary[64];
    int fd = open_temporary(dir, mode, temporary);
    if (fd < 0)
        return false;
    (void)flock(fd, LOCK_EX | LOCK_NB); /* said to those who clear away; not all file systems can */
    bool good = write_parts(fd, parts, n) && renameat(dir, temporary, dir, name) == 0;
    int why = errno;
    if (!good)
        (void)unlinkat(dir, temporary, 0);
    (void)close(fd);
    if (good)
        (void)fsync(dir); /* a rename that a crash loses is a file that is made again */
    errno = why;
    return good;
}

bool jit_file_read(int fd, jit_bytes *out)
{
    struct stat st;
    *out = (jit_bytes){0};
    if (fstat(fd, &st) != 0)
        return false;
    if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > JIT_FILE_MOST) {
        errno = S_ISREG(st.st_mode) ? EFBIG : EINVAL;
        return false;
    }
    size_t size = (size_t)st.st_size;
    out->at = malloc(size + 1);
    while (out->at && out->n < size) {
        ssize_t did = read(fd, out->at + out->n, size - out->n);
        if (did == 0)
            break;
        if (did > 0) {
            out->n += (size_t)did;
        } else if (errno != EINTR) {
            int why = errno;
            free(out->at);
            *out = (jit_bytes){0};
            errno = why;
        }
    }
    if (out->at)
        out->at[out->n] = '\0'; /* logs are read as text */
    return out->at != NULL;
}

bool jit_file_take(const char *path, jit_bytes *out)
{
    *out = (jit_bytes){0};
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool good = jit_file_read(fd, out);
    int why = errno;
    (void)close(fd);
    errno = why;
    return good;
}

bool jit_folder_make(const char *path, mode_t mode)
{
    char *part = jit_printf("%s", path);
    if (!part) {
        errno = ENOMEM;
        return false;
    }
    for (char *p = part + 1; *p; p++)
        if (*p == '/') {
            *p = '\0';
            (void)mkdir(part, mode); /* what cannot be made is seen by the last one */
            *p = '/';
        }
    bool good = mkdir(part, mode) == 0 || errno == EEXIST;
    int why = errno;
    free(part);
    errno = why;
    return good;
}

char *jit_folder_temporary(void)
{
    const char *base = getenv("TMPDIR");
    char *path = jit_printf("%s/lathe-XXXXXX", base && *base == '/' ? base : "/tmp");
    if (path && mkdtemp(path))
        return path;
    int why = path ? errno : ENOMEM;
    free(path);
    errno = why;
    return NULL;
}

static void empty_folder(int fd, int depth);

/* Deeper than any compiler's own temporary folders it does not look. */
static void remove_entry(int fd, const char *name, int depth)
{
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || unlinkat(fd, name, 0) == 0)
        return;
    int inner = depth < 8 ? openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (inner >= 0)
        empty_folder(inner, depth + 1);
    (void)unlinkat(fd, name, AT_REMOVEDIR);
}

/* Closes `fd`. On Linux it needs no memory: a lack of it is one of the reasons why a folder is removed. */
static void empty_folder(int fd, int depth)
{
#if defined(__linux__)
    _Alignas(8) char entries[1024];
    enum { LENGTH = 16, NAME = 19 }; /* in struct linux_dirent64: a u16, and the text */
    for (long n; (n = syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0;)
        for (long at = 0; at < n;) {
            uint16_t length;
            memcpy(&length, entries + at + LENGTH, sizeof length);
            remove_entry(fd, entries + at + NAME, depth);
            at += length;
        }
    (void)close(fd);
#else
    DIR *dir = fdopendir(fd);
    if (!dir) {
        (void)close(fd);
        return;
    }
    for (struct dirent *e = readdir(dir); e; e = readdir(dir))
        remove_entry(fd, e->d_name, depth);
    (void)closedir(dir);
#endif
}

/* More than once: for a moment there may be no memory, or no free file descriptor. */
void jit_folder_remove(const char *path)
{
    for (int i = 0; i < 3 && rmdir(path) != 0 && errno != ENOENT; i++) {
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0)
            empty_folder(fd, 0);
    }
    (void)rmdir(path);
}
