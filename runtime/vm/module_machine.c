/* module_machine.c: machines as modules: initialisation, the executable's functions, and calls whose arguments and
 * results stay in the machine.
 * SPDX-License-Identifier: Apache-2.0 */
#include "module_machine.h"

#include "boundary.h"
#include "error.h"
#include "initialise.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef int32_t (*machine_method)(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result,
                                  lathe_error *error);

static int32_t initialised(const vm_machine *m, lathe_error *error)
{
    if (m->targets)
        return LATHE_OK;
    return vm_fail(error, LATHE_E_ARGUMENT, "the machine is not initialized: call vm_initialization first");
}

static bool find_function(const vm_machine *m, const char *name, uint32_t *out)
{
    const vm_func *f = vm_executable_find(m->x, name);
    *out = f ? (uint32_t)(f - m->x->functions) : 0;
    return f && f->kind == MODULE_FUNC_VM;
}

/* The function that argument 0 names. */
static int32_t want_function(vm_machine *m, const lathe_value *args, int32_t n, int32_t most, uint32_t *out,
                             lathe_error *error)
{
    vm_bytes text;
    int32_t status = initialised(m, error);
    if (status == LATHE_OK)
        status = vm_want_count(n, 1, most, error);
    if (status == LATHE_OK)
        status = vm_want_text(args, 0, &text, error);
    for (*out = 0; status == LATHE_OK && *out < m->x->function_count; ++*out)
        if (m->x->functions[*out].kind == MODULE_FUNC_VM && vm_text_is(text, m->x->functions[*out].name))
            return LATHE_OK;
    return status != LATHE_OK ? status
                              : vm_fail(error, LATHE_E_NAME, "the module has no function %.*s", vm_text_shown(text),
                                        (const char *)text.data);
}

static int32_t initialise(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result, lathe_error *error)
{
    (void)result;
    return vm_initialise(m, args, n, error);
}

/* The arguments of function f, kept by the machine, as an array. */
static int32_t keep_inputs(vm_machine *m, uint32_t f, const lathe_value *args, int32_t n, lathe_value *out,
                           lathe_error *error)
{
    int32_t status = LATHE_OK;
    *out = (lathe_value){0};
    if (n != (int32_t)m->x->functions[f].params)
        return vm_fail(error, LATHE_E_ARGUMENT, "%s takes %u arguments, %d are given", m->x->functions[f].name,
                       m->x->functions[f].params, n);
    lathe_value *own = calloc((size_t)n + 1, sizeof *own);
    if (!own)
        return vm_no_memory(error, (size_t)n * sizeof *own);
    for (int32_t i = 0; i < n && status == LATHE_OK; i++)
        status = vm_boundary_keep(m, &args[i], &own[i], error);
    if (status == LATHE_OK)
        status = vm_array_new(own, (size_t)n, out, error);
    for (int32_t i = 0; i < n; i++)
        lathe_release(&own[i]);
    free(own);
    return status;
}

static int32_t set_input(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result, lathe_error *error)
{
    uint32_t f;
    lathe_value inputs = {0};
    (void)result;
    int32_t status = want_function(m, args, n, INT32_MAX, &f, error);
    if (status == LATHE_OK)
        status = keep_inputs(m, f, args + 1, n - 1, &inputs, error);
    if (status == LATHE_OK)
        vm_value_set(&m->states[f].inputs, inputs);
    return status;
}

/* Calls function f with the arguments of an array. */
static int32_t call_kept(vm_machine *m, uint32_t f, const lathe_value *kept, lathe_value *result, lathe_error *error)
{
    lathe_value function = {0}, inputs = lathe_retain(kept);
    const vm_array *a = inputs.type == LATHE_ARRAY ? (const vm_array *)(const void *)inputs.u.v_object : NULL;
    int32_t status = vm_machine_function(m, f, &function, error);
    if (status == LATHE_OK)
        status = vm_call(&function, a ? a->data : NULL, a ? (int32_t)a->size : 0, result, error);
    lathe_release(&inputs);
    lathe_release(&function);
    return status;
}

static int32_t invoke_stateful(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result,
                               lathe_error *error)
{
    uint32_t f;
    lathe_value output = {0};
    (void)result;
    int32_t status = want_function(m, args, n, 1, &f, error);
    if (status == LATHE_OK && m->states[f].inputs.type == LATHE_NONE && m->x->functions[f].params > 0)
        return vm_fail(error, LATHE_E_ARGUMENT, "%s has no inputs yet: call set_input first", m->x->functions[f].name);
    if (status == LATHE_OK)
        status = call_kept(m, f, &m->states[f].inputs, &output, error);
    if (status == LATHE_OK)
        vm_value_set(&m->states[f].output, output);
    return status;
}

/* The part of an output that indices behind the name choose; borrowed. */
static int32_t choose_output(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *out, lathe_error *error)
{
    uint32_t f;
    int32_t status = want_function(m, args, n, INT32_MAX, &f, error);
    if (status != LATHE_OK)
        return status;
    *out = m->states[f].output;
    for (int32_t i = 1; i < n && status == LATHE_OK; i++) {
        int64_t index;
        lathe_value whole = *out;
        status = vm_want_int(args, i, &index, error);
        if (status == LATHE_OK && index < 0)
            status = vm_fail(error, LATHE_E_ARGUMENT, "element %" PRId64 " of an output", index);
        if (status == LATHE_OK)
            status = lathe_array_get(&whole, (size_t)index, out, error);
    }
    return status;
}

static int32_t get_output(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result, lathe_error *error)
{
    lathe_value chosen;
    int32_t status = choose_output(m, args, n, &chosen, error);
    if (status == LATHE_OK)
        *result = lathe_retain(&chosen);
    return status;
}

/* -1: it is not a tuple. */
static int32_t get_output_arity(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result,
                                lathe_error *error)
{
    lathe_value chosen;
    int32_t status = choose_output(m, args, n, &chosen, error);
    if (status == LATHE_OK)
        *result = vm_value_int(chosen.type == LATHE_ARRAY ? (int64_t)lathe_array_size(&chosen) : -1);
    return status;
}

static int32_t get_function_arity(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result,
                                  lathe_error *error)
{
    uint32_t f;
    int32_t status = want_function(m, args, n, 1, &f, error);
    if (status == LATHE_OK)
        *result = vm_value_int(m->x->functions[f].params);
    return status;
}

static int32_t get_function_param_name(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result,
                                       lathe_error *error)
{
    uint32_t f;
    int64_t i;
    int32_t status = want_function(m, args, n, 2, &f, error);
    if (status == LATHE_OK)
        status = vm_want_count(n, 2, 2, error);
    if (status == LATHE_OK)
        status = vm_want_int(args, 1, &i, error);
    if (status != LATHE_OK)
        return status;
    const vm_func *func = &m->x->functions[f];
    if (i < 0 || i >= func->params)
        return vm_fail(error, LATHE_E_ARGUMENT, "parameter %" PRId64 " of %s, which has %u", i, func->name,
                       func->params);
    const char *name = func->param_names ? func->param_names[i] : "";
    return vm_string_new((vm_bytes){(const uint8_t *)name, strlen(name)}, result, error);
}

/* --- functions with their arguments, under a name of their own --- */

static vm_saved *find_saved(const vm_machine *m, vm_bytes name)
{
    vm_saved *at = m->saved;
    while (at && !vm_text_is(name, at->name))
        at = at->next;
    return at;
}

/* name, the new name, whether results are returned, arguments */
static int32_t save_function(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result,
                             lathe_error *error)
{
    uint32_t f;
    vm_bytes name;
    int64_t returns = 0;
    lathe_value inputs = {0};
    (void)result;
    int32_t status = want_function(m, args, n, INT32_MAX, &f, error);
    if (status == LATHE_OK)
        status = vm_want_count(n, 3, INT32_MAX, error);
    if (status == LATHE_OK)
        status = vm_want_text(args, 1, &name, error);
    if (status == LATHE_OK)
        status = vm_want_int(args, 2, &returns, error);
    if (status == LATHE_OK)
        status = keep_inputs(m, f, args + 3, n - 3, &inputs, error);
    vm_saved *s = status == LATHE_OK ? find_saved(m, name) : NULL;
    if (status == LATHE_OK && !s && (s = calloc(1, sizeof *s + name.size + 1)) != NULL) {
        memcpy(s->name, name.data, name.size);
        s->next = m->saved;
        m->saved = s;
    }
    if (!s) {
        lathe_release(&inputs);
        return status != LATHE_OK ? status : vm_no_memory(error, sizeof *s);
    }
    vm_value_set(&s->inputs, inputs);
    s->function = f;
    s->returns = returns != 0;
    return LATHE_OK;
}

struct saved_call {
    vm_function f;
    lathe_value inputs;
    uint32_t function;
    bool returns;
};

static void destroy_saved_call(void *self)
{
    struct saved_call *c = self;
    lathe_release(&c->inputs);
    vm_function_destroy(self);
}

static int32_t call_saved(vm_function *self, const lathe_value *args, int32_t n, lathe_value *result,
                          lathe_error *error)
{
    const struct saved_call *c = (struct saved_call *)(void *)self;
    lathe_value output = {0};
    (void)args;
    int32_t status = vm_want_count(n, 0, 0, error);
    if (status == LATHE_OK)
        status = call_kept((vm_machine *)(void *)self->owner, c->function, &c->inputs, &output, error);
    if (status == LATHE_OK && c->returns)
        *result = output;
    else
        lathe_release(&output);
    return status;
}

static int32_t give_saved(vm_machine *m, const vm_saved *s, lathe_value *out, lathe_error *error)
{
    struct saved_call *c = vm_function_new(sizeof *c, call_saved, &m->module.head, destroy_saved_call);
    if (!c)
        return vm_no_memory(error, sizeof *c);
    c->inputs = lathe_retain(&s->inputs);
    c->function = s->function;
    c->returns = s->returns;
    *out = vm_value_of(c);
    return LATHE_OK;
}

/* Clients of TVM's machine ask for these before they know whether they need them. */
static int32_t no_closures(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result, lathe_error *error)
{
    (void)m, (void)args, (void)n, (void)result;
    return vm_fail(error, LATHE_E_UNSUPPORTED, "this machine has no closures outside of a call: call the function");
}

static int32_t no_instrument(vm_machine *m, const lathe_value *args, int32_t n, lathe_value *result,
                             lathe_error *error)
{
    (void)m, (void)args, (void)n, (void)result;
    return vm_fail(error, LATHE_E_UNSUPPORTED, "this machine calls no instrument between its steps");
}

/* --- the module --- */

struct method {
    vm_function f;
    machine_method method;
};

static int32_t call_method(vm_function *self, const lathe_value *args, int32_t n, lathe_value *result,
                           lathe_error *error)
{
    const struct method *call = (struct method *)(void *)self;
    vm_machine *m = (vm_machine *)(void *)self->owner;
    pthread_mutex_lock(&m->lock);
    int32_t status = m->depth == 0
                         ? call->method(m, args, n, result, error)
                         : vm_fail(error, LATHE_E_ARGUMENT, "the machine is called from within one of its own calls");
    pthread_mutex_unlock(&m->lock);
    return status;
}

static int32_t find_in_machine(vm_module *module, const char *name, lathe_value *out, lathe_error *error)
{
    static const struct {
        const char *name;
        machine_method method;
    } rows[] = {{"vm_initialization", initialise},
                {"set_input", set_input},
                {"invoke_stateful", invoke_stateful},
                {"get_output", get_output},
                {"get_output_arity", get_output_arity},
                {"save_function", save_function},
                {"invoke_closure", no_closures},
                {"set_instrument", no_instrument},
                {"get_function_arity", get_function_arity},
                {"get_function_param_name", get_function_param_name}};
    vm_machine *m = (vm_machine *)(void *)module;
    uint32_t index;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].name, name) != 0)
            continue;
        struct method *f = vm_function_new(sizeof *f, call_method, &module->head, NULL);
        if (!f)
            return vm_no_memory(error, sizeof *f);
        f->method = rows[i].method;
        *out = vm_value_of(f);
        return LATHE_OK;
    }
    pthread_mutex_lock(&m->lock);
    const bool known = find_function(m, name, &index);
    const vm_saved *saved = known ? NULL : find_saved(m, (vm_bytes){(const uint8_t *)name, strlen(name)});
    int32_t status = known ? initialised(m, error) : LATHE_OK;
    if (saved)
        status = give_saved(m, saved, out, error);
    else if (status == LATHE_OK && known)
        status = vm_machine_function(m, index, out, error);
    pthread_mutex_unlock(&m->lock);
    return status;
}

static void destroy_machine(vm_module *module)
{
    vm_machine *m = (vm_machine *)(void *)module;
    while (m->saved) {
        vm_saved *s = m->saved;
        m->saved = s->next;
        lathe_release(&s->inputs);
        free(s);
    }
    vm_initialise_undo(m);
    for (uint32_t i = 0; i < m->frame_count; i++)
        free(m->frames[i].slots);
    free(m->frames);
    pthread_mutex_destroy(&m->lock);
    vm_object_release(&m->source->head);
}

static const vm_module_kind machine_kind = {"machine", find_in_machine, destroy_machine};

int32_t vm_machine_new(vm_module *source, const vm_executable *x, lathe_value *out, lathe_error *error)
{
    pthread_mutexattr_t attributes;
    vm_machine *m = vm_module_new(sizeof *m, &machine_kind, source->rt, source->file, error);
    if (!m)
        return LATHE_E_MEMORY;
    m->source = source;
    vm_object_retain(&source->head);
    m->x = x;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&m->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    *out = vm_value_of(m);
    return LATHE_OK;
}

vm_machine *vm_machine_of(const lathe_value *v, lathe_error *error)
{
    vm_module *m = vm_module_of(v, error);
    if (m && m->kind == &machine_kind)
        return (vm_machine *)(void *)m;
    if (m)
        (void)vm_fail(error, LATHE_E_ARGUMENT, "the module is not a machine: call its function vm_load_executable");
    return NULL;
}
