/* SPDX-License-Identifier: Apache-2.0 */
/* Sequential orders of the operators: as given, depth first from the results, and greedy by live bytes. */
#include "plan/facts.h"

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

/* Post-order with an explicit stack; operands with the larger results come first, so that less waits for them. */
static void visit(const plan_facts *f, uint32_t start, uint8_t *state, uint32_t *out, uint32_t *n)
{
    u32s stack = {0};
    vec_push(f->a, &stack, start);
    while (stack.len > 0) {
        uint32_t op = vec_last(&stack), next = UINT32_MAX;
        for (uint32_t k = 0; k < f->before[op].len; k++) {
            uint32_t b = f->before[op].data[k];
            if (state[b] == 0 && (next == UINT32_MAX || result_bytes(f, b) > result_bytes(f, next)))
                next = b;
        }
        if (next != UINT32_MAX) {
            state[next] = 1;
            vec_push(f->a, &stack, next);
            continue;
        }
        (void)vec_pop(&stack);
        out[(*n)++] = op;
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

typedef struct greedy {
    uint32_t *waits; /* of each operator: predecessors not done */
    uint32_t *uses;  /* of each root: readers not done */
    bool *alive;     /* roots that have been written */
    bool *done;
} greedy;

/* Bytes that remain alive after op, less those before it. */
static int64_t growth(const plan_facts *f, const greedy *g, uint32_t op)
{
    const plan_op *o = &f->p->ops.data[op];
    int64_t sum = 0;
    for (uint32_t i = o->n_inputs; i < o->n_args; i++) {
        uint32_t r = f->root[o->args[i]];
        if (facts_in_workspace(f, r) && !g->alive[r])
            sum += (int64_t)f->p->values.data[r].bytes;
    }
    for (uint32_t i = 0; i < o->n_inputs; i++) {
        uint32_t r = f->root[o->args[i]];
        bool again = false;
        for (uint32_t k = 0; k < i; k++)
            again |= f->root[o->args[k]] == r;
        if (!again && facts_in_workspace(f, r) && g->uses[r] == 1)
            sum -= (int64_t)f->p->values.data[r].bytes;
    }
    return sum;
}

static void finish(const plan_facts *f, greedy *g, uint32_t op)
{
    const plan_op *o = &f->p->ops.data[op];
    g->done[op] = true;
    for (uint32_t i = o->n_inputs; i < o->n_args; i++)
        g->alive[f->root[o->args[i]]] = true;
    for (uint32_t r = 0; r < o->n_inputs; r++) {
        bool again = false;
        for (uint32_t k = 0; k < r; k++)
            again |= f->root[o->args[k]] == f->root[o->args[r]];
        if (!again)
            g->uses[f->root[o->args[r]]]--;
    }
    for (uint32_t k = 0; k < f->after[op].len; k++)
        g->waits[f->after[op].data[k]]--;
}

static void order_greedy(const plan_facts *f, uint32_t *out)
{
    greedy g = {arena_array(f->a, uint32_t, f->n_ops), arena_array(f->a, uint32_t, f->n_values),
                arena_array(f->a, bool, f->n_values), arena_array(f->a, bool, f->n_ops)};
    u32s ready = {0};
    for (uint32_t op = 0; op < f->n_ops; op++) {
        g.waits[op] = f->before[op].len;
        if (g.waits[op] == 0)
            vec_push(f->a, &ready, op);
    }
    for (uint32_t v = 0; v < f->n_values; v++)
        g.uses[v] = f->readers[v].len;
    for (uint32_t n = 0; n < f->n_ops; n++) {
        uint32_t best = 0;
        for (uint32_t k = 1; k < ready.len; k++) {
            int64_t a = growth(f, &g, ready.data[k]), b = growth(f, &g, ready.data[best]);
            if (a < b || (a == b && ready.data[k] < ready.data[best]))
                best = k;
        }
        uint32_t op = ready.data[best];
        ready.data[best] = vec_last(&ready);
        (void)vec_pop(&ready);
        out[n] = op;
        finish(f, &g, op);
        for (uint32_t k = 0; k < f->after[op].len; k++)
            if (g.waits[f->after[op].data[k]] == 0)
                vec_push(f->a, &ready, f->after[op].data[k]);
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
void order_make(const plan_facts *f, uint32_t i, uint32_t *out)
{
    orders[i].make(f, out);
}
