/* SPDX-License-Identifier: Apache-2.0 */
/* reuse-in-place: a buffer that one loop nest computes element by element from another one, which nobody reads
 * afterwards, takes the other's place: same scope, type and size, every element read no later than it is written. */
#include "tir/build.h"
#include "tir/facts.h"
#include "tir/family.h"
#include "tir/node.h"
#include "tir/pass.h"
#include "tir/walk.h"

#include <string.h>

typedef struct reuse {
    compiler *c;
    tir_func *f;
    VEC(tir_stmt *) allocs;
    const tir_buffer *from, *to; /* what the rewriter at work replaces */
    bool changed;
} reuse;

/* Statements in order, annotations that only group looked through; a loop is one statement. */
typedef struct unit_list {
    VEC(tir_stmt *) all;
} unit_list;

typedef struct use_count {
    const tir_buffer *b;
    uint32_t uses, reads, stores, written; /* written: of reads, addresses through which nothing is read */
} use_count;

/* --- uses --- */

/* An operation of a device writes the whole buffer. */
static bool writes_whole(tir_expr_ref call, const tir_buffer *b)
{
    tir_expr_ref to = tir_overwritten(call);
    return to && to->kind == TIR_ADDRESS && to->u.buffer == b;
}

static void count_expr(void *ctx, tir_expr_ref e)
{
    use_count *k = ctx;
    k->written += writes_whole(e, k->b);
    k->uses += tir_is_access(e) && e->u.buffer == k->b;
    k->reads += tir_is_access(e) && e->u.buffer == k->b;
}

static void count_stmt(void *ctx, tir_stmt *s)
{
    use_count *k = ctx;
    k->uses += s->kind == TIR_STORE && s->buffer == k->b;
    k->stores += s->kind == TIR_STORE && s->buffer == k->b;
}

static use_count count(tir_stmt *s, const tir_buffer *b)
{
    use_count k = {b, 0, 0, 0, 0};
    tir_visit_stmt(s, count_stmt, count_expr, &k);
    k.reads -= k.written;
    return k;
}

static void find_alloc(void *ctx, tir_stmt *s)
{
    reuse *r = ctx;
    if (s->kind == TIR_ALLOCATE)
        vec_push(&r->c->mem, &r->allocs, s);
}

static void add_units(reuse *r, unit_list *l, tir_stmt *s)
{
    bool groups = s->kind == TIR_ALLOCATE || s->kind == TIR_ATTR || s->kind == TIR_LET;
    if (groups && (s->kind != TIR_ATTR || strncmp(s->key, "pragma_", 7) != 0)) {
        add_units(r, l, s->body);
        return;
    }
    if (s->kind != TIR_SEQ) {
        vec_push(&r->c->mem, &l->all, s);
        return;
    }
    for (uint32_t i = 0; i < s->n_stmts; i++)
        add_units(r, l, s->stmts[i]);
}

/* --- one decision --- */

/* Indices of one are indices of the other: of as many elements in other extents they would be others. */
static bool same_extents(const tir_buffer *a, const tir_buffer *b)
{
    bool same = a->rank == b->rank && tir_buffer_count(a) >= 0 && tir_buffer_count(a) == tir_buffer_count(b);
    for (uint32_t i = 0; i < a->rank && same; i++)
        same = tir_expr_equal(a->shape[i], b->shape[i]);
    return same && !a->strides && !b->strides && !a->offset && !b->offset;
}

static bool same_kind(const tir_buffer *a, const tir_buffer *b)
{
    bool scope = a->scope == b->scope && (a->scope != SCOPE_CUSTOM || strcmp(a->scope_name, b->scope_name) == 0);
    return scope && a->dt == b->dt && same_extents(a, b);
}

/* Whether `unit` writes elements of `out` in loops, none of them twice, and reads none of `in` at other places. */
static bool writes_once(reuse *r, tir_stmt *unit, const tir_buffer *in, const tir_buffer *out)
{
    const tir_buffer *params[] = {in, out};
    tir_func one = {.name = r->f->name,
                    .params = params,
                    .n_params = 2,
                    .n_inputs = 1,
                    .body = unit,
                    .index_type = r->f->index_type,
                    .loc = r->f->loc};
    return count(unit, out).stores > 0 && tir_can_alias(r->c, &one, 0, 1);
}

/* Whether `unit` computes each element of `to` from that of `from`. */
static bool is_elementwise(reuse *r, tir_stmt *unit, const tir_buffer *from, const tir_buffer *to)
{
    return count(unit, to).reads == 0 && count(unit, from).stores == 0 && writes_once(r, unit, from, to);
}

/* Stores of s to b, as often as loops run them; -1: a condition or an open extent decides. */
static int64_t stores_of(tir_stmt *s, const tir_buffer *b)
{
    int64_t n = 0, sum = 0;
    if (count(s, b).stores == 0)
        return 0;
    switch (s->kind) {
    case TIR_STORE: return s->indices[0]->type.lanes;
    case TIR_FOR:
        sum = stores_of(s->body, b);
        return sum >= 0 && tir_is_int(s->extent, &n) && i64_mul(sum, n, &n) ? n : -1;
    case TIR_SEQ:
        for (uint32_t i = 0; i < s->n_stmts && sum >= 0; i++) {
            n = stores_of(s->stmts[i], b);
            sum = n < 0 ? n : sum + n;
        }
        return sum;
    case TIR_ATTR:
    case TIR_LET:
    case TIR_ALLOCATE: return stores_of(s->body, b);
    case TIR_IF:
    case TIR_ASSERT:
    case TIR_EVALUATE: break;
    }
    return -1;
}

/* Whether `unit` begins b anew: it reads nothing of it and leaves no element as it was. It does not use the buffer
 * `other`. */
static bool fills(reuse *r, tir_stmt *unit, const tir_buffer *b, const tir_buffer *other)
{
    const use_count k = count(unit, b);
    if (k.reads > 0)
        return false;
    if (k.stores == 0) /* an operation of a device */
        return true;
    return writes_once(r, unit, other, b) && stores_of(unit, b) == tir_buffer_count(b);
}

typedef struct stmt_search {
    tir_stmt *s;
    bool found;
} stmt_search;

static void look_for_stmt(void *ctx, tir_stmt *s)
{
    stmt_search *k = ctx;
    k->found |= s == k->s;
}

static bool holds(tir_stmt *region, tir_stmt *s)
{
    stmt_search k = {s, false};
    tir_visit_stmt(region, look_for_stmt, NULL, &k);
    return k.found;
}

/* The first unit that uses b; all.len: none. */
static uint32_t first_use(const unit_list *l, const tir_buffer *b)
{
    uint32_t i = 0;
    while (i < l->all.len && count(l->all.data[i], b).uses == 0)
        i++;
    return i;
}

/* Unit `at` uses b, and none behind it does. */
static bool is_last_use(const unit_list *l, uint32_t at, const tir_buffer *b)
{
    uint32_t i = l->all.len - 1;
    while (i > at && count(l->all.data[i], b).uses == 0)
        i--;
    return i == at && count(l->all.data[at], b).uses > 0;
}

/* The buffer that dies where `to` is born, among the units of one round of a loop. A buffer may live on to the next
 * round where it is allocated outside of the loop, and a round does not begin with a unit that fills it. */
static const tir_buffer *dying(reuse *r, const unit_list *l, tir_stmt *region, bool round, const tir_buffer *to)
{
    uint32_t at = first_use(l, to);
    for (uint32_t i = 0; i < r->allocs.len && at < l->all.len; i++) {
        tir_stmt *alloc = r->allocs.data[i];
        const tir_buffer *from = alloc->buffer;
        const uint32_t total = count(r->f->body, from).uses, first = first_use(l, from);
        if (from == to || !same_kind(from, to) || total == 0 || count(region, from).uses != total)
            continue;
        if (first >= at || !is_last_use(l, at, from))
            continue;
        bool fresh = !round || holds(region, alloc) || fills(r, l->all.data[first], from, to);
        bool reaches = count(alloc->body, to).uses == count(r->f->body, to).uses;
        if (fresh && reaches && is_elementwise(r, l->all.data[at], from, to))
            return from;
    }
    return NULL;
}

/* --- rewriting --- */

static tir_expr_ref replace_access(tir_rewriter *w, tir_expr_ref e)
{
    const reuse *r = w->ctx;
    if (!tir_is_access(e) || e->u.buffer != r->from)
        return e;
    if (e->n_args == r->to->rank || e->n_args <= 1)
        return tir_node_access(w->c, e, r->to, e->n_args, e->args);
    return e;
}

static tir_stmt *replace_stmt(tir_rewriter *w, tir_stmt *s)
{
    const reuse *r = w->ctx;
    if (s->buffer != r->from)
        return s;
    return s->kind == TIR_ALLOCATE ? s->body : tir_store(w->c, r->to, s->n_indices, s->indices, s->value);
}

static bool share(reuse *r, tir_stmt *region, bool round)
{
    unit_list l = {0};
    add_units(r, &l, region);
    for (uint32_t i = 0; i < r->allocs.len; i++) {
        const tir_buffer *to = r->allocs.data[i]->buffer;
        uint32_t total = count(r->f->body, to).uses;
        if (total == 0 || count(region, to).uses != total)
            continue;
        const tir_buffer *from = dying(r, &l, region, round, to);
        if (!from)
            continue;
        r->from = to; /* the younger buffer goes, its accesses become those of the older */
        r->to = from;
        tir_rewriter w = {.c = r->c, .ctx = r, .expr = replace_access, .stmt = replace_stmt};
        r->f->body = tir_rewrite_stmt(&w, r->f->body);
        return true;
    }
    for (uint32_t i = 0; i < l.all.len; i++)
        if (l.all.data[i]->kind == TIR_FOR && share(r, l.all.data[i]->body, true))
            return true;
    return false;
}

bool tir_pass_reuse(compiler *c, tir_func *f)
{
    reuse r = {.c = c, .f = f};
    do { /* one buffer fewer each time */
        r.allocs.len = 0;
        tir_visit_stmt(f->body, find_alloc, NULL, &r);
    } while (share(&r, f->body, false));
    return true;
}
