/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the pass use-integers for numbers of 16 bits: how far sums of products reach, and the scales by which they
 * are rounded, exactly (te/op/qnn_wide.c): as one factor in f64 where that makes no tie of what is none, and of a tie
 * nothing else; else as a product of two scales, which f64 has exactly, and a divisor. */
#include "graph/pass/qnn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FAR_BEYOND ((int64_t)1 << 60) /* any type of a sum, with room for what is added */

int64_t qnn_reach(const qnn_params *p)
{
    int64_t most = 0;
    for (int64_t i = 0; i < (p->zero ? p->zero->count : 1); i++) {
        int64_t z = qnn_zero(p, i), up = dtype_max_int(p->dt) - z, down = z - dtype_min_int(p->dt);
        most = up > most ? up : most;
        most = down > most ? down : most;
    }
    return most;
}

/* Of weights that are one number, whose logical size says nothing of the model's. */
static int64_t most_sum_of_splat(const qnn_params *x, const tensor_data *w, const qnn_params *of_w, int32_t line)
{
    const int64_t zeros = of_w->zero && of_w->zero->kind != TENSOR_SPLAT ? of_w->zero->count : 1;
    int64_t most = 0;
    for (int64_t i = 0; i < zeros; i++) {
        const int64_t one = llabs(tensor_get_i64(w, 0) - qnn_zero(of_w, i));
        most = one > most ? one : most;
    }
    const bool fits = i64_mul(most, w->count / w->dims[line], &most) && i64_mul(most, qnn_reach(x), &most);
    return fits && most < FAR_BEYOND ? most : FAR_BEYOND;
}

int64_t qnn_most_sum(compiler *c, const qnn_params *x, const tensor_data *w, const qnn_params *of_w, int32_t line,
                     int64_t products)
{
    if (!w)
        return products * qnn_reach(x) * 255;
    if (w->kind == TENSOR_SPLAT && w->count > 0)
        return most_sum_of_splat(x, w, of_w, line);
    const size_t lines = (size_t)w->dims[line];
    int64_t step = 1, most = 0, *sums = arena_array(&c->mem, int64_t, lines);
    memset(sums, 0, lines * sizeof *sums);
    for (uint32_t i = (uint32_t)line + 1; i < w->rank; i++)
        step *= w->dims[i];
    for (int64_t i = 0; i < w->count; i++) {
        int64_t at = i / step % w->dims[line];
        sums[at] += llabs(tensor_get_i64(w, i) - qnn_zero(of_w, at));
        most = sums[at] > most ? sums[at] : most;
    }
    return most * qnn_reach(x);
}

/* --- scales --- */

/* The mantissa of a scale without factors of 2. */
static int64_t odd_part(double x)
{
    int exponent;
    int64_t m = (int64_t)ldexp(frexp(x, &exponent), 53);
    while (m != 0 && m % 2 == 0)
        m /= 2;
    return m;
}

static int64_t common_factor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* x * p / y is no tie for any integer x, or p / y is exact: a tie is a half odd number below 2^17, which p's odd part
 * divides but for what y's has of it. */
static bool factor_will_do(double p, double y)
{
    const double k = p / y;
    const int64_t odd = odd_part(p), of_y = odd_part(y);
    return fma(k, y, -p) == 0 || odd / common_factor(odd, of_y) >= (int64_t)1 << 18;
}

graph_value *qnn_requantize_wide(rewriter *r, graph_value *acc, const qnn_params *x, const qnn_params *w,
                                 const qnn_params *y, int64_t axis, graph_value *zero, src_loc loc)
{
    compiler *c = r->c;
    const int64_t count = w ? w->scale->count : 1;
    const double by = (double)qnn_scale(y, 0);
    double *p = arena_array(&c->mem, double, (size_t)count);
    bool factors = true;
    for (int64_t i = 0; i < count; i++) {
        p[i] = (double)qnn_scale(x, 0) * (w ? (double)qnn_scale(w, i) : 1.0);
        factors &= factor_will_do(p[i], by);
    }
    for (int64_t i = 0; factors && i < count; i++)
        p[i] /= by;
    graph_value *in[4] = {acc,
                          rewrite_constant(r, tensor_dense(c, DT_F64, count == 1 ? 0 : 1, &count, p), "scale", loc),
                          rewrite_constant(r, tensor_scalar_f64(c, DT_F64, factors ? 1.0 : by), "y_scale", loc), zero};
    attr attrs[2] = {attr_int(c, "axis", axis), attr_dtype(c, "out_dtype", y->dt)};
    return r->failed || !acc ? NULL : rewrite_emit(r, "qnn.requantize", zero ? 4 : 3, in, 2, attrs, loc);
}

graph_value *qnn_change_scale(rewriter *r, graph_value *numbers, const qnn_params *x, const qnn_params *y,
                              graph_value *zero, src_loc loc)
{
    compiler *c = r->c;
    attr to = attr_dtype(c, "dtype", DT_I32);
    graph_value *v = rewrite_emit(r, "cast", 1, &numbers, 1, &to, loc);
    if (v && qnn_zero(x, 0) != 0) {
        graph_value *pair[2] = {v, rewrite_constant(r, tensor_scalar_i64(c, DT_I32, qnn_zero(x, 0)), "zero", loc)};
        v = rewrite_emit(r, "subtract", 2, pair, 0, NULL, loc);
    }
    return v ? qnn_requantize_wide(r, v, x, NULL, y, 1, zero, loc) : NULL;
}
