/* SPDX-License-Identifier: Apache-2.0 */
/* The planner's problem of a compile. */
#include "driver/problem.h"

#include <string.h>

#include "plan/plan.h"
#include "type/target.h"

bool compile_is_for_module(const compile_options *o)
{
    return compile_makes(o, BACKEND_MODULE) || (o->target && o->target->variants);
}

/* "workers of nn.softmax(f32[64, 1024]) : f32[64, 1024]" */
static const char *signature(graph_choices *forms, const prog_func *f, const prog_step *s)
{
    writer w;
    writer_init(&w, forms->mem);
    w_fmt(&w, "workers of %s(", s->kernel->kind);
    for (uint32_t i = 0; i < s->n_args; i++) {
        w_str(&w, i == 0 ? "" : i == s->n_in ? ") : " : ", ");
        type_print(&w, &f->values.data[s->args[i]].type);
    }
    return w.data;
}

/* What one worker does in the time that another one needs to begin is a near thing, where a record may say. */
static void choose_workers(graph_choices *forms, const target *t, const prog_func *f, const plan_problem *p,
                           plan_op *op)
{
    static const char *const all_half_one[] = {"all", "half", "one"}, *const all_one[] = {"all", "one"};
    const bool halves = t->workers >= 4;
    if (!op->step || !op->step->kernel || !plan_is_near(op) || plan_parts(p, op) < 2)
        return;
    const uint32_t n = halves ? 3 : 2, k = graph_choose_named(forms, signature(forms, f, op->step), t, n,
                                                               halves ? all_half_one : all_one, 0);
    op->workers = k == 0 ? 0 : k + 1 < n ? t->workers / 2 : 1;
}

plan_problem *compile_problem(compiler *c, const compile_options *o, const target *t, const prog_func *f,
                              graph_choices *forms)
{
    plan_problem *p = plan_problem_of(c, f, o->input_in_workspace && !compile_is_for_module(o));
    p->workers = t->workers;
    p->split_parts = o->opt_level > 0;
    p->keep_busy = !t->small; /* elsewhere time counts before memory; --workers 1 has the least of it */
    p->effort = o->plan_effort;
    for (uint32_t i = 0; i < p->ops.len; i++)
        choose_workers(forms, t, f, p, &p->ops.data[i]);
    return p;
}
