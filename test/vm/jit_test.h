/* jit_test.h: what tests of the run-time compiler share: a folder of their own with a cache in it, compilers that are
 * scripts, what was logged, what was left behind.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef JIT_TEST_H
#define JIT_TEST_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jit.h"

typedef struct place {
    char top[80], cache[100], compiler[140], temporary[100];
    lathe_options options;
    char said[65536];
    int files; /* that were open when the test began */
} place;

static inline place *place_of(void **state)
{
    return *state;
}

static inline void place_log(void *user, const char *line)
{
    place *p = user;
    size_t n = strlen(p->said);
    (void)snprintf(p->said + n, sizeof p->said - n, "%s\n", line);
}

static inline int place_count(const char *folder, const char *end);

/* Temporary folders of the compiler lie in a folder that nothing else uses. */
static inline int place_setup(void **state)
{
    place *p = calloc(1, sizeof *p);
    const char *base = getenv("LATHE_TEST_TMP");
    if (!p)
        return -1;
    (void)snprintf(p->top, sizeof p->top, "%s/jit-test-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(p->top))
        return -1;
    (void)snprintf(p->cache, sizeof p->cache, "%s/cache", p->top);
    (void)snprintf(p->temporary, sizeof p->temporary, "%s/tmp", p->top);
    p->options = (lathe_options){.size = sizeof p->options, .trace = 1, .cache_dir = p->cache, .log = place_log,
                                 .user = p, .compiler = "cc"};
    p->files = place_count("/proc/self/fd", "");
    *state = p;
    return mkdir(p->temporary, 0700) || setenv("TMPDIR", p->temporary, 1) || unsetenv("LATHE_VECTOR_BYTES");
}

static inline int place_remove(void **state)
{
    place *p = place_of(state);
    char command[400];
    (void)snprintf(command, sizeof command, "umount '%s' 2> /dev/null; rm -rf '%s'", p->cache, p->top);
    bool leak = place_count("/proc/self/fd", "") != p->files;
    if (leak)
        print_error("files stay open\n");
    int status = system(command);
    free(p);
    return leak || status;
}

#define place_test(f) cmocka_unit_test_setup_teardown(f, place_setup, place_remove)

static inline void place_said(const place *p, const char *words)
{
    if (!strstr(p->said, words))
        fail_msg("'%s' was not said, but '%s'", words, p->said);
}

/* A file of the place, as a path. */
static inline const char *place_file(const place *p, const char *name, char out[200])
{
    (void)snprintf(out, 200, "%s/%s", p->top, name);
    return out;
}

/* The compiler becomes a script; $W is the place. */
static inline void place_compiler(place *p, const char *name, const char *body)
{
    (void)snprintf(p->compiler, sizeof p->compiler, "%s/%s", p->top, name);
    FILE *f = fopen(p->compiler, "w");
    assert_non_null(f);
    (void)fprintf(f, "#!/bin/sh\nW=%s\n%s", p->top, body);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(p->compiler, 0700), 0);
    p->options.compiler = p->compiler;
}

/* Lines of a file of the place; 0 when it is not there. */
static inline int place_lines(const place *p, const char *name)
{
    char path[200];
    FILE *f = fopen(place_file(p, name, path), "r");
    int n = 0;
    for (int c = f ? getc(f) : EOF; c != EOF; c = getc(f))
        n += c == '\n';
    if (f)
        (void)fclose(f);
    return n;
}

/* How many names of a folder end so ("": all). -1: no folder. */
static inline int place_count(const char *folder, const char *end)
{
    DIR *d = opendir(folder);
    int n = 0;
    if (!d)
        return -1;
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        size_t len = strlen(e->d_name), want = strlen(end);
        n += e->d_name[0] != '.' && len >= want && strcmp(e->d_name + len - want, end) == 0;
    }
    (void)closedir(d);
    return n;
}

/* Nothing is left but whole entries. */
static inline void place_no_temporaries(const place *p)
{
    assert_int_equal(place_count(p->temporary, ""), 0);
    assert_int_equal(place_count(p->cache, "") - place_count(p->cache, ".so"), 0);
}

/* A process that was killed: its group leader was waited for, so it is gone, or a zombie until init looks at it. */
static inline void place_is_gone(long pid)
{
    char path[64], state = 0;
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    for (;;) {
        FILE *f = fopen(path, "r");
        if (!f)
            return;
        int n = fscanf(f, "%*d %*s %c", &state);
        (void)fclose(f);
        if (n != 1 || state == 'Z' || state == 'X')
            return;
        (void)sched_yield(); /* the signal is under way; the limit of the test is against hangs */
    }
}
#endif
