/* SPDX-License-Identifier: Apache-2.0 */
/* Common subexpressions: of pure nodes with equal row, attributes and operands the first stays. Constants are
 * compared by value; the operands of commutative operators in either order. */
#include "graph/pass.h"
#include "graph/pass/rewrite.h"

#include <string.h>

typedef struct entry {
    uint64_t hash;
    graph_node *node; /* NULL: free */
} entry;

typedef struct table {
    entry *slots;
    uint32_t mask;
} table;

static uint64_t mix(uint64_t h, uint64_t v)
{
    h ^= v + 0x9E3779B97F4A7C15u + (h << 6) + (h >> 2);
    return h * 0xFF51AFD7ED558CCDu;
}

/* Order of operands does not enter for commutative rows. */
static uint64_t hash_node(const graph_node *n)
{
    uint64_t h = (uint64_t)(uintptr_t)n->op, sum = 0;
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        uint64_t v = mix(n->op->flags & OPF_COMMUTATIVE ? 0 : i, (uint64_t)(uintptr_t)n->inputs[i]);
        sum += v;
    }
    h = mix(h, sum);
    for (uint32_t i = 0; i < n->n_attrs; i++)
        h = mix(h, attr_hash(&n->attrs[i]));
    return h;
}

static bool equal_inputs(const graph_node *a, const graph_node *b)
{
    if (a->n_inputs != b->n_inputs)
        return false;
    if (a->n_inputs == 0 || memcmp(a->inputs, b->inputs, a->n_inputs * sizeof *a->inputs) == 0)
        return true;
    return (a->op->flags & OPF_COMMUTATIVE) && a->n_inputs == 2 && a->inputs[0] == b->inputs[1] &&
           a->inputs[1] == b->inputs[0];
}

static bool equal_nodes(const graph_node *a, const graph_node *b)
{
    if (a->op != b->op || a->n_attrs != b->n_attrs || a->n_outputs != b->n_outputs || !equal_inputs(a, b))
        return false;
    for (uint32_t i = 0; i < a->n_attrs; i++)
        if (!attr_equal(&a->attrs[i], &b->attrs[i]))
            return false;
    for (uint32_t i = 0; i < a->n_outputs; i++) /* data-dependent shapes may have been declared differently */
        if (!type_equal(&a->outputs[i]->type, &b->outputs[i]->type))
            return false;
    return true;
}

/* The node that stands for n: an earlier one, or n itself, which is entered. */
static graph_node *look_up(table *t, graph_node *n)
{
    uint64_t h = hash_node(n);
    uint32_t i = (uint32_t)(h >> 20) & t->mask;
    for (; t->slots[i].node; i = (i + 1) & t->mask)
        if (t->slots[i].hash == h && equal_nodes(t->slots[i].node, n))
            return t->slots[i].node;
    t->slots[i] = (entry){h, n};
    return n;
}

static void merge(rewriter *r, graph_node *n, const graph_node *first)
{
    bool gone = true;
    for (uint32_t i = 0; i < n->n_outputs; i++)
        gone &= rewrite_replace(r, n->outputs[i], first->outputs[i]);
    if (!gone) /* a result that must stay a value of its own */
        rewrite_keep(r, n);
}

static void run(compiler *c, graph_func *f)
{
    arena scratch;
    arena_init(&scratch, &c->mem);
    table t = {.mask = 15};
    while (t.mask < 2 * f->nodes.len)
        t.mask = t.mask * 2 + 1;
    t.slots = arena_array(&scratch, entry, (size_t)t.mask + 1);
    rewriter r;
    rewrite_begin(&r, c, f);
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        graph_node *n = f->nodes.data[i];
        rewrite_operands(n);
        graph_node *first = graph_is_pure(n) ? look_up(&t, n) : n;
        if (first == n)
            rewrite_keep(&r, n);
        else
            merge(&r, n, first);
    }
    rewrite_end(&r);
    arena_free(&scratch);
}

bool graph_pass_cse(compiler *c, graph_module *m, const pass_options *o)
{
    (void)o;
    for (uint32_t i = 0; i < m->funcs.len; i++)
        if (!graph_is_fixed(m->funcs.data[i]))
            run(c, m->funcs.data[i]);
    return true;
}
