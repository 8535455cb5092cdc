/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of kernels: a kernel's loops made of its shape and its numbers, and the check that they are its loops. */
#include "prog/shape.h"

#include <string.h>

#include "tir/build.h"
#include "tir/intrin.h"
#include "tir/shape.h"
#include "tir/verify.h"
#include "tir/walk.h"

const tir_func *prog_kernel_loops(const prog_kernel *k)
{
    return k->loops ? k->loops : k->plain;
}

uint32_t prog_shape_numbers(const prog_shape *s)
{
    const int64_t n = s->loops->n_params > 0 ? tir_buffer_count(s->loops->params[0]) : -1;
    return n > 0 ? (uint32_t)n : 0;
}

typedef struct filling {
    const tir_buffer *buffer;
    const int32_t *numbers;
    uint32_t n;
} filling;

static tir_expr_ref put_number(tir_rewriter *r, tir_expr_ref e)
{
    const filling *f = r->ctx;
    int64_t at = 0;
    const bool is_number = e->kind == TIR_LOAD && e->u.buffer == f->buffer && e->n_args == 1 && e->type.lanes == 1;
    return is_number && tir_is_int(e->args[0], &at) && at >= 0 && at < f->n ? tir_int(r->c, DT_I32, f->numbers[at]) : e;
}

/* The constructors fold casts, and leave bits of floats as they are. */
static tir_expr_ref fold_bits(tir_rewriter *r, tir_expr_ref e)
{
    int64_t bits = 0;
    union {
        uint32_t u;
        float f;
    } v;
    e = put_number(r, e);
    if (e->kind != TIR_CALL || e->op != TIR_FROM_BITS || !tir_is_int(e->args[0], &bits))
        return e;
    v.u = (uint32_t)bits;
    return tir_float(r->c, DT_F32, (double)v.f);
}

tir_func *prog_shape_instance(compiler *c, const prog_shape *s, const int32_t *numbers)
{
    tir_func *f = arena_new(&c->mem, tir_func);
    filling fill = {s->loops->params[0], numbers, prog_shape_numbers(s)};
    tir_rewriter r = {.c = c, .ctx = &fill, .expr = fold_bits};
    *f = *s->loops;
    f->numbers = NULL;
    f->n_numbers = 0;
    f->params++;
    f->n_params--;
    f->n_inputs--;
    f->body = tir_rewrite_stmt(&r, f->body);
    while (f->body->kind == TIR_LET && (f->body->value->kind == TIR_INT || f->body->value->kind == TIR_FLOAT)) {
        f->body = tir_substitute_stmt(c, f->body->body, 1, &f->body->var, &f->body->value);
        f->body = tir_rewrite_stmt(&r, f->body); /* casts of what has become a number */
    }
    return f;
}

/* --- the check --- */

static bool same_literal(tir_expr_ref a, tir_expr_ref b)
{
    const float x = (float)a->u.f, y = (float)b->u.f;
    if (a->kind != b->kind || a->type.dt != b->type.dt)
        return false;
    return a->kind == TIR_INT ? a->u.i == b->u.i : memcmp(&x, &y, sizeof x) == 0;
}

static bool gives(compiler *c, const prog_kernel *k)
{
    arena tmp;
    tir_form own, made;
    arena_init(&tmp, &c->mem);
    tir_form_of(&tmp, prog_kernel_loops(k), true, &own);
    tir_form_of(&tmp, prog_shape_instance(c, k->shape, k->numbers), true, &made);
    bool same = tir_form_equal(&own, &made) && own.n_literals == made.n_literals && own.n_sizes == made.n_sizes;
    for (uint32_t i = 0; same && i < own.n_literals; i++)
        same = same_literal(own.literals[i], made.literals[i]);
    for (uint32_t i = 0; same && i < own.n_sizes; i++)
        same = own.sizes[i] <= made.sizes[i];
    arena_free(&tmp);
    return same;
}

static void find_selected(void *ctx, tir_expr_ref e)
{
    bool *found = ctx;
    *found |= e->kind == TIR_INSTR && e->u.row->selected;
}

/* The pass select was here: a literal may let it choose other instructions than a variable does, so that loops which
 * were the same are no longer. */
static bool is_selected(const prog_kernel *k)
{
    bool found = false;
    tir_visit_stmt(prog_kernel_loops(k)->body, NULL, find_selected, &found);
    tir_visit_stmt(k->shape->loops->body, NULL, find_selected, &found);
    return found;
}

static bool check_shape(compiler *c, const prog_shape *s)
{
    const tir_func *f = s->loops;
    if (!tir_verify(c, f))
        return false;
    return (f->n_inputs > 0 && f->params[0]->dt == DT_I32 && f->params[0]->rank == 1 && prog_shape_numbers(s) > 0) ||
           diag_error(&c->diags, DIAG_VERIFY, f->loc, "the first operand of the shape @%s is not an array of int32",
                      s->name);
}

bool prog_verify_shapes(compiler *c, const prog_module *m)
{
    for (uint32_t i = 0; i < m->shapes.len; i++)
        if (!check_shape(c, m->shapes.data[i]))
            return false;
    for (uint32_t i = 0; i < m->kernels.len; i++) {
        const prog_kernel *k = m->kernels.data[i];
        if (k->shape && prog_kernel_loops(k) && !is_selected(k) && !gives(c, k))
            return diag_error(&c->diags, DIAG_VERIFY, prog_kernel_loops(k)->loc,
                              "the shape @%s with the numbers of kernel @%s does not give its loops", k->shape->name,
                              k->name);
    }
    return true;
}

void prog_drop_shapes(prog_module *m)
{
    m->shapes.len = 0;
    for (uint32_t i = 0; i < m->kernels.len; i++)
        m->kernels.data[i]->shape = NULL;
}
