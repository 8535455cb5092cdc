/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a module file: what is loaded has a machine that can be made, described and given back. No source is
 * compiled before a call, and the system's loader, which trusts what it gets, is replaced: it may be asked only for a
 * file that has machine code of its own. */
#define _GNU_SOURCE /* memfd_create */
#include "abi/module.h"
#include "elf.h"
#include "lathe_vm.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static vm_bytes fuzzed;

void *dlopen(const char *path, int flags)
{
    (void)path;
    if ((flags & RTLD_NOLOAD) == 0 &&
        (!vm_elf_has_function(fuzzed, MODULE_FUNCTION_PREFIX) || !vm_elf_is_whole(fuzzed)))
        abort();
    return NULL;
}

static int32_t load(lathe_runtime *rt, lathe_value *out, lathe_error *error)
{
    char path[64];
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, fuzzed.data, fuzzed.size) != (ssize_t)fuzzed.size)
        abort();
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int32_t status = lathe_LoadFromFile(rt, path, out, error);
    (void)close(fd);
    return status;
}

static void describe(const lathe_value *vm)
{
    const char *name;
    lathe_dtype type;
    int32_t n = 0, rank;
    int64_t shape[4];
    if (lathe_function_arity(vm, "main", &n, NULL) != LATHE_OK)
        return;
    for (int32_t i = 0; i < n; i++)
        if (lathe_function_parameter(vm, "main", i, &name, &type, &rank, shape, 4, NULL) != LATHE_OK)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    lathe_runtime *rt;
    lathe_value module, start = {0}, vm = {0};
    lathe_error e = {0};
    if (lathe_runtime_create(NULL, &rt, &e) != LATHE_OK)
        return 0;
    fuzzed = (vm_bytes){data, size};
    int32_t status = load(rt, &module, &e);
    if (status != e.code || (status == LATHE_OK) != (module.type == LATHE_MODULE))
        abort();
    if (status == LATHE_OK && lathe_GetFunction(&module, "vm_load_executable", &start, &e) == LATHE_OK &&
        lathe_call(&start, NULL, 0, &vm, &e) == LATHE_OK)
        describe(&vm);
    lathe_release(&vm);
    lathe_release(&start);
    lathe_release(&module);
    lathe_runtime_destroy(rt);
    return 0;
}
