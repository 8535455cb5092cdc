/* SPDX-License-Identifier: Apache-2.0 */
/* A second, naive reading of the loop IR's meaning, for tests: walks trees one value at a time, knows scalars and
 * row-major buffers of static shape only. What the interpreter and the passes do is compared with this. */
#ifndef LATHE_TEST_TIR_REFERENCE_H
#define LATHE_TEST_TIR_REFERENCE_H
#include "tir/build.h"
#include "tir/eval.h"
#include "tir/tir.h"

#include <stdlib.h>

typedef struct ref_value {
    int64_t i;
    double f;
} ref_value;

typedef struct ref_binding {
    const tir_var *var;
    ref_value value;
} ref_binding;

typedef struct ref_memory {
    const tir_buffer *buffer;
    uint8_t *data;
} ref_memory;

typedef struct ref_env {
    ref_binding vars[64];
    uint32_t n_vars;
    ref_memory mem[32];
    uint32_t n_mem;
    bool failed; /* an access outside, or something this reading does not know */
} ref_env;

static ref_value ref_eval(ref_env *env, tir_expr_ref e);

static inline uint8_t *ref_address(ref_env *env, const tir_buffer *b, uint32_t n, tir_expr_ref const *idx)
{
    int64_t at = 0, extent;
    uint8_t *data = NULL;
    for (uint32_t i = 0; i < env->n_mem; i++)
        if (env->mem[i].buffer == b)
            data = env->mem[i].data;
    for (uint32_t i = 0; i < n; i++) {
        int64_t k = ref_eval(env, idx[i]).i;
        bool flat = n == 1 && b->rank != 1;
        if (flat)
            extent = tir_buffer_count(b);
        else if (!tir_is_int(b->shape[i], &extent))
            extent = -1;
        if (k < 0 || k >= extent) {
            env->failed = true;
            return NULL;
        }
        at = at * extent + k;
    }
    env->failed |= !data;
    return data ? data + (size_t)at * dtype_bytes(b->dt) : NULL;
}

static inline ref_value ref_load(ref_env *env, tir_expr_ref e)
{
    ref_value v = {0, 0};
    const uint8_t *p = ref_address(env, e->u.buffer, e->n_args, e->args);
    if (p && dtype_is_float(e->type.dt))
        v.f = dtype_load_f64(e->type.dt, p);
    else if (p)
        v.i = dtype_load_i64(e->type.dt, p);
    return v;
}

static inline ref_value ref_binary(ref_env *env, tir_expr_ref e)
{
    ref_value x = ref_eval(env, e->args[0]), y, r = {0, 0};
    dtype dt = e->args[0]->type.dt;
    if ((e->op == TIR_AND && !x.i) || (e->op == TIR_OR && x.i))
        return x;
    y = ref_eval(env, e->args[1]);
    if (!dtype_is_float(dt))
        r.i = tir_eval_int(dt, e->op, x.i, y.i);
    else if (tir_op_is_compare(e->op))
        r.i = tir_eval_compare(dt, e->op, x.f, y.f);
    else
        r.f = tir_eval_float(dt, e->op, x.f, y.f);
    return r;
}

static inline ref_value ref_cast(ref_env *env, tir_expr_ref e)
{
    dtype to = e->type.dt, from = e->args[0]->type.dt;
    ref_value x = ref_eval(env, e->args[0]), r = {0, 0};
    if (dtype_is_float(to))
        r.f = dtype_is_float(from) ? tir_eval_round(to, x.f) : tir_eval_int_to_float(to, from, x.i);
    else if (dtype_is_float(from))
        r.i = to == DT_BOOL ? x.f != 0 : eval_f64_to_int(to, x.f);
    else
        r.i = eval_wrap(to, x.i);
    return r;
}

static inline ref_value ref_call(ref_env *env, tir_expr_ref e)
{
    double x[3] = {0, 0, 0};
    ref_value r = {0, 0};
    if (e->op == TIR_BITNOT) {
        int64_t v = ref_eval(env, e->args[0]).i;
        r.i = e->type.dt == DT_BOOL ? !v : eval_wrap(e->type.dt, ~v);
        return r;
    }
    for (uint32_t i = 0; i < e->n_args; i++)
        x[i] = ref_eval(env, e->args[i]).f;
    double v = tir_eval_call(e->args[0]->type.dt, e->op, x);
    if (e->type.dt == DT_BOOL)
        r.i = v != 0;
    else
        r.f = v;
    return r;
}

static ref_value ref_eval(ref_env *env, tir_expr_ref e)
{
    ref_value r = {0, 0};
    switch (e->kind) {
    case TIR_INT: r.i = e->u.i; return r;
    case TIR_FLOAT: r.f = e->u.f; return r;
    case TIR_VAR:
        for (uint32_t i = env->n_vars; i > 0; i--)
            if (env->vars[i - 1].var == e->u.var)
                return env->vars[i - 1].value;
        env->failed = true;
        return r;
    case TIR_BINOP: return ref_binary(env, e);
    case TIR_NOT: r.i = !ref_eval(env, e->args[0]).i; return r;
    case TIR_CAST: return ref_cast(env, e);
    case TIR_SELECT: return ref_eval(env, e->args[ref_eval(env, e->args[0]).i ? 1 : 2]);
    case TIR_LOAD: return ref_load(env, e);
    case TIR_CALL: return ref_call(env, e);
    case TIR_ADDRESS:
    case TIR_EXTERN:
    case TIR_INSTR:
    case TIR_RAMP:
    case TIR_BROADCAST: env->failed = true; return r;
    }
    return r;
}

static void ref_run(ref_env *env, tir_stmt *s);

static inline void ref_for(ref_env *env, tir_stmt *s)
{
    int64_t min = ref_eval(env, s->min).i, extent = ref_eval(env, s->extent).i;
    uint32_t at = env->n_vars++;
    for (int64_t i = 0; i < extent && !env->failed; i++) {
        env->vars[at] = (ref_binding){s->var, {min + i, 0}};
        ref_run(env, s->body);
    }
    env->n_vars--;
}

static inline void ref_store(ref_env *env, tir_stmt *s)
{
    ref_value v = ref_eval(env, s->value);
    uint8_t *p = ref_address(env, s->buffer, s->n_indices, s->indices);
    if (p && dtype_is_float(s->buffer->dt))
        dtype_store_f64(s->buffer->dt, p, v.f);
    else if (p)
        dtype_store_i64(s->buffer->dt, p, v.i);
}

static void ref_run(ref_env *env, tir_stmt *s)
{
    if (env->failed)
        return;
    if (s->kind == TIR_FOR) {
        ref_for(env, s);
    } else if (s->kind == TIR_IF) {
        if (ref_eval(env, s->cond).i)
            ref_run(env, s->body);
        else if (s->orelse)
            ref_run(env, s->orelse);
    } else if (s->kind == TIR_LET) {
        ref_value v = ref_eval(env, s->value);
        env->vars[env->n_vars++] = (ref_binding){s->var, v};
        ref_run(env, s->body);
        env->n_vars--;
    } else if (s->kind == TIR_STORE) {
        ref_store(env, s);
    } else if (s->kind == TIR_ALLOCATE) {
        size_t bytes = (size_t)tir_buffer_count(s->buffer) * dtype_bytes(s->buffer->dt);
        uint8_t *data = malloc(bytes + 1);
        memset(data, 0xA5, bytes);
        env->mem[env->n_mem++] = (ref_memory){s->buffer, data};
        ref_run(env, s->body);
        env->n_mem--;
        free(data);
    } else if (s->kind == TIR_ATTR) {
        ref_run(env, s->body);
    }
    for (uint32_t i = 0; i < s->n_stmts; i++)
        ref_run(env, s->stmts[i]);
}
#endif
