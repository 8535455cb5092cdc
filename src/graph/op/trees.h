/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of tree_ensemble. Nodes stand in preorder, a tree behind another, without the leaves; leaves are numbered
 * from left to right. So a node needs no children: its left subtree follows it, the right one follows that, and how
 * many nodes the left one has is all that is stored. A subtree without nodes is a leaf, and a tree has one leaf more
 * than nodes.
 *
 * A leaf adds weights to targets. Without `lists` it adds one, to the target of its tree; with them leaf number k has
 * the entries lists[k] to lists[k + 1], each a target and a weight. `leaves` and `weight_ids` say which leaf and which
 * weight is meant where equal ones are stored once. */
#ifndef LATHE_GRAPH_OP_TREES_H
#define LATHE_GRAPH_OP_TREES_H

enum {
    TREES_X,          /* [rows, features] */
    TREES_ROOTS,      /* [trees + 1]: the first node of each tree, and the number of nodes */
    TREES_LEFT,       /* [nodes]: how many nodes the left subtree has */
    TREES_FEATURES,   /* [nodes]: the column; with TREES_TRACK_SOME twice that, odd where the node tracks */
    TREES_THRESHOLDS, /* [nodes]; of TREES_MEMBER: where its set begins in `members` */
    TREES_WEIGHTS,
    TREES_MODES,      /* [nodes]; left out: all have the attribute `mode` */
    TREES_MEMBERS,    /* sets: how many numbers, and these */
    TREES_LEAVES,
    TREES_LISTS,
    TREES_TARGETS,    /* of an entry of a list, or of a tree; left out: 0 */
    TREES_WEIGHT_IDS,
    TREES_OPERANDS
};

enum { TREES_LEQ, TREES_LT, TREES_GTE, TREES_GT, TREES_EQ, TREES_NEQ, TREES_MEMBER };
/* Which nodes send a missing value (NaN) to the left. */
enum { TREES_TRACK_NONE, TREES_TRACK_ALL, TREES_TRACK_SOME };
enum { TREES_SUM, TREES_MIN, TREES_MAX, TREES_AVERAGE };
#endif
