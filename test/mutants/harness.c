/* SPDX-License-Identifier: Apache-2.0 */
/* Runs packages on what their case files hold: harness FOLDER. Tensors lie in blocks of their exact size, so that a
 * sanitizer sees every byte beside them. Each package runs in a process of its own; a line "NAME ok" or "NAME FAILED
 * why" for each. packages.h, which test/py/mutants.py writes, lists them: X(name). */
#include "case_file.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSOR_SECONDS = 300, FILL = 0xA5, TOLD = 3 };

#define X(name) int32_t tvmgen_##name##_run(void *inputs, void *outputs);
#include "packages.h"
#undef X

static const struct {
    const char *name;
    int32_t (*run)(void *inputs, void *outputs);
} packages[] = {
#define X(name) {#name, tvmgen_##name##_run},
#include "packages.h"
#undef X
};

typedef struct loaded {
    case_header h;
    case_tensor *tensors;
    void **data, **want; /* of each tensor; inputs want nothing */
} loaded;

static void must(int ok, const char *what)
{
    if (!ok) {
        printf("FAILED %s\n", what);
        exit(TOLD);
    }
}

static void load(FILE *f, loaded *x)
{
    must(fread(&x->h, sizeof x->h, 1, f) == 1, "the case file is short");
    uint32_t n = x->h.n_inputs + x->h.n_outputs;
    x->tensors = calloc(n + 1, sizeof *x->tensors);
    x->data = calloc(n + 1, sizeof *x->data);
    x->want = calloc(n + 1, sizeof *x->want);
    must(fread(x->tensors, sizeof *x->tensors, n, f) == n, "the case file is short");
    for (uint32_t i = 0; i < n; i++) {
        x->data[i] = malloc(x->tensors[i].bytes);
        x->want[i] = malloc(x->tensors[i].bytes);
    }
}

static double as_double(uint64_t bits, uint32_t width)
{
    double d;
    float s;
    uint32_t low = (uint32_t)bits;
    if (width == 64) {
        memcpy(&d, &bits, sizeof d);
        return d;
    }
    memcpy(&s, &low, sizeof s);
    return (double)s;
}

static int is_nan(uint64_t bits, uint32_t width)
{
    if (width == 16) /* f16, or bf16, whose NaNs this also takes for NaN */
        return (bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0;
    return isnan(as_double(bits, width));
}

static int agrees(const case_tensor *t, int exact, uint64_t a, uint64_t b)
{
    if (a == b)
        return 1;
    if (!t->is_float)
        return 0;
    if (is_nan(a, t->bits) || is_nan(b, t->bits))
        return is_nan(a, t->bits) && is_nan(b, t->bits);
    if (exact || t->bits == 16)
        return 0;
    double x = as_double(a, t->bits), y = as_double(b, t->bits);
    return fabs(x - y) <= 1e-5 * (fabs(x) + fabs(y)) + 1e-6;
}

static void compare(const case_tensor *t, int exact, const void *got, const void *want, uint32_t set, uint32_t output)
{
    size_t size = t->bits / 8;
    for (size_t i = 0; i * size < t->bytes; i++) {
        uint64_t a = 0, b = 0;
        memcpy(&a, (const char *)got + i * size, size);
        memcpy(&b, (const char *)want + i * size, size);
        if (!agrees(t, exact, a, b)) {
            printf("FAILED set %u, output %u, element %zu: %llx instead of %llx", set, output, i,
                   (unsigned long long)a, (unsigned long long)b);
            if (t->is_float && t->bits >= 32)
                printf(" (%g, %g)", as_double(a, t->bits), as_double(b, t->bits));
            printf("\n");
            exit(TOLD);
        }
    }
}

static void run_set(loaded *x, FILE *f, uint32_t set, int32_t (*run)(void *, void *))
{
    uint32_t want, n = x->h.n_inputs + x->h.n_outputs;
    must(fread(&want, sizeof want, 1, f) == 1, "the case file is short");
    for (uint32_t i = 0; i < n; i++) {
        int is_input = i < x->h.n_inputs;
        memset(x->data[i], FILL, x->tensors[i].bytes);
        if (is_input || want == 0)
            must(fread(is_input ? x->data[i] : x->want[i], 1, x->tensors[i].bytes, f) == x->tensors[i].bytes,
                 "the case file is short");
    }
    int32_t status = run(x->data, x->data + x->h.n_inputs);
    if ((status != 0) != (want != 0)) {
        printf("FAILED set %u: status %d, %s with the interpreter\n", set, (int)status, want ? "not 0" : "0");
        exit(TOLD);
    }
    for (uint32_t i = x->h.n_inputs; want == 0 && i < n; i++)
        compare(&x->tensors[i], (int)x->h.exact, x->data[i], x->want[i], set, i - x->h.n_inputs);
}

static int run_package(const char *folder, size_t at)
{
    char path[4096];
    loaded x;
    struct rlimit limit = {PROCESSOR_SECONDS, PROCESSOR_SECONDS};
    setrlimit(RLIMIT_CPU, &limit);
    snprintf(path, sizeof path, "%s/%s.case", folder, packages[at].name);
    FILE *f = fopen(path, "rb");
    must(f != NULL, "there is no case file");
    load(f, &x);
    for (uint32_t s = 0; s < x.h.n_sets; s++)
        run_set(&x, f, s, packages[at].run);
    printf("ok\n");
    fflush(stdout);
    _exit(0); /* the workers of the package are still waiting */
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    for (size_t i = 0; i < sizeof packages / sizeof *packages; i++) {
        int status = 0;
        printf("%s ", packages[i].name);
        fflush(stdout);
        fprintf(stderr, "%s\n", packages[i].name);
        pid_t pid = fork();
        if (pid == 0)
            return run_package(argv[1], i);
        if (pid < 0 || waitpid(pid, &status, 0) != pid ||
            (status != 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != TOLD)))
            printf("FAILED died, wait status %d\n", status);
    }
    return 0;
}
