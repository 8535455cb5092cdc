/* module_constants.c: constants of other modules. A symbol of such a module has constants of its own; they are handed
 * to its function __init_SYMBOL when SYMBOL is looked up for the first time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "abi/module.h"
#include "error.h"
#include "module_kinds.h"
#include "stored.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct symbol {
    vm_bytes name;
    size_t first, count; /* in `wanted` */
    bool ready;
    lathe_value values; /* an array, which the initialised module may keep using */
};

struct name {
    vm_bytes text;
    size_t index;
};

struct constants_module {
    vm_module module;
    struct name *names; /* sorted when all are read */
    vm_reader *tensors; /* where each begins */
    size_t count;
    struct symbol *symbols;
    size_t symbol_count;
    size_t *wanted; /* constants of the symbols, one behind the other */
    size_t wanted_count;
    pthread_mutex_t lock; /* of `ready` and `values` */
};

/* --- handing over --- */

static int32_t make_values(struct constants_module *c, struct symbol *s, lathe_error *error)
{
    lathe_device_api api;
    vm_stored *t = malloc(sizeof *t);
    lathe_value *values = calloc(s->count + 1, sizeof *values);
    vm_allocator *a = NULL;
    int32_t status = vm_devices_get(&c->module.rt->devices, LATHE_CPU, &api, error);
    if (status == LATHE_OK && t && values)
        a = vm_allocator_new(&api, (lathe_device){LATHE_CPU, 0}, VM_ALLOCATE_NAIVE, &c->module.rt->head);
    if (status == LATHE_OK && !a)
        status = vm_no_memory(error, sizeof *t);
    for (size_t i = 0; i < s->count && status == LATHE_OK; i++) {
        vm_reader r = c->tensors[c->wanted[s->first + i]];
        status = vm_stored_read(&r, t, error);
        if (status == LATHE_OK)
            status = vm_tensor_from_bytes(&c->module.rt->devices, t->data, t->dims, t->rank, t->dtype, a, &values[i],
                                          error);
    }
    if (status == LATHE_OK)
        status = vm_array_new(values, s->count, &s->values, error);
    for (size_t i = 0; values && i < s->count; i++)
        lathe_release(&values[i]);
    vm_object_release((lathe_object *)(void *)a);
    free(values);
    free(t);
    return status;
}

static int32_t hand_over(struct constants_module *c, struct symbol *s, const char *name, lathe_error *error)
{
    char init[512];
    lathe_value function, result = {0};
    (void)snprintf(init, sizeof init, "__init_%s", name);
    int32_t status = vm_module_find_imported(&c->module, init, &function, error);
    if (status != LATHE_OK)
        return status;
    if (function.type == LATHE_NONE)
        return vm_fail(error, LATHE_E_NAME, "%s has constants, but its module no function %s", name, init);
    lathe_release(&s->values); /* of a try that failed */
    status = make_values(c, s, error);
    if (status == LATHE_OK)
        status = vm_call(&function, &s->values, 1, &result, error);
    lathe_release(&result);
    lathe_release(&function);
    s->ready = status == LATHE_OK;
    return status;
}

/* The function itself is found in the imports, once it has its constants. */
static int32_t find_in_constants(vm_module *m, const char *name, lathe_value *out, lathe_error *error)
{
    struct constants_module *c = (struct constants_module *)(void *)m;
    int32_t status = LATHE_OK;
    (void)out;
    for (size_t i = 0; i < c->symbol_count && status == LATHE_OK; i++) {
        if (!vm_text_is(c->symbols[i].name, name))
            continue;
        pthread_mutex_lock(&c->lock);
        if (!c->symbols[i].ready)
            status = hand_over(c, &c->symbols[i], name, error);
        pthread_mutex_unlock(&c->lock);
    }
    return status;
}

static void destroy_constants(vm_module *m)
{
    struct constants_module *c = (struct constants_module *)(void *)m;
    for (size_t i = 0; i < c->symbol_count; i++)
        lathe_release(&c->symbols[i].values);
    free(c->names);
    free(c->tensors);
    free(c->symbols);
    free(c->wanted);
    pthread_mutex_destroy(&c->lock);
}

/* --- reading --- */

static int32_t damaged(lathe_error *error)
{
    return vm_fail(error, LATHE_E_FORMAT, "the constants are damaged: their file ends in them");
}

static int compare_names(const void *a, const void *b)
{
    return vm_text_compare(((const struct name *)a)->text, ((const struct name *)b)->text);
}

static int32_t read_tensors(vm_reader *r, struct constants_module *c, lathe_error *error)
{
    uint64_t names = vm_read_count(r, 8);
    c->names = calloc((size_t)names + 1, sizeof *c->names);
    c->tensors = calloc((size_t)names + 1, sizeof *c->tensors);
    vm_stored *t = malloc(sizeof *t);
    int32_t status = c->names && c->tensors && t ? LATHE_OK : vm_no_memory(error, (size_t)names * sizeof *c->names);
    for (uint64_t i = 0; i < names && status == LATHE_OK; i++)
        c->names[i] = (struct name){vm_read_text(r), (size_t)i};
    uint64_t n = vm_read_count(r, 40);
    if (status == LATHE_OK && (!r->ok || n != names))
        status = r->ok ? vm_fail(error, LATHE_E_FORMAT, "there are not as many constants as names") : damaged(error);
    for (; c->count < n && status == LATHE_OK; c->count++) {
        c->tensors[c->count] = *r;
        status = vm_stored_read(r, t, error);
        if (status != LATHE_OK)
            (void)vm_at(error, status, "constant %zu", c->count);
    }
    if (status == LATHE_OK)
        qsort(c->names, c->count, sizeof *c->names, compare_names);
    free(t);
    return status;
}

/* A symbol's constant, by its name. */
static int32_t read_wanted(vm_reader *r, struct constants_module *c, lathe_error *error)
{
    vm_bytes text = vm_read_text(r);
    if (!r->ok)
        return damaged(error);
    const struct name wanted = {.text = text}, *found;
    found = bsearch(&wanted, c->names, c->count, sizeof *c->names, compare_names);
    if (!found)
        return vm_fail(error, LATHE_E_FORMAT, "there is no constant %.*s", vm_text_shown(text),
                       (const char *)text.data);
    c->wanted[c->wanted_count++] = found->index;
    return LATHE_OK;
}

static int32_t read_symbols(vm_reader *r, struct constants_module *c, lathe_error *error)
{
    uint64_t n = vm_read_count(r, 8);
    c->symbols = calloc((size_t)n + 1, sizeof *c->symbols);
    c->wanted = calloc(vm_reader_left(r) / 8 + 1, sizeof *c->wanted); /* each name has 8 bytes at least */
    if (!c->symbols || !c->wanted)
        return vm_no_memory(error, (size_t)n * sizeof *c->symbols);
    for (; c->symbol_count < n; c->symbol_count++)
        c->symbols[c->symbol_count].name = vm_read_text(r);
    if (vm_read_count(r, 8) != n || !r->ok)
        return r->ok ? vm_fail(error, LATHE_E_FORMAT, "there are not as many lists of constants as symbols")
                     : damaged(error);
    for (uint64_t i = 0; i < n; i++) {
        struct symbol *s = &c->symbols[i];
        uint64_t count = vm_read_count(r, 8);
        s->first = c->wanted_count;
        s->count = (size_t)count;
        for (uint64_t k = 0; k < count; k++) {
            int32_t status = read_wanted(r, c, error);
            if (status != LATHE_OK)
                return status;
        }
    }
    return r->ok && vm_reader_left(r) == 0 ? LATHE_OK : damaged(error);
}

int32_t vm_constants_module(lathe_runtime *rt, vm_file *file, vm_bytes content, vm_module **out, lathe_error *error)
{
    static const vm_module_kind kind = {"constants", find_in_constants, destroy_constants};
    vm_reader r = vm_reader_of(content);
    struct constants_module *c = vm_module_new(sizeof *c, &kind, rt, file, error);
    if (!c)
        return LATHE_E_MEMORY;
    pthread_mutex_init(&c->lock, NULL);
    int32_t status = read_tensors(&r, c, error);
    if (status == LATHE_OK)
        status = read_symbols(&r, c, error);
    if (status != LATHE_OK)
        vm_object_release(&c->module.head);
    else
        *out = &c->module;
    return status;
}
