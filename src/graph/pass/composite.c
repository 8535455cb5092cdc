/* SPDX-License-Identifier: Apache-2.0 */
/* MergeComposite: nodes that a pattern of a target matches become a function with the pattern's name, and a call of it.
 * Targets come in order of preference, patterns in the order of their table, and nodes from the last to the first, so
 * that the longest way through a chain is found first. A node that was taken is not matched again. Nodes that are left
 * know why (offload_log). */
#include "graph/pass/offload.h"
#include "base/ptr_map.h"
#include "graph/pass/outline.h"

#include <stdlib.h>

#define FREE      UINT32_MAX /* as graph_around has it */
#define IS_RESULT 0x80000000u /* in the mark of a value: a result of the function */
#define MOST_SPAN PATTERN_SPAN /* positions from the first to the last node of a match with several results */

/* A match that holds. */
typedef struct group {
    const graph_pattern *pattern;
    graph_node **nodes; /* in the order of the function */
    uint32_t n_nodes;
    graph_value **results, **inputs; /* inputs as the pattern names them */
    uint32_t n_results, n_inputs;
    uint32_t last; /* position of the last node */
} group;

typedef struct composer {
    compiler *c;
    graph_func *f;
    offload_log *log;
    arena scratch;
    uint32_t *group_of; /* by position; FREE: none */
    uint8_t *covered;   /* by position: between the nodes of a match with several results */
    VEC(group) groups;
    graph_match match;
} composer;

/* --- what must hold beside the pattern --- */

/* Marks: uses of values, with the top bit for results; positions of nodes. */
static void mark(graph_func *f)
{
    for (uint32_t i = 0; i < f->params.len; i++)
        f->params.data[i]->mark = 0;
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        graph_node *n = f->nodes.data[i];
        n->mark = i;
        for (uint32_t k = 0; k < n->n_outputs; k++)
            n->outputs[k]->mark = 0;
        for (uint32_t k = 0; k < n->n_inputs; k++)
            if (n->inputs[k])
                n->inputs[k]->mark++;
    }
    for (uint32_t i = 0; i < f->results.len; i++)
        f->results.data[i]->mark |= IS_RESULT;
}

static int by_position(const void *a, const void *b)
{
    uint32_t x = (*(graph_node *const *)a)->mark, y = (*(graph_node *const *)b)->mark;
    return x < y ? -1 : x > y;
}

static bool has_node(const group *g, const graph_node *n)
{
    for (uint32_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i] == n)
            return true;
    return false;
}

static bool has_result(const group *g, const graph_value *v)
{
    for (uint32_t i = 0; i < g->n_results; i++)
        if (g->results[i] == v)
            return true;
    return false;
}

/* Takes the uses of values inside of the group from their marks (1: adds them again). */
static void count_inside(const group *g, uint32_t by)
{
    for (uint32_t i = 0; i < g->n_nodes; i++)
        for (uint32_t k = 0; k < g->nodes[i]->n_inputs; k++)
            if (g->nodes[i]->inputs[k])
                g->nodes[i]->inputs[k]->mark += by;
}

/* NULL, or why the node cannot be in any group. */
static const char *check_node(const composer *k, const graph_node *n)
{
    const char *own[1];
    if (!graph_is_pure(n))
        return arena_printf(&k->c->mem, "%s does not give the same numbers each time", n->op->name);
    if (graph_own_symbols(n, 1, own) > 0)
        return arena_printf(&k->c->mem, "the extents of %%%.100s are known only at run time", n->outputs[0]->name);
    return NULL;
}

/* An input of the pattern stands for a parameter: code that a target writes counts on it. */
static const char *check_inputs(const composer *k, const group *g)
{
    for (uint32_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i]->def && has_node(g, g->inputs[i]->def))
            return arena_printf(&k->c->mem, "%%%.100s is an operand from outside, and is made inside",
                                g->inputs[i]->name);
    return NULL;
}

static const char *check_exits(const composer *k, const group *g)
{
    const graph_value *leaves = NULL;
    count_inside(g, UINT32_MAX);
    for (uint32_t i = 0; i < g->n_nodes; i++)
        for (uint32_t r = 0; r < g->nodes[i]->n_outputs && !leaves; r++) {
            const graph_value *v = g->nodes[i]->outputs[r];
            leaves = v->mark != 0 && !has_result(g, v) ? v : NULL;
        }
    count_inside(g, 1);
    return leaves ? arena_printf(&k->c->mem, "%%%.100s is used outside of the pattern, too", leaves->name) : NULL;
}

/* Whether an operand of the group is made of one of its results: seen from its operands backwards, as far as its first
 * node. Matches with several results do not interleave, so that they need not be followed as one. */
static bool comes_back(composer *k, const group *g)
{
    VEC(const graph_node *) stack = {0};
    uint32_t first = g->nodes[0]->mark, last = g->nodes[g->n_nodes - 1]->mark;
    bool *seen = arena_array(&k->scratch, bool, last - first + 1);
    for (uint32_t i = 0; i < g->n_nodes; i++)
        vec_push(&k->scratch, &stack, g->nodes[i]);
    while (stack.len) {
        const graph_node *n = vec_pop(&stack);
        bool member = has_node(g, n);
        for (uint32_t i = 0; i < n->n_inputs; i++) {
            const graph_node *def = n->inputs[i] ? n->inputs[i]->def : NULL;
            if (!def || def->mark < first || seen[def->mark - first])
                continue;
            if (has_node(g, def)) {
                if (!member)
                    return true;
                continue;
            }
            seen[def->mark - first] = true;
            vec_push(&k->scratch, &stack, def);
        }
    }
    return false;
}

static const char *check_cycle(composer *k, const group *g)
{
    uint32_t first = g->nodes[0]->mark, last = g->nodes[g->n_nodes - 1]->mark;
    if (g->n_results < 2 || g->n_nodes < 2)
        return NULL;
    if (last - first > MOST_SPAN)
        return "its nodes are too far apart to check for a cycle";
    for (uint32_t i = first; i <= last; i++)
        if (k->covered[i])
            return "it interleaves with another match of several results";
    return comes_back(k, g) ? "it would form a cycle: an operand is computed from one of its results" : NULL;
}

/* --- finding --- */

static void take_values(composer *k, group *g)
{
    const graph_match *m = &k->match;
    const graph_pattern *p = m->pattern;
    g->results = arena_array(&k->scratch, graph_value *, p->n_leaving + 1u);
    g->inputs = arena_array(&k->scratch, graph_value *, p->n_vars + 1u);
    for (uint32_t i = 0; i < p->n_vars; i++) {
        graph_value *v = m->values[i];
        bool inside = v && v->def && has_node(g, v->def); /* of an optional node that is missing perhaps not */
        if (p->vars[i].leaves && inside && !has_result(g, v))
            g->results[g->n_results++] = v;
        if (p->vars[i].node == PATTERN_NONE && v)
            g->inputs[g->n_inputs++] = v;
    }
}

static void refuse(composer *k, const graph_node *n, const char *why)
{
    const char *text = arena_printf(&k->scratch, "%s: %s", k->match.pattern->name, why);
    if (k->log)
        offload_refuse(k->c, k->log, n, text, k->match.n_matched);
}

static void refuse_match(composer *k, const graph_node *root)
{
    const graph_match *m = &k->match;
    if (!k->log || !m->why)
        return;
    offload_refuse(k->c, k->log, root, m->why, m->why_matched);
    offload_refuse(k->c, k->log, m->refused, m->why, m->why_matched);
}

/* The nodes of the match, none of them taken. */
static bool take_nodes(composer *k, group *g)
{
    const graph_match *m = &k->match;
    g->nodes = arena_array(&k->scratch, graph_node *, m->pattern->n_nodes);
    for (uint32_t i = 0; i < m->pattern->n_nodes; i++)
        if (m->nodes[i])
            g->nodes[g->n_nodes++] = m->nodes[i];
    for (uint32_t i = 0; i < g->n_nodes; i++)
        if (k->group_of[g->nodes[i]->mark] != FREE)
            return false;
    qsort(g->nodes, g->n_nodes, sizeof(graph_node *), by_position);
    g->last = g->nodes[g->n_nodes - 1]->mark;
    return true;
}

static bool accept(composer *k, const group *g)
{
    const char *why = check_inputs(k, g);
    why = why ? why : check_exits(k, g);
    for (uint32_t i = 0; i < g->n_nodes && !why; i++)
        why = check_node(k, g->nodes[i]);
    why = why ? why : check_cycle(k, g);
    for (uint32_t i = 0; i < g->n_nodes && why; i++)
        refuse(k, g->nodes[i], why);
    return !why;
}

/* The match at a node, if there is one that holds. */
static bool find(composer *k, const graph_pattern *p, graph_node *n, group *g)
{
    const graph_around around = {k->f, k->group_of};
    if (!graph_pattern_match(k->c, &k->scratch, p, &around, n, &k->match)) {
        refuse_match(k, n);
        return false;
    }
    if (!take_nodes(k, g))
        return false;
    take_values(k, g);
    return accept(k, g);
}

static void try_at(composer *k, const graph_pattern *p, uint32_t position)
{
    group g = {.pattern = p};
    arena_mark before = arena_get_mark(&k->scratch);
    if (k->group_of[position] != FREE)
        return;
    if (!find(k, p, k->f->nodes.data[position], &g)) {
        arena_reset(&k->scratch, before);
        return;
    }
    for (uint32_t i = 0; i < g.n_nodes; i++)
        k->group_of[g.nodes[i]->mark] = k->groups.len;
    for (uint32_t i = g.nodes[0]->mark; g.n_results > 1 && i <= g.last; i++)
        k->covered[i] = 1;
    vec_push(&k->scratch, &k->groups, g);
}

/* --- functions --- */

static bool takes(const void *context, const graph_node *n, uint32_t i)
{
    (void)context;
    return offload_is_literal(n, i);
}

/* Parameters, and with them the operands, as the pattern names its inputs; those that it does not name follow. */
static void order_params(composer *k, const group *g, graph_node *call, graph_func *callee)
{
    uint32_t n = call->n_inputs, at = 0;
    graph_value **operands = arena_array(&k->scratch, graph_value *, n);
    graph_value **params = arena_array(&k->scratch, graph_value *, n);
    bool *done = arena_array(&k->scratch, bool, n);
    ptr_map places; /* an operand is there once */
    ptr_map_init(&places, &k->scratch);
    for (uint32_t j = 0; j < n; j++)
        ptr_map_set(&places, call->inputs[j], j);
    for (uint32_t i = 0; i < g->n_inputs + n; i++) {
        uint32_t j = i - g->n_inputs;
        if ((i < g->n_inputs && !ptr_map_get(&places, g->inputs[i], &j)) || done[j])
            continue;
        done[j] = true;
        operands[at] = call->inputs[j];
        params[at++] = callee->params.data[j];
    }
    for (uint32_t j = 0; j < n; j++) {
        call->inputs[j] = operands[j];
        callee->params.data[j] = params[j];
        params[j]->index = j;
    }
}

static graph_node *make_call(composer *k, const group *g)
{
    compiler *c = k->c;
    const attr composite = attr_string(c, "composite", g->pattern->name);
    const outline_spec s = {.name = offload_c_name(c, g->pattern->name),
                            .nodes = g->nodes,
                            .n_nodes = g->n_nodes,
                            .results = g->results,
                            .n_results = g->n_results,
                            .attrs = &composite,
                            .n_attrs = 1,
                            .takes = takes,
                            .loc = g->nodes[0]->loc};
    graph_node *call = graph_outline(c, k->f, &s);
    order_params(k, g, call, call->attrs[0].u.func);
    return call;
}

static void build(composer *k)
{
    VEC(graph_node *) list = {0};
    graph_func *f = k->f;
    bool several = false;
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        const group *g = k->group_of[i] == FREE ? NULL : &k->groups.data[k->group_of[i]];
        if (!g)
            vec_push(&k->c->mem, &list, f->nodes.data[i]);
        else if (g->last == i)
            vec_push(&k->c->mem, &list, make_call(k, g));
        several |= g && g->n_results > 1;
    }
    f->nodes.data = list.data;
    f->nodes.len = list.len;
    f->nodes.cap = list.cap;
    graph_drop_constants(f);
    if (several)
        (void)graph_sort(f); /* no cycle: see check_cycle */
}

static void merge(compiler *c, graph_func *f, const struct offload *o)
{
    composer *k = arena_new(&c->mem, composer);
    *k = (composer){.c = c, .f = f, .log = o->log};
    arena_init(&k->scratch, &c->mem);
    mark(f);
    k->group_of = arena_array(&k->scratch, uint32_t, f->nodes.len);
    k->covered = arena_array(&k->scratch, uint8_t, f->nodes.len);
    for (uint32_t i = 0; i < f->nodes.len; i++)
        k->group_of[i] = FREE;
    for (uint32_t t = 0; t < o->n_targets; t++)
        for (uint32_t p = 0; p < o->targets[t].patterns.list.len; p++)
            for (uint32_t i = f->nodes.len; i-- > 0;)
                if (!o->targets[t].patterns.list.data[p]->is_operator)
                    try_at(k, o->targets[t].patterns.list.data[p], i);
    if (k->groups.len)
        build(k);
    arena_free(&k->scratch);
}

bool graph_pass_merge_composite(compiler *c, graph_module *m, const pass_options *o)
{
    uint32_t count = m->funcs.len; /* those that are added are composites */
    for (uint32_t i = 0; i < count && o->offload; i++)
        if (!graph_is_fixed(m->funcs.data[i]))
            merge(c, m->funcs.data[i], o->offload);
    return true;
}
