/* SPDX-License-Identifier: Apache-2.0 */
/* AudioSpectrogram and Mfcc, of floats: what models of speech began with before TensorFlow Lite Micro's front ends. The
 * kernels compute in f64; here it is f32, which agrees to 1e-5 of the largest number and is far cheaper on a device. */
#include "frontend/tflite/tflite_compose.h"
#include "graph/op/fft.h"

#include <math.h>

#define TURN       (2 * 3.14159265358979323846)
#define MOST_POINTS 65536
#define MOST_WEIGHTS (1 << 22) /* of a bank of filters */

/* A window of Hann over frames of that length, which repeats itself. */
static graph_value *hann(tflite_node *n, int64_t length)
{
    float *data = arena_array(&n->c->mem, float, (size_t)length);
    for (int64_t i = 0; i < length; i++)
        data[i] = (float)(0.5 - 0.5 * cos(TURN * (double)i / (double)length));
    return tflite_const(n, tensor_dense(n->c, DT_F32, 1, &length, data), "window");
}

/* Squared magnitudes of [rows, points] real numbers: [rows, points / 2 + 1]. */
static graph_value *power_of(tflite_node *n, graph_value *x, int64_t rows, int64_t points)
{
    fft_plan p;
    if (!fft_plan_make(FFT_REAL, false, DT_F32, points, &p))
        (void)tflite_fail(n, DIAG_UNSUPPORTED, "a transform of %lld points is not supported", (long long)points);
    if (n->failed)
        return x;
    graph_value *in[2] = {tflite_reshape(n, x, 3, (int64_t[]){rows, points, 1}),
                          tflite_const(n, fft_table(n->c, &p, DT_F32), "table")};
    const attr a = attr_int(n->c, "length", points);
    x = tflite_emit(n, "rfft", 2, in, 1, &a);
    return compose_reduced(n, "sum", tflite_binary(n, "multiply", x, x), 2, false);
}

/* [samples, channels] -> [channels, frames, bins]: frames are as long as the window, with zeros up to a power of two.
 */
bool tflite_op_spectrogram(tflite_node *n)
{
    graph_value *x = tflite_in(n, 0);
    int64_t window, stride, squared, samples, channels, points = 4;
    if (!tflite_custom_int(n, "window_size", 2, MOST_POINTS, &window) ||
        !tflite_custom_int(n, "stride", 1, INT32_MAX, &stride) ||
        !tflite_custom_int(n, "magnitude_squared", 0, 1, &squared))
        return false;
    if (n->failed || x->type.shape.rank != 2)
        return tflite_fail(n, DIAG_TYPE, "its data must be [samples, channels]");
    if (!tflite_extent(n, x, 0, &samples) || !tflite_extent(n, x, 1, &channels))
        return false;
    if (samples < window || channels < 1)
        return tflite_fail(n, DIAG_TYPE, "its data has %lld samples, less than the window of %lld", (long long)samples,
                           (long long)window);
    while (points < window)
        points *= 2;
    if (window <= 2)
        return tflite_fail(n, DIAG_UNSUPPORTED, "a window of two samples is not supported");
    const int64_t frames = (samples - window) / stride + 1;
    const attr a[3] = {attr_int(n->c, "axis", 1), attr_ints(n->c, "window_shape", 1, &window),
                       attr_ints(n->c, "strides", 1, &stride)};
    x = tflite_transpose(n, x, 2, (int64_t[]){1, 0});
    x = tflite_binary(n, "multiply", tflite_emit(n, "sliding_window", 1, &x, 3, a), hann(n, window));
    const int64_t pads[6] = {0, 0, 0, 0, 0, points - window};
    x = tflite_binary(n, "nn.pad", x, tflite_const(n, tensor_from_i64s(n->c, 6, pads), "pads"));
    x = power_of(n, x, channels * frames, points);
    x = squared ? x : tflite_unary(n, "sqrt", x);
    return tflite_result(n, 0, tflite_reshape(n, x, 3, (int64_t[]){channels, frames, points / 2 + 1}));
}

/* --- Mfcc --- */

typedef struct mel_bank {
    int64_t bins, channels;
    double low, high, rate; /* in hertz */
} mel_bank;

static double mel_of(double hertz)
{
    return 1127.0 * log1p(hertz / 700.0);
}

/* How much of each bin each channel takes, [bins, channels]: triangles between the middles of its neighbors. A bin's
 * share of a channel is what it lacks in the next one. */
static graph_value *mel_weights(tflite_node *n, const mel_bank *m)
{
    const int64_t dims[2] = {m->bins, m->channels};
    float *data = arena_array(&n->c->mem, float, (size_t)(m->bins * m->channels));
    const double low = mel_of(m->low), step = (mel_of(m->high) - low) / (double)(m->channels + 1);
    const double each = 0.5 * m->rate / (double)(m->bins - 1);
    const int64_t first = (int64_t)(1.5 + m->low / each), last = (int64_t)(m->high / each); /* without bin 0 */
    int64_t channel = 0;
    for (int64_t i = first; i <= last && i < m->bins; i++) {
        const double mel = mel_of((double)i * each);
        while (channel < m->channels && low + step * (double)(channel + 1) < mel)
            channel++;
        const double right = (low + step * (double)(channel + 1) - mel) / step;
        if (channel > 0)
            data[i * m->channels + channel - 1] = (float)right;
        if (channel < m->channels)
            data[i * m->channels + channel] = (float)(1 - right);
    }
    return tflite_const(n, tensor_dense(n->c, DT_F32, 2, dims, data), "mel_weights");
}

/* [channels, coefficients] of the cosine transform. */
static graph_value *cosines(tflite_node *n, int64_t channels, int64_t count)
{
    const int64_t dims[2] = {channels, count};
    float *data = arena_array(&n->c->mem, float, (size_t)(channels * count));
    for (int64_t j = 0; j < channels; j++)
        for (int64_t i = 0; i < count; i++)
            data[j * count + i] = (float)(sqrt(2.0 / (double)channels) *
                                          cos((double)i * (TURN / 2) / (double)channels * ((double)j + 0.5)));
    return tflite_const(n, tensor_dense(n->c, DT_F32, 2, dims, data), "cosines");
}

static bool read_bank(tflite_node *n, mel_bank *m, int64_t *coefficients)
{
    int64_t rate = 0;
    if (!tflite_custom_int(n, "filterbank_channel_count", 1, 1024, &m->channels) ||
        !tflite_custom_int(n, "dct_coefficient_count", 1, m->channels, coefficients) ||
        !tflite_custom_float(n, "lower_frequency_limit", &m->low) ||
        !tflite_custom_float(n, "upper_frequency_limit", &m->high) ||
        !tflite_one_int(n, 1, "the sample rate", &rate))
        return false;
    m->rate = (double)rate;
    if (rate < 1 || !(m->low >= 0) || !(m->high > m->low) || m->high > m->rate / 2)
        return tflite_fail(n, DIAG_FORMAT,
                           "its frequencies are %g to %g at %lld samples a second; they must rise, up to half of that",
                           m->low, m->high, (long long)rate);
    return true;
}

/* Mel-frequency cepstral coefficients of spectra of squared magnitudes. */
bool tflite_op_mfcc(tflite_node *n)
{
    graph_value *x = tflite_in(n, 0);
    int64_t rows = 1, bins = 0, coefficients;
    mel_bank m = {0};
    if (n->failed || !read_bank(n, &m, &coefficients))
        return false;
    x = compose_rows(n, &rows, &bins);
    m.bins = bins;
    if (!n->failed && (bins < 2 || bins > MOST_WEIGHTS / m.channels))
        return tflite_fail(n, DIAG_UNSUPPORTED, "a bank of %lld channels over %lld numbers is not supported",
                           (long long)m.channels, (long long)bins);
    if (n->failed)
        return false;
    x = tflite_binary(n, "nn.matmul", tflite_unary(n, "sqrt", x), mel_weights(n, &m));
    x = tflite_unary(n, "log", tflite_binary(n, "maximum", x, tflite_number(n, DT_F32, 1e-12)));
    x = tflite_binary(n, "nn.matmul", x, cosines(n, m.channels, coefficients));
    return tflite_result(n, 0, compose_with_rows(n, x, 1, 1, &coefficients));
}
