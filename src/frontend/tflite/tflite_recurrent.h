/* SPDX-License-Identifier: Apache-2.0 */
/* What layers with states share, SVDF, RNN and LSTM: data over steps, products with weights, and arithmetic in 16 bits
 * (tflite_op_recurrent.c). */
#ifndef LATHE_FRONTEND_TFLITE_TFLITE_RECURRENT_H
#define LATHE_FRONTEND_TFLITE_TFLITE_RECURRENT_H
#include "frontend/tflite/tflite_compose.h"

#define RECURRENT_MOST_STEPS 512 /* steps become nodes of the graph */
#define RECURRENT_TANH       4   /* of fused activations */

/* --- operand 0 over steps --- */

typedef struct recurrent_data {
    uint32_t rank; /* 2: a single step */
    bool time_major, backward;
    int64_t batch, steps, inputs;
} recurrent_data;

bool recurrent_extents(tflite_node *n, uint32_t i, uint32_t rank, int64_t *out);
bool recurrent_read(tflite_node *n, recurrent_data *d);
graph_value *recurrent_rows(tflite_node *n, const recurrent_data *d); /* of all steps */
/* What rows of `width` numbers, one for each of these, hold for the step that comes as number t. */
graph_value *recurrent_step(tflite_node *n, const recurrent_data *d, graph_value *all, int64_t width, int64_t t);
/* What the steps give, in the order in which they come, as the result. */
graph_value *recurrent_result(tflite_node *n, const recurrent_data *d, graph_value *const *given, int64_t width);

/* One result of two layers, one for each direction, or two; false where one failed. */
bool recurrent_both(tflite_node *n, graph_value *const *ways, bool merged);

/* --- arithmetic; numbers are in i32 --- */

graph_value *recurrent_i32(tflite_node *n, graph_value *v);
graph_value *recurrent_sum(tflite_node *n, graph_value *a, graph_value *b); /* of 16 bits, saturated */
graph_value *recurrent_product(tflite_node *n, graph_value *a, graph_value *b);
/* Rows times the transposed weights of operand i: floats, or sums of numbers with the zero point of x, of 16 bits in
 * i64, else in i32. */
graph_value *recurrent_times(tflite_node *n, graph_value *rows, uint32_t i, const tflite_scale *x);
/* The same of floats, by weights that are floats or bytes; from_zero_point: what becomes of floats there. */
graph_value *recurrent_floats(tflite_node *n, graph_value *rows, uint32_t i, bool from_zero_point);
/* LiteRT's curve of each number of 16 bits, a table. bits: before the point, of tanh; -1: logistic. */
graph_value *recurrent_curve(tflite_node *n, int bits);
graph_value *recurrent_in_curve(tflite_node *n, graph_value *table, graph_value *v);
/* A product times 2^-bits as a number of 16 bits, rounded once, halves away from 0. */
graph_value *recurrent_halved(tflite_node *n, graph_value *x, int bits);
#endif
