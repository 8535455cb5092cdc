/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of the window functions and of the discrete Fourier transform, which is a product with a constant matrix.
 */
#include "frontend/onnx/onnx_import.h"

#include <math.h>
#include <stdlib.h>

/* i32 indices 0..size-1 as floats: constant when the size is, else counted at run time with the declared extent. */
static graph_value *indices(onnx_node *n, graph_value *size)
{
    const type *want = onnx_declared(n, 0);
    graph_value *zero = onnx_const_like(n, size, 0), *one = onnx_const_like(n, size, 1);
    n->expect = want && want->shape.rank == 1 ? &want->shape : NULL;
    graph_value *i = onnx_emit(n, ONNX_ARGS("arange", 0, NULL, zero, size, one));
    n->expect = NULL;
    return onnx_cast(n, i, DT_F32);
}

static graph_value *cosine(onnx_node *n, graph_value *angle, double times, double weight)
{
    graph_value *c = onnx_unary(n, "cos", onnx_binary(n, "multiply", angle, onnx_const_float(n, DT_F32, times)));
    return onnx_binary(n, "multiply", c, onnx_const_float(n, DT_F32, weight));
}

/* a0 - a1 cos(2 pi i / N) + a2 cos(4 pi i / N); target: the three weights. N is the size, less one when not periodic.
 */
bool onnx_op_window(onnx_node *n)
{
    char *end = NULL;
    double a0 = strtod(n->row->target, &end), a1 = strtod(end, &end), a2 = strtod(end, &end);
    graph_value *size = onnx_in(n, 0);
    dtype dt = onnx_attr_dtype(n, "output_datatype", DT_F32);
    bool periodic = onnx_attr_int(n, "periodic", 1) != 0;
    if (onnx_rank(size) != 0)
        return onnx_fail(n, DIAG_TYPE, "the size must be one number");
    graph_value *i = indices(n, size), *steps = onnx_cast(n, size, DT_F32);
    if (!periodic)
        steps = onnx_binary(n, "subtract", steps, onnx_const_float(n, DT_F32, 1));
    graph_value *angle = onnx_binary(n, "multiply", i, onnx_const_float(n, DT_F32, 2 * 3.14159265358979323846));
    angle = onnx_binary(n, "divide", angle, steps);
    graph_value *first = onnx_const_float(n, DT_F32, a0);
    graph_value *y = onnx_binary(n, "subtract", first, cosine(n, angle, 1, a1));
    if (a2 != 0)
        y = onnx_binary(n, "add", y, cosine(n, angle, 2, a2));
    return onnx_alias(n, 0, onnx_cast(n, y, dt));
}

/* --- DFT -----------------------------------------------------------------------------------------------------------
 */

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

/* The axis goes in front of the last one, the two become one, and after the product everything goes back. */
static graph_value *transform(onnx_node *n, const fourier *f)
{
    graph_value *x = onnx_in(n, 0), *matrix = onnx_constant(n, fourier_matrix(n, f));
    int64_t perm[TYPE_MAX_RANK];
    dim d[TYPE_MAX_RANK];
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
        d[i] = onnx_dim(n, x, i);
    d[last - 1] = dim_const(n->c, f->in * f->parts_in);
    x = onnx_matmul(n, onnx_reshape(n, x, last, d), matrix, false, false, DT_NONE);
    d[last - 1] = dim_const(n->c, f->out);
    d[last] = dim_const(n->c, f->parts_out);
    x = onnx_reshape(n, x, f->rank, d);
    for (uint32_t i = 0, from = 0; i < last; i++)
        perm[i] = i == f->axis ? (int64_t)last - 1 : (int64_t)from++;
    return move ? onnx_transpose(n, x, f->rank, perm) : x;
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
    if (!n->failed && !set_axis(n, &f, at))
        return onnx_fail(n, DIAG_TYPE, "no transform of %lld points along axis %u", (long long)f.in, at);
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
