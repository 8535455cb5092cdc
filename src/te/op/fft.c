/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definitions of the fast Fourier transform (graph/op/fft.h): a stage for each step, [b, part, t, n], and one
 * before or behind for real numbers. A step chooses its number by the index q: once the schedule has written the loops
 * over q and the parts out (te/rule/fft.c), a few additions remain that all of them share. */
#include "graph/op/fft.h"

#include "te/op/util.h"

#include <math.h>

#define TURN (2 * 3.14159265358979323846)

/* A complex number; im NULL: a real one. */
typedef struct complex_expr {
    tir_expr_ref re, im;
} complex_expr;

typedef struct fft_ctx {
    fft_plan plan;
    const te_tensor *x, *table;
    const te_tensor *before; /* what the step before made; NULL: there is none */
    uint32_t step;
    int64_t done;   /* product of the factors of the steps before */
    int64_t offset; /* of the step's constants in the table */
    dtype dt;       /* of the arithmetic */
    dtype kept;     /* of what steps make */
} fft_ctx;

/* --- arithmetic; NULL: 0 --- */

static tir_expr_ref negative(compiler *c, tir_expr_ref a)
{
    return a ? tir_sub(c, tir_const(c, a->type.dt, 0), a) : NULL;
}

/* x of 0 - x, which is better added or subtracted the other way; NULL: something else. */
static tir_expr_ref under_minus(tir_expr_ref a)
{
    return a && tir_is_binary(a, TIR_SUB) && tir_is_const(a->args[0], 0) ? a->args[1] : NULL;
}

static tir_expr_ref difference(compiler *c, tir_expr_ref a, tir_expr_ref b);

static tir_expr_ref sum(compiler *c, tir_expr_ref a, tir_expr_ref b)
{
    if (a && under_minus(b))
        return difference(c, a, under_minus(b));
    return a && b ? tir_add(c, a, b) : a ? a : b;
}

static tir_expr_ref difference(compiler *c, tir_expr_ref a, tir_expr_ref b)
{
    if (under_minus(b))
        return sum(c, a, under_minus(b));
    return a && b ? tir_sub(c, a, b) : a ? a : negative(c, b);
}

static tir_expr_ref product(compiler *c, const fft_ctx *v, tir_expr_ref a, tir_expr_ref b)
{
    if (!a || !b)
        return NULL;
    return v->plan.apart ? tir_call1(c, TIR_APART, tir_mul(c, a, b)) : tir_mul(c, a, b);
}

static tir_expr_ref times(compiler *c, const fft_ctx *v, double k, tir_expr_ref a)
{
    return a ? product(c, v, tir_float(c, a->type.dt, k), a) : NULL;
}

static complex_expr plus(compiler *c, complex_expr a, complex_expr b)
{
    return (complex_expr){sum(c, a.re, b.re), sum(c, a.im, b.im)};
}

static complex_expr minus(compiler *c, complex_expr a, complex_expr b)
{
    return (complex_expr){difference(c, a.re, b.re), difference(c, a.im, b.im)};
}

static complex_expr multiply(compiler *c, const fft_ctx *v, complex_expr a, complex_expr b)
{
    return (complex_expr){difference(c, product(c, v, a.re, b.re), product(c, v, a.im, b.im)),
                          sum(c, product(c, v, a.re, b.im), product(c, v, a.im, b.re))};
}

/* exp(-2 pi i k / r) a, or with the exponent of the inverse. */
static complex_expr turned(compiler *c, const fft_ctx *v, int64_t k, int64_t r, complex_expr a)
{
    const double angle = TURN * (double)k / (double)r, sine = v->plan.inverse ? sin(angle) : -sin(angle);
    if (k == 0)
        return a;
    if (4 * k == r) /* i or -i */
        return v->plan.inverse ? (complex_expr){negative(c, a.im), a.re} : (complex_expr){a.im, negative(c, a.re)};
    return (complex_expr){difference(c, times(c, v, cos(angle), a.re), times(c, v, sine, a.im)),
                          sum(c, times(c, v, cos(angle), a.im), times(c, v, sine, a.re))};
}

/* Number q of the transform of r numbers in[0], in[stride], ..., r odd: numbers p and r - p share their products. */
static complex_expr odd_sum(compiler *c, const fft_ctx *v, int64_t r, int64_t q, const complex_expr *in, int64_t stride)
{
    complex_expr all = in[0];
    for (int64_t p = 1; 2 * p < r; p++) {
        const complex_expr a = in[p * stride], b = in[(r - p) * stride], u = plus(c, a, b), d = minus(c, a, b);
        const double angle = TURN * (double)(p * q % r) / (double)r, sine = v->plan.inverse ? sin(angle) : -sin(angle);
        all = plus(c, all, (complex_expr){times(c, v, cos(angle), u.re), times(c, v, cos(angle), u.im)});
        if (q != 0)
            all = plus(c, all, (complex_expr){times(c, v, -sine, d.im), times(c, v, sine, d.re)});
    }
    return all;
}

/* The same for any r: of the even ones and the odd ones, where there are as many. */
static complex_expr small_sum(compiler *c, const fft_ctx *v, int64_t r, int64_t q, const complex_expr *in,
                              int64_t stride)
{
    const int64_t half = r / 2;
    if (r == 1)
        return in[0];
    if (r % 2 != 0)
        return odd_sum(c, v, r, q, in, stride);
    complex_expr even = small_sum(c, v, half, q % half, in, 2 * stride);
    complex_expr odd = small_sum(c, v, half, q % half, in + stride, 2 * stride);
    odd = turned(c, v, q % half, r, odd);
    return q < half ? plus(c, even, odd) : minus(c, even, odd);
}

/* --- in fixed point --- */

/* Without the bits behind the point, halves up, as the numbers are kept. */
static tir_expr_ref rounded(compiler *c, const fft_ctx *v, tir_expr_ref a)
{
    const int64_t bits = (int64_t)dtype_bits(v->plan.fixed) - 1;
    tir_expr_ref half = tir_int(c, v->dt, (int64_t)1 << (bits - 1));
    a = tir_binary(c, TIR_SHR, tir_add(c, a, half), tir_int(c, v->dt, bits));
    return tir_cast(c, v->dt, tir_cast(c, v->plan.fixed, a));
}

static tir_expr_ref fixed_times(compiler *c, const fft_ctx *v, tir_expr_ref a, int64_t k)
{
    return rounded(c, v, tir_mul(c, a, tir_int(c, v->dt, k)));
}

static complex_expr fixed_divided(compiler *c, const fft_ctx *v, complex_expr a, int64_t k)
{
    const int64_t part = dtype_max_int(v->plan.fixed) / k;
    return (complex_expr){fixed_times(c, v, a.re, part), fixed_times(c, v, a.im, part)};
}

static complex_expr fixed_product(compiler *c, const fft_ctx *v, complex_expr a, complex_expr b)
{
    const complex_expr y = multiply(c, v, a, b);
    return (complex_expr){rounded(c, v, y.re), rounded(c, v, y.im)};
}

/* A sum or difference that is a number of its own before it is multiplied. */
static tir_expr_ref wrapped(compiler *c, const fft_ctx *v, tir_expr_ref a)
{
    return tir_cast(c, v->dt, tir_cast(c, v->plan.fixed, a));
}

static tir_expr_ref fixed_half(compiler *c, const fft_ctx *v, tir_expr_ref a)
{
    return tir_binary(c, TIR_SHR, a, tir_int(c, v->dt, 1));
}

/* Number q of three: the other two share half of their sum, and turn their difference by a right angle. */
static complex_expr fixed_three(compiler *c, const fft_ctx *v, int64_t q, const complex_expr *in)
{
    const complex_expr u = plus(c, in[1], in[2]), d = minus(c, in[1], in[2]);
    const int64_t sine = fft_fixed_part(&v->plan, 1, v->plan.points / 3, v->plan.points);
    if (q == 0)
        return plus(c, in[0], u);
    const complex_expr middle = {difference(c, in[0].re, fixed_half(c, v, u.re)),
                                 difference(c, in[0].im, fixed_half(c, v, u.im))};
    const complex_expr side = {fixed_times(c, v, d.im, sine), negative(c, fixed_times(c, v, d.re, sine))};
    return q == 1 ? minus(c, middle, side) : plus(c, middle, side);
}

/* Number q of five: pairs of numbers that are as far from the first share their products. */
static complex_expr fixed_five(compiler *c, const fft_ctx *v, int64_t q, const complex_expr *in)
{
    const complex_expr u[2] = {plus(c, in[1], in[4]), plus(c, in[2], in[3])};
    const complex_expr d[2] = {minus(c, in[1], in[4]), minus(c, in[2], in[3])};
    complex_expr all = in[0], side = {NULL, NULL};
    for (int64_t p = 0; p < 2; p++) {
        if (q == 0) {
            all = plus(c, all, u[p]);
            continue;
        }
        const int64_t turn = (p + 1) * (q > 2 ? 5 - q : q) % 5, near = turn > 2 ? 5 - turn : turn;
        const int64_t at = near * (v->plan.points / 5);
        const int64_t cosine = fft_fixed_part(&v->plan, 0, at, v->plan.points);
        const int64_t sine = fft_fixed_part(&v->plan, 1, at, v->plan.points);
        tir_expr_ref re = fixed_times(c, v, d[p].im, sine), im = fixed_times(c, v, d[p].re, sine);
        all = plus(c, all, (complex_expr){fixed_times(c, v, u[p].re, cosine), fixed_times(c, v, u[p].im, cosine)});
        const complex_expr one = turn > 2 ? (complex_expr){negative(c, re), im} : (complex_expr){re, negative(c, im)};
        side = p == 0 ? one : plus(c, side, one);
    }
    return q == 0 ? all : q > 2 ? plus(c, all, side) : minus(c, all, side);
}

/* --- what a step reads --- */

static tir_expr_ref read_x(te_graph *g, const fft_ctx *v, tir_expr_ref b, tir_expr_ref at, int64_t part)
{
    return tir_cast(g->c, v->dt, te_read(g, v->x, (tir_expr_ref[]){b, at, te_i64(g, part)}));
}

/* Entry `at` of a vector of n real parts and n imaginary ones, which begins at `offset` of the table. */
static complex_expr read_table(te_graph *g, const fft_ctx *v, int64_t offset, int64_t n, tir_expr_ref at)
{
    tir_expr_ref re = tir_add(g->c, te_i64(g, offset), at), im = tir_add(g->c, te_i64(g, offset + n), at);
    return (complex_expr){tir_cast(g->c, v->dt, te_read(g, v->table, &re)),
                          tir_cast(g->c, v->dt, te_read(g, v->table, &im))};
}

/* The constants of the two forms for real numbers, which are the last ones. */
static complex_expr read_real_table(te_graph *g, const fft_ctx *v, tir_expr_ref at)
{
    const int64_t n = fft_real_entries(&v->plan);
    return read_table(g, v, fft_table_length(&v->plan) - 2 * n, n, at);
}

/* The same in fixed point: numbers k and N / 2 - k are made together, from the half of each. */
static complex_expr from_half_fixed(te_graph *g, const fft_ctx *v, tir_expr_ref b, tir_expr_ref at)
{
    compiler *c = g->c;
    const int64_t n = v->plan.points;
    tir_expr_ref is_low = tir_binary(c, TIR_LT, tir_mul(c, at, te_i64(g, 2)), te_i64(g, n)), zero = te_i64(g, 0);
    tir_expr_ref k = tir_select(c, is_low, at, tir_sub(c, te_i64(g, n), at)), back = tir_sub(c, te_i64(g, n), k);
    const complex_expr x = {read_x(g, v, b, k, 0), read_x(g, v, b, k, 1)};
    const complex_expr y = {read_x(g, v, b, back, 0), wrapped(c, v, negative(c, read_x(g, v, b, back, 1)))};
    const complex_expr near = fixed_divided(c, v, x, 2), far = fixed_divided(c, v, y, 2);
    const complex_expr even = plus(c, near, far);
    const complex_expr odd = fixed_product(c, v, minus(c, near, far), read_real_table(g, v, k));
    const complex_expr ends = {wrapped(c, v, tir_add(c, x.re, y.re)), wrapped(c, v, tir_sub(c, x.re, y.re))};
    const complex_expr first = fixed_divided(c, v, ends, 2), low = plus(c, even, odd);
    const complex_expr high = {difference(c, even.re, odd.re), difference(c, odd.im, even.im)};
    tir_expr_ref is_first = tir_binary(c, TIR_EQ, at, zero);
    return (complex_expr){
        wrapped(c, v, tir_select(c, is_first, first.re, tir_select(c, is_low, low.re, high.re))),
        wrapped(c, v, tir_select(c, is_first, first.im, tir_select(c, is_low, low.im, high.im)))};
}

/* Point k of N / 2 of which the real numbers 2 k and 2 k + 1 are the parts, from the half spectrum: the sum of numbers
 * k and N / 2 - k, the second one mirrored, and i exp(2 pi i k / N) times their difference. The imaginary parts of
 * numbers 0 and N / 2 do not count. */
static complex_expr from_half(te_graph *g, const fft_ctx *v, tir_expr_ref b, tir_expr_ref k)
{
    compiler *c = g->c;
    const int64_t n = v->plan.points;
    tir_expr_ref back = tir_sub(c, te_i64(g, n), k), zero = tir_const(c, v->dt, 0);
    tir_expr_ref first = tir_binary(c, TIR_EQ, k, te_i64(g, 0));
    complex_expr x = {read_x(g, v, b, k, 0), tir_select(c, first, zero, read_x(g, v, b, k, 1))};
    complex_expr y = {read_x(g, v, b, back, 0), tir_select(c, first, zero, read_x(g, v, b, back, 1))};
    complex_expr mirrored = {y.re, negative(c, y.im)};
    complex_expr odd = multiply(c, v, read_real_table(g, v, k), minus(c, x, mirrored));
    return plus(c, plus(c, x, mirrored), (complex_expr){negative(c, odd.im), odd.re});
}

/* Number j of row s. */
static complex_expr read_point(te_graph *g, const fft_ctx *v, tir_expr_ref b, tir_expr_ref s, tir_expr_ref j)
{
    compiler *c = g->c;
    tir_expr_ref two = te_i64(g, 2);
    if (v->before)
        return (complex_expr){tir_cast(c, v->dt, te_read(g, v->before, (tir_expr_ref[]){b, te_i64(g, 0), s, j})),
                              tir_cast(c, v->dt, te_read(g, v->before, (tir_expr_ref[]){b, te_i64(g, 1), s, j}))};
    switch (v->plan.form) {
    case FFT_REAL: {
        tir_expr_ref even = tir_mul(c, two, s);
        return (complex_expr){read_x(g, v, b, even, 0), read_x(g, v, b, tir_add(c, even, te_i64(g, 1)), 0)};
    }
    case FFT_HALF: return v->plan.fixed ? from_half_fixed(g, v, b, s) : from_half(g, v, b, s);
    default:
        return (complex_expr){read_x(g, v, b, s, 0),
                              tir_is_const(v->x->shape[2], 2) ? read_x(g, v, b, s, 1) : NULL};
    }
}

/* --- stages --- */

/* Input p of a step, times its constant. Of the first step all constants are 1. */
static complex_expr read_turned(te_graph *g, const fft_ctx *v, int64_t p, tir_expr_ref b, tir_expr_ref s,
                                tir_expr_ref j)
{
    complex_expr x = read_point(g, v, b, s, j);
    if (v->plan.fixed)
        x = fixed_divided(g->c, v, x, v->plan.radix[v->step]);
    if (p == 0 || v->step == 0)
        return x;
    const complex_expr w = read_table(g, v, v->offset + 2 * (p - 1) * v->done, v->done, j);
    return v->plan.fixed ? fixed_product(g->c, v, x, w) : multiply(g->c, v, x, w);
}

static complex_expr step_sum(compiler *c, const fft_ctx *v, int64_t r, int64_t q, const complex_expr *in)
{
    if (v->plan.fixed && r % 2 != 0)
        return r == 3 ? fixed_three(c, v, q, in) : fixed_five(c, v, q, in);
    return small_sum(c, v, r, q, in, 1);
}

/* Part `part` of number n of row t behind the step. */
static tir_expr_ref step_value(te_graph *g, const fft_ctx *v, tir_expr_ref b, tir_expr_ref part, tir_expr_ref t,
                               tir_expr_ref n)
{
    compiler *c = g->c;
    const int64_t r = v->plan.radix[v->step], rows = v->plan.points / (v->done * r);
    tir_expr_ref q = tir_binary(c, TIR_FLOORDIV, n, te_i64(g, v->done)),
                 j = tir_binary(c, TIR_FLOORMOD, n, te_i64(g, v->done)), zero = tir_const(c, v->dt, 0), value = NULL;
    complex_expr in[FFT_MOST_RADIX];
    for (int64_t p = 0; p < r; p++)
        in[p] = read_turned(g, v, p, b, tir_add(c, t, te_i64(g, p * rows)), j);
    for (int64_t k = r; k-- > 0;) {
        complex_expr y = step_sum(c, v, r, k, in);
        tir_expr_ref one = tir_select(c, tir_binary(c, TIR_EQ, part, te_i64(g, 0)), y.re, y.im ? y.im : zero);
        value = value ? tir_select(c, tir_binary(c, TIR_EQ, q, te_i64(g, k)), one, value) : one;
    }
    return value;
}

static tir_expr_ref step_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const fft_ctx *v = ctx;
    return tir_cast(g->c, v->kept, step_value(g, v, idx[0], idx[1], idx[2], idx[3]));
}

/* The last step, in the layout of the result: parts side by side. */
static tir_expr_ref last_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const fft_ctx *v = ctx;
    compiler *c = g->c;
    tir_expr_ref n = idx[1], part = idx[2], two = te_i64(g, 2);
    double scale = v->plan.inverse && !v->plan.fixed ? 1 / (double)v->plan.points : 1;
    if (v->plan.form == FFT_HALF) {
        n = tir_binary(c, TIR_FLOORDIV, idx[1], two);
        part = tir_binary(c, TIR_FLOORMOD, idx[1], two);
        scale = v->plan.fixed ? 1 : scale / 2;
    }
    tir_expr_ref value = step_value(g, v, idx[0], part, te_i64(g, 0), n);
    return tir_cast(c, v->x->dt, scale == 1 ? value : tir_mul(c, tir_float(c, v->dt, scale), value));
}

/* The same in fixed point: numbers k and N / 2 - k are made together. */
static tir_expr_ref half_body_fixed(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const fft_ctx *v = ctx;
    compiler *c = g->c;
    tir_expr_ref n = te_i64(g, v->plan.points), at = idx[1], zero = te_i64(g, 0), nil = tir_const(c, v->dt, 0);
    tir_expr_ref is_low = tir_binary(c, TIR_LT, tir_mul(c, at, te_i64(g, 2)), n);
    tir_expr_ref k = tir_select(c, is_low, at, tir_sub(c, n, at));
    tir_expr_ref back = tir_select(c, tir_binary(c, TIR_EQ, k, zero), zero, tir_sub(c, n, k));
    const complex_expr x = read_point(g, v, idx[0], zero, k);
    complex_expr y = read_point(g, v, idx[0], zero, back);
    y.im = wrapped(c, v, negative(c, y.im));
    const complex_expr near = fixed_divided(c, v, x, 2), far = fixed_divided(c, v, y, 2), even = plus(c, near, far);
    const complex_expr odd = fixed_product(c, v, minus(c, near, far), read_real_table(g, v, k));
    tir_expr_ref re = tir_select(c, is_low, tir_add(c, even.re, odd.re), tir_sub(c, even.re, odd.re));
    tir_expr_ref im = tir_select(c, is_low, tir_add(c, even.im, odd.im), tir_sub(c, odd.im, even.im));
    tir_expr_ref is_end = tir_binary(c, TIR_EQ, k, zero);
    tir_expr_ref end = tir_select(c, is_low, tir_add(c, near.re, near.im), tir_sub(c, near.re, near.im));
    re = tir_select(c, is_end, end, fixed_half(c, v, re));
    im = tir_select(c, is_end, nil, fixed_half(c, v, im));
    return tir_cast(c, v->x->dt, tir_select(c, tir_binary(c, TIR_EQ, idx[2], zero), re, im));
}

/* Number k of the spectrum of real numbers: half the sum of numbers k and N / 2 - k, the second one mirrored, and
 * -i exp(-2 pi i k / N) times half their difference. */
static tir_expr_ref half_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const fft_ctx *v = ctx;
    compiler *c = g->c;
    tir_expr_ref n = te_i64(g, v->plan.points), k = idx[1], zero = te_i64(g, 0);
    tir_expr_ref at = tir_select(c, tir_binary(c, TIR_EQ, k, n), zero, k),
                 back = tir_select(c, tir_binary(c, TIR_EQ, k, zero), zero, tir_sub(c, n, k));
    complex_expr x = read_point(g, v, idx[0], zero, at), y = read_point(g, v, idx[0], zero, back);
    complex_expr mirrored = {y.re, negative(c, y.im)};
    complex_expr odd = multiply(c, v, read_real_table(g, v, k), minus(c, x, mirrored)), even = plus(c, x, mirrored);
    complex_expr twice = {sum(c, even.re, odd.im), difference(c, even.im, odd.re)};
    tir_expr_ref part = tir_select(c, tir_binary(c, TIR_EQ, idx[2], zero), twice.re, twice.im);
    return tir_cast(c, v->x->dt, times(c, v, 0.5, part));
}

bool compute_fft(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    compiler *c = g->c;
    fft_ctx *v = arena_new(&c->mem, fft_ctx);
    const type *t = te_out_type(n, 0);
    *v = (fft_ctx){.x = in[0], .table = in[1], .done = 1, .dt = te_acc_dtype(t->dt)};
    fft_plan_of(n, &v->plan);
    v->kept = v->plan.fixed ? v->plan.fixed : v->dt;
    if (v->plan.fixed) /* products have twice the bits */
        v->dt = v->plan.fixed == DT_I16 ? DT_I32 : DT_I64;
    tir_expr_ref const *dims = te_shape(g, t);
    int64_t sums = 0;
    for (; v->step < v->plan.n_steps; v->step++) {
        const int64_t r = v->plan.radix[v->step], rows = v->plan.points / (v->done * r);
        const bool last = v->step + 1 == v->plan.n_steps && v->plan.form != FFT_REAL;
        tir_expr_ref const whole[4] = {dims[0], te_i64(g, 2), te_i64(g, rows), te_i64(g, v->done * r)};
        te_tensor *y = last ? te_compute(g, "spectrum", t->dt, 3, dims, last_body, v)
                            : te_compute(g, "step", v->kept, 4, whole, step_body, v);
        y->node->tag = TE_FFT_STEP;
        v->before = out[0] = y;
        v->offset += v->step > 0 ? 2 * (r - 1) * v->done : 0;
        v->done *= r;
        sums += 4 * (r - 1);
    }
    if (v->plan.form == FFT_REAL)
        out[0] = te_compute(g, "spectrum", t->dt, 3, dims, v->plan.fixed ? half_body_fixed : half_body, v);
    te_count_macs(g, 3, (int64_t[]){te_most(g, dims[0]), v->plan.points, sums});
    return true;
}
