/* SPDX-License-Identifier: Apache-2.0 */
/* Where the extreme of a row lies, in a form that vectors compute (extreme.c). */
#ifndef LATHE_TE_EXTREME_H
#define LATHE_TE_EXTREME_H
#include "graph/op.h"
#include "te/te.h"

/* Whether a reducer finds the least or the greatest number: any part can be taken twice, and in any order. NULL: no. */
bool te_is_extreme(const te_reducer *r);
/* Whether n, with one axis of reduction, takes floats of a parameter that lie side by side along it, as they are. */
bool te_reads_row(const te_graph *g, const te_node *n);

/* The stage of n, an arg-reduction whose places are all that g returns, becomes a search in parts. False, and nothing
 * is changed, where rows are short, or are not floats of a parameter side by side in memory, or where the last place is
 * wanted. */
bool te_search_in_parts(te_graph *g, const graph_node *n, const te_node *stage);
/* The stage of n, an arg-reduction whose elements come in order, takes one only if it beats those before it. It begins
 * with what everything beats, and with place 0, so that it asks neither whether there was one nor which was first.
 * In one row whose place is all that g returns, places are counted in 32 bits. */
void te_search_in_order(te_graph *g, const graph_node *n, te_node *stage);
#endif
