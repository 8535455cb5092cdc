/* SPDX-License-Identifier: Apache-2.0 */
/* Places of buffers in the scratchpads, and what to do about buffers that are too large: which loops to cut, and into
 * which blocks, so that every buffer fits. Cutting for the first one that overflows would only lead to the next. */
#include "tir/build.h"
#include "target/vta/pass/storage.h"
#include "tir/walk.h"

#include <inttypes.h>

/* --- places --- */

/* Elements of m that the regions around r hold for good. */
static int64_t taken_outside(const region *r, enum vta_mem m)
{
    int64_t n = 0;
    for (const region *o = r->outer; o; o = o->outer)
        n += o->most[m];
    return n;
}

static bool in_the_way(const placed *a, const placed *b)
{
    return a->memory == b->memory && a->first <= b->last && b->first <= a->last;
}

/* The lowest place in r, among its first n buffers, in which nothing lies that is in use with x. */
static int64_t find_place(const region *r, uint32_t n, const placed *x)
{
    int64_t at = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t i = 0; i < n; i++) {
            const placed *o = r->all.data[i];
            if (!in_the_way(x, o) || at >= o->at + o->size || o->at >= at + x->size)
                continue;
            at = o->at + o->size;
            moved = true;
        }
    }
    return at;
}

bool storage_put(const storage *st, region *r, uint32_t i, int64_t *out_others)
{
    placed *x = r->all.data[i];
    const enum vta_mem m = x->memory;
    int64_t total;
    x->at = find_place(r, i, x);
    r->most[m] = x->at + x->size > r->most[m] ? x->at + x->size : r->most[m];
    *out_others = x->at + taken_outside(r, m) / r->threads;
    return i64_mul(x->at + x->size, r->threads, &total) && total + taken_outside(r, m) <= (int64_t)st->p.g.depth[m];
}

/* --- what moves with what --- */

#define MOST_AXES 4u /* beyond, a hint is no help */

/* An index of `b` moves by `step` values with `loop`. */
typedef struct use {
    const tir_buffer *b;
    const tir_stmt *loop;
    int64_t step, extent;
} use;

/* Loops over one dimension of the computation: they move the same buffers by the same steps, as often. */
typedef struct axis {
    const tir_stmt *loop; /* the one that the hint names */
    int64_t extent, block;
    bool *has; /* of each use */
} axis;

typedef struct search {
    storage *st;
    VEC(tir_stmt *) loops; /* around the statement at hand */
    VEC(use) uses;
    axis axes[MOST_AXES];
    uint32_t n;
    int64_t *sizes; /* of the buffers before anything is cut, region by region */
} search;

/* Once each: unrolled loops repeat them. */
static void note_step(search *k, use u)
{
    for (uint32_t i = 0; i < k->uses.len; i++)
        if (k->uses.data[i].b == u.b && k->uses.data[i].loop == u.loop && k->uses.data[i].step == u.step)
            return;
    vec_push(&k->st->p.c->mem, &k->uses, u);
}

static void note_access(void *ctx, tir_expr_ref e)
{
    search *k = ctx;
    linear l;
    if (!tir_is_access(e) || e->n_args != 1 || !tir_map_get(&k->st->homes, e->u.buffer) ||
        !vta_linear(&k->st->p, e->args[0], &l))
        return;
    for (uint32_t i = 0; i < k->loops.len; i++) {
        use u = {.b = e->u.buffer, .loop = k->loops.data[i]};
        if (vta_take_var(&l, u.loop->var, &u.step) && u.step > 0 && tir_is_int(u.loop->extent, &u.extent))
            note_step(k, u);
    }
}

static void note_accesses(void *ctx, tir_expr_ref e)
{
    tir_visit_expr(e, note_access, ctx);
}

static void find_uses(search *k, tir_stmt *s)
{
    tir_stmt_exprs(s, note_accesses, k);
    if (s->kind == TIR_STORE && s->n_indices == 1)
        note_access(k, tir_address(k->st->p.c, s->buffer, 1, s->indices));
    if (s->kind == TIR_FOR)
        vec_push(&k->st->p.c->mem, &k->loops, s);
    if (s->body)
        find_uses(k, s->body);
    if (s->kind == TIR_FOR)
        k->loops.len--;
    if (s->orelse)
        find_uses(k, s->orelse);
    for (uint32_t i = 0; i < s->n_stmts; i++)
        find_uses(k, s->stmts[i]);
}

/* The axis of use number `from`: loops that share a buffer's step, and buffers that share a loop, until there are no
 * more. */
static void open_axis(search *k, uint32_t from)
{
    const use *all = k->uses.data;
    axis *a = &k->axes[k->n++];
    *a = (axis){.loop = all[from].loop, .extent = all[from].extent, .block = all[from].extent};
    a->has = arena_array(&k->st->p.c->mem, bool, k->uses.len);
    a->has[from] = true;
    for (bool grown = true; grown;) {
        grown = false;
        for (uint32_t i = 0; i < k->uses.len; i++)
            for (uint32_t j = 0; j < k->uses.len && !a->has[i]; j++)
                if (a->has[j] && all[i].extent == a->extent &&
                    (all[i].loop == all[j].loop || (all[i].b == all[j].b && all[i].step == all[j].step)))
                    a->has[i] = grown = true;
    }
}

/* --- sizes --- */

static int64_t elements(const search *k, const placed *x, int64_t values)
{
    const int64_t lanes = k->st->p.g.lanes[x->memory];
    return (values + lanes - 1) / lanes;
}

/* Elements of x once the axes are cut. A dimension without a border shrinks in proportion; of one with a border, as
 * windows have, the last steps go. */
static int64_t cut_size(const search *k, const placed *x, int64_t whole)
{
    int64_t size = whole;
    for (uint32_t a = 0; a < k->n; a++) {
        const axis *cut = &k->axes[a];
        for (uint32_t i = 0; i < k->uses.len; i++) {
            if (!cut->has[i] || k->uses.data[i].b != x->b)
                continue;
            const int64_t step = elements(k, x, k->uses.data[i].step);
            if (whole % (step * cut->extent) == 0)
                size = (size + cut->extent - 1) / cut->extent * cut->block;
            else
                size -= step * (cut->extent - cut->block);
            break;
        }
    }
    return size > 0 ? size : 1;
}

/* The first buffer that has no room; NULL: all have. */
static placed *first_large(search *k)
{
    int64_t others, at = 0;
    for (uint32_t r = 0; r < k->st->regions.len; r++) {
        region *all = k->st->regions.data[r];
        for (int m = 0; m < VTA_MEM_COUNT; m++)
            all->most[m] = 0;
        for (uint32_t i = 0; i < all->all.len; i++) {
            placed *x = all->all.data[i];
            x->size = cut_size(k, x, k->sizes[at++]);
            if (!storage_put(k->st, all, i, &others))
                return x;
        }
    }
    return NULL;
}

/* --- the search --- */

static axis *axis_of(search *k, uint32_t at)
{
    for (uint32_t a = 0; a < k->n; a++)
        if (k->axes[a].has[at])
            return &k->axes[a];
    return NULL;
}

/* Cuts the loop with the largest step through x, of those that can still be cut, one divisor further. */
static bool cut(search *k, const placed *x)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < k->uses.len; i++) {
        const axis *a = axis_of(k, i);
        if (k->uses.data[i].b == x->b && k->uses.data[i].extent > 1 && (a ? a->block > 1 : k->n < MOST_AXES) &&
            (best == UINT32_MAX || k->uses.data[i].step > k->uses.data[best].step))
            best = i;
    }
    if (best == UINT32_MAX)
        return false;
    if (!axis_of(k, best))
        open_axis(k, best);
    axis *a = axis_of(k, best);
    for (a->block--; a->extent % a->block != 0;)
        a->block--;
    return true;
}

/* The length of the axis's name: the loops of a reduction's identity are named after their axes. */
static int axis_length(const char *loop)
{
    size_t n = strlen(loop), tail = strlen(".init");
    return (int)(n > tail && strcmp(loop + n - tail, ".init") == 0 ? n - tail : n);
}

void storage_hint(storage *st)
{
    compiler *c = st->p.c;
    search k = {.st = st};
    const int64_t bytes = st->p.g.elem_bytes[st->large->memory], depth = st->p.g.depth[st->large->memory];
    const int64_t room = depth / st->full->threads - st->beside;
    uint32_t n = 0;
    for (uint32_t r = 0; r < st->regions.len; r++)
        n += st->regions.data[r]->all.len;
    k.sizes = arena_array(&c->mem, int64_t, n + 1);
    n = 0;
    for (uint32_t r = 0; r < st->regions.len; r++)
        for (uint32_t i = 0; i < st->regions.data[r]->all.len; i++)
            k.sizes[n++] = st->regions.data[r]->all.data[i]->size;
    find_uses(&k, st->p.f->body);
    placed *x = first_large(&k);
    while (x && cut(&k, x))
        x = first_large(&k);
    if (x || k.n == 0) {
        diag_hint(&c->diags, "compute it in blocks of at most %" PRId64 " elements of %" PRId64 " bytes",
                  room > 0 ? room : depth / st->full->threads, bytes);
        return;
    }
    writer w;
    writer_init(&w, &c->mem);
    for (uint32_t a = 0; a < k.n; a++)
        w_fmt(&w, "%s the loop '%.*s' of %" PRId64 " by %" PRId64, a ? " and" : "split",
              axis_length(k.axes[a].loop->var->name), k.axes[a].loop->var->name, k.axes[a].extent, k.axes[a].block);
    diag_hint(&c->diags, "%s, move %s out, and compute the buffer%s inside: %" PRId64 " bytes then%s", w.data,
              k.n > 1 ? "their outer parts" : "its outer part", k.n > 1 ? "s" : "", st->large->size * bytes,
              n > 1 ? ", and all buffers fit" : "");
}
