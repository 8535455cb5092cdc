/* exec.c: runs any portable module: asks for the module and for the file that describes its inputs, fills these with a
 * fixed pattern, and prints what comes out. It knows nothing but lathe_vm.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include <lathe_vm.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_INPUTS = 64, MOST_RANK = 16 };
static lathe_error error;

static void must(int32_t status)
{
    if (status == LATHE_OK)
        return;
    fprintf(stderr, "%s\n", error.message[0] ? error.message : lathe_status_text(status));
    exit(1);
}

static void ask(const char *question, char answer[4096])
{
    printf("%s", question);
    (void)fflush(stdout);
    must(fgets(answer, 4096, stdin) ? LATHE_OK : LATHE_E_FILE);
    answer[strcspn(answer, "\n")] = 0;
}

static lathe_value call(const lathe_value *module, const char *name, const lathe_value *args, int32_t n)
{
    lathe_value function, result;
    must(lathe_GetFunction(module, name, &function, &error));
    must(lathe_call(&function, args, n, &result, &error));
    lathe_release(&function);
    return result;
}

static size_t elements(const lathe_dltensor *t)
{
    size_t n = 1;
    for (int32_t i = 0; i < t->ndim; i++)
        n *= (size_t)t->shape[i];
    return n;
}

/* Input i of main in memory of its own; extents that the module leaves open are 1. */
static void fill(const lathe_value *vm, int32_t i, lathe_dltensor *t, int64_t *shape)
{
    const char *name;
    *t = (lathe_dltensor){.device = {LATHE_CPU, 0}, .shape = shape};
    must(lathe_function_parameter(vm, "main", i, &name, &t->dtype, &t->ndim, shape, MOST_RANK, &error));
    must(t->ndim >= 0 && t->ndim <= MOST_RANK ? LATHE_OK : LATHE_E_UNSUPPORTED);
    for (int32_t k = 0; k < t->ndim; k++)
        shape[k] = shape[k] < 0 ? 1 : shape[k];
    size_t n = elements(t), each = t->dtype.bits / 8u;
    t->data = aligned_alloc(64, (n * each + 64) / 64 * 64);
    must(t->data ? LATHE_OK : LATHE_E_MEMORY);
    memset(t->data, 0, n * each);
    for (size_t k = 0; k < n; k++)
        if (t->dtype.code == 2 && each == 4)
            ((float *)t->data)[k] = (float)(k % 17) / 8 - 1;
        else
            ((char *)t->data)[k * each] = (char)(k % 2);
}

static void print(const lathe_value *v)
{
    lathe_value element;
    const lathe_dltensor *t = lathe_tensor_of(v);
    for (size_t i = 0; i < lathe_array_size(v); i++, print(&element))
        must(lathe_array_get(v, i, &element, &error));
    printf(t ? "output of shape [" : "");
    for (int32_t i = 0; t && i < t->ndim; i++)
        printf("%s%lld", i ? ", " : "", (long long)t->shape[i]);
    printf(t ? "]\n" : "");
    size_t n = t && t->dtype.code == 2 && t->dtype.bits == 32 ? elements(t) : 0;
    const float *f = n ? (const float *)(const void *)((const char *)t->data + t->byte_offset) : NULL;
    float least = n ? f[0] : 0, most = least;
    for (size_t i = 0; i < n; i++) {
        least = f[i] < least ? f[i] : least;
        most = f[i] > most ? f[i] : most;
    }
    printf(n ? "%g to %g:" : "", (double)least, (double)most);
    for (size_t i = 0; i < n && i < 8; i++)
        printf(" %g%s", (double)f[i], i + 1 == n || i == 7 ? "\n" : "");
}

int main(void)
{
    static int64_t shapes[MOST_INPUTS][MOST_RANK];
    static lathe_dltensor tensors[MOST_INPUTS];
    lathe_value library, vm, result, inputs[MOST_INPUTS], devices[6];
    const int64_t numbers[6] = {LATHE_MY_DEVICE, 0, 2, LATHE_CPU, 0, 2}; /* 2: a pooled allocator */
    lathe_options options = {.size = sizeof options, .trace = 1};
    lathe_runtime *rt;
    char path[4096], metadata[4096];
    int32_t n;
    ask("Module: ", path);
    ask("Metadata: ", metadata);
    must(lathe_runtime_create(&options, &rt, &error));
    must(lathe_LoadFromFile(rt, path, &library, &error));
    vm = call(&library, "vm_load_executable", NULL, 0);
    for (int i = 0; i < 6; i++)
        devices[i] = (lathe_value){.type = LATHE_INT, .u.v_int = numbers[i]};
    (void)call(&vm, "vm_initialization", devices, 6);
    must(metadata[0] ? lathe_check_metadata(rt, &vm, metadata, &error) : LATHE_OK);
    must(lathe_function_arity(&vm, "main", &n, &error));
    must(n <= MOST_INPUTS ? LATHE_OK : LATHE_E_UNSUPPORTED);
    for (int32_t i = 0; i < n; i++) {
        fill(&vm, i, &tensors[i], shapes[i]);
        inputs[i] = (lathe_value){.type = LATHE_DLTENSOR, .u.v_tensor = &tensors[i]};
    }
    result = call(&vm, "main", inputs, n);
    print(&result);
    for (int32_t i = 0; i < n; i++)
        free(tensors[i].data);
    lathe_release(&result);
    lathe_release(&vm);
    lathe_release(&library);
    lathe_runtime_destroy(rt);
    return 0;
}
