/* modules.c: modules as values, and the walk over their imports.
 * SPDX-License-Identifier: Apache-2.0 */
#include "modules.h"

#include "container.h"
#include "error.h"

#include <stdlib.h>

static void destroy_module(void *self)
{
    vm_module *m = self;
    if (m->kind->destroy)
        m->kind->destroy(m);
    for (size_t i = 0; i < m->count; i++)
        vm_object_release(&m->imports[i]->head);
    free(m->imports);
    if (m->file)
        vm_object_release(&m->file->head);
    vm_object_release(&m->rt->head);
}

void *vm_module_new(size_t size, const vm_module_kind *kind, lathe_runtime *rt, vm_file *file, lathe_error *error)
{
    vm_module *m = vm_object_new(size, LATHE_MODULE, destroy_module);
    if (!m) {
        (void)vm_no_memory(error, size);
        return NULL;
    }
    m->kind = kind;
    m->rt = rt;
    vm_object_retain(&rt->head);
    m->file = file;
    if (file)
        vm_object_retain(&file->head);
    return m;
}

/* A visitor of modules; false ends the walk. */
struct walk {
    bool (*visit)(struct walk *w, vm_module *m);
    const char *name;
    const vm_module_kind *kind;
    lathe_value *out;
    lathe_error *error;
    int32_t status;
    vm_module *found;
    bool seen[VM_CONTAINER_MODULES]; /* a module may be imported by several */
};

static bool go_on(struct walk *w, vm_module *m);

static bool walk_imports(struct walk *w, vm_module *m)
{
    for (size_t i = 0; i < m->count; i++)
        if (!w->seen[m->imports[i]->number] && !go_on(w, m->imports[i]))
            return false;
    return true;
}

static bool go_on(struct walk *w, vm_module *m)
{
    w->seen[m->number] = true;
    return w->visit(w, m) && walk_imports(w, m);
}

static bool visit_find(struct walk *w, vm_module *m)
{
    w->status = m->kind->find(m, w->name, w->out, w->error);
    return w->status == LATHE_OK && w->out->type == LATHE_NONE;
}

int32_t vm_module_find(vm_module *m, const char *name, lathe_value *out, lathe_error *error)
{
    struct walk w = {.visit = visit_find, .name = name, .out = out, .error = error};
    *out = (lathe_value){0};
    (void)go_on(&w, m);
    return w.status;
}

int32_t vm_module_find_imported(vm_module *m, const char *name, lathe_value *out, lathe_error *error)
{
    struct walk w = {.visit = visit_find, .name = name, .out = out, .error = error};
    *out = (lathe_value){0};
    (void)walk_imports(&w, m);
    return w.status;
}

static bool visit_kind(struct walk *w, vm_module *m)
{
    w->found = m->kind == w->kind ? m : NULL;
    return !w->found;
}

vm_module *vm_module_of_kind(vm_module *m, const vm_module_kind *kind)
{
    struct walk w = {.visit = visit_kind, .kind = kind};
    (void)go_on(&w, m);
    return w.found;
}

vm_module *vm_module_of(const lathe_value *v, lathe_error *error)
{
    if (v->type == LATHE_MODULE)
        return (vm_module *)(void *)v->u.v_object;
    (void)vm_fail(error, LATHE_E_ARGUMENT, "%s is given where a module is taken", vm_type_name(v->type));
    return NULL;
}

int32_t lathe_GetFunction(const lathe_value *module, const char *name, lathe_value *out, lathe_error *error)
{
    *out = (lathe_value){0};
    vm_module *m = vm_module_of(module, error);
    if (!m)
        return LATHE_E_ARGUMENT;
    int32_t status = vm_module_find(m, name, out, error);
    if (status == LATHE_OK && out->type == LATHE_NONE)
        return vm_fail(error, LATHE_E_NAME, "the %s and its imports have no function %s", m->kind->name, name);
    return status;
}

int32_t lathe_call(const lathe_value *function, const lathe_value *args, int32_t n, lathe_value *result,
                   lathe_error *error)
{
    *result = (lathe_value){0};
    if (n < 0 || (n > 0 && !args))
        return vm_fail(error, LATHE_E_ARGUMENT, "%d arguments without their values", n);
    return vm_call(function, args, n, result, error);
}

int32_t lathe_call_named(const lathe_value *module, const char *name, const lathe_value *args, int32_t n,
                         lathe_value *result, lathe_error *error)
{
    lathe_value function;
    *result = (lathe_value){0};
    int32_t status = lathe_GetFunction(module, name, &function, error);
    if (status == LATHE_OK)
        status = lathe_call(&function, args, n, result, error);
    lathe_release(&function);
    return status;
}
