/* SPDX-License-Identifier: Apache-2.0 */
/* The planner's story: parts, lower bound, candidate layerings, placement of each, the best one written back. */
#include "plan/facts.h"

#include <stdlib.h>
#include <string.h>

#define WORK_PER_PART 16384 /* operations below which another task costs more than it brings */

static void choose_parts(const plan_problem *p, plan_op *op)
{
    bool own_scratch = false;
    for (uint32_t i = 0; i < op->n_scratch; i++)
        own_scratch |= op->scratch[i].per_part;
    int64_t most = (int64_t)p->workers * (own_scratch ? 1 : 4), wanted = op->work / WORK_PER_PART;
    wanted = wanted < most ? wanted : most;
    wanted = wanted < op->extent ? wanted : op->extent;
    op->parts = p->split_parts && p->workers > 1 && wanted > 1 ? (uint32_t)wanted : 1;
}

/* --- constants: by falling alignment, so that gaps are few -----------------------------------------------------------
 */

typedef struct constant_key {
    uint64_t align, bytes;
    uint32_t value;
} constant_key;

static int by_alignment(const void *x, const void *y)
{
    const constant_key *a = x, *b = y;
    if (a->align != b->align)
        return a->align < b->align ? 1 : -1;
    if (a->bytes % a->align != 0 || b->bytes % b->align != 0) { /* what leaves no gap comes first */
        bool ga = a->bytes % a->align != 0, gb = b->bytes % b->align != 0;
        if (ga != gb)
            return ga ? 1 : -1;
    }
    return a->value < b->value ? -1 : a->value > b->value;
}

static uint64_t place_constants(arena *a, plan_problem *p)
{
    constant_key *keys = arena_array(a, constant_key, p->values.len);
    uint32_t n = 0;
    for (uint32_t v = 0; v < p->values.len; v++)
        if (p->values.data[v].storage == STORE_CONSTANT && p->values.data[v].parent < 0)
            keys[n++] = (constant_key){p->values.data[v].align, p->values.data[v].bytes, v};
    qsort(keys, n, sizeof *keys, by_alignment);
    uint64_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        at = (at + keys[i].align - 1) / keys[i].align * keys[i].align;
        p->values.data[keys[i].value].offset = at;
        at += keys[i].bytes;
    }
    return at;
}

/* --- candidates ------------------------------------------------------------------------------------------------------
 */

typedef struct candidate {
    uint32_t *layer;
    plan_blocks blocks;
    uint64_t bytes;
    const char *order, *heuristic;
} candidate;

static void sequential(const plan_facts *f, const uint32_t *order, uint32_t *out_layer)
{
    for (uint32_t i = 0; i < f->n_ops; i++)
        out_layer[order[i]] = i;
}

static uint64_t lower_bound(const plan_facts *f)
{
    uint64_t least = UINT64_MAX;
    uint32_t *order = arena_array(f->a, uint32_t, f->n_ops), *layer = arena_array(f->a, uint32_t, f->n_ops);
    for (uint32_t i = 0; i < order_count(); i++) {
        plan_blocks b;
        order_make(f, i, order);
        sequential(f, order, layer);
        blocks_make(f, layer, false, &b);
        least = b.peak < least ? b.peak : least;
    }
    return least;
}

static void weigh(const plan_facts *f, candidate *x)
{
    blocks_make(f, x->layer, true, &x->blocks);
    x->bytes = place_blocks(f->a, &x->blocks, &x->heuristic);
}

static uint64_t bytes_in_layer(const plan_blocks *b, uint32_t layer)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < b->n; i++)
        sum += b->data[i].first <= layer && layer <= b->data[i].last ? b->data[i].bytes : 0;
    return sum;
}

static uint64_t scratch_per_part(const plan_op *o)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < o->n_scratch; k++) {
        int64_t count = tir_buffer_count(o->scratch[k].buffer);
        sum += o->scratch[k].per_part && count > 0 ? (uint64_t)count * dtype_bytes(o->scratch[k].buffer->dt) : 0;
    }
    return sum;
}

/* Every part of an operator may need scratch of its own: fewer parts where that is what lifts a layer above the limit.
 */
static void spare_scratch(const plan_facts *f, const uint32_t *layer, uint64_t limit)
{
    for (;;) {
        arena_mark mark = arena_get_mark(f->a);
        plan_blocks b;
        plan_op *worst = NULL;
        blocks_make(f, layer, true, &b);
        for (uint32_t op = 0; op < f->n_ops && b.peak > limit; op++) {
            plan_op *o = &f->p->ops.data[op];
            uint64_t each = scratch_per_part(o);
            if (each > 0 && o->parts > 1 && bytes_in_layer(&b, layer[op]) > limit &&
                (!worst || each * o->parts > scratch_per_part(worst) * worst->parts))
                worst = o;
        }
        arena_reset(f->a, mark);
        if (!worst)
            return;
        worst->parts--;
    }
}

/* Without scratch. */
static uint64_t soonest_peak(const plan_facts *f, const uint32_t *layer)
{
    plan_blocks b;
    blocks_make(f, layer, false, &b);
    return b.peak;
}

/* The widest layering when it costs at most a tenth more than the bound; else the smallest one found. */
static candidate choose(const plan_facts *f, uint64_t bound)
{
    candidate best = {.layer = arena_array(f->a, uint32_t, f->n_ops), .order = "soonest"};
    uint64_t fine = bound + bound / 10;
    layer_soonest(f, best.layer);
    if (soonest_peak(f, best.layer) <= fine) /* only scratch is too much, if anything */
        spare_scratch(f, best.layer, fine);
    weigh(f, &best);
    uint32_t *order = arena_array(f->a, uint32_t, f->n_ops);
    for (uint32_t i = 0; i < order_count() && best.bytes > fine; i++) {
        candidate next = {.layer = arena_array(f->a, uint32_t, f->n_ops), .order = order_name(i)};
        order_make(f, i, order);
        layer_bounded(f, order, bound, next.layer);
        spare_scratch(f, next.layer, fine);
        weigh(f, &next);
        if (next.bytes < best.bytes)
            best = next;
    }
    return best;
}

/* --- results ---------------------------------------------------------------------------------------------------------
 */

static void write_back(compiler *c, const plan_facts *f, const candidate *best)
{
    plan_problem *p = f->p;
    for (uint32_t v = 0; v < f->n_values; v++) {
        plan_value *value = &p->values.data[v];
        value->first_op = value->last_op = -1;
        uint32_t root = f->root[v];
        if (p->values.data[root].storage == STORE_WORKSPACE)
            value->offset = best->blocks.of_root[root] == UINT32_MAX
                                ? 0
                                : best->blocks.data[best->blocks.of_root[root]].offset + f->start[v];
        else
            value->offset = p->values.data[root].offset + f->start[v];
        value->storage = p->values.data[root].storage;
        value->index = p->values.data[root].index;
    }
    for (uint32_t op = 0; op < f->n_ops; op++) {
        plan_op *o = &p->ops.data[op];
        o->layer = best->layer[op];
        o->scratch_offset = arena_array(&c->mem, uint64_t, o->n_scratch);
        for (uint32_t k = 0; k < o->n_scratch; k++)
            o->scratch_offset[k] = best->blocks.data[best->blocks.of_scratch[op] + k].offset;
        for (uint32_t k = 0; k < o->n_args; k++) {
            plan_value *value = &p->values.data[o->args[k]];
            value->first_op = value->first_op < 0 ? (int32_t)op : value->first_op;
            value->last_op = (int32_t)op;
        }
    }
}

static void write_layers(compiler *c, const plan_facts *f, const uint32_t *layer, plan *out)
{
    out->n_layers = layer_count(f, layer);
    uint32_t *len = arena_array(&c->mem, uint32_t, out->n_layers);
    const uint32_t **rows = arena_array(&c->mem, const uint32_t *, out->n_layers);
    for (uint32_t op = 0; op < f->n_ops; op++)
        len[layer[op]]++;
    for (uint32_t l = 0; l < out->n_layers; l++) {
        uint32_t *row = arena_array(&c->mem, uint32_t, len[l]), n = 0;
        for (uint32_t op = 0; op < f->n_ops; op++)
            if (layer[op] == l)
                row[n++] = op;
        rows[l] = row;
    }
    out->layers = rows;
    out->layer_len = len;
}

bool plan_memory(compiler *c, plan_problem *p, plan *out)
{
    arena tmp;
    arena_init(&tmp);
    plan_facts f;
    plan_prepare(c, p);
    p->workers = p->workers > 0 ? p->workers : 1;
    for (uint32_t op = 0; op < p->ops.len; op++)
        choose_parts(p, &p->ops.data[op]);
    facts_collect(&f, &tmp, p);
    *out = (plan){.problem = p, .constant_bytes = place_constants(&tmp, p)};
    out->lower_bound_bytes = lower_bound(&f);
    candidate best = choose(&f, out->lower_bound_bytes);
    out->workspace_bytes = best.bytes;
    out->order = best.order;
    out->heuristic = best.heuristic;
    write_layers(c, &f, best.layer, out);
    write_back(c, &f, &best);
    arena_free(&tmp);
    return true;
}
