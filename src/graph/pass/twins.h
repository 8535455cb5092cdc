/* SPDX-License-Identifier: Apache-2.0 */
/* A walk over a function whose values get a second form, in which some operators are faster: another layout, or a
 * wider type. A node is either converted, or stays and reads its operands as the model has them. The other form of a
 * value is made once, when a node needs it. */
#ifndef LATHE_GRAPH_PASS_TWINS_H
#define LATHE_GRAPH_PASS_TWINS_H
#include "base/ptr_map.h"
#include "graph/pass/rewrite.h"

/* A value as the model has it and in the pass's form; what is not made yet is NULL. */
typedef struct twin {
    graph_value *plain, *other;
} twin;

/* The first member of a pass's own state, which its functions get back from it. */
typedef struct twins {
    rewriter r;
    arena scratch;
    ptr_map index; /* value of the old graph -> position in list */
    VEC(twin) list;
    /* x, whose other form is `other`, as the model has it; NULL after an error. */
    graph_value *(*back)(struct twins *t, const graph_value *x, graph_value *other, src_loc loc);
    /* Node n in the other form, which twins_set notes, and *done; or it stays. false after an error. */
    bool (*convert)(struct twins *t, graph_node *n, bool *done);
    void (*kept)(struct twins *t, const graph_node *n); /* of each node that stays; NULL: nothing */
} twins;

void twins_begin(twins *t, compiler *c, graph_func *f); /* beside the functions, t is zero */
bool twins_walk(twins *t);                              /* over the whole function; false after an error */
bool twins_end(twins *t, bool ok);                      /* gives scratch back; ok, and nothing failed */
twin *twins_of(twins *t, graph_value *x);               /* until the next call */
graph_value *twins_plain(twins *t, graph_value *x, src_loc loc); /* as the model has it; NULL after an error */
/* The result of n is y, in the other form; false where y is NULL. */
bool twins_set(twins *t, graph_node *n, graph_value *y);
bool twins_set_plain(twins *t, graph_node *n, graph_value *y); /* y is as the model has it */
#endif
