/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter of programs: the plain loops of each kernel, one step after the other, every value in memory of its
 * own. It knows no plan, no schedule and no layers: what a back end makes is compared with this. */
#include "abi/package.h"
#include "prog/prog.h"
#include "tir/interpret.h"

#include <string.h>

typedef struct run {
    compiler *c;
    const prog_func *f;
    uint8_t **bytes; /* of each value */
    const prog_runner *runner; /* NULL: none */
    void *const *states;
    arena mem;
} run;

static bool no_memory(const run *r, const prog_value *v)
{
    return diag_error(&r->c->diags, DIAG_ENVIRONMENT, src_loc_none(), "no memory for the %llu bytes of %%%s",
                      (unsigned long long)prog_bytes(v), v->name);
}

static bool give_room(run *r, uint32_t i, void *const *in, void *const *out)
{
    const prog_value *v = &r->f->values.data[i];
    switch (v->space) {
    case SPACE_INPUT: r->bytes[i] = in[v->index]; return true;
    case SPACE_OUTPUT: r->bytes[i] = out[v->index]; return true;
    case SPACE_STATE: r->bytes[i] = r->states[v->index]; return true;
    case SPACE_CONSTANT: /* only read */
        r->bytes[i] = (uint8_t *)(uintptr_t)tensor_plain_bytes(&r->mem, v->data);
        return r->bytes[i] || no_memory(r, v);
    case SPACE_WORKSPACE:
    case SPACE_DEVICE:
        r->bytes[i] = arena_try_alloc(&r->mem, (size_t)prog_bytes(v) + 1, 64);
        return r->bytes[i] || no_memory(r, v);
    }
    return false;
}

static bool place(run *r, void *const *in, void *const *out)
{
    r->bytes = arena_array(&r->mem, uint8_t *, r->f->values.len + 1u);
    for (uint32_t i = 0; i < r->f->values.len; i++)
        if (r->f->values.data[i].base == PROG_NONE && !give_room(r, i, in, out))
            return false;
    for (uint32_t i = 0; i < r->f->values.len; i++) {
        uint64_t start;
        uint32_t root = prog_root(r->f, i, &start);
        r->bytes[i] = r->bytes[root] ? r->bytes[root] + start : NULL;
    }
    return true;
}

static const char *status_text(int32_t status)
{
    switch (status) {
#define X(name, value, text) \
    case value: return text;
        PACKAGE_STATUSES(X)
#undef X
    default: return "a status of its own";
    }
}

bool prog_failed(compiler *c, src_loc loc, const char *kernel, const char *source, int32_t status, const char *text,
                 const char *more)
{
    text = text ? text : status_text(status);
    if (!kernel)
        return diag_error(&c->diags, DIAG_DATA, loc, "the run ended with status %d: %s", (int)status, text);
    const char *nodes = !*source              ? ""
                        : strchr(source, ',') ? arena_printf(&c->mem, " (nodes %s)", source)
                                              : arena_printf(&c->mem, " (node %s)", source);
    return diag_error(&c->diags, DIAG_DATA, loc, "operator %s%s ended with status %d: %s%s", kernel, nodes, (int)status,
                      text, more);
}

/* "; found is 13, at most 12": the extents of the step that are past their bounds. */
static const char *past_bounds(const run *r, const prog_step *s, const tir_func *f)
{
    const char *all = "";
    for (uint32_t i = 0; i < f->n_symbols && i < s->n_in; i++) {
        int64_t most = dim_bound(dim_symbol(r->c, f->symbols[i], -1)), v;
        memcpy(&v, r->bytes[s->args[i]], sizeof v);
        if (v < 0 || v > most)
            all = arena_printf(&r->c->mem, "%s; %s is %lld, at most %lld", all, f->symbols[i], (long long)v,
                               (long long)most);
    }
    return all;
}

/* The parameters of the plain loops that take what is bound inside of a region as operands, too. */
static void *const *with_bound(run *r, const prog_step *s, void *const *params)
{
    const prog_kernel *k = s->kernel;
    uint32_t n = 0;
    void **all = arena_array(&r->mem, void *, s->n_args + k->bound.len + 1u);
    for (uint32_t i = 0; i < s->n_in; i++)
        all[n++] = params[i];
    for (uint32_t i = 0; i < k->bound.len; i++)
        all[n++] = (void *)(uintptr_t)tensor_plain_bytes(&r->mem, k->bound.data[i]);
    for (uint32_t i = s->n_in; i < s->n_args; i++)
        all[n++] = params[i];
    return all;
}

static bool interpret_kernel(run *r, const prog_step *s, void *const *params)
{
    int32_t status = 0;
    const tir_func *whole = s->kernel->whole, *f = whole ? whole : prog_kernel_meaning(s->kernel);
    params = whole ? with_bound(r, s, params) : params;
    if (!f)
        return diag_error(&r->c->diags, DIAG_UNSUPPORTED, s->loc, "kernel %s has no loops to interpret",
                          s->kernel->name);
    bool ok = tir_interpret(r->c, f, params, &status);
    const char *past = status == PACKAGE_STATUS_SHAPE ? past_bounds(r, s, f) : "";
    return ok && (status == 0 || prog_failed(r->c, s->loc, s->kernel->name, s->source, status, NULL, past));
}

/* The plain loops know nothing of a result that lies on an operand: they write beside it. */
static bool is_over(const run *r, const prog_step *s, uint32_t result)
{
    bool over = false;
    for (uint32_t i = 0; i < s->n_in; i++)
        over |= r->bytes[s->args[i]] == r->bytes[s->args[result]];
    return over && r->f->values.data[s->args[result]].space == SPACE_STATE;
}

static bool run_kernel(run *r, const prog_step *s)
{
    bool done = false, ok = true;
    arena_mark mark = arena_get_mark(&r->mem);
    void **params = arena_array(&r->mem, void *, s->n_args + 1u);
    for (uint32_t i = 0; i < s->n_args; i++)
        params[i] = r->bytes[s->args[i]];
    for (uint32_t i = s->n_in; i < s->n_args && ok; i++)
        if (is_over(r, s, i)) {
            params[i] = arena_try_alloc(&r->mem, (size_t)prog_bytes(&r->f->values.data[s->args[i]]) + 1, 64);
            ok = params[i] || no_memory(r, &r->f->values.data[s->args[i]]);
        }
    if (ok && r->runner)
        ok = r->runner->run(r->runner->ctx, s, params, &done);
    ok = ok && (done || interpret_kernel(r, s, params));
    for (uint32_t i = s->n_in; i < s->n_args && ok; i++)
        if (params[i] != r->bytes[s->args[i]])
            memcpy(r->bytes[s->args[i]], params[i], (size_t)prog_bytes(&r->f->values.data[s->args[i]]));
    arena_reset(&r->mem, mark);
    return ok;
}

static bool run_block(run *r, const prog_block *b, bool top);

static bool run_step(run *r, const prog_step *s)
{
    switch (s->kind) {
    case STEP_KERNEL: return run_kernel(r, s);
    case STEP_VIEW:
    case STEP_JOIN: return true;
    case STEP_COPY:
        memcpy(r->bytes[s->args[1]], r->bytes[s->args[0]], (size_t)prog_bytes(&r->f->values.data[s->args[0]]));
        return true;
    case STEP_IF: return run_block(r, &s->blocks[*r->bytes[s->args[0]] ? 0 : 1], false);
    case STEP_LOOP:
        while (*r->bytes[s->args[0]])
            if (!run_block(r, &s->blocks[0], false))
                return false;
        return true;
    }
    return false;
}

static bool run_block(run *r, const prog_block *b, bool top)
{
    bool ok = true;
    for (uint32_t i = 0; ok && i < b->len; i++) {
        ok = !top || compiler_progress(r->c, "interpreting step", i + 1, b->len);
        ok = ok && run_step(r, &b->data[i]);
    }
    return ok;
}

void prog_reset_states(const prog_module *m, void *const *states)
{
    const prog_func *f = prog_find(m, "main");
    for (uint32_t i = 0; f && i < f->n_states; i++) {
        const prog_value *v = &f->values.data[f->n_inputs + i];
        const size_t bytes = (size_t)prog_bytes(v);
        arena tmp;
        arena_init(&tmp, &m->c->mem);
        const uint8_t *initial = v->initial ? tensor_plain_bytes(&tmp, v->initial) : NULL;
        if (initial)
            memcpy(states[i], initial, bytes);
        else
            memset(states[i], 0, bytes);
        arena_free(&tmp);
    }
}

void **prog_new_states(compiler *c, const prog_module *m)
{
    const prog_func *f = prog_find(m, "main");
    void **states = arena_array(&c->mem, void *, (f ? f->n_states : 0) + 1u);
    for (uint32_t i = 0; f && i < f->n_states; i++) {
        const prog_value *v = &f->values.data[f->n_inputs + i];
        states[i] = arena_try_alloc(&c->mem, (size_t)prog_bytes(v) + 1, 64);
        if (!states[i]) {
            (void)diag_error(&c->diags, DIAG_ENVIRONMENT, src_loc_none(), "no memory for the %llu bytes of %%%s",
                             (unsigned long long)prog_bytes(v), v->name);
            return NULL;
        }
    }
    prog_reset_states(m, states);
    return states;
}

static bool interpret(compiler *c, const prog_module *m, void *const *states, void *const *in, void *const *out,
                      const prog_runner *runner)
{
    run r = {.c = c, .f = prog_find(m, "main"), .runner = runner, .states = states};
    if (!r.f)
        return diag_error(&c->diags, DIAG_FORMAT, src_loc_none(), "the program has no function @main");
    arena_init(&r.mem, &c->mem);
    bool ok = place(&r, in, out) && run_block(&r, &r.f->steps, true);
    arena_free(&r.mem);
    return ok;
}

bool prog_interpret_next(compiler *c, const prog_module *m, void *const *states, void *const *in, void *const *out)
{
    return interpret(c, m, states, in, out, NULL);
}

bool prog_interpret_by(compiler *c, const prog_module *m, void *const *in, void *const *out, const prog_runner *runner)
{
    void **states = prog_new_states(c, m);
    return states && interpret(c, m, states, in, out, runner);
}

bool prog_interpret(compiler *c, const prog_module *m, void *const *in, void *const *out)
{
    return prog_interpret_by(c, m, in, out, NULL);
}
