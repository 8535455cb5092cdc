/* SPDX-License-Identifier: Apache-2.0 */
/* What innermost loops have left undone, for reports (TIR_LEFT): conditions on indices, products without lanes, calls
 * of functions for one number at a time, more vectors than the target has registers. */
#include "tir/build.h"
#include "tir/clone.h"
#include "tir/facts.h"
#include "tir/pass.h"
#include "tir/walk.h"
#include "type/target.h"

/* --- what innermost loops test --- */

static void find_value(void *ctx, tir_expr_ref e)
{
    *(bool *)ctx |= e->kind == TIR_LOAD || e->kind == TIR_EXTERN || dtype_is_float(e->type.dt);
}

static bool on_indices(tir_expr_ref cond)
{
    bool values = false;
    tir_visit_expr(cond, find_value, &values);
    return !values && cond->kind != TIR_INT;
}

static void count_select(void *ctx, tir_expr_ref e)
{
    *(uint32_t *)ctx += e->kind == TIR_SELECT && on_indices(e->args[0]);
}

/* Statements of a tile that make a test in front of them free. */
#define TILE_OF_TEST 16

static void count_if(void *ctx, tir_stmt *s)
{
    *(uint32_t *)ctx += s->kind == TIR_IF && on_indices(s->cond);
}

static void find_loop(void *ctx, tir_stmt *s)
{
    *(bool *)ctx |= s->kind == TIR_FOR;
}

/* --- functions of the C library, which takes one number at a time --- */

static bool is_library_function(tir_op op)
{
    switch (op) {
    case TIR_EXP:
    case TIR_DECAY:
    case TIR_LOG:
    case TIR_SIN:
    case TIR_COS:
    case TIR_TAN:
    case TIR_ASIN:
    case TIR_ACOS:
    case TIR_ATAN:
    case TIR_SINH:
    case TIR_COSH:
    case TIR_TANH:
    case TIR_ASINH:
    case TIR_ACOSH:
    case TIR_ATANH:
    case TIR_ERF:
    case TIR_POW:
    case TIR_FMOD:
    case TIR_LOG1P:
    case TIR_EXPM1: return true;
    default: return false;
    }
}

static void count_call(void *ctx, tir_expr_ref e)
{
    *(uint32_t *)ctx += e->kind == TIR_CALL && e->type.lanes == 1 && is_library_function(e->op);
}

/* --- products and registers of innermost loops --- */

#define LEAST_TRIPS 4 /* of a loop for which lanes are worth having */

typedef struct vector_scan {
    compiler *c;
    VEC(tir_stmt *) sums; /* one store for each vector of sums in a register */
    bool product;         /* a scalar one is added to a sum */
} vector_scan;

typedef struct self_scan {
    tir_stmt *store;
    bool adds, multiplies;
} self_scan;

static bool is_same_place(tir_stmt *s, const tir_buffer *b, uint32_t n, tir_expr_ref const *idx)
{
    for (uint32_t i = 0; i < n && s->buffer == b && n == s->n_indices; i++)
        if (!tir_expr_equal(s->indices[i], idx[i]))
            return false;
    return s->buffer == b && n == s->n_indices;
}

static void look_for_self(void *ctx, tir_expr_ref e)
{
    self_scan *x = ctx;
    x->adds |= e->kind == TIR_LOAD && is_same_place(x->store, e->u.buffer, e->n_args, e->args);
    x->multiplies |= e->kind == TIR_BINOP && e->op == TIR_MUL && dtype_is_float(e->type.dt);
}

static void scan_store(void *ctx, tir_stmt *s)
{
    vector_scan *v = ctx;
    self_scan x = {.store = s};
    if (s->kind != TIR_STORE || !dtype_is_float(s->value->type.dt))
        return;
    tir_visit_expr(s->value, look_for_self, &x);
    v->product |= x.adds && x.multiplies && s->value->type.lanes == 1;
    for (uint32_t i = 0; i < v->sums.len; i++)
        x.adds &= !is_same_place(v->sums.data[i], s->buffer, s->n_indices, s->indices);
    if (x.adds && s->value->type.lanes > 1 && s->buffer->scope == SCOPE_REG)
        vec_push(&v->c->mem, &v->sums, s);
}

static uint32_t registers_of(tir_expr_ref e, const target *t)
{
    return (e->type.lanes * (uint32_t)dtype_bytes(e->type.dt) + t->vector_bytes - 1) / t->vector_bytes;
}

/* Registers that the largest tile surely takes: its sums, and two operands of a multiply-add. */
static uint32_t count_registers(const vector_scan *v, const target *t)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < v->sums.len; i++) {
        uint32_t n = 2;
        for (uint32_t k = 0; k < v->sums.len; k++)
            if (v->sums.data[k]->buffer == v->sums.data[i]->buffer)
                n += registers_of(v->sums.data[k]->value, t);
        most = n > most ? n : most;
    }
    return most;
}

typedef struct left_count {
    compiler *c;
    const target *t;
    tir_left *left;
} left_count;

static void count_in_loop(void *ctx, tir_stmt *s)
{
    left_count *k = ctx;
    bool outer = false;
    int64_t trips = LEAST_TRIPS;
    if (s->kind != TIR_FOR)
        return;
    tir_visit_stmt(s->body, find_loop, NULL, &outer);
    if (outer)
        return;
    uint32_t tests = 0;
    tir_visit_stmt(s->body, count_if, count_select, &tests);
    k->left->guards += tests * TILE_OF_TEST > tir_count_stmts(s->body) ? tests : 0;
    if (k->t->vector_bytes == 0)
        return;
    vector_scan v = {.c = k->c};
    tir_visit_stmt(s->body, scan_store, NULL, &v);
    (void)tir_is_int(s->extent, &trips);
    k->left->scalar += v.product && trips >= LEAST_TRIPS;
    if (trips >= LEAST_TRIPS)
        tir_visit_stmt(s->body, NULL, count_call, &k->left->calls);
    uint32_t used = v.sums.len > 0 ? count_registers(&v, k->t) : 0;
    k->left->beyond += used > k->t->vector_regs ? used - k->t->vector_regs : 0;
}

void tir_count_left(compiler *c, tir_func *f)
{
    left_count k = {c, f->target ? f->target : target_default(), &f->left};
    f->left.guards = f->left.scalar = f->left.calls = f->left.beyond = 0;
    tir_visit_stmt(f->body, count_in_loop, NULL, &k);
}
