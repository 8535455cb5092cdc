/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM: one step, as a layer like those over sequences, or with all weights in one matrix. The latter, of bytes, are
 * LiteRT's alone. */
#include "frontend/tflite/tflite_fixed.h"
#include "frontend/tflite/tflite_lstm.h"

#include <math.h>

enum { CELL_X, CELL_H, CELL_W, CELL_BIAS, CELL_C, CELL_OPERANDS };

typedef struct cell {
    int64_t cells;
    graph_value *both, *sums; /* data beside the old output, and what the weights make of them */
    graph_value *given, *now; /* the new output and the new state */
} cell;

/* Rows of the weights are the input gate, the new value, the forget gate and the output gate. */
static graph_value *cell_gate(tflite_node *n, const cell *l, graph_value *sums, int64_t i)
{
    return compose_slice(n, sums, 1, i * l->cells, (i + 1) * l->cells);
}

static void cell_of_floats(tflite_node *n, cell *l)
{
    graph_value *g[LSTM_GATES];
    l->sums = tflite_binary(n, "add", recurrent_times(n, l->both, CELL_W, NULL), tflite_in(n, CELL_BIAS));
    for (int64_t i = 0; i < LSTM_GATES; i++)
        g[i] = tflite_unary(n, i == 1 ? "tanh" : "sigmoid", cell_gate(n, l, l->sums, i));
    graph_value *kept = tflite_binary(n, "multiply", g[2], tflite_in(n, CELL_C));
    l->now = tflite_binary(n, "add", tflite_binary(n, "multiply", g[0], g[1]), kept);
    l->given = tflite_binary(n, "multiply", g[3], tflite_unary(n, "tanh", l->now));
}

/* The product of two numbers of Q0.15, with halves up. */
static graph_value *high_product(tflite_node *n, graph_value *a, graph_value *b)
{
    graph_value *p = tflite_binary(n, "add", recurrent_product(n, a, b), tflite_i32(n, 1 << 14));
    return tflite_binary(n, "right_shift", p, tflite_i32(n, 15));
}

/* Sums times real as numbers of 16 bits, with halves up behind the product and behind the shift: for this layer the
 * reference kernels of LiteRT take the product of matrices of the fast ones. */
static graph_value *halves_up(tflite_node *n, graph_value *sums, double real)
{
    const fixed_scale f = fixed_of(real);
    const int right = f.shift < 0 ? -f.shift : 0;
    graph_value *v = tflite_rescaled(n, sums, ldexp((double)f.multiplier, f.shift + right - 31), 0x1p31, NULL);
    if (right > 0)
        v = tflite_binary(n, "right_shift", tflite_binary(n, "add", v, tflite_i32(n, INT64_C(1) << (right - 1))),
                          tflite_i32(n, right));
    return tflite_clipped(n, v, INT16_MIN, INT16_MAX, DT_I16);
}

/* Data and outputs are u8 with the scale 1/128 and the zero point 128, the state is i16 with the scale 2^-11. */
static bool cell_of_numbers(tflite_node *n, cell *l)
{
    tflite_scale x, h, w, bias, c;
    if (!tflite_read_scale(n, CELL_X, &x) || !tflite_read_scale(n, CELL_H, &h) || !tflite_read_scale(n, CELL_W, &w) ||
        !tflite_read_scale(n, CELL_BIAS, &bias) || !tflite_read_scale(n, CELL_C, &c))
        return false;
    if (x.zero != 128 || h.zero != 128 || x.scale != 0x1p-7f || h.scale != 0x1p-7f || c.scale != 0x1p-11f)
        return tflite_fail(n, DIAG_FORMAT, "its data and its output must have the scale 1/128 and the zero point 128, "
                                           "and its state the scale 1/2048");
    const attr attrs[2] = {attr_int(n->c, "transpose_b", 1), attr_dtype(n->c, "out_dtype", DT_I32)};
    graph_value *in[4] = {l->both, tflite_in(n, CELL_W), tflite_zero(n, &x), tflite_zero(n, &w)}, *g[LSTM_GATES];
    graph_value *curves[2] = {recurrent_curve(n, -1), recurrent_curve(n, 3)};
    graph_value *sums = tflite_binary(n, "add", tflite_emit(n, "qnn.matmul", 4, in, 2, attrs), tflite_in(n, CELL_BIAS));
    l->sums = halves_up(n, sums, (double)(4096 * bias.scale));
    sums = recurrent_i32(n, l->sums);
    for (int64_t i = 0; i < LSTM_GATES; i++)
        g[i] = recurrent_in_curve(n, curves[i == 1], cell_gate(n, l, sums, i));
    graph_value *added = recurrent_halved(n, high_product(n, g[0], g[1]), 4);
    graph_value *now = recurrent_sum(n, added, high_product(n, g[2], tflite_in(n, CELL_C)));
    l->now = tflite_cast(n, now, DT_I16);
    graph_value *given = recurrent_in_curve(n, recurrent_curve(n, 4), now);
    given = recurrent_halved(n, high_product(n, g[3], given), 8);
    given = tflite_binary(n, "add", tflite_clipped(n, given, INT8_MIN, INT8_MAX, DT_I32), tflite_i32(n, 128));
    l->given = tflite_cast(n, given, DT_U8);
    return !n->failed;
}

static bool check_cell(tflite_node *n, cell *l, bool is_int)
{
    static const dtype numbers[CELL_OPERANDS] = {DT_U8, DT_U8, DT_U8, DT_I32, DT_I16};
    int64_t x[2], h[2], w[2], c[2];
    for (uint32_t i = 0; i < CELL_OPERANDS; i++)
        if (!tflite_operand(n, i) || tflite_operand(n, i)->type.dt != (is_int ? numbers[i] : DT_F32))
            return tflite_fail(n, DIAG_UNSUPPORTED, "it must have %d operands, of f32, or data, output and weights of "
                               "u8, biases of i32 and a state of i16", CELL_OPERANDS);
    if (!recurrent_extents(n, CELL_X, 2, x) || !recurrent_extents(n, CELL_H, 2, h) ||
        !recurrent_extents(n, CELL_W, 2, w) || !recurrent_extents(n, CELL_C, 2, c))
        return false;
    l->cells = h[1];
    return (h[0] == x[0] && c[0] == x[0] && c[1] == h[1] && w[0] == LSTM_GATES * h[1] && w[1] == x[1] + h[1]) ||
           tflite_fail(n, DIAG_TYPE, "the shapes of its operands do not fit each other");
}

static bool run_cell(tflite_node *n)
{
    const bool is_int = tflite_is_int(n, CELL_X);
    cell l = {0};
    if (!check_cell(n, &l, is_int))
        return false;
    graph_value *both[2] = {tflite_in(n, CELL_X), tflite_in(n, CELL_H)};
    l.both = compose_joined(n, both[0], both[1], 1);
    if (!is_int)
        cell_of_floats(n, &l);
    else if (!cell_of_numbers(n, &l))
        return false;
    graph_value *results[4] = {l.given, l.now, l.both, l.sums};
    for (uint32_t i = 0; i < n->n_out && i < 4 && !n->failed; i++)
        (void)tflite_result(n, i, results[i]);
    const uint32_t states[2] = {CELL_H, CELL_C};
    for (uint32_t i = 0; i < 2 && !n->failed; i++)
        if (tflite_operand(n, states[i])->t->is_variable)
            (void)tflite_write_state(n, states[i], results[i]);
    return !n->failed;
}

bool tflite_op_lstm(tflite_node *n)
{
    const tfl_lstm_options *o = n->options;
    if (o->kernel_type == 0 && tflite_is_int(n, 0))
        return tflite_fail(n, DIAG_UNSUPPORTED, "an LSTM of u8 with a matrix for each gate is not supported yet");
    if (o->kernel_type == 0)
        return lstm_layer(n, 2, true, &(lstm_options){o->cell_clip, o->proj_clip, o->fused_activation_function,
                                                      o->asymmetric_quantize_inputs});
    if (o->kernel_type != 1 || o->fused_activation_function != RECURRENT_TANH || o->cell_clip != 0 || o->proj_clip != 0)
        return tflite_fail(n, DIAG_UNSUPPORTED, "an LSTM with one matrix of weights is supported only with the "
                           "activation tanh, and without clipping");
    return run_cell(n);
}
