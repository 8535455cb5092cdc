/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier of programs: what every pass and back end relies on. */
#include "base/ptr_map.h"
#include "prog/prog.h"
#include "tir/build.h"
#include "tir/verify.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct checker {
    compiler *c;
    const prog_func *f;
    bool *made; /* of each value */
} checker;

static bool fault(const checker *k, src_loc at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static bool fault(const checker *k, src_loc at, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return diag_error(&k->c->diags, DIAG_VERIFY, at, "@%s: %s", k->f->name, text);
}

static const prog_value *value(const checker *k, uint32_t v)
{
    return &k->f->values.data[v];
}

/* --- values --- */

static bool check_value(checker *k, uint32_t i)
{
    const prog_value *v = value(k, i);
    src_loc none = src_loc_none();
    if (v->type.kind != TYPE_TENSOR || !shape_is_static(v->type.shape) || type_bytes(&v->type) < 0)
        return fault(k, none, "%%%s has no constant size", v->name);
    if ((i < k->f->n_inputs) != (v->space == SPACE_INPUT && v->base == PROG_NONE))
        return fault(k, none, "%%%s: inputs come first, and nothing else is one", v->name);
    if ((v->data != NULL) != (v->space == SPACE_CONSTANT && v->base == PROG_NONE))
        return fault(k, none, "%%%s: a constant has numbers, and nothing else has", v->name);
    if (v->base == PROG_NONE)
        return true;
    if (v->base >= k->f->values.len)
        return fault(k, none, "%%%s lies in a value that is not there", v->name);
    const prog_value *base = value(k, v->base);
    if (v->offset > prog_bytes(base) || prog_bytes(v) > prog_bytes(base) - v->offset)
        return fault(k, none, "%%%s: %llu bytes at %llu leave %%%s, which has %llu", v->name,
                     (unsigned long long)prog_bytes(v), (unsigned long long)v->offset, base->name,
                     (unsigned long long)prog_bytes(base));
    return true;
}

static bool check_values(checker *k)
{
    ptr_map names;
    uint32_t other;
    bool ok = true;
    ptr_map_init(&names, &k->c->mem);
    for (uint32_t i = 0; i < k->f->values.len; i++) {
        if (ptr_map_get(&names, value(k, i)->name, &other))
            ok = fault(k, src_loc_none(), "two values have the name %%%s", value(k, i)->name);
        ptr_map_set(&names, value(k, i)->name, i);
        ok = check_value(k, i) && ok;
        k->made[i] = i < k->f->n_inputs || value(k, i)->data;
    }
    return ok;
}

/* --- steps --- */

static bool check_operand(const checker *k, const prog_step *s, const tir_func *f, uint32_t i)
{
    const prog_value *v = value(k, s->args[i]);
    const tir_buffer *b = f->params[i];
    int64_t count = tir_buffer_count(b);
    if (v->type.dt != b->dt || count < 0 || (uint64_t)count * dtype_bytes(b->dt) != prog_bytes(v))
        return fault(k, s->loc, "kernel @%s wants %lld elements of %s as %s, and %%%s has %llu bytes of %s",
                     s->kernel->name, (long long)count, dtype_name(b->dt), b->name, v->name,
                     (unsigned long long)prog_bytes(v), dtype_name(v->type.dt));
    return true;
}

static bool check_kernel(const checker *k, const prog_step *s)
{
    const tir_func *f = s->kernel ? prog_kernel_meaning(s->kernel) : NULL;
    bool ok = true;
    if (!s->kernel)
        return fault(k, s->loc, "a step without its kernel");
    if (!f) /* its target will say */
        return true;
    if (s->n_args != f->n_params || s->n_in != f->n_inputs)
        return fault(k, s->loc, "kernel @%s has %u operands and %u results, not %u and %u", s->kernel->name,
                     f->n_inputs, f->n_params - f->n_inputs, s->n_in, s->n_args - s->n_in);
    for (uint32_t i = 0; i < s->n_args; i++)
        ok = check_operand(k, s, f, i) && ok;
    return ok;
}

static bool lies_in(const checker *k, const prog_step *s, uint32_t inner, uint32_t outer)
{
    if (value(k, inner)->base == outer)
        return true;
    return fault(k, s->loc, "%%%s does not lie in %%%s", value(k, inner)->name, value(k, outer)->name);
}

/* One operand behind the other, without holes: all of the result is written, and no byte twice. */
static bool check_join(const checker *k, const prog_step *s)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < s->n_in; i++) {
        const prog_value *v = value(k, s->args[i]);
        if (!lies_in(k, s, s->args[i], s->args[s->n_in]))
            return false;
        if (v->offset != at)
            return fault(k, s->loc, "%%%s lies at %llu; what is joined before it ends at %llu", v->name,
                         (unsigned long long)v->offset, (unsigned long long)at);
        at += prog_bytes(v);
    }
    return at == prog_bytes(value(k, s->args[s->n_in])) ||
           fault(k, s->loc, "%llu bytes are joined, and %%%s has %llu", (unsigned long long)at,
                 value(k, s->args[s->n_in])->name, (unsigned long long)prog_bytes(value(k, s->args[s->n_in])));
}

static bool check_places(const checker *k, const prog_step *s)
{
    switch (s->kind) {
    case STEP_KERNEL: return check_kernel(k, s);
    case STEP_VIEW: return lies_in(k, s, s->args[1], s->args[0]);
    case STEP_JOIN: return check_join(k, s);
    }
    return false;
}

static bool check_step(checker *k, const prog_step *s)
{
    uint32_t n_values = k->f->values.len;
    if (s->kind != STEP_KERNEL && (s->n_args != s->n_in + 1 || (s->kind == STEP_VIEW && s->n_in != 1)))
        return fault(k, s->loc, "a %s with %u operands and %u results", prog_step_text(s->kind), s->n_in,
                     s->n_args - s->n_in);
    for (uint32_t i = 0; i < s->n_args; i++) {
        if (s->args[i] >= n_values)
            return fault(k, s->loc, "a %s of a value that is not there", prog_step_text(s->kind));
        const prog_value *v = value(k, s->args[i]);
        if (i < s->n_in ? !k->made[s->args[i]] : k->made[s->args[i]])
            return fault(k, s->loc, "%%%s is %s", v->name, i < s->n_in ? "read before it is made" : "made twice");
        if (i >= s->n_in && s->kind != STEP_VIEW && (v->space == SPACE_INPUT || v->space == SPACE_CONSTANT))
            return fault(k, s->loc, "%%%s lies where nothing may be written", v->name);
    }
    for (uint32_t i = s->n_in; i < s->n_args; i++)
        k->made[s->args[i]] = true;
    return check_places(k, s);
}

static bool check_result(const checker *k, uint32_t i)
{
    uint64_t start;
    uint32_t v = k->f->results.data[i].value;
    if (v >= k->f->values.len || !k->made[v])
        return fault(k, src_loc_none(), "result %u is not made", i);
    const prog_value *root = value(k, prog_root(k->f, v, &start));
    if (root->space != SPACE_OUTPUT || root->index != i || start != 0 || prog_bytes(root) != prog_bytes(value(k, v)))
        return fault(k, src_loc_none(), "the result %%%s has no bytes of its own", value(k, v)->name);
    return true;
}

static bool verify_func(compiler *c, const prog_func *f)
{
    checker k = {.c = c, .f = f, .made = arena_array(&c->mem, bool, f->values.len)};
    if (!check_values(&k))
        return false;
    for (uint32_t i = 0; i < f->steps.len; i++)
        if (!check_step(&k, &f->steps.data[i]))
            return false;
    for (uint32_t i = 0; i < f->values.len; i++)
        if (!k.made[i])
            return fault(&k, src_loc_none(), "%%%s is never made", f->values.data[i].name);
    for (uint32_t i = 0; i < f->results.len; i++)
        if (!check_result(&k, i))
            return false;
    return true;
}

static bool verify_kernels(compiler *c, const prog_module *m)
{
    ptr_map names;
    uint32_t other;
    ptr_map_init(&names, &c->mem);
    for (uint32_t i = 0; i < m->kernels.len; i++) {
        const prog_kernel *k = m->kernels.data[i];
        const char *name = intern(c->names, k->name);
        if (ptr_map_get(&names, name, &other))
            return diag_error(&c->diags, DIAG_VERIFY, src_loc_none(), "two kernels have the name @%s", name);
        ptr_map_set(&names, name, i);
        if ((k->plain && !tir_verify(c, k->plain)) || (k->loops && !tir_verify(c, k->loops)))
            return false;
    }
    return true;
}

bool prog_verify(compiler *c, const prog_module *m)
{
    for (uint32_t i = 0; i < m->funcs.len; i++)
        if (!verify_func(c, m->funcs.data[i]))
            return false;
    return verify_kernels(c, m);
}
