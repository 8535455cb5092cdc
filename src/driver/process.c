/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes, without a shell in between. A child leads a process group of its own and keeps its temporary files
 * in our folder, so that nothing of it stays when this program is stopped. */
#include "driver/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

extern char **environ;

const char *process_python(void)
{
    const char *python = getenv("LATHE_PYTHON");
    return python && *python ? python : "python3";
}

const char *process_temp_dir(compiler *c)
{
    const char *base = getenv("TMPDIR");
    base = base && *base ? base : "/tmp";
    char *real = realpath(base, NULL); /* children may run elsewhere */
    char *dir = arena_printf(&c->mem, "%s/lathe-XXXXXX", real ? real : base);
    free(real);
    if (temps_make_private(&c->temps, dir))
        return dir;
    diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "cannot make a temporary folder '%s': %s", dir,
               strerror(errno));
    return NULL;
}

void process_add_words(compiler *c, process_words *a, const char *words)
{
    while (*words) {
        size_t n = strcspn(words, " \t");
        if (n > 0)
            vec_push(&c->mem, a, arena_strndup(&c->mem, words, n));
        words += n + (words[n] != '\0');
    }
}

/* How much a line of a C compiler's output says about why it failed. Echoed commands and "In file included from" say
 * nothing, and the options of the former have words such as -Werror. */
static int weight(const char *line)
{
    return strstr(line, ": error: ") || strstr(line, ": fatal error: ") || strstr(line, ": Error: ") ? 4
           : strstr(line, "undefined reference") || strstr(line, "multiple definition")              ? 3
           : strstr(line, "error: ") || strstr(line, "Error: ")                                      ? 2
           : line[strspn(line, " \t\r\n")]                                                           ? 1
                                                                                                     : 0;
}

/* The line that says most about a failure: the first of its kind, or the last one when there is nothing but talk. */
static const char *telling_line(compiler *c, const char *path)
{
    char *best = arena_alloc(&c->mem, 400, 1), line[400];
    FILE *f = fopen(path, "r");
    int most = 0;
    bool begins = true; /* else the rest of a line that is longer than any message */
    snprintf(best, 400, "it said nothing");
    while (f && fgets(line, sizeof line, f)) {
        int n = begins ? weight(line) : 0;
        begins = strchr(line, '\n') != NULL;
        if (n > most || (n == 1 && most == 1))
            memcpy(best, line, sizeof line);
        most = n > most ? n : most;
    }
    if (f)
        fclose(f);
    best[strcspn(best, "\r\n")] = '\0';
    return best;
}

/* The variables of a child: ours, but for TMPDIR. Made before fork: another thread may hold the lock of setenv then,
 * which nobody gives back in the child. */
static char **child_environment(compiler *c, const char *dir)
{
    process_words env = {0};
    for (char **e = environ; e && *e; e++)
        if (strncmp(*e, "TMPDIR=", 7) != 0)
            vec_push(&c->mem, &env, *e);
    vec_push(&c->mem, &env, arena_printf(&c->mem, "TMPDIR=%s", dir));
    vec_push(&c->mem, &env, NULL);
    return (char **)(uintptr_t)env.data;
}

/* In the child, with its standard input and output in place. */
static void become(const char *const *argv, char **env, const char *dir, const temps_held *before)
{
    (void)setpgid(0, 0);
    if (dir && chdir(dir) != 0)
        _exit(PROCESS_NOT_FOUND);
    temps_release_child(before);
    environ = env;
    execvp(argv[0], (char *const *)(uintptr_t)argv);
    _exit(PROCESS_NOT_FOUND);
}

/* fork, with the child noted while it lives; `inside`: it runs in `dir`; `in`, `out`, `err`: its streams, -1 for ours.
 */
static int start(compiler *c, const char *const *argv, const char *dir, bool inside, int in, int out, int err)
{
    temps_held held;
    char **env = child_environment(c, inside ? "." : dir);
    (void)fflush(stdout);
    temps_hold(&held);
    int pid = fork();
    if (pid == 0) {
        bool ok = (in < 0 || dup2(in, 0) >= 0) && (out < 0 || dup2(out, 1) >= 0) && (err < 0 || dup2(err, 2) >= 0);
        if (ok)
            become(argv, env, inside ? dir : NULL, &held);
        _exit(PROCESS_NOT_FOUND);
    }
    if (pid > 0) {
        (void)setpgid(pid, pid); /* the child does so too: whoever comes first */
        temps_note_child(&c->temps, pid);
    }
    int why = errno;
    temps_release(&held);
    errno = why;
    if (pid < 0)
        (void)diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "cannot start '%s': %s", argv[0], strerror(why));
    return pid;
}

/* Until it has ended, or nobody wants to know any more: often first and then less so, because SIGCHLD may be another's
 * business in a program that this is a library of. */
static void watch(compiler *c, int pid)
{
    siginfo_t info = {.si_pid = 0};
    long ns = 500000;
    while (c->progress && compiler_goes_on(c) &&
           waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | WNOHANG) == 0 && info.si_pid == 0) {
        (void)nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
        ns = ns < 20000000 ? ns + ns / 8 : ns;
    }
    if (c->cancelled)
        (void)kill(-pid, SIGKILL);
}

static int wait_for(compiler *c, int pid)
{
    temps_held held;
    siginfo_t info;
    int status = -1; /* neither ended nor killed, as far as is known */
    watch(c, pid);
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
        ;
    temps_hold(&held); /* the number is free for others as soon as it is waited for */
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    temps_forget_child(&c->temps, pid);
    temps_release(&held);
    return status;
}

static const char *with_path(compiler *c, const process_task *t, const char *line)
{
    size_t n = strlen(t->name);
    bool named = strncmp(line, t->name, n) == 0 && line[n] == '/';
    return named ? arena_printf(&c->mem, "%s%s", t->path, line + n) : line;
}

/* status: waitpid's. False after a diagnostic. */
static bool run_logged(compiler *c, const process_task *t, const char *log, int *status)
{
    int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "cannot write '%s': %s", log, strerror(errno));
    int pid = start(c, t->argv, t->dir, true, -1, fd, fd);
    *status = pid > 0 ? wait_for(c, pid) : 0;
    (void)close(fd);
    return pid >= 0 && !c->cancelled;
}

bool process_try(compiler *c, const process_task *t, bool *out_worked)
{
    int status;
    if (!run_logged(c, t, path_join(&c->mem, t->dir, "log"), &status))
        return false;
    *out_worked = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    return true;
}

bool process_run(compiler *c, const process_task *t)
{
    const char *log = path_join(&c->mem, t->dir, "log"), *program = t->argv[0];
    int status;
    if (!run_logged(c, t, log, &status))
        return false;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    if (WIFEXITED(status) && WEXITSTATUS(status) == PROCESS_NOT_FOUND) {
        diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "%s: there is no program '%s'", t->what, program);
        diag_hint(&c->diags, "%s", t->hint);
        return false;
    }
    if (WIFSIGNALED(status))
        return diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "%s: '%s' was killed by signal %d", t->what,
                          program, WTERMSIG(status));
    diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "%s: '%s' failed: %s", t->what, program,
               with_path(c, t, telling_line(c, log)));
    diag_hint(&c->diags, "%s", t->whole_log);
    return false;
}

/* One socket for both directions: what is sent to a child that has ended is an error, where a pipe would end us. */
bool process_start(compiler *c, const char *const *argv, const char *dir, process *out)
{
    int ends[2];
    *out = (process){.c = c, .fd = -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "no connection to '%s': %s", argv[0],
                          strerror(errno));
    out->pid = start(c, argv, dir, false, ends[1], ends[1], -1);
    (void)close(ends[1]);
    if (out->pid > 0) {
        out->fd = ends[0];
        return true;
    }
    (void)close(ends[0]);
    return false;
}

static bool send_all(const process *p, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = send(p->fd, text, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        text += n;
        len -= (size_t)n;
    }
    return true;
}

bool process_send(const process *p, const void *data, size_t len)
{
    return send_all(p, data, len);
}

bool process_say(const process *p, const char *line)
{
    return send_all(p, line, strlen(line)) && send_all(p, "\n", 1);
}

/* There is something to read. Else errno says why: ECANCELED, nobody waits for it any more; EAGAIN, it took too
 * long. Without anybody who watches, read waits. */
static bool is_ready(const process *p)
{
    struct pollfd at = {.fd = p->fd, .events = POLLIN};
    const double start = clock_now();
    while (p->c->progress && poll(&at, 1, 20) == 0) {
        const bool late = p->limit > 0 && clock_now() - start > p->limit;
        errno = late ? EAGAIN : ECANCELED;
        if (late || !compiler_goes_on(p->c))
            return false;
    }
    errno = ECANCELED;
    return !p->c->cancelled;
}

bool process_hear(const process *p, char *line, size_t size)
{
    size_t n = 0;
    char ch = '\0';
    ssize_t got = -1;
    while (is_ready(p) &&
           (((got = read(p->fd, &ch, 1)) == 1 && ch != '\n') || (got < 0 && errno == EINTR)))
        if (got == 1 && n + 1 < size)
            line[n++] = ch;
    line[n] = '\0';
    return got == 1;
}

void process_limit(process *p, uint32_t seconds)
{
    p->limit = seconds;
    const struct timeval t = {.tv_sec = (time_t)seconds};
    (void)setsockopt(p->fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    (void)setsockopt(p->fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
}

/* First in a way that lets it clean up. */
int process_stop(process *p)
{
    const struct timespec moment = {.tv_nsec = 100000000};
    siginfo_t info = {.si_pid = 0};
    (void)kill(-p->pid, SIGTERM); /* its group */
    for (uint32_t i = 0; i < 50 && info.si_pid == 0; i++)
        if (waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOWAIT | WNOHANG) == 0 && info.si_pid == 0)
            (void)nanosleep(&moment, NULL);
    if (info.si_pid == 0)
        (void)kill(-p->pid, SIGKILL);
    return process_end(p);
}

int process_end(process *p)
{
    (void)close(p->fd);
    p->fd = -1;
    int status = wait_for(p->c, p->pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : PROCESS_SIGNAL;
}
