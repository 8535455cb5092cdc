/* modules.h: modules as values: a name, a function that finds functions, imports; kinds of modules are tables.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_VM_MODULES_H
#define LATHE_VM_MODULES_H
#include "function.h"
#include "runtime.h"

typedef struct vm_module vm_module;

typedef struct vm_module_kind {
    const char *name; /* for messages */
    /* A function of the module itself: *out stays None where it has none of that name. */
    int32_t (*find)(vm_module *m, const char *name, lathe_value *out, lathe_error *error);
    void (*destroy)(vm_module *m); /* what the kind added; NULL: nothing */
} vm_module_kind;

/* The bytes of a file, which modules that read from it keep. */
typedef struct vm_file {
    lathe_object head;
    vm_bytes bytes;
    bool mapped;
    char *name; /* for messages */
    char *path; /* NULL: it came from memory */
} vm_file;

/* What the modules of one kind begin with. */
struct vm_module {
    lathe_object head;
    const vm_module_kind *kind;
    lathe_runtime *rt;
    vm_file *file; /* may be NULL */
    vm_module **imports; /* each behind this one in the file, so that there is no circle */
    size_t count;
    uint32_t number; /* in its file, from 0; below VM_CONTAINER_MODULES */
};

/* `size` bytes that begin with vm_module; retains the runtime and the file. */
void *vm_module_new(size_t size, const vm_module_kind *kind, lathe_runtime *rt, vm_file *file, lathe_error *error);
/* A function of a module or of its imports, those in front first; *out stays None where there is none. */
int32_t vm_module_find(vm_module *m, const char *name, lathe_value *out, lathe_error *error);
/* The same without the module itself. */
int32_t vm_module_find_imported(vm_module *m, const char *name, lathe_value *out, lathe_error *error);
/* The first module of that kind, `m` first of all; NULL. */
vm_module *vm_module_of_kind(vm_module *m, const vm_module_kind *kind);
/* The module in a value; NULL: it is none, and the error says so. */
vm_module *vm_module_of(const lathe_value *v, lathe_error *error);
#endif
