/* SPDX-License-Identifier: Apache-2.0 */
/* Forests of ai.onnx.ml: read from the attributes of the three operators into nodes (onnx_op_tree.c), laid out as the
 * tables of tree_ensemble (onnx_trees.c). */
#ifndef LATHE_FRONTEND_ONNX_ONNX_TREES_H
#define LATHE_FRONTEND_ONNX_ONNX_TREES_H
#include "frontend/onnx/onnx_ml.h"

typedef struct tree_weight {
    int64_t target;
    double value;
} tree_weight;

/* A branch, or a leaf. */
typedef struct tree_node {
    bool leaf;
    int64_t mode, feature; /* TREES_LEQ and so on; column of the row */
    double threshold;      /* of TREES_MEMBER: where its set begins in forest.members */
    bool tracks;           /* a missing value goes to yes */
    uint32_t yes, no;      /* children, by number in forest.nodes */
    uint32_t first, count; /* of a leaf: its weights in forest.weights */
} tree_node;

typedef struct forest {
    dtype dt; /* of thresholds, weights and sums: f32 or f64 */
    const tree_node *nodes;
    uint32_t n_nodes;
    const uint32_t *roots; /* a node for each tree */
    uint32_t n_trees;
    const tree_weight *weights;
    uint32_t n_weights;
    const double *members; /* sets: how many numbers, and these */
    uint32_t n_members;
    int64_t targets;
    bool first_only; /* of a leaf the first weight alone counts */
} forest;

/* [rows, targets]: sums, or what TREES_MIN and TREES_MAX say. ones: with 1 for each weight, which tells by TREES_MAX
 * what targets a row's leaves have. */
graph_value *forest_scores(onnx_node *n, const forest *f, graph_value *x, int64_t aggregate, bool ones);
/* Whether all leaves of one of the trees have the target: then every row has it. */
bool forest_always(onnx_node *n, const forest *f, int64_t target);
/* Whether a leaf has the target. */
bool forest_ever(const forest *f, int64_t target);
#endif
