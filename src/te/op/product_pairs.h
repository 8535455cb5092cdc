/* SPDX-License-Identifier: Apache-2.0 */
/* Products of two operands of bytes, neither of which is known before the run, for processors that multiply pairs of 16
 * bits (product_pairs.c). */
#ifndef LATHE_TE_OP_PRODUCT_PAIRS_H
#define LATHE_TE_OP_PRODUCT_PAIRS_H
#include "te/te_op.h"

#define PAIRS_ROWS 2 /* whose steps lie side by side */
#define PAIRS_STEP 4 /* numbers */

/* qnn.matmul of operands of two axes or more, with the attribute wide and weights as they are. */
te_tensor *te_product_pairs(te_graph *g, const graph_node *n, te_tensor *const *in);
#endif
