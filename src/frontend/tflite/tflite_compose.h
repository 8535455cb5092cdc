/* SPDX-License-Identifier: Apache-2.0 */
/* What importers share that compose many operators: vectors and rows as operands, arithmetic with constants
 * (tflite_compose.c). */
#ifndef LATHE_FRONTEND_TFLITE_TFLITE_COMPOSE_H
#define LATHE_FRONTEND_TFLITE_TFLITE_COMPOSE_H
#include "frontend/tflite/tflite_import.h"

/* --- operands; both fail the node where it has another --- */

/* Operand i: a vector of that type, of `length` numbers, or of one at least (0). out_length may be NULL. */
graph_value *compose_vector(tflite_node *n, uint32_t i, dtype dt, int64_t length, int64_t *out_length);
/* Operand 0 as [rows, length], the rows of its last axis. */
graph_value *compose_rows(tflite_node *n, int64_t *out_rows, int64_t *out_length);
/* y with the dimensions of operand 0 less the last `drop`, and `more` behind them. */
graph_value *compose_with_rows(tflite_node *n, graph_value *y, uint32_t drop, uint32_t n_more, const int64_t *more);
bool compose_last_extent(tflite_node *n, const graph_value *x, int64_t *out);

/* --- building --- */

graph_value *compose_number(tflite_node *n, dtype dt, int64_t v); /* a constant of rank 0 */
graph_value *compose_by(tflite_node *n, const char *op, graph_value *x, int64_t v); /* x and a number of its type */
graph_value *compose_down(tflite_node *n, graph_value *x, int64_t bits);            /* shifted to the right */
graph_value *compose_chosen(tflite_node *n, graph_value *condition, graph_value *x, graph_value *y);
graph_value *compose_entry(tflite_node *n, graph_value *table, graph_value *at);
graph_value *compose_reduced(tflite_node *n, const char *op, graph_value *x, int64_t axis, bool keeps);
graph_value *compose_positions(tflite_node *n, int64_t count); /* 0, 1, 2, ... of i32; too many: the node fails */

/* --- fixed point, on numbers of 32 bits in i64: see tflite_fixed.h --- */

graph_value *compose_product(tflite_node *n, graph_value *a, graph_value *b);
graph_value *compose_saturated_left(tflite_node *n, graph_value *x, int bits);
graph_value *compose_divided(tflite_node *n, graph_value *x, int bits); /* bits above 0 */
/* x by multiplier * 2^(exponent - 31), rounded behind the product and behind the shift, halves away from 0 there. */
graph_value *compose_scaled(tflite_node *n, graph_value *x, graph_value *multiplier, graph_value *exponent);
/* x above 0, shifted to the left until bit 30 is set, and by how many. */
graph_value *compose_normalized(tflite_node *n, graph_value *x, graph_value **out_bits);

/* 1 / sqrt(x), x in i64, as multiplier * 2^(exponent - 31), both in i64. x is below 2^29, or 2^31 if it is wide
 * (tflite_op_norm.c). */
typedef struct compose_root {
    graph_value *multiplier, *exponent;
} compose_root;
compose_root compose_inverse_root(tflite_node *n, graph_value *x, bool wide);

/* --- rows --- */

/* Elements from `from` to `to` of the axis. */
graph_value *compose_slice(tflite_node *n, graph_value *x, int64_t axis, int64_t from, int64_t to);
graph_value *compose_joined(tflite_node *n, graph_value *a, graph_value *b, int64_t axis);
/* What an operator with one attribute and several results gives, four at most; false: the node fails. */
bool compose_several(tflite_node *n, const char *op, uint32_t n_in, graph_value *const *in, const attr *a,
                     uint32_t n_out, graph_value **out);
/* The k largest, or least, of the last axis in order, of equal ones the first: numbers, and places in i64. */
bool compose_top_k(tflite_node *n, graph_value *x, int64_t k, bool largest, graph_value *out[2]);
#endif
