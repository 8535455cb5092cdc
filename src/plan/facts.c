/* SPDX-License-Identifier: Apache-2.0 */
/* Facts that follow from a problem: operator properties from their functions, roots of alias classes, dependencies. */
#include "plan/facts.h"

uint64_t plan_align(uint64_t bytes)
{
    uint64_t align = 1;
    while (align < 64 && align * 2 <= bytes)
        align *= 2;
    return align;
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

/* --- operator properties --- */

static void find_inplace(compiler *c, const plan_problem *p, plan_op *op)
{
    VEC(plan_pair) pairs = {0};
    for (uint32_t o = op->n_inputs; o < op->n_args; o++)
        for (uint32_t i = 0; i < op->n_inputs; i++) {
            const plan_value *in = &p->values.data[op->args[i]], *out = &p->values.data[op->args[o]];
            if (in->storage == STORE_WORKSPACE && out->storage == STORE_WORKSPACE && in->bytes == out->bytes &&
                in->bytes > 0 && tir_can_alias(c, op->func, i, o))
                vec_push(&c->mem, &pairs, ((plan_pair){o, i}));
        }
    op->inplace = pairs.data;
    op->n_inplace = pairs.len;
}

static int64_t work_of(const plan_problem *p, const plan_op *op)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < op->n_args; i++) {
        uint64_t bytes = p->values.data[op->args[i]].bytes;
        most = bytes > most ? bytes : most;
    }
    int64_t moved = most > INT64_MAX / 4 ? INT64_MAX / 4 : (int64_t)(most / 4);
    return op->func->macs > moved ? op->func->macs : moved;
}

void plan_prepare(compiler *c, plan_problem *p)
{
    for (uint32_t i = 0; i < p->ops.len; i++) {
        plan_op *op = &p->ops.data[i];
        if (!op->func)
            continue;
        op->n_inputs = op->func->n_inputs;
        op->extent = tir_parallel_extent(op->func);
        op->work = work_of(p, op);
        op->n_scratch = tir_find_scratch(c, op->func, &op->scratch);
        find_inplace(c, p, op);
    }
}

/* --- relations --- */

static void add_unique(arena *a, u32s *set, uint32_t v)
{
    for (uint32_t i = set->len; i-- > 0;)
        if (set->data[i] == v)
            return;
    vec_push(a, set, v);
}

static bool overlap(const plan_facts *f, uint32_t v, uint32_t w)
{
    uint64_t v0 = f->start[v], w0 = f->start[w];
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

static void collect_op(plan_facts *f, uint32_t op)
{
    const plan_op *o = &f->p->ops.data[op];
    for (uint32_t i = 0; i < o->n_inputs; i++) {
        const u32s *writers = &f->writers[f->root[o->args[i]]];
        for (uint32_t k = 0; k < writers->len; k++)
            if (writes_overlapping(f, writers->data[k], o->args[i]))
                add_unique(f->a, &f->before[op], writers->data[k]);
        add_unique(f->a, &f->readers[f->root[o->args[i]]], op);
    }
    for (uint32_t i = o->n_inputs; i < o->n_args; i++)
        add_unique(f->a, &f->writers[f->root[o->args[i]]], op);
    for (uint32_t k = 0; k < f->before[op].len; k++)
        vec_push(f->a, &f->after[f->before[op].data[k]], op);
}

void facts_collect(plan_facts *f, arena *a, plan_problem *p)
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
    for (uint32_t op = 0; op < f->n_ops; op++)
        collect_op(f, op);
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

bool facts_pair(const plan_facts *f, uint32_t op, uint32_t pair, uint32_t *out_from, uint32_t *out_to)
{
    const plan_op *o = &f->p->ops.data[op];
    uint32_t in = o->args[o->inplace[pair].in], out = o->args[o->inplace[pair].out];
    uint32_t from = f->root[in], to = f->root[out];
    const plan_value *values = f->p->values.data;
    *out_from = from;
    *out_to = to;
    return facts_in_workspace(f, from) && facts_in_workspace(f, to) && from != to &&
           values[in].bytes == values[from].bytes && values[out].bytes == values[to].bytes &&
           values[from].bytes == values[to].bytes && f->start[in] == 0 && f->start[out] == 0 &&
           f->writers[to].len == 1 && all_operands_allow(f, o, from, o->inplace[pair].out);
}
