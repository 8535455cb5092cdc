/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of tree_ensemble. Nodes stand in preorder, a tree behind another, without the leaves; leaves are numbered
 * from left to right. So a node needs no children: its left subtree follows it, the right one follows that, and how
 * many nodes the left one has is all that is stored. A subtree without nodes is a leaf, and a tree has one leaf more
 * than nodes.
 *
 * A leaf adds weights to targets. Without `lists` it adds one, to the target of its tree; with them leaf number k has
 * the entries lists[k] to lists[k + 1], each a target and a weight. `leaves` and `weight_ids` say which leaf and which
 * weight is meant where equal ones are stored once.
 *
 * Other forms have the same operands, without sets; those that they do not need are left out.
 * tree_branches: the walk is code, nested ifs. So its tables are attributes of the operands' names. Only lists of
 * several entries are read when it runs: where there are any, lists, targets and weights are operands as well.
 * tree_complete: each of `trees` trees is filled up to `depth` levels. The first level of all trees comes first, then
 * the second, and so on, so the children of node i of a level are 2i and 2i + 1 of the next level, and after the last
 * one i is the leaf. A walk takes as many steps for each row, and `rows` of them go side by side. There are neither
 * roots nor left subtrees. dense: a list has a weight for each target, 0 where it says nothing, and there are no
 * lists. levels: all nodes of a level of a tree are alike, and stand once: entry level * trees + tree.
 * tree_links: an entry of features, a word, has the column in its low 32 - 2 * link_bits bits, above them a link for
 * the right, above that one for the left. A link is how many nodes further the child stands, or, if its highest bit is
 * set, a list, or without lists an entry of weights. There are neither left subtrees nor leaves.
 * checked: all links have been looked through, so a walk ends by itself after `depth` steps at the latest.
 * tree_sweep: the operands of tree_ensemble, without modes and sets, and two more. `rows` rows, in vectors of `lanes`,
 * are asked all nodes; rows that are left walk over the tables. dense: as of tree_complete. tree_complete with `lanes`
 * asks all nodes of rows side by side, too. */
#ifndef LATHE_GRAPH_OP_TREES_H
#define LATHE_GRAPH_OP_TREES_H
#include "graph/graph.h"

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
    TREES_OPERANDS,
    TREES_FIRSTS = TREES_OPERANDS, /* [nodes]: trees_base() and the first leaf of the node in its tree */
    TREES_RIGHTS,                  /* [nodes]: the same of its right subtree */
    TREES_MOST_OPERANDS
};

enum { TREES_LEQ, TREES_LT, TREES_GTE, TREES_GT, TREES_EQ, TREES_NEQ, TREES_MEMBER };
/* Which nodes send a missing value (NaN) to the left. */
enum { TREES_TRACK_NONE, TREES_TRACK_ALL, TREES_TRACK_SOME };
enum { TREES_SUM, TREES_MIN, TREES_MAX, TREES_AVERAGE };

/* Of nested ifs: clang takes 256 brackets, and a tree is not alone in a function. */
#define TREES_MOST_BRANCHES 64
#define TREES_MOST_LEVELS   12 /* of complete trees */
#define TREES_MOST_ROWS     64 /* side by side */
#define TREES_MOST_LINK     15 /* bits of a link */
#define TREES_MOST_SELECT   5  /* levels of complete trees whose nodes are all asked */

#define TREES_BASE 0x800000 /* more leaves no tree has */

/* The float that a number is added to, so that its low bits are that number. */
static inline double trees_base(dtype dt)
{
    return dt == DT_F64 ? 0x1p52 : TREES_BASE;
}
const char *trees_table_name(uint32_t i);
/* A table whose numbers are known: of a constant operand, or of an attribute; NULL: neither. */
const tensor_data *trees_table(const graph_node *n, uint32_t i);
bool trees_are_dense(const graph_node *n);
bool trees_have_levels(const graph_node *n);
bool trees_have_lists(const graph_node *n); /* a leaf adds a list, dense or not */
bool trees_have_long_lists(const graph_node *n); /* of several entries, as far as that is known */
int64_t trees_count(const graph_node *n); /* where that is known */
#endif
