/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into lathe by test/cli/stop.sh and module_days.sh: counts the system calls that lathe makes from the
 * moment when its temporary folder or file is made, and does something before the N-th of them, so that a test can
 * stop a write at every point.
 *     STEPS_AT=N STEPS_SIGNAL=S   send S to itself before call N (0: never)
 *     STEPS_COUNT=FILE            write the number of calls there
 *     STEPS_OLD=1                 a kernel without openat2, a file system without exchange
 *     STEPS_RENAME=N              the N-th rename fails
 *     STEPS_CUT=FILE              before the first read of 64 KB or more, cut FILE to half its size
 *     STEPS_PUT=FILE              before the exchange, make FILE */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_set(const char *name)
{
    const char *s = getenv(name);
    return s != NULL && *s != '\0';
}

static long count;
static int counting;

static void step(void)
{
    const char *at = getenv("STEPS_AT"), *number = getenv("STEPS_SIGNAL");
    if (counting && ++count == (at ? atol(at) : 0))
        (void)kill(getpid(), number ? atoi(number) : SIGKILL);
}

static void report(void) __attribute__((destructor));
static void report(void)
{
    const char *file = getenv("STEPS_COUNT");
    FILE *f = file ? fopen(file, "w") : NULL;
    if (f) {
        fprintf(f, "%ld\n", count);
        fclose(f);
    }
}

#define CALL(result, name, params, args)        \
    result name params                          \
    {                                           \
        result(*real) params;                   \
        void *symbol = dlsym(RTLD_NEXT, #name); \
        memcpy(&real, &symbol, sizeof real);    \
        before_##name args;                     \
        return real args;                       \
    }

#define before_step(...) step()
#define before_write     before_step
#define before_close     before_step
#define before_unlinkat  before_step
#define before_chmod     before_step
#define before_lstat     before_step
CALL(ssize_t, write, (int fd, const void *p, size_t n), (fd, p, n))
CALL(int, close, (int fd), (fd))
CALL(int, unlinkat, (int fd, const char *name, int flags), (fd, name, flags))
CALL(int, chmod, (const char *name, mode_t mode), (name, mode))
CALL(int, lstat, (const char *name, struct stat *st), (name, st))

/* A stopped process loses nothing that it wrote: without a real sync the sweep takes a third of the time. */
int fsync(int fd)
{
    (void)fd;
    step();
    return 0;
}

static void before_mkdir(const char *name, mode_t mode)
{
    (void)mode;
    counting |= strstr(name, ".tmp-lathe-") != NULL;
    step();
}
CALL(int, mkdir, (const char *name, mode_t mode), (name, mode))

static void before_read(int fd, void *p, size_t n)
{
    static int done;
    const char *cut = getenv("STEPS_CUT");
    struct stat st;
    (void)fd, (void)p;
    if (cut && n >= 65536 && !done++ && stat(cut, &st) == 0 && truncate(cut, st.st_size / 2) != 0)
        abort();
    step();
}
CALL(ssize_t, read, (int fd, void *p, size_t n), (fd, p, n))

int open(const char *name, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    counting |= (flags & O_CREAT) && strstr(name, ".tmp-lathe-") != NULL;
    step();
    return (int)syscall(SYS_openat, AT_FDCWD, name, flags, mode);
}

int rename(const char *from, const char *to)
{
    static long renames;
    const char *at = getenv("STEPS_RENAME");
    step();
    if (at && ++renames == atol(at)) {
        errno = EIO;
        return -1;
    }
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    const char *put = getenv("STEPS_PUT");
    step();
    if (put)
        (void)close(open(put, O_WRONLY | O_CREAT, 0666));
    if (is_set("STEPS_OLD")) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}

long syscall(long number, ...)
{
    long a[6];
    long (*real)(long, ...);
    void *symbol = dlsym(RTLD_NEXT, "syscall");
    va_list ap;
    memcpy(&real, &symbol, sizeof real);
    va_start(ap, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(ap, long);
    va_end(ap);
    if (number == SYS_openat2 && is_set("STEPS_OLD")) {
        errno = ENOSYS;
        return -1;
    }
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
