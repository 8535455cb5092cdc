/* SPDX-License-Identifier: Apache-2.0 */
/* A program that compiles a source file through jit.h and runs its function `fma3`, for test/vm/jit_riscv.sh, which
 * runs it on machines of several widths: user SOURCE CACHE. */
#include "jit.h"
#include "jit_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say(void *user, const char *line)
{
    (void)user;
    (void)fprintf(stderr, "%s\n", line);
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

static int32_t compile_and_run(const jit_bytes *text, const char *cache, lathe_error *error)
{
    lathe_options options = {.size = sizeof options, .trace = 1, .log = say, .cache_dir = cache};
    jit_library *l = NULL;
    void (*run)(const float *, const float *, float *, int);
    int32_t status = jit_compile(&options, "fma3", (const char *)text->at, text->n, &l, error);
    if (status)
        return status;
    *(void **)&run = jit_symbol(l, "fma3");
    (void)fprintf(stderr, "wrong: %d\n", run ? check(run) : -1);
    jit_unload(l);
    return LATHE_OK;
}

int main(int argc, char **argv)
{
    lathe_error e = {0};
    jit_bytes text = {0};
    jit_machine m = jit_this_machine();
    (void)fprintf(stderr, "machine: %u bytes, %u registers\n", (unsigned)m.vector_bytes, (unsigned)m.vector_regs);
    if (argc != 3 || !jit_file_take(argv[1], &text)) {
        (void)fprintf(stderr, "error: no source\n");
        return 1;
    }
    int32_t status = compile_and_run(&text, argv[2], &e);
    if (status)
        (void)fprintf(stderr, "error: %s\n", e.message);
    free(text.at);
    return status != LATHE_OK;
}
