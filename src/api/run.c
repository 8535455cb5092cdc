/* SPDX-License-Identifier: Apache-2.0 */
/* A run of an executable: the caller's tensors come in, where they can be used as they are without a copy; each result
 * gets memory of its own, which the caller frees. */
#include "api/objects.h"

#include <stdlib.h>
#include <string.h>

typedef struct run_args {
    lathe_executable *executable;
    const lathe_dltensor *const *inputs;
    lathe_managed_tensor **outputs;
    uint32_t n_inputs, n_outputs;
} run_args;

enum { ALIGNMENT = 64, CPU = 1, CPU_PINNED = 3, CODE_UINT = 1 };

/* --- results --- */

/* A tensor with its shape and its bytes in one piece of memory. */
typedef struct result {
    lathe_managed_tensor tensor;
    int64_t shape[TYPE_MAX_RANK], strides[TYPE_MAX_RANK];
    void *memory;
} result;

static void free_result(lathe_managed_tensor *t)
{
    result *r = t->manager_ctx;
    free(r->memory);
    free(r);
}

static lathe_managed_tensor *new_result(compiler *c, const char *name, size_t bytes)
{
    const size_t room = (bytes / ALIGNMENT + 1) * ALIGNMENT;
    result *r = bytes < SIZE_MAX - ALIGNMENT ? calloc(1, sizeof *r) : NULL;
    void *memory = r ? aligned_alloc(ALIGNMENT, room) : NULL;
    if (!memory) {
        free(r);
        (void)diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "no memory for the %zu bytes of '%s'", bytes,
                         name);
        return NULL;
    }
    r->memory = memory;
    r->tensor = (lathe_managed_tensor){
        .version = {1, 1},
        .manager_ctx = r,
        .deleter = free_result,
        .dl_tensor = {.data = memory, .device = {CPU, 0}, .shape = r->shape, .strides = r->strides}};
    return &r->tensor;
}

static void set_shape(lathe_managed_tensor *t, const run_tensor *from)
{
    result *r = t->manager_ctx;
    int64_t stride = 1;
    t->dl_tensor.ndim = (int32_t)from->rank;
    t->dl_tensor.dtype = run_module_to_dlpack(from->dt);
    for (uint32_t i = from->rank; i-- > 0;) {
        r->shape[i] = from->dims[i];
        r->strides[i] = stride;
        stride *= from->dims[i];
    }
}

/* --- inputs --- */

static bool same_type(lathe_dtype got, dtype want)
{
    const lathe_dtype w = run_module_to_dlpack(want);
    const bool byte_as_bool = want == DT_BOOL && got.code == CODE_UINT && got.bits == 8;
    return got.lanes == 1 && ((got.code == w.code && got.bits == w.bits) || byte_as_bool);
}

static const char *type_text(compiler *c, lathe_dtype d)
{
    dtype dt;
    return run_module_from_dlpack(d, &dt) ? dtype_full_name(dt)
                                          : arena_printf(&c->mem, "DLPack type %u of %u bits", d.code, d.bits);
}

static bool is_empty(const lathe_dltensor *t)
{
    bool empty = false;
    for (int32_t k = 0; k < t->ndim; k++)
        empty |= t->shape[k] == 0;
    return empty;
}

static bool refuse_shape(compiler *c, const run_tensor *want, const lathe_dltensor *t)
{
    const bool known = t->ndim >= 0 && t->shape;
    const char *dims = tensor_file_dims(&c->mem, want->rank, want->most);
    diag_error(&c->diags, DIAG_DATA, src_loc_none(), "input '%s' has the shape %s, and has to have %s", want->name,
               known ? tensor_file_dims(&c->mem, (uint32_t)t->ndim, t->shape) : "?", dims);
    if (known && tensor_file_hint_at_order(c, (uint32_t)t->ndim, t->shape, want->rank, want->most))
        return false;
    if (known && (uint32_t)t->ndim == want->rank && want->rank > 0 && t->shape[0] > want->most[0] &&
             memcmp(t->shape + 1, want->most + 1, (want->rank - 1) * sizeof *want->most) == 0)
        diag_hint(&c->diags, "it holds several samples; for one call, in NumPy: x[0:%lld]", (long long)want->most[0]);
    return false;
}

static bool check_input(compiler *c, run_model *m, uint32_t i, const lathe_dltensor *t)
{
    const run_tensor *want = &m->inputs[i];
    dtype have;
    if (!t)
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "input '%s' is not given", want->name);
    if (want->is_shape)
        return diag_error(&c->diags, DIAG_UNSUPPORTED, src_loc_none(),
                          "input '%s' is a shape; call this module by the functions of lathe_vm.h", want->name);
    if (t->device.type != CPU && t->device.type != CPU_PINNED)
        return diag_error(&c->diags, DIAG_DATA, src_loc_none(),
                          "input '%s' is in the memory of device %d, not the CPU's", want->name, (int)t->device.type);
    if (!same_type(t->dtype, want->dt)) {
        diag_error(&c->diags, DIAG_DATA, src_loc_none(), "input '%s' is %s, and has to be %s", want->name,
                   type_text(c, t->dtype), dtype_full_name(want->dt));
        if (run_module_from_dlpack(t->dtype, &have))
            tensor_file_hint_at_type(c, have, want->dt);
        return false;
    }
    bool fits = t->ndim >= 0 && (uint32_t)t->ndim == want->rank && (t->shape || want->rank == 0);
    for (uint32_t k = 0; fits && k < want->rank; k++)
        fits = t->shape[k] >= 0 && (want->open || t->shape[k] == want->most[k]);
    if (!fits)
        return refuse_shape(c, want, t);
    if (!t->data && !is_empty(t))
        return diag_error(&c->diags, DIAG_DATA, src_loc_none(), "input '%s' has no data", want->name);
    return !want->open || run_bind(c, m, want, want->rank, t->shape);
}

/* Whether an expression of extents, such as 2*n, is what the caller's tensor has. */
static bool check_extents(compiler *c, const run_model *m, uint32_t i, const lathe_dltensor *t)
{
    const run_tensor *want = &m->inputs[i];
    if (want->rank == 0 || memcmp(want->dims, t->shape, want->rank * sizeof *want->dims) == 0)
        return true;
    return diag_error(&c->diags, DIAG_DATA, src_loc_none(), "input '%s' has the shape %s, and has to have %s here",
                      want->name,
                      tensor_file_dims(&c->mem, want->rank, t->shape),
                      tensor_file_dims(&c->mem, want->rank, want->dims));
}

static bool is_dense(const lathe_dltensor *t)
{
    int64_t stride = 1;
    for (int32_t k = t->ndim; t->strides && k-- > 0;) {
        if (t->shape[k] != 1 && t->strides[k] != stride)
            return false;
        stride *= t->shape[k];
    }
    return true;
}

/* Elements from any strides to memory without gaps; the last axis is the inner loop. */
static void gather(const lathe_dltensor *t, const uint8_t *from, size_t size, uint8_t *to)
{
    int64_t at[TYPE_MAX_RANK] = {0};
    const int32_t last = t->ndim - 1;
    for (int32_t k = 0; k < t->ndim; k++)
        if (t->shape[k] == 0)
            return;
    for (;;) {
        int64_t offset = 0;
        for (int32_t k = 0; k < last; k++)
            offset += at[k] * t->strides[k];
        for (int64_t i = 0; i < t->shape[last]; i++, to += size)
            memcpy(to, from + (offset + i * t->strides[last]) * (int64_t)size, size);
        int32_t k = last;
        while (--k >= 0 && ++at[k] == t->shape[k])
            at[k] = 0;
        if (k < 0)
            return;
    }
}

/* The model reads the caller's memory where that is aligned and has no gaps; a package reads it only. */
static void take_input(run_model *m, uint32_t i, const lathe_dltensor *t, uint8_t *own)
{
    run_tensor *to = &m->inputs[i];
    uint8_t *from = (uint8_t *)t->data + t->byte_offset;
    const bool dense = is_dense(t);
    to->data = dense && (uintptr_t)from % ALIGNMENT == 0 && to->bytes > 0 ? from : own;
    if (to->data == own && dense && to->bytes > 0)
        memcpy(own, from, to->bytes);
    else if (to->data == own && !dense)
        gather(t, from, dtype_bytes(to->dt), own);
    if (m->in)
        m->in[i] = to->data;
}

/* --- the call --- */

static bool call_package(compiler *c, run_model *m, const run_args *a)
{
    for (uint32_t i = 0; i < m->n_outputs; i++) {
        a->outputs[i] = new_result(c, m->outputs[i].name, m->outputs[i].most_bytes);
        if (!a->outputs[i])
            return false;
        m->out[i] = a->outputs[i]->dl_tensor.data;
    }
    return run_call(c, m);
}

/* The bytes are the machine's, until the next call. */
static bool call_module(compiler *c, run_model *m, const run_args *a)
{
    if (!run_call(c, m))
        return false;
    if (m->n_outputs != a->n_outputs)
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(),
                          "the module gives %u outputs, and there is room for %u", m->n_outputs, a->n_outputs);
    for (uint32_t i = 0; i < m->n_outputs; i++) {
        const run_tensor *t = &m->outputs[i];
        a->outputs[i] = new_result(c, t->name, t->bytes);
        if (!a->outputs[i])
            return false;
        if (t->bytes > 0)
            memcpy(a->outputs[i]->dl_tensor.data, t->data, t->bytes);
    }
    return true;
}

static bool check_counts(compiler *c, const run_model *m, const run_args *a)
{
    if (a->n_inputs != m->n_inputs)
        return diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "the model takes %u inputs, and %u are given",
                          m->n_inputs, a->n_inputs);
    return (m->module && !m->outputs) || a->n_outputs == m->n_outputs ||
           diag_error(&c->diags, DIAG_USAGE, src_loc_none(), "the model gives %u outputs, and there is room for %u",
                      m->n_outputs, a->n_outputs);
}

bool executable_inputs(compiler *c, run_model *m, const lathe_dltensor *const *inputs, uint8_t **own)
{
    for (uint32_t i = 0; i < m->n_extents; i++)
        m->extents[i].value = -1;
    for (uint32_t i = 0; i < m->n_inputs; i++)
        if (!check_input(c, m, i, inputs[i]))
            return false;
    if (!run_size_inputs(c, m)) /* which gives an input of a module that has no bound the room that it needs */
        return false;
    for (uint32_t i = 0; i < m->n_inputs; i++)
        own[i] = m->inputs[i].data;
    for (uint32_t i = 0; i < m->n_inputs; i++)
        if (!check_extents(c, m, i, inputs[i]))
            return false;
    for (uint32_t i = 0; i < m->n_inputs; i++)
        take_input(m, i, inputs[i], own[i]);
    return true;
}

static bool run_with(compiler *c, run_model *m, const run_args *a)
{
    if (!executable_inputs(c, m, a->inputs, a->executable->own) ||
        !(m->module ? call_module(c, m, a) : call_package(c, m, a)))
        return false;
    for (uint32_t i = 0; i < m->n_outputs; i++)
        set_shape(a->outputs[i], &m->outputs[i]);
    return true;
}

static bool run(lathe_context *x, home *h, void *args)
{
    const run_args *a = args;
    compiler *c = &h->c;
    run_model *m = &a->executable->model;
    (void)x;
    if (!executable_build(a->executable, c) || !check_counts(c, m, a))
        return false;
    for (uint32_t i = 0; i < m->n_inputs; i++)
        m->inputs[i].data = a->executable->own[i];
    return run_with(c, m, a);
}

int32_t lathe_run(lathe_context *x, lathe_executable *executable, const lathe_dltensor *const *inputs,
                  uint32_t n_inputs, lathe_managed_tensor **outputs, uint32_t n_outputs)
{
    run_args a = {executable, inputs, outputs, n_inputs, n_outputs};
    if ((n_inputs > 0 && !inputs) || (n_outputs > 0 && !outputs))
        return border_refuse_missing(x, inputs || n_inputs == 0 ? "list of outputs" : "list of inputs");
    for (uint32_t i = 0; i < n_outputs; i++)
        outputs[i] = NULL;
    const int32_t outcome = executable_call(x, executable, run, &a);
    for (uint32_t i = 0; outcome != LATHE_DONE && i < n_outputs; i++)
        if (outputs[i]) {
            outputs[i]->deleter(outputs[i]);
            outputs[i] = NULL;
        }
    return outcome;
}

/* What is not built has not run yet. */
static bool reset(lathe_context *x, home *h, void *args)
{
    lathe_executable *e = args;
    (void)x;
    return !e->is_built || run_reset(&h->c, &e->model);
}

int32_t lathe_reset(lathe_context *x, lathe_executable *executable)
{
    return executable_call(x, executable, reset, executable);
}
