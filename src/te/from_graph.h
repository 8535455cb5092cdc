/* SPDX-License-Identifier: Apache-2.0 */
/* From a function of the graph to a loop-IR function (from_graph.c). */
#ifndef LATHE_TE_FROM_GRAPH_H
#define LATHE_TE_FROM_GRAPH_H
#include "graph/graph.h"
#include "te/records.h"
#include "tir/tir.h"

/* PrimFuncFor, as TVM calls it: lowers one node, or one primitive function (a fused group; parameters become inputs,
 * results outputs): compute definitions of all nodes in one te_graph, injective producers inlined, the anchor's default
 * schedule, loops as the schedule says them, on which no pass has run. t NULL: the empty schedule (what the oracle
 * uses). A schedule among the records (NULL: there are none) stands before the default one. The function's name is
 * given. */
bool te_lower_func(compiler *c, const graph_func *f, const char *name, const struct target *t, te_records *records,
                   tir_func **out);
bool te_lower_node(compiler *c, const graph_node *n, const char *name, const struct target *t, te_records *records,
                   tir_func **out);
/* A constant inside of a region that its loops take as an operand, behind the function's own, in the order of its
 * nodes: it has more elements than loops can say. */
bool te_is_data(const graph_value *v);
/* The plain loops of n's te_extent_hook: n's inputs in, one i64[] for each of its own symbols out. */
bool te_lower_extents(compiler *c, const graph_node *n, const char *name, tir_func **out);

/* A copy of v for a place of the type `to`. Extents of it that types do not say to be those of v are compared, and the
 * kernel ends with PACKAGE_STATUS_SHAPE where they differ; on axes of the set `grows` (bits), where v's is above the
 * bound. */
bool te_lower_fitted(compiler *c, const graph_value *v, const type *to, uint32_t grows, const char *name, src_loc loc,
                     tir_func **out);
/* The same for v, one i64, and an extent: the kernel ends unless v is `extent`; with `grows`, within its bound. */
bool te_lower_told(compiler *c, const graph_value *v, dim extent, bool grows, const char *name, src_loc loc,
                   tir_func **out);

/* The schedule that the computation of a primitive function (or, where f is NULL, of a node) gets; (*out)->g is the
 * computation. */
bool te_schedule_graph(compiler *c, const graph_func *f, const graph_node *n, const struct target *t,
                       te_records *records, te_sched **out);
/* The computation of a primitive function (or, where f is NULL, of a node) and, behind a line
 * "--- schedule for TARGET", the schedule that it gets: text that `lathe opt` and --schedules read. */
bool te_print_scheduled(compiler *c, const graph_func *f, const graph_node *n, const struct target *t,
                        te_records *records, writer *w);
#endif
