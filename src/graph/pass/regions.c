/* SPDX-License-Identifier: Apache-2.0 */
/* MergeCompilerRegions: nodes of one target that hang together get one number, and become one function, where no way
 * leaves that function and comes back.
 *
 * Every node has a level: that of its operands at least, and above those of another target or of the CPU. Levels never
 * fall along the graph and rise where the target changes, so neighbors of one target on one level can be one
 * function: a way out of it and back would have to stay on that level. First levels are as low as they can be; then,
 * from the end, everything rises as far as what reads it allows, regions as a whole, and a region that comes to the
 * level of one of its target that reads it is one with it; then, from the beginning, everything sinks likewise. All is
 * looked at a fixed number of times. */
#include "graph/pass/offload.h"

#define NONE UINT32_MAX

typedef struct merger {
    graph_func *f;
    uint32_t *level;  /* of each node, by position; of a region at its root */
    uint32_t *parent; /* regions as trees of nodes; a node of the CPU is one alone */
    uint32_t *next, *last; /* members of a region from its root: a list, and its end */
    /* Users of node i, or those that make its operands: near[first_near[i]..first_near[i + 1]). */
    uint32_t *near, *first_near;
    uint32_t top;
} merger;

static graph_node *node_at(const merger *g, uint32_t i)
{
    return g->f->nodes.data[i];
}

static bool is_constant_node(const graph_node *n)
{
    return n->op->infer == infer_constant;
}

static uint32_t root(merger *g, uint32_t i)
{
    while (g->parent[i] != i) {
        g->parent[i] = g->parent[g->parent[i]];
        i = g->parent[i];
    }
    return i;
}

/* The first node of both is the root, so that numbers follow the text. */
static void unite(merger *g, uint32_t a, uint32_t b)
{
    a = root(g, a);
    b = root(g, b);
    if (a == b)
        return;
    uint32_t low = a < b ? a : b, high = a < b ? b : a;
    g->parent[high] = low;
    g->level[low] = g->level[b];
    g->next[g->last[low]] = high;
    g->last[low] = g->last[high];
}

/* Node m, which makes operand k of n; NULL: nothing that counts does. */
static const graph_node *maker(const graph_node *n, uint32_t k)
{
    const graph_node *m = n->inputs[k] ? n->inputs[k]->def : NULL;
    return m && !is_constant_node(m) ? m : NULL;
}

static void find_levels(merger *g)
{
    for (uint32_t i = 0; i < g->f->nodes.len; i++) {
        const graph_node *n = node_at(g, i);
        uint32_t level = 0;
        for (uint32_t k = 0; k < n->n_inputs; k++) {
            const graph_node *m = maker(n, k);
            uint32_t least = m ? g->level[m->mark] + (m->compiler != n->compiler) : 0;
            level = least > level ? least : level;
        }
        g->level[i] = level;
        g->top = level > g->top ? level : g->top;
    }
}

/* Users of nodes, or those that make their operands. */
static void find_near(merger *g, arena *scratch, bool users)
{
    uint32_t n = g->f->nodes.len, total = 0;
    uint32_t *count = arena_array(scratch, uint32_t, n + 1u);
    g->first_near = arena_array(scratch, uint32_t, n + 1u);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < node_at(g, i)->n_inputs; k++) {
            const graph_node *m = maker(node_at(g, i), k);
            count[!m ? n : users ? m->mark : i]++;
        }
    for (uint32_t i = 0; i < n; i++) {
        g->first_near[i] = total;
        total += count[i];
        count[i] = g->first_near[i];
    }
    g->first_near[n] = total;
    g->near = arena_array(scratch, uint32_t, total);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < node_at(g, i)->n_inputs; k++) {
            const graph_node *m = maker(node_at(g, i), k);
            if (m)
                g->near[count[users ? m->mark : i]++] = users ? i : m->mark;
        }
}

static void join_levels(merger *g)
{
    for (uint32_t i = 0; i < g->f->nodes.len; i++) {
        const graph_node *n = node_at(g, i);
        for (uint32_t k = 0; k < n->n_inputs && n->compiler; k++) {
            const graph_node *m = maker(n, k);
            if (m && m->compiler == n->compiler && g->level[root(g, m->mark)] == g->level[root(g, i)])
                unite(g, m->mark, i);
        }
    }
}

/* The highest level that all users outside of the region allow; NONE: nobody else reads it. */
static uint32_t highest(merger *g, uint32_t region)
{
    uint32_t cap = NONE;
    for (uint32_t i = region; i != NONE; i = g->next[i])
        for (uint32_t u = g->first_near[i]; u < g->first_near[i + 1]; u++) {
            uint32_t r = root(g, g->near[u]);
            if (r == region)
                continue;
            uint32_t level = g->level[r] - (node_at(g, r)->compiler != node_at(g, region)->compiler);
            cap = level < cap ? level : cap;
        }
    return cap;
}

/* As high as all that read it allow; then it is one with readers of its target on that level, if there are any. What
 * nobody reads stays where it is, and a node of the CPU goes out of everybody's way. */
static void raise_region(merger *g, uint32_t region)
{
    uint32_t cap = highest(g, region), end = g->last[region]; /* the list grows behind it */
    if (cap == NONE && !node_at(g, region)->compiler)
        cap = g->top;
    if (cap == NONE)
        return;
    g->level[region] = cap;
    for (uint32_t i = region; node_at(g, region)->compiler; i = g->next[i]) {
        for (uint32_t u = g->first_near[i]; u < g->first_near[i + 1]; u++) {
            uint32_t r = root(g, g->near[u]);
            if (node_at(g, r)->compiler == node_at(g, region)->compiler && g->level[r] == cap)
                unite(g, i, r);
        }
        if (i == end)
            return;
    }
}

/* Regions and nodes of the CPU from the highest level to the lowest, on one level from the end: all that reads one is
 * settled before it. */
static void raise_all(merger *g, arena *scratch, bool from_end)
{
    uint32_t n = g->f->nodes.len;
    uint32_t *start = arena_array(scratch, uint32_t, g->top + 2u), *order = arena_array(scratch, uint32_t, n);
    for (uint32_t i = 0; i < n; i++)
        start[g->top - g->level[root(g, i)] + 1]++;
    for (uint32_t l = 0; l <= g->top; l++)
        start[l + 1] += start[l];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = from_end ? n - 1 - i : i;
        order[start[g->top - g->level[root(g, at)]]++] = at;
    }
    for (uint32_t i = 0; i < n; i++)
        if (g->parent[order[i]] == order[i] && !is_constant_node(node_at(g, order[i])))
            raise_region(g, order[i]);
}

/* The same from the other side: with levels counted from the end, what a region reads is what reads it. */
static void turn(merger *g)
{
    for (uint32_t i = 0; i < g->f->nodes.len; i++)
        if (g->parent[i] == i)
            g->level[i] = g->top - g->level[i];
}

static void merge(compiler *c, graph_func *f)
{
    merger g = {.f = f};
    arena scratch;
    uint32_t n = f->nodes.len, count = 0;
    arena_init(&scratch, &c->mem);
    g.level = arena_array(&scratch, uint32_t, n);
    g.parent = arena_array(&scratch, uint32_t, n);
    g.next = arena_array(&scratch, uint32_t, n);
    g.last = arena_array(&scratch, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) {
        f->nodes.data[i]->mark = g.parent[i] = g.last[i] = i;
        g.next[i] = NONE;
    }
    find_levels(&g);
    g.top++; /* and one above */
    join_levels(&g);
    find_near(&g, &scratch, true);
    raise_all(&g, &scratch, true);
    turn(&g);
    find_near(&g, &scratch, false);
    raise_all(&g, &scratch, false);
    for (uint32_t i = 0; i < n; i++) {
        graph_node *at = f->nodes.data[i], *first = f->nodes.data[root(&g, i)];
        if (at->compiler)
            at->region = first == at ? ++count : first->region;
    }
    arena_free(&scratch);
}

bool graph_pass_merge_regions(compiler *c, graph_module *m, const pass_options *o)
{
    (void)o;
    for (uint32_t i = 0; i < m->funcs.len; i++)
        if (!graph_is_fixed(m->funcs.data[i]))
            merge(c, m->funcs.data[i]);
    return true;
}
