/* SPDX-License-Identifier: Apache-2.0 */
/* Offsets of blocks: first fit with gaps along several orders, then a hill climb over the best of them, then a search
 * (exact.c, then gaps.c). Blocks whose lifetimes meet must not overlap. Deterministic: ties go by number, the climb's
 * random numbers have a fixed seed, the search has steps instead of time. */
#include "plan/facts.h"

#include <stdlib.h>
#include <string.h>

typedef struct place_key {
    uint64_t major, minor;
    uint32_t index;
} place_key;

static uint64_t align_up(uint64_t v, uint64_t align)
{
    return (v + align - 1) / align * align;
}

/* --- which blocks live at the same time --- */

/* Beyond this many pairs, a few thousand blocks that all live at once, blocks are placed in the order of time alone. */
#define MOST_PAIRS 2000000u
/* Beyond this many blocks there is no search, which goes as deep as there are blocks. */
#define MOST_SEARCHED 4000u

typedef struct place_range {
    uint64_t from, to;
} place_range;

typedef struct placing {
    plan_placing p;
    place_range *near; /* room for the placed ones that live at the same time */
} placing;

static int by_start_time(const void *x, const void *y)
{
    const place_key *a = x, *b = y;
    if (a->major != b->major)
        return a->major < b->major ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

/* Blocks with bytes by the layer in which they begin. */
static place_key *in_time(arena *a, const plan_blocks *b, uint32_t *out_n)
{
    place_key *keys = arena_array(a, place_key, b->n);
    *out_n = 0;
    for (uint32_t i = 0; i < b->n; i++)
        if (b->data[i].bytes > 0)
            keys[(*out_n)++] = (place_key){b->data[i].first, 0, i};
    if (*out_n > 0)
        qsort(keys, *out_n, sizeof *keys, by_start_time);
    return keys;
}

static plan_meet *find_meet(const plan_placing *p, uint32_t one, uint32_t other)
{
    for (uint32_t k = 0; k < p->meets[one].len; k++)
        if (p->meets[one].data[k].block == other)
            return &p->meets[one].data[k];
    return NULL;
}

static void apply_overlaps(plan_placing *p)
{
    for (uint32_t i = 0; i < p->b->n_overlaps; i++) {
        const plan_overlap *x = &p->b->overlaps[i];
        plan_meet *from = find_meet(p, x->from, x->to), *to = find_meet(p, x->to, x->from);
        from->above = to->below = x->above;
        from->below = to->above = x->below;
        p->overlaps[x->from] = p->overlaps[x->to] = true;
    }
}

/* false: too many. */
static bool find_pairs(arena *a, placing *x)
{
    u32s alive = {0};
    uint32_t n, pairs = 0;
    plan_placing *p = &x->p;
    const place_key *keys = in_time(a, p->b, &n);
    p->meets = arena_array(a, struct plan_meets, p->b->n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = keys[i].index, kept = 0;
        for (uint32_t k = 0; k < alive.len; k++)
            if (p->b->data[alive.data[k]].last >= p->b->data[at].first)
                alive.data[kept++] = alive.data[k];
        alive.len = kept;
        pairs += kept;
        if (pairs > MOST_PAIRS)
            return false;
        for (uint32_t k = 0; k < kept; k++) {
            const plan_block *one = &p->b->data[at], *other = &p->b->data[alive.data[k]];
            vec_push(a, &p->meets[at], ((plan_meet){alive.data[k], one->bytes, other->bytes}));
            vec_push(a, &p->meets[alive.data[k]], ((plan_meet){at, other->bytes, one->bytes}));
        }
        vec_push(a, &alive, at);
    }
    apply_overlaps(p);
    return true;
}

/* --- first fit --- */

static int by_from(const void *x, const void *y)
{
    const place_range *a = x, *b = y;
    return a->from < b->from ? -1 : a->from > b->from;
}

static void sort_ranges(place_range *r, uint32_t n)
{
    if (n > 32) {
        qsort(r, n, sizeof *r, by_from);
        return;
    }
    for (uint32_t i = 1; i < n; i++) {
        place_range x = r[i];
        uint32_t k = i;
        for (; k > 0 && r[k - 1].from > x.from; k--)
            r[k] = r[k - 1];
        r[k] = x;
    }
}

/* Lowest offset for block i beside the placed ones: a range holds the starts that one of them forbids, the end not
 * included, moved up by the block's bytes so that none is below 0. */
static uint64_t lowest(const placing *x, uint32_t i)
{
    const plan_block *block = &x->p.b->data[i];
    uint64_t at = 0;
    uint32_t n = 0;
    for (uint32_t k = 0; k < x->p.meets[i].len; k++) {
        const plan_meet *m = &x->p.meets[i].data[k];
        const plan_block *o = &x->p.b->data[m->block];
        if (x->p.placed[m->block])
            x->near[n++] = (place_range){o->offset + block->bytes - m->above, o->offset + m->below};
    }
    sort_ranges(x->near, n);
    for (uint32_t k = 0; k < n && at + block->bytes > x->near[k].from; k++) {
        uint64_t behind = align_up(x->near[k].to, block->align);
        at = behind > at ? behind : at;
    }
    return at;
}

/* Places along `order`; returns the size, or gives up with UINT64_MAX once it is not below `limit`. */
static uint64_t first_fit(const placing *x, const uint32_t *order, uint64_t limit)
{
    uint64_t size = 0;
    memset(x->p.placed, 0, x->p.b->n * sizeof *x->p.placed);
    for (uint32_t i = 0; i < x->p.b->n; i++) {
        plan_block *block = &x->p.b->data[order[i]];
        block->offset = lowest(x, order[i]);
        x->p.placed[order[i]] = true;
        if (block->offset + block->bytes > size)
            size = block->offset + block->bytes;
        if (size >= limit)
            return UINT64_MAX;
    }
    return size;
}

/* --- in the order of time --- */

typedef struct timeline {
    plan_blocks *b;
    u32s alive;     /* by rising offset */
    uint32_t solid; /* of these, the first ones that have no gap between them */
    u32s ends;      /* a heap of those that are alive: the first to end is first */
} timeline;

static uint32_t find_alive(const timeline *t, uint64_t offset)
{
    uint32_t from = 0, to = t->alive.len;
    while (from < to) {
        uint32_t mid = from + (to - from) / 2;
        if (t->b->data[t->alive.data[mid]].offset < offset)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

static bool ends_before(const timeline *t, uint32_t x, uint32_t y)
{
    return t->b->data[x].last < t->b->data[y].last;
}

static void push_end(arena *a, timeline *t, uint32_t block)
{
    vec_push(a, &t->ends, block);
    uint32_t i = t->ends.len - 1;
    for (; i > 0 && ends_before(t, block, t->ends.data[(i - 1) / 2]); i = (i - 1) / 2)
        t->ends.data[i] = t->ends.data[(i - 1) / 2];
    t->ends.data[i] = block;
}

static uint32_t pop_end(timeline *t)
{
    uint32_t first = t->ends.data[0], x = vec_pop(&t->ends), i = 0;
    for (uint32_t k = 1; k < t->ends.len; k = 2 * i + 1) {
        k += k + 1 < t->ends.len && ends_before(t, t->ends.data[k + 1], t->ends.data[k]);
        if (!ends_before(t, t->ends.data[k], x))
            break;
        t->ends.data[i] = t->ends.data[k];
        i = k;
    }
    if (t->ends.len > 0)
        t->ends.data[i] = x;
    return first;
}

static void remove_ended(timeline *t, uint32_t now)
{
    while (t->ends.len > 0 && t->b->data[t->ends.data[0]].last < now) {
        uint32_t at = find_alive(t, t->b->data[pop_end(t)].offset);
        memmove(t->alive.data + at, t->alive.data + at + 1, (t->alive.len - at - 1) * sizeof *t->alive.data);
        t->alive.len--;
        t->solid = at < t->solid ? at : t->solid;
    }
}

/* Into the lowest gap. */
static void place_now(arena *a, timeline *t, uint32_t i)
{
    plan_block *block = &t->b->data[i];
    uint32_t at = t->solid;
    uint64_t end = 0;
    for (;; at++) {
        const plan_block *below = at > 0 ? &t->b->data[t->alive.data[at - 1]] : NULL;
        end = below ? below->offset + below->bytes : 0;
        block->offset = align_up(end, block->align);
        if (at == t->alive.len || block->offset + block->bytes <= t->b->data[t->alive.data[at]].offset)
            break;
        if (at == t->solid && t->b->data[t->alive.data[at]].offset - end < 64) /* less than the largest alignment */
            t->solid++;
    }
    vec_push(a, &t->alive, i);
    memmove(t->alive.data + at + 1, t->alive.data + at, (t->alive.len - 1 - at) * sizeof *t->alive.data);
    t->alive.data[at] = i;
    push_end(a, t, i);
}

static uint64_t place_in_time(arena *a, plan_blocks *b)
{
    timeline t = {.b = b};
    uint64_t size = 0;
    uint32_t n;
    const place_key *keys = in_time(a, b, &n);
    for (uint32_t i = 0; i < n; i++) {
        const plan_block *block = &b->data[keys[i].index];
        remove_ended(&t, block->first);
        place_now(a, &t, keys[i].index);
        size = block->offset + block->bytes > size ? block->offset + block->bytes : size;
    }
    return size;
}

/* --- orders --- */

static int by_key(const void *x, const void *y)
{
    const place_key *a = x, *b = y;
    if (a->major != b->major)
        return a->major < b->major ? 1 : -1;
    if (a->minor != b->minor)
        return a->minor < b->minor ? 1 : -1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static uint64_t conflict_bytes(const placing *x, uint32_t i)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < x->p.meets[i].len; k++)
        sum += x->p.b->data[x->p.meets[i].data[k].block].bytes;
    return sum;
}

static uint64_t block_life(const plan_block *block)
{
    return block->last - block->first + 1;
}

/* Place first what has the greatest key: (major, minor), then the lower number. */
static place_key by_size(const placing *x, uint32_t i)
{
    const plan_block *block = &x->p.b->data[i];
    return (place_key){block->bytes, UINT32_MAX - block->first, i};
}

static place_key by_lifetime(const placing *x, uint32_t i)
{
    const plan_block *block = &x->p.b->data[i];
    return (place_key){block_life(block), block->bytes, i};
}

static place_key by_conflict(const placing *x, uint32_t i)
{
    const plan_block *block = &x->p.b->data[i];
    return (place_key){conflict_bytes(x, i), block->bytes, i};
}

static place_key by_start(const placing *x, uint32_t i)
{
    const plan_block *block = &x->p.b->data[i];
    return (place_key){UINT32_MAX - block->first, block->bytes, i};
}

static place_key by_area(const placing *x, uint32_t i)
{
    const plan_block *block = &x->p.b->data[i];
    return (place_key){block->bytes * block_life(block), block->bytes, i};
}

static place_key by_size_lifetime(const placing *x, uint32_t i)
{
    const plan_block *block = &x->p.b->data[i];
    return (place_key){block->bytes, block_life(block), i};
}

static const struct {
    const char *name;
    place_key (*key)(const placing *x, uint32_t i);
} heuristics[] = {
    {"size", by_size},   {"lifetime", by_lifetime}, {"conflict", by_conflict},
    {"start", by_start}, {"area", by_area},         {"size-lifetime", by_size_lifetime},
};
#define HEURISTICS (sizeof heuristics / sizeof *heuristics)

static uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

/* Swaps two places of the order and keeps what is smaller. */
static uint64_t climb(const placing *x, uint32_t *order, uint64_t size)
{
    const uint32_t n = x->p.b->n;
    uint64_t cost = (uint64_t)n * n + 1, rounds = 100000000u / cost;
    uint32_t state = 0x9e3779b9u;
    for (uint64_t r = 0; r < rounds && r < 3000 && size > x->p.b->peak; r++) {
        uint32_t i = next_random(&state) % n, k = next_random(&state) % n, t = order[i];
        order[i] = order[k];
        order[k] = t;
        uint64_t now = first_fit(x, order, size + 1);
        if (now <= size) {
            size = now;
        } else {
            order[k] = order[i];
            order[i] = t;
        }
    }
    return size;
}

/* --- the search --- */

static uint64_t end_of(const plan_blocks *b)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < b->n; i++)
        end = b->data[i].offset + b->data[i].bytes > end ? b->data[i].offset + b->data[i].bytes : end;
    return end;
}

/* From the placement at hand to a smaller one: the least size that could be first, then by halves. Each size has a
 * quarter of the steps that are left for each of the two searches. What they could not decide counts as impossible. */
static uint64_t improve(arena *a, const placing *x, uint64_t size, uint64_t steps)
{
    plan_blocks *b = x->p.b;
    uint64_t *best = arena_array(a, uint64_t, b->n), from = b->peak, to = size, at = b->peak;
    for (uint32_t i = 0; i < b->n; i++)
        best[i] = b->data[i].offset;
    while (from < to && steps > b->n) {
        arena scratch;
        arena_init(&scratch, a);
        const uint64_t most = steps / 4;
        uint64_t exact = most, gaps = most;
        if (place_exact(&scratch, &x->p, at, &exact) == EXACT_FOUND ||
            (b->n_overlaps == 0 && exact == 0 && place_gaps(&scratch, &x->p, at, &gaps) == EXACT_FOUND)) {
            to = end_of(b);
            for (uint32_t i = 0; i < b->n; i++)
                best[i] = b->data[i].offset;
        } else {
            from = at + 1;
        }
        arena_free(&scratch);
        steps -= (most - exact) + (most - gaps);
        at = from + (to - from) / 2;
    }
    for (uint32_t i = 0; i < b->n; i++)
        b->data[i].offset = best[i];
    return to;
}

uint64_t place_blocks(arena *a, plan_blocks *b, uint64_t steps, const char **out_heuristic)
{
    placing x = {.p = {.b = b, .placed = arena_array(a, bool, b->n), .overlaps = arena_array(a, bool, b->n)},
                 .near = arena_array(a, place_range, b->n)};
    uint32_t *order = arena_array(a, uint32_t, b->n), *best = arena_array(a, uint32_t, b->n);
    place_key *keys = arena_array(a, place_key, b->n);
    uint64_t size = UINT64_MAX;
    *out_heuristic = "time";
    if (!find_pairs(a, &x))
        return place_in_time(a, b);
    *out_heuristic = heuristics[0].name;
    for (uint32_t h = 0; h < HEURISTICS && size > b->peak; h++) {
        for (uint32_t i = 0; i < b->n; i++)
            keys[i] = heuristics[h].key(&x, i);
        qsort(keys, b->n, sizeof *keys, by_key);
        for (uint32_t i = 0; i < b->n; i++)
            order[i] = keys[i].index;
        uint64_t now = first_fit(&x, order, size);
        if (now < size) {
            size = now;
            memcpy(best, order, b->n * sizeof *order);
            *out_heuristic = heuristics[h].name;
        }
    }
    if (b->n > 1 && size > b->peak) {
        uint64_t climbed = climb(&x, best, size);
        *out_heuristic = climbed < size ? "hill-climb" : *out_heuristic;
        size = climbed;
    }
    size = first_fit(&x, best, UINT64_MAX);
    if (size > b->peak && b->n <= MOST_SEARCHED) {
        uint64_t less = improve(a, &x, size, steps);
        *out_heuristic = less < size ? "search" : *out_heuristic;
        size = less;
    }
    return size;
}
