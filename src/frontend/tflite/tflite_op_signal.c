/* SPDX-License-Identifier: Apache-2.0 */
/* The audio front ends of TensorFlow Lite Micro, operators without memory: windows, spectra, banks of filters. All of
 * it is in integers, which wrap around and are cut off where the kernels' do. And LiteRT's transform of floats, with
 * what makes real numbers of its results. */
#include "frontend/tflite/tflite_compose.h"
#include "graph/op/fft.h"

#include <string.h>

/* Each frame of the data times the window. */
bool tflite_op_signal_window(tflite_node *n)
{
    int64_t shift, last, length, rows;
    graph_value *x = compose_rows(n, &rows, &last), *weights = compose_vector(n, 1, DT_I16, 0, &length);
    if (n->failed || !tflite_custom_int(n, "shift", 0, 31, &shift))
        return false;
    if (rows * last % length != 0)
        return tflite_fail(n, DIAG_TYPE, "%lld samples are no whole frames of %lld", (long long)(rows * last),
                           (long long)length);
    if (last != length)
        x = tflite_reshape(n, x, 2, (int64_t[]){rows * last / length, length});
    x = tflite_binary(n, "multiply", tflite_cast(n, x, DT_I32), tflite_cast(n, weights, DT_I32));
    x = tflite_clipped(n, compose_down(n, x, shift), INT16_MIN, INT16_MAX, DT_I16);
    return tflite_result(n, 0, compose_with_rows(n, x, 1, 1, &last));
}

/* The largest number without its sign, as the kernel finds it: -32768 has no counterpart, so that it forgets what
 * stood before it. Numbers below 0 that rise from there on are taken with their sign each, and do not count. */
static graph_value *largest(tflite_node *n, graph_value *x, int64_t length)
{
    graph_value *i = compose_positions(n, length), *low = compose_by(n, "equal", x, INT16_MIN);
    graph_value *last = compose_reduced(n, "max", compose_chosen(n, low, i, compose_number(n, DT_I32, -1)), 0, true);
    graph_value *before = compose_slice(n, x, 0, 0, 1);
    if (length > 1)
        before = compose_joined(n, before, compose_slice(n, x, 0, 0, length - 1), 0);
    graph_value *falls = tflite_binary(n, "greater", i, compose_by(n, "add", last, 1));
    falls = tflite_binary(n, "logical_and", falls, tflite_binary(n, "less_equal", x, before));
    graph_value *stops = tflite_binary(n, "logical_or", falls, compose_by(n, "greater_equal", x, 0));
    graph_value *behind = tflite_binary(n, "greater", i, last);
    stops = tflite_binary(n, "logical_and", stops, behind);
    graph_value *none = compose_number(n, DT_I32, length);
    graph_value *first = compose_reduced(n, "min", compose_chosen(n, stops, i, none), 0, true);
    graph_value *counts = tflite_binary(n, "logical_or", tflite_binary(n, "greater_equal", i, first),
                                        compose_by(n, "less", last, 0));
    counts = tflite_binary(n, "logical_and", counts, behind);
    graph_value *sizes = compose_chosen(n, counts, tflite_unary(n, "abs", x), compose_number(n, DT_I32, INT16_MIN));
    return compose_reduced(n, "max", sizes, 0, true);
}

/* Shifts the data so far up that the largest number fills its bits; tells how far. */
bool tflite_op_signal_fft_auto_scale(tflite_node *n)
{
    int64_t length;
    graph_value *x = tflite_cast(n, compose_vector(n, 0, DT_I16, 0, &length), DT_I32);
    if (n->failed)
        return false;
    graph_value *most = largest(n, x, length);
    graph_value *bits = tflite_unary(n, "bit_length", most);
    bits = tflite_binary(n, "subtract", compose_number(n, DT_I32, 15), bits);
    bits = compose_chosen(n, compose_by(n, "greater", most, 0), bits, compose_number(n, DT_I32, 0));
    graph_value *factor = tflite_binary(n, "left_shift", compose_number(n, DT_I32, 1), bits);
    return tflite_result(n, 0, tflite_cast(n, tflite_binary(n, "multiply", x, factor), DT_I16)) &&
           tflite_result(n, 1, tflite_reshape(n, bits, 0, NULL));
}

/* Squares of the real and the imaginary part. The kernel writes those from start_index on, and leaves the others. */
bool tflite_op_signal_energy(tflite_node *n)
{
    int64_t length, start, end;
    graph_value *x = compose_vector(n, 0, DT_I16, 0, &length);
    if (n->failed || !tflite_custom_int(n, "end_index", 0, length / 2, &end) ||
        !tflite_custom_int(n, "start_index", 0, end, &start))
        return false;
    if (length % 2 != 0)
        return tflite_fail(n, DIAG_TYPE, "its data must be pairs of real and imaginary parts");
    x = tflite_cast(n, tflite_reshape(n, x, 2, (int64_t[]){length / 2, 2}), DT_I32);
    x = compose_reduced(n, "sum", tflite_cast(n, tflite_binary(n, "multiply", x, x), DT_U32), 1, false);
    if (start == 0 && end == length / 2)
        return tflite_result(n, 0, x);
    graph_value *i = compose_positions(n, length / 2), *is_in = compose_by(n, "less", i, end);
    is_in = tflite_binary(n, "logical_and", compose_by(n, "greater_equal", i, start), is_in);
    return tflite_result(n, 0, compose_chosen(n, is_in, x, compose_number(n, DT_U32, 0)));
}

bool tflite_op_signal_filter_bank(tflite_node *n)
{
    int64_t channels, weights;
    graph_value *in[6] = {compose_vector(n, 0, DT_U32, 0, NULL), compose_vector(n, 1, DT_I16, 0, &weights)};
    if (n->failed || !tflite_custom_int(n, "num_channels", 1, INT16_MAX, &channels))
        return false;
    in[2] = compose_vector(n, 2, DT_I16, weights, NULL);
    for (uint32_t i = 3; i < 6; i++)
        in[i] = compose_vector(n, i, DT_I16, channels + 1, NULL);
    return tflite_result(n, 0, tflite_emit(n, "filter_bank", 6, in, 0, NULL));
}

bool tflite_op_signal_square_root(tflite_node *n)
{
    graph_value *root = tflite_unary(n, "rounded_root", compose_vector(n, 0, DT_U64, 0, NULL)), *bits = tflite_in(n, 1);
    if (!n->failed && bits->type.dt != DT_I32)
        return tflite_fail(n, DIAG_TYPE, "operand 1 must be of i32");
    bits = tflite_cast(n, tflite_reshape(n, bits, 0, NULL), DT_U32);
    return tflite_result(n, 0, tflite_binary(n, "right_shift", root, bits));
}

/* --- spectra --- */

/* T and fft_length: the kernel takes its own type from T. */
static bool read_length(tflite_node *n, dtype dt, int64_t *out)
{
    int64_t code = 0;
    dtype given = DT_F32;
    if (!tflite_custom_int(n, "fft_length", 4, 1 << 16, out))
        return false;
    if (tflite_custom_has(n, "T") && !tflite_custom_int(n, "T", 0, 20, &code))
        return false;
    (void)tflite_dtype(code, &given);
    return given == dt || tflite_fail(n, DIAG_TYPE, "its option 'T' is %s, and its data %s", dtype_name(given),
                                      dtype_name(dt));
}

/* x, rows of real or complex numbers, through one of the two forms. */
static graph_value *transformed(tflite_node *n, const char *op, fft_form form, int64_t length, graph_value *x)
{
    fft_plan p;
    const dtype dt = x->type.dt;
    if (!n->failed && !fft_plan_make(form, form == FFT_HALF, dt, length, &p))
        (void)tflite_fail(n, DIAG_UNSUPPORTED, "a transform of %lld points is not supported: half of them must be a "
                          "product of 2, 3 and 5%s", (long long)length, dtype_is_int(dt) ? "" : " to 13");
    if (n->failed)
        return x;
    graph_value *in[2] = {x, tflite_const(n, fft_table(n->c, &p, dt), "table")};
    const attr a = attr_int(n->c, "length", length);
    return tflite_emit(n, op, 2, in, 1, &a);
}

/* Rows that are shorter than the transform have zeros behind them. */
bool tflite_op_signal_rfft(tflite_node *n)
{
    int64_t rows, have, length;
    graph_value *x = compose_rows(n, &rows, &have);
    if (n->failed || !read_length(n, x->type.dt, &length))
        return false;
    if (have > length)
        return tflite_fail(n, DIAG_TYPE, "its rows have %lld samples, and fft_length is %lld", (long long)have,
                           (long long)length);
    x = tflite_reshape(n, x, 3, (int64_t[]){rows, have, 1});
    const int64_t pads[6] = {0, 0, 0, 0, length - have, 0};
    if (have < length)
        x = tflite_binary(n, "nn.pad", x, tflite_const(n, tensor_from_i64s(n->c, 6, pads), "pads"));
    x = transformed(n, "rfft", FFT_REAL, length, x);
    return tflite_result(n, 0, compose_with_rows(n, x, 1, 1, (int64_t[]){length + 2}));
}

bool tflite_op_signal_irfft(tflite_node *n)
{
    int64_t rows, have, length;
    graph_value *x = compose_rows(n, &rows, &have);
    if (n->failed || !read_length(n, x->type.dt, &length))
        return false;
    if (have != length + 2)
        return tflite_fail(n, DIAG_TYPE, "its rows have %lld numbers; %lld are needed", (long long)have,
                           (long long)length + 2);
    x = tflite_reshape(n, x, 3, (int64_t[]){rows, length / 2 + 1, 2});
    x = transformed(n, "irfft", FFT_HALF, length, x);
    return tflite_result(n, 0, compose_with_rows(n, x, 1, 1, &length));
}

/* --- of LiteRT: c64, and transforms of images --- */

/* Axes 1 and 2 of [b, rows, columns] with so many entries: what is too much goes, zeros come behind. */
static graph_value *fitted(tflite_node *n, graph_value *x, const int64_t *have, const int64_t *want)
{
    for (int64_t i = 0; i < 2; i++)
        x = have[i] > want[i] ? compose_slice(n, x, i + 1, 0, want[i]) : x;
    const int64_t pads[6] = {0, 0, 0, 0, want[0] > have[0] ? want[0] - have[0] : 0,
                             want[1] > have[1] ? want[1] - have[1] : 0};
    if (pads[4] == 0 && pads[5] == 0)
        return x;
    return tflite_binary(n, "nn.pad", x, tflite_const(n, tensor_from_i64s(n->c, 6, pads), "pads"));
}

/* [b, rows, bins, 2], each column transformed. */
static graph_value *columns_transformed(tflite_node *n, graph_value *x, int64_t b, int64_t rows, int64_t bins)
{
    static const int64_t turn[4] = {0, 2, 1, 3};
    x = tflite_reshape(n, tflite_transpose(n, x, 4, turn), 3, (int64_t[]){b * bins, rows, 2});
    x = transformed(n, "fft", FFT_COMPLEX, rows, x);
    return tflite_transpose(n, tflite_reshape(n, x, 4, (int64_t[]){b, bins, rows, 2}), 4, turn);
}

/* The last two axes of the data, of real numbers. */
bool tflite_op_rfft2d(tflite_node *n)
{
    int64_t length[TYPE_MAX_RANK * 2], dims[TYPE_MAX_RANK + 1], b = 1, all;
    uint32_t count = 0;
    graph_value *x = tflite_in(n, 0);
    if (n->failed || !tflite_ints(n, 1, "the length", length, &count))
        return false;
    const int32_t rank = x->type.shape.rank;
    if (count != 2 || rank < 2 || rank + 1 > (int32_t)TYPE_MAX_RANK || tflite_operand(n, 0)->is_complex ||
        !tflite_operand(n, TFLITE_RESULT)->is_complex)
        return tflite_fail(n, DIAG_TYPE, "it makes c64 of real numbers with two dimensions at least, and two lengths");
    if (!shape_get(x->type.shape, dims))
        return tflite_fail(n, DIAG_UNSUPPORTED, "an extent of its data is open; it must be known");
    for (int32_t i = 0; i < rank - 2; i++)
        b *= dims[i];
    for (int i = 0; i < 2; i++)
        if (length[i] < 1 || length[i] > 1 << 16 || (length[i] & (length[i] - 1)) != 0)
            return tflite_fail(n, DIAG_UNSUPPORTED, "its lengths must be powers of 2, to 65536");
    if (length[1] < 4 || !i64_mul(b, length[0] * length[1], &all) || all > INT32_MAX || shape_count(x->type.shape) == 0)
        return tflite_fail(n, DIAG_UNSUPPORTED, "its data is empty or too large, or its rows have less than 4 points");
    const int64_t bins = length[1] / 2 + 1;
    x = fitted(n, tflite_reshape(n, x, 3, (int64_t[]){b, dims[rank - 2], dims[rank - 1]}), &dims[rank - 2], length);
    x = transformed(n, "rfft", FFT_REAL, length[1], tflite_reshape(n, x, 3, (int64_t[]){b * length[0], length[1], 1}));
    x = tflite_reshape(n, x, 4, (int64_t[]){b, length[0], bins, 2});
    x = length[0] > 1 ? columns_transformed(n, x, b, length[0], bins) : x;
    dims[rank - 2] = length[0];
    dims[rank - 1] = bins;
    dims[rank] = 2;
    return tflite_result(n, 0, tflite_reshape(n, x, (uint32_t)rank + 1, dims));
}

/* target: "real", "imaginary" or "amount". */
bool tflite_op_complex_part(tflite_node *n)
{
    graph_value *x = tflite_in(n, 0);
    if (n->failed || !tflite_operand(n, 0)->is_complex || tflite_operand(n, TFLITE_RESULT)->is_complex)
        return tflite_fail(n, DIAG_TYPE, "it makes real numbers of c64");
    const int64_t last = x->type.shape.rank - 1;
    if (strcmp(n->row->target, "amount") == 0)
        return tflite_result(n, 0, tflite_unary(n, "sqrt", compose_reduced(n, "sum", tflite_binary(n, "multiply", x, x),
                                                                           last, false)));
    const int64_t at = strcmp(n->row->target, "imaginary") == 0;
    return tflite_result(n, 0, compose_reduced(n, "sum", compose_slice(n, x, last, at, at + 1), last, false));
}
