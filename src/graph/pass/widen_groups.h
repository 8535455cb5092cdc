/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of part of a block of channels, some of them as one (widen_groups.c). */
#ifndef LATHE_GRAPH_PASS_WIDEN_GROUPS_H
#define LATHE_GRAPH_PASS_WIDEN_GROUPS_H
#include "graph/pass/rewrite.h"

/* How many groups of convolution n, whose weights are constant, are better one, so that data may be in blocks of
 * `lanes` channels; 0: none, lines of planes are quicker. packed: data is there. */
int64_t widen_groups_by(const graph_node *n, int64_t lanes, bool packed);
/* The weights of n with so many groups as one: zeros stand where a channel is not of the group. NULL after an error. */
graph_value *widen_groups_weights(rewriter *r, const graph_node *n, int64_t by);
#endif
