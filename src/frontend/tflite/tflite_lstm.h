/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM layers with a matrix for each gate, for the operators that have them (tflite_op_lstm.c). */
#ifndef LATHE_FRONTEND_TFLITE_TFLITE_LSTM_H
#define LATHE_FRONTEND_TFLITE_TFLITE_LSTM_H
#include "frontend/tflite/tflite_recurrent.h"

enum { LSTM_GATES = 4 };

typedef struct lstm_options {
    float cell_clip, projection_clip;
    int64_t activation;
    bool from_zero_point; /* floats that become bytes do so with a zero point */
} lstm_options;

/* rank: of the data; 2: a single step. */
bool lstm_layer(tflite_node *n, uint32_t rank, bool time_major, const lstm_options *o);
#endif
