/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes, without a shell in between. */
#include "driver/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

enum { NOT_FOUND = 127 };

const char *process_python(void)
{
    const char *python = getenv("LATHE_PYTHON");
    return python && *python ? python : "python3";
}

char *process_temp_dir(compiler *c)
{
    const char *base = getenv("TMPDIR");
    char *dir = arena_printf(&c->mem, "%s/lathe-XXXXXX", base && *base ? base : "/tmp");
    if (mkdtemp(dir))
        return dir;
    diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "cannot make a temporary folder '%s': %s", dir,
               strerror(errno));
    return NULL;
}

static const char *first_line(compiler *c, const char *path)
{
    FILE *f = fopen(path, "r");
    char *line = arena_alloc(&c->mem, 400, 1), any[400] = "";
    bool found = false;
    while (f && !found && fgets(line, 400, f)) {
        if (!any[0])
            memcpy(any, line, sizeof any);
        found = strstr(line, "error") || strstr(line, "Error");
    }
    if (f)
        fclose(f);
    if (!found)
        memcpy(line, any, sizeof any);
    line[strcspn(line, "\n")] = '\0';
    return line;
}

static int spawn_logged(const char *const *argv, const char *log)
{
    int pid = fork();
    if (pid != 0)
        return pid;
    int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd >= 0) {
        dup2(fd, 1);
        dup2(fd, 2);
    }
    execvp(argv[0], (char *const *)(uintptr_t)argv);
    _exit(NOT_FOUND);
}

bool process_run(compiler *c, const char *const *argv, const char *dir, const char *what, const char *hint)
{
    const char *log = path_join(&c->mem, dir, "log");
    int status = 0, pid = spawn_logged(argv, log);
    if (pid < 0)
        return diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "cannot start '%s': %s", argv[0],
                          strerror(errno));
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_FOUND) {
        diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "%s: there is no program '%s'", what, argv[0]);
        diag_hint(&c->diags, "%s", hint);
        return false;
    }
    if (WIFSIGNALED(status))
        return diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "%s: '%s' was killed by signal %d", what,
                          argv[0], WTERMSIG(status));
    return diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "%s: '%s' failed: %s", what, argv[0],
                      first_line(c, log));
}

bool process_start(compiler *c, const char *const *argv, process *out)
{
    int down[2], up[2];
    if (pipe(down) != 0)
        return diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "no pipe: %s", strerror(errno));
    if (pipe(up) != 0) {
        int why = errno;
        close(down[0]);
        close(down[1]);
        return diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "no pipe: %s", strerror(why));
    }
    fflush(stdout);
    out->pid = fork();
    if (out->pid == 0) {
        dup2(down[0], 0);
        dup2(up[1], 1);
        close(down[1]);
        close(up[0]);
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(NOT_FOUND);
    }
    int why = errno;
    close(down[0]);
    close(up[1]);
    out->to = down[1];
    out->from = up[0];
    if (out->pid > 0)
        return true;
    close(out->to);
    close(out->from);
    return diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "cannot start '%s': %s", argv[0], strerror(why));
}

bool process_say(process *p, const char *line)
{
    size_t n = strlen(line);
    return write(p->to, line, n) == (ssize_t)n && write(p->to, "\n", 1) == 1;
}

bool process_hear(process *p, char *line, size_t size)
{
    size_t n = 0;
    char ch;
    while (read(p->from, &ch, 1) == 1) {
        if (ch == '\n') {
            line[n] = '\0';
            return true;
        }
        if (n + 1 < size)
            line[n++] = ch;
    }
    line[n] = '\0';
    return false;
}

int process_end(process *p)
{
    int status = 0;
    close(p->to);
    close(p->from);
    while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}
