/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a finished plan from the problem alone. It shares nothing with the planner except the definition of a root. */
#include "plan/plan.h"
#include "tir/build.h"

#include <stdlib.h>
#include <string.h>

#define NO_ROOT UINT32_MAX

typedef struct verify_piece {
    uint64_t from, to;    /* bytes of the workspace */
    uint32_t first, last; /* layers */
    uint32_t root;
    const char *name;
} verify_piece;

static bool fail(compiler *c, const char *what, const char *a, const char *b)
{
    return diag_error(&c->diags, DIAG_VERIFY, src_loc_none(), "plan: %s: '%s' and '%s'", what, a, b);
}

typedef struct verify_write {
    uint32_t value, op;
} verify_write;

/* Values that operators write, and operators, by the root that they touch: those of root r follow each other from
 * first[r], to the one before first[r + 1]. */
typedef struct verify_tree {
    uint32_t *root, *first, *first_op, *ops;
    verify_write *writes;
    uint64_t *start; /* of each value, in its root */
} verify_tree;

static void collect_writers(const plan_problem *p, arena *a, verify_tree *t)
{
    uint32_t n = p->values.len;
    for (uint32_t v = 0; v < n; v++)
        t->root[v] = plan_root(p, v, &t->start[v]);
    for (uint32_t op = 0; op < p->ops.len; op++)
        for (uint32_t i = p->ops.data[op].n_inputs; i < p->ops.data[op].n_args; i++)
            t->first[t->root[p->ops.data[op].args[i]] + 2]++;
    for (uint32_t r = 2; r <= n + 1; r++)
        t->first[r] += t->first[r - 1];
    t->writes = arena_array(a, verify_write, t->first[n + 1] + 1);
    for (uint32_t op = 0; op < p->ops.len; op++)
        for (uint32_t i = p->ops.data[op].n_inputs; i < p->ops.data[op].n_args; i++) {
            uint32_t v = p->ops.data[op].args[i];
            t->writes[t->first[t->root[v] + 1]++] = (verify_write){v, op};
        }
}

/* In two rounds: the first counts. */
static void collect_ops(const plan_problem *p, arena *a, verify_tree *t)
{
    uint32_t n = p->values.len,
             *seen = arena_array(a, uint32_t, n + 1); /* of each root: twice the operator, and 1 or 2 */
    for (uint32_t round = 1; round <= 2; round++) {
        for (uint32_t op = 0; op < p->ops.len; op++)
            for (uint32_t i = 0; i < p->ops.data[op].n_args; i++) {
                uint32_t r = t->root[p->ops.data[op].args[i]];
                if (seen[r] == 2 * op + round)
                    continue;
                seen[r] = 2 * op + round;
                if (round == 1)
                    t->first_op[r + 2]++;
                else
                    t->ops[t->first_op[r + 1]++] = op;
            }
        for (uint32_t r = 2; r <= n + 1 && round == 1; r++)
            t->first_op[r] += t->first_op[r - 1];
        if (round == 1)
            t->ops = arena_array(a, uint32_t, t->first_op[n + 1] + 1);
    }
}

static void collect_tree(const plan_problem *p, arena *a, verify_tree *t)
{
    uint32_t n = p->values.len;
    *t = (verify_tree){.root = arena_array(a, uint32_t, n + 1),
                       .first = arena_array(a, uint32_t, n + 2),
                       .first_op = arena_array(a, uint32_t, n + 2),
                       .start = arena_array(a, uint64_t, n + 1)};
    collect_writers(p, a, t);
    collect_ops(p, a, t);
}

/* Who writes bytes that the operator reads, or writes too, does so in a layer before or behind it, as in the problem.
 */
static bool check_operand(compiler *c, const plan *pl, const verify_tree *t, uint32_t op, uint32_t operand)
{
    const plan_problem *p = pl->problem;
    uint32_t root = t->root[operand];
    for (uint32_t k = t->first[root]; k < t->first[root + 1]; k++) {
        uint32_t v = t->writes[k].value, w = t->writes[k].op;
        bool overlap = t->start[operand] < t->start[v] + p->values.data[v].bytes &&
                       t->start[v] < t->start[operand] + p->values.data[operand].bytes;
        if (w == op || !overlap)
            continue;
        if (w < op ? pl->tasks[w].layer >= pl->tasks[op].layer : pl->tasks[w].layer <= pl->tasks[op].layer)
            return fail(c, "an operator does not come after what it depends on", p->ops.data[w < op ? op : w].name,
                        p->ops.data[w < op ? w : op].name);
    }
    return true;
}

static bool check_order(compiler *c, const plan *pl, const verify_tree *t)
{
    const plan_problem *p = pl->problem;
    uint32_t layers = 0, before = 0; /* those of the segments so far, and of the ones before the last of them */
    for (uint32_t op = 0; op < p->ops.len; op++) {
        const plan_op *o = &p->ops.data[op];
        before = op > 0 && o->segment != p->ops.data[op - 1].segment ? layers : before;
        layers = pl->tasks[op].layer + 1 > layers ? pl->tasks[op].layer + 1 : layers;
        if (pl->tasks[op].layer < before)
            return fail(c, "an operator runs with a segment before its own", o->name, "");
        for (uint32_t i = 0; i < o->n_args; i++) {
            const bool again = p->steps.len > 1 || p->values.data[t->root[o->args[i]]].storage == STORE_STATE;
            if ((i < o->n_inputs || again) && !check_operand(c, pl, t, op, o->args[i]))
                return false;
        }
    }
    return true;
}

/* --- what lives when --- */

typedef struct verify_life {
    uint32_t *first, *last; /* layers of each root; first > last: none */
} verify_life;

static void live_in(verify_life *x, uint32_t root, uint32_t layer)
{
    x->first[root] = layer < x->first[root] ? layer : x->first[root];
    x->last[root] = layer > x->last[root] ? layer : x->last[root];
}

/* Layers that run from step `from` to step `to`; false: none. */
static bool layers_of(const plan *pl, uint32_t from, uint32_t to, uint32_t *first, uint32_t *last)
{
    *first = UINT32_MAX;
    *last = 0;
    for (uint32_t k = from; k <= to; k++) {
        const plan_step *s = &pl->problem->steps.data[k];
        if (s->kind != PLAN_RUN)
            continue;
        *first = pl->segment_layer[s->to] < *first ? pl->segment_layer[s->to] : *first;
        *last = pl->segment_layer[s->to + 1] - 1;
    }
    return *first <= *last;
}

/* A round finds what was made before the loop, or what the round before left, where it was; what is read behind the
 * loop must not be disturbed by the rounds that follow. */
static void live_through_loop(const plan *pl, const verify_tree *t, const verify_life *used, uint32_t from, uint32_t to,
                              bool *inside, verify_life *out)
{
    const plan_problem *p = pl->problem;
    uint32_t first, last;
    if (!layers_of(pl, from, to, &first, &last))
        return;
    memset(inside, 0, p->values.len * sizeof *inside);
    for (uint32_t op = 0; op < p->ops.len; op++)
        for (uint32_t i = 0; i < p->ops.data[op].n_args; i++)
            inside[t->root[p->ops.data[op].args[i]]] |= pl->tasks[op].layer >= first && pl->tasks[op].layer <= last;
    for (uint32_t k = from; k <= to; k++)
        if (p->steps.data[k].kind == PLAN_JUMP_IF_ZERO)
            inside[t->root[p->steps.data[k].value]] = true;
    for (uint32_t v = 0; v < p->values.len; v++)
        if (inside[v] && used->first[v] <= used->last[v] && (used->first[v] < first || used->last[v] > last)) {
            live_in(out, v, first);
            live_in(out, v, last);
        }
}

static void find_lives(const plan *pl, const verify_tree *t, arena *a, verify_life *out)
{
    const plan_problem *p = pl->problem;
    uint32_t n = p->values.len + 1, first, last;
    verify_life used = {arena_array(a, uint32_t, n), arena_array(a, uint32_t, n)};
    *out = (verify_life){arena_array(a, uint32_t, n), arena_array(a, uint32_t, n)};
    memset(used.first, 0xff, n * sizeof *used.first);
    for (uint32_t op = 0; op < p->ops.len; op++)
        for (uint32_t i = 0; i < p->ops.data[op].n_args; i++)
            live_in(&used, t->root[p->ops.data[op].args[i]], pl->tasks[op].layer);
    for (uint32_t v = 0; v < p->values.len; v++)
        if (p->values.data[v].from_start && used.first[v] != UINT32_MAX)
            live_in(&used, v, 0);
    for (uint32_t k = 1; k < p->steps.len; k++) /* what a jump asks must still be there */
        if (p->steps.data[k].kind == PLAN_JUMP_IF_ZERO && layers_of(pl, 0, k, &first, &last) &&
            used.first[t->root[p->steps.data[k].value]] <= last)
            live_in(&used, t->root[p->steps.data[k].value], last);
    memcpy(out->first, used.first, n * sizeof *used.first);
    memcpy(out->last, used.last, n * sizeof *used.last);
    bool *inside = arena_array(a, bool, n);
    for (uint32_t k = 0; k < p->steps.len; k++)
        if (p->steps.data[k].kind == PLAN_JUMP && p->steps.data[k].to <= k)
            live_through_loop(pl, t, &used, p->steps.data[k].to, k, inside, out);
}

static uint32_t count_scratch(const plan_problem *p)
{
    uint32_t n = 0;
    for (uint32_t op = 0; op < p->ops.len; op++)
        n += p->ops.data[op].n_scratch;
    return n;
}

static void collect_values(const plan *pl, const verify_tree *t, arena *a, verify_piece **pieces, uint32_t *n)
{
    const plan_problem *p = pl->problem;
    verify_life life;
    find_lives(pl, t, a, &life);
    *pieces = arena_array(a, verify_piece, p->values.len + count_scratch(p));
    *n = 0;
    for (uint32_t v = 0; v < p->values.len; v++) {
        const plan_value *x = &p->values.data[v];
        if (x->parent < 0 && x->storage == STORE_WORKSPACE && x->bytes > 0 && life.first[v] != UINT32_MAX)
            (*pieces)[(*n)++] = (verify_piece){
                pl->places[v].offset, pl->places[v].offset + x->bytes, life.first[v], life.last[v], v, x->name};
    }
}

/* --- overlaps --- */

/* What an operator does with two values, by their roots: it reads a, writes b, and may write b over a. */
typedef struct touch {
    bool reads, writes, in_place;
} touch;

static touch touch_of(const verify_tree *t, const plan_op *o, uint32_t a, uint32_t b)
{
    touch x = {0};
    for (uint32_t n = 0; n < o->n_inputs; n++)
        x.reads |= t->root[o->args[n]] == a;
    for (uint32_t n = o->n_inputs; n < o->n_args; n++)
        x.writes |= t->root[o->args[n]] == b;
    for (uint32_t n = 0; n < o->n_inplace; n++)
        x.in_place |= t->root[o->args[o->inplace[n].in]] == a && t->root[o->args[o->inplace[n].out]] == b;
    return x;
}

/* The operators that touch one of two values, each once and in their order. */
typedef struct two_lists {
    const uint32_t *a, *b, *end_a, *end_b;
} two_lists;

static two_lists all_of(const verify_tree *t, uint32_t a, uint32_t b)
{
    return (two_lists){t->ops + t->first_op[a], t->ops + t->first_op[b], t->ops + t->first_op[a + 1],
                       t->ops + t->first_op[b + 1]};
}

static bool next_of(two_lists *l, uint32_t *op)
{
    const uint32_t a = l->a < l->end_a ? *l->a : UINT32_MAX, b = l->b < l->end_b ? *l->b : UINT32_MAX;
    *op = a < b ? a : b;
    l->a += a == *op && l->a < l->end_a;
    l->b += b == *op && l->b < l->end_b;
    return *op != UINT32_MAX;
}

/* b may lie on a when one operator reads a for the last time, alone in its layer, and writes b over it in place. */
static bool on_purpose(const plan *pl, const verify_tree *t, const verify_piece *a, const verify_piece *b)
{
    if (a->from != b->from || a->to != b->to || a->last != b->first || a->root == NO_ROOT || b->root == NO_ROOT)
        return false;
    bool written = false;
    two_lists both = all_of(t, a->root, b->root);
    for (uint32_t op; next_of(&both, &op);) {
        const touch x = touch_of(t, &pl->problem->ops.data[op], a->root, b->root);
        if (pl->tasks[op].layer == a->last && x.reads && !x.writes)
            return false;
        if (x.writes && (!x.in_place || written || pl->tasks[op].layer != b->first))
            return false;
        written |= x.writes;
    }
    return written;
}

static bool keeps_distance(const plan *pl, const plan_op *o, uint32_t in, uint32_t out)
{
    uint64_t from = pl->places[o->args[in]].offset, to = pl->places[o->args[out]].offset;
    for (uint32_t n = 0; n < o->n_distances; n++)
        if (o->distances[n].in == in && o->distances[n].out == out)
            return to + o->distances[n].below <= from || to >= from + o->distances[n].above;
    return false;
}

/* b may overlap a when one operator, in one part, reads a for the last time and writes the first of b at the distances
 * that its loops allow, and nobody else touches either of them in that layer. */
static bool behind_reads(const plan *pl, const verify_tree *t, const verify_piece *a, const verify_piece *b)
{
    if (a->last != b->first || a->root == NO_ROOT || b->root == NO_ROOT)
        return false;
    uint32_t only = UINT32_MAX;
    for (uint32_t k = t->first_op[b->root]; k < t->first_op[b->root + 1]; k++)
        if (pl->tasks[t->ops[k]].layer == b->first && only != UINT32_MAX)
            return false;
        else if (pl->tasks[t->ops[k]].layer == b->first)
            only = t->ops[k];
    for (uint32_t k = t->first_op[a->root]; k < t->first_op[a->root + 1]; k++)
        if (pl->tasks[t->ops[k]].layer == a->last && t->ops[k] != only)
            return false;
    if (only == UINT32_MAX || pl->tasks[only].parts != 1)
        return false;
    const plan_op *o = &pl->problem->ops.data[only];
    for (uint32_t i = 0; i < o->n_args; i++)
        for (uint32_t k = o->n_inputs; k < o->n_args; k++) {
            if (t->root[o->args[i]] != a->root || t->root[o->args[k]] != b->root)
                continue;
            if (i >= o->n_inputs || !keeps_distance(pl, o, i, k))
                return false;
        }
    return true;
}

static int by_time(const void *x, const void *y)
{
    const verify_piece *a = x, *b = y;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    return a->from < b->from ? -1 : a->from > b->from;
}

static int by_end(const void *x, const void *y)
{
    const verify_piece *const *a = x, *const *b = y;
    if ((*a)->last != (*b)->last)
        return (*a)->last < (*b)->last ? -1 : 1;
    return *a < *b ? -1 : *a > *b; /* of one array */
}

/* Pieces that are alive, by rising address. */
typedef struct alive {
    const verify_piece **data;
    uint32_t n;
    uint64_t longest; /* bytes of one of them: no piece that starts further below reaches an address */
} alive;

static uint32_t find_place(const alive *x, uint64_t from)
{
    uint32_t low = 0, high = x->n;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (x->data[mid]->from < from)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void remove_piece(alive *live, const verify_piece *x)
{
    uint32_t at = find_place(live, x->from);
    while (live->data[at] != x)
        at++;
    memmove(live->data + at, live->data + at + 1, (live->n - 1 - at) * sizeof *live->data);
    live->n--;
}

static bool may_lie(compiler *c, const plan *pl, const verify_tree *t, const verify_piece *x, const verify_piece *other)
{
    return on_purpose(pl, t, x, other) || on_purpose(pl, t, other, x) || behind_reads(pl, t, x, other) ||
           behind_reads(pl, t, other, x) ||
           fail(c, "values that are needed at the same time overlap", x->name, other->name);
}

static bool check_piece(compiler *c, const plan *pl, const verify_tree *t, alive *live, const verify_piece *x)
{
    uint32_t at = find_place(live, x->from);
    for (uint32_t k = at; k-- > 0 && live->data[k]->from + live->longest > x->from;)
        if (live->data[k]->to > x->from && !may_lie(c, pl, t, x, live->data[k]))
            return false;
    for (uint32_t k = at; k < live->n && live->data[k]->from < x->to; k++)
        if (!may_lie(c, pl, t, x, live->data[k]))
            return false;
    memmove(live->data + at + 1, live->data + at, (live->n - at) * sizeof *live->data);
    live->data[at] = x;
    live->longest = x->to - x->from > live->longest ? x->to - x->from : live->longest;
    live->n++;
    return true;
}

static bool check_overlaps(compiler *c, const plan *pl, const verify_tree *t, arena *a, verify_piece *x, uint32_t n)
{
    alive live = {.data = arena_array(a, const verify_piece *, n + 1u)};
    const verify_piece **ends = arena_array(a, const verify_piece *, n + 1u);
    if (n > 0)
        qsort(x, n, sizeof *x, by_time);
    for (uint32_t i = 0; i < n; i++)
        ends[i] = &x[i];
    if (n > 0)
        qsort(ends, n, sizeof *ends, by_end);
    for (uint32_t i = 0, gone = 0; i < n; i++) {
        if (x[i].to > pl->workspace_bytes)
            return fail(c, "a value reaches beyond the workspace", x[i].name, "workspace");
        while (ends[gone]->last < x[i].first) /* x[i] itself ends later */
            remove_piece(&live, ends[gone++]);
        if (!check_piece(c, pl, t, &live, &x[i]))
            return false;
    }
    return true;
}

/* Scratch lives in the layer of its operator. */
static void collect_scratch(const plan *pl, verify_piece *pieces, uint32_t *n)
{
    for (uint32_t op = 0; op < pl->problem->ops.len; op++) {
        const plan_op *o = &pl->problem->ops.data[op];
        const plan_task *t = &pl->tasks[op];
        for (uint32_t s = 0; s < o->n_scratch; s++) {
            uint64_t from = t->scratch_offset[s], to = from + plan_scratch_bytes(o, s, t->parts);
            if (to > from)
                pieces[(*n)++] = (verify_piece){from, to, t->layer, t->layer, NO_ROOT, o->name};
        }
    }
}

/* Only where an operand has no bound may scratch have none: then a run gets memory for both. */
static bool check_scratch(compiler *c, const plan_problem *p, const plan_op *o)
{
    bool open = false;
    for (uint32_t i = 0; i < o->n_args; i++)
        open |= p->values.data[o->args[i]].bytes == 0;
    for (uint32_t k = 0; k < o->n_scratch && !open; k++)
        if (tir_buffer_count(o->scratch[k].buffer) < 0)
            return fail(c, "scratch of an operator has no size", o->name, o->scratch[k].buffer->name);
    return true;
}

bool plan_verify(compiler *c, const plan *pl)
{
    arena tmp;
    arena_init(&tmp, &c->mem);
    verify_piece *pieces;
    uint32_t n;
    verify_tree tree;
    collect_tree(pl->problem, &tmp, &tree);
    collect_values(pl, &tree, &tmp, &pieces, &n);
    collect_scratch(pl, pieces, &n);
    bool ok = check_order(c, pl, &tree) && check_overlaps(c, pl, &tree, &tmp, pieces, n);
    for (uint32_t op = 0; ok && op < pl->problem->ops.len; op++)
        if (pl->tasks[op].parts == 0)
            ok = fail(c, "an operator has no part", pl->problem->ops.data[op].name, "");
        else
            ok = check_scratch(c, pl->problem, &pl->problem->ops.data[op]);
    arena_free(&tmp);
    return ok;
}
