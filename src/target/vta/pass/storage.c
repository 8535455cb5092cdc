/* SPDX-License-Identifier: Apache-2.0 */
/* EarlyRewrite and StorageRewrite: buffers of one scratchpad become one allocation and must fit the device, all virtual
 * threads counted; those that are not in use at one time share their place. Tokens let every task wait for the one
 * before it in another queue, so that what the program does last with a buffer is over before it does something with
 * the next one there. EarlyRewrite first lets element-wise stages share a buffer, which the accelerator's ALU asks for.
 */
#include "tir/build.h"
#include "target/vta/pass/storage.h"
#include "tir/walk.h"

#include <inttypes.h>

/* --- how long a buffer is in use --- */

typedef struct life {
    const tir_buffer *b;
    int64_t now, first, last;
    bool inside; /* its allocation */
} life;

static void note_use(void *ctx, tir_expr_ref e)
{
    life *k = ctx;
    if (!tir_is_access(e) || e->u.buffer != k->b)
        return;
    k->first = k->now < k->first ? k->now : k->first;
    k->last = k->now > k->last ? k->now : k->last;
}

static void note_uses(void *ctx, tir_expr_ref e)
{
    tir_visit_expr(e, note_use, ctx);
}

/* Statements are numbered in order. What is used in a loop around which it is allocated is in use in all of it: one
 * iteration may leave it to the next. */
static void live(life *k, tir_stmt *s)
{
    life outside = *k;
    bool inside = k->inside;
    tir_stmt_exprs(s, note_uses, k);
    if (s->kind == TIR_STORE && s->buffer == k->b) {
        k->first = k->now < k->first ? k->now : k->first;
        k->last = k->now;
    }
    k->inside |= s->kind == TIR_ALLOCATE && s->buffer == k->b;
    if (s->body)
        live(k, s->body);
    if (s->orelse)
        live(k, s->orelse);
    for (uint32_t i = 0; i < s->n_stmts; i++)
        live(k, s->stmts[i]);
    if (!s->body && s->n_stmts == 0)
        k->now++;
    if (s->kind == TIR_FOR && inside && (k->first < outside.first || k->last > outside.last)) {
        k->first = outside.now < k->first ? outside.now : k->first;
        k->last = k->now - 1;
    }
    k->inside = inside;
}

/* --- placing --- */

static bool place(storage *st, region *r, tir_stmt *s, placed **out)
{
    vta_pass *p = &st->p;
    enum vta_mem m;
    int64_t count = tir_buffer_count(s->buffer), others;
    life l = {.b = s->buffer, .first = INT64_MAX, .last = -1};
    *out = NULL;
    if (!vta_scratchpad(s->buffer, &m))
        return true;
    if (s->buffer->rank != 1 || s->buffer->strides || s->buffer->offset || count < 0)
        return vta_error(
            p, "buffer '%s' in %s has no constant size in one dimension: run flatten, and give symbols a bound",
            s->buffer->name, vta_scope_name(m));
    if (!vta_holds(p, m, s->buffer->dt))
        return vta_error(p, "buffer '%s' holds %s; %s holds signed values of %u bits", s->buffer->name,
                         dtype_name(s->buffer->dt), vta_scope_name(m), p->g.width[m]);
    int64_t lanes = p->g.lanes[m];
    live(&l, p->f->body);
    placed *x = arena_new(&p->c->mem, placed);
    *x = (placed){.b = s->buffer, .memory = m, .size = count / lanes + (count % lanes != 0)};
    x->first = l.first;
    x->last = l.last;
    tir_map_put(&st->homes, s->buffer, x);
    vec_push(&p->c->mem, &r->all, x);
    if (!storage_put(st, r, r->all.len - 1, &others) && !st->large) {
        st->large = x;
        st->full = r;
        st->beside = others;
    }
    *out = x;
    return true;
}

/* Once all buffers are known, so that the hint can look at all of them. */
static bool report_large(storage *st)
{
    vta_pass *p = &st->p;
    const placed *x = st->large;
    const int64_t bytes = p->g.elem_bytes[x->memory], threads = st->full->threads;
    const char *each =
        threads == 1 ? "" : arena_printf(&p->c->mem, ", for each of %" PRId64 " virtual threads", threads);
    const char *beside = st->beside ? arena_printf(&p->c->mem, ", and other buffers there take %" PRId64,
                                                   st->beside * bytes)
                                    : "";
    (void)vta_error(p, "buffer '%s' needs %" PRId64 " bytes in %s%s%s; the device has %" PRId64, x->b->name,
                    x->size * bytes, vta_scope_name(x->memory), each, beside, p->g.depth[x->memory] * bytes);
    storage_hint(st);
    return false;
}

/* x's buffer, as large as all that the region holds beside it. */
static const tir_buffer *make_home(storage *st, const region *r, const placed *x)
{
    compiler *c = st->p.c;
    tir_buffer *b = arena_new(&c->mem, tir_buffer);
    tir_expr_ref size = tir_int(c, x->b->shape[0]->type.dt, r->most[x->memory] * st->p.g.lanes[x->memory]);
    *b = *x->b;
    b->shape = arena_copy(&c->mem, &size, sizeof size, _Alignof(tir_expr_ref));
    return b;
}

/* One allocation per scratchpad for all that the region holds, in the order of their first buffers. */
static tir_stmt *open_region(storage *st, region *r, tir_stmt *body)
{
    const tir_buffer *homes[VTA_MEM_COUNT] = {NULL}, *order[VTA_MEM_COUNT];
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->all.len; i++) {
        placed *x = r->all.data[i];
        if (!homes[x->memory])
            order[n++] = homes[x->memory] = make_home(st, r, x);
        x->home = homes[x->memory];
    }
    while (n)
        body = tir_allocate(st->p.c, order[--n], body);
    return body;
}

static tir_stmt *collect(storage *st, region *r, tir_stmt *s);

static tir_stmt *collect_threads(storage *st, region *r, tir_stmt *s)
{
    int64_t n;
    region *inner = arena_new(&st->p.c->mem, region);
    *inner = (region){.outer = r, .threads = r->threads};
    if (!tir_is_int(s->extent, &n) || n < 1 || !i64_mul(n, r->threads, &inner->threads)) {
        (void)vta_error(&st->p, "the number of virtual threads of '%s' is not a constant", s->var->name);
        return s;
    }
    struct tir_stmt *copy = tir_node_copy(st->p.c, s);
    vec_push(&st->p.c->mem, &st->regions, inner);
    tir_stmt *body = collect(st, inner, s->body);
    copy->body = open_region(st, inner, body);
    return copy;
}

/* s without its allocations, which are placed. */
static tir_stmt *collect(storage *st, region *r, tir_stmt *s)
{
    compiler *c = st->p.c;
    placed *x = NULL;
    if (!st->p.ok)
        return s;
    if (s->kind == TIR_FOR && s->for_kind == FOR_VTHREAD)
        return collect_threads(st, r, s);
    if (s->kind == TIR_ALLOCATE && (!place(st, r, s, &x) || x))
        return collect(st, r, s->body);
    if (s->kind == TIR_SEQ) {
        tir_stmt **all = arena_array(&c->mem, tir_stmt *, s->n_stmts);
        for (uint32_t i = 0; i < s->n_stmts; i++)
            all[i] = collect(st, r, s->stmts[i]);
        return tir_seq(c, s->n_stmts, all);
    }
    if (!s->body)
        return s;
    struct tir_stmt *copy = tir_node_copy(c, s);
    copy->body = collect(st, r, s->body);
    copy->orelse = s->orelse ? collect(st, r, s->orelse) : NULL;
    return copy;
}

/* --- rewriting --- */

static tir_expr_ref moved(storage *st, const placed *x, tir_expr_ref at)
{
    tir_expr_ref by = tir_int(st->p.c, at->type.dt, x->at * st->p.g.lanes[x->memory]);
    return tir_add(st->p.c, at, by);
}

static tir_expr_ref move_access(tir_rewriter *r, tir_expr_ref e)
{
    storage *st = r->ctx;
    const placed *x = tir_is_access(e) ? tir_map_get(&st->homes, e->u.buffer) : NULL;
    if (!x || !x->home)
        return e;
    tir_expr_ref at = moved(st, x, e->n_args ? e->args[0] : vta_int(&st->p, 0));
    return tir_node_access(r->c, e, x->home, 1, &at);
}

static tir_stmt *move_store(tir_rewriter *r, tir_stmt *s)
{
    storage *st = r->ctx;
    const placed *x = s->kind == TIR_STORE ? tir_map_get(&st->homes, s->buffer) : NULL;
    if (!x || !x->home)
        return s;
    tir_expr_ref at = moved(st, x, s->indices[0]);
    return tir_store(r->c, x->home, 1, &at, s->value);
}

bool tir_pass_vta_storage_rewrite(compiler *c, tir_func *f)
{
    storage st = {.full = NULL};
    region all = {.threads = 1};
    if (!vta_pass_begin(c, f, &st.p))
        return false;
    tir_map_init(&st.homes, &c->mem);
    vec_push(&c->mem, &st.regions, &all);
    tir_stmt *body = collect(&st, &all, f->body);
    if (st.p.ok && st.large)
        return report_large(&st);
    if (!st.p.ok)
        return false;
    tir_rewriter r = {.c = c, .ctx = &st, .expr = move_access, .stmt = move_store};
    f->body = tir_simplify_stmt(c, tir_rewrite_stmt(&r, open_region(&st, &all, body)));
    return true;
}

bool tir_pass_early_rewrite(compiler *c, tir_func *f)
{
    return tir_pass_reuse(c, f) && tir_pass_vta_storage_rewrite(c, f);
}
