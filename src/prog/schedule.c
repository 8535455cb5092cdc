/* SPDX-License-Identifier: Apache-2.0 */
/* Loops of kernels for their targets: a kernel's computation gets the schedule that the rules choose (te), the schedule
 * gives loops, and the passes on loops make of them what the back end writes (tir). A hook of the target, when it has
 * one and takes the function, stands for all three. */
#include "graph/graph.h"
#include "prog/prog.h"
#include "te/from_graph.h"
#include "te/te_op.h"
#include "tir/pass.h"
#include "tir/verify.h"
#include "tir/walk.h"

typedef struct literal_use {
    const tir_buffer *buffer;
    const tensor_data *data;
} literal_use;

static tir_expr_ref replace_load(tir_rewriter *r, tir_expr_ref e)
{
    const literal_use *u = r->ctx;
    if (e->kind != TIR_LOAD || e->u.buffer != u->buffer)
        return e;
    dtype dt = u->data->dt;
    tir_expr_ref v = dtype_is_float(dt) ? tir_float(r->c, dt, tensor_get_f64(u->data, 0))
                                        : tir_int(r->c, dt, tensor_get_i64(u->data, 0));
    return e->type.lanes > 1 ? tir_broadcast(r->c, v, e->type.lanes) : v;
}

void prog_drop_param(compiler *c, tir_func *f, uint32_t param, const tensor_data *t)
{
    literal_use u = {f->params[param], t};
    tir_rewriter r = {.c = c, .ctx = &u, .expr = replace_load};
    const tir_buffer **params = arena_array(&c->mem, const tir_buffer *, f->n_params);
    f->body = tir_rewrite_stmt(&r, f->body);
    for (uint32_t k = 0, n = 0; k < f->n_params; k++)
        if (k != param)
            params[n++] = f->params[k];
    f->params = params;
    f->n_params--;
    f->n_inputs--;
}

/* The target's hook gives loops that are done. */
static bool lower_by_target(compiler *c, prog_kernel *k)
{
    if (!k->func || !k->target->lower)
        return true;
    if (!k->target->lower(c, k->func, k->name, &k->loops))
        return false;
    k->by_target = k->loops != NULL;
    return !k->by_target || tir_verify(c, k->loops);
}

/* By the schedule that the operators' rules choose; of a program that was read from text, the loops as they stand. A
 * region that its target declines is the CPU's. */
static bool lower_by_schedule(compiler *c, prog_kernel *k)
{
    if (k->host)
        k->target = k->host;
    if (k->func)
        return te_lower_func(c, k->func, k->name, k->target, &k->loops);
    if (k->node)
        return te_lower_node(c, k->node, k->name, k->target, &k->loops);
    k->loops = arena_new(&c->mem, tir_func);
    *k->loops = *k->plain;
    k->loops->target = k->target;
    return true;
}

static bool run_loop_passes(compiler *c, tir_func *f)
{
    tir_module m = {.c = c};
    vec_push(&c->mem, &m.funcs, f);
    return tir_run_passes(c, &m, NULL, false, NULL);
}

static bool lower(compiler *c, prog_kernel *k)
{
    return lower_by_target(c, k) && (k->by_target || (lower_by_schedule(c, k) && run_loop_passes(c, k->loops)));
}

bool prog_schedule(compiler *c, prog_module *m)
{
    for (uint32_t i = 0; i < m->kernels.len; i++) {
        prog_kernel *k = m->kernels.data[i];
        compiler_progress(c, "kernels", i + 1, m->kernels.len);
        if (k->loops)
            continue;
        bool is_text = !k->func && !k->node; /* its plain loops have lost those operands already */
        if (!lower(c, k))
            return false;
        for (uint32_t n = 0; n < k->literals.len && !is_text; n++)
            prog_drop_param(c, k->loops, k->literals.data[n].param, k->literals.data[n].data);
    }
    return true;
}

bool prog_print_schedules(compiler *c, writer *w, const prog_module *m)
{
    for (uint32_t i = 0; i < m->kernels.len; i++) {
        const prog_kernel *k = m->kernels.data[i];
        w_fmt(w, "%s// %s%s\n", i ? "\n" : "", k->name, k->by_target ? ": loops by the target" : "");
        if (!k->by_target && (k->func || k->node) && !te_print_scheduled(c, k->func, k->node, k->target, w))
            return false;
    }
    return true;
}
