/* SPDX-License-Identifier: Apache-2.0 */
/* Finds a placement within a given size, or proves by search that there is none. Blocks are placed by rising offset,
 * each as low as the blocks before it allow: every solution can be pushed down to one like this. A branch of the search
 * ends in three cases: the blocks of a layer no longer fit above what is placed; a block would be left out that fits
 * below the next one; a block lies below that nothing can lift. If no unplaced block lives across a point in time, both
 * sides are searched separately. Several orders of choice take turns, each time with twice as many steps, so that an
 * unlucky order costs little. */
#include "plan/facts.h"

#include <stdlib.h>
#include <string.h>

#define EXACT_ORDERS 3u
#define FIRST_STEPS  UINT64_C(500000)

typedef struct exact_undo {
    uint32_t block;
    uint64_t low;
} exact_undo;

typedef struct exact_choice {
    uint64_t low;
    uint32_t rank, block;
} exact_choice;

/* Blocks that are not placed and share no layer with others that are not. */
typedef struct exact_part {
    const uint32_t *blocks; /* in the order of choice */
    uint32_t n;
    uint32_t first, last; /* layers */
} exact_part;

typedef struct exact {
    arena *a;
    const plan_placing *x;
    uint32_t *rank;         /* of each block in the order of choice */
    uint64_t *low;          /* of each block: no lower offset is free */
    uint64_t *rest, *saved; /* of each layer: bytes not placed, bytes that may lie in others */
    uint64_t *from;         /* of each layer: where what is not placed may begin; for has_room */
    uint32_t *crosses;      /* of each layer: blocks not placed that begin before it and live in it */
    uint64_t size;
    uint64_t steps; /* that are left */
    bool ended;     /* by the steps */
    VEC(exact_undo) lows;
    VEC(exact_choice) choices; /* of the parts at hand */
    VEC(uint32_t) trail; /* blocks that are placed */
    VEC(uint32_t) lists; /* blocks of the parts at hand; what it was before it grew stays in the arena, for callers */
} exact;

static uint64_t align_up(uint64_t v, uint64_t align)
{
    return (v + align - 1) / align * align;
}

/* --- one order --- */

static bool count_steps(exact *e, uint64_t n)
{
    e->ended |= e->steps < n;
    e->steps -= e->ended ? 0 : n;
    return !e->ended;
}

static void put(exact *e, uint32_t i)
{
    plan_block *block = &e->x->b->data[i];
    block->offset = e->low[i];
    for (uint32_t t = block->first; t <= block->last; t++) {
        e->rest[t] -= block->bytes;
        e->crosses[t] -= t > block->first;
    }
    e->x->placed[i] = true;
    vec_push(e->a, &e->trail, i);
}

static void take_back(exact *e, uint32_t trail, uint32_t lows)
{
    while (e->lows.len > lows) {
        exact_undo u = vec_pop(&e->lows);
        e->low[u.block] = u.low;
    }
    while (e->trail.len > trail) {
        uint32_t i = vec_pop(&e->trail);
        const plan_block *block = &e->x->b->data[i];
        for (uint32_t t = block->first; t <= block->last; t++) {
            e->rest[t] += block->bytes;
            e->crosses[t] += t > block->first;
        }
        e->x->placed[i] = false;
    }
}

/* false: one of them does not fit any more. out_any: there are some. */
static bool raise_others(exact *e, uint32_t i, bool *out_any)
{
    const plan_blocks *b = e->x->b;
    const plan_meet *meets = e->x->meets[i].data;
    *out_any = false;
    for (uint32_t k = 0; k < e->x->meets[i].len; k++) {
        uint32_t o = meets[k].block;
        if (e->x->placed[o])
            continue;
        *out_any = true;
        uint64_t low = align_up(b->data[i].offset + meets[k].above, b->data[o].align);
        if (low <= e->low[o])
            continue;
        vec_push(e->a, &e->lows, ((exact_undo){o, e->low[o]}));
        e->low[o] = low;
        if (low + b->data[o].bytes > e->size)
            return false;
    }
    return true;
}

/* The lowest start that block i can still get: where its own is taken by the order of offsets, only another block
 * below it can lift it. UINT64_MAX: nothing can. */
static uint64_t lowest_start(exact *e, uint32_t i, uint64_t at, uint32_t at_rank)
{
    if (e->low[i] > at || (e->low[i] == at && (e->rank[i] >= at_rank || e->x->overlaps[i])))
        return e->low[i];
    const plan_meet *meets = e->x->meets[i].data;
    uint64_t least = UINT64_MAX;
    for (uint32_t k = 0; k < e->x->meets[i].len; k++) {
        const uint32_t o = meets[k].block;
        const uint64_t from = (e->low[o] > at ? e->low[o] : at) + meets[k].below;
        if (!e->x->placed[o] && from < least)
            least = from;
    }
    return least;
}

/* In every layer what is not placed fits above the lowest start of all that. */
static bool has_room(exact *e, const exact_part *p, uint64_t at, uint32_t at_rank)
{
    uint64_t steps = p->last - p->first + 1u;
    for (uint32_t t = p->first; t <= p->last; t++)
        e->from[t] = UINT64_MAX;
    for (uint32_t k = 0; k < p->n; k++) {
        const plan_block *block = &e->x->b->data[p->blocks[k]];
        uint64_t low = lowest_start(e, p->blocks[k], at, at_rank);
        if (low > e->size || low + block->bytes > e->size)
            return false;
        for (uint32_t t = block->first; t <= block->last; t++)
            e->from[t] = low < e->from[t] ? low : e->from[t];
        steps += block->last - block->first + 1u;
    }
    if (!count_steps(e, steps))
        return false;
    for (uint32_t t = p->first; t <= p->last; t++)
        if (e->rest[t] > 0 && e->from[t] + e->rest[t] > e->size + e->saved[t])
            return false;
    return true;
}

/* What is not placed fits below: whoever starts above it leaves it out. */
static uint64_t lowest_end(const exact *e, const exact_part *p)
{
    uint64_t end = UINT64_MAX;
    for (uint32_t k = 0; k < p->n; k++) {
        uint64_t own = e->low[p->blocks[k]] + e->x->b->data[p->blocks[k]].bytes;
        end = own < end ? own : end;
    }
    return end;
}

/* What follows starts there or above: more than that would be too much for a layer. */
static uint64_t highest_start(const exact *e, const exact_part *p)
{
    uint64_t most = UINT64_MAX;
    for (uint32_t t = p->first; t <= p->last; t++)
        if (e->rest[t] > 0 && e->size + e->saved[t] - e->rest[t] < most)
            most = e->size + e->saved[t] - e->rest[t];
    return most;
}

static bool search(exact *e, const exact_part *p, uint64_t last, uint32_t last_rank);

/* The blocks of p that are not placed, cut where none of them lives on, part by part. */
static bool search_parts(exact *e, const exact_part *p, uint64_t last, uint32_t last_rank)
{
    const uint32_t start = e->lists.len;
    bool ok = true;
    for (uint32_t from = p->first, to = p->first; ok && from <= p->last; from = to) {
        exact_part q = {.first = from};
        for (to = from + 1; to <= p->last && e->crosses[to] > 0;)
            to++;
        q.last = to - 1;
        if (to == from + 1 && e->rest[from] == 0)
            continue;
        for (uint32_t k = 0; k < p->n; k++) {
            const plan_block *block = &e->x->b->data[p->blocks[k]];
            if (!e->x->placed[p->blocks[k]] && block->first >= q.first && block->last <= q.last)
                vec_push(e->a, &e->lists, p->blocks[k]);
        }
        q.n = e->lists.len - start;
        if (q.n == 0)
            continue;
        q.blocks = e->lists.data + start;
        ok = has_room(e, &q, last, last_rank) && search(e, &q, last, last_rank);
        e->lists.len = start;
    }
    return ok;
}

/* By rising offset: what cannot wait comes first. */
static int by_low(const void *l, const void *r)
{
    const exact_choice *a = l, *b = r;
    return a->low != b->low ? (a->low < b->low ? -1 : 1) : a->rank < b->rank ? -1 : a->rank > b->rank;
}

static void collect_choices(exact *e, const exact_part *p, uint64_t last, uint32_t last_rank)
{
    const uint64_t end = lowest_end(e, p), most = highest_start(e, p);
    const uint32_t from = e->choices.len;
    for (uint32_t k = 0; k < p->n; k++) {
        const uint32_t i = p->blocks[k];
        const uint64_t low = e->low[i];
        if (low >= last && low < end && low <= most && (low > last || e->rank[i] >= last_rank || e->x->overlaps[i]))
            vec_push(e->a, &e->choices, ((exact_choice){low, e->rank[i], i}));
    }
    if (e->choices.len > from + 1)
        qsort(e->choices.data + from, e->choices.len - from, sizeof *e->choices.data, by_low);
}


static bool search(exact *e, const exact_part *p, uint64_t last, uint32_t last_rank)
{
    const uint32_t trail = e->trail.len, lows = e->lows.len, first = e->choices.len;
    collect_choices(e, p, last, last_rank);
    const uint32_t n = e->choices.len;
    bool found = false, any = true;
    for (uint32_t k = first; k < n && any && !found && !e->ended; k++) {
        const uint32_t i = e->choices.data[k].block;
        put(e, i);
        found = count_steps(e, p->n) && raise_others(e, i, &any) && search_parts(e, p, e->low[i], e->rank[i]);
        if (!found)
            take_back(e, trail, lows);
    } /* !any: nobody rests on the one that was tried, so it was not in the way */
    e->choices.len = first;
    return found;
}

/* --- orders of choice, parts that share no layer --- */

typedef struct exact_key {
    uint64_t by[3];
    uint32_t block;
} exact_key;

static int by_keys(const void *l, const void *r)
{
    const exact_key *a = l, *b = r;
    for (uint32_t k = 0; k < 3; k++)
        if (a->by[k] != b->by[k])
            return a->by[k] < b->by[k] ? 1 : -1;
    return a->block < b->block ? -1 : a->block > b->block;
}

/* Fullest layer, layers, area: what comes first decides. */
static void sort_blocks(exact *e, uint32_t *blocks, uint32_t n, uint32_t order)
{
    static const uint8_t rows[EXACT_ORDERS][3] = {{1, 2, 0}, {0, 2, 1}, {0, 1, 2}};
    exact_key *keys = arena_array(e->a, exact_key, n + 1u);
    for (uint32_t k = 0; k < n; k++) {
        const plan_block *block = &e->x->b->data[blocks[k]];
        uint64_t fullest = 0, life = block->last - block->first + 1;
        for (uint32_t t = block->first; t <= block->last; t++)
            fullest = e->rest[t] > fullest ? e->rest[t] : fullest;
        const uint64_t facts[3] = {fullest, life, life * block->bytes};
        keys[k].block = blocks[k];
        for (uint32_t i = 0; i < 3; i++)
            keys[k].by[i] = facts[rows[order][i]];
    }
    qsort(keys, n, sizeof *keys, by_keys);
    for (uint32_t k = 0; k < n; k++) {
        blocks[k] = keys[k].block;
        e->rank[blocks[k]] = k;
    }
}

/* Orders in turn, each time with twice the steps. */
static exact_result solve_part(exact *e, uint32_t *blocks, uint32_t n, uint32_t first, uint32_t last, uint64_t *steps)
{
    const exact_part p = {blocks, n, first, last};
    uint32_t order = 0;
    for (uint64_t most = FIRST_STEPS;; most += order == 0 ? most : 0) {
        const uint64_t now = most < *steps ? most : *steps;
        e->steps = now;
        e->ended = false;
        e->lists.len = 0;
        sort_blocks(e, blocks, n, order);
        bool found = has_room(e, &p, 0, 0) && search(e, &p, 0, 0);
        *steps -= now - e->steps;
        if (found || !e->ended)
            return found ? EXACT_FOUND : EXACT_NONE;
        *steps -= e->steps; /* too few for one more look */
        take_back(e, 0, 0);
        if (*steps == 0)
            return EXACT_ENDED;
        order = (order + 1) % EXACT_ORDERS;
    }
}

/* Sorted by the first layer: where a block begins behind all before it, a new part begins. */
static int by_first(const void *l, const void *r)
{
    const exact_key *a = l, *b = r;
    return a->by[0] != b->by[0] ? (a->by[0] < b->by[0] ? -1 : 1) : a->block < b->block ? -1 : a->block > b->block;
}

static void fill_layers(exact *e, uint32_t n_layers)
{
    const plan_blocks *b = e->x->b;
    e->low = arena_array(e->a, uint64_t, b->n + 1u);
    e->rank = arena_array(e->a, uint32_t, b->n + 1u);
    e->rest = arena_array(e->a, uint64_t, n_layers);
    e->from = arena_array(e->a, uint64_t, n_layers);
    e->saved = arena_array(e->a, uint64_t, n_layers);
    e->crosses = arena_array(e->a, uint32_t, n_layers);
    for (uint32_t i = 0; i < b->n; i++) {
        const plan_block *block = &b->data[i];
        for (uint32_t t = block->first; t <= block->last && block->bytes > 0; t++) {
            e->rest[t] += block->bytes;
            e->crosses[t] += t > block->first;
        }
        for (uint32_t k = 0; k < e->x->meets[i].len && block->bytes > 0; k++) {
            const plan_meet *m = &e->x->meets[i].data[k];
            const plan_block *o = &b->data[m->block];
            uint32_t from = block->first > o->first ? block->first : o->first;
            uint32_t to = block->last < o->last ? block->last : o->last;
            for (uint32_t t = from; t <= to && m->above < block->bytes; t++)
                e->saved[t] += block->bytes - m->above;
        }
    }
}

exact_result place_exact(arena *a, const plan_placing *x, uint64_t size, uint64_t *steps)
{
    exact e = {.a = a, .x = x, .size = size};
    exact_key *keys = arena_array(a, exact_key, x->b->n + 1u);
    uint32_t n = 0, n_layers = 0, *blocks = arena_array(a, uint32_t, x->b->n + 1u);
    for (uint32_t i = 0; i < x->b->n; i++) {
        if (x->b->data[i].bytes > 0)
            keys[n++] = (exact_key){{x->b->data[i].first}, i};
        n_layers = x->b->data[i].last + 1 > n_layers ? x->b->data[i].last + 1 : n_layers;
        x->b->data[i].offset = 0;
        x->placed[i] = false;
    }
    fill_layers(&e, n_layers + 1);
    if (n > 0)
        qsort(keys, n, sizeof *keys, by_first);
    for (uint32_t from = 0, to = 0; from < n; from = to) {
        uint32_t first = (uint32_t)keys[from].by[0], last = first;
        for (; to < n && keys[to].by[0] <= last; to++) {
            const plan_block *block = &x->b->data[keys[to].block];
            last = block->last > last ? block->last : last;
            blocks[to - from] = keys[to].block;
        }
        e.trail.len = e.lows.len = 0;
        exact_result r = solve_part(&e, blocks, to - from, first, last, steps);
        if (r != EXACT_FOUND)
            return r;
    }
    return EXACT_FOUND;
}
