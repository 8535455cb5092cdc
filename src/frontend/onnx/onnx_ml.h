/* SPDX-License-Identifier: Apache-2.0 */
/* What the importers of ai.onnx.ml share: lists of numbers from attributes, labels, and what is done with scores.
 * The arithmetic is onnxruntime's with one thread; docs/reference/ml-operators.md lists where ONNX's text says
 * something else. */
#ifndef LATHE_FRONTEND_ONNX_ONNX_ML_H
#define LATHE_FRONTEND_ONNX_ONNX_ML_H
#include "frontend/onnx/onnx_import.h"

/* A list of floats, integers or strings of the node; n 0: it has none. */
typedef struct ml_floats {
    uint32_t n;
    const double *v;
} ml_floats;
typedef struct ml_ints {
    uint32_t n;
    const int64_t *v;
} ml_ints;
typedef struct ml_strings {
    uint32_t n;
    const char *const *v;
} ml_strings;
ml_floats ml_attr_floats(onnx_node *n, const char *name);
ml_ints ml_attr_ints(onnx_node *n, const char *name);
ml_strings ml_attr_strings(onnx_node *n, const char *name);

/* Constants: values of type dt (f32, f64), row by row. */
graph_value *ml_matrix(onnx_node *n, dtype dt, uint32_t rank, const int64_t *dims, const double *v);
graph_value *ml_vector(onnx_node *n, dtype dt, uint32_t count, const double *v);

/* What classes are called: integers, or strings; neither: 0, 1, 2... */
typedef struct ml_labels {
    uint32_t n; /* 0: the node names none */
    const int64_t *ints;
    const char *const *strings;
} ml_labels;
ml_labels ml_attr_labels(onnx_node *n, const char *ints, const char *strings);
/* Result i of the node: the label of each class number. A label that is a string stays a number, with a table. */
bool ml_result_labels(onnx_node *n, uint32_t i, graph_value *classes, const ml_labels *l);

typedef enum ml_post { ML_NONE, ML_SOFTMAX, ML_LOGISTIC, ML_SOFTMAX_ZERO, ML_PROBIT } ml_post;
ml_post ml_attr_post(onnx_node *n);
graph_value *ml_logistic(onnx_node *n, graph_value *x);
graph_value *ml_probit(onnx_node *n, graph_value *x);
graph_value *ml_post_transform(onnx_node *n, graph_value *scores, ml_post post); /* of two scores a row, or more */

/* For each element of x the place of the first of `count` keys that equals it, or count: keys that are strings, or, of
 * strings NULL, integers. */
graph_value *ml_find(onnx_node *n, graph_value *x, uint32_t count, const int64_t *ints, const char *const *strings);
/* x as f32 rows: [f] is one row. `width`: how long a row is. */
graph_value *ml_rows(onnx_node *n, graph_value *x, dtype dt, int64_t *width);
/* Rows of a table, by number. */
graph_value *ml_take(onnx_node *n, graph_value *table, graph_value *at);
/* The number of each row's largest score; of equal ones the first. */
graph_value *ml_argmax(onnx_node *n, graph_value *scores);
/* Column k as [rows, 1]. */
graph_value *ml_column(onnx_node *n, graph_value *x, int64_t k);
#endif
