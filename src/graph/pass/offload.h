/* SPDX-License-Identifier: Apache-2.0 */
/* What the four passes of a partition share: targets in order of preference with their patterns, and the log. */
#ifndef LATHE_GRAPH_PASS_OFFLOAD_H
#define LATHE_GRAPH_PASS_OFFLOAD_H
#include "graph/pass.h"
#include "graph/pattern.h"
#include "type/offload.h"

typedef struct offload_target {
    const char *name;         /* interned */
    const struct target *row; /* NULL: known by patterns alone, for work on text */
    graph_patterns patterns;
    uint64_t least_work; /* of a region */
    bool binds_constants;
} offload_target;

struct offload {
    const offload_target *targets;
    uint32_t n_targets;
    offload_log *log;
};

/* A text of patterns, with its name for messages. */
typedef struct offload_text {
    const char *file, *text;
    size_t len;
} offload_text;

typedef struct offload_spec {
    const char *targets; /* "acme,brand": in order of preference */
    const offload_text *texts; /* of the user's own; they come before those of a target's row and the built-in ones */
    uint32_t n_texts;
    int64_t least_work; /* -1: each target's own */
    bool bind_constants; /* also where a target does not ask for it */
} offload_spec;

/* Errors: DIAG_USAGE for a target that is not known, is given twice or has no patterns; DIAG_SYNTAX in texts. */
bool offload_open(compiler *c, const offload_spec *s, const struct offload **out);
/* NULL: none of this name. */
const offload_target *offload_find(const struct offload *o, const char *name);

/* Multiply-adds of a node, or elements; of a call those of the callee. UINT64_MAX: nothing bounds it. */
uint64_t graph_work(const graph_node *n);
uint64_t graph_work_add(uint64_t a, uint64_t b);

/* Keeps the reason of the pattern that fitted furthest. Text is copied. */
void offload_refuse(compiler *c, offload_log *log, const graph_node *n, const char *why, uint32_t fitted);
/* A constant that goes into a target's function with the node that reads it as operand i: a single number, or what the
 * operator reads as a shape. Others are operands of the call, also where all their elements are equal. */
bool offload_is_literal(const graph_node *n, uint32_t i);
void offload_drop_composites(graph_module *m); /* those that nobody calls any more go */
/* Regions and what stayed, from the graph as it is now. */
void offload_tell(compiler *c, const graph_module *m, const struct offload *o);
/* Adds a name to a list, unless it is there already; long lists are cut. */
void offload_add_name(writer *w, const char *name);
const char *offload_c_name(compiler *c, const char *name); /* letters, digits and _ */
#endif
