/* SPDX-License-Identifier: Apache-2.0 */
/* CPUAccessRewrite: what a function's parameters and allocations point to is the run-time's handle of a buffer, which
 * the accelerator's calls take. Where the host itself reads or writes such a buffer it goes through the address that
 * VTABufferCPUPtr gives: a second buffer, in scope vta.cpu, that starts there and takes no memory. */
#include "tir/build.h"
#include "target/vta/pass/vta.h"
#include "tir/walk.h"

#define CPU_SCOPE "vta.cpu"
#define CPU_DATA  "buffer_data" /* attr [b] "buffer_data" = handle: where b, allocated right inside, starts */

typedef struct rewriting {
    vta_pass p;
    tir_map views; /* buffer -> its view for the host */
} rewriting;

static bool is_ours(const tir_buffer *b)
{
    return b->scope == SCOPE_GLOBAL;
}

/* The view of b; made when the first access is met. */
static const tir_buffer *view_of(rewriting *k, const tir_buffer *b)
{
    const tir_buffer *known = tir_map_get(&k->views, b);
    if (known || !is_ours(b))
        return known ? known : b;
    tir_buffer *v = arena_new(&k->p.c->mem, tir_buffer);
    *v = *b;
    v->name = intern(k->p.c->names, arena_printf(&k->p.c->mem, "%s_cpu", b->name));
    v->scope = SCOPE_CUSTOM;
    v->scope_name = intern(k->p.c->names, CPU_SCOPE);
    v->id = k->p.c->next_id++;
    tir_map_put(&k->views, b, v);
    return v;
}

static tir_stmt *bind(rewriting *k, const tir_buffer *b, tir_stmt *body)
{
    compiler *c = k->p.c;
    const tir_buffer *view = tir_map_get(&k->views, b);
    if (!view)
        return body;
    tir_expr_ref args[] = {vta_command_handle(&k->p), tir_address(c, b, 0, NULL)};
    tir_expr_ref data = tir_extern(c, "VTABufferCPUPtr", tir_scalar(DT_HANDLE), 2, args);
    return tir_attr(c, view->name, CPU_DATA, data, tir_allocate(c, view, body));
}

static tir_expr_ref rewrite_load(tir_rewriter *r, tir_expr_ref e)
{
    rewriting *k = r->ctx;
    if (e->kind != TIR_LOAD || !is_ours(e->u.buffer))
        return e;
    return tir_load(r->c, view_of(k, e->u.buffer), e->n_args, e->args);
}

static tir_stmt *rewrite_stmt(tir_rewriter *r, tir_stmt *s)
{
    rewriting *k = r->ctx;
    if (s->kind == TIR_STORE && is_ours(s->buffer))
        return tir_store(r->c, view_of(k, s->buffer), s->n_indices, s->indices, s->value);
    if (s->kind == TIR_ALLOCATE && tir_map_get(&k->views, s->buffer))
        return tir_allocate(r->c, s->buffer, bind(k, s->buffer, s->body));
    return s;
}

static void look_for_task(void *ctx, tir_stmt *s)
{
    *(bool *)ctx |= vta_is_attr(s, VTA_COPROC_SCOPE);
}

bool tir_pass_cpu_access_rewrite(compiler *c, tir_func *f)
{
    rewriting k;
    bool works = false;
    if (!vta_pass_begin(c, f, &k.p))
        return false;
    tir_visit_stmt(f->body, look_for_task, NULL, &works);
    if (!works) /* a function without tasks is the host's alone */
        return true;
    tir_map_init(&k.views, &c->mem);
    tir_rewriter r = {.c = c, .ctx = &k, .expr = rewrite_load, .stmt = rewrite_stmt};
    tir_stmt *body = tir_rewrite_stmt(&r, f->body);
    for (uint32_t i = f->n_params; i > 0; i--)
        body = bind(&k, f->params[i - 1], body);
    f->body = body;
    return true;
}
