/* SPDX-License-Identifier: Apache-2.0 */
/* A program that compiles a source file through jit.h and runs its function `fma3`, for test/vm/jit_riscv.sh, which
 * runs it on machines of several widths: user SOURCE CACHE. */
#include "jit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say(void *user, const char *line)
{
    (void)user;
    (void)printf("%s\n", line);
}

static size_t read_file(const char *path, char *text, size_t room)
{
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, room, f) : 0;
    if (f)
        (void)fclose(f);
    return n;
}

/* Whole numbers, so that every way to round gives the same. */
static int check(void (*run)(const float *, const float *, float *, int))
{
    enum { N = 1024 };
    static float a[N], b[N], c[N];
    int wrong = 0;
    for (int i = 0; i < N; i++) {
        a[i] = (float)(i % 37 - 11);
        b[i] = (float)(i % 53 - 20);
        c[i] = (float)(i % 7);
    }
    run(a, b, c, N);
    for (int i = 0; i < N; i++)
        wrong += c[i] != a[i] * b[i] + (float)(i % 7);
    return wrong;
}

int main(int argc, char **argv)
{
    static char text[1 << 20];
    size_t n = argc > 2 ? read_file(argv[1], text, sizeof text) : 0;
    lathe_options options = {.size = sizeof options, .trace = 1, .log = say, .cache_dir = argc > 2 ? argv[2] : ""};
    lathe_error e = {0};
    jit_library *l = NULL;
    void (*run)(const float *, const float *, float *, int);
    jit_machine m = jit_this_machine();
    (void)printf("machine: %u bytes, %u registers\n", (unsigned)m.vector_bytes, (unsigned)m.vector_regs);
    if (n == 0 || jit_compile(&options, "fma3", text, n, &l, &e) != LATHE_OK) {
        (void)printf("error: %s\n", e.message);
        return 1;
    }
    *(void **)&run = jit_symbol(l, "fma3");
    (void)printf("wrong: %d\n", run ? check(run) : -1);
    jit_unload(l);
    return 0;
}
