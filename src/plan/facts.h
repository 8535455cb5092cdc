/* SPDX-License-Identifier: Apache-2.0 */
/* The planner's inside: what follows from a problem alone (roots, dependencies, in-place pairs), layerings, blocks of
 * memory and their placement. A layering gives every operator its layer; a sequential order is the layering in which
 * each operator has one of its own. */
#ifndef LATHE_PLAN_FACTS_H
#define LATHE_PLAN_FACTS_H
#include "plan/plan.h"

typedef struct u32s {
    uint32_t *data, len, cap;
} u32s;

/* The operator may write the root `to` where the root `from` lies: sizes agree, and nothing else of it stands in the
 * way. */
typedef struct plan_inplace {
    uint32_t op, from, to;
} plan_inplace;

/* The operator may write the root `to` over the root `from`, at these distances of their starts (plan_distance). */
typedef struct plan_overlap {
    uint32_t op, from, to;
    uint64_t below, above;
} plan_overlap;

typedef struct plan_facts {
    arena *a; /* scratch memory of one planning */
    const plan_problem *p;
    uint32_t n_ops, n_values;
    uint32_t *root;            /* of each value */
    uint64_t *start;           /* of each value, in its root */
    u32s *before;              /* of each operator: those that it depends on, ascending, without repetitions */
    u32s *after;               /* of each operator: those that depend on it */
    u32s *readers;             /* of each root: operators, ascending */
    u32s *writers;             /* of each root */
    VEC(plan_inplace) inplace; /* by operator */
    VEC(plan_overlap) overlaps; /* by operator; not those that are in place */
    uint32_t n_segments;
    /* Of each root: segments through which it lives whoever uses it there. UINT32_MAX: none */
    uint32_t *keep_first, *keep_last;
} plan_facts;

void facts_collect(plan_facts *f, arena *a, const plan_problem *p);
bool facts_in_workspace(const plan_facts *f, uint32_t root);
/* Bytes that the two roots need less together, at most. */
uint64_t facts_saved(const plan_facts *f, const plan_overlap *x);
/* A piece of workspace and the layers in which it must not be disturbed. */
typedef struct plan_block {
    uint64_t bytes, align, offset;
    uint32_t first, last;
    uint32_t id; /* root of the group, or n_values + number of the scratch */
} plan_block;

typedef struct plan_blocks {
    plan_block *data;
    uint32_t n;
    uint32_t *of_root;    /* block of each root that lies in the workspace; UINT32_MAX: none */
    plan_overlap *overlaps; /* from, to: blocks, of which the first ends where the second begins */
    uint32_t n_overlaps;
    uint32_t *of_scratch; /* first block of each operator's scratch, the others follow */
    uint64_t peak;        /* greatest sum of bytes in a layer */
} plan_blocks;

/* live.c: segments as layers; out has n_segments + 1 entries. */
void segment_layers(const plan_facts *f, const uint32_t *layer, uint32_t *out);
/* parts: of each operator, for its scratch; NULL: without scratch. */
void blocks_make(const plan_facts *f, const uint32_t *layer, const uint32_t *parts, plan_blocks *out);

/* order.c: row i of the table gives out[0..n_ops) as an order. */
uint32_t order_count(void);
const char *order_name(uint32_t i);
void order_make(const plan_facts *f, uint32_t i, uint32_t *out);

/* search.c: the order with the least peak, scratch for one part of each operator counted; false: there is none below
 * `below`, or none was found. `effort`: operators looked at; when it ends, the order is only good. out_bound: no order
 * has a lower peak. */
bool order_search(const plan_facts *f, uint64_t effort, uint64_t below, uint32_t *out, uint64_t *out_bound);

/* layer.c */
void layer_soonest(const plan_facts *f, uint32_t *out_layer);
void layer_bounded(const plan_facts *f, const uint32_t *order, const uint32_t *parts, uint64_t limit,
                   uint32_t *out_layer);
uint32_t layer_count(const plan_facts *f, const uint32_t *layer);

/* place.c, exact.c: what placements work on. */
typedef struct plan_meet {
    uint32_t block; /* lives at the same time, and has bytes */
    uint64_t above; /* least distance of its start from this one's where it lies above */
    uint64_t below; /* and of this one's start from its where it lies below */
} plan_meet;

typedef struct plan_placing {
    plan_blocks *b;
    struct plan_meets {
        plan_meet *data;
        uint32_t len, cap;
    } *meets; /* of each block */
    bool *placed;
    bool *overlaps; /* it may lie partly on another one */
} plan_placing;

/* Offsets so that all ends within `size`; steps: those that are left. EXACT_NONE: there are no such ones. */
typedef enum exact_result { EXACT_FOUND, EXACT_NONE, EXACT_ENDED } exact_result;
exact_result place_exact(arena *a, const plan_placing *x, uint64_t size, uint64_t *steps);
/* The same by another search (gaps.c), where no blocks overlap. */
exact_result place_gaps(arena *a, const plan_placing *x, uint64_t size, uint64_t *steps);

/* place.c: sets the offsets; returns the workspace's size and the name of what won. steps: of both searches. */
uint64_t place_blocks(arena *a, plan_blocks *b, uint64_t steps, const char **out_heuristic);
#endif
