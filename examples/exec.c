/* exec.c: runs any portable module, asked for with the file that describes its inputs (an empty line: none), on a fixed
 * pattern, and prints what comes out. SPDX-License-Identifier: Apache-2.0 */
#include "outside.h"

#include <lathe_vm.h>

#include <stdio.h>
#include <string.h>

static int32_t run(lathe_runtime *rt, const char *path, const char *metadata, char *text, size_t size, lathe_error *e)
{
    lathe_value library = {0}, vm = {0}, result = {0}, inputs[64] = {{0}};
    int32_t n = 0, status = lathe_LoadFromFile(rt, path, &library, e);
    status = status ? status : lathe_start(&library, &vm, e);
    status = status ? status : lathe_sample_inputs(rt, &vm, metadata, inputs, 64, &n, e);
    status = status ? status : lathe_call_named(&vm, "main", inputs, n, &result, e);
    (void)lathe_describe(&result, text, size); /* cut where it is too long */
    for (lathe_value *v = inputs; v < inputs + n; v++)
        lathe_release(v);
    lathe_release(&result);
    lathe_release(&vm);
    lathe_release(&library);
    return status;
}

int main(void)
{
    static char path[4096], metadata[4096], text[65536];
    lathe_error error = {.message = "standard input ends before both are named"};
    lathe_runtime *rt = NULL;
    int32_t status = printf("Module, and in the next line its metadata:\n") < 0 || fflush(stdout) != 0 ||
                     !fgets(path, sizeof path, stdin) || !fgets(metadata, sizeof metadata, stdin);
    path[strcspn(path, "\n")] = metadata[strcspn(metadata, "\n")] = 0;
    const lathe_options options = {.size = sizeof options, .trace = 1, .outside = outside_note};
    outside_catch_signals();
    status = status ? status : lathe_runtime_create(&options, &rt, &error);
    status = status ? status : run(rt, path, metadata, text, sizeof text, &error);
    lathe_runtime_destroy(rt);
    return fprintf(status ? stderr : stdout, "%s\n", status ? error.message : text) < 0 || status != 0;
}
