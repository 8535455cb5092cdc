/* SPDX-License-Identifier: Apache-2.0 */
/* The planner's problem of a compile. */
#include "driver/problem.h"

#include <string.h>

#include "plan/plan.h"
#include "type/target.h"

bool compile_is_for_module(const compile_options *o)
{
    return strcmp(o->emit, "module") == 0 || (o->target && o->target->variants);
}

plan_problem *compile_problem(compiler *c, const compile_options *o, const target *t, const prog_func *f)
{
    plan_problem *p = plan_problem_of(c, f, o->input_in_workspace && !compile_is_for_module(o));
    p->workers = t->workers;
    p->split_parts = o->opt_level > 0;
    p->effort = o->plan_effort;
    return p;
}
