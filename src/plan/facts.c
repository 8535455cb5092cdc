/* SPDX-License-Identifier: Apache-2.0 */
/* Facts that follow from a problem: roots of alias classes, dependencies, in-place pairs. */
#include "plan/facts.h"
#include "tir/build.h"

uint64_t plan_scratch_bytes(const plan_op *op, uint32_t k, uint32_t parts)
{
    const tir_buffer *b = op->scratch[k].buffer;
    int64_t count = tir_buffer_count(b);
    uint64_t one = count > 0 ? (uint64_t)count * dtype_bytes(b->dt) : 0;
    return one * (op->scratch[k].per_part ? parts : 1);
}

uint32_t plan_root(const plan_problem *p, uint32_t v, uint64_t *out_offset)
{
    *out_offset = 0;
    while (p->values.data[v].parent >= 0) {
        *out_offset += p->values.data[v].parent_offset;
        v = (uint32_t)p->values.data[v].parent;
    }
    return v;
}

/* --- relations --- */

/* Operators come in ascending order: the last one tells whether this one is there. */
static void add_last(arena *a, u32s *set, uint32_t op)
{
    if (set->len == 0 || vec_last(set) != op)
        vec_push(a, set, op);
}

static bool overlap(const plan_facts *f, uint32_t v, uint32_t w)
{
    uint64_t v0 = f->start[v], w0 = f->start[w];
    if (f->p->values.data[f->root[v]].bytes == 0) /* nobody knows how many it will have */
        return true;
    return v0 < w0 + f->p->values.data[w].bytes && w0 < v0 + f->p->values.data[v].bytes;
}

static bool writes_overlapping(const plan_facts *f, uint32_t op, uint32_t value)
{
    const plan_op *o = &f->p->ops.data[op];
    for (uint32_t i = o->n_inputs; i < o->n_args; i++)
        if (f->root[o->args[i]] == f->root[value] && (o->args[i] == value || overlap(f, o->args[i], value)))
            return true;
    return false;
}

static bool reads_overlapping(const plan_facts *f, uint32_t op, uint32_t value)
{
    const plan_op *o = &f->p->ops.data[op];
    for (uint32_t i = 0; i < o->n_inputs; i++)
        if (f->root[o->args[i]] == f->root[value] && (o->args[i] == value || overlap(f, o->args[i], value)))
            return true;
    return false;
}

/* What a loop carries, or a state, is written again after it was read: the writer waits for those who read and wrote
 * before. */
static void collect_rewritten(plan_facts *f, uint32_t op, uint32_t value, uint32_t *seen)
{
    const u32s *lists[2] = {&f->readers[f->root[value]], &f->writers[f->root[value]]};
    for (uint32_t l = 0; l < 2; l++)
        for (uint32_t k = 0; k < lists[l]->len; k++) {
            uint32_t w = lists[l]->data[k];
            if (w == op || seen[w] == op + 1 ||
                !(reads_overlapping(f, w, value) || writes_overlapping(f, w, value)))
                continue;
            seen[w] = op + 1;
            vec_push(f->a, &f->before[op], w);
        }
}

/* seen: of each operator, 1 and the last one that was found to depend on it. */
static void collect_op(plan_facts *f, uint32_t op, uint32_t *seen)
{
    const plan_op *o = &f->p->ops.data[op];
    for (uint32_t i = o->n_inputs; i < o->n_args; i++)
        if (f->p->steps.len > 1 || f->p->values.data[f->root[o->args[i]]].storage == STORE_STATE)
            collect_rewritten(f, op, o->args[i], seen);
    for (uint32_t i = 0; i < o->n_inputs; i++) {
        const u32s *writers = &f->writers[f->root[o->args[i]]];
        for (uint32_t k = 0; k < writers->len; k++) {
            uint32_t w = writers->data[k];
            if (seen[w] == op + 1 || !writes_overlapping(f, w, o->args[i]))
                continue;
            seen[w] = op + 1;
            vec_push(f->a, &f->before[op], w);
        }
        add_last(f->a, &f->readers[f->root[o->args[i]]], op);
    }
    for (uint32_t i = o->n_inputs; i < o->n_args; i++)
        add_last(f->a, &f->writers[f->root[o->args[i]]], op);
    for (uint32_t k = 0; k < f->before[op].len; k++)
        vec_push(f->a, &f->after[f->before[op].data[k]], op);
}

bool facts_in_workspace(const plan_facts *f, uint32_t root)
{
    return f->p->values.data[root].storage == STORE_WORKSPACE && f->p->values.data[root].bytes > 0;
}

/* Every operand of op that lies in `from` must be allowed to share storage with result `out`. */
static bool all_operands_allow(const plan_facts *f, const plan_op *o, uint32_t from, uint32_t out)
{
    for (uint32_t i = 0; i < o->n_inputs; i++) {
        if (f->root[o->args[i]] != from)
            continue;
        bool allowed = false;
        for (uint32_t k = 0; k < o->n_inplace; k++)
            allowed |= o->inplace[k].in == i && o->inplace[k].out == out;
        if (!allowed)
            return false;
    }
    return true;
}

static bool is_pair(const plan_facts *f, uint32_t op, uint32_t pair, plan_inplace *out_pair)
{
    const plan_op *o = &f->p->ops.data[op];
    uint32_t in = o->args[o->inplace[pair].in], out = o->args[o->inplace[pair].out];
    uint32_t from = f->root[in], to = f->root[out];
    const plan_value *values = f->p->values.data;
    *out_pair = (plan_inplace){op, from, to};
    return facts_in_workspace(f, from) && facts_in_workspace(f, to) && from != to &&
           values[in].bytes == values[from].bytes && values[out].bytes == values[to].bytes &&
           values[from].bytes == values[to].bytes && f->start[in] == 0 && f->start[out] == 0 &&
           f->writers[to].len == 1 && all_operands_allow(f, o, from, o->inplace[pair].out) &&
           f->keep_first[from] == UINT32_MAX && f->keep_first[to] == UINT32_MAX;
}

/* The distances of all operands in `from` to all results in `to` together; false: not all of them have one. */
static bool is_overlap(const plan_facts *f, uint32_t op, plan_overlap *x)
{
    const plan_op *o = &f->p->ops.data[op];
    x->below = x->above = 0;
    for (uint32_t i = 0; i < o->n_inputs; i++)
        for (uint32_t k = o->n_inputs; k < o->n_args && f->root[o->args[i]] == x->from; k++) {
            uint64_t in = f->start[o->args[i]], out = f->start[o->args[k]], below, above;
            const plan_distance *d = NULL;
            if (f->root[o->args[k]] != x->to)
                continue;
            for (uint32_t n = 0; n < o->n_distances && !d; n++)
                d = o->distances[n].in == i && o->distances[n].out == k ? &o->distances[n] : NULL;
            if (!d)
                return false;
            below = d->below + out > in ? d->below + out - in : 0;
            above = d->above + in > out ? d->above + in - out : 0;
            x->below = below > x->below ? below : x->below;
            x->above = above > x->above ? above : x->above;
        }
    x->below = x->below < f->p->values.data[x->to].bytes ? x->below : f->p->values.data[x->to].bytes;
    x->above = x->above < f->p->values.data[x->from].bytes ? x->above : f->p->values.data[x->from].bytes;
    return facts_saved(f, x) > 0;
}

uint64_t facts_saved(const plan_facts *f, const plan_overlap *x)
{
    uint64_t from = f->p->values.data[x->from].bytes, to = f->p->values.data[x->to].bytes;
    uint64_t below = x->below + from > to ? x->below + from : to, above = x->above + to > from ? x->above + to : from;
    return from + to - (below < above ? below : above);
}

static void collect_overlaps(plan_facts *f, uint32_t op, uint32_t first_pair)
{
    const plan_op *o = &f->p->ops.data[op];
    const uint32_t first = f->overlaps.len;
    for (uint32_t n = 0; n < o->n_distances; n++) {
        plan_overlap x = {.op = op, .from = f->root[o->args[o->distances[n].in]]};
        x.to = f->root[o->args[o->distances[n].out]];
        bool known = x.from == x.to || !facts_in_workspace(f, x.from) || !facts_in_workspace(f, x.to) ||
                     f->keep_first[x.from] != UINT32_MAX || f->keep_first[x.to] != UINT32_MAX;
        for (uint32_t k = first; k < f->overlaps.len; k++)
            known |= f->overlaps.data[k].from == x.from && f->overlaps.data[k].to == x.to;
        for (uint32_t k = first_pair; k < f->inplace.len; k++)
            known |= f->inplace.data[k].from == x.from && f->inplace.data[k].to == x.to;
        if (!known && is_overlap(f, op, &x))
            vec_push(f->a, &f->overlaps, x);
    }
}

/* --- what lives through loops --- */

static void keep(plan_facts *f, uint32_t root, uint32_t first, uint32_t last)
{
    if (f->keep_first[root] == UINT32_MAX) {
        f->keep_first[root] = first;
        f->keep_last[root] = last;
    }
    f->keep_first[root] = first < f->keep_first[root] ? first : f->keep_first[root];
    f->keep_last[root] = last > f->keep_last[root] ? last : f->keep_last[root];
}

typedef struct span_of {
    uint32_t *first, *last; /* segments in which a root is used; first > last: in none */
    uint32_t *seen;         /* the last loop that was found to use it */
} span_of;

static void note_use(span_of *s, uint32_t root, uint32_t segment)
{
    s->first[root] = segment < s->first[root] ? segment : s->first[root];
    s->last[root] = segment > s->last[root] ? segment : s->last[root];
}

/* A jump reads its condition between two segments. */
static void note_jump(plan_facts *f, span_of *s, uint32_t step)
{
    uint32_t root = f->root[f->p->steps.data[step].value], next = flow_segment(f->p, step),
             first = next > 0 ? next - 1 : 0, last = next < f->n_segments ? next : f->n_segments - 1;
    if (f->n_segments == 0)
        return;
    keep(f, root, first, last);
    note_use(s, root, first);
    note_use(s, root, last);
}

/* What steps first to last use, and others too, or what they find again in the next round. */
static void keep_through(plan_facts *f, span_of *s, uint32_t first, uint32_t last)
{
    uint32_t from = flow_segment(f->p, first), to = flow_segment(f->p, last);
    if (to <= from) /* an empty loop */
        return;
    to--;
    for (uint32_t op = 0; op < f->n_ops; op++) {
        const plan_op *o = &f->p->ops.data[op];
        for (uint32_t i = 0; i < o->n_args && o->segment >= from && o->segment <= to; i++)
            s->seen[f->root[o->args[i]]] = first + 1;
    }
    for (uint32_t k = first; k <= last; k++)
        if (f->p->steps.data[k].kind == PLAN_JUMP_IF_ZERO)
            s->seen[f->root[f->p->steps.data[k].value]] = first + 1;
    for (uint32_t r = 0; r < f->n_values; r++)
        if (s->seen[r] == first + 1 && (s->first[r] < from || s->last[r] > to))
            keep(f, r, from, to);
}

static void collect_kept(plan_facts *f)
{
    const plan_problem *p = f->p;
    f->keep_first = arena_array(f->a, uint32_t, f->n_values);
    f->keep_last = arena_array(f->a, uint32_t, f->n_values);
    span_of s = {arena_array(f->a, uint32_t, f->n_values), arena_array(f->a, uint32_t, f->n_values),
                 arena_array(f->a, uint32_t, f->n_values)};
    for (uint32_t v = 0; v < f->n_values; v++)
        s.first[v] = f->keep_first[v] = UINT32_MAX;
    if (p->steps.len <= 1)
        return;
    for (uint32_t op = 0; op < f->n_ops; op++)
        for (uint32_t i = 0; i < p->ops.data[op].n_args; i++)
            note_use(&s, f->root[p->ops.data[op].args[i]], p->ops.data[op].segment);
    for (uint32_t k = 0; k < p->steps.len; k++)
        if (p->steps.data[k].kind == PLAN_JUMP_IF_ZERO)
            note_jump(f, &s, k);
    for (uint32_t k = 0; k < p->steps.len; k++)
        if (p->steps.data[k].kind == PLAN_JUMP && p->steps.data[k].to <= k)
            keep_through(f, &s, p->steps.data[k].to, k);
}

void facts_collect(plan_facts *f, arena *a, const plan_problem *p)
{
    *f = (plan_facts){.a = a, .p = p, .n_ops = p->ops.len, .n_values = p->values.len};
    f->root = arena_array(a, uint32_t, f->n_values);
    f->start = arena_array(a, uint64_t, f->n_values);
    f->before = arena_array(a, u32s, f->n_ops);
    f->after = arena_array(a, u32s, f->n_ops);
    f->readers = arena_array(a, u32s, f->n_values);
    f->writers = arena_array(a, u32s, f->n_values);
    for (uint32_t v = 0; v < f->n_values; v++)
        f->root[v] = plan_root(p, v, &f->start[v]);
    f->n_segments = f->n_ops ? vec_last(&p->ops).segment + 1 : 0;
    collect_kept(f);
    uint32_t *seen = arena_array(a, uint32_t, f->n_ops);
    for (uint32_t op = 0; op < f->n_ops; op++)
        collect_op(f, op, seen);
    for (uint32_t op = 0; op < f->n_ops; op++) {
        const uint32_t first = f->inplace.len;
        for (uint32_t k = 0; k < p->ops.data[op].n_inplace; k++) {
            plan_inplace x;
            if (is_pair(f, op, k, &x))
                vec_push(a, &f->inplace, x);
        }
        collect_overlaps(f, op, first);
    }
}
