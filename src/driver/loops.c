/* SPDX-License-Identifier: Apache-2.0 */
/* Runs kernels of a module from the text of their loops, if there is no C compiler. The text is read once for each
 * module. Each call has a context of its own, so threads do not wait for each other. */
#include "lathe/loops.h"

#include "base/compiler.h"
#include "lathe_vm.h"
#include "tir/interpret.h"
#include "tir/text.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The loops of a module. */
typedef struct module_loops {
    compiler c;
    const char *text; /* a copy: the module may go, and another one come to where it was */
    size_t size;
    const tir_module *m;
    struct module_loops *next;
} module_loops;

struct lathe_loops {
    pthread_mutex_t lock; /* of the list */
    arena mem;            /* its rows */
    module_loops *first;
};

static int32_t fail(lathe_error *error, int32_t code, const char *format, ...) __attribute__((format(printf, 3, 4)));
static int32_t fail(lathe_error *error, int32_t code, const char *format, ...)
{
    va_list args;
    if (!error)
        return code;
    va_start(args, format);
    error->code = code;
    (void)vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    return code;
}

static int32_t no_memory(lathe_error *error, size_t bytes)
{
    return fail(error, LATHE_E_MEMORY, "no memory for %zu bytes", bytes);
}

/* The first error of a context. */
static int32_t explain(compiler *c, const char *kernel, int32_t code, lathe_error *error)
{
    const diag *d = c->diags.first;
    while (d && d->level != DIAG_ERROR)
        d = d->next;
    if (!d)
        return fail(error, code, "kernel %s cannot be interpreted", kernel);
    code = d->code == DIAG_ENVIRONMENT ? LATHE_E_MEMORY : d->code == DIAG_VERIFY ? LATHE_E_FORMAT : code;
    return fail(error, code, "kernel %s: %s: %s", kernel, src_loc_print(d->loc, &c->mem), d->text);
}

int32_t lathe_loops_create(void (*out_of_memory)(void *context, size_t size), void *context, lathe_loops **out,
                           lathe_error *error)
{
    *out = malloc(sizeof **out);
    if (!*out)
        return no_memory(error, sizeof **out);
    const arena parent = {.out_of_memory = out_of_memory, .context = context};
    (*out)->first = NULL;
    arena_init(&(*out)->mem, &parent);
    pthread_mutex_init(&(*out)->lock, NULL);
    return LATHE_OK;
}

void lathe_loops_destroy(lathe_loops *loops)
{
    if (!loops)
        return;
    for (module_loops *m = loops->first; m; m = m->next)
        compiler_free(&m->c);
    arena_free(&loops->mem);
    pthread_mutex_destroy(&loops->lock);
    free(loops);
}

/* --- reading --- */

static int32_t read_loops(lathe_loops *l, const char *text, size_t size, const char *kernel, module_loops **out,
                          lathe_error *error)
{
    module_loops *m = arena_new(&l->mem, module_loops);
    tir_module *read = NULL;
    compiler_init_under(&m->c, &l->mem);
    char *copy = arena_try_alloc(&m->c.mem, size + 1, 1);
    int32_t status = copy ? LATHE_OK : no_memory(error, size + 1);
    if (copy) {
        memcpy(copy, text, size);
        m->text = copy;
        m->size = size;
        if (!tir_parse(&m->c, "the module's loops", copy, size, &read))
            status = explain(&m->c, kernel, LATHE_E_FORMAT, error);
    }
    if (status != LATHE_OK) {
        compiler_free(&m->c);
        return status;
    }
    m->m = read;
    m->next = l->first;
    *out = l->first = m;
    return LATHE_OK;
}

static int32_t find_loops(lathe_loops *l, const char *text, size_t size, const char *kernel, module_loops **out,
                          lathe_error *error)
{
    int32_t status = LATHE_OK;
    pthread_mutex_lock(&l->lock);
    module_loops *m = l->first;
    while (m && (m->size != size || memcmp(m->text, text, size) != 0))
        m = m->next;
    *out = m;
    if (!m)
        status = read_loops(l, text, size, kernel, out, error);
    pthread_mutex_unlock(&l->lock);
    return status;
}

static const tir_func *find_kernel(const tir_module *m, const char *kernel)
{
    for (uint32_t i = 0; i < m->funcs.len; i++)
        if (strcmp(m->funcs.data[i]->name, kernel) == 0)
            return m->funcs.data[i];
    return NULL;
}

/* --- running --- */

static bool overlaps(const void *a, size_t n, const void *b, size_t k)
{
    const uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return x < y + k && y < x + n;
}

static bool is_overwritten(const tir_func *f, void *const *data, const size_t *bytes, uint32_t i)
{
    for (uint32_t k = f->n_inputs; k < f->n_params; k++)
        if (overlaps(data[i], bytes[i], data[k], bytes[k]))
            return true;
    return false;
}

/* A plan lets results lie where operands were, which holds for the loops that it saw, and not for these: such operands
 * are copied. */
static int32_t separate(compiler *c, const tir_func *f, void *const *data, const size_t *bytes, void **out,
                        lathe_error *error)
{
    for (uint32_t i = 0; i < f->n_params; i++) {
        out[i] = data[i];
        if (i >= f->n_inputs || !is_overwritten(f, data, bytes, i))
            continue;
        out[i] = arena_try_alloc(&c->mem, bytes[i], 64);
        if (!out[i])
            return no_memory(error, bytes[i]);
        memcpy(out[i], data[i], bytes[i]);
    }
    return LATHE_OK;
}

int32_t lathe_loops_interpret(void *loops, const char *text, size_t size, const char *kernel, void *const *data,
                              const size_t *bytes, uint32_t n, int32_t *out_status, lathe_error *error)
{
    lathe_loops *l = loops;
    module_loops *m;
    compiler c;
    *out_status = 0;
    int32_t status = find_loops(l, text, size, kernel, &m, error);
    if (status != LATHE_OK)
        return status;
    const tir_func *f = find_kernel(m->m, kernel);
    if (!f)
        return fail(error, LATHE_E_NAME, "the module has no loops for the kernel %s", kernel);
    if (f->n_params > n)
        return fail(error, LATHE_E_ARGUMENT, "kernel %s: its loops take %u addresses, and its call has %u", kernel,
                    f->n_params, n);
    compiler_init_under(&c, &l->mem);
    void **params = arena_array(&c.mem, void *, f->n_params + 1u);
    status = separate(&c, f, data, bytes, params, error);
    if (status == LATHE_OK && !tir_interpret_within(&c, f, params, bytes, out_status))
        status = explain(&c, kernel, LATHE_E_KERNEL, error);
    compiler_free(&c);
    return status;
}
