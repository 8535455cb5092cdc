/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about a finished function that the plan builds on: how far it can be divided, what scratch it needs, and
 * whether two functions are the same. What may share storage is in alias.c. */
#include "tir/build.h"
#include "tir/facts.h"
#include "tir/linear.h"
#include "tir/node.h"
#include "tir/walk.h"

#include <stdlib.h>
#include <string.h>

/* --- parallelism and scratch --- */

enum { PARALLEL_UNKNOWN = 1 << 20 }; /* of a loop whose extent nothing bounds */

typedef struct parallel_scan {
    const tir_func *f;
    tir_bounds *bounds; /* what was asserted before the loop */
    tir_stmt *loop; /* the outermost parallel loop that encloses the stores seen so far */
    tir_stmt *inside;
    bool outside; /* a store that no parallel loop encloses, or another one */
} parallel_scan;

static bool is_shared(const tir_func *f, const tir_buffer *b)
{
    (void)f;
    return b->scope == SCOPE_GLOBAL;
}

static void scan_parallel(parallel_scan *p, tir_stmt *s)
{
    bool enters = s->kind == TIR_FOR && s->for_kind == FOR_PARALLEL && !p->inside;
    if (enters)
        p->inside = s;
    bool effect = s->kind == TIR_EVALUATE || (s->kind == TIR_STORE && is_shared(p->f, s->buffer));
    if (effect) {
        p->outside |= !p->inside || (p->loop && p->loop != p->inside);
        p->loop = p->inside;
    }
    if (s->kind == TIR_ASSERT && !p->inside)
        bounds_push_cond(p->bounds, s->cond, true);
    if (s->body)
        scan_parallel(p, s->body);
    if (s->orelse)
        scan_parallel(p, s->orelse);
    for (uint32_t i = 0; i < s->n_stmts; i++)
        scan_parallel(p, s->stmts[i]);
    if (enters)
        p->inside = NULL;
}

bool tir_ends_early(const tir_stmt *loop)
{
    const tir_stmt *b = loop->body;
    return loop->for_kind == FOR_SERIAL && b && b->kind == TIR_IF && !b->orelse && !tir_has_extern(b->cond) &&
           !tir_uses_var(b->cond, loop->var);
}

int64_t tir_parallel_extent(compiler *c, const tir_func *f)
{
    parallel_scan p = {.f = f, .bounds = tir_bounds_new(c)};
    scan_parallel(&p, f->body);
    if (!p.loop || p.outside)
        return 1;
    tir_range r = tir_range_of(p.bounds, p.loop->extent);
    return !r.known_max ? PARALLEL_UNKNOWN : r.max > 0 ? r.max : 1;
}

typedef struct scratch_scan {
    compiler *c;
    VEC(tir_scratch) found;
    uint32_t depth; /* parallel loops around */
} scratch_scan;

static void scan_scratch(scratch_scan *k, tir_stmt *s)
{
    bool parallel = s->kind == TIR_FOR && s->for_kind == FOR_PARALLEL;
    if (s->kind == TIR_ALLOCATE && s->buffer->scope == SCOPE_GLOBAL)
        vec_push(&k->c->mem, &k->found, (tir_scratch){s->buffer, k->depth > 0});
    k->depth += parallel;
    if (s->body)
        scan_scratch(k, s->body);
    if (s->orelse)
        scan_scratch(k, s->orelse);
    for (uint32_t i = 0; i < s->n_stmts; i++)
        scan_scratch(k, s->stmts[i]);
    k->depth -= parallel;
}

uint32_t tir_find_scratch(compiler *c, const tir_func *f, const tir_scratch **out)
{
    scratch_scan k = {.c = c};
    scan_scratch(&k, f->body);
    *out = k.found.data;
    return k.found.len;
}
