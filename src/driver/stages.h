/* SPDX-License-Identifier: Apache-2.0 */
/* The two steps from the graph to loops, by the names that TVM's lowering has for them: each runs alone on graph text
 * (`lathe opt GRAPH --passes ...,NAME`), behind passes on the graph. */
#ifndef LATHE_DRIVER_STAGES_H
#define LATHE_DRIVER_STAGES_H
#include "graph/graph.h"

struct target;

/* X(id, name, function, help) */
#define STAGES(X)                                                                                                    \
    X(STAGE_LOWER_TE, "LowerTE", stage_lower_te, "calls of primitive functions become steps of a program")          \
    X(STAGE_PRIM_FUNC_FOR, "PrimFuncFor", stage_prim_func_for, "primitive functions become loops for their target")

typedef bool (*stage_fn)(compiler *c, graph_module *m, const struct target *t, writer *out);
#define X(id, name, fn, help) bool fn(compiler *c, graph_module *m, const struct target *t, writer *out);
STAGES(X)
#undef X

/* The stage that a list of passes ends with, or NULL; *out_rest: the list without it. False: a stage stands before
 * another name. */
bool stage_take(compiler *c, const char *passes, stage_fn *out, const char **out_rest);
#endif
