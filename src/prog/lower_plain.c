/* SPDX-License-Identifier: Apache-2.0 */
/* The plain loops of a kernel. Loops are much larger than the operators that they are made from, and networks repeat
 * themselves. If a call has the same operators as an earlier one, except for names and places, it gets the same loops.
 * Sharing them is safe, because passes write new statements. */
#include "graph/op.h"
#include "prog/lower.h"
#include "te/from_graph.h"
#include "te/te_op.h"

#include <string.h>

#define MOST_NODES 64u /* of a function that is compared: positions in it are looked for one by one */

/* --- what is lowered --- */

static bool has_compute(const graph_node *n)
{
    return strcmp(n->op->name, "constant") == 0 || (n->op->te && n->op->te->compute);
}

static bool is_known(const graph_func *f)
{
    bool known = true;
    for (uint32_t i = 0; known && i < f->nodes.len; i++) {
        const graph_func *inner = graph_callee(f->nodes.data[i]);
        known = inner ? is_known(inner) : has_compute(f->nodes.data[i]);
    }
    return known;
}

/* --- the same operators --- */

static uint64_t mix(uint64_t h, uint64_t v)
{
    h ^= v + 0x9E3779B97F4A7C15u + (h << 6) + (h >> 2);
    return h * 0xFF51AFD7ED558CCDu;
}

static uint64_t hash_type(uint64_t h, const type *t)
{
    h = mix(h, (uint64_t)t->kind << 8 | (uint64_t)t->dt);
    for (int32_t i = 0; t->kind == TYPE_TENSOR && i < t->shape.rank; i++)
        h = mix(h, (uint64_t)(uintptr_t)t->shape.dims[i]);
    return h;
}

/* Where v stands in f: a parameter, or what result of which node. */
static uint64_t place_in(const graph_func *f, const graph_value *v)
{
    uint64_t i = 0;
    while (v && v->def && i < f->nodes.len && f->nodes.data[i] != v->def)
        i++;
    return !v ? 0 : v->def ? (i + 2) << 32 | v->index : (uint64_t)1 << 32 | v->index;
}

/* The first operand of n that is operand i. */
static uint32_t first_like(const graph_node *n, uint32_t i)
{
    uint32_t k = 0;
    while (n->inputs[k] != n->inputs[i])
        k++;
    return k;
}

static uint64_t hash_node(uint64_t h, const graph_node *n)
{
    h = mix(h, (uint64_t)(uintptr_t)n->op);
    for (uint32_t i = 0; i < n->n_inputs; i++)
        h = n->inputs[i] ? hash_type(h, &n->inputs[i]->type) : mix(h, i);
    for (uint32_t i = 0; i < n->n_attrs; i++)
        h = mix(h, attr_hash(&n->attrs[i]));
    for (uint32_t i = 0; i < n->n_outputs; i++)
        h = hash_type(h, &n->outputs[i]->type);
    return h;
}

static uint64_t hash_of(const prog_kernel *k)
{
    uint64_t h = 0;
    if (k->node) {
        for (uint32_t i = 0; i < k->node->n_inputs; i++) /* same_call tells constants apart */
            h = graph_constant(k->node->inputs[i]) ? mix(h, (uint64_t)(uintptr_t)k->node->inputs[i])
                                                   : mix(h, first_like(k->node, i));
        return hash_node(h, k->node);
    }
    for (uint32_t i = 0; i < k->func->nodes.len; i++)
        h = hash_node(h, k->func->nodes.data[i]);
    return h;
}

/* All but which operands they are. */
static bool same_node(const graph_node *a, const graph_node *b)
{
    bool same = a->op == b->op && a->n_inputs == b->n_inputs && a->n_outputs == b->n_outputs &&
                a->n_attrs == b->n_attrs;
    for (uint32_t i = 0; same && i < a->n_attrs; i++)
        same = attr_equal(&a->attrs[i], &b->attrs[i]);
    for (uint32_t i = 0; same && i < a->n_outputs; i++)
        same = type_equal(&a->outputs[i]->type, &b->outputs[i]->type);
    for (uint32_t i = 0; same && i < a->n_inputs; i++)
        same = !a->inputs[i] == !b->inputs[i] &&
               (!a->inputs[i] || type_equal(&a->inputs[i]->type, &b->inputs[i]->type));
    return same;
}

/* Single operators: their operands are alike or not in the same places; constants may be looked into. */
static bool same_call(const graph_node *a, const graph_node *b)
{
    bool same = same_node(a, b);
    for (uint32_t i = 0; same && i < a->n_inputs; i++)
        same = !a->inputs[i] || (first_like(a, i) == first_like(b, i) &&
                                 (a->inputs[i] == b->inputs[i] ||
                                  (!graph_constant(a->inputs[i]) && !graph_constant(b->inputs[i]))));
    return same;
}

static bool same_func(const graph_func *a, const graph_func *b)
{
    bool same = a->params.len == b->params.len && a->nodes.len == b->nodes.len && a->results.len == b->results.len;
    for (uint32_t i = 0; same && i < a->params.len; i++)
        same = type_equal(&a->params.data[i]->type, &b->params.data[i]->type);
    for (uint32_t i = 0; same && i < a->nodes.len; i++) {
        const graph_node *x = a->nodes.data[i], *y = b->nodes.data[i];
        same = same_node(x, y) && !graph_callee(x);
        for (uint32_t k = 0; same && k < x->n_inputs; k++)
            same = place_in(a, x->inputs[k]) == place_in(b, y->inputs[k]);
    }
    for (uint32_t i = 0; same && i < a->results.len; i++)
        same = place_in(a, a->results.data[i]) == place_in(b, b->results.data[i]);
    return same;
}

static bool same_operators(const prog_kernel *a, const prog_kernel *b)
{
    if (a->node || b->node)
        return a->node && b->node && same_call(a->node, b->node);
    return same_func(a->func, b->func);
}

/* --- those that there are --- */

static lower_made *slot_of(const lower_table *t, uint64_t hash, const prog_kernel *k)
{
    uint64_t i = hash & (t->size - 1);
    while (t->slots[i].kernel && (t->slots[i].hash != hash || (k && !same_operators(t->slots[i].kernel, k))))
        i = (i + 1) & (t->size - 1);
    return &t->slots[i];
}

static void grow(arena *a, lower_table *t)
{
    const lower_table old = *t;
    t->size = old.size ? old.size * 2 : 64;
    t->slots = arena_array(a, lower_made, t->size);
    for (uint64_t i = 0; i < old.size; i++) {
        uint64_t at = old.slots[i].hash & (t->size - 1);
        while (old.slots[i].kernel && t->slots[at].kernel)
            at = (at + 1) & (t->size - 1);
        if (old.slots[i].kernel)
            t->slots[at] = old.slots[i];
    }
}

/* An operator without a compute definition may still have a target that knows it: prog_schedule finds out. */
bool lower_plain(lowering *l, prog_kernel *k)
{
    compiler *c = l->c;
    if (k->func ? !is_known(k->func) : !has_compute(k->node))
        return true;
    bool compared = !k->region && (!k->func || k->func->nodes.len <= MOST_NODES);
    if (l->made.n * 4 >= l->made.size * 3)
        grow(&c->mem, &l->made);
    const uint64_t hash = compared ? hash_of(k) : 0;
    lower_made *slot = compared ? slot_of(&l->made, hash, k) : NULL;
    if (slot && slot->kernel) {
        k->plain = arena_copy(&c->mem, slot->plain, sizeof *k->plain, _Alignof(tir_func));
        k->plain->loc = k->func ? k->func->nodes.data[0]->loc : k->node->loc;
        return true;
    }
    if (!(k->func ? te_lower_func(c, k->func, k->name, NULL, NULL, &k->plain)
                  : te_lower_node(c, k->node, k->name, NULL, NULL, &k->plain)))
        return false;
    if (slot) {
        *slot = (lower_made){hash, k, k->plain};
        l->made.n++;
    }
    return true;
}
