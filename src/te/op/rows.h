/* SPDX-License-Identifier: Apache-2.0 */
/* The two compute definitions of qnn.conv2d_rows. */
#ifndef LATHE_TE_OP_ROWS_H
#define LATHE_TE_OP_ROWS_H
#include "graph/op/rows.h"
#include "te/te_op.h"

/* Where v->lanes says that vectors of bytes are multiplied. */
bool compute_conv2d_lanes(te_graph *g, const graph_node *n, const rows_conv *v, te_tensor *const *in, te_tensor **out);
#endif
