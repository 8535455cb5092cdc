/* SPDX-License-Identifier: Apache-2.0 */
/* The audio front ends of TensorFlow Lite Micro, operators that work against noise and loudness: spectral subtraction,
 * automatic gain (PCAN), the logarithm. The arithmetic is the kernels', in whole numbers that wrap around. */
#include "frontend/tflite/tflite_compose.h"

#include <math.h>

/* --- spectral subtraction --- */

/* A constant vector of u64: the option of even channels, and that of odd ones. */
static graph_value *alternating(tflite_node *n, const char *even, const char *odd, int64_t channels)
{
    int64_t of[2];
    if (!tflite_custom_int(n, even, 0, INT32_MAX, &of[0]) || !tflite_custom_int(n, odd, 0, INT32_MAX, &of[1]))
        return &n->im->nothing;
    uint64_t *data = arena_array(&n->c->mem, uint64_t, (size_t)channels);
    for (int64_t i = 0; i < channels; i++)
        data[i] = (uint64_t)of[i % 2];
    return tflite_const(n, tensor_dense(n->c, DT_U64, 1, &channels, data), "");
}

/* x, of u32, times k, of u64. */
static graph_value *part_of(tflite_node *n, graph_value *x, graph_value *k)
{
    return tflite_binary(n, "multiply", tflite_cast(n, x, DT_U64), k);
}

/* The noise is a slow mean of the data; what is left when it is taken away is at least a part of the data. */
bool tflite_op_signal_spectral_subtraction(tflite_node *n)
{
    int64_t channels, up, bits, clamps, least;
    if (!tflite_custom_int(n, "num_channels", 1, 1 << 16, &channels) ||
        !tflite_custom_int(n, "smoothing_bits", 0, 31, &up) ||
        !tflite_custom_int(n, "spectral_subtraction_bits", 0, 63, &bits) ||
        !tflite_custom_int(n, "clamping", 0, 1, &clamps) ||
        !tflite_custom_int(n, "min_signal_remaining", 0, INT32_MAX, &least))
        return false;
    graph_value *x = compose_vector(n, 0, DT_U32, channels, NULL);
    graph_value *new = alternating(n, "smoothing", "alternate_smoothing", channels);
    graph_value *old = alternating(n, "one_minus_smoothing", "alternate_one_minus_smoothing", channels);
    tflite_variable *noise = tflite_own_state(n, "noise", DT_U32, 1, &channels, 0);
    graph_value *scaled = compose_by(n, "left_shift", x, up);
    graph_value *mean = part_of(n, tflite_state_value(n, noise), old);
    mean = tflite_binary(n, "add", part_of(n, scaled, new), mean);
    mean = tflite_cast(n, compose_down(n, mean, bits), DT_U32);
    graph_value *below = tflite_binary(n, "minimum", mean, scaled), *now = clamps ? below : mean;
    tflite_set_state(n, noise, now);
    graph_value *rest = part_of(n, x, compose_number(n, DT_U64, least));
    rest = tflite_cast(n, compose_down(n, rest, bits), DT_U32);
    graph_value *y = compose_down(n, tflite_binary(n, "subtract", scaled, below), up);
    return tflite_result(n, 0, tflite_binary(n, "maximum", y, rest)) && tflite_result(n, 1, now);
}

/* --- PCAN: automatic gain --- */

#define PCAN_TABLE 125 /* numbers: a piece of a curve, of three, for each power of two */

/* A curve between powers of two, by pieces of second degree; the first three numbers have entries of their own. */
static graph_value *gain_of(tflite_node *n, graph_value *noise, graph_value *table)
{
    graph_value *power = tflite_cast(n, tflite_unary(n, "bit_length", noise), DT_I32);
    graph_value *zero = compose_number(n, DT_I32, 0);
    graph_value *is_small = compose_by(n, "less_equal", noise, 2), *part[3];
    graph_value *at = compose_by(n, "add", compose_by(n, "multiply", power, 4), -6);
    at = compose_chosen(n, is_small, tflite_cast(n, noise, DT_I32), at);
    for (int64_t k = 0; k < 3; k++)
        part[k] = tflite_cast(n, compose_entry(n, table, compose_by(n, "add", at, k)), DT_I32);
    graph_value *behind = tflite_binary(n, "subtract", power, compose_number(n, DT_I32, 11));
    graph_value *up = tflite_binary(n, "maximum", tflite_unary(n, "negative", behind), zero);
    graph_value *rest = tflite_binary(n, "left_shift", noise, tflite_cast(n, up, DT_U32));
    rest = tflite_binary(n, "right_shift", rest,
                         tflite_cast(n, tflite_binary(n, "maximum", behind, zero), DT_U32));
    rest = tflite_cast(n, compose_by(n, "bitwise_and", rest, 0x3ff), DT_I32);
    graph_value *y = compose_down(n, tflite_binary(n, "multiply", part[2], rest), 5);
    y = tflite_binary(n, "multiply", tflite_binary(n, "add", y, compose_by(n, "multiply", part[1], 32)), rest);
    y = tflite_binary(n, "add", compose_down(n, compose_by(n, "add", y, 1 << 14), 15), part[0]);
    y = tflite_cast(n, tflite_cast(n, compose_chosen(n, is_small, part[0], y), DT_I16), DT_I32);
    return tflite_cast(n, y, DT_U32);
}

/* The data times the gain, then x^2 / 4 of numbers below 2, x - 1 of others, of 12 bits behind the point to 6. */
bool tflite_op_signal_pcan(tflite_node *n)
{
    int64_t shift, channels;
    graph_value *x = compose_vector(n, 0, DT_U32, 0, &channels);
    if (n->failed || !tflite_custom_int(n, "snr_shift", 0, 63, &shift))
        return false;
    int64_t entries;
    graph_value *noise = compose_vector(n, 1, DT_U32, channels, NULL);
    graph_value *table = compose_vector(n, 2, DT_I16, 0, &entries);
    if (!n->failed && entries < PCAN_TABLE)
        return tflite_fail(n, DIAG_FORMAT, "its table of gains has %lld entries; %d are needed", (long long)entries,
                           PCAN_TABLE);
    x = tflite_binary(n, "multiply", tflite_cast(n, x, DT_U64), tflite_cast(n, gain_of(n, noise, table), DT_U64));
    x = tflite_cast(n, compose_down(n, x, shift), DT_U32);
    graph_value *square = compose_down(n, tflite_binary(n, "multiply", x, x), 20);
    graph_value *less_one = tflite_binary(n, "subtract", compose_down(n, x, 6), compose_number(n, DT_U32, 64));
    return tflite_result(n, 0, compose_chosen(n, compose_by(n, "less", x, 2 << 12), square, less_one));
}

/* --- logarithm --- */

#define LOG_PIECES 128

/* What log2(1 + x) is more than x, in 1/65536, at the ends of pieces of the same length. */
static graph_value *log_table(tflite_node *n)
{
    const int64_t count = LOG_PIECES + 1;
    int32_t *data = arena_array(&n->c->mem, int32_t, (size_t)count);
    for (int64_t i = 0; i < count; i++) {
        const double x = (double)i / LOG_PIECES;
        data[i] = (int32_t)floor(65536 * (log2(1 + x) - x) + 0.5);
    }
    return tflite_const(n, tensor_dense(n->c, DT_I32, 1, &count, data), "log_table");
}

/* log2 of x, above 0, in 1/65536: its first bit, and a straight piece of the table for those behind it. */
static graph_value *log2_of(tflite_node *n, graph_value *x)
{
    graph_value *power = tflite_unary(n, "bit_length", tflite_binary(n, "maximum", x, compose_number(n, DT_U32, 1)));
    power = compose_by(n, "add", power, -1);
    graph_value *first = tflite_binary(n, "left_shift", compose_number(n, DT_U32, 1), power);
    graph_value *rest = tflite_binary(n, "subtract", x, first);
    graph_value *behind = tflite_binary(n, "maximum", power, compose_number(n, DT_U32, 16));
    graph_value *up = tflite_binary(n, "subtract", compose_number(n, DT_U32, 16),
                                    tflite_binary(n, "minimum", power, compose_number(n, DT_U32, 16)));
    rest = tflite_binary(n, "right_shift", tflite_binary(n, "left_shift", rest, up), compose_by(n, "add", behind, -16));
    rest = tflite_cast(n, compose_by(n, "bitwise_and", rest, 0xffff), DT_I32);
    graph_value *piece = compose_down(n, rest, 9), *table = log_table(n), *from = compose_entry(n, table, piece);
    graph_value *rise = tflite_binary(n, "subtract", compose_entry(n, table, compose_by(n, "add", piece, 1)), from);
    rise = compose_down(n, tflite_binary(n, "multiply", rise, compose_by(n, "bitwise_and", rest, 0x1ff)), 16);
    graph_value *y = tflite_binary(n, "add", tflite_binary(n, "add", rest, from), rise);
    return tflite_binary(n, "add", compose_by(n, "multiply", power, 1 << 16), tflite_cast(n, y, DT_U32));
}

/* The natural logarithm times output_scale. */
bool tflite_op_signal_log(tflite_node *n)
{
    int64_t bits, scale;
    graph_value *x = compose_vector(n, 0, DT_U32, 0, NULL);
    if (n->failed || !tflite_custom_int(n, "input_correction_bits", 0, 31, &bits) ||
        !tflite_custom_int(n, "output_scale", 0, INT32_MAX, &scale))
        return false;
    x = tflite_binary(n, "left_shift", x, compose_number(n, DT_U32, bits));
    graph_value *y = compose_by(n, "multiply", tflite_cast(n, log2_of(n, x), DT_U64), 45426);
    y = tflite_cast(n, compose_down(n, compose_by(n, "add", y, 1 << 15), 16), DT_U32);
    y = compose_down(n, compose_by(n, "add", compose_by(n, "multiply", y, scale), 1 << 15), 16);
    y = tflite_binary(n, "minimum", y, compose_number(n, DT_U32, INT16_MAX));
    y = compose_chosen(n, compose_by(n, "greater", x, 1), y, compose_number(n, DT_U32, 0));
    return tflite_result(n, 0, tflite_cast(n, y, DT_I16));
}
