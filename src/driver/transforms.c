/* SPDX-License-Identifier: Apache-2.0 */
/* A transform serves what makes its operand, or what reads its result: the dearer of both. Kernels without products
 * between them, such as a border, belong to that layer. */
#include "driver/transforms.h"

#include "codegen/c/package.h"
#include "driver/html_timeline.h"
#include "graph/op.h"

#define DEAR  0.1 /* of the layer */
#define REACH 4   /* kernels, the transform's neighbor included */

typedef struct search {
    const plan_problem *p;
    const double *cost; /* of each operator */
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

/* `first` writes what `next` reads. */
static bool feeds(const plan_op *first, const plan_op *next)
{
    for (uint32_t i = first->n_inputs; i < first->n_args; i++)
        for (uint32_t j = 0; j < next->n_inputs; j++)
            if (first->args[i] == next->args[j])
                return true;
    return false;
}

/* What the kernels before or behind operator `at` cost, up to one with products: of several ways the dearest. */
static double layer_cost(const search *x, uint32_t at, bool behind, uint32_t reach)
{
    double most = 0;
    for (uint32_t i = 0; reach > 0 && i < x->p->ops.len; i++) {
        const plan_op *op = &x->p->ops.data[i], *other = &x->p->ops.data[at];
        if (!(behind ? feeds(other, op) : feeds(op, other)))
            continue;
        const double more = op->func->macs > 0 ? 0 : layer_cost(x, i, behind, reach - 1), cost = x->cost[i] + more;
        most = cost > most ? cost : most;
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
    bool any = false;
    for (uint32_t i = 0; i < p->ops.len; i++)
        any |= is_transform(&p->ops.data[i]);
    if (!any)
        return found;
    double *cost = arena_array(&c->mem, double, p->ops.len), sum = 0;
    for (uint32_t i = 0; i < p->ops.len; i++)
        sum += cost[i] = cost_of(c, r, i);
    const search x = {p, cost};
    for (uint32_t i = 0; i < p->ops.len; i++) {
        if (!is_transform(&p->ops.data[i]))
            continue;
        const double before = layer_cost(&x, i, false, REACH), behind = layer_cost(&x, i, true, REACH);
        const double layer = before > behind ? before : behind;
        if (layer <= 0 || cost[i] <= DEAR * layer)
            continue;
        found.n++;
        found.share += cost[i] / sum;
        found.names = arena_printf(&c->mem, "%s%s%s %.0f %%", found.names, *found.names ? ", " : "",
                                   p->ops.data[i].name, 100 * cost[i] / sum);
    }
    return found;
}
