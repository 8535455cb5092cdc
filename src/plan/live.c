/* SPDX-License-Identifier: Apache-2.0 */
/* From a layering to blocks of memory: lifetimes of roots, in-place groups, scratch. Operators of a layer run at the
 * same time, so a value lives from the layer of its first writer to the layer of its last reader, both included. */
#include "abi/package.h"
#include "plan/facts.h"

typedef struct lifetimes {
    uint32_t *first, *last; /* of each root; first > last: not in the workspace */
    uint32_t *group;        /* union-find over roots that share storage in place */
    bool *given;            /* another root has its place from it */
} lifetimes;

static void extend(lifetimes *l, uint32_t root, uint32_t layer)
{
    l->first[root] = layer < l->first[root] ? layer : l->first[root];
    l->last[root] = layer > l->last[root] || l->last[root] == UINT32_MAX ? layer : l->last[root];
}

void segment_layers(const plan_facts *f, const uint32_t *layer, uint32_t *out)
{
    uint32_t end = 0;
    for (uint32_t op = 0, s = 0; op < f->n_ops; op++) { /* segments have operators, and follow each other */
        while (s <= f->p->ops.data[op].segment)
            out[s++] = end;
        end = layer[op] + 1 > end ? layer[op] + 1 : end;
    }
    out[f->n_segments] = end;
}

static void find_lifetimes(const plan_facts *f, const uint32_t *layer, lifetimes *l)
{
    l->first = arena_array(f->a, uint32_t, f->n_values);
    l->last = arena_array(f->a, uint32_t, f->n_values);
    l->group = arena_array(f->a, uint32_t, f->n_values);
    for (uint32_t v = 0; v < f->n_values; v++) {
        l->first[v] = l->last[v] = UINT32_MAX;
        l->group[v] = v;
    }
    uint32_t *start = arena_array(f->a, uint32_t, f->n_segments + 1u);
    segment_layers(f, layer, start);
    for (uint32_t v = 0; v < f->n_values; v++) {
        if (f->root[v] != v || !facts_in_workspace(f, v))
            continue;
        if (f->keep_first[v] != UINT32_MAX && f->readers[v].len + f->writers[v].len > 0) {
            extend(l, v, start[f->keep_first[v]]);
            extend(l, v, start[f->keep_last[v] + 1] - 1);
        }
        if (f->p->values.data[v].from_start && f->readers[v].len > 0)
            extend(l, v, 0);
        for (uint32_t k = 0; k < f->writers[v].len; k++)
            extend(l, v, layer[f->writers[v].data[k]]);
        for (uint32_t k = 0; k < f->readers[v].len; k++)
            extend(l, v, layer[f->readers[v].data[k]]);
    }
}

static uint32_t group_of(const lifetimes *l, uint32_t root)
{
    while (l->group[root] != root)
        root = l->group[root];
    return root;
}

/* `from` ends in this layer and only `op` reads it there. */
static bool dies_in(const plan_facts *f, const uint32_t *layer, const lifetimes *l, uint32_t op, uint32_t from)
{
    if (l->last[from] != layer[op] || (l->first[from] >= layer[op] && !f->p->values.data[from].from_start))
        return false;
    for (uint32_t k = 0; k < f->readers[from].len; k++)
        if (f->readers[from].data[k] != op && layer[f->readers[from].data[k]] == layer[op])
            return false;
    return true;
}

static void join_inplace(const plan_facts *f, const uint32_t *layer, lifetimes *l)
{
    bool *got = arena_array(f->a, bool, f->n_values);
    l->given = arena_array(f->a, bool, f->n_values);
    for (uint32_t i = 0; i < f->inplace.len; i++) {
        plan_inplace x = f->inplace.data[i];
        if (l->given[x.from] || got[x.to] || !dies_in(f, layer, l, x.op, x.from))
            continue;
        l->given[x.from] = got[x.to] = true;
        l->group[group_of(l, x.to)] = group_of(l, x.from);
    }
}

static void add_block(plan_blocks *b, plan_block block)
{
    b->data[b->n++] = block;
}

static void add_roots(const plan_facts *f, const lifetimes *l, plan_blocks *b)
{
    for (uint32_t v = 0; v < f->n_values; v++) {
        if (l->first[v] == UINT32_MAX)
            continue;
        uint32_t g = group_of(l, v);
        if (b->of_root[g] == UINT32_MAX) {
            b->of_root[g] = b->n;
            add_block(b, (plan_block){.bytes = f->p->values.data[g].bytes,
                                      .align = f->p->values.data[g].align,
                                      .first = l->first[v],
                                      .last = l->last[v],
                                      .id = g});
        }
        plan_block *block = &b->data[b->of_root[g]];
        block->first = l->first[v] < block->first ? l->first[v] : block->first;
        block->last = l->last[v] > block->last ? l->last[v] : block->last;
        b->of_root[v] = b->of_root[g];
    }
}

static void add_scratch(const plan_facts *f, const uint32_t *layer, const uint32_t *parts, plan_blocks *b)
{
    uint32_t id = f->n_values;
    for (uint32_t op = 0; op < f->n_ops; op++) {
        const plan_op *o = &f->p->ops.data[op];
        b->of_scratch[op] = b->n;
        for (uint32_t k = 0; k < o->n_scratch; k++) {
            uint64_t bytes = plan_scratch_bytes(o, k, parts[op]);
            add_block(
                b, (plan_block){
                       .bytes = bytes, .align = plan_align(f->p, bytes), .first = layer[op], .last = layer[op],
                       .id = id++});
        }
    }
}

static bool others_write(const plan_facts *f, const uint32_t *layer, uint32_t root, uint32_t op)
{
    for (uint32_t k = 0; k < f->writers[root].len; k++)
        if (f->writers[root].data[k] != op && layer[f->writers[root].data[k]] == layer[op])
            return true;
    return false;
}

/* Of those that are possible: whose operand ends where its result begins, with nobody else at either of them. */
static void add_overlaps(const plan_facts *f, const uint32_t *layer, const uint32_t *parts, const lifetimes *l,
                         plan_blocks *b)
{
    b->overlaps = arena_array(f->a, plan_overlap, f->overlaps.len + 1u);
    for (uint32_t i = 0; i < f->overlaps.len; i++) {
        plan_overlap x = f->overlaps.data[i];
        const uint32_t now = layer[x.op], from = b->of_root[x.from], to = b->of_root[x.to];
        if (from == to || from == UINT32_MAX || to == UINT32_MAX || l->given[x.from] || (parts && parts[x.op] != 1) ||
            b->data[from].last != now || b->data[to].first != now || !dies_in(f, layer, l, x.op, x.from) ||
            others_write(f, layer, x.from, x.op) || others_write(f, layer, x.to, x.op))
            continue;
        x.from = from;
        x.to = to;
        b->overlaps[b->n_overlaps++] = x;
    }
}

/* Bytes that may overlap in each layer: at most, where several operands meet one result. */
static uint64_t *saved_in_layers(const plan_facts *f, const uint32_t *layer, const plan_blocks *b)
{
    uint64_t *saved = arena_array(f->a, uint64_t, f->n_ops + 2u);
    for (uint32_t i = 0; i < b->n_overlaps; i++) {
        plan_overlap x = b->overlaps[i];
        x.from = b->data[x.from].id; /* as large as every root of its group */
        x.to = b->data[x.to].id;
        saved[layer[x.op]] += facts_saved(f, &x);
    }
    return saved;
}

static uint64_t peak_of(const plan_facts *f, const uint32_t *layer, const plan_blocks *b)
{
    const uint64_t *saved = saved_in_layers(f, layer, b);
    uint64_t peak = 0, sum = 0, *gain = arena_array(f->a, uint64_t, f->n_ops + 2),
             *loss = arena_array(f->a, uint64_t, f->n_ops + 2);
    for (uint32_t i = 0; i < b->n; i++) {
        gain[b->data[i].first] += b->data[i].bytes;
        loss[b->data[i].last + 1] += b->data[i].bytes;
    }
    for (uint32_t t = 0; t <= f->n_ops; t++) {
        sum = sum + gain[t] - loss[t];
        uint64_t now = sum > saved[t] ? sum - saved[t] : 0;
        peak = now > peak ? now : peak;
    }
    return peak;
}

void blocks_make(const plan_facts *f, const uint32_t *layer, const uint32_t *parts, plan_blocks *out)
{
    uint32_t most = f->n_values;
    for (uint32_t op = 0; op < f->n_ops; op++)
        most += f->p->ops.data[op].n_scratch;
    *out = (plan_blocks){.data = arena_array(f->a, plan_block, most)};
    out->of_root = arena_array(f->a, uint32_t, f->n_values);
    out->of_scratch = arena_array(f->a, uint32_t, f->n_ops);
    for (uint32_t v = 0; v < f->n_values; v++)
        out->of_root[v] = UINT32_MAX;
    lifetimes l;
    find_lifetimes(f, layer, &l);
    join_inplace(f, layer, &l);
    add_roots(f, &l, out);
    add_overlaps(f, layer, parts, &l, out);
    if (parts)
        add_scratch(f, layer, parts, out);
    out->peak = peak_of(f, layer, out);
}
