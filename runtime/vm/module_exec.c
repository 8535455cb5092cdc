/* module_exec.c: an executable as a module: machines are made from it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "error.h"
#include "executable.h"
#include "look.h"
#include "module_kinds.h"
#include "module_machine.h"

#include <string.h>

struct executable_module {
    vm_module module;
    vm_executable x;
};

static int32_t load_executable(vm_function *self, const lathe_value *args, int32_t n, lathe_value *result,
                               lathe_error *error)
{
    struct executable_module *m = (struct executable_module *)(void *)self->owner;
    (void)args;
    int32_t status = vm_want_count(n, 0, 0, error);
    return status == LATHE_OK ? vm_machine_new(&m->module, &m->x, result, error) : status;
}

static int32_t find_in_executable(vm_module *m, const char *name, lathe_value *out, lathe_error *error)
{
    if (strcmp(name, "vm_load_executable") != 0)
        return LATHE_OK;
    vm_function *f = vm_function_new(sizeof *f, load_executable, &m->head, NULL);
    if (!f)
        return vm_no_memory(error, sizeof *f);
    *out = vm_value_of(f);
    return LATHE_OK;
}

static void destroy_executable(vm_module *m)
{
    vm_executable_free(&((struct executable_module *)(void *)m)->x);
}

static const vm_module_kind kind = {"executable", find_in_executable, destroy_executable};

int32_t vm_executable_module(lathe_runtime *rt, vm_file *file, vm_bytes content, vm_module **out, lathe_error *error)
{
    struct executable_module *m = vm_module_new(sizeof *m, &kind, rt, file, error);
    if (!m)
        return LATHE_E_MEMORY;
    int32_t status = vm_executable_read(content, &m->x, error);
    if (status != LATHE_OK)
        vm_object_release(&m->module.head);
    else
        *out = &m->module;
    return status;
}

int32_t lathe_text(const lathe_value *module, const char *function, lathe_value *out, lathe_error *error)
{
    vm_bytes text;
    *out = (lathe_value){0};
    vm_module *m = vm_module_of(module, error);
    if (!m)
        return LATHE_E_ARGUMENT;
    const struct executable_module *x = (struct executable_module *)(void *)vm_module_of_kind(m, &kind);
    if (!x)
        return vm_fail(error, LATHE_E_NAME, "the %s has no executable", m->kind->name);
    int32_t status = vm_look(&x->x, function, &text, error);
    return status == LATHE_OK ? vm_string_new(text, out, error) : status;
}
