/* SPDX-License-Identifier: Apache-2.0 */
/* Loading. The checked bytes are in memory, and a copy of exactly these bytes is opened, never a file that may have
 * changed. */
#define _GNU_SOURCE /* memfd_create */
#include "jit_load.h"

#include "elf.h"
#include "jit_machine.h"
#include "jit_util.h"

#include "abi/module.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct jit_library {
    void *handle;
    char *path; /* that it was loaded by */
    int fd;     /* of the copy; open as long as the library: its number is in the path */
    int hold;
};

/* --- which machine it is for, and that it is whole: the loader reads what a file that is cut off lacks --- */

/* e_machine; 0: no whole 64-bit shared object of little-endian order. */
static uint32_t elf_machine(const jit_bytes *o)
{
    const vm_bytes file = {o->at, o->n};
    return vm_elf_is_whole(file) ? vm_elf_machine(file) : 0;
}

/* NULL: a machine that modules do not know. */
static const char *machine_name(uint32_t number)
{
#define HOST_ROW(name, machine, flags) \
    if (number == (machine))           \
        return name;
    MODULE_HOSTS(HOST_ROW)
#undef HOST_ROW
    return NULL;
}

static int32_t check_machine(const jit_bytes *o, const char *program, const char *name, lathe_error *error)
{
    uint32_t made_for = elf_machine(o);
    const char *other = machine_name(made_for);
    if (made_for == 0)
        return vm_fail(error, LATHE_E_COMPILER, "the compiler '%s' wrote something for '%s' that is not a whole 64-bit "
                        "shared object", program, name);
    if (made_for == jit_machine_elf())
        return LATHE_OK;
    return vm_fail(error, LATHE_E_COMPILER, "the compiler '%s' made '%s' for %s (ELF machine %u), and this machine is "
                    "%s: run the module there, or take a compiler for this one", program, name,
                    other ? other : "another machine", (unsigned)made_for, jit_machine_name());
}

/* --- the copy --- */

static int open_copy(const jit_bytes *object, const char *folder, char **out_path)
{
    *out_path = NULL;
#if defined(__linux__)
    int memory = memfd_create("lathe-kernels", MFD_CLOEXEC);
    if (memory >= 0) {
        if (jit_file_write(memory, object->at, object->n))
            *out_path = jit_printf("/proc/self/fd/%d", memory);
        if (*out_path && access(*out_path, R_OK) == 0) /* /proc may be missing */
            return memory;
        free(*out_path);
        (void)close(memory);
    }
#endif
    char *path = jit_printf("%s/loaded.so", folder);
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600) : -1;
    if (fd >= 0 && !jit_file_write(fd, object->at, object->n)) {
        (void)close(fd);
        fd = -1;
    }
    *out_path = path;
    return fd;
}

/* A library that could not be unloaded keeps its name, and whoever opens that name gets it. Numbers of closed files
 * come again, so the copy takes one that no library has. */
static bool take_free_name(int *fd, char **path)
{
    for (int i = 0; i < 1000; i++) {
        void *there = dlopen(*path, RTLD_LAZY | RTLD_NOLOAD);
        if (!there)
            return true;
        (void)dlclose(there);
        int next = fcntl(*fd, F_DUPFD_CLOEXEC, *fd + 1);
        char *name = next < 0 ? NULL : jit_printf("/proc/self/fd/%d", next);
        if (next >= 0)
            (void)close(*fd), *fd = next;
        if (!name)
            return false;
        free(*path);
        *path = name;
    }
    return false;
}

static int32_t open_library(jit_library *l, const char *name, lathe_error *error)
{
    if (!take_free_name(&l->fd, &l->path))
        return jit_no_memory(error);
    l->handle = dlopen(l->path, RTLD_NOW | RTLD_LOCAL);
    if (l->handle)
        return LATHE_OK;
    const char *why = dlerror();
    return vm_fail(error, LATHE_E_COMPILER, "the compiled kernels of '%s' cannot be loaded: %s", name,
                    why ? why : "no reason is given");
}

int32_t jit_load(const jit_bytes *object, const char *folder, const char *program, const char *name,
                 jit_library **out, lathe_error *error)
{
    *out = NULL;
    int32_t status = check_machine(object, program, name, error);
    if (status)
        return status;
    jit_library *l = calloc(1, sizeof *l);
    if (!l)
        return jit_no_memory(error);
    l->hold = -1;
    l->fd = open_copy(object, folder, &l->path);
    if (l->fd < 0)
        status = vm_fail(error, LATHE_E_FILE, "cannot make a copy of the compiled kernels of '%s': %s", name,
                          strerror(errno));
    else
        status = open_library(l, name, error);
    if (status)
        jit_unload(l);
    else
        *out = l;
    return status;
}

void jit_load_hold(jit_library *library, int fd)
{
    library->hold = fd;
}

void *jit_symbol(const jit_library *library, const char *name)
{
    return dlsym(library->handle, name);
}

const char *jit_path(const jit_library *library)
{
    return library->path;
}

void jit_unload(jit_library *library)
{
    if (!library)
        return;
    if (library->handle)
        (void)dlclose(library->handle);
    if (library->fd >= 0)
        (void)close(library->fd);
    if (library->hold >= 0)
        (void)close(library->hold);
    free(library->path);
    free(library);
}
