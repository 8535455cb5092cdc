/* SPDX-License-Identifier: Apache-2.0 */
/* From a computation and its schedule to loops (lower.c). The empty schedule gives the plain loops, one nest per stage,
 * in order. */
#ifndef LATHE_TE_LOWER_H
#define LATHE_TE_LOWER_H
#include "te/schedule.h"

/* Applies the schedule, infers bounds, makes loops: the function's parameters are one int64 cell for each symbol, which
 * holds its value, then the graph's params. Non-dividing splits get a guard. Diagnostics name stage and axis. Loops are
 * called as the axes are; initialisation of a reduction stands at the outermost reduction loop (C.init loops when data
 * axes lie inside it), which is where accelerators reset theirs. */
bool te_lower(te_graph *g, const te_sched *s, const char *name, tir_func **out);
#endif
