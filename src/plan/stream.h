/* SPDX-License-Identifier: Apache-2.0 */
/* Row streaming: which neighbors of a program become chains (prog/chain.h), so that its memory meets a budget or is
 * the least that can be had, at the least cost. */
#ifndef LATHE_PLAN_STREAM_H
#define LATHE_PLAN_STREAM_H
#include "plan/plan.h"

/* What is known about the memory of a program, in bytes of workspace. */
typedef struct stream_bounds {
    bool asked;          /* for less memory; else bounds are all that is known, and no chains are made */
    uint64_t one_by_one; /* the largest operator: operands, results and scratch, all side by side */
    uint64_t overlapped; /* reached without chains: results in place of operands, or over them */
    uint64_t streamed;   /* the least by chains as they are thought of, values of a piece side by side: no bound */
    uint64_t reached;
    uint32_t chains, links; /* that were made, and the kernels in them */
    int64_t copied_again;   /* bytes that they copy more than once */
} stream_bounds;

/* Plans a program: *out_ram is what counts against the budget, the workspace and more. */
typedef struct stream_planner {
    void *ctx;
    bool (*plan)(void *ctx, prog_module *m, plan *out, uint64_t *out_ram);
    uint64_t ram;    /* the budget; 0: none */
    bool least;      /* as little as can be, whatever the budget leaves */
    bool bounds_only; /* nothing is planned: one_by_one and streamed are found */
    uint32_t effort; /* as for plans */
    bool inputs_inside; /* as for plan_problem_of */
} stream_planner;

/* *out: m itself where it meets the budget, else a program with chains; *b what they brought. false after an error: the
 * budget cannot be met, or a kernel is at fault. The functions of m but main stay as they are. */
bool plan_stream(compiler *c, prog_module *m, const stream_planner *p, prog_module **out, stream_bounds *b);
#endif
