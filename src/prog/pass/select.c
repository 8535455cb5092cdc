/* SPDX-License-Identifier: Apache-2.0 */
/* select: the loops of kernels, and those that kernels share, become instructions of their targets where these have
 * some (tir/pass/select.c), arrays that these read get a place (tir/pass/hoist_starts.c), and loops are marked that C
 * compilers should not write out (tir/pass/say_rounds.c). It is the last pass before a back end, behind the plan, which
 * reads from stores whether a result may take an operand's place. */
#include "prog/shape.h"
#include "tir/pass.h"

/* A kernel runs the loops of its shape, in which less may be known. */
static void count_of_shape(const prog_kernel *k)
{
    if (k->shape && k->loops && k->loops->left.instructions < k->shape->loops->left.instructions)
        k->loops->left.instructions = k->shape->loops->left.instructions;
}

bool prog_pass_select(compiler *c, prog_module *m)
{
    tir_module loops = {.c = c};
    for (uint32_t i = 0; i < m->kernels.len; i++)
        if (m->kernels.data[i]->loops)
            vec_push(&c->mem, &loops.funcs, m->kernels.data[i]->loops);
    for (uint32_t i = 0; i < m->shapes.len; i++)
        vec_push(&c->mem, &loops.funcs, m->shapes.data[i]->loops);
    if (!tir_run_passes(c, &loops, "select,hoist-starts,hoist-loads,say-rounds", false, NULL))
        return false;
    for (uint32_t i = 0; i < m->kernels.len; i++)
        count_of_shape(m->kernels.data[i]);
    return true;
}
