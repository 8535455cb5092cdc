/* SPDX-License-Identifier: Apache-2.0 */
/* Images of a batch: what along axis 0 of a value belongs together. Which nodes make each of them by itself, and the
 * same nodes for fewer images. */
#ifndef LATHE_GRAPH_PASS_IMAGES_H
#define LATHE_GRAPH_PASS_IMAGES_H
#include "graph/op.h"

/* A tensor of `count` images that is no constant. */
bool images_has(const graph_value *v, int64_t count);
/* Whether image i of each result of n is made of image i of those operands that have `count` images, and of all of the
 * other operands. A call: of a primitive function whose nodes are all such ones. Writes marks of values in callees. */
bool images_are_apart(const graph_node *n, int64_t count);
/* n for `few` images: in f, of operands that have as many (has: there are some), which are typed; results are typed,
 * and named as those of n. The node is in no list. NULL after a diagnostic. `callee`: what a call of n's function
 * calls. */
graph_node *images_few_node(graph_func *f, const graph_node *n, graph_value *const *in, int64_t few, bool has,
                            graph_func *callee);
/* The primitive function g, as `call` calls it, for few images. NULL after a diagnostic. */
graph_func *images_few_func(graph_func *g, int64_t count, int64_t few, const graph_node *call);
#endif
