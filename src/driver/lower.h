/* SPDX-License-Identifier: Apache-2.0 */
/* From the fused graph to what the planner and the back ends need: values, operators with their loop-IR functions. */
#ifndef LATHE_DRIVER_LOWER_H
#define LATHE_DRIVER_LOWER_H
#include "driver/pipeline.h"

/* Lowers every operator of main and fills the unit's inputs, outputs, constants and operators, the problem for the
 * planner and the module of loop-IR functions. Changes the graph only by copies in front of results. Errors: shapes
 * that depend on data, dtypes that kernels cannot use, operators without a compute definition. */
bool lower_module(compiler *c, graph_module *m, const compile_options *o, codegen_unit *u, plan_problem **out_problem,
                  tir_module **out_tir);
uint64_t
lower_most_bytes(const target *t); /* most bytes of a value or a workspace: 2^31 on 32-bit targets, else 2^40 */
#endif
