/* runfile.c: runs `main` of a module on numbers from files, for machines where there is no compiler of modules.
 *     runfile [--workers N] [--cache FOLDER] [--keep FOLDER] MODULE OUT INPUT=FILE[:DIMENSION,...]...
 * Files hold raw numbers of the type that the module asks for; dimensions stand where it leaves them open. Result i
 * goes to OUT.i, and its type and shape are printed. What is compiled is said on standard error.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lathe_vm.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_INPUTS = 64, MOST_RANK = 16 };

static lathe_error error;

static void must(int32_t status, const char *what)
{
    if (status == LATHE_OK)
        return;
    fprintf(stderr, "runfile: %s: %s\n", what, error.message[0] ? error.message : lathe_status_text(status));
    exit(1);
}

static lathe_value call(const lathe_value *module, const char *name, const lathe_value *args, int32_t n)
{
    lathe_value result;
    must(lathe_call_named(module, name, args, n, &result, &error), name);
    return result;
}

static size_t bytes_of(const lathe_dltensor *t)
{
    size_t n = (t->dtype.bits + 7u) / 8u;
    for (int32_t i = 0; i < t->ndim; i++)
        n *= (size_t)t->shape[i];
    return n;
}

/* The dimensions behind the colon, which are taken away. */
static void take_shape(char *file, lathe_dltensor *t)
{
    char *at = strrchr(file, ':');
    if (!at)
        return;
    *at = 0;
    for (t->ndim = 0; at && t->ndim < MOST_RANK; at = *at == ',' ? at : NULL)
        t->shape[t->ndim++] = strtoll(at + 1, &at, 10);
}

static void fill(const lathe_value *vm, int32_t i, char **given, int n_given, lathe_dltensor *t)
{
    const char *name;
    char *file = NULL;
    must(lathe_function_parameter(vm, "main", i, &name, &t->dtype, &t->ndim, t->shape, MOST_RANK, &error), "main");
    for (int k = 0; k < n_given && !file; k++)
        if (strncmp(given[k], name, strlen(name)) == 0 && given[k][strlen(name)] == '=')
            file = given[k] + strlen(name) + 1;
    must(file ? LATHE_OK : LATHE_E_NAME, name);
    take_shape(file, t);
    size_t n = bytes_of(t);
    FILE *f = fopen(file, "rb");
    t->data = aligned_alloc(64, (n + 64) / 64 * 64);
    must(f && t->data && fread(t->data, 1, n + 1, f) == n ? LATHE_OK : LATHE_E_FILE, file);
    (void)fclose(f);
}

/* Results one after the other; those of an array in its order. */
static int write_results(const lathe_value *v, const char *out, int n)
{
    const lathe_dltensor *t = lathe_tensor_of(v);
    lathe_value element;
    char path[4096];
    for (size_t i = 0; i < lathe_array_size(v); i++) {
        must(lathe_array_get(v, i, &element, &error), "a result");
        n = write_results(&element, out, n);
    }
    if (!t)
        return n;
    (void)snprintf(path, sizeof path, "%s.%d", out, n);
    printf("%d %d", t->dtype.code, t->dtype.bits);
    for (int32_t i = 0; i < t->ndim; i++)
        printf(" %lld", (long long)t->shape[i]);
    printf("\n");
    FILE *f = fopen(path, "wb");
    size_t size = bytes_of(t);
    bool good = f && fwrite((const char *)t->data + t->byte_offset, 1, size, f) == size;
    must(f && fclose(f) == 0 && good ? LATHE_OK : LATHE_E_FILE, path);
    return n + 1;
}

static void run(lathe_runtime *rt, char **argv, int argc)
{
    static const int64_t numbers[6] = {LATHE_MY_DEVICE, 0, 2, LATHE_CPU, 0, 2}; /* 2: a pooled allocator */
    static int64_t shapes[MOST_INPUTS][MOST_RANK];
    static lathe_dltensor tensors[MOST_INPUTS];
    lathe_value library, vm, result, inputs[MOST_INPUTS], devices[6];
    int32_t n;
    must(lathe_LoadFromFile(rt, argv[0], &library, &error), argv[0]);
    vm = call(&library, "vm_load_executable", NULL, 0);
    for (int i = 0; i < 6; i++)
        devices[i] = (lathe_value){.type = LATHE_INT, .u.v_int = numbers[i]};
    (void)call(&vm, "vm_initialization", devices, 6);
    must(lathe_function_arity(&vm, "main", &n, &error), "main");
    must(n <= MOST_INPUTS ? LATHE_OK : LATHE_E_UNSUPPORTED, "the number of inputs");
    for (int32_t i = 0; i < n; i++) {
        tensors[i] = (lathe_dltensor){.device = {LATHE_CPU, 0}, .shape = shapes[i]};
        fill(&vm, i, argv + 2, argc - 2, &tensors[i]);
        inputs[i] = (lathe_value){.type = LATHE_DLTENSOR, .u.v_tensor = &tensors[i]};
    }
    result = call(&vm, "main", inputs, n);
    (void)write_results(&result, argv[1], 0);
    for (int32_t i = 0; i < n; i++)
        free(tensors[i].data);
    lathe_release(&result);
    lathe_release(&vm);
    lathe_release(&library);
}

int main(int argc, char **argv)
{
    lathe_options options = {.size = sizeof options, .workers = 1, .trace = 1, .cache_dir = ""};
    lathe_runtime *rt;
    int i = 1;
    for (; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
        if (strcmp(argv[i], "--workers") == 0)
            options.workers = (uint32_t)atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--cache") == 0)
            options.cache_dir = argv[i + 1];
        else if (strcmp(argv[i], "--keep") == 0)
            options.keep_sources = argv[i + 1];
    }
    if (argc - i < 2) {
        fprintf(stderr, "usage: runfile [--workers N] [--cache FOLDER] [--keep FOLDER] MODULE OUT "
                        "INPUT=FILE[:DIM,...]...\n");
        return 2;
    }
    must(lathe_runtime_create(&options, &rt, &error), "the runtime");
    run(rt, argv + i, argc - i);
    lathe_runtime_destroy(rt);
    return 0;
}
