/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the order of operators with the smallest peak, by dynamic programming over sets of finished operators: all
 * orders that lead to a set count as one from there on. It works level by level. If there are more sets than the effort
 * allows, only the best of a level go on, and the result may not be the best. An operator that frees as much as it
 * adds, and stays below a peak that exists anyway, runs at once: this loses nothing, and chains cost nothing. */
#include "plan/facts.h"

#include <stdlib.h>
#include <string.h>

typedef struct search_set {
    uint64_t *done;  /* a bit for each operator */
    uint32_t *ready; /* operators that may come next */
    uint32_t n_ready;
    uint64_t live, peak, hash;
    uint32_t trace;
} search_set;

typedef struct search_trace {
    uint32_t before, op;
} search_trace;

typedef VEC(search_set) search_level;

typedef struct search {
    const plan_facts *f;
    uint32_t *first_pair; /* of each operator, in f->inplace */
    uint32_t *first_overlap; /* and in f->overlaps */
    bool *taken;          /* of each pair, at the last look */
    uint64_t *kept;       /* of each segment: bytes that live through it whoever uses them */
    uint64_t *enter;      /* of each segment: what lives on from such, less what becomes such; modulo 2^64 */
    uint32_t *seen, looks; /* of each root: the last operator looked at that has it */
    uint32_t words;
    uint64_t floor, limit, left; /* no order is below; only peaks below are wanted; looks at operators that are left */
    bool enters;                 /* the operators looked at begin a segment */
    bool cut;                    /* sets were dropped because of the effort */
    VEC(search_trace) traces;
} search;

typedef struct search_move {
    uint64_t live, peak; /* behind the operator, and while it runs */
} search_move;

static bool has(const uint64_t *set, uint32_t op)
{
    return set[op / 64] >> (op % 64) & 1;
}

/* Uses decide in this segment how long the root lives. */
static bool is_counted(const plan_facts *f, uint32_t root, uint32_t segment)
{
    return facts_in_workspace(f, root) &&
           (f->keep_first[root] == UINT32_MAX || segment < f->keep_first[root] || segment > f->keep_last[root]);
}

/* How many of the list are in the set, as far as 0, some, and all but `op` matter. */
static void count_done(const u32s *list, const uint64_t *done, uint32_t op, bool *any, bool *all)
{
    for (uint32_t k = 0; k < list->len; k++) {
        *any |= has(done, list->data[k]);
        *all &= list->data[k] == op || has(done, list->data[k]);
    }
}

static void look_at_root(const plan_facts *f, uint32_t root, const uint64_t *done, uint32_t op, bool *alive, bool *ends)
{
    const uint32_t segment = f->p->ops.data[op].segment;
    *alive = f->keep_first[root] != UINT32_MAX && segment > f->keep_last[root];
    *ends = f->keep_first[root] == UINT32_MAX || *alive;
    *alive |= f->p->values.data[root].from_start;
    count_done(&f->readers[root], done, op, alive, ends);
    count_done(&f->writers[root], done, op, alive, ends);
}

/* Bytes that results need not have beside operands that end here: as join_inplace pairs them. */
static uint64_t shared_bytes(search *x, const uint64_t *done, uint32_t op)
{
    const plan_facts *f = x->f;
    uint64_t sum = 0;
    for (uint32_t i = x->first_pair[op]; i < x->first_pair[op + 1]; i++) {
        const plan_inplace *pair = &f->inplace.data[i];
        bool alive, ends, used = false;
        for (uint32_t k = x->first_pair[op]; k < i && !used; k++)
            used = x->taken[k] && (f->inplace.data[k].from == pair->from || f->inplace.data[k].to == pair->to);
        look_at_root(f, pair->from, done, op, &alive, &ends);
        x->taken[i] = alive && ends && !used;
        sum += x->taken[i] ? f->p->values.data[pair->to].bytes : 0;
    }
    for (uint32_t i = x->first_overlap[op]; i < x->first_overlap[op + 1]; i++) {
        const plan_overlap *o = &f->overlaps.data[i];
        bool alive, ends, was, last;
        look_at_root(f, o->from, done, op, &alive, &ends);
        look_at_root(f, o->to, done, op, &was, &last);
        for (uint32_t k = x->first_pair[op]; k < x->first_pair[op + 1]; k++)
            was |= x->taken[k] && (f->inplace.data[k].from == o->from || f->inplace.data[k].to == o->to);
        sum += alive && ends && !was ? facts_saved(f, o) : 0;
    }
    return sum;
}

static uint64_t scratch_bytes(const plan_op *o)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < o->n_scratch; k++)
        sum += plan_scratch_bytes(o, k, 1);
    return sum;
}

static search_move look(search *x, const search_set *s, uint32_t op)
{
    const plan_facts *f = x->f;
    const plan_op *o = &f->p->ops.data[op];
    uint64_t born = 0, gone = 0, live = s->live + (x->enters ? x->enter[o->segment] : 0);
    x->looks++;
    x->left -= x->left > 0;
    for (uint32_t i = 0; i < o->n_args; i++) {
        uint32_t r = f->root[o->args[i]];
        bool alive, ends;
        if (x->seen[r] == x->looks || !is_counted(f, r, o->segment))
            continue;
        x->seen[r] = x->looks;
        look_at_root(f, r, s->done, op, &alive, &ends);
        born += alive ? 0 : f->p->values.data[r].bytes;
        gone += ends ? f->p->values.data[r].bytes : 0;
    }
    uint64_t most = live + born + scratch_bytes(o) + x->kept[o->segment], shared = shared_bytes(x, s->done, op);
    most -= shared < most ? shared : most;
    return (search_move){live + born - gone, most > s->peak ? most : s->peak};
}

/* --- levels --- */

/* What is ready in `s` behind `op`; a segment begins when the one before is done. */
static void find_ready(const search *x, arena *a, const search_set *from, uint32_t op, uint32_t n_done, search_set *s)
{
    const plan_facts *f = x->f;
    u32s list = {0};
    const uint32_t segment = f->p->ops.data[op].segment;
    for (uint32_t k = 0; k < from->n_ready; k++)
        if (from->ready[k] != op)
            vec_push(a, &list, from->ready[k]);
    for (uint32_t k = 0; k < f->after[op].len; k++) {
        uint32_t next = f->after[op].data[k];
        bool any = false, all = true;
        count_done(&f->before[next], s->done, UINT32_MAX, &any, &all);
        if (all && f->p->ops.data[next].segment == segment)
            vec_push(a, &list, next);
    }
    if (list.len == 0 && n_done < f->n_ops) /* operators are numbered by segment */
        for (uint32_t k = n_done; k < f->n_ops && f->p->ops.data[k].segment == f->p->ops.data[n_done].segment; k++) {
            bool any = false, all = true;
            count_done(&f->before[k], s->done, UINT32_MAX, &any, &all);
            if (all)
                vec_push(a, &list, k);
        }
    s->ready = list.data;
    s->n_ready = list.len;
}

static uint64_t mixed(uint32_t op) /* splitmix64 */
{
    uint64_t z = (op + 1u) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Of sets that are equal the one with the least peak stays; the table maps hashes to places in the level. */
static void add_set(search *x, arena *a, search_level *level, uint32_t *table, uint32_t size, const search_set *from,
                    uint32_t op, search_move m, uint32_t n_done)
{
    uint64_t *done = arena_array(a, uint64_t, x->words);
    memcpy(done, from->done, x->words * sizeof *done);
    done[op / 64] |= UINT64_C(1) << (op % 64);
    search_set s = {.done = done, .live = m.live, .peak = m.peak, .hash = from->hash ^ mixed(op)};
    uint32_t at = (uint32_t)(s.hash % size);
    for (; table[at] != 0; at = (at + 1) % size) {
        search_set *other = &level->data[table[at] - 1];
        if (other->hash != s.hash || memcmp(other->done, done, x->words * sizeof *done) != 0)
            continue;
        if (m.peak < other->peak) {
            other->peak = m.peak;
            x->traces.data[other->trace] = (search_trace){from->trace, op};
        }
        return;
    }
    find_ready(x, a, from, op, n_done, &s);
    s.trace = x->traces.len;
    vec_push(x->f->a, &x->traces, ((search_trace){from->trace, op}));
    vec_push(a, level, s);
    table[at] = level->len;
}

static int by_promise(const void *l, const void *r)
{
    const search_set *a = l, *b = r;
    if (a->peak != b->peak)
        return a->peak < b->peak ? -1 : 1;
    if (a->live != b->live)
        return a->live < b->live ? -1 : 1;
    return a->trace < b->trace ? -1 : a->trace > b->trace;
}

/* The operator that may come now without loss; UINT32_MAX: none. */
static uint32_t find_free(search *x, const search_set *s, search_move *moves)
{
    for (uint32_t k = 0; k < s->n_ready; k++) {
        moves[k] = look(x, s, s->ready[k]);
        if (moves[k].live <= s->live && moves[k].peak <= s->peak)
            return k;
    }
    return UINT32_MAX;
}

static void expand(search *x, arena *a, const search_level *from, search_level *to, uint32_t n_done)
{
    uint32_t most = 0, widest = 0;
    for (uint32_t i = 0; i < from->len; i++) {
        most += from->data[i].n_ready;
        widest = from->data[i].n_ready > widest ? from->data[i].n_ready : widest;
    }
    uint32_t size = 2 * most + 3, *table = arena_array(a, uint32_t, size);
    search_move *moves = arena_array(a, search_move, widest + 1u);
    const plan_op *ops = x->f->p->ops.data;
    x->enters = n_done == 1 || ops[n_done - 1].segment != ops[n_done - 2].segment;
    for (uint32_t i = 0; i < from->len; i++) {
        const search_set *s = &from->data[i];
        uint32_t only = find_free(x, s, moves);
        for (uint32_t k = only == UINT32_MAX ? 0 : only; k < (only == UINT32_MAX ? s->n_ready : only + 1); k++)
            if (moves[k].peak < x->limit)
                add_set(x, a, to, table, size, s, s->ready[k], moves[k], n_done);
    }
}

/* As many sets as the effort that is left has looks for, level by level. */
static void narrow(search *x, search_level *level, uint32_t levels_left)
{
    uint64_t looks = 0, allowed = x->left / (levels_left + 1u);
    uint32_t kept = 0;
    if (level->len > 1)
        qsort(level->data, level->len, sizeof *level->data, by_promise);
    for (; kept < level->len; kept++) {
        looks += level->data[kept].n_ready;
        if (kept > 0 && looks > allowed)
            break;
    }
    x->cut |= kept < level->len;
    level->len = kept;
}

static search_set start(search *x, arena *a)
{
    const plan_facts *f = x->f;
    search_set s = {.done = arena_array(a, uint64_t, x->words), .peak = x->floor};
    u32s list = {0};
    for (uint32_t op = 0; op < f->n_ops && f->p->ops.data[op].segment == f->p->ops.data[0].segment; op++)
        if (f->before[op].len == 0)
            vec_push(a, &list, op);
    for (uint32_t v = 0; v < f->n_values; v++)
        if (f->p->values.data[v].from_start && f->readers[v].len > 0)
            s.live += f->p->values.data[v].bytes;
    s.ready = list.data;
    s.n_ready = list.len;
    vec_push(f->a, &x->traces, ((search_trace){0, 0}));
    return s;
}

static bool run(search *x, uint32_t *out)
{
    arena memory[2];
    search_level levels[2] = {{0}, {0}};
    const uint32_t n = x->f->n_ops;
    uint32_t now = 0;
    arena_init(&memory[0], x->f->a);
    arena_init(&memory[1], x->f->a);
    vec_push(&memory[0], &levels[0], start(x, &memory[0]));
    for (uint32_t done = 0; done < n && levels[now].len > 0; done++, now ^= 1) {
        narrow(x, &levels[now], n - done);
        arena_free(&memory[now ^ 1]);
        levels[now ^ 1] = (search_level){0};
        expand(x, &memory[now ^ 1], &levels[now], &levels[now ^ 1], done + 1);
    }
    bool found = levels[now].len > 0;
    if (found) {
        uint32_t trace = levels[now].data[0].trace;
        x->limit = levels[now].data[0].peak;
        for (uint32_t i = n; i-- > 0; trace = x->traces.data[trace].before)
            out[i] = x->traces.data[trace].op;
    }
    arena_free(&memory[0]);
    arena_free(&memory[1]);
    return found;
}

/* --- bounds --- */

/* A root that lives through segments lives before them from its first use, and behind them to its last. */
static void collect_kept(search *x)
{
    const plan_facts *f = x->f;
    x->kept = arena_array(f->a, uint64_t, f->n_segments + 1u);
    x->enter = arena_array(f->a, uint64_t, f->n_segments + 1u);
    for (uint32_t v = 0; v < f->n_values; v++) {
        const u32s *lists[2] = {&f->readers[v], &f->writers[v]};
        const uint64_t bytes = f->p->values.data[v].bytes;
        bool before = false, behind = false;
        if (f->root[v] != v || !facts_in_workspace(f, v) || f->keep_first[v] == UINT32_MAX ||
            lists[0]->len + lists[1]->len == 0)
            continue;
        for (uint32_t l = 0; l < 2; l++)
            for (uint32_t k = 0; k < lists[l]->len; k++) {
                before |= f->p->ops.data[lists[l]->data[k]].segment < f->keep_first[v];
                behind |= f->p->ops.data[lists[l]->data[k]].segment > f->keep_last[v];
            }
        for (uint32_t s = f->keep_first[v]; s <= f->keep_last[v]; s++)
            x->kept[s] += bytes;
        x->enter[f->keep_first[v]] -= before ? bytes : 0;
        x->enter[f->keep_last[v] + 1] += behind ? bytes : 0;
    }
}

/* What an operator touches, with everything shared that may be: each place of a pair counts once. */
static uint64_t touched(search *x, uint32_t op)
{
    const plan_facts *f = x->f;
    const plan_op *o = &f->p->ops.data[op];
    uint64_t sum = x->kept[o->segment] + scratch_bytes(o), from = 0, to = 0;
    x->looks++;
    for (uint32_t i = 0; i < o->n_args; i++) {
        uint32_t r = f->root[o->args[i]];
        if (x->seen[r] != x->looks && is_counted(f, r, o->segment))
            sum += f->p->values.data[r].bytes;
        x->seen[r] = x->looks;
    }
    x->looks++;
    for (uint32_t i = x->first_pair[op]; i < x->first_pair[op + 1]; i++) {
        const plan_inplace *pair = &f->inplace.data[i];
        from += x->seen[pair->from] != x->looks ? f->p->values.data[pair->from].bytes : 0;
        to += x->seen[pair->to] != x->looks ? f->p->values.data[pair->to].bytes : 0;
        x->seen[pair->from] = x->seen[pair->to] = x->looks;
    }
    sum -= from < to ? from : to;
    for (uint32_t i = x->first_overlap[op]; i < x->first_overlap[op + 1]; i++) {
        uint64_t saved = facts_saved(f, &f->overlaps.data[i]);
        sum -= saved < sum ? saved : sum;
    }
    return sum;
}

static void find_floor(search *x)
{
    const plan_facts *f = x->f;
    x->first_pair = arena_array(f->a, uint32_t, f->n_ops + 1u);
    for (uint32_t i = 0; i < f->inplace.len; i++)
        x->first_pair[f->inplace.data[i].op + 1]++;
    x->first_overlap = arena_array(f->a, uint32_t, f->n_ops + 1u);
    for (uint32_t i = 0; i < f->overlaps.len; i++)
        x->first_overlap[f->overlaps.data[i].op + 1]++;
    for (uint32_t op = 0; op < f->n_ops; op++) {
        x->first_pair[op + 1] += x->first_pair[op];
        x->first_overlap[op + 1] += x->first_overlap[op];
    }
    x->taken = arena_array(f->a, bool, f->inplace.len + 1u);
    collect_kept(x);
    for (uint32_t op = 0; op < f->n_ops; op++) {
        uint64_t bytes = touched(x, op);
        x->floor = bytes > x->floor ? bytes : x->floor;
    }
}

bool order_search(const plan_facts *f, uint64_t effort, uint64_t below, uint32_t *out, uint64_t *out_bound)
{
    search x = {.f = f, .limit = below, .left = effort, .words = f->n_ops / 64 + 1};
    x.seen = arena_array(f->a, uint32_t, f->n_values + 1u);
    find_floor(&x);
    *out_bound = x.floor;
    if (x.floor >= below || f->n_ops == 0)
        return false;
    bool found = run(&x, out);
    if (!x.cut) /* every set was looked at, or could only be as bad */
        *out_bound = x.limit;
    return found;
}
