/* SPDX-License-Identifier: Apache-2.0 */
/* Sequential orders of the operators: as given, depth first from the results, and greedy by live bytes. */
#include "plan/facts.h"

#include <stdlib.h>

static void order_given(const plan_facts *f, uint32_t *out)
{
    for (uint32_t i = 0; i < f->n_ops; i++)
        out[i] = i;
}

static uint64_t result_bytes(const plan_facts *f, uint32_t op)
{
    const plan_op *o = &f->p->ops.data[op];
    uint64_t sum = 0;
    for (uint32_t i = o->n_inputs; i < o->n_args; i++)
        sum += f->p->values.data[o->args[i]].bytes;
    return sum;
}

typedef struct result_key {
    uint64_t bytes;
    uint32_t at, op;
} result_key;

static int by_bytes(const void *x, const void *y)
{
    const result_key *a = x, *b = y;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return a->at < b->at ? -1 : a->at > b->at;
}

/* What op depends on, the larger results first, so that less waits for them. */
static u32s by_result(const plan_facts *f, uint32_t op)
{
    u32s list = {0};
    result_key *keys = arena_array(f->a, result_key, f->before[op].len);
    for (uint32_t k = 0; k < f->before[op].len; k++)
        keys[k] = (result_key){result_bytes(f, f->before[op].data[k]), k, f->before[op].data[k]};
    if (f->before[op].len > 0)
        qsort(keys, f->before[op].len, sizeof *keys, by_bytes);
    for (uint32_t k = 0; k < f->before[op].len; k++)
        vec_push(f->a, &list, keys[k].op);
    return list;
}

typedef struct visit_frame {
    uint32_t op, next;
    u32s before;
} visit_frame;

/* Post-order with an explicit stack. */
static void visit(const plan_facts *f, uint32_t start, uint8_t *state, uint32_t *out, uint32_t *n)
{
    VEC(visit_frame) stack = {0};
    vec_push(f->a, &stack, ((visit_frame){start, 0, by_result(f, start)}));
    while (stack.len > 0) {
        visit_frame *top = &vec_last(&stack);
        while (top->next < top->before.len && state[top->before.data[top->next]])
            top->next++;
        if (top->next == top->before.len) {
            out[(*n)++] = top->op;
            (void)vec_pop(&stack);
            continue;
        }
        uint32_t op = top->before.data[top->next];
        state[op] = 1;
        vec_push(f->a, &stack, ((visit_frame){op, 0, by_result(f, op)}));
    }
}

static void order_depth_first(const plan_facts *f, uint32_t *out)
{
    uint8_t *state = arena_array(f->a, uint8_t, f->n_ops);
    uint32_t n = 0;
    for (uint32_t op = 0; op < f->n_ops; op++)
        if (f->after[op].len == 0) {
            state[op] = 1;
            visit(f, op, state, out, &n);
        }
}

/* --- greedy ------------------------------------------------------------------------------------------------------- */

typedef struct ready_op {
    int64_t growth;
    uint32_t op;
} ready_op;

typedef struct greedy {
    const plan_facts *f;
    uint32_t *waits; /* of each operator: predecessors not done */
    uint32_t *uses;  /* of each root: readers not done */
    bool *alive;     /* roots that have been written */
    bool *done;
    uint32_t *seen; /* of each root: the last look at operands that met it */
    uint32_t looks;
    VEC(ready_op)
    heap;            /* the least first; an operator whose growth has changed is there again, the old entry is void */
    int64_t *growth; /* of each operator that is ready: what counts */
} greedy;

/* Each root among the operands once. */
static bool is_new(greedy *g, uint32_t root)
{
    bool is = g->seen[root] != g->looks;
    g->seen[root] = g->looks;
    return is;
}

/* Bytes that remain alive after op, less those before it. */
static int64_t growth(greedy *g, uint32_t op)
{
    const plan_facts *f = g->f;
    const plan_op *o = &f->p->ops.data[op];
    int64_t sum = 0;
    g->looks++;
    for (uint32_t i = o->n_inputs; i < o->n_args; i++) {
        uint32_t r = f->root[o->args[i]];
        if (facts_in_workspace(f, r) && !g->alive[r])
            sum += (int64_t)f->p->values.data[r].bytes;
    }
    for (uint32_t i = 0; i < o->n_inputs; i++) {
        uint32_t r = f->root[o->args[i]];
        if (is_new(g, r) && facts_in_workspace(f, r) && g->uses[r] == 1)
            sum -= (int64_t)f->p->values.data[r].bytes;
    }
    return sum;
}

static bool comes_before(ready_op a, ready_op b)
{
    return a.growth != b.growth ? a.growth < b.growth : a.op < b.op;
}

static void push(greedy *g, uint32_t op)
{
    g->growth[op] = growth(g, op);
    ready_op x = {g->growth[op], op};
    vec_push(g->f->a, &g->heap, x);
    uint32_t i = g->heap.len - 1;
    for (; i > 0 && comes_before(x, g->heap.data[(i - 1) / 2]); i = (i - 1) / 2)
        g->heap.data[i] = g->heap.data[(i - 1) / 2];
    g->heap.data[i] = x;
}

static ready_op pop(greedy *g)
{
    ready_op least = g->heap.data[0], x = vec_pop(&g->heap);
    uint32_t i = 0, n = g->heap.len;
    for (uint32_t k = 1; k < n; k = 2 * i + 1) {
        k += k + 1 < n && comes_before(g->heap.data[k + 1], g->heap.data[k]);
        if (!comes_before(g->heap.data[k], x))
            break;
        g->heap.data[i] = g->heap.data[k];
        i = k;
    }
    if (n > 0)
        g->heap.data[i] = x;
    return least;
}

/* The growth of these may have changed. */
static void look_again(greedy *g, const u32s *ops)
{
    for (uint32_t k = 0; k < ops->len; k++)
        if (!g->done[ops->data[k]] && g->waits[ops->data[k]] == 0)
            push(g, ops->data[k]);
}

static void finish(greedy *g, uint32_t op)
{
    const plan_facts *f = g->f;
    const plan_op *o = &f->p->ops.data[op];
    u32s changed = {0}; /* roots */
    g->done[op] = true;
    g->looks++;
    for (uint32_t i = o->n_inputs; i < o->n_args; i++) {
        uint32_t r = f->root[o->args[i]];
        if (!g->alive[r])
            vec_push(f->a, &changed, r);
        g->alive[r] = true;
    }
    for (uint32_t i = 0; i < o->n_inputs; i++) {
        uint32_t r = f->root[o->args[i]];
        if (is_new(g, r) && --g->uses[r] == 1)
            look_again(g, &f->readers[r]);
    }
    for (uint32_t i = 0; i < changed.len; i++)
        look_again(g, &f->writers[changed.data[i]]);
    for (uint32_t k = 0; k < f->after[op].len; k++)
        if (--g->waits[f->after[op].data[k]] == 0)
            push(g, f->after[op].data[k]);
}

static void order_greedy(const plan_facts *f, uint32_t *out)
{
    greedy g = {.f = f,
                .waits = arena_array(f->a, uint32_t, f->n_ops),
                .uses = arena_array(f->a, uint32_t, f->n_values),
                .alive = arena_array(f->a, bool, f->n_values),
                .done = arena_array(f->a, bool, f->n_ops),
                .seen = arena_array(f->a, uint32_t, f->n_values),
                .growth = arena_array(f->a, int64_t, f->n_ops)};
    for (uint32_t v = 0; v < f->n_values; v++)
        g.uses[v] = f->readers[v].len;
    for (uint32_t op = 0; op < f->n_ops; op++)
        g.waits[op] = f->before[op].len;
    for (uint32_t op = 0; op < f->n_ops; op++)
        if (g.waits[op] == 0)
            push(&g, op);
    for (uint32_t n = 0; n < f->n_ops;) {
        ready_op x = pop(&g);
        if (g.done[x.op] || x.growth != g.growth[x.op])
            continue;
        out[n++] = x.op;
        finish(&g, x.op);
    }
}

static const struct {
    const char *name;
    void (*make)(const plan_facts *f, uint32_t *out);
} orders[] = {{"given", order_given}, {"depth-first", order_depth_first}, {"greedy", order_greedy}};

uint32_t order_count(void)
{
    return sizeof orders / sizeof *orders;
}
const char *order_name(uint32_t i)
{
    return orders[i].name;
}

/* Segments run in turn; within them the order stays. */
static void sort_segments(const plan_facts *f, uint32_t *order)
{
    uint32_t *at = arena_array(f->a, uint32_t, f->n_segments + 1u), *was = arena_array(f->a, uint32_t, f->n_ops);
    for (uint32_t i = 0; i < f->n_ops; i++) {
        at[f->p->ops.data[order[i]].segment + 1]++;
        was[i] = order[i];
    }
    for (uint32_t s = 0; s < f->n_segments; s++)
        at[s + 1] += at[s];
    for (uint32_t i = 0; i < f->n_ops; i++)
        order[at[f->p->ops.data[was[i]].segment]++] = was[i];
}

void order_make(const plan_facts *f, uint32_t i, uint32_t *out)
{
    orders[i].make(f, out);
    if (f->n_segments > 1)
        sort_segments(f, out);
}
