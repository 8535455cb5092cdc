/* SPDX-License-Identifier: Apache-2.0 */
/* What the forms of an ensemble of trees share (graph/op/trees.h): how a node decides, what a leaf adds, how the sums
 * of a row begin and end. trees.c walks over ranges of nodes, tree_forms.c has the other forms. */
#ifndef LATHE_TE_OP_TREES_H
#define LATHE_TE_OP_TREES_H
#include "graph/op/trees.h"
#include "te/op/loops.h"

typedef struct walk {
    te_graph *g;
    compiler *c;
    const graph_node *n;
    const tir_buffer *const *in; /* by TREES_...; NULL: left out */
    const tir_buffer *out;
    const tir_buffer *at, *end, *leaf; /* i32: where the walk is; of a range of nodes its end and its first leaf */
    const tir_buffer *member;          /* i32: whether a set has been found to hold the value */
    const tir_buffer *sum;             /* of one target; NULL: sums stand in the result */
    tir_expr_ref row, tree;
    tir_expr_ref lane; /* of the row, in `sum` */
} walk;

/* What a node says of itself, each an expression or known when the code is made. */
typedef struct walk_node {
    tir_expr_ref threshold;
    tir_expr_ref mode;  /* i32; NULL: fixed_mode */
    tir_expr_ref tracks; /* bool: whether NaN goes left; NULL: the attribute says it of all nodes */
    int64_t fixed_mode;
} walk_node;

static inline tir_expr_ref walk_i32(const walk *v, int64_t k)
{
    return tir_int(v->c, DT_I32, k);
}

/* An entry of a table; of a table of numbers, which may be narrow, as i32. */
tir_expr_ref walk_load(const walk *v, uint32_t table, tir_expr_ref i);
tir_expr_ref walk_entry(const walk *v, uint32_t table, tir_expr_ref i);
/* Whether the walk goes left. NaN compares as C does, and goes left as well where a node tracks missing values. */
tir_expr_ref walk_goes_left(const walk *v, tir_expr_ref x, walk_node at);
/* x compared with a threshold as a mode of nodes says that is no TREES_MEMBER. */
tir_expr_ref walk_compare(const walk *v, tir_expr_ref x, tir_expr_ref threshold, int64_t mode);
/* At most `depth` steps, while the condition holds. */
tir_stmt *walk_down(const walk *v, tir_expr_ref cond, tir_stmt *step);
/* The node number `at`, and the column of its feature, by the tables. */
walk_node walk_node_of(const walk *v, tir_expr_ref at, tir_expr_ref feature);
tir_expr_ref walk_column(const walk *v, tir_expr_ref feature);
/* Adds the weight w to a target, all weights of a list, or what leaf number `leaf` of the tree says. */
tir_stmt *walk_add_weight(const walk *v, tir_expr_ref to, tir_expr_ref w);
tir_stmt *walk_add_list(const walk *v, tir_expr_ref list);
tir_stmt *walk_add_leaf(const walk *v, tir_expr_ref leaf);
/* Entry `number` of the weights, or of the table that says which is meant. */
tir_expr_ref walk_weight(const walk *v, tir_expr_ref number);
/* The sums of a row before the first tree and behind the last; NULL: nothing is to be done. */
tir_stmt *walk_begin_row(const walk *v);
tir_stmt *walk_end_row(const walk *v);
tir_expr_ref walk_ended(const walk *v, tir_expr_ref sum); /* the result that a sum of all trees makes */
/* begin, all trees, end; `sum` is allocated around them. */
tir_stmt *walk_row(const walk *v, tir_stmt *trees);
tir_expr_ref walk_trees(const walk *v); /* how many there are, i64 */
/* `count` rows from `first` on, by the tables, one by one. */
tir_stmt *walk_rows(const walk *v, tir_expr_ref first, tir_expr_ref count);
/* The stage that the operator is, of all operands that a form may have. */
bool walk_extern(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out, te_build_fn fn);
/* Complete trees, or trees without sets, for a block of rows whose lanes are vectors: tree_vectors.c. */
tir_stmt *walk_vectors(const walk *v, int64_t rows, tir_expr_ref first);
#endif
