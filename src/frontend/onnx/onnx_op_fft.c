/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of the discrete Fourier transform, along an axis (DFT) or of frames of a signal (STFT): by the fast
 * transform if the length is a product of the factors that it has, else as a product with a constant matrix. */
#include "frontend/onnx/onnx_import.h"
#include "graph/op/fft.h"

#include <math.h>

typedef struct fourier {
    bool inverse, onesided;
    uint32_t axis, rank;
    int64_t in, length, out;     /* extents along the axis, and the length of the transform */
    int64_t parts_in, parts_out; /* 1: real, 2: real and imaginary */
    dtype dt;
} fourier;

/* What entry (i, p) of the input adds to entry (k, q) of the output; p, q: 0 real, 1 imaginary. */
static double coefficient(const fourier *f, int64_t i, int64_t p, int64_t k, int64_t q)
{
    int64_t turn = (i % f->length) * (k % f->length) % f->length; /* keeps the angle small, and so exact */
    double angle = 2 * 3.14159265358979323846 * (double)turn / (double)f->length, sign = f->inverse ? 1 : -1;
    double scale = f->inverse ? 1 / (double)f->length : 1;
    if (i >= f->length)
        return 0;                    /* cut off */
    if (f->inverse && f->onesided) { /* the other half of the spectrum mirrors this one */
        if (i > f->length / 2)
            return 0;
        scale *= i == 0 || 2 * i == f->length ? 1 : 2;
    }
    if (p == q)
        return scale * cos(angle);
    return (q == 1 ? sign : -sign) * scale * sin(angle);
}

/* For lengths that no plan takes, those with large prime factors and the half spectrum of an odd length. */
static const tensor_data *fourier_matrix(onnx_node *n, const fourier *f)
{
    int64_t rows = f->in * f->parts_in, cols = f->out * f->parts_out, count = 0;
    if (!i64_mul(rows, cols, &count) || count > 1 << 24)
        return onnx_fail(n, DIAG_UNSUPPORTED, "a transform of %lld points is too long for now", (long long)f->length),
               NULL;
    size_t width = dtype_bytes(f->dt);
    uint8_t *data = arena_alloc(&n->c->mem, (size_t)count * width, 64), *at = data;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++, at += width)
            dtype_store_f64(f->dt, at,
                            coefficient(f, r / f->parts_in, r % f->parts_in, c / f->parts_out, c % f->parts_out));
    return tensor_dense(n->c, f->dt, 2, (int64_t[]){rows, cols}, data);
}

/* Whether steps make it (graph/op/fft.h), and which. */
static bool plan_of(const fourier *f, fft_plan *out)
{
    if (f->inverse && f->onesided)
        return fft_plan_make(FFT_HALF, true, f->dt, f->length, out);
    return (f->onesided && f->parts_in == 1 && fft_plan_make(FFT_REAL, false, f->dt, f->length, out)) ||
           fft_plan_make(FFT_COMPLEX, f->inverse, f->dt, f->length, out);
}

/* x, [rows, n, parts], with as many points as the transform reads: cut off, or zeros behind. */
static graph_value *fit(onnx_node *n, graph_value *x, int64_t have, int64_t want)
{
    if (have > want)
        return onnx_slice(n, x, 1, 0, want);
    const int64_t behind[6] = {0, 0, 0, 0, want - have, 0};
    return have == want ? x : onnx_binary(n, "nn.pad", x, onnx_const_ints(n, 6, behind));
}

/* [rows, in, parts_in] -> [rows, out, parts_out] */
static graph_value *transform_rows(onnx_node *n, const fourier *f, graph_value *x)
{
    static const char *const names[] = {[FFT_COMPLEX] = "fft", [FFT_REAL] = "rfft", [FFT_HALF] = "irfft"};
    const dim rows = onnx_dim(n, x, 0), flat[2] = {rows, dim_const(n->c, f->in * f->parts_in)};
    const dim whole[3] = {rows, dim_const(n->c, f->out), dim_const(n->c, f->parts_out)};
    attr a[2] = {attr_int(n->c, "length", f->length), attr_int(n->c, "inverse", f->inverse)};
    fft_plan p;
    if (!plan_of(f, &p)) {
        graph_value *matrix = onnx_constant(n, fourier_matrix(n, f));
        return onnx_reshape(n, onnx_matmul(n, onnx_reshape(n, x, 2, flat), matrix, false, false, DT_NONE), 3, whole);
    }
    graph_value *table = onnx_constant(n, fft_table(n->c, &p, f->dt == DT_F64 ? DT_F64 : DT_F32));
    x = fit(n, x, f->in, p.form == FFT_HALF ? f->length / 2 + 1 : f->length);
    x = onnx_emit(n, ONNX_ARGS(names[p.form], p.form == FFT_COMPLEX ? 2 : 1, a, x, table));
    return p.form == FFT_COMPLEX && f->out < f->length ? onnx_slice(n, x, 1, 0, f->out) : x;
}

/* The axis goes in front of the last one, the others become one, and after the transform everything goes back. */
static graph_value *transform(onnx_node *n, const fourier *f)
{
    graph_value *x = onnx_in(n, 0);
    int64_t perm[TYPE_MAX_RANK];
    dim d[TYPE_MAX_RANK], rows = dim_const(n->c, 1);
    uint32_t last = f->rank - 1, at = 0;
    for (uint32_t i = 0; i < last; i++)
        if (i != f->axis)
            perm[at++] = i;
    perm[at] = f->axis;
    perm[last] = last;
    bool move = f->axis + 1 != last;
    if (move)
        x = onnx_transpose(n, x, f->rank, perm);
    for (uint32_t i = 0; i + 1 < last; i++)
        rows = dim_mul(n->c, rows, d[i] = onnx_dim(n, x, i));
    x = onnx_reshape(n, x, 3, (dim[]){rows, dim_const(n->c, f->in), dim_const(n->c, f->parts_in)});
    x = transform_rows(n, f, x);
    d[last - 1] = dim_const(n->c, f->out);
    d[last] = dim_const(n->c, f->parts_out);
    x = onnx_reshape(n, x, f->rank, d);
    for (uint32_t i = 0, from = 0; i < last; i++)
        perm[i] = i == f->axis ? (int64_t)last - 1 : (int64_t)from++;
    return move ? onnx_transpose(n, x, f->rank, perm) : x;
}

/* --- an axis whose extent only a run knows --- */

/* Cosines and sines of all angles, [points, points], where x is [points, ...]. Turns are counted in integers, so that
 * angles stay small and exact. */
static void make_waves(onnx_node *n, dtype dt, graph_value *x, graph_value **out_cos, graph_value **out_sin)
{
    const int64_t column = 1, none = 0;
    const attr first[2] = {attr_int(n->c, "start", 0), attr_int(n->c, "end", 1)};
    graph_value *at = onnx_list_places(n, x), *turn = onnx_const_float(n, dt, 2 * 3.14159265358979323846);
    graph_value *points = onnx_reshape_ints(n, onnx_emit(n, ONNX_ARGS("shape_of", 2, first, x)), 0, &none);
    graph_value *products = onnx_binary(n, "multiply", onnx_expand_dims(n, at, 1, &column), at);
    graph_value *part = onnx_binary(n, "mod", products, points);
    graph_value *angle = onnx_binary(n, "divide", onnx_binary(n, "multiply", onnx_cast(n, part, dt), turn),
                                     onnx_cast(n, points, dt));
    *out_cos = onnx_unary(n, "cos", angle);
    *out_sin = onnx_unary(n, "sin", angle);
}

/* x, [points, rows, parts], as real and imaginary parts, each [points, rows]. */
static void transform_parts(onnx_node *n, const fourier *f, graph_value *x, graph_value *out[2])
{
    const dim flat[2] = {onnx_dim(n, x, 0), onnx_dim(n, x, 1)};
    graph_value *wave[2], *in[2] = {NULL, NULL};
    make_waves(n, f->dt, x, &wave[0], &wave[1]);
    for (int64_t p = 0; p < f->parts_in; p++)
        in[p] = onnx_reshape(n, onnx_slice(n, x, 2, p, p + 1), 2, flat);
    for (uint32_t q = 0; q < 2; q++) {
        graph_value *real = onnx_matmul(n, wave[q], in[0], false, false, DT_NONE);
        graph_value *other = in[1] ? onnx_matmul(n, wave[1 - q], in[1], false, false, DT_NONE) : NULL;
        const bool minus = q == 1 && !f->inverse; /* of the real part's sine; the imaginary part's has the other sign */
        if (other)
            out[q] = minus ? onnx_binary(n, "subtract", other, real)
                           : onnx_binary(n, q == 0 && f->inverse ? "subtract" : "add", real, other);
        else
            out[q] = minus ? onnx_unary(n, "negative", real) : real;
    }
}

/* Products with matrices that the run makes: the axis goes in front, the others become one. */
static graph_value *transform_open(onnx_node *n, const fourier *f)
{
    graph_value *x = onnx_in(n, 0), *parts[2];
    const int64_t zero = 0, behind = 2, two = 2, one = 1, last = f->rank - 1;
    int64_t perm[TYPE_MAX_RANK], back[TYPE_MAX_RANK];
    dim d[TYPE_MAX_RANK], rows = dim_const(n->c, 1), points = onnx_dim(n, x, f->axis);
    uint32_t at = 1;
    perm[0] = f->axis;
    d[0] = points;
    for (uint32_t i = 0; i + 1 < f->rank; i++) {
        if (i == f->axis)
            continue;
        rows = dim_mul(n->c, rows, d[at] = onnx_dim(n, x, i));
        perm[at++] = i;
    }
    perm[at] = last;
    d[at] = dim_const(n->c, 2);
    for (uint32_t i = 0; i < f->rank; i++)
        back[perm[i]] = i;
    x = onnx_reshape(n, onnx_transpose(n, x, f->rank, perm), 3, (dim[]){points, rows, dim_const(n->c, f->parts_in)});
    transform_parts(n, f, x, parts);
    for (uint32_t q = 0; q < 2; q++)
        parts[q] = onnx_expand_dims(n, parts[q], 1, &behind);
    const attr first[2] = {attr_int(n->c, "start", 0), attr_int(n->c, "end", 1)};
    graph_value *count = onnx_emit(n, ONNX_ARGS("shape_of", 2, first, x)), *y = onnx_concat(n, 2, parts, 2);
    if (f->inverse)
        y = onnx_binary(n, "divide", y, onnx_cast(n, count, f->dt));
    if (f->onesided) {
        count = onnx_binary(n, "add", onnx_binary(n, "divide", count, onnx_const_ints(n, 1, &two)),
                            onnx_const_ints(n, 1, &one));
        y = onnx_emit(n, ONNX_ARGS("strided_slice", 0, NULL, y, onnx_const_ints(n, 1, &zero), count,
                                   onnx_const_ints(n, 1, &zero)));
        d[0] = n->failed ? points : onnx_dim(n, y, 0);
    }
    return onnx_transpose(n, onnx_reshape(n, y, f->rank, d), f->rank, back);
}

/* Everything but the axis; length 0: the axis decides. */
static bool read_fourier(onnx_node *n, fourier *f)
{
    graph_value *x = onnx_in(n, 0);
    int64_t given[2 * TYPE_MAX_RANK] = {0};
    uint32_t count = 0;
    *f = (fourier){.rank = onnx_rank(x), .dt = onnx_dtype(x)};
    f->inverse = onnx_attr_int(n, "inverse", 0) != 0;
    f->onesided = onnx_attr_int(n, "onesided", 0) != 0;
    if (f->rank < 2 || f->rank > TYPE_MAX_RANK)
        return onnx_fail(n, DIAG_TYPE, "the signal needs two dimensions at least");
    f->parts_in = onnx_static_dim(n, x, f->rank - 1);
    f->parts_out = f->inverse && f->onesided ? 1 : 2;
    if (f->parts_in < 1 || f->parts_in > 2)
        return onnx_fail(n, DIAG_TYPE, "the last axis must hold one or two parts");
    graph_value *length = onnx_optional(n, 1);
    if (length && onnx_need_ints(n, length, "dft_length", given, &count) && (count != 1 || given[0] < 1))
        return onnx_fail(n, DIAG_TYPE, "dft_length must be one number above zero");
    f->length = given[0];
    return !n->failed;
}

/* The extents that follow from the axis; without a message when there is no such transform. */
static bool set_axis(onnx_node *n, fourier *f, uint32_t axis)
{
    f->axis = axis;
    f->in = onnx_static_dim(n, onnx_in(n, 0), axis);
    if (f->length == 0)
        f->length = f->inverse && f->onesided ? 2 * (f->in - 1) : f->in;
    f->out = f->onesided && !f->inverse ? f->length / 2 + 1 : f->length;
    return !n->failed && axis + 1 < f->rank && f->length > 0 && f->length <= INT32_MAX;
}

static bool dft(onnx_node *n, int64_t axis)
{
    fourier f;
    if (!read_fourier(n, &f))
        return false;
    uint32_t at = onnx_axis(n, axis, f.rank);
    int64_t extent = 0;
    if (!n->failed && f.length == 0 && !dim_is_const(onnx_dim(n, onnx_in(n, 0), at), &extent) && at + 1 < f.rank &&
        !(f.inverse && f.onesided) && (f.dt == DT_F32 || f.dt == DT_F64)) {
        f.axis = at;
        return onnx_alias(n, 0, transform_open(n, &f));
    }
    if (!n->failed && !set_axis(n, &f, at))
        return onnx_fail(n, DIAG_TYPE, "a transform of %lld points along axis %u is not possible", (long long)f.in, at);
    return !n->failed && onnx_alias(n, 0, transform(n, &f));
}

bool onnx_op_dft_17(onnx_node *n)
{
    return dft(n, onnx_attr_int(n, "axis", 1));
}

/* An axis that is known only at run time: those that give the declared shape are all computed, and the operand chooses.
 */
static bool dft_by_operand(onnx_node *n)
{
    const type *want = onnx_declared(n, 0);
    graph_value *y = NULL, *axis = onnx_cast(n, onnx_optional(n, 2), DT_I64);
    int64_t rows[2 * TYPE_MAX_RANK], n_rows = 0;
    fourier all;
    if (!want || !read_fourier(n, &all) || (uint32_t)want->shape.rank != all.rank)
        return onnx_fail(n, DIAG_UNSUPPORTED, "an axis that is not constant needs a declared result");
    axis = onnx_reshape_ints(n, axis, 0, NULL);
    for (uint32_t i = 0; i + 1 < all.rank; i++) {
        fourier f = all;
        bool fits = set_axis(n, &f, i) && dim_is(want->shape.dims[i], f.out);
        for (uint32_t k = 0; k + 1 < all.rank && !n->failed; k++)
            fits = fits && (k == i || dim_equal(want->shape.dims[k], onnx_dim(n, onnx_in(n, 0), k)));
        graph_value *v = fits ? transform(n, &f) : NULL;
        for (uint32_t k = 0; fits && k < 2; k++)
            rows[n_rows++] = k == 0 ? i : (int64_t)i - (int64_t)all.rank;
        if (y && v) {
            graph_value *front = onnx_binary(n, "equal", axis, onnx_const_int(n, DT_I64, i));
            graph_value *back =
                onnx_binary(n, "equal", axis, onnx_const_int(n, DT_I64, (int64_t)i - (int64_t)all.rank));
            v = onnx_where(n, onnx_binary(n, "logical_or", front, back), v, y);
        }
        y = v ? v : y;
    }
    return y ? onnx_alias(n, 0, onnx_expect(n, y, axis, n_rows, 1, rows))
             : onnx_fail(n, DIAG_TYPE, "no axis gives the declared shape");
}

bool onnx_op_dft(onnx_node *n)
{
    int64_t axis[2 * TYPE_MAX_RANK] = {-2};
    uint32_t count = 1;
    if (onnx_optional(n, 2) && !onnx_ints_of(onnx_optional(n, 2), axis, &count))
        return dft_by_operand(n);
    return dft(n, axis[0]);
}

/* --- STFT --- */

/* Frames of the signal, times the window: [batch * frames, length, parts], and how many of them each signal has. */
static graph_value *read_frames(onnx_node *n, const fourier *f, int64_t step, graph_value *signal, graph_value *window,
                                dim *out_frames)
{
    const int64_t size[2] = {f->length, f->parts_in}, strides[2] = {step, 1};
    const dim length = dim_const(n->c, f->length), parts = dim_const(n->c, f->parts_in), one = dim_const(n->c, 1);
    attr a[3] = {attr_int(n->c, "axis", 1), attr_ints(n->c, "window_shape", 2, size),
                 attr_ints(n->c, "strides", 2, strides)};
    graph_value *x = onnx_emit(n, ONNX_ARGS("sliding_window", 3, a, signal));
    *out_frames = onnx_dim(n, x, 1);
    if (window) {
        window = onnx_reshape(n, onnx_cast(n, window, f->dt), 2, (dim[]){length, one});
        x = onnx_binary(n, "multiply", x, window);
    }
    return onnx_reshape(n, x, 3, (dim[]){dim_mul(n->c, onnx_dim(n, x, 0), *out_frames), length, parts});
}

/* The one pair of length and step, at most `have` samples, that gives the declared result: how operands that only a run
 * knows are taken. A length that is not 0 is known, and so is a step. */
static bool frames_of_result(onnx_node *n, const fourier *f, int64_t have, int64_t *length, int64_t *step)
{
    const type *want = onnx_declared(n, 0);
    int64_t frames = 0, out = 0, found[2] = {0};
    uint32_t count = 0;
    if (!want || want->shape.rank != 4 || !dim_is_const(want->shape.dims[1], &frames) ||
        !dim_is_const(want->shape.dims[2], &out))
        return false;
    for (int64_t l = f->onesided ? 2 * (out - 1) : out; l <= (f->onesided ? 2 * out - 1 : out); l++)
        for (int64_t s = 1; s <= have && l > 0 && l <= have; s++)
            if ((*length == 0 || *length == l) && (*step == 0 || *step == s) && (have - l) / s + 1 == frames) {
                found[0] = l;
                found[1] = s;
                count++;
            }
    *length = found[0];
    *step = found[1];
    return count == 1;
}

/* Length and step of the frames, known by operands or by the declared result: then a run compares. */
static bool read_lengths(onnx_node *n, fourier *f, int64_t *step)
{
    graph_value *x = onnx_in(n, 0), *window = onnx_optional(n, 2), *given = onnx_optional(n, 3);
    int64_t list[2 * TYPE_MAX_RANK] = {0}, have = 0;
    uint32_t count = 0;
    if (onnx_ints_of(onnx_in(n, 1), list, &count) && (count != 1 || list[0] < 1))
        return onnx_fail(n, DIAG_TYPE, "frame_step must be one number above zero");
    *step = count == 1 ? list[0] : 0;
    count = 0;
    if (given && onnx_ints_of(given, list, &count) && (count != 1 || list[0] < 1))
        return onnx_fail(n, DIAG_TYPE, "frame_length must be one number above zero");
    f->length = count == 1 ? list[0] : window ? onnx_static_dim(n, window, 0) : 0;
    if (n->failed || (f->length > 0 && *step > 0))
        return !n->failed;
    return (dim_is_const(onnx_dim(n, x, 1), &have) && have <= INT32_MAX &&
            frames_of_result(n, f, have, &f->length, step)) ||
           onnx_fail(n, DIAG_UNSUPPORTED,
                     "frame_step and frame_length must be constants, or the declared result must tell them: give them "
                     "by --bind");
}

/* x, provided that operand i, where only a run knows it, is that number. */
static graph_value *expect_number(onnx_node *n, graph_value *x, uint32_t i, int64_t number)
{
    graph_value *operand = onnx_optional(n, i);
    int64_t list[2 * TYPE_MAX_RANK] = {0};
    uint32_t count = 0;
    if (!operand || onnx_ints_of(operand, list, &count))
        return x;
    return onnx_expect(n, x, onnx_reshape_ints(n, onnx_cast(n, operand, DT_I64), 0, NULL), 1, 1, &number);
}

bool onnx_op_stft(onnx_node *n)
{
    graph_value *x = onnx_in(n, 0), *window = onnx_optional(n, 2);
    int64_t step = 0, have = 0;
    fourier f = {.rank = 3, .dt = onnx_dtype(x), .onesided = onnx_attr_int(n, "onesided", 1) != 0, .parts_out = 2};
    if (onnx_rank(x) == 2) /* exporters leave the axis of a real signal out */
        x = onnx_expand_dims(n, x, 1, &(int64_t){2});
    if (onnx_rank(x) != 3)
        return onnx_fail(n, DIAG_TYPE, "the signal needs three dimensions: batch, samples, parts; or the first two");
    f.parts_in = onnx_static_dim(n, x, 2);
    if (f.parts_in < 1 || f.parts_in > 2)
        return onnx_fail(n, DIAG_TYPE, "the last axis must hold one or two parts");
    if (window && onnx_rank(window) != 1)
        return onnx_fail(n, DIAG_TYPE, "the window must be a vector");
    if (!window && !onnx_optional(n, 3))
        return onnx_fail(n, DIAG_TYPE, "a window or frame_length must say how long a frame is");
    if (!read_lengths(n, &f, &step))
        return false;
    if (window && onnx_static_dim(n, window, 0) != f.length)
        return onnx_fail(n, DIAG_TYPE, "the window must have %lld samples as a frame has", (long long)f.length);
    if (f.length > INT32_MAX || (dim_is_const(onnx_dim(n, x, 1), &have) && have < f.length))
        return onnx_fail(n, DIAG_TYPE, "the signal is shorter than a frame of %lld samples", (long long)f.length);
    f.in = f.length;
    f.out = f.onesided ? f.length / 2 + 1 : f.length;
    dim frames = NULL, whole[4] = {onnx_dim(n, x, 0)};
    graph_value *y = transform_rows(n, &f, read_frames(n, &f, step, x, window, &frames));
    whole[1] = frames;
    whole[2] = dim_const(n->c, f.out);
    whole[3] = dim_const(n->c, f.parts_out);
    y = onnx_reshape(n, y, 4, whole);
    y = expect_number(n, expect_number(n, y, 1, step), 3, f.length);
    return onnx_alias(n, 0, y);
}
