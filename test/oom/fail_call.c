/* SPDX-License-Identifier: Apache-2.0 */
/* Loaded before a program (LD_PRELOAD) to make one of its calls of the system fail: FAIL_CLASS names the class of
 * calls, FAIL_AT the call, counted from 1, FAIL_HOW what happens to it: an errno's name, or "short" (half of the bytes
 * are moved). FAIL_HIT is a file that receives the name of the call that failed; it stays empty when the program made
 * fewer calls. Programs that this one starts are left alone. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALL_CLASSES(X)                                                                                             \
    X(ALLOC, "alloc") X(JSON, "json") X(OPEN, "open") X(READ, "read") X(WRITE, "write") X(SYNC, "sync")  \
    X(CLOSE, "close") X(MAKE, "make") X(RENAME, "rename") X(REMOVE, "remove") X(STAT, "stat")                         \
    X(PROCESS, "process") X(WAIT, "wait") X(LIST, "list") X(THREAD, "thread")

enum class {
#define X(id, name) id,
    CALL_CLASSES(X)
#undef X
    CLASSES
};

static const char *const class_names[CLASSES] = {
#define X(id, name) name,
    CALL_CLASSES(X)
#undef X
};

static const struct {
    const char *name;
    int number;
} errors[] = {{"ENOMEM", ENOMEM}, {"EIO", EIO},       {"ENOSPC", ENOSPC}, {"EMFILE", EMFILE}, {"EINTR", EINTR},
              {"EAGAIN", EAGAIN}, {"EACCES", EACCES}, {"EDQUOT", EDQUOT}, {"ENOSYS", ENOSYS}, {"EINVAL", EINVAL}};

static int wanted = -1, error, hit_file = -1; /* the class, none until the program begins */
static long at;
static bool halve;
static volatile long count;
static _Thread_local bool inside; /* calls of this file, and of the loader for it, do not count */

static void *next(const char *name)
{
    bool before = inside;
    inside = true;
    void *p = dlsym(RTLD_NEXT, name);
    inside = before;
    return p;
}

#define REAL(result, name, ...)                                       \
    static result (*real)(__VA_ARGS__);                               \
    if (!real) {                                                      \
        void *found = next(#name);                                    \
        memcpy((void *)&real, &found, sizeof found);                  \
    }

/* Is this call the one? Says so in the file. */
static bool due(enum class c, const char *name)
{
    if ((int)c != wanted || inside || __sync_add_and_fetch(&count, 1) != at)
        return false;
    (void)!syscall(SYS_write, hit_file, name, strlen(name));
    return true;
}

static bool fails(enum class c, const char *name)
{
    if (halve || !due(c, name))
        return false;
    errno = error;
    return true;
}

static size_t amount(enum class c, const char *name, size_t n)
{
    return halve && n > 1 && due(c, name) ? n / 2 : n;
}

/* --- memory --- */

/* The loader asks for memory while it looks up the real functions. */
static char early[1 << 16];
static size_t early_used;

/* The JSON library asks hundreds of times for each report: its calls are a class of their own. */
static const char *json_begin, *json_end;

static int find_json(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    for (int i = 0; strstr(info->dlpi_name, "libjansson") && i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X)) {
            json_begin = (const char *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            json_end = json_begin + info->dlpi_phdr[i].p_memsz;
        }
    return 0;
}

static enum class asker(const char *caller)
{
    return caller >= json_begin && caller < json_end ? JSON : ALLOC;
}

static void *from_early(size_t size)
{
    void *p = early + early_used;
    early_used += (size + 15) & ~(size_t)15;
    return early_used <= sizeof early ? p : NULL;
}

void *malloc(size_t size)
{
    static void *(*real)(size_t);
    if (!real && inside)
        return from_early(size);
    if (!real)
        *(void **)(void *)&real = next("malloc");
    return fails(asker(__builtin_return_address(0)), "malloc") ? NULL : real(size);
}

void *calloc(size_t n, size_t size)
{
    static void *(*real)(size_t, size_t);
    if (!real && inside)
        return from_early(n * size);
    if (!real)
        *(void **)(void *)&real = next("calloc");
    return fails(asker(__builtin_return_address(0)), "calloc") ? NULL : real(n, size);
}

void *realloc(void *p, size_t size)
{
    REAL(void *, realloc, void *, size_t)
    return fails(ALLOC, "realloc") ? NULL : real(p, size);
}

void free(void *p)
{
    REAL(void, free, void *)
    if ((char *)p < early || (char *)p >= early + sizeof early)
        real(p);
}

void *aligned_alloc(size_t align, size_t size)
{
    REAL(void *, aligned_alloc, size_t, size_t)
    return fails(ALLOC, "aligned_alloc") ? NULL : real(align, size);
}

int posix_memalign(void **out, size_t align, size_t size)
{
    REAL(int, posix_memalign, void **, size_t, size_t)
    return fails(ALLOC, "posix_memalign") ? error : real(out, align, size);
}

/* The C library's own copies of text call its own malloc. */
char *strdup(const char *s)
{
    size_t n = strlen(s) + 1;
    char *p = malloc(n);
    return p ? memcpy(p, s, n) : NULL;
}

/* --- plain calls: class, result when it fails, result type, name, parameters, arguments --- */

#define CALL(class, failed, result, name, parameters, ...)            \
    result name parameters                                            \
    {                                                                 \
        static result(*real) parameters;                              \
        if (!real) {                                                  \
            void *found = next(#name);                                \
            memcpy((void *)&real, &found, sizeof found);              \
        }                                                             \
        return fails(class, #name) ? (failed) : real(__VA_ARGS__);    \
    }

CALL(OPEN, NULL, FILE *, fopen, (const char *path, const char *mode), path, mode)
CALL(OPEN, NULL, FILE *, fopen64, (const char *path, const char *mode), path, mode)
CALL(OPEN, NULL, FILE *, fdopen, (int fd, const char *mode), fd, mode)
CALL(OPEN, NULL, DIR *, opendir, (const char *path), path)
CALL(OPEN, NULL, DIR *, fdopendir, (int fd), fd)
CALL(OPEN, NULL, char *, realpath, (const char *path, char *out), path, out)
CALL(OPEN, NULL, char *, getcwd, (char *out, size_t n), out, n)
CALL(OPEN, -1, int, dup, (int fd), fd)
CALL(OPEN, -1, int, flock, (int fd, int how), fd, how)

CALL(LIST, NULL, struct dirent *, readdir, (DIR *d), d)
CALL(LIST, NULL, struct dirent64 *, readdir64, (DIR *d), d)
CALL(LIST, -1, ssize_t, getdents64, (int fd, void *p, size_t n), fd, p, n)
CALL(READ, NULL, char *, fgets, (char *s, int n, FILE *f), s, n, f)
CALL(READ, 0, size_t, fread, (void *p, size_t size, size_t n, FILE *f), p, size, n, f)

CALL(SYNC, -1, int, fsync, (int fd), fd)
CALL(SYNC, -1, int, fdatasync, (int fd), fd)
CALL(SYNC, -1, int, syncfs, (int fd), fd)

CALL(MAKE, -1, int, mkdir, (const char *path, mode_t mode), path, mode)
CALL(MAKE, -1, int, mkdirat, (int fd, const char *path, mode_t mode), fd, path, mode)
CALL(MAKE, NULL, char *, mkdtemp, (char *pattern), pattern)
CALL(MAKE, -1, int, mkstemp, (char *pattern), pattern)
CALL(MAKE, -1, int, chmod, (const char *path, mode_t mode), path, mode)
CALL(MAKE, -1, int, fchmod, (int fd, mode_t mode), fd, mode)
CALL(MAKE, -1, int, fchmodat, (int fd, const char *path, mode_t mode, int flags), fd, path, mode, flags)
CALL(MAKE, -1, int, ftruncate, (int fd, off_t n), fd, n)
CALL(MAKE, -1, int, ftruncate64, (int fd, off64_t n), fd, n)

CALL(RENAME, -1, int, rename, (const char *from, const char *to), from, to)
CALL(RENAME, -1, int, renameat, (int a, const char *from, int b, const char *to), a, from, b, to)
CALL(RENAME, -1, int, renameat2, (int a, const char *from, int b, const char *to, unsigned f), a, from, b, to, f)
CALL(RENAME, -1, int, link, (const char *from, const char *to), from, to)
CALL(RENAME, -1, int, linkat, (int a, const char *from, int b, const char *to, int flags), a, from, b, to, flags)
CALL(RENAME, -1, int, symlink, (const char *from, const char *to), from, to)

CALL(REMOVE, -1, int, unlink, (const char *path), path)
CALL(REMOVE, -1, int, unlinkat, (int fd, const char *path, int flags), fd, path, flags)
CALL(REMOVE, -1, int, rmdir, (const char *path), path)
CALL(REMOVE, -1, int, remove, (const char *path), path)

CALL(STAT, -1, int, stat, (const char *path, struct stat *s), path, s)
CALL(STAT, -1, int, lstat, (const char *path, struct stat *s), path, s)
CALL(STAT, -1, int, fstat, (int fd, struct stat *s), fd, s)
CALL(STAT, -1, int, fstatat, (int fd, const char *path, struct stat *s, int flags), fd, path, s, flags)

CALL(PROCESS, -1, pid_t, fork, (void), )
CALL(PROCESS, -1, int, pipe, (int fds[2]), fds)
CALL(PROCESS, -1, int, pipe2, (int fds[2], int flags), fds, flags)
CALL(PROCESS, -1, int, dup2, (int from, int to), from, to)
CALL(PROCESS, -1, int, socketpair, (int domain, int type, int protocol, int fds[2]), domain, type, protocol, fds)

CALL(WAIT, -1, pid_t, waitpid, (pid_t pid, int *status, int flags), pid, status, flags)
CALL(WAIT, -1, int, waitid, (idtype_t which, id_t id, siginfo_t *info, int flags), which, id, info, flags)
CALL(WAIT, -1, int, poll, (struct pollfd *fds, nfds_t n, int ms), fds, n, ms)

/* --- calls with a closer look --- */

int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg)
{
    REAL(int, pthread_create, pthread_t *, const pthread_attr_t *, void *(*)(void *), void *)
    return fails(THREAD, "pthread_create") ? error : real(t, a, fn, arg);
}

/* The loader's own message comes with a real failure. */
void *dlopen(const char *path, int flags)
{
    REAL(void *, dlopen, const char *, int)
    bool failed = fails(OPEN, "dlopen");
    return real(failed ? "/nowhere/library.so" : path, flags);
}

#define OPENS(name)                                                   \
    int name(const char *path, int flags, ...)                        \
    {                                                                 \
        va_list args;                                                 \
        va_start(args, flags);                                        \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? (mode_t)va_arg(args, int) : 0; \
        va_end(args);                                                 \
        REAL(int, name, const char *, int, ...)                       \
        return fails(OPEN, #name) ? -1 : real(path, flags, mode);     \
    }
OPENS(open)
OPENS(open64)

#define OPENS_AT(name)                                                \
    int name(int fd, const char *path, int flags, ...)                \
    {                                                                 \
        va_list args;                                                 \
        va_start(args, flags);                                        \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? (mode_t)va_arg(args, int) : 0; \
        va_end(args);                                                 \
        REAL(int, name, int, const char *, int, ...)                  \
        return fails(OPEN, #name) ? -1 : real(fd, path, flags, mode); \
    }
OPENS_AT(openat)
OPENS_AT(openat64)

ssize_t read(int fd, void *p, size_t n)
{
    REAL(ssize_t, read, int, void *, size_t)
    return fails(READ, "read") ? -1 : real(fd, p, amount(READ, "read", n));
}

ssize_t pread(int fd, void *p, size_t n, off_t from)
{
    REAL(ssize_t, pread, int, void *, size_t, off_t)
    return fails(READ, "pread") ? -1 : real(fd, p, amount(READ, "pread", n), from);
}

ssize_t write(int fd, const void *p, size_t n)
{
    REAL(ssize_t, write, int, const void *, size_t)
    if (fd == STDERR_FILENO)
        return real(fd, p, n);
    return fails(WRITE, "write") ? -1 : real(fd, p, amount(WRITE, "write", n));
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t to)
{
    REAL(ssize_t, pwrite, int, const void *, size_t, off_t)
    return fails(WRITE, "pwrite") ? -1 : real(fd, p, amount(WRITE, "pwrite", n), to);
}

/* A close that fails has closed. */
int close(int fd)
{
    REAL(int, close, int)
    bool failed = fails(CLOSE, "close");
    int result = real(fd);
    errno = failed ? error : errno;
    return failed ? -1 : result;
}

int closedir(DIR *d)
{
    REAL(int, closedir, DIR *)
    bool failed = fails(CLOSE, "closedir");
    int result = real(d);
    return failed ? -1 : result;
}

int fclose(FILE *f)
{
    REAL(int, fclose, FILE *)
    bool failed = fails(CLOSE, "fclose");
    int result = real(f);
    errno = failed ? error : errno;
    return failed ? EOF : result;
}

/* Calls that have no function of their own in the C library. */
long syscall(long number, ...)
{
    va_list args;
    long a[6];
    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    REAL(long, syscall, long, ...)
    if ((number == SYS_openat2 && fails(OPEN, "openat2")) || (number == SYS_renameat2 && fails(RENAME, "renameat2")))
        return -1;
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* --- the beginning --- */

/* Standard output goes through write above: the C library's own calls of it cannot be replaced. */
static ssize_t put(void *cookie, const char *p, size_t n)
{
    (void)cookie;
    ssize_t done = write(STDOUT_FILENO, p, n);
    return done < 0 ? 0 : done;
}

__attribute__((constructor)) static void begin(void)
{
    const char *class = getenv("FAIL_CLASS"), *how = getenv("FAIL_HOW"), *number = getenv("FAIL_AT"),
               *file = getenv("FAIL_HIT");
    int chosen = -1;
    if (!class || !how || !number || !file)
        return;
    for (int i = 0; i < CLASSES; i++)
        chosen = strcmp(class_names[i], class) == 0 ? i : chosen;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        error = strcmp(errors[i].name, how) == 0 ? errors[i].number : error;
    halve = strcmp(how, "short") == 0;
    at = atol(number);
    hit_file = open(file, O_WRONLY | O_CLOEXEC);
    if (chosen < 0 || (error == 0 && !halve) || hit_file < 0) {
        (void)!write(STDERR_FILENO, "fail_call: bad settings\n", 24);
        _exit(99);
    }
    unsetenv("LD_PRELOAD");
    (void)dl_iterate_phdr(find_json, NULL);
    cookie_io_functions_t io = {.write = put};
    stdout = fopencookie(NULL, "w", io);
    wanted = chosen;
}
