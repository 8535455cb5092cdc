/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of the simplifier. A rule looks at a node and at the nodes that make its operands. It returns the value that
 * replaces the node's only result (made by nodes that it appended), or NULL for no change. The type must stay the same:
 * the driver checks this, and drops the replacement otherwise. */
#ifndef LATHE_GRAPH_PASS_SIMPLIFY_H
#define LATHE_GRAPH_PASS_SIMPLIFY_H
#include "graph/pass/rewrite.h"

typedef graph_value *(*simplify_rule)(rewriter *r, graph_node *n);

/* A shape operand that is computed from shapes, and of which the result's type says all: it goes, and with it what
 * computes it and what compares it in each run. */
void simplify_leave_out_shape(rewriter *r, graph_node *n);
graph_value *simplify_einsum(rewriter *r, graph_node *n);
graph_value *simplify_batch_norm(rewriter *r, graph_node *n);
graph_value *simplify_conv_pad(rewriter *r, graph_node *n);
graph_value *simplify_avg_pool_pad(rewriter *r, graph_node *n);
graph_value *simplify_max_pool_pad(rewriter *r, graph_node *n);
#endif
