/* SPDX-License-Identifier: Apache-2.0 */
/* What importers of operators on signals share: vectors and rows as operands, arithmetic with constants, states of one
 * operator (tflite_signal.c). */
#ifndef LATHE_FRONTEND_TFLITE_TFLITE_SIGNAL_H
#define LATHE_FRONTEND_TFLITE_TFLITE_SIGNAL_H
#include "frontend/tflite/tflite_import.h"

/* --- operands; both fail the node where it has another --- */

/* Operand i: a vector of that type, of `length` numbers, or of one at least (0). out_length may be NULL. */
graph_value *signal_vector(tflite_node *n, uint32_t i, dtype dt, int64_t length, int64_t *out_length);
/* Operand 0 as [rows, length], the rows of its last axis. */
graph_value *signal_rows(tflite_node *n, int64_t *out_rows, int64_t *out_length);
/* y with the dimensions of operand 0 less the last `drop`, and `more` behind them. */
graph_value *signal_with_rows(tflite_node *n, graph_value *y, uint32_t drop, uint32_t n_more, const int64_t *more);
bool signal_last_extent(tflite_node *n, const graph_value *x, int64_t *out);

/* --- building --- */

graph_value *signal_number(tflite_node *n, dtype dt, int64_t v); /* a constant of rank 0 */
graph_value *signal_by(tflite_node *n, const char *op, graph_value *x, int64_t v); /* x and a number of its type */
graph_value *signal_down(tflite_node *n, graph_value *x, int64_t bits);            /* shifted to the right */
graph_value *signal_chosen(tflite_node *n, graph_value *condition, graph_value *x, graph_value *y);
graph_value *signal_entry(tflite_node *n, graph_value *table, graph_value *at);
graph_value *signal_reduced(tflite_node *n, const char *op, graph_value *x, int64_t axis, bool keeps);
graph_value *signal_positions(tflite_node *n, int64_t count); /* 0, 1, 2, ... of i32 */
/* Elements from `from` to `to` of the axis. */
graph_value *signal_slice(tflite_node *n, graph_value *x, int64_t axis, int64_t from, int64_t to);
graph_value *signal_joined(tflite_node *n, graph_value *a, graph_value *b, int64_t axis);

/* --- states of the operator; `first`: what all elements begin with --- */

tflite_variable *signal_state(tflite_node *n, const char *name, dtype dt, uint32_t rank, const int64_t *dims,
                              int64_t first);
graph_value *signal_state_value(tflite_node *n, const tflite_variable *v);
void signal_set_state(tflite_node *n, tflite_variable *v, graph_value *x);
#endif
