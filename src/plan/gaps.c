/* SPDX-License-Identifier: Apache-2.0 */
/* Finds a placement within a given size by filling gaps, for blocks that lie side by side. Placed blocks lie below all
 * others, so each layer has a floor: no block that is left can begin below it. A gap is a run of layers with the same
 * floor between higher floors. The lowest place of a layer in a gap is either filled by a block that lives inside the
 * gap and begins at its floor, or stays empty, which costs room in that layer. So the search branches where there are
 * the fewest possibilities: a layer without spare room and with only one block that fits leaves no choice. Parts that
 * do not meet in time are searched separately. States that led nowhere are remembered, in whichever way they were
 * reached. Orders of choice take turns. */
#include "plan/facts.h"

#include <stdlib.h>
#include <string.h>

#define REMEMBERED (1u << 18) /* states */
#define LOOKS      6u         /* at each block and layer of a state */
#define FIRST_RUN  1000u      /* states of all blocks, after which another order has its turn */

typedef struct gaps_undo {
    uint32_t block;
    uint64_t low;
} gaps_undo;

typedef struct gaps {
    arena *a;
    const plan_placing *x;
    uint64_t size, steps; /* steps: that are left */
    bool ended;
    uint64_t *low, *rest;       /* of each block: no lower offset is free; of each layer: bytes not placed */
    uint64_t *from;             /* of each layer: its floor; this and what follows for the part at hand */
    uint32_t *next, *count;     /* layers not covered yet; blocks that can take the lowest place */
    bool *is_low;               /* the layer is in a gap */
    uint32_t *rank;             /* of each block, among those that can take a place */
    uint64_t *failed;           /* hashes of states */
    VEC(gaps_undo) lows;
    VEC(uint32_t) trail;
    VEC(uint32_t) lists;        /* blocks of the parts at hand, by rising low */
} gaps;

/* Blocks lists[at..at + n) in layers first..last. */
typedef struct gaps_part {
    uint32_t at, n, first, last;
} gaps_part;

static uint64_t align_up(uint64_t v, uint64_t align)
{
    return (v + align - 1) / align * align;
}

static uint64_t mixed(uint64_t z) /* splitmix64 */
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static const plan_block *block_of(const gaps *g, uint32_t i)
{
    return &g->x->b->data[i];
}

static bool count_steps(gaps *g, uint64_t n)
{
    g->ended |= g->steps < n;
    g->steps -= g->ended ? 0 : n;
    return !g->ended;
}

/* --- moves --- */

static void set_low(gaps *g, uint32_t i, uint64_t low)
{
    if (low <= g->low[i])
        return;
    vec_push(g->a, &g->lows, ((gaps_undo){i, g->low[i]}));
    g->low[i] = low;
}

static void put(gaps *g, uint32_t i)
{
    plan_block *block = &g->x->b->data[i];
    const plan_meet *meets = g->x->meets[i].data;
    block->offset = g->low[i];
    for (uint32_t t = block->first; t <= block->last; t++)
        g->rest[t] -= block->bytes;
    g->x->placed[i] = true;
    vec_push(g->a, &g->trail, i);
    for (uint32_t k = 0; k < g->x->meets[i].len; k++)
        if (!g->x->placed[meets[k].block])
            set_low(g, meets[k].block, align_up(block->offset + block->bytes, block_of(g, meets[k].block)->align));
}

static void take_back(gaps *g, uint32_t trail, uint32_t lows)
{
    while (g->lows.len > lows) {
        gaps_undo u = vec_pop(&g->lows);
        g->low[u.block] = u.low;
    }
    while (g->trail.len > trail) {
        const uint32_t i = vec_pop(&g->trail);
        for (uint32_t t = block_of(g, i)->first; t <= block_of(g, i)->last; t++)
            g->rest[t] += block_of(g, i)->bytes;
        g->x->placed[i] = false;
    }
}

/* Where block i can begin when it does not begin as low as it could: on another one. UINT64_MAX: on none. */
static uint64_t next_start(const gaps *g, uint32_t i)
{
    const plan_meet *meets = g->x->meets[i].data;
    uint64_t least = UINT64_MAX;
    for (uint32_t k = 0; k < g->x->meets[i].len; k++) {
        const uint32_t o = meets[k].block;
        const uint64_t end = g->low[o] + block_of(g, o)->bytes;
        if (!g->x->placed[o] && end < least)
            least = end;
    }
    return least == UINT64_MAX ? least : align_up(least, block_of(g, i)->align);
}

/* --- what a state is --- */

/* Sorted by low: nearly so before. */
static void sort_part(gaps *g, const gaps_part *p)
{
    uint32_t *list = g->lists.data + p->at;
    for (uint32_t i = 1; i < p->n; i++) {
        const uint32_t x = list[i];
        uint32_t k = i;
        for (; k > 0 && (g->low[list[k - 1]] > g->low[x] || (g->low[list[k - 1]] == g->low[x] && list[k - 1] > x)); k--)
            list[k] = list[k - 1];
        list[k] = x;
    }
}

static uint32_t find_bare(gaps *g, uint32_t t)
{
    while (g->next[t] != t)
        t = g->next[t] = g->next[g->next[t]];
    return t;
}

/* Each layer's floor is the least low of what lives in it. false: something does not fit any more. */
static bool find_floors(gaps *g, const gaps_part *p, uint64_t *out_hash)
{
    const uint32_t *list = g->lists.data + p->at;
    uint64_t hash = p->n;
    for (uint32_t t = p->first; t <= p->last + 1; t++) {
        g->next[t] = t;
        g->from[t] = UINT64_MAX;
    }
    for (uint32_t k = 0; k < p->n; k++) {
        const plan_block *block = block_of(g, list[k]);
        const uint64_t low = g->low[list[k]];
        if (low + block->bytes > g->size)
            return false;
        hash ^= mixed(mixed(list[k] + UINT64_C(0x9e3779b97f4a7c15)) + low);
        for (uint32_t t = find_bare(g, block->first); t <= block->last; t = find_bare(g, t)) {
            if (low + g->rest[t] > g->size)
                return false;
            g->from[t] = low;
            g->next[t] = t + 1;
        }
    }
    *out_hash = hash ? hash : 1;
    return true;
}

/* Marks the layers of gaps, and counts in each who can take its lowest place. */
static void find_gaps(gaps *g, const gaps_part *p)
{
    for (uint32_t l = p->first, r; l <= p->last; l = r + 1) {
        for (r = l; r < p->last && g->from[r + 1] == g->from[l]; r++)
            continue;
        bool is_low = g->from[l] != UINT64_MAX && (l == p->first || g->from[l - 1] > g->from[l]) &&
                      (r == p->last || g->from[r + 1] > g->from[l]);
        for (uint32_t t = l; t <= r; t++) {
            g->is_low[t] = is_low;
            g->count[t] = 0;
        }
    }
    g->count[p->last + 1] = 0;
    for (uint32_t k = 0; k < p->n; k++) {
        const uint32_t i = g->lists.data[p->at + k];
        const plan_block *block = block_of(g, i);
        if (g->is_low[block->first] && g->low[i] == g->from[block->first]) {
            g->count[block->first]++;
            g->count[block->last + 1]--;
        }
    }
    for (uint32_t t = p->first + 1; t <= p->last; t++)
        g->count[t] += g->count[t - 1];
}

static bool has_room(const gaps *g, uint32_t t)
{
    return g->from[t] + g->rest[t] < g->size;
}

/* The layer whose lowest place the fewest can take, being left empty among them. */
static uint32_t choose_layer(const gaps *g, const gaps_part *p)
{
    uint32_t best = p->first, least = UINT32_MAX;
    for (uint32_t t = p->first; t <= p->last; t++) {
        const uint32_t now = g->is_low[t] ? g->count[t] + has_room(g, t) : UINT32_MAX;
        if (now < least) {
            least = now;
            best = t;
        }
    }
    return best;
}

/* --- the search --- */

static bool solve(gaps *g, gaps_part p);

static bool is_like(const plan_block *a, const plan_block *b)
{
    return a->first == b->first && a->last == b->last && a->bytes == b->bytes && a->align == b->align;
}

/* Those that can take the lowest place of layer t, alike ones once, by rank, behind the part's list. All of them: how
 * many. */
static uint32_t collect(gaps *g, const gaps_part *p, uint32_t t)
{
    const uint32_t at = g->lists.len;
    const uint64_t from = g->from[t];
    for (uint32_t k = 0; k < p->n && g->low[g->lists.data[p->at + k]] <= from; k++) {
        const uint32_t i = g->lists.data[p->at + k];
        const plan_block *block = block_of(g, i);
        if (g->low[i] != from || block->first > t || block->last < t)
            continue;
        vec_push(g->a, &g->lists, i);
        uint32_t *list = g->lists.data + at, n = g->lists.len - at - 1;
        for (; n > 0 && g->rank[list[n - 1]] > g->rank[i]; n--)
            list[n] = list[n - 1];
        list[n] = i;
    }
    return g->lists.len - at;
}

/* The part's blocks, without `but`, as one that is searched on. */
static bool solve_rest(gaps *g, const gaps_part *p, uint32_t but)
{
    gaps_part q = {g->lists.len, 0, p->first, p->last};
    for (uint32_t k = 0; k < p->n; k++)
        if (g->lists.data[p->at + k] != but)
            vec_push(g->a, &g->lists, g->lists.data[p->at + k]);
    q.n = g->lists.len - q.at;
    bool ok = solve(g, q);
    g->lists.len = q.at;
    return ok;
}

/* The lowest place of the layer stays empty: who could have taken it begins higher. */
static bool leave_empty(gaps *g, const gaps_part *p, uint32_t at, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        const uint64_t low = next_start(g, g->lists.data[at + k]);
        if (low > g->size)
            return false;
        set_low(g, g->lists.data[at + k], low);
    }
    return solve_rest(g, p, UINT32_MAX);
}

static bool branch(gaps *g, const gaps_part *p)
{
    const uint32_t t = choose_layer(g, p), at = g->lists.len, trail = g->trail.len, lows = g->lows.len;
    const bool room = has_room(g, t);
    const uint32_t n = collect(g, p, t);
    bool found = false;
    for (uint32_t k = 0; k < n && !found && !g->ended; k++) {
        const uint32_t i = g->lists.data[at + k];
        bool seen = false;
        for (uint32_t l = 0; l < k && !seen; l++)
            seen = is_like(block_of(g, g->lists.data[at + l]), block_of(g, i));
        if (seen)
            continue;
        put(g, i);
        found = solve_rest(g, p, i);
        if (!found)
            take_back(g, trail, lows);
    }
    if (!found && room && !g->ended) {
        found = leave_empty(g, p, at, n);
        if (!found)
            take_back(g, trail, lows);
    }
    g->lists.len = at;
    return found;
}

/* Cuts the part where nothing lives on; false in *out_cut: it is one. */
static bool solve_pieces(gaps *g, const gaps_part *p, bool *out_cut)
{
    const uint32_t start = g->lists.len;
    bool ok = true;
    for (uint32_t t = p->first; t <= p->last + 1; t++)
        g->count[t] = 0;
    for (uint32_t k = 0; k < p->n; k++) {
        const plan_block *block = block_of(g, g->lists.data[p->at + k]);
        if (block->last + 1 > g->count[block->first])
            g->count[block->first] = block->last + 1;
    }
    uint32_t ends[2] = {p->first, 0}; /* the first piece */
    while (ends[0] <= p->last && g->count[ends[0]] == 0)
        ends[0]++;
    uint32_t reach = 0;
    for (ends[1] = ends[0]; ends[1] == ends[0] || ends[1] < reach; ends[1]++)
        reach = g->count[ends[1]] > reach ? g->count[ends[1]] : reach;
    *out_cut = ends[1] <= p->last;
    for (uint32_t side = 0; side < 2 && *out_cut && ok; side++) {
        gaps_part q = {start, 0, side ? ends[1] : ends[0], side ? p->last : ends[1] - 1};
        for (uint32_t k = 0; k < p->n; k++) {
            const uint32_t i = g->lists.data[p->at + k];
            if ((block_of(g, i)->first >= ends[1]) == (side == 1))
                vec_push(g->a, &g->lists, i);
        }
        q.n = g->lists.len - start;
        ok = q.n == 0 || solve(g, q);
        g->lists.len = start;
    }
    return ok;
}

static bool solve(gaps *g, gaps_part p)
{
    uint64_t hash = 0;
    bool cut = false;
    if (p.n == 0)
        return true;
    if (!count_steps(g, LOOKS * ((uint64_t)p.n + p.last - p.first + 1)))
        return false;
    sort_part(g, &p);
    if (!find_floors(g, &p, &hash))
        return false;
    uint64_t *known = &g->failed[hash % REMEMBERED];
    if (*known == hash)
        return false;
    const uint32_t trail = g->trail.len, lows = g->lows.len;
    bool found = solve_pieces(g, &p, &cut);
    if (!cut) {
        find_gaps(g, &p);
        found = branch(g, &p);
    }
    if (!found)
        take_back(g, trail, lows);
    if (!found && !g->ended)
        *known = hash;
    return found;
}

/* --- orders of choice --- */

typedef struct gaps_key {
    uint64_t by;
    uint32_t block;
} gaps_key;

static int by_key(const void *l, const void *r)
{
    const gaps_key *a = l, *b = r;
    return a->by != b->by ? (a->by > b->by ? -1 : 1) : a->block < b->block ? -1 : a->block > b->block;
}

/* Layers, area, bytes; then the same with a weight by chance. */
static void rank_blocks(gaps *g, uint32_t run)
{
    const uint32_t n = g->x->b->n;
    gaps_key *keys = arena_array(g->a, gaps_key, n);
    for (uint32_t i = 0; i < n; i++) {
        const plan_block *block = block_of(g, i);
        const uint64_t life = block->last - block->first + 1;
        const uint64_t facts[3] = {life, life * block->bytes, block->bytes};
        const uint64_t chance = run < 3 ? 4 : 1 + (mixed(((uint64_t)run << 32) + i) & 7);
        keys[i] = (gaps_key){facts[run % 3] * chance, i};
    }
    qsort(keys, n, sizeof *keys, by_key);
    for (uint32_t i = 0; i < n; i++)
        g->rank[keys[i].block] = i;
}

static void begin(gaps *g, uint32_t n_layers)
{
    const plan_blocks *b = g->x->b;
    g->low = arena_array(g->a, uint64_t, b->n);
    g->rank = arena_array(g->a, uint32_t, b->n);
    g->rest = arena_array(g->a, uint64_t, n_layers);
    g->from = arena_array(g->a, uint64_t, n_layers);
    g->next = arena_array(g->a, uint32_t, n_layers);
    g->count = arena_array(g->a, uint32_t, n_layers);
    g->is_low = arena_array(g->a, bool, n_layers);
    g->failed = arena_array(g->a, uint64_t, REMEMBERED);
    for (uint32_t i = 0; i < b->n; i++) {
        g->x->placed[i] = false;
        b->data[i].offset = 0;
        for (uint32_t t = b->data[i].first; t <= b->data[i].last && b->data[i].bytes > 0; t++)
            g->rest[t] += b->data[i].bytes;
    }
}

exact_result place_gaps(arena *a, const plan_placing *x, uint64_t size, uint64_t *steps)
{
    gaps g = {.a = a, .x = x, .size = size};
    uint32_t n_layers = 0;
    for (uint32_t i = 0; i < x->b->n; i++)
        n_layers = x->b->data[i].last + 1 > n_layers ? x->b->data[i].last + 1 : n_layers;
    begin(&g, n_layers + 1);
    gaps_part all = {0, 0, 0, n_layers - 1};
    for (uint32_t i = 0; i < x->b->n; i++)
        if (x->b->data[i].bytes > 0)
            vec_push(a, &g.lists, i);
    all.n = g.lists.len;
    uint64_t most = (uint64_t)FIRST_RUN * LOOKS * (all.n + n_layers);
    for (uint32_t run = 0; *steps > 0; run++, most += run % 3 == 0 ? most / 8 : 0) {
        const uint64_t now = most < *steps ? most : *steps;
        g.steps = now;
        g.ended = false;
        rank_blocks(&g, run);
        if (solve(&g, all))
            return EXACT_FOUND;
        if (!g.ended)
            return EXACT_NONE;
        *steps -= now;
    }
    return EXACT_ENDED;
}
