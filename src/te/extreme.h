/* SPDX-License-Identifier: Apache-2.0 */
/* Where the extreme of a long row lies, in a form that vectors compute (extreme.c). */
#ifndef LATHE_TE_EXTREME_H
#define LATHE_TE_EXTREME_H
#include "graph/op.h"
#include "te/te.h"

/* The stage of n, an arg-reduction whose places are all that g returns, becomes a search in parts; nothing is changed
 * where rows are short, or are not floats of a parameter side by side in memory, or where the last place is wanted. */
void te_search_in_parts(te_graph *g, const graph_node *n, const te_node *stage);
#endif
