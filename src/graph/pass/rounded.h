/* SPDX-License-Identifier: Apache-2.0 */
/* Floats that a quantize rounds in the end. A float that is off in its last place is as good as another; a code that it
 * rounds to is off by a whole step. */
#ifndef LATHE_GRAPH_PASS_ROUNDED_H
#define LATHE_GRAPH_PASS_ROUNDED_H
#include "base/ptr_map.h"
#include "graph/op.h"

/* The nodes whose results a qnn.quantize of f reads, as they are or through others that compute element by element, or
 * move elements. Of sums over many elements nobody says an order, so what reads them does not count. */
void rounded_find(compiler *c, const graph_func *f, ptr_map *out);
bool rounded_has(const ptr_map *rounded, const graph_node *n);
#endif
