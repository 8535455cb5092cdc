/* initialise.c: gives a machine its devices, and finds who answers each call: an import of the executable, else one of
 * the machine's own functions.
 * SPDX-License-Identifier: Apache-2.0 */
#include "initialise.h"

#include "builtin.h"
#include "error.h"
#include "look.h"
#include "module_kinds.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int32_t add_target(vm_machine *m, const lathe_value *args, int32_t at, lathe_error *error)
{
    int64_t v[3];
    lathe_device_api api;
    for (int32_t i = 0; i < 3; i++) {
        int32_t status = vm_want_int(args, at + i, &v[i], error);
        if (status != LATHE_OK)
            return status;
        if (v[i] < 0 || v[i] > INT32_MAX)
            return vm_fail(error, LATHE_E_ARGUMENT, "argument %d is %" PRId64, at + i, v[i]);
    }
    if (v[2] != VM_ALLOCATE_NAIVE && v[2] != VM_ALLOCATE_POOLED)
        return vm_fail(error, LATHE_E_ARGUMENT, "allocator %" PRId64 "; 1 is naive, 2 pooled", v[2]);
    const lathe_device device = {(int32_t)v[0], (int32_t)v[1]};
    if (vm_device_is_host(device.type) && device.id != 0)
        return vm_fail(error, LATHE_E_ARGUMENT, "there is no device %s: it has the number 0 alone",
                       vm_device_name(device).text);
    int32_t status = vm_devices_get(&m->module.rt->devices, device.type, &api, error);
    if (status != LATHE_OK)
        return status;
    vm_target *t = &m->targets[m->target_count];
    t->device = device;
    t->allocator = vm_allocator_new(&api, t->device, (enum vm_allocator_kind)v[2], &m->module.rt->head);
    if (!t->allocator)
        return vm_no_memory(error, sizeof *t);
    m->target_count++;
    return LATHE_OK;
}

static int32_t add_targets(vm_machine *m, const lathe_value *args, int32_t n, lathe_error *error)
{
    int64_t last;
    if (n < 3 || n % 3 != 0)
        return vm_fail(error, LATHE_E_ARGUMENT, "devices are given as triples of device type, device id, allocator; "
                       "%d arguments are given", n);
    if (!vm_value_to_int(&args[n - 3], &last) || last != LATHE_CPU)
        return vm_fail(error, LATHE_E_ARGUMENT, "the last device is not the CPU (%d)", LATHE_CPU);
    m->targets = calloc((size_t)n / 3, sizeof *m->targets);
    if (!m->targets)
        return vm_no_memory(error, (size_t)n / 3 * sizeof *m->targets);
    int32_t status = LATHE_OK;
    for (int32_t i = 0; i < n && status == LATHE_OK; i += 3)
        status = add_target(m, args, i, error);
    return status;
}

/* "my_device:0, cpu:0"; of devices that are given, or of those that a module wants between two others. */
static void add_name(char *text, size_t size, const char *name)
{
    const size_t at = strlen(text);
    (void)snprintf(text + at, size - at, "%s%s", at ? ", " : "", name);
}

/* Values of the module lie in memory of the devices that its kernels name: number 1, 2, ... in its code. */
static int32_t check_targets(const vm_machine *m, lathe_error *error)
{
    vm_module *source = vm_module_of_kind(m->source, &vm_source_kind);
    int32_t wanted[VM_DEVICES_MAX];
    char given[400] = "", takes[400] = "the first one";
    const uint32_t n = source ? vm_source_devices(source, wanted) : 0;
    bool good = m->target_count >= n + 2 || n == 0;
    for (uint32_t i = 0; i < n && good; i++)
        good = m->targets[i + 1].device.type == wanted[i];
    if (good)
        return LATHE_OK;
    for (uint32_t i = 0; i < n; i++)
        add_name(takes, sizeof takes, vm_device_name((lathe_device){wanted[i], 0}).text);
    for (uint32_t i = 0; i < m->target_count; i++)
        add_name(given, sizeof given, vm_device_name(m->targets[i].device).text);
    return vm_fail(error, LATHE_E_ARGUMENT,
                   "kernels of the module work in the memory of devices: the machine is initialized for (%s, cpu:0), "
                   "and (%s) is given", takes, given);
}

static int32_t find_callee(vm_machine *m, const vm_func *f, vm_callee *out, lathe_error *error)
{
    switch (f->kind) {
    case MODULE_FUNC_VM: out->func = f; return LATHE_OK;
    case MODULE_FUNC_PACKED: break;
    case MODULE_FUNC_VMTIR:
        return vm_fail(error, LATHE_E_UNSUPPORTED, "function %s was compiled without bytecode "
                       "(exec_mode=\"compiled\"); only bytecode is supported", f->name);
    }
    int32_t status = vm_module_find_imported(m->source, f->name, &out->function, error);
    if (status == LATHE_OK && out->function.type == LATHE_NONE)
        out->builtin = vm_builtin_find(f->name);
    return status;
}

static bool is_found(const vm_callee *c)
{
    return c->func || c->builtin || c->function.type != LATHE_NONE;
}

/* One message for all that are missing. */
static int32_t missing(const vm_machine *m, lathe_error *error)
{
    char names[600] = "";
    size_t at = 0, count = 0;
    for (uint32_t i = 0; i < m->x->function_count; i++)
        if (!is_found(&m->callees[i])) {
            if (at + 100 < sizeof names)
                at += (size_t)snprintf(names + at, sizeof names - at, "%s%.80s", count ? ", " : "",
                                       m->x->functions[i].name);
            count++;
        }
    if (count == 0)
        return LATHE_OK;
    return vm_fail(error, LATHE_E_NAME, "%zu function%s that the module calls %s neither in it nor in the machine: %s",
                   count, count == 1 ? "" : "s", count == 1 ? "is" : "are", names);
}

static int32_t find_callees(vm_machine *m, lathe_error *error)
{
    const vm_executable *x = m->x;
    m->callees = calloc((size_t)x->function_count + 1, sizeof *m->callees);
    m->states = calloc((size_t)x->function_count + 1, sizeof *m->states);
    m->constants = calloc((size_t)x->constant_count + 1, sizeof *m->constants);
    if (!m->callees || !m->states || !m->constants)
        return vm_no_memory(error, ((size_t)x->function_count + x->constant_count) * sizeof *m->callees);
    for (uint32_t i = 0; i < x->function_count; i++) {
        int32_t status = find_callee(m, &x->functions[i], &m->callees[i], error);
        if (status != LATHE_OK)
            return status;
    }
    return missing(m, error);
}

void vm_initialise_undo(vm_machine *m)
{
    for (uint32_t i = 0; m->callees && i < m->x->function_count; i++)
        lathe_release(&m->callees[i].function);
    for (uint32_t i = 0; m->states && i < m->x->function_count; i++) {
        lathe_release(&m->states[i].inputs);
        lathe_release(&m->states[i].output);
    }
    for (uint32_t i = 0; m->constants && i < m->x->constant_count; i++)
        lathe_release(&m->constants[i]);
    for (uint32_t i = 0; i < m->kept_count; i++)
        lathe_release(&m->kept[i].storage);
    free(m->kept);
    m->kept = NULL;
    m->kept_count = 0;
    for (uint32_t i = 0; i < m->target_count; i++) {
        vm_allocator_close(m->targets[i].allocator);
        vm_object_release((lathe_object *)(void *)m->targets[i].allocator);
    }
    free(m->callees);
    free(m->states);
    free(m->constants);
    free(m->targets);
    m->callees = NULL, m->states = NULL, m->constants = NULL, m->targets = NULL;
    m->target_count = 0;
}

static int32_t read_loops(const vm_machine *m, vm_module *source, lathe_error *error)
{
    vm_bytes bytes;
    lathe_value text = {0};
    if (!vm_executable_find(m->x, MODULE_LOOPS))
        return LATHE_OK;
    int32_t status = vm_look(m->x, MODULE_LOOPS, &bytes, error);
    if (status == LATHE_OK)
        status = vm_string_new(bytes, &text, error);
    if (status == LATHE_OK)
        vm_source_set_loops(source, &text);
    lathe_release(&text);
    return status;
}

static int32_t give_loops(vm_machine *m, lathe_error *error)
{
    const lathe_options *o = &m->module.rt->options;
    vm_module *source = o->interpret ? vm_module_of_kind(m->source, &vm_source_kind) : NULL;
    if (!source)
        return LATHE_OK;
    int32_t status = vm_source_has_loops(source) ? LATHE_OK : read_loops(m, source, error);
    if (status != LATHE_OK || !o->no_jit || vm_source_has_loops(source))
        return status;
    return vm_fail(error, LATHE_E_REFUSED, VM_FORBIDDEN);
}

int32_t vm_initialise(vm_machine *m, const lathe_value *args, int32_t n, lathe_error *error)
{
    if (m->targets)
        return vm_fail(error, LATHE_E_ARGUMENT, "the machine is initialized already");
    int32_t status = add_targets(m, args, n, error);
    if (status == LATHE_OK)
        status = check_targets(m, error);
    if (status == LATHE_OK)
        status = find_callees(m, error);
    if (status == LATHE_OK)
        status = give_loops(m, error);
    if (status != LATHE_OK)
        vm_initialise_undo(m);
    return status;
}
