/* SPDX-License-Identifier: Apache-2.0 */
/* Vocabulary of the VTA passes. */
#include "target/vta/pass/vta.h"
#include "tir/build.h"
#include "tir/walk.h"

#include "target/vta/vta_text.h"

#include <stdarg.h>
#include <stdio.h>

static const struct {
    enum vta_mem memory;
    const char *scope;
} scratchpads[] = {
    {VTA_MEM_INP, "local.inp_buffer"},
    {VTA_MEM_WGT, "local.wgt_buffer"},
    {VTA_MEM_ACC, "local.acc_buffer"},
};

bool vta_pass_begin(compiler *c, const tir_func *f, vta_pass *out)
{
    const char *why = NULL;
    *out = (vta_pass){.c = c, .f = f, .bounds = tir_bounds_new(c), .ok = true};
    const char *broken = vta_config_derive(vta_text_config(c), &out->g, &why);
    if (broken)
        return diag_error(&c->diags, DIAG_USAGE, f->loc, "the VTA configuration breaks the rule %s: %s", broken, why);
    return true;
}

typedef struct runner {
    vta_pass *p;
    tir_stmt *(*fn)(vta_pass *p, tir_stmt *s);
} runner;

static void enter(tir_rewriter *r, tir_stmt *s)
{
    const runner *k = r->ctx;
    if (s->kind == TIR_FOR)
        tir_bounds_push(k->p->bounds, s->var, s->min, s->extent);
}

static tir_stmt *leave(tir_rewriter *r, tir_stmt *s)
{
    const runner *k = r->ctx;
    if (s->kind == TIR_FOR)
        tir_bounds_pop(k->p->bounds);
    return k->fn(k->p, s);
}

bool vta_pass_run(compiler *c, tir_func *f, tir_stmt *(*fn)(vta_pass *p, tir_stmt *s))
{
    vta_pass p;
    runner k = {&p, fn};
    tir_rewriter r = {.c = c, .ctx = &k, .stmt = leave, .enter = enter};
    if (!vta_pass_begin(c, f, &p))
        return false;
    f->body = tir_rewrite_stmt(&r, f->body);
    return p.ok;
}

bool vta_error(vta_pass *p, const char *fmt, ...)
{
    char text[600];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    bool again = !p->ok && strcmp(p->last_error, text) == 0; /* of a nest that was written out twice */
    p->ok = false;
    p->last_error = arena_printf(&p->c->mem, "%s", text);
    return !again && diag_error(&p->c->diags, DIAG_UNSUPPORTED, p->f->loc, "%s: %s", p->f->name, text);
}

void vta_unmarked(vta_pass *p, const char *name, enum vta_mem m, const char *how)
{
    if (!p->ok)
        return;
    (void)vta_error(p, "'%s' in %s is %s by the host: a nest that touches it is not marked", name, vta_scope_name(m),
                    how);
    diag_hint(&p->c->diags, "tensorize a product (vta_gemm), give a copy the pragma \"dma_copy\", an operation on "
                            "accumulators the pragma \"alu\"");
}

bool vta_scratchpad(const tir_buffer *b, enum vta_mem *out)
{
    if (b->scope != SCOPE_CUSTOM)
        return false;
    for (size_t i = 0; i < sizeof scratchpads / sizeof *scratchpads; i++) {
        if (strcmp(b->scope_name, scratchpads[i].scope) != 0)
            continue;
        *out = scratchpads[i].memory;
        return true;
    }
    return false;
}

bool vta_holds(const vta_pass *p, enum vta_mem m, dtype dt)
{
    uint32_t width = p->g.width[m] < 8 ? 8 : p->g.width[m]; /* narrower values stand in a byte each in loops */
    return dtype_is_int(dt) && dtype_is_signed(dt) && dtype_bits(dt) == width;
}

const char *vta_scope_name(enum vta_mem m)
{
    for (size_t i = 0; i < sizeof scratchpads / sizeof *scratchpads; i++)
        if (scratchpads[i].memory == m)
            return scratchpads[i].scope;
    return "";
}

tir_expr_ref vta_int(vta_pass *p, int64_t v)
{
    return tir_int(p->c, p->f->index_type, v);
}

tir_expr_ref vta_command_handle(vta_pass *p)
{
    return tir_extern(p->c, "tir.vta.command_handle", tir_scalar(DT_HANDLE), 0, NULL);
}

bool vta_is_call(tir_expr_ref e, const char *name)
{
    return e->kind == TIR_EXTERN && e->type.dt != DT_STRING && strcmp(e->u.name, name) == 0;
}

bool vta_is_attr(tir_stmt *s, const char *key)
{
    return s->kind == TIR_ATTR && strcmp(s->key, key) == 0;
}

const char *vta_stage_name(tir_stmt *s)
{
    if (s->kind == TIR_ATTR && s->value->kind == TIR_EXTERN && s->value->type.dt == DT_STRING)
        return s->value->u.name;
    while (s->kind != TIR_STORE && (s->body || s->n_stmts))
        s = s->body ? s->body : s->stmts[0];
    return s->buffer ? s->buffer->name : "no store";
}

tir_stmt *vta_coproc_scope(vta_pass *p, enum vta_queue q, tir_stmt *body)
{
    return tir_attr(p->c, "vta", VTA_COPROC_SCOPE, vta_int(p, q), body);
}

tir_stmt *vta_uop_scope(vta_pass *p, const char *push, tir_stmt *body)
{
    return tir_attr(p->c, "vta", VTA_UOP_SCOPE, tir_string(p->c, push), body);
}

bool vta_linear(vta_pass *p, tir_expr_ref e, linear *out)
{
    return e->type.lanes == 1 && dtype_is_int(e->type.dt) && linear_of(p->bounds, tir_simplify(p->bounds, e), out);
}

bool vta_take_var(linear *l, const tir_var *v, int64_t *out_coeff)
{
    *out_coeff = 0;
    for (uint32_t i = 0; i < l->len; i++) {
        const linear_term *t = &l->terms[i];
        if (t->n == 1 && t->atoms[0]->kind == TIR_VAR && t->atoms[0]->u.var == v) {
            *out_coeff = t->coeff;
            l->terms[i--] = l->terms[--l->len];
            continue;
        }
        for (uint32_t k = 0; k < t->n; k++)
            if (tir_uses_var(t->atoms[k], v))
                return false;
    }
    return true;
}

tir_expr_ref vta_build(vta_pass *p, linear *l)
{
    dtype dt = l->len ? l->terms[0].atoms[0]->type.dt : p->f->index_type;
    return tir_cast(p->c, p->f->index_type, linear_build(p->bounds, dt, l));
}

bool vta_divide(linear *l, int64_t n)
{
    bool divides = l->constant % n == 0;
    for (uint32_t i = 0; i < l->len; i++)
        divides = divides && l->terms[i].coeff % n == 0;
    if (!divides)
        return false;
    l->constant /= n;
    for (uint32_t i = 0; i < l->len; i++)
        l->terms[i].coeff /= n;
    return true;
}
