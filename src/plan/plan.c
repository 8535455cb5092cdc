/* SPDX-License-Identifier: Apache-2.0 */
/* The planner's story: parts, lower bound, candidate layerings, placement of each, the best one written back. */
#include "abi/package.h"
#include "plan/facts.h"

#include <stdlib.h>
#include <string.h>

#define WORK_PER_PART 16384     /* operations below which another task costs more than it brings */
#define NEAR_PARTS    16    /* tasks, of that work, of an operator that fewer workers may finish sooner */
#define ORDER_EFFORT  UINT64_C(300000)   /* operators looked at in the search for an order */
#define PLACE_EFFORT  UINT64_C(20000000) /* blocks and layers looked at in the two searches for a placement */
#define SPARE_WORK    20000000u /* operators looked at while parts are taken away one by one */

/* Workers begin with equal shares of the parts: those of a number that they divide are equal to one iteration, whatever
 * the extent. */
uint32_t plan_parts(const plan_problem *p, const plan_op *op)
{
    bool own_scratch = false;
    for (uint32_t i = 0; i < op->n_scratch; i++)
        own_scratch |= op->scratch[i].per_part;
    int64_t most = (int64_t)p->workers * (own_scratch && !p->keep_busy ? 1 : 4), wanted = op->work / WORK_PER_PART;
    most = op->workers > 0 ? op->workers : most;
    wanted = wanted < most ? wanted : most;
    wanted = wanted < op->extent ? wanted : op->extent;
    wanted -= wanted > p->workers ? wanted % p->workers : 0;
    return p->split_parts && p->workers > 1 && wanted > 1 ? (uint32_t)wanted : 1;
}

/* Work for all workers: two tasks for each. */
static bool is_large(const plan_problem *p, const plan_op *op)
{
    return op->work / (2 * WORK_PER_PART) >= p->workers;
}

/* Of those that plan_parts gives it, parts that no layer's memory takes away. */
static uint32_t least_parts(const plan_problem *p, const plan_op *op)
{
    const uint32_t parts = plan_parts(p, op);
    if (!p->keep_busy || !is_large(p, op))
        return 1;
    return parts < p->workers ? parts : p->workers;
}

const char *plan_idle_text(plan_idle_cause w)
{
    static const char *const texts[] = {
#define X(id, text, help) text,
        PLAN_IDLE(X)
#undef X
    };
    return texts[w];
}

const char *plan_idle_help(plan_idle_cause w)
{
    static const char *const texts[] = {
#define X(id, text, help) help,
        PLAN_IDLE(X)
#undef X
    };
    return texts[w];
}

uint32_t plan_idle_workers(const plan *pl, uint32_t op, plan_idle_cause *out_why)
{
    const plan_problem *p = pl->problem;
    const plan_op *o = &p->ops.data[op];
    const uint32_t layer = pl->tasks[op].layer;
    /* The target of a region has threads of its own. */
    const bool region = o->step && o->step->kernel && o->step->kernel->symbol;
    uint32_t tasks = 0;
    *out_why = IDLE_NONE;
    for (uint32_t i = 0; i < pl->layer_len[layer] && tasks < p->workers; i++) /* each has one at least */
        tasks += pl->tasks[pl->layers[layer][i]].parts;
    if (region || o->workers > 0 || !p->split_parts || p->workers <= 1 || !is_large(p, o) || tasks >= p->workers)
        return 0;
    *out_why = pl->tasks[op].parts < plan_parts(p, o) ? IDLE_SCRATCH : IDLE_EXTENT;
    return p->workers - tasks;
}

bool plan_is_near(const plan_op *op)
{
    return op->work < (int64_t)NEAR_PARTS * WORK_PER_PART;
}

/* --- constants, states: by falling alignment, so that gaps are few ---------------------------------------------------
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

uint64_t plan_place_apart(arena *a, const plan_problem *p, plan_storage storage, plan_place *places)
{
    constant_key *keys = arena_array(a, constant_key, p->values.len);
    uint32_t n = 0;
    for (uint32_t v = 0; v < p->values.len; v++)
        if (p->values.data[v].storage == storage && p->values.data[v].parent < 0)
            keys[n++] = (constant_key){package_value_align(p->values.data[v].bytes), p->values.data[v].bytes, v};
    qsort(keys, n, sizeof *keys, by_alignment); /* round numbers are short ones in machine code, too */
    uint64_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t align = p->values.data[keys[i].value].align;
        at = (at + align - 1) / align * align;
        places[keys[i].value].offset = at;
        at += keys[i].bytes;
    }
    return at;
}

/* --- candidates ------------------------------------------------------------------------------------------------------
 */

typedef struct candidate {
    uint32_t *layer, *parts; /* of each operator */
    plan_blocks blocks;
    uint64_t bytes;
    const char *order, *heuristic;
} candidate;

static void sequential(const plan_facts *f, const uint32_t *order, uint32_t *out_layer)
{
    for (uint32_t i = 0; i < f->n_ops; i++)
        out_layer[order[i]] = i;
}

/* What is known before anything is placed. */
typedef struct order_facts {
    uint64_t fine;      /* least peak of the orders, scratch not counted */
    uint64_t bound;     /* no order of operators one after the other needs less, scratch counted */
    uint32_t *searched; /* the order with the least peak; NULL: one of the table's */
} order_facts;

static uint64_t peak_of_order(const plan_facts *f, const uint32_t *order, const uint32_t *parts)
{
    plan_blocks b;
    uint32_t *layer = arena_array(f->a, uint32_t, f->n_ops);
    sequential(f, order, layer);
    blocks_make(f, layer, parts, &b);
    return b.peak;
}

static order_facts look_at_orders(const plan_facts *f, uint64_t effort)
{
    order_facts x = {.fine = UINT64_MAX, .searched = arena_array(f->a, uint32_t, f->n_ops)};
    uint32_t *order = arena_array(f->a, uint32_t, f->n_ops), *ones = arena_array(f->a, uint32_t, f->n_ops);
    uint64_t least = UINT64_MAX, peak;
    for (uint32_t op = 0; op < f->n_ops; op++)
        ones[op] = 1;
    for (uint32_t i = 0; i < order_count(); i++) {
        order_make(f, i, order);
        peak = peak_of_order(f, order, NULL);
        x.fine = peak < x.fine ? peak : x.fine;
        peak = peak_of_order(f, order, ones);
        least = peak < least ? peak : least;
    }
    if (!order_search(f, effort, least, x.searched, &x.bound)) {
        x.searched = NULL;
        return x;
    }
    peak = peak_of_order(f, x.searched, NULL);
    x.fine = peak < x.fine ? peak : x.fine;
    return x;
}

/* How many times the usual effort. */
static uint64_t effort_of(const plan_problem *p)
{
    return p->effort > 1 ? p->effort : 1;
}

static void weigh(const plan_facts *f, candidate *x)
{
    blocks_make(f, x->layer, x->parts, &x->blocks);
    x->bytes = place_blocks(f->a, &x->blocks, PLACE_EFFORT * effort_of(f->p), &x->heuristic);
}

/* Live bytes of each layer. */
static uint64_t *bytes_in_layers(const plan_facts *f, const plan_blocks *b)
{
    uint64_t *sum = arena_array(f->a, uint64_t, f->n_ops + 2u);
    for (uint32_t i = 0; i < b->n; i++) {
        sum[b->data[i].first] += b->data[i].bytes;
        sum[b->data[i].last + 1] -= b->data[i].bytes; /* may wrap until the layers before are added */
    }
    for (uint32_t t = 1; t <= f->n_ops; t++)
        sum[t] += sum[t - 1];
    return sum;
}

/* What the parts that stay anyway need, in the best of the orders; 0: none do. */
static uint64_t peak_of_kept(const plan_facts *f, const order_facts *known)
{
    uint32_t *order = arena_array(f->a, uint32_t, f->n_ops), *parts = arena_array(f->a, uint32_t, f->n_ops);
    uint64_t least = UINT64_MAX, most = 1;
    for (uint32_t op = 0; op < f->n_ops; op++) {
        parts[op] = least_parts(f->p, &f->p->ops.data[op]);
        most = parts[op] > most ? parts[op] : most;
    }
    for (uint32_t i = 0; i < order_count() + (known->searched != NULL) && most > 1; i++) {
        if (i < order_count())
            order_make(f, i, order);
        const uint64_t peak = peak_of_order(f, i < order_count() ? order : known->searched, parts);
        least = peak < least ? peak : least;
    }
    return most > 1 ? least : 0;
}

/* What one part needs for itself. */
static uint64_t scratch_per_part(const plan_op *o)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < o->n_scratch; k++)
        sum += o->scratch[k].per_part ? plan_scratch_bytes(o, k, 1) : 0;
    return sum;
}

/* The next lower number of parts that workers have equal shares of, but not below least_parts. */
static uint32_t fewer_parts(const plan_problem *p, const plan_op *op, uint32_t parts)
{
    const uint32_t least = least_parts(p, op);
    const uint32_t fewer = parts > p->workers ? (parts - 1) / p->workers * p->workers : parts - 1;
    return fewer > least ? fewer : least;
}

/* Every part of an operator may need scratch of its own: fewer parts where that is what lifts a layer above the limit,
 * but not fewer than least_parts. */
static void spare_scratch(const plan_facts *f, candidate *x, uint64_t limit)
{
    uint64_t tries = SPARE_WORK / (f->n_ops + 1u);
    for (;; tries -= tries > 0) {
        arena_mark mark = arena_get_mark(f->a);
        plan_blocks b;
        uint32_t worst = UINT32_MAX;
        uint64_t most = 0;
        blocks_make(f, x->layer, x->parts, &b);
        const uint64_t *live = bytes_in_layers(f, &b);
        for (uint32_t op = 0; op < f->n_ops && b.peak > limit; op++) {
            const plan_op *o = &f->p->ops.data[op];
            const uint32_t least = least_parts(f->p, o);
            uint64_t bytes = scratch_per_part(o) * x->parts[op];
            if (x->parts[op] > least && bytes > most && live[x->layer[op]] > limit) {
                worst = op;
                most = tries ? bytes : 0;
                x->parts[op] = tries ? x->parts[op] : least; /* a very large model: all at once */
            }
        }
        arena_reset(f->a, mark);
        if (worst == UINT32_MAX)
            return;
        x->parts[worst] = fewer_parts(f->p, &f->p->ops.data[worst], x->parts[worst]);
    }
}

/* Without scratch. */
static uint64_t soonest_peak(const plan_facts *f, const uint32_t *layer)
{
    plan_blocks b;
    blocks_make(f, layer, NULL, &b);
    return b.peak;
}

/* Each candidate cuts operators in its own way: what one gives up for memory, another may keep. Where parts have
 * scratch it begins with one for each worker. */
static candidate new_candidate(const plan_facts *f, const char *order)
{
    candidate x = {
        .layer = arena_array(f->a, uint32_t, f->n_ops), .parts = arena_array(f->a, uint32_t, f->n_ops), .order = order};
    for (uint32_t op = 0; op < f->n_ops; op++) {
        const plan_op *o = &f->p->ops.data[op];
        x.parts[op] = plan_parts(f->p, o);
        if (scratch_per_part(o) > 0 && x.parts[op] > f->p->workers)
            x.parts[op] = f->p->workers;
    }
    return x;
}

/* More parts with scratch, in layers that have room for them below the largest: the workspace stays as it is. */
static void take_room(const plan_facts *f, candidate *x)
{
    candidate more = *x;
    more.parts = arena_array(f->a, uint32_t, f->n_ops);
    memcpy(more.parts, x->parts, f->n_ops * sizeof *more.parts);
    uint64_t *live = bytes_in_layers(f, &x->blocks);
    for (uint32_t op = 0; op < f->n_ops; op++) {
        const plan_op *o = &f->p->ops.data[op];
        const uint64_t each = scratch_per_part(o), room = x->blocks.peak - live[x->layer[op]];
        uint32_t parts = plan_parts(f->p, o);
        while (parts > x->parts[op] && (parts - x->parts[op]) * each > room)
            parts = fewer_parts(f->p, o, parts);
        if (each > 0 && parts > x->parts[op]) {
            live[x->layer[op]] += (parts - x->parts[op]) * each;
            more.parts[op] = parts;
        }
    }
    weigh(f, &more);
    if (more.bytes <= x->bytes)
        *x = more;
}

/* The widest layering when it costs at most a tenth more than the bound, or no more than parts that stay; else the
 * smallest one found. A single worker gains nothing by width. */
static candidate choose(const plan_facts *f, const order_facts *known)
{
    candidate best = new_candidate(f, "soonest");
    const uint64_t bound = known->fine, tenth = f->p->workers > 1 ? bound + bound / 10 : bound;
    const uint64_t kept = peak_of_kept(f, known), fine = kept > tenth ? kept : tenth;
    layer_soonest(f, best.layer);
    if (soonest_peak(f, best.layer) <= tenth) /* only scratch is too much, if anything */
        spare_scratch(f, &best, fine);
    weigh(f, &best);
    uint32_t *order = arena_array(f->a, uint32_t, f->n_ops), n = order_count() + (known->searched != NULL);
    for (uint32_t i = 0; i < n && best.bytes > fine; i++) {
        bool searched = i == order_count();
        candidate next = new_candidate(f, searched ? "search" : order_name(i));
        if (!searched)
            order_make(f, i, order);
        layer_bounded(f, searched ? known->searched : order, next.parts, bound, next.layer);
        spare_scratch(f, &next, fine);
        weigh(f, &next);
        if (next.bytes < best.bytes)
            best = next;
    }
    take_room(f, &best);
    return best;
}

/* --- results ---------------------------------------------------------------------------------------------------------
 */

/* Where the rest of the workspace begins: states are always alive, so they lie apart from it. */
static uint64_t behind_states(const candidate *best, uint64_t state_bytes)
{
    uint64_t align = 1;
    for (uint32_t i = 0; i < best->blocks.n; i++)
        align = best->blocks.data[i].align > align ? best->blocks.data[i].align : align;
    return (state_bytes + align - 1) / align * align;
}

static void write_places(const plan_facts *f, const candidate *best, uint64_t first, plan *out)
{
    for (uint32_t v = 0; v < f->n_values; v++) {
        plan_place *place = &out->places[v];
        uint32_t root = f->root[v];
        place->first_op = place->last_op = -1;
        if (f->p->values.data[root].storage != STORE_WORKSPACE)
            place->offset = out->places[root].offset + (root == v ? 0 : f->start[v]);
        else if (best->blocks.of_root[root] != UINT32_MAX)
            place->offset = first + best->blocks.data[best->blocks.of_root[root]].offset + f->start[v];
    }
}

static void write_tasks(compiler *c, const plan_facts *f, const candidate *best, uint64_t first, plan *out)
{
    for (uint32_t op = 0; op < f->n_ops; op++) {
        const plan_op *o = &f->p->ops.data[op];
        uint64_t *scratch = arena_array(&c->mem, uint64_t, o->n_scratch);
        for (uint32_t k = 0; k < o->n_scratch; k++)
            scratch[k] = first + best->blocks.data[best->blocks.of_scratch[op] + k].offset;
        out->tasks[op] = (plan_task){best->parts[op], best->layer[op], scratch};
        for (uint32_t k = 0; k < o->n_args; k++) {
            plan_place *place = &out->places[o->args[k]];
            place->first_op = place->first_op < 0 ? (int32_t)op : place->first_op;
            place->last_op = (int32_t)op;
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
    uint32_t *all = arena_array(&c->mem, uint32_t, f->n_ops), **next = arena_array(f->a, uint32_t *, out->n_layers);
    for (uint32_t l = 0, at = 0; l < out->n_layers; l++) {
        rows[l] = next[l] = all + at;
        at += len[l];
    }
    for (uint32_t op = 0; op < f->n_ops; op++)
        *next[layer[op]]++ = op;
    out->layers = rows;
    out->layer_len = len;
    uint32_t *segments = arena_array(&c->mem, uint32_t, f->n_segments + 1u);
    segment_layers(f, layer, segments);
    out->segment_layer = segments;
}

bool plan_memory(compiler *c, const plan_problem *p, plan *out)
{
    arena tmp;
    arena_init(&tmp, &c->mem);
    plan_facts f;
    facts_collect(&f, &tmp, p);
    *out = (plan){.problem = p,
                  .places = arena_array(&c->mem, plan_place, p->values.len + 1u),
                  .tasks = arena_array(&c->mem, plan_task, p->ops.len + 1u)};
    out->constant_bytes = plan_place_apart(&tmp, p, STORE_CONSTANT, out->places);
    out->state_bytes = plan_place_apart(&tmp, p, STORE_STATE, out->places);
    order_facts known = look_at_orders(&f, ORDER_EFFORT * effort_of(p));
    candidate best = choose(&f, &known);
    const uint64_t first = behind_states(&best, out->state_bytes);
    out->lower_bound_bytes = first + known.bound;
    out->workspace_bytes = first + best.bytes;
    out->order = best.order;
    out->heuristic = best.heuristic;
    write_layers(c, &f, best.layer, out);
    write_places(&f, &best, first, out);
    write_tasks(c, &f, &best, first, out);
    arena_free(&tmp);
    return true;
}
