/* SPDX-License-Identifier: Apache-2.0 */
/* share-scratch: allocations of one element type whose bodies lie apart become one, as large as the largest: the plan
 * gives scratch its space for the whole kernel. Runs on flat accesses, when storage is decided. */
#include "tir/build.h"
#include "tir/node.h"
#include "tir/pass.h"
#include "tir/map.h"
#include "tir/walk.h"

typedef struct shared {
    const tir_buffer *buffer; /* the first of them */
    dtype dt;
    int64_t count;
    uint32_t users; /* allocations around the statement at hand that have it */
} shared;

typedef struct sharer {
    compiler *c;
    VEC(shared) list;
    tir_map of; /* allocation's buffer -> number of its shared one, plus 1 */
    const tir_buffer **made;
    uint32_t parallel;
} sharer;

static bool is_flat(const tir_buffer *b)
{
    return b->scope == SCOPE_GLOBAL && !b->strides && !b->offset && tir_buffer_count(b) > 0;
}

static uint32_t find_free(sharer *k, const tir_buffer *b)
{
    uint32_t i = 0;
    while (i < k->list.len && (k->list.data[i].users > 0 || k->list.data[i].dt != b->dt))
        i++;
    if (i == k->list.len)
        vec_push(&k->c->mem, &k->list, ((shared){.buffer = b, .dt = b->dt}));
    return i;
}

static void gather(sharer *k, tir_stmt *s)
{
    const bool parallel = s->kind == TIR_FOR && s->for_kind == FOR_PARALLEL;
    uint32_t taken = UINT32_MAX;
    if (s->kind == TIR_ALLOCATE && is_flat(s->buffer) && k->parallel == 0) {
        taken = find_free(k, s->buffer);
        shared *x = &k->list.data[taken];
        x->users++;
        x->count = tir_buffer_count(s->buffer) > x->count ? tir_buffer_count(s->buffer) : x->count;
        tir_map_put(&k->of, s->buffer, (void *)((uintptr_t)taken + 1));
    }
    k->parallel += parallel;
    if (s->body)
        gather(k, s->body);
    if (s->orelse)
        gather(k, s->orelse);
    for (uint32_t i = 0; i < s->n_stmts; i++)
        gather(k, s->stmts[i]);
    k->parallel -= parallel;
    if (taken != UINT32_MAX)
        k->list.data[taken].users--;
}

static const tir_buffer *replaced(sharer *k, const tir_buffer *b)
{
    const void *at = b ? tir_map_get(&k->of, b) : NULL;
    return at ? k->made[(uintptr_t)at - 1] : NULL;
}

static tir_expr_ref share_access(tir_rewriter *r, tir_expr_ref e)
{
    const tir_buffer *b = tir_is_access(e) ? replaced(r->ctx, e->u.buffer) : NULL;
    return b ? tir_node_access(r->c, e, b, e->n_args, e->args) : e;
}

static tir_stmt *share_stmt(tir_rewriter *r, tir_stmt *s)
{
    const tir_buffer *b = replaced(r->ctx, s->buffer);
    if (!b)
        return s;
    return s->kind == TIR_ALLOCATE ? s->body : tir_store(r->c, b, s->n_indices, s->indices, s->value);
}

bool tir_pass_share_scratch(compiler *c, tir_func *f)
{
    sharer k = {.c = c};
    tir_rewriter r = {.c = c, .ctx = &k, .expr = share_access, .stmt = share_stmt};
    tir_map_init(&k.of, &c->mem);
    gather(&k, f->body);
    k.made = arena_array(&c->mem, const tir_buffer *, k.list.len + 1u);
    for (uint32_t i = 0; i < k.list.len; i++)
        k.made[i] = tir_buffer_static(c, k.list.data[i].buffer->name, k.list.data[i].dt, 1, &k.list.data[i].count,
                                      SCOPE_GLOBAL);
    f->body = tir_rewrite_stmt(&r, f->body);
    for (uint32_t i = k.list.len; i-- > 0;)
        f->body = tir_allocate(c, k.made[i], f->body);
    return true;
}
