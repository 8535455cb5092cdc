/* SPDX-License-Identifier: Apache-2.0 */
/* A transform serves what makes its operand, or what reads its result: the dearer of both. Kernels without products
 * between them, such as a border, belong to that layer. */
#include "driver/transforms.h"

#include "codegen/c/package.h"
#include "driver/html_timeline.h"
#include "graph/op.h"

#include <math.h>

#define DEAR         0.1 /* of the layer */
#define REACH        4   /* kernels, the transform's neighbor included */
#define MOST_READERS 8   /* of a value that are looked at: one layer is enough */
#define NONE         UINT32_MAX

typedef struct search {
    const plan_problem *p;
    double *cost;     /* of each operator */
    uint32_t *writer; /* of each value: the operator; NONE for inputs and constants */
    uint32_t *first, *readers; /* those of value v are readers[first[v]] up to readers[first[v + 1]] */
} search;

/* The kernel changes the order of elements, and does nothing else. */
static bool is_transform(const plan_op *op)
{
    const prog_kernel *k = op->step ? op->step->kernel : NULL;
    if (!k || (!k->node && !k->func))
        return false;
    if (k->node)
        return (k->node->op->flags & OPF_LAYOUT) != 0;
    for (uint32_t i = 0; i < k->func->nodes.len; i++)
        if ((k->func->nodes.data[i]->op->flags & (OPF_LAYOUT | OPF_VIEW)) == 0)
            return false;
    return true;
}

/* Who writes and who reads each value. */
static search search_of(compiler *c, const plan_problem *p)
{
    search x = {.p = p, .cost = arena_array(&c->mem, double, p->ops.len)};
    x.writer = arena_array(&c->mem, uint32_t, p->values.len);
    x.first = arena_array(&c->mem, uint32_t, p->values.len + 1u);
    for (uint32_t v = 0; v < p->values.len; v++)
        x.writer[v] = NONE;
    uint32_t reads = 0;
    for (uint32_t i = 0; i < p->ops.len; i++)
        for (uint32_t k = 0; k < p->ops.data[i].n_inputs; k++, reads++)
            x.first[p->ops.data[i].args[k] + 1]++;
    for (uint32_t v = 0; v < p->values.len; v++)
        x.first[v + 1] += x.first[v];
    uint32_t *next = arena_array(&c->mem, uint32_t, p->values.len);
    x.readers = arena_array(&c->mem, uint32_t, reads);
    for (uint32_t i = 0; i < p->ops.len; i++) {
        const plan_op *op = &p->ops.data[i];
        for (uint32_t k = 0; k < op->n_inputs; k++)
            x.readers[x.first[op->args[k]] + next[op->args[k]]++] = i;
        for (uint32_t k = op->n_inputs; k < op->n_args; k++)
            x.writer[op->args[k]] = i;
    }
    return x;
}

static double layer_cost(const search *x, uint32_t at, bool behind, uint32_t reach);

static double cost_from(const search *x, uint32_t at, bool behind, uint32_t reach)
{
    return x->cost[at] + (x->p->ops.data[at].func->macs > 0 ? 0 : layer_cost(x, at, behind, reach - 1));
}

/* What the kernels before or behind operator `at` cost, up to one with products: of several ways the dearest. */
static double layer_cost(const search *x, uint32_t at, bool behind, uint32_t reach)
{
    const plan_op *op = &x->p->ops.data[at];
    double most = 0;
    for (uint32_t k = 0; reach > 0 && !behind && k < op->n_inputs; k++)
        if (x->writer[op->args[k]] != NONE)
            most = fmax(most, cost_from(x, x->writer[op->args[k]], behind, reach));
    for (uint32_t k = op->n_inputs; reach > 0 && behind && k < op->n_args; k++) {
        const uint32_t from = x->first[op->args[k]], to = x->first[op->args[k] + 1];
        for (uint32_t i = from; i < to && i < from + MOST_READERS; i++)
            most = fmax(most, cost_from(x, x->readers[i], behind, reach));
    }
    return most;
}

/* For processors of 32 bits the estimate is a bound, which for moves is far above what compilers make of them. */
static double cost_of(compiler *c, const compile_result *r, uint32_t op)
{
    const double slots = html_counts_instructions(r) ? package_operator_slots(c, &r->unit, op) : -1;
    return slots >= 0 ? slots : html_estimate_of(c, r, op).amount;
}

transforms_found transforms_dear(compiler *c, const compile_result *r)
{
    const plan_problem *p = r->plan.problem;
    transforms_found found = {.names = ""};
    writer names;
    bool any = false;
    for (uint32_t i = 0; i < p->ops.len; i++)
        any |= is_transform(&p->ops.data[i]);
    if (!any)
        return found;
    writer_init(&names, &c->mem);
    search x = search_of(c, p);
    double sum = 0, *cost = x.cost;
    for (uint32_t i = 0; i < p->ops.len; i++)
        sum += cost[i] = cost_of(c, r, i);
    for (uint32_t i = 0; i < p->ops.len; i++) {
        if (!is_transform(&p->ops.data[i]))
            continue;
        const double before = layer_cost(&x, i, false, REACH), behind = layer_cost(&x, i, true, REACH);
        const double layer = before > behind ? before : behind;
        if (layer <= 0 || cost[i] <= DEAR * layer)
            continue;
        found.n++;
        found.share += cost[i] / sum;
        w_fmt(&names, "%s%s %.0f %%", names.len ? ", " : "", p->ops.data[i].name, 100 * cost[i] / sum);
    }
    if (found.n > 0)
        found.names = arena_strndup(&c->mem, names.data, names.len);
    return found;
}
