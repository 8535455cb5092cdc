/* load.c: from a file, or bytes, to the tree of its modules.
 * SPDX-License-Identifier: Apache-2.0 */
#include "abi/module.h"
#include "container.h"
#include "elf.h"
#include "error.h"
#include "module_kinds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- files --- */

static void destroy_file(void *self)
{
    vm_file *f = self;
    void *data = (void *)(uintptr_t)f->bytes.data;
    if (f->mapped)
        (void)munmap(data, f->bytes.size);
    else
        free(data);
    free(f->name);
    free(f->path);
}

static int32_t file_new(const char *name, vm_file **out, lathe_error *error)
{
    vm_file *f = vm_object_new(sizeof *f, LATHE_OBJECT, destroy_file);
    if (f)
        f->name = vm_text_copy((vm_bytes){(const uint8_t *)name, strlen(name)});
    if (f && f->name) {
        *out = f;
        return LATHE_OK;
    }
    if (f)
        vm_object_release(&f->head);
    return vm_no_memory(error, strlen(name));
}

/* The path as dlopen takes it for a file: with a slash. */
static char *path_of(const char *name)
{
    size_t n = strlen(name);
    char *path = malloc(n + 3);
    if (path) {
        memcpy(path, "./", 2);
        memcpy(path + (strchr(name, '/') ? 0 : 2), name, n + 1);
    }
    return path;
}

/* A lack of files is a lack of memory: another run may have them. */
static int32_t system_error(lathe_error *error)
{
    const bool lack = errno == ENOMEM || errno == EMFILE || errno == ENFILE;
    return vm_fail(error, lack ? LATHE_E_MEMORY : LATHE_E_FILE, "%s", strerror(errno));
}

static int32_t map(vm_file *f, int fd, lathe_error *error)
{
    struct stat s;
    if (fstat(fd, &s) != 0)
        return system_error(error);
    if (!S_ISREG(s.st_mode) || s.st_size <= 0)
        return vm_fail(error, LATHE_E_FORMAT, S_ISREG(s.st_mode) ? "an empty file" : "not a file");
    void *p = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        return system_error(error);
    f->bytes = (vm_bytes){p, (size_t)s.st_size};
    f->mapped = true;
    return LATHE_OK;
}

static int32_t read_file(const char *path, vm_file *f, lathe_error *error)
{
    f->path = path_of(path);
    if (!f->path)
        return vm_no_memory(error, strlen(path));
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return system_error(error);
    int32_t status = map(f, fd, error);
    (void)close(fd);
    return status;
}

/* --- modules --- */

typedef int32_t (*make_module)(lathe_runtime *rt, vm_file *file, vm_bytes content, vm_module **out, lathe_error *error);

static make_module maker(vm_bytes kind)
{
    static const struct {
        const char *kind;
        make_module make;
    } rows[] = {{MODULE_KIND_LIBRARY, vm_library_module},
                {MODULE_KIND_EXECUTABLE, vm_executable_module},
                {MODULE_KIND_SOURCE, vm_source_module},
                {MODULE_KIND_CONSTANTS, vm_constants_module}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (vm_text_is(kind, rows[i].kind))
            return rows[i].make;
    return NULL;
}

/* Module i, whose imports are made. */
static int32_t make_one(lathe_runtime *rt, vm_file *file, const vm_container *c, size_t i, vm_module **made,
                        lathe_error *error)
{
    const vm_entry *e = &c->entries[i];
    make_module make = maker(e->kind);
    if (!make)
        return vm_fail(error, LATHE_E_UNSUPPORTED, "it imports a module of kind %.*s, which is not known",
                       vm_text_shown(e->kind), (const char *)e->kind.data);
    int32_t status = make(rt, file, e->content, &made[i], error);
    if (status != LATHE_OK)
        return status;
    made[i]->number = (uint32_t)i;
    if (e->children == 0)
        return LATHE_OK;
    made[i]->imports = calloc(e->children, sizeof *made[i]->imports);
    if (!made[i]->imports)
        return vm_no_memory(error, e->children * sizeof *made[i]->imports);
    for (size_t k = 0; k < e->children; k++) {
        made[i]->imports[k] = made[c->children[e->first_child + k]];
        vm_object_retain(&made[i]->imports[k]->head);
        made[i]->count++;
    }
    return LATHE_OK;
}

/* Every module comes behind those that import it, so they are made from the last one on. */
static int32_t make_all(lathe_runtime *rt, vm_file *file, const vm_container *c, lathe_value *out, lathe_error *error)
{
    vm_module **made = calloc(c->count, sizeof *made);
    int32_t status = LATHE_OK;
    if (!made)
        return vm_no_memory(error, c->count * sizeof *made);
    for (size_t i = c->count; i-- > 0 && status == LATHE_OK;)
        status = make_one(rt, file, c, i, made, error);
    if (status == LATHE_OK) {
        vm_object_retain(&made[0]->head);
        *out = vm_value_of(made[0]);
    }
    for (size_t i = 0; i < c->count; i++)
        if (made[i])
            vm_object_release(&made[i]->head);
    free(made);
    return status;
}

/* A shared object without a tree of modules: with functions it is a module of machine code alone. */
static int32_t load_library(lathe_runtime *rt, vm_file *file, lathe_value *out, lathe_error *error)
{
    vm_module *m = NULL;
    if (!file->path || !vm_elf_has_function(file->bytes, MODULE_FUNCTION_PREFIX))
        return vm_fail(error, LATHE_E_FORMAT, "a shared object that is not a module: it has no symbol " MODULE_SYMBOL);
    int32_t status = vm_library_module(rt, file, (vm_bytes){0}, &m, error);
    if (status == LATHE_OK)
        *out = vm_value_of(m);
    return status;
}

static int32_t load_tree(lathe_runtime *rt, vm_file *file, vm_bytes content, lathe_value *out, lathe_error *error)
{
    vm_container c;
    int32_t status = vm_container_read(content, &c, error);
    if (status != LATHE_OK)
        return status;
    status = make_all(rt, file, &c, out, error);
    vm_container_free(&c);
    return status;
}

/* What elf.c calls damaged goes no further: only a file that it has read, and that has no tree, may be a library. */
static int32_t load(lathe_runtime *rt, vm_file *file, lathe_value *out, lathe_error *error)
{
    vm_bytes content;
    int32_t status = vm_elf_symbol(file->bytes, MODULE_SYMBOL, &content, error);
    if (status == LATHE_OK)
        return load_tree(rt, file, content, out, error);
    return status == LATHE_E_NAME ? load_library(rt, file, out, error) : status;
}

int32_t lathe_LoadFromFile(lathe_runtime *rt, const char *path, lathe_value *out, lathe_error *error)
{
    vm_file *file = NULL;
    *out = (lathe_value){0};
    int32_t status = file_new(path, &file, error);
    if (status != LATHE_OK)
        return status;
    status = read_file(path, file, error);
    if (status == LATHE_OK)
        status = load(rt, file, out, error);
    vm_object_release(&file->head);
    return status == LATHE_OK ? status : vm_at(error, status, "%s", path);
}

int32_t lathe_LoadFromBytes(lathe_runtime *rt, const char *name, const void *bytes, size_t size, lathe_value *out,
                            lathe_error *error)
{
    vm_file *file = NULL;
    *out = (lathe_value){0};
    int32_t status = file_new(name, &file, error);
    if (status != LATHE_OK)
        return status;
    uint8_t *copy = malloc(size ? size : 1);
    if (copy && size > 0)
        memcpy(copy, bytes, size);
    file->bytes = (vm_bytes){copy, copy ? size : 0};
    status = copy ? load(rt, file, out, error) : vm_no_memory(error, size);
    vm_object_release(&file->head);
    return status == LATHE_OK ? status : vm_at(error, status, "%s", name);
}
