/* SPDX-License-Identifier: Apache-2.0 */
/* Offsets of blocks: first fit with gaps along several orders, then a hill climb over the best of them. Blocks whose
 * lifetimes meet must not overlap. Deterministic: ties go by number, the climb's random numbers have a fixed seed. */
#include "plan/facts.h"

#include <stdlib.h>
#include <string.h>

typedef struct place_key {
    uint64_t major, minor;
    uint32_t index;
} place_key;

static bool meet(const plan_block *a, const plan_block *b)
{
    return a->first <= b->last && b->first <= a->last;
}
static uint64_t align_up(uint64_t v, uint64_t align)
{
    return (v + align - 1) / align * align;
}

/* Lowest offset for block i beside the placed ones, which stand in `placed` by rising offset. */
static uint64_t lowest(const plan_blocks *b, const uint32_t *placed, uint32_t n, const plan_block *block)
{
    uint64_t at = 0;
    for (uint32_t k = 0; k < n; k++) {
        const plan_block *o = &b->data[placed[k]];
        if (!meet(o, block) || o->bytes == 0)
            continue;
        if (at + block->bytes <= o->offset)
            break;
        uint64_t behind = align_up(o->offset + o->bytes, block->align);
        at = behind > at ? behind : at;
    }
    return at;
}

/* Places along `order`; returns the size, or gives up with UINT64_MAX once it is not below `limit`. */
static uint64_t first_fit(plan_blocks *b, const uint32_t *order, uint32_t *placed, uint64_t limit)
{
    uint64_t size = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        plan_block *block = &b->data[order[i]];
        block->offset = lowest(b, placed, i, block);
        if (block->offset + block->bytes > size)
            size = block->offset + block->bytes;
        if (size >= limit)
            return UINT64_MAX;
        uint32_t k = i;
        for (; k > 0 && b->data[placed[k - 1]].offset > block->offset; k--)
            placed[k] = placed[k - 1];
        placed[k] = order[i];
    }
    return size;
}

static int by_key(const void *x, const void *y)
{
    const place_key *a = x, *b = y;
    if (a->major != b->major)
        return a->major < b->major ? 1 : -1;
    if (a->minor != b->minor)
        return a->minor < b->minor ? 1 : -1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static uint64_t conflict_bytes(const plan_blocks *b, uint32_t i)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < b->n; k++)
        sum += k != i && meet(&b->data[i], &b->data[k]) ? b->data[k].bytes : 0;
    return sum;
}

static uint64_t block_life(const plan_block *block)
{
    return block->last - block->first + 1;
}

/* Place first what has the greatest key: (major, minor), then the lower number. */
static place_key by_size(const plan_blocks *b, uint32_t i)
{
    return (place_key){b->data[i].bytes, UINT32_MAX - b->data[i].first, i};
}

static place_key by_lifetime(const plan_blocks *b, uint32_t i)
{
    return (place_key){block_life(&b->data[i]), b->data[i].bytes, i};
}

static place_key by_conflict(const plan_blocks *b, uint32_t i)
{
    return (place_key){conflict_bytes(b, i), b->data[i].bytes, i};
}

static place_key by_start(const plan_blocks *b, uint32_t i)
{
    return (place_key){UINT32_MAX - b->data[i].first, b->data[i].bytes, i};
}

static place_key by_area(const plan_blocks *b, uint32_t i)
{
    return (place_key){b->data[i].bytes * block_life(&b->data[i]), b->data[i].bytes, i};
}

static place_key by_size_lifetime(const plan_blocks *b, uint32_t i)
{
    return (place_key){b->data[i].bytes, block_life(&b->data[i]), i};
}

static const struct {
    const char *name;
    place_key (*key)(const plan_blocks *b, uint32_t i);
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
static uint64_t climb(arena *a, plan_blocks *b, uint32_t *order, uint64_t size, uint32_t *placed)
{
    uint64_t cost = (uint64_t)b->n * b->n + 1, rounds = 100000000u / cost;
    uint32_t state = 0x9e3779b9u, *best = arena_array(a, uint32_t, b->n);
    memcpy(best, order, b->n * sizeof *order);
    for (uint64_t r = 0; r < rounds && r < 3000 && size > b->peak; r++) {
        uint32_t x = next_random(&state) % b->n, y = next_random(&state) % b->n, t = order[x];
        order[x] = order[y];
        order[y] = t;
        uint64_t now = first_fit(b, order, placed, size + 1);
        if (now <= size) {
            size = now;
        } else {
            order[y] = order[x];
            order[x] = t;
        }
    }
    return size;
}

uint64_t place_blocks(arena *a, plan_blocks *b, const char **out_heuristic)
{
    uint32_t *order = arena_array(a, uint32_t, b->n), *best = arena_array(a, uint32_t, b->n),
             *placed = arena_array(a, uint32_t, b->n);
    place_key *keys = arena_array(a, place_key, b->n);
    uint64_t size = UINT64_MAX;
    *out_heuristic = heuristics[0].name;
    for (uint32_t h = 0; h < HEURISTICS && size > b->peak; h++) {
        for (uint32_t i = 0; i < b->n; i++)
            keys[i] = heuristics[h].key(b, i);
        qsort(keys, b->n, sizeof *keys, by_key);
        for (uint32_t i = 0; i < b->n; i++)
            order[i] = keys[i].index;
        uint64_t now = first_fit(b, order, placed, size);
        if (now < size) {
            size = now;
            memcpy(best, order, b->n * sizeof *order);
            *out_heuristic = heuristics[h].name;
        }
    }
    if (b->n > 1 && size > b->peak) {
        uint64_t climbed = climb(a, b, best, size, placed);
        *out_heuristic = climbed < size ? "hill-climb" : *out_heuristic;
        size = climbed;
    }
    return first_fit(b, best, placed, UINT64_MAX);
}
