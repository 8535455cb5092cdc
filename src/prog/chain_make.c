/* SPDX-License-Identifier: Apache-2.0 */
/* The program in which chains are kernels: their loops by the plan of the chain, and what they mean, the plain loops of
 * their kernels one after the other. */
#include "prog/chain.h"
#include "tir/build.h"
#include "tir/clone.h"
#include "tir/node.h"
#include "tir/pass.h"
#include "tir/walk.h"

/* --- meaning --- */

typedef struct meaning {
    const prog_links *l;
    const prog_chain *x;
    const tir_buffer **whole; /* of each value of the program: the buffer for those that live inside */
    const prog_step *step;    /* whose loops are rewritten */
} meaning;

static const tir_buffer *stands_for(const meaning *k, const tir_buffer *b)
{
    const tir_func *f = k->step->kernel->plain;
    uint64_t at;
    uint32_t p = 0;
    while (p < f->n_params && f->params[p] != b)
        p++;
    if (p == f->n_params)
        return NULL;
    uint32_t v = k->step->args[p], root = prog_root(k->l->f, v, &at);
    if (k->whole[root])
        return k->whole[root];
    for (uint32_t i = 0; i < k->x->args.len; i++)
        if (k->x->args.data[i] == v || (k->x->args.data[i] == root && i >= k->x->n_in))
            return k->x->params.data[i];
    return NULL;
}

static tir_expr_ref move_access(tir_rewriter *r, tir_expr_ref e)
{
    const tir_buffer *b = tir_is_access(e) ? stands_for(r->ctx, e->u.buffer) : NULL;
    if (!b)
        return e;
    if (b->rank == e->u.buffer->rank && b->rank == e->n_args)
        return tir_node_access(r->c, e, b, e->n_args, e->args);
    tir_expr_ref flat = tir_access_is_flat(e->u.buffer, e->n_args) || e->n_args == 0
                            ? (e->n_args ? e->args[0] : tir_i64(r->c, 0))
                            : tir_flat_index(r->c, DT_I64, e->u.buffer, e->args);
    return tir_node_access(r->c, e, b, 1, &flat);
}

static tir_stmt *move_store(tir_rewriter *r, tir_stmt *s)
{
    const tir_buffer *b = s->kind == TIR_STORE ? stands_for(r->ctx, s->buffer) : NULL;
    if (!b)
        return s;
    if (b->rank == s->buffer->rank && b->rank == s->n_indices)
        return tir_store(r->c, b, s->n_indices, s->indices, s->value);
    tir_expr_ref flat = tir_access_is_flat(s->buffer, s->n_indices) || s->n_indices == 0
                            ? (s->n_indices ? s->indices[0] : tir_i64(r->c, 0))
                            : tir_flat_index(r->c, DT_I64, s->buffer, s->indices);
    return tir_store(r->c, b, 1, &flat, s->value);
}

/* A rank-0 or rank-1 buffer takes the flat index as its own. */
static const tir_buffer *whole_buffer(compiler *c, const tir_buffer *b)
{
    int64_t count = tir_buffer_count(b);
    return tir_buffer_static(c, b->name, b->dt, 1, &count, SCOPE_GLOBAL);
}

static tir_func *meaning_of(compiler *c, const prog_links *l, const prog_chain *x)
{
    meaning k = {.l = l, .x = x, .whole = arena_array(&c->mem, const tir_buffer *, l->f->values.len)};
    tir_rewriter r = {.c = c, .ctx = &k, .expr = move_access, .stmt = move_store};
    const uint32_t n = x->last - x->first + 1;
    tir_stmt **parts = arena_array(&c->mem, tir_stmt *, n);
    tir_func *f = arena_new(&c->mem, tir_func);
    *f = (tir_func){.params = x->params.data, .n_params = x->params.len, .n_inputs = x->n_in};
    f->index_type = DT_I64;
    for (uint32_t i = 0; i < n; i++) {
        k.step = &l->f->steps.data[l->list.data[x->first + i].step];
        const tir_func *plain = k.step->kernel->plain;
        const uint32_t result = k.step->args[k.step->n_in];
        if (prog_chain_hides(l, x, result))
            k.whole[result] = whole_buffer(c, plain->params[k.step->n_in]);
        parts[i] = tir_rewrite_stmt(&r, tir_clone_stmt(c, plain->body, NULL, NULL));
        f->macs += plain->macs;
        f->loc = plain->loc;
    }
    f->body = tir_seq(c, n, parts);
    for (uint32_t v = l->f->values.len; v-- > 0;)
        if (k.whole[v])
            f->body = tir_allocate(c, k.whole[v], f->body);
    return f;
}

/* --- the kernel --- */

static bool run_passes(compiler *c, tir_func *f)
{
    tir_module m = {.c = c};
    vec_push(&c->mem, &m.funcs, f);
    return tir_run_passes(c, &m, NULL, false, NULL) && tir_run_passes(c, &m, "share-scratch", false, NULL);
}

static bool make_kernel(compiler *c, const prog_links *l, const prog_chain *x, prog_module *to, prog_kernel **out)
{
    prog_kernel *k = arena_new(&c->mem, prog_kernel);
    const prog_kernel *one = l->f->steps.data[l->list.data[x->last].step].kernel;
    *k = (prog_kernel){.name = intern(c->names, arena_printf(&c->mem, "fused_stream_%u", to->kernels.len)),
                       .kind = "stream",
                       .target = one->target,
                       .plain = meaning_of(c, l, x),
                       .backend = one->backend};
    k->loops = tir_chain_make(c, &x->lines, k->name, x->params.len, x->params.data, x->n_in);
    k->plain->name = k->name;
    if (!run_passes(c, k->loops))
        return false;
    k->loops->target = one->target; /* without what was said for lines */
    vec_push(&c->mem, &to->kernels, k);
    *out = k;
    return true;
}

/* --- the program --- */

static bool is_view_of_result(const prog_links *l, const prog_chain *x, const prog_step *s)
{
    uint64_t at;
    const uint32_t root = prog_root(l->f, s->args[0], &at);
    for (uint32_t i = x->n_in; i < x->args.len; i++)
        if (x->args.data[i] == root)
            return true;
    return false;
}

/* Views in the chain: those of operands before it, those of results behind it, no others. */
static void keep_views(compiler *c, const prog_links *l, const prog_chain *x, bool of_results, prog_block *to)
{
    uint64_t at;
    for (uint32_t i = l->list.data[x->first].step; i <= l->list.data[x->last].step; i++) {
        const prog_step *s = &l->f->steps.data[i];
        if (s->kind == STEP_VIEW && is_view_of_result(l, x, s) == of_results &&
            !prog_chain_hides(l, x, prog_root(l->f, s->args[0], &at)))
            vec_push(&c->mem, to, *s);
    }
}

static bool add_chain(compiler *c, const prog_links *l, const prog_chain *x, prog_module *m, prog_block *to)
{
    const prog_step *last = &l->f->steps.data[l->list.data[x->last].step];
    prog_step s = {.kind = STEP_KERNEL, .args = x->args.data, .n_args = x->args.len, .n_in = x->n_in, .loc = last->loc};
    writer w;
    VEC(src_loc) nodes = {0};
    writer_init(&w, &c->mem);
    for (uint32_t i = x->first; i <= x->last; i++) {
        const prog_step *part = &l->f->steps.data[l->list.data[i].step];
        if (part->source && *part->source)
            w_fmt(&w, "%s%s", w.len ? ", " : "", part->source);
        for (uint32_t k = 0; k < part->n_nodes; k++)
            vec_push(&c->mem, &nodes, part->nodes[k]);
    }
    s.source = w.len ? w.data : "";
    s.nodes = nodes.data;
    s.n_nodes = nodes.len;
    keep_views(c, l, x, false, to);
    if (!make_kernel(c, l, x, m, &s.kernel))
        return false;
    vec_push(&c->mem, to, s);
    keep_views(c, l, x, true, to);
    return true;
}

bool prog_with_chains(compiler *c, const prog_links *l, uint32_t n, const prog_chain *chains, prog_module **out)
{
    prog_module *m = arena_new(&c->mem, prog_module);
    prog_func *f = arena_new(&c->mem, prog_func);
    *m = *l->m;
    *f = *l->f;
    m->funcs.data = NULL;
    m->funcs.len = m->funcs.cap = m->kernels.len = m->kernels.cap = 0;
    m->kernels.data = NULL;
    f->steps = (prog_block){0};
    for (uint32_t i = 0; i < l->m->funcs.len; i++)
        vec_push(&c->mem, &m->funcs, l->m->funcs.data[i] == l->f ? f : l->m->funcs.data[i]);
    for (uint32_t i = 0; i < l->m->kernels.len; i++)
        vec_push(&c->mem, &m->kernels, l->m->kernels.data[i]);
    for (uint32_t i = 0, k = 0; i < l->f->steps.len; i++) {
        if (k == n || i != l->list.data[chains[k].first].step) {
            vec_push(&c->mem, &f->steps, l->f->steps.data[i]);
            continue;
        }
        i = l->list.data[chains[k].last].step;
        if (!add_chain(c, l, &chains[k++], m, &f->steps))
            return false;
    }
    *out = m;
    return true;
}
