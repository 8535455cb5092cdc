/* SPDX-License-Identifier: Apache-2.0 */
/* Loops of kernels for their targets: a kernel's computation gets the schedule that the rules choose (te), the schedule
 * gives loops, and the passes on loops make of them what the back end writes (tir). A hook of the target, when it has
 * one and takes the function, stands for all three; of a region, what the target's code generator writes does, and the
 * loops are a call of that. */
#include "graph/graph.h"
#include "prog/shape.h"
#include "prog/source.h"
#include "te/from_graph.h"
#include "te/te_op.h"
#include "tir/build.h"
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

/* By the schedule that the operators' rules choose; of a program that was read from text, or wants none, the loops as
 * they stand. A region that its target declines is the CPU's. */
static bool lower_by_schedule(compiler *c, const prog_module *m, prog_kernel *k, bool plain)
{
    if (k->host)
        k->target = k->host;
    if (k->func && !plain)
        return te_lower_func(c, k->func, k->name, k->target, m->records, &k->loops);
    if (k->node && !plain)
        return te_lower_node(c, k->node, k->name, k->target, m->records, &k->loops);
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

static bool lower(compiler *c, const prog_module *m, prog_kernel *k, bool plain)
{
    return (k->region || plain || lower_by_target(c, k)) && /* of regions all targets were asked before */
           (k->by_target || (lower_by_schedule(c, m, k, plain) && run_loop_passes(c, k->loops)));
}

/* --- regions whose targets write C --- */

/* The call of the C function, with the kernel's parameters and its scratch. */
static tir_func *call_of(compiler *c, const prog_kernel *k, const prog_region *r)
{
    const graph_func *f = k->func;
    const uint32_t n = f->params.len + f->results.len;
    const tir_buffer **params = arena_array(&c->mem, const tir_buffer *, n + 1u);
    tir_expr_ref *args = arena_array(&c->mem, tir_expr_ref, n + 1u);
    tir_func *loops = arena_new(&c->mem, tir_func);
    int64_t dims[TYPE_MAX_RANK], bytes = (int64_t)r->scratch;
    for (uint32_t i = 0; i < n; i++) {
        const graph_value *v = i < f->params.len ? f->params.data[i] : f->results.data[i - f->params.len];
        (void)shape_get(v->type.shape, dims);
        params[i] = tir_buffer_static(c, v->name, v->type.dt, (uint32_t)v->type.shape.rank, dims, SCOPE_GLOBAL);
        args[i] = tir_address(c, params[i], 0, NULL);
    }
    const tir_buffer *scratch = tir_buffer_static(c, "scratch", DT_U8, 1, &bytes, SCOPE_GLOBAL);
    args[n] = tir_address(c, scratch, 0, NULL);
    tir_expr_ref call = tir_extern(c, r->symbol, tir_scalar(DT_I32), n + (r->scratch > 0), args);
    tir_stmt *body = tir_attr(c, k->target->name, TIR_STATUS, tir_i64(c, 1), tir_evaluate(c, call));
    *loops = (tir_func){.name = k->name, .params = params, .n_params = n, .n_inputs = f->params.len};
    loops->index_type = DT_I64;
    loops->target = k->target;
    loops->loc = f->nodes.len ? f->nodes.data[0]->loc : src_loc_none();
    loops->macs = k->plain ? k->plain->macs : 0;
    loops->body = r->scratch > 0 ? tir_allocate(c, scratch, body) : body;
    return loops;
}

/* What its target makes of a region has the constants that are bound inside: the steps hand them over no more. */
static bool drop_bound(prog_module *m, prog_kernel *k)
{
    prog_walk w;
    for (uint32_t i = 0; i < m->funcs.len; i++)
        for (prog_step *s = prog_first_step(m->funcs.data[i], &w); s; s = prog_next_step(&w)) {
            if (s->kernel != k)
                continue;
            for (uint32_t a = s->n_in; a < s->n_args; a++)
                s->args[a - k->bound.len] = s->args[a];
            s->n_in -= k->bound.len;
            s->n_args -= k->bound.len;
        }
    k->whole = k->plain;
    k->plain = NULL;
    return true;
}

static bool has_source(const prog_kernel *k)
{
    return k->region && k->func && !k->loops && k->target->codegen;
}

static const char *symbol_of(const prog_module *m, const prog_kernel *k)
{
    return arena_printf(&m->c->mem, "%s_%s_region", m->prefix ? m->prefix : "lathe", k->name);
}

/* All regions of k's target together: one source. */
static bool generate(compiler *c, prog_module *m, uint32_t first)
{
    prog_source s = {.target = m->kernels.data[first]->target, .for_module = m->for_module};
    s.regions = arena_array(&c->mem, prog_region, m->kernels.len);
    for (uint32_t i = first; i < m->kernels.len; i++) {
        const prog_kernel *k = m->kernels.data[i];
        if (has_source(k) && k->target == s.target)
            s.regions[s.n_regions++] = (prog_region){.kernel = k, .symbol = symbol_of(m, k)};
    }
    if (!s.target->codegen(c, s.target, &s))
        return false;
    for (uint32_t i = first, r = 0; i < m->kernels.len && r < s.n_regions; i++) {
        prog_kernel *k = m->kernels.data[i];
        if (k != s.regions[r].kernel)
            continue;
        const prog_region *region = &s.regions[r++];
        if (region->declined) {
            k->target = k->host;
            k->declined = region->why;
            continue;
        }
        k->symbol = region->symbol;
        k->device = region->device;
        k->backend = s.backend ? (int32_t)s.backend : PACKAGE_BACKEND_EXTERNAL;
        k->by_target = true;
        k->loops = call_of(c, k, region);
        prog_move_constants(c, m, k, region);
        if (!tir_verify(c, k->loops))
            return false;
    }
    if (s.text)
        vec_push(&c->mem, &m->sources, s);
    return true;
}

static bool generate_sources(compiler *c, prog_module *m)
{
    bool dropped = false;
    for (uint32_t i = 0; i < m->kernels.len; i++)
        if (m->kernels.data[i]->region && !has_source(m->kernels.data[i]) && !m->kernels.data[i]->loops &&
            !lower_by_target(c, m->kernels.data[i]))
            return false;
    for (uint32_t i = 0; i < m->kernels.len; i++)
        if (has_source(m->kernels.data[i]) && !generate(c, m, i))
            return false;
    for (uint32_t i = 0; i < m->kernels.len; i++)
        if (m->kernels.data[i]->by_target && m->kernels.data[i]->bound.len > 0)
            dropped |= drop_bound(m, m->kernels.data[i]);
    if (dropped)
        prog_drop_unused(m);
    return true;
}

bool prog_schedule(compiler *c, prog_module *m)
{
    prog_drop_shapes(m); /* they are of other loops */
    if (!generate_sources(c, m))
        return false;
    for (uint32_t i = 0; i < m->kernels.len; i++) {
        prog_kernel *k = m->kernels.data[i];
        if (!compiler_progress(c, "kernels", i + 1, m->kernels.len))
            return false;
        if (k->loops)
            continue;
        const bool plain = (m->unscheduled && k->plain) || (!k->func && !k->node);
        if (!lower(c, m, k, plain))
            return false;
        for (uint32_t n = 0; n < k->literals.len && !plain; n++) /* plain loops have lost those operands already */
            prog_drop_param(c, k->loops, k->literals.data[n].param, k->literals.data[n].data);
    }
    return true;
}

bool prog_print_schedules(compiler *c, writer *w, const prog_module *m, const prog_kernel *only)
{
    const char *gap = "";
    for (uint32_t i = 0; i < m->kernels.len; i++) {
        const prog_kernel *k = m->kernels.data[i];
        if (only && k != only)
            continue;
        w_fmt(w, "%s// %s%s\n", gap, k->name, k->by_target ? ": loops by the target" : "");
        gap = "\n";
        if (!k->by_target && (k->func || k->node) &&
            !te_print_scheduled(c, k->func, k->node, k->target, m->records, w))
            return false;
    }
    return true;
}
