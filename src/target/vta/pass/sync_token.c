/* SPDX-License-Identifier: Apache-2.0 */
/* InjectCoProcSync, second half: tokens between the accelerator's queues. A task is a coproc_scope; every task waits
 * for the one before it when that runs in another queue, over the back edges of loops too. On every path each push
 * meets exactly one pop, so that all counters are 0 at the end. */
#include "tir/build.h"
#include "target/vta/pass/sync.h"
#include "tir/walk.h"

#include <assert.h>
#include <stdlib.h>

/* --- statements to insert --- */

typedef struct stmt_list {
    VEC(tir_stmt *) all;
} stmt_list;

void vta_inserts_begin(vta_inserts *ins)
{
    tir_map_init(&ins->before, &ins->c->mem);
    tir_map_init(&ins->after, &ins->c->mem);
}

static stmt_list *list_at(vta_inserts *ins, tir_map *m, tir_stmt *s)
{
    stmt_list *l = (stmt_list *)(uintptr_t)tir_map_get(m, s);
    if (!l) {
        l = arena_new(&ins->c->mem, stmt_list);
        tir_map_put(m, s, l);
    }
    return l;
}

void vta_insert_before(vta_inserts *ins, tir_stmt *s, tir_stmt *made)
{
    vec_push(&ins->c->mem, &list_at(ins, &ins->before, s)->all, made);
}

void vta_insert_after(vta_inserts *ins, tir_stmt *s, tir_stmt *made)
{
    vec_push(&ins->c->mem, &list_at(ins, &ins->after, s)->all, made);
}

void vta_insert_once(vta_inserts *ins, tir_stmt *s, tir_stmt *made)
{
    const stmt_list *l = list_at(ins, &ins->after, s);
    for (uint32_t i = 0; i < l->all.len; i++)
        if (tir_expr_equal(l->all.data[i]->value, made->value))
            return;
    vta_insert_after(ins, s, made);
}

/* Plans name statements as they were: children are rebuilt, then what stands around s is added. */
tir_stmt *vta_inserts_apply(vta_inserts *ins, tir_stmt *s)
{
    compiler *c = ins->c;
    const stmt_list *before = tir_map_get(&ins->before, s), *after = tir_map_get(&ins->after, s);
    struct tir_stmt *copy = tir_node_copy(c, s);
    tir_stmt *self = copy;
    if (s->kind == TIR_SEQ) {
        tir_stmt **all = arena_array(&c->mem, tir_stmt *, s->n_stmts);
        for (uint32_t i = 0; i < s->n_stmts; i++)
            all[i] = vta_inserts_apply(ins, s->stmts[i]);
        self = tir_seq(c, s->n_stmts, all);
    }
    if (s->body)
        copy->body = vta_inserts_apply(ins, s->body);
    if (s->orelse)
        copy->orelse = vta_inserts_apply(ins, s->orelse);
    if (!before && !after)
        return self;
    VEC(tir_stmt *) out = {0};
    for (uint32_t i = before ? before->all.len : 0; i > 0; i--)
        vec_push(&c->mem, &out, before->all.data[i - 1]);
    vec_push(&c->mem, &out, self);
    for (uint32_t i = 0; after && i < after->all.len; i++)
        vec_push(&c->mem, &out, after->all.data[i]);
    return tir_seq(c, out.len, out.data);
}

/* --- states --- */

/* Queues are numbered 1 to 3; a token goes from one to a neighbor. Sets and lists are tiny. */
#define QUEUES 4u
#define TOKENS 16u

typedef struct queue_token {
    uint8_t from, to;
} queue_token;

typedef struct token_set {
    queue_token at[TOKENS];
    uint32_t len;
} token_set;

/* A task, or a loop or choice of tasks, as its neighbors see it. node NULL: there is none. */
typedef struct state {
    tir_stmt *node;                      /* tokens are moved before and after it */
    bool enters[QUEUES], leaves[QUEUES]; /* queues that its first and last tasks run in */
    token_set enter_pops, exit_pushes;   /* pops that it starts with, pushes that it ends with, both unmatched */
} state;

typedef struct trace {
    vta_pass *p;
    vta_inserts *ins;
    state first, last;
} trace;

static bool contains(const token_set *l, queue_token t)
{
    for (uint32_t i = 0; i < l->len; i++)
        if (l->at[i].from == t.from && l->at[i].to == t.to)
            return true;
    return false;
}

static void add(token_set *l, queue_token t)
{
    assert(l->len < TOKENS); /* at most one of each of the pairs of three queues */
    l->at[l->len++] = t;
}

static tir_stmt *dep(trace *k, bool push, queue_token t)
{
    assert(t.from > 0 && t.from < QUEUES && t.to > 0 && t.to < QUEUES && abs(t.from - t.to) == 1);
    tir_expr_ref args[] = {vta_int(k->p, t.from), vta_int(k->p, t.to)};
    const char *name = push ? "tir.vta.coproc_dep_push" : "tir.vta.coproc_dep_pop";
    return tir_evaluate(k->p->c, tir_extern(k->p->c, name, tir_scalar(DT_I32), 2, args));
}

static void after(trace *k, const state *s, bool push, queue_token t)
{
    vta_insert_after(k->ins, s->node, dep(k, push, t));
}

static void before(trace *k, const state *s, bool push, queue_token t)
{
    vta_insert_before(k->ins, s->node, dep(k, push, t));
}

/* One token between the ends of prev and next, unless it goes there already. */
static void send(trace *k, const state *prev, const state *next, queue_token t, token_set *pushes, token_set *pops)
{
    if (!contains(pushes, t)) {
        add(pushes, t);
        after(k, prev, true, t);
    }
    if (!contains(pops, t)) {
        add(pops, t);
        before(k, next, false, t);
    }
}

/* No token goes between the queues of loads and stores: the computing queue takes one and gives another. */
static void send_by_compute(trace *k, const state *prev, const state *next, queue_token t, token_set *pushes,
                            token_set *pops)
{
    queue_token first = {t.from, VTA_QUEUE_COMPUTE}, second = {VTA_QUEUE_COMPUTE, t.to};
    if (!contains(pushes, second)) {
        after(k, prev, true, first);
        after(k, prev, false, first);
    }
    send(k, prev, next, second, pushes, pops);
}

/* Makes `next` wait for `prev`. Pushes come before pops where both are added. *out_matched: the tokens that now go from
 * the end of prev to the start of next. */
static void join(trace *k, const state *prev, const state *next, token_set *out_matched)
{
    token_set pushes = prev->exit_pushes, pops = next->enter_pops;
    *out_matched = (token_set){.len = 0};
    for (uint8_t distance = QUEUES - 2; distance > 0; distance--) { /* what goes by way of others first */
        for (uint8_t from = 1; from < QUEUES; from++) {
            for (uint8_t to = 1; to < QUEUES; to++) {
                queue_token t = {from, to};
                if (abs(from - to) != distance || !prev->leaves[from] || !next->enters[to])
                    continue;
                if (distance == 1)
                    send(k, prev, next, t, &pushes, &pops);
                else
                    send_by_compute(k, prev, next, t, &pushes, &pops);
            }
        }
    }
    for (uint32_t i = 0; i < pushes.len; i++) {
        if (contains(&pops, pushes.at[i]))
            add(out_matched, pushes.at[i]);
        else
            after(k, prev, false, pushes.at[i]);
    }
    for (uint32_t i = 0; i < pops.len; i++)
        if (!contains(&pushes, pops.at[i]))
            before(k, next, true, pops.at[i]);
}

static void add_state(trace *k, const state *s)
{
    token_set ignored;
    if (!s->node)
        return;
    if (k->last.node)
        join(k, &k->last, s, &ignored);
    else
        k->first = *s;
    k->last = *s;
}

/* Gives what the first state pops, and takes what the last one pushes. */
static void close_trace(trace *k)
{
    for (uint32_t i = 0; k->last.node && i < k->first.enter_pops.len; i++)
        before(k, &k->first, true, k->first.enter_pops.at[i]);
    for (uint32_t i = 0; k->last.node && i < k->last.exit_pushes.len; i++)
        after(k, &k->last, false, k->last.exit_pushes.at[i]);
}

/* --- the walk --- */

static void walk(trace *k, tir_stmt *s);

static void walk_task(trace *k, tir_stmt *s)
{
    int64_t queue;
    state now = {.node = s->body};
    if (!tir_is_int(s->value, &queue) || queue < 1 || queue >= (int64_t)QUEUES) {
        (void)vta_error(k->p, "a coproc_scope names no queue: 1 loads, 2 computes, 3 stores");
        return;
    }
    now.enters[queue] = now.leaves[queue] = true;
    add_state(k, &now);
}

/* The last task of an iteration is followed by the first of the next. */
static void walk_loop(trace *k, tir_stmt *s)
{
    trace body = {.p = k->p, .ins = k->ins};
    state now = {.node = s};
    walk(&body, s->body);
    if (!body.last.node)
        return;
    join(&body, &body.last, &body.first, &now.exit_pushes);
    now.enter_pops = now.exit_pushes;
    memcpy(now.enters, body.first.enters, sizeof now.enters);
    memcpy(now.leaves, body.last.leaves, sizeof now.leaves);
    add_state(k, &now);
}

static void walk_if(trace *k, tir_stmt *s)
{
    state now = {0};
    tir_stmt *branches[] = {s->body, s->orelse};
    for (uint32_t i = 0; i < 2 && branches[i]; i++) {
        trace branch = {.p = k->p, .ins = k->ins};
        walk(&branch, branches[i]);
        if (!branch.last.node)
            continue;
        close_trace(&branch);
        now.node = s;
        for (uint32_t q = 0; q < QUEUES; q++) {
            now.enters[q] |= branch.first.enters[q];
            now.leaves[q] |= branch.last.leaves[q];
        }
    }
    add_state(k, &now);
}

static void walk(trace *k, tir_stmt *s)
{
    if (vta_is_attr(s, VTA_COPROC_SCOPE)) {
        walk_task(k, s);
        return;
    }
    if (s->kind == TIR_FOR && s->for_kind != FOR_VTHREAD) { /* threads run side by side: no edge from one to the next */
        walk_loop(k, s);
        return;
    }
    if (s->kind == TIR_IF) {
        walk_if(k, s);
        return;
    }
    if (s->body)
        walk(k, s->body);
    for (uint32_t i = 0; i < s->n_stmts; i++)
        walk(k, s->stmts[i]);
}

bool vta_plan_tokens(vta_pass *p, tir_stmt *body, vta_inserts *ins)
{
    trace k = {.p = p, .ins = ins};
    walk(&k, body);
    close_trace(&k);
    return p->ok;
}
