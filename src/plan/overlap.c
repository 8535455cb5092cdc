/* SPDX-License-Identifier: Apache-2.0 */
/* Which parameters of a kernel lie in the same memory: a result that takes an operand's place, or begins a little in
 * front of it. Passes behind the plan and back ends ask for it. */
#include "plan/plan.h"
#include "prog/shape.h"

static bool overlap(const plan *pl, uint32_t i, uint32_t k)
{
    const plan_value *a = &pl->problem->values.data[i], *b = &pl->problem->values.data[k];
    uint64_t at = pl->places[i].offset, other = pl->places[k].offset;
    return a->storage == b->storage &&
           (a->storage == STORE_WORKSPACE || a->storage == STORE_STATE || a->index == b->index) &&
           at < other + b->bytes && other < at + a->bytes;
}

/* The parameters of f begin with `skip` ones that are no operands. */
static void note_op(compiler *c, const plan *pl, const plan_op *op, tir_func *f, uint32_t skip)
{
    if (!f->shared)
        f->shared = arena_array(&c->mem, bool, f->n_params);
    for (uint32_t i = 0; i < op->n_args; i++)
        for (uint32_t k = op->n_inputs; k < op->n_args; k++)
            if (i != k && overlap(pl, op->args[i], op->args[k]))
                f->shared[skip + i] = f->shared[skip + k] = true;
}

void plan_note_shared(compiler *c, const plan *pl)
{
    for (uint32_t i = 0; i < pl->problem->ops.len; i++) {
        const plan_op *op = &pl->problem->ops.data[i];
        const prog_kernel *k = op->step ? op->step->kernel : NULL;
        tir_func *f = k ? k->loops ? k->loops : k->plain : NULL;
        if (f)
            note_op(c, pl, op, f, 0);
        if (k && k->shape) /* the numbers come first */
            note_op(c, pl, op, k->shape->loops, 1);
    }
}
