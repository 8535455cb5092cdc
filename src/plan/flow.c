/* SPDX-License-Identifier: Apache-2.0 */
/* Branches and loops as a flat list of steps: runs of operators and jumps between them. */
#include "plan/plan.h"

static uint32_t add(plan_flow *f, plan_step_kind kind, uint32_t to, uint32_t value)
{
    vec_push(f->a, &f->p->steps, ((plan_step){kind, to, value}));
    f->open = kind == PLAN_RUN;
    return f->p->steps.len - 1;
}

/* Jumps come here: what follows is a segment of its own. */
static void land(plan_flow *f, uint32_t jump)
{
    f->p->steps.data[jump].to = f->p->steps.len;
    f->open = false;
}

void flow_op(plan_flow *f, plan_op op)
{
    uint32_t last = f->p->ops.len ? vec_last(&f->p->ops).segment : 0;
    op.segment = f->open || f->p->ops.len == 0 ? last : last + 1;
    if (!f->open)
        (void)add(f, PLAN_RUN, op.segment, 0);
    vec_push(f->a, &f->p->ops, op);
}

uint32_t flow_if(plan_flow *f, uint32_t condition)
{
    return add(f, PLAN_JUMP_IF_ZERO, 0, condition);
}

uint32_t flow_else(plan_flow *f, uint32_t jump)
{
    uint32_t end = add(f, PLAN_JUMP, 0, 0);
    land(f, jump);
    return end;
}

void flow_end_if(plan_flow *f, uint32_t jump)
{
    land(f, jump);
}

uint32_t flow_loop(plan_flow *f, uint32_t condition)
{
    return add(f, PLAN_JUMP_IF_ZERO, 0, condition);
}

void flow_end_loop(plan_flow *f, uint32_t jump)
{
    (void)add(f, PLAN_JUMP, jump, 0);
    land(f, jump);
}

uint32_t flow_segment(const plan_problem *p, uint32_t step)
{
    for (; step < p->steps.len; step++)
        if (p->steps.data[step].kind == PLAN_RUN)
            return p->steps.data[step].to;
    return p->ops.len ? vec_last(&p->ops).segment + 1 : 0;
}
