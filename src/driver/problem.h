/* SPDX-License-Identifier: Apache-2.0 */
/* What the planner is asked in a compile: one problem for the artifact and for each cut that --ram tries. */
#ifndef LATHE_DRIVER_PROBLEM_H
#define LATHE_DRIVER_PROBLEM_H
#include "driver/pipeline.h"

/* Modules take what has no bound. */
bool compile_is_for_module(const compile_options *o);
/* forms: records may say how many workers share a small operator. */
struct plan_problem *compile_problem(compiler *c, const compile_options *o, const struct target *t,
                                     const struct prog_func *f, graph_choices *forms);
#endif
