/* module_library.c: machine code of stock modules: the shared object itself, loaded, and its functions by symbol. The
 * system's loader takes the file by its own name, because the code may look for other libraries beside it, and trusts
 * it: constructors run, and nothing but what elf.c looks at is checked. Under no_jit it never gets the file.
 * SPDX-License-Identifier: Apache-2.0 */
#if defined(__linux__)
#define _GNU_SOURCE /* dladdr, RTLD_NOLOAD */
#endif
#include "abi/module.h"
#include "elf.h"
#include "error.h"
#include "jit_machine.h"
#include "module_kinds.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A function that machine code has asked for, and may use as long as the library lives. */
struct asked {
    struct asked *next;
    lathe_value function;
};

struct library_module {
    vm_module module;
    bool has_code; /* a module whose functions are all of others is exported with a library of none */
    void *handle;
    pthread_mutex_t lock; /* of `asked` */
    struct asked *asked;
    vm_abi_library abi;
};

struct library_function {
    vm_function f;
    vm_safe_call code;
    char name[];
};

static int32_t call_library(vm_function *self, const lathe_value *args, int32_t n, lathe_value *result,
                            lathe_error *error)
{
    const struct library_function *f = (struct library_function *)(void *)self;
    const vm_module *m = (vm_module *)(void *)self->owner;
    int32_t status = vm_abi_call(f->code, NULL, m->rt->pool, args, n, result, error);
    return status == LATHE_OK ? status : vm_at(error, status, "kernel %s", f->name);
}

/* Symbols that are reserved: they are no functions, or none of the module's. */
static bool is_reserved(const char *name)
{
    static const char *const prefixes[] = {"_library_", "_metadata_", "_doc_"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

static int32_t find_in_library(vm_module *m, const char *name, lathe_value *out, lathe_error *error)
{
    struct library_module *l = (struct library_module *)(void *)m;
    char symbol[512];
    if (!l->has_code || is_reserved(name) || strlen(name) + 16 > sizeof symbol)
        return LATHE_OK;
    if (m->rt->options.no_jit)
        return vm_fail(error, LATHE_E_REFUSED, "the module holds machine code, and no_jit forbids running it");
    (void)snprintf(symbol, sizeof symbol, MODULE_FUNCTION_PREFIX "%s", name);
    void *address = dlsym(l->handle, symbol);
    if (!address)
        return LATHE_OK;
    struct library_function *f = vm_function_new(sizeof *f + strlen(name) + 1, call_library, &m->head, NULL);
    if (!f)
        return vm_no_memory(error, sizeof *f);
    memcpy(&f->code, &address, sizeof f->code);
    memcpy(f->name, name, strlen(name) + 1);
    *out = vm_value_of(f);
    return LATHE_OK;
}

static lathe_object *lookup(vm_abi_library *library, const char *name)
{
    struct library_module *l =
        (struct library_module *)(void *)((char *)library - offsetof(struct library_module, abi));
    struct asked *a = calloc(1, sizeof *a);
    if (!a || vm_module_find_imported(&l->module, name, &a->function, NULL) != LATHE_OK ||
        a->function.type == LATHE_NONE) {
        free(a);
        return NULL;
    }
    pthread_mutex_lock(&l->lock);
    a->next = l->asked;
    l->asked = a;
    pthread_mutex_unlock(&l->lock);
    return a->function.u.v_object;
}

static void destroy_library(vm_module *m)
{
    struct library_module *l = (struct library_module *)(void *)m;
    while (l->asked) {
        struct asked *a = l->asked;
        l->asked = a->next;
        lathe_release(&a->function);
        free(a);
    }
    if (l->handle)
        (void)dlclose(l->handle);
    pthread_mutex_destroy(&l->lock);
}

/* Machine code finds this library's functions by name only when they are visible to all: where this code was itself
 * loaded privately, it is loaded once more for that. */
static void show_own_symbols(void)
{
#if defined(__linux__)
    void *address;
    Dl_info info;
    (void)vm_abi_variable(0, &address);
    if (dladdr(address, &info) && info.dli_fname)
        (void)dlopen(info.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
#endif
}

static void fill_variables(struct library_module *l)
{
    void *address, *variable;
    const char *name;
    for (size_t i = 0; (name = vm_abi_variable(i, &address)) != NULL; i++) {
        variable = dlsym(l->handle, name);
        if (variable)
            memcpy(variable, &address, sizeof address);
    }
    variable = dlsym(l->handle, "__tvm_ffi__library_ctx");
    address = &l->abi;
    if (variable)
        memcpy(variable, &address, sizeof address);
}

static int32_t open_library(struct library_module *l, lathe_error *error)
{
    const vm_file *file = l->module.file;
    uint16_t machine = vm_elf_machine(file->bytes);
    if (!file->path)
        return vm_fail(error, LATHE_E_UNSUPPORTED, "the module holds machine code, which is loaded only from a file");
    if (machine != jit_machine_elf())
        return vm_fail(error, LATHE_E_UNSUPPORTED, "the module holds machine code for ELF machine %u; this is %u",
                       machine, (unsigned)jit_machine_elf());
    if (!vm_elf_is_whole(file->bytes))
        return vm_fail(error, LATHE_E_FORMAT, "the module is to hold machine code, and the file is damaged");
    l->has_code = vm_elf_has_function(file->bytes, MODULE_FUNCTION_PREFIX);
    if (!l->has_code || l->module.rt->options.no_jit)
        return LATHE_OK;
    show_own_symbols();
    l->handle = dlopen(file->path, RTLD_NOW | RTLD_LOCAL);
    const char *why = l->handle ? NULL : dlerror();
    if (!l->handle)
        return vm_fail(error, LATHE_E_FILE, "the machine code cannot be loaded: %s", why ? why : "no reason given");
    fill_variables(l);
    return LATHE_OK;
}

int32_t vm_library_module(lathe_runtime *rt, vm_file *file, vm_bytes content, vm_module **out, lathe_error *error)
{
    static const vm_module_kind kind = {"library", find_in_library, destroy_library};
    (void)content;
    struct library_module *l = vm_module_new(sizeof *l, &kind, rt, file, error);
    if (!l)
        return LATHE_E_MEMORY;
    pthread_mutex_init(&l->lock, NULL);
    l->abi.lookup = lookup;
    int32_t status = open_library(l, error);
    if (status != LATHE_OK)
        vm_object_release(&l->module.head);
    else
        *out = &l->module;
    return status;
}
