/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes. A library may not catch signals of the program that it is in, so it asks whether children have
 * ended, first often and then less so, instead of waiting for SIGCHLD. */
#include "jit_process.h"

#include "jit_util.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* Variables that change what a compiler makes, which the key of the cache does not hold, or where it writes; and those
 * that are set here. */
static const char *const dropped[] = {"CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "LD_RUN_PATH",
                                      "DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES", "CCC_OVERRIDE_OPTIONS", "LC_ALL",
                                      "TMPDIR"};

static bool is_dropped(const char *entry)
{
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++) {
        size_t n = strlen(dropped[i]);
        if (strncmp(entry, dropped[i], n) == 0 && entry[n] == '=')
            return true;
    }
    return false;
}

/* Messages are in English, because errors are found in them by their words. */
static void make_environment(jit_words *env, const char *folder)
{
    for (char **e = environ; e && *e; e++)
        if (!is_dropped(*e))
            jit_words_copy(env, *e);
    jit_words_add(env, jit_printf("TMPDIR=%s", folder));
    jit_words_copy(env, "LC_ALL=C");
}

static int spawn_with(jit_process *p, int log, posix_spawn_file_actions_t *files, posix_spawnattr_t *attr, char **env)
{
    sigset_t none, all;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    int why = posix_spawn_file_actions_adddup2(files, log, 1);
    why = why ? why : posix_spawn_file_actions_adddup2(files, 1, 2);
    why = why ? why : posix_spawn_file_actions_addopen(files, 0, "/dev/null", O_RDONLY, 0);
    why = why ? why
              : posix_spawnattr_setflags(attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    why = why ? why : posix_spawnattr_setpgroup(attr, 0);
    why = why ? why : posix_spawnattr_setsigmask(attr, &none);
    why = why ? why : posix_spawnattr_setsigdefault(attr, &all);
    return why ? why : posix_spawn(&p->pid, p->path, files, attr, p->argv, env);
}

static int spawn(jit_process *p, int log, char **env)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    int why = posix_spawn_file_actions_init(&files);
    if (why)
        return why;
    why = posix_spawnattr_init(&attr);
    if (why == 0) {
        why = spawn_with(p, log, &files, &attr, env);
        (void)posix_spawnattr_destroy(&attr);
    }
    (void)posix_spawn_file_actions_destroy(&files);
    return why;
}

/* Room is taken for the first lines of the log: a compiler that fails because the disk is full must be able to say
 * so. */
static int open_log(const char *path, int *out)
{
    enum { ROOM = 4096 };
    *out = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (*out < 0)
        return errno;
    int why = posix_fallocate(*out, 0, ROOM);
    return why == ENOSPC || why == EFBIG || why == EDQUOT ? why : 0;
}

static bool start(const lathe_options *options, jit_process *p, char **env)
{
    jit_held held;
    int log = -1, why = open_log(p->log, &log);
    jit_hold(&held);
    if (why == 0)
        why = spawn(p, log, env);
    if (why == 0)
        jit_tell(options, NULL, p->pid, true);
    jit_release(&held);
    if (log >= 0)
        (void)close(log);
    p->how = why ? JIT_NOT_STARTED : JIT_RUNNING;
    p->number = why;
    return why == 0;
}

/* waitpid; the number is free for others as soon as it is waited for. */
static pid_t reap(const lathe_options *options, pid_t pid, int *out_status, int flags)
{
    jit_held held;
    jit_hold(&held);
    pid_t got = waitpid(pid, out_status, flags);
    if (got > 0 || (got < 0 && errno != EINTR)) {
        int why = errno;
        jit_tell(options, NULL, pid, false);
        errno = why;
    }
    jit_release(&held);
    return got;
}

/* Looks whether it has ended; `flags`: WNOHANG, or 0 to wait, which is for those that were killed. */
static void look(const lathe_options *options, jit_process *p, int flags)
{
    int status = 0;
    pid_t got = reap(options, p->pid, &status, flags);
    if (got == 0 || (got < 0 && errno == EINTR))
        return;
    p->how = got > 0 && WIFSIGNALED(status) ? JIT_KILLED : JIT_ENDED;
    if (got < 0)
        p->number = p->product && access(p->product, F_OK) != 0;
    else
        p->number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

static void kill_all(const lathe_options *options, jit_process *list, size_t n, enum jit_ended why)
{
    for (size_t i = 0; i < n; i++) {
        jit_process *p = &list[i];
        if (p->how == JIT_RUNNING) {
            (void)kill(-p->pid, SIGKILL);
            while (p->how == JIT_RUNNING)
                look(options, p, 0);
        } else if (p->how != JIT_WAITING) {
            continue;
        }
        p->how = why;
    }
}

static double seconds_now(void)
{
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* An eighth of the time that has passed, between half a millisecond and twenty. */
static void sleep_some(double passed)
{
    double ms = passed * 125;
    ms = ms < 0.5 ? 0.5 : ms > 20 ? 20 : ms;
    (void)nanosleep(&(struct timespec){.tv_nsec = (long)(ms * 1e6)}, NULL);
}

/* Starts what may start, looks at what runs. False: one failed. */
static bool advance(const lathe_options *options, jit_process *list, size_t n, size_t at_once, char **env,
                    size_t *out_left)
{
    size_t running = 0;
    *out_left = 0;
    for (size_t i = 0; i < n; i++)
        running += list[i].how == JIT_RUNNING;
    for (size_t i = 0; i < n; i++) {
        jit_process *p = &list[i];
        if (p->how == JIT_WAITING && running < at_once) {
            if (!start(options, p, env))
                return false;
            running++;
        }
        if (p->how == JIT_RUNNING)
            look(options, p, WNOHANG);
        if (p->how == JIT_KILLED || (p->how == JIT_ENDED && p->number != 0))
            return false;
        *out_left += p->how == JIT_WAITING || p->how == JIT_RUNNING;
    }
    return true;
}

bool jit_processes_run(const lathe_options *options, jit_process *list, size_t n, size_t at_once, uint32_t seconds,
                       const char *folder)
{
    jit_words env = {0};
    make_environment(&env, folder);
    for (size_t i = 0; i < n; i++)
        list[i].how = env.failed ? JIT_NOT_STARTED : JIT_WAITING, list[i].number = ENOMEM;
    double began = seconds_now();
    size_t left = n;
    bool good = !env.failed;
    while (good && left > 0) {
        good = advance(options, list, n, at_once, env.at, &left);
        double passed = seconds_now() - began;
        if (good && left > 0 && passed > seconds) {
            kill_all(options, list, n, JIT_TOO_LONG);
            good = false;
        } else if (good && left > 0 && options && options->stop && options->stop(options->user) != 0) {
            kill_all(options, list, n, JIT_STOPPED);
            good = false;
        } else if (good && left > 0) {
            sleep_some(passed);
        }
    }
    kill_all(options, list, n, JIT_GIVEN_UP);
    jit_words_free(&env);
    return good;
}
