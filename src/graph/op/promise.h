/* SPDX-License-Identifier: Apache-2.0 */
/* What attributes promise about a node's operands. `pairs`: products by neighboring weights have sums of 16 bits.
 * `proved`: lists of steps stay within their data and within 16 bits, and the data is at most `most`. Kernels rely on
 * these promises, so they are checked first: by the type relations, and by the verifier where those do not run. */
#ifndef LATHE_GRAPH_OP_PROMISE_H
#define LATHE_GRAPH_OP_PROMISE_H
#include "graph/op.h"

/* Operands *first to *last are those that n promises something of; false: it promises nothing. */
bool graph_promises(const graph_node *n, uint32_t *out_first, uint32_t *out_last);

/* Whether n promises of its first operand, bytes, that none is more than *most, which is less than any byte may be. */
bool graph_promises_limit(const graph_node *n, int64_t *out_most);
/* Whether v is made so: by a minimum with a constant, and moved since. NULL: no. */
bool graph_is_limited(const graph_value *v, int64_t most);

/* Whether those that are known, constants and weights of 4 bits by their range, are as n promises. Asks for no type of
 * the result; those of the operands are tensors of known rank. An error at the node otherwise. */
bool graph_promise_kept(compiler *c, const graph_node *n);
#endif
