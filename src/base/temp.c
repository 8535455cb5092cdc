/* SPDX-License-Identifier: Apache-2.0 */
/* Temporary files and folders. Trees are removed by the system's own calls (getdents64): opendir asks for memory, which
 * a signal handler must not. */
#define _GNU_SOURCE /* getdents64 */
#include "base/temp.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

_Static_assert(sizeof(sigset_t) <= sizeof(temps_held), "a signal mask fits");

static const int endings[] = {SIGHUP, SIGINT, SIGPIPE, SIGTERM, SIGALRM};
enum { N_ENDINGS = sizeof endings / sizeof *endings };

static void fill_mask(sigset_t *set)
{
    (void)sigemptyset(set);
    for (int i = 0; i < N_ENDINGS; i++)
        (void)sigaddset(set, endings[i]);
}

/* A signal that is ignored, as under nohup, stays so. */
static void handle(void (*handler)(int))
{
    struct sigaction act = {.sa_handler = handler}, before;
    fill_mask(&act.sa_mask);
    for (int i = 0; i < N_ENDINGS; i++)
        if (sigaction(endings[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            (void)sigaction(endings[i], &act, NULL);
}

void temps_catch(void (*handler)(int))
{
    handle(handler);
}

void temps_hold(temps_held *h)
{
    sigset_t ending, before;
    fill_mask(&ending);
    (void)pthread_sigmask(SIG_BLOCK, &ending, &before);
    memcpy(h, &before, sizeof before);
}

void temps_release(const temps_held *h)
{
    sigset_t before;
    memcpy(&before, h, sizeof before);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL); /* leaves errno alone */
}

void temps_release_child(const temps_held *h)
{
    handle(SIG_DFL);
    temps_release(h);
}

void temps_note(temps *t, const char *path)
{
    int i = 0;
    while (i < TEMPS_MOST && t->paths[i])
        i++;
    assert(i < TEMPS_MOST); /* nothing needs as many at once */
    t->paths[i] = path;
}

void temps_note_child(temps *t, int pid)
{
    int i = 0;
    while (i < TEMPS_CHILDREN && t->children[i])
        i++;
    assert(i < TEMPS_CHILDREN); /* nothing starts as many at once */
    t->children[i] = pid;
}

void temps_forget_child(temps *t, int pid)
{
    for (int i = 0; i < TEMPS_CHILDREN; i++)
        if (t->children[i] == pid)
            t->children[i] = 0;
}

void temps_forget(temps *t, const char *path)
{
    for (int i = 0; i < TEMPS_MOST; i++)
        if (t->paths[i] == path)
            t->paths[i] = NULL;
}

bool temps_has(const temps *t, const char *path)
{
    bool has = false;
    for (int i = 0; i < TEMPS_MOST; i++)
        has |= t->paths[i] == path;
    return has;
}

/* The first name of the series that is free: `make` returns -1 with EEXIST for one that is not. */
static int make_first(temps *t, arena *a, const char *path, int (*make)(const char *name), char **out_name)
{
    temps_held held;
    int made = -1;
    errno = EEXIST;
    for (int i = 0; made < 0 && errno == EEXIST && i < 10000; i++) {
        char *name = arena_printf(a, "%s.tmp-lathe-%ld-%d", path, (long)getpid(), i);
        temps_hold(&held);
        made = make(name);
        if (made >= 0)
            temps_note(t, name);
        temps_release(&held);
        *out_name = made >= 0 ? name : NULL;
    }
    return made;
}

static int make_dir(const char *name)
{
    return mkdir(name, 0777);
}

static int make_file(const char *name)
{
    return open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

char *temps_make_dir(temps *t, arena *a, const char *path)
{
    char *name = NULL;
    (void)make_first(t, a, path, make_dir, &name);
    return name;
}

int temps_make_file(temps *t, arena *a, const char *path, char **out_name)
{
    *out_name = NULL;
    return make_first(t, a, path, make_file, out_name);
}

bool temps_make_private(temps *t, char *name)
{
    temps_held held;
    temps_hold(&held);
    bool ok = mkdtemp(name) != NULL;
    if (ok)
        temps_note(t, name);
    temps_release(&held);
    return ok;
}

/* --- removing
 * --------------------------------------------------------------------------------------------------------- */

static bool remove_at(int dir, const char *name);

/* Every entry of an open folder, again until there is none: what is removed moves what is still to be read. */
static bool remove_inside(int fd)
{
    _Alignas(struct dirent64) char room[4096];
    bool any = true, ok = true;
    while (ok && any) {
        ssize_t n = 0;
        any = false;
        ok = lseek(fd, 0, SEEK_SET) == 0;
        while (ok && (n = getdents64(fd, room, sizeof room)) > 0)
            for (ssize_t at = 0; ok && at < n;) {
                const struct dirent64 *e = (const struct dirent64 *)(const void *)(room + at);
                at += e->d_reclen;
                if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
                    continue;
                ok = remove_at(fd, e->d_name);
                any = true;
            }
        ok = ok && n >= 0;
    }
    return ok;
}

static bool remove_at(int dir, const char *name)
{
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return true;
    if (errno != EISDIR && errno != EPERM) /* a folder; POSIX has the other word for it */
        return false;
    int why = errno, fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        errno = errno == ENOTDIR ? why : errno;
        return false;
    }
    bool ok = remove_inside(fd);
    why = errno;
    (void)close(fd);
    errno = why;
    return ok && (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT);
}

bool temps_remove(temps *t, const char *path)
{
    bool ok = remove_at(AT_FDCWD, path);
    temps_forget(t, path);
    return ok;
}

void temps_clear(temps *t)
{
    for (int i = 0; i < TEMPS_CHILDREN; i++)
        if (t->children[i])
            (void)kill(-t->children[i], SIGKILL);
    for (int i = 0; i < TEMPS_CHILDREN; i++)
        while (t->children[i] && waitpid(t->children[i], NULL, 0) < 0 && errno == EINTR)
            ;
    for (int i = 0; i < TEMPS_MOST; i++)
        if (t->paths[i])
            (void)remove_at(AT_FDCWD, t->paths[i]);
    *t = (temps){{NULL}, {0}};
}
