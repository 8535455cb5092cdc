/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definitions of average pools of quantised numbers. Over all of a picture, by a window of that size, too,
 * sums are integers and round as a convolution's. Over smaller windows onnxruntime sums x_scale * (x - zero) in f32,
 * one after the other, and so does the method "float". The method "integer" sums the numbers and multiplies by
 * x_scale / (y_scale * count) in 32 bits; where what comes out is so near to the middle of two integers that the
 * roundings of f32 could decide otherwise, the window is summed again as onnxruntime does: rarely, unless one scale
 * before and behind makes ties. */
#include "te/op/nn.h"
#include "te/op/qnn_round.h"

#include <math.h>
#include <string.h>

static bool is_half_up(const graph_node *n)
{
    return strcmp(graph_attr_string(n, "rounding"), "half_up") == 0;
}

static te_tensor *operand(const graph_node *n, te_tensor *const *in, uint32_t i)
{
    return i < n->n_inputs ? in[i] : NULL;
}

static tir_expr_ref i32(te_graph *g, int64_t v)
{
    return tir_int(g->c, DT_I32, v);
}

/* In 32 bits: the sum times x_scale / (y_scale * count), as factor / count, and the zero point, in 2^-bits. The floats
 * are x_scale and y_scale times the power of two that makes x_scale an integer of 24 bits. */
typedef struct window_sum {
    int64_t factor, reach, mantissa, x_zero, zero;
    int bits;
    float y_scale;
} window_sum;

typedef struct average {
    const graph_node *n;
    tir_expr_ref x_scale, y_scale, x_zero, y_zero;
    bool half_up, global;
    bool as_is; /* one scale and zero point before and behind: the mean of the codes, as TensorFlow Lite has it */
    bool in_integers, wide; /* wide: numbers of 16 bits */
    bool windows; /* in integers, by `fixed` */
    window_sum fixed;
    const te_tensor *factor, *base; /* then: of the windows at a place; */
    const te_tensor *near;   /* means in fixed point; */
    const te_tensor *again;  /* sums in f32 of windows that are near the middle of two integers */
} average;

/* Exact in i32, or as dequantised numbers, which are summed one after the other. */
static tir_expr_ref average_term(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    te_pool *p = ctx, whole = *p;
    const average *v = p->more;
    whole.acc = DT_I32;
    tir_expr_ref x = te_pool_body(g, &whole, idx);
    if (v->x_zero && !(v->windows && p->unpadded)) /* else of all terms at once */
        x = tir_sub(g->c, x, tir_cast(g->c, DT_I32, v->x_zero));
    return p->acc == DT_I32 ? x : qnn_product(g, x, v->x_scale);
}

/* --- windows without floats --- */

#define LEAST_BITS 10

/* The farthest that a number can be from its zero point. */
static int64_t reach_of(dtype dt, int64_t zero)
{
    int64_t up = dtype_max_int(dt) - zero, down = zero - dtype_min_int(dt);
    return up > down ? up : down;
}

/* f32 adds n products of at most x_scale * most, which it rounds, with an error of x_scale * most * 2^-24 for each
 * product and for each partial sum by its length; divides twice; adds the zero point, where the result is below 2^9.
 * The factor is off by a half, its quotient by the count by one together. */
static bool read_window_sum(const graph_node *n, const te_pool *p, window_sum *out)
{
    float xs, ys;
    int64_t xz, yz, taps = 1;
    int exponent;
    for (uint32_t i = 0; i < p->w->n && taps < 4096; i++)
        taps *= p->w->kernel[i];
    if (taps >= 4096 || !qnn_known_scale(n, 1, &xs) || !qnn_known_scale(n, 2, &ys) || !qnn_known_zero(n, 3, &xz) ||
        !qnn_known_zero(n, 4, &yz) || !(xs > 0x1p-40f && xs < 0x1p40f && ys > 0x1p-40f && ys < 0x1p40f))
        return false;
    const double ratio = (double)xs / (double)ys, most = (double)reach_of(p->x->dt, xz);
    const double off = (ratio * most * (0.5 * (double)taps + 4.0) + 512.0) * 0x1p-24 * 1.01;
    *out = (window_sum){.bits = 30, .x_zero = xz, .zero = yz};
    while (out->bits > LEAST_BITS && ldexp(ratio * most + 514.0, out->bits) + most * (double)taps > 2147483647.0)
        out->bits--;
    out->factor = llrint(ldexp(ratio, out->bits));
    out->reach = (int64_t)(most * (double)taps + ldexp(off, out->bits)) + 2;
    (void)frexp((double)xs, &exponent);
    out->mantissa = (int64_t)ldexp((double)xs, 24 - exponent);
    out->y_scale = ldexpf(ys, 24 - exponent);
    return ldexp(ratio * most + 514.0, out->bits) + most * (double)taps <= 2147483647.0 &&
           out->reach < (int64_t)1 << (out->bits - 2);
}

#define FEW_NEAR 16 /* of so many sums, one may be near */

/* Whether sums of integers are faster. Where products of f32 are instructions, these sums have to be of several
 * channels at a time, and few of whole windows near the middle of two integers: one scale before and behind makes ties
 * of many. */
static bool integers_pay(const graph_node *n, const te_pool *p, const window_sum *v)
{
    int64_t taps = 1, near = 0;
    if (!graph_attr_int(n, "products"))
        return true;
    for (uint32_t i = 0; i < p->w->n; i++)
        taps *= p->w->kernel[i];
    const int64_t first = taps * (dtype_min_int(p->x->dt) - v->x_zero),
                  end = taps * (dtype_max_int(p->x->dt) - v->x_zero), factor = (v->factor + taps / 2) / taps,
                  unit = (int64_t)1 << v->bits;
    for (int64_t s = first; s <= end && p->unpadded; s++)
        near += ((s * factor + v->reach - unit / 2) & (unit - 1)) <= 2 * v->reach;
    return p->unpadded && near * FEW_NEAR <= end - first;
}

/* What is added to codes before the rounding: the zero point, and what makes u8 of i8, where a kernel of onnxruntime
 * does so; else 0 and NULL. */
static tir_expr_ref zero_inside(te_graph *g, const average *v, dtype dt, int64_t *offset)
{
    const bool inside = !graph_attr_int(v->n, "in_steps");
    *offset = inside ? qnn_code_offset(v->n, dt) : 0;
    return inside ? qnn_offset_code(g, *offset, v->y_zero) : NULL;
}

/* x_scale / (y_scale * count) in 2^-bits, at a place of the picture. */
static tir_expr_ref window_factor(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const te_pool *p = ctx;
    const average *v = p->more;
    compiler *c = g->c;
    tir_expr_ref at[NN_MAX_SPATIAL + 2] = {NULL};
    memcpy(at + 2, idx, p->w->n * sizeof *idx);
    tir_expr_ref count = tir_cast(c, DT_I32, te_pool_count(g, p, at)), half = tir_binary(c, TIR_SHR, count, i32(g, 1));
    return tir_binary(c, TIR_DIV, tir_add(c, half, i32(g, v->fixed.factor)), count);
}

/* What a sum of 0 becomes there: the zero point of y less those of x, and a half and the reach. */
static tir_expr_ref window_base(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const te_pool *p = ctx;
    const average *v = p->more;
    const window_sum *f = &v->fixed;
    compiler *c = g->c;
    const int64_t unit = (int64_t)1 << f->bits;
    tir_expr_ref at[NN_MAX_SPATIAL + 2] = {NULL};
    memcpy(at + 2, idx, p->w->n * sizeof *idx);
    te_pool inside = *p;
    inside.include_pad = false;
    tir_expr_ref start = i32(g, f->zero * unit + unit / 2 + f->reach);
    if (!p->unpadded) /* terms are less x's zero point */
        return start;
    tir_expr_ref zeros = tir_mul(c, tir_cast(c, DT_I32, te_pool_count(g, &inside, at)), i32(g, f->x_zero));
    return tir_sub(c, start, tir_mul(c, zeros, te_read(g, v->factor, idx)));
}

/* The mean in 2^-bits: where it is not near, what is above these bits is the result. */
static tir_expr_ref window_fixed(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const te_pool *p = ctx;
    const average *v = p->more;
    return tir_add(g->c, tir_mul(g->c, te_read(g, p->sum, idx), te_read(g, v->factor, idx + 2)),
                   te_read(g, v->base, idx + 2));
}

static tir_expr_ref window_is_near(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const te_pool *p = ctx;
    const average *v = p->more;
    const int64_t unit = (int64_t)1 << v->fixed.bits;
    tir_expr_ref part = tir_binary(g->c, TIR_BITAND, te_read(g, v->near, idx), i32(g, unit - 1));
    return tir_call1(g->c, TIR_RARE, tir_binary(g->c, TIR_LE, part, i32(g, 2 * v->fixed.reach)));
}

/* x_scale * (x - zero), rounded to f32 once, behind the sum of two parts of the product that f32 has. */
static tir_expr_ref window_term(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    te_pool *p = ctx, whole = *p;
    const average *v = p->more;
    compiler *c = g->c;
    whole.acc = DT_I32;
    tir_expr_ref x = te_pool_body(g, &whole, idx);
    if (v->x_zero)
        x = tir_sub(c, x, tir_cast(c, DT_I32, v->x_zero));
    if (graph_attr_int(v->n, "products"))
        return qnn_product(g, x, tir_float(c, DT_F32, (double)v->fixed.mantissa));
    tir_expr_ref high = tir_cast(c, DT_F32, tir_mul(c, x, i32(g, v->fixed.mantissa >> 8)));
    tir_expr_ref low = tir_cast(c, DT_F32, tir_mul(c, x, i32(g, v->fixed.mantissa & 255)));
    return tir_add(c, tir_mul(c, high, tir_float(c, DT_F32, 256)), low);
}

/* What onnxruntime makes of the sum of a window in f32. */
static tir_expr_ref rounded_mean(te_graph *g, const te_pool *p, tir_expr_ref sum, tir_expr_ref y_scale,
                                 tir_expr_ref count)
{
    const average *v = p->more;
    compiler *c = g->c;
    const dtype dt = p->x->dt;
    int64_t offset;
    tir_expr_ref zero = zero_inside(g, v, dt, &offset);
    tir_expr_ref y = tir_binary(c, TIR_DIV, tir_binary(c, TIR_DIV, sum, tir_cast(c, DT_F32, count)), y_scale);
    y = zero ? tir_add(c, y, tir_cast(c, DT_F32, zero)) : y;
    if (v->windows && !graph_attr_int(v->n, "products")) {
        y = tir_add(c, qnn_rounded_near(g, y), i32(g, zero ? -offset : v->fixed.zero));
        return qnn_saturated(g, y, DT_I32, dt);
    }
    if (zero)
        return qnn_rounded_code(g, offset, dt, y);
    return qnn_saturated(g, qnn_moved(g, DT_F32, tir_call1(c, TIR_RINT, y), v->y_zero), DT_F32, dt);
}

static tir_expr_ref average_windows(te_graph *g, const te_pool *p, tir_expr_ref const *idx)
{
    const average *v = p->more;
    compiler *c = g->c;
    tir_expr_ref count = tir_cast(c, DT_I32, te_pool_count(g, p, idx));
    tir_expr_ref slow = rounded_mean(g, p, te_read(g, v->again, idx),
                                     tir_float(c, DT_F32, (double)v->fixed.y_scale), count);
    tir_expr_ref fast = tir_binary(c, TIR_SHR, te_read(g, v->near, idx), i32(g, v->fixed.bits));
    fast = qnn_saturated(g, fast, DT_I32, p->x->dt);
    return tir_select(c, window_is_near(g, (void *)p, idx), slow, fast);
}

/* The stages between the sums of integers and the result. */
static void window_stages(te_graph *g, const graph_node *n, te_pool *p, average *v)
{
    te_pool near = *p;
    near.acc = DT_F32;
    near.only = window_is_near;
    tir_expr_ref const *places = te_shape(g, te_out_type(n, 0)) + 2;
    te_tensor *y = te_compute(g, "avg_pool_factor", DT_I32, p->w->n, places, window_factor, p);
    y->node->tag = "factor";
    v->factor = y;
    y = te_compute(g, "avg_pool_base", DT_I32, p->w->n, places, window_base, p);
    y->node->tag = "base";
    v->base = y;
    y = te_compute(g, "avg_pool_near", DT_I32, p->x->rank, te_shape(g, te_out_type(n, 0)), window_fixed, p);
    y->node->tag = "near";
    v->near = y;
    y = te_pool_reduce(g, n, "avg_pool_again", &near, TE_SUM, window_term);
    y->node->tag = "again";
    v->again = y;
}

/* --- halves up --- */

static nn_mean mean_of(const graph_node *n, const te_pool *p)
{
    int64_t most = 1;
    float xs, ys;
    for (uint32_t i = 0; i < p->w->n && most < INT32_MAX; i++)
        most *= p->w->kernel[i];
    const bool known = qnn_known_scale(n, 1, &xs) && qnn_known_scale(n, 2, &ys);
    return nn_mean_of(most, known, known ? ilogb((double)ys) - ilogb((double)xs) : 0);
}

/* The sum, by the number of its terms, at y's scale. */
static tir_expr_ref average_half_up(te_graph *g, const te_pool *p, tir_expr_ref sum, tir_expr_ref count)
{
    const average *v = p->more;
    compiler *c = g->c;
    const nn_mean m = mean_of(v->n, p);
    const dtype dt = m.wide ? DT_I64 : DT_I32;
    count = tir_cast(c, dt, count);
    tir_expr_ref half = tir_binary(c, TIR_SHR, count, tir_int(c, dt, 1));
    tir_expr_ref factor = tir_binary(c, TIR_DIV, tir_add(c, half, tir_int(c, dt, (int64_t)1 << m.k)), count);
    tir_expr_ref n = tir_sub(c, qnn_log2_of(g, v->n, 2, v->y_scale), qnn_log2_of(g, v->n, 1, v->x_scale));
    n = tir_add(c, n, i32(g, m.k));
    tir_expr_ref y = tir_mul(c, tir_cast(c, dt, sum), factor);
    return qnn_moved(g, DT_I32, m.wide ? qnn_shifted_wide(g, y, n) : qnn_shifted(g, y, n), v->y_zero);
}

/* Halves away from 0. */
static tir_expr_ref average_as_is(te_graph *g, const average *v, tir_expr_ref sum, tir_expr_ref count)
{
    compiler *c = g->c;
    count = tir_cast(c, DT_I32, count);
    if (v->x_zero)
        sum = tir_add(c, sum, tir_mul(c, count, tir_cast(c, DT_I32, v->x_zero)));
    tir_expr_ref half = tir_binary(c, TIR_SHR, count, i32(g, 1));
    tir_expr_ref away = tir_select(c, tir_binary(c, TIR_GT, sum, i32(g, 0)), half, tir_sub(c, i32(g, 0), half));
    return tir_binary(c, TIR_DIV, tir_add(c, sum, away), count);
}

/* The mean of codes less their zero point, ties to even. */
static tir_expr_ref mean_to_even(te_graph *g, tir_expr_ref sum, tir_expr_ref count)
{
    compiler *c = g->c;
    tir_expr_ref q = tir_floordiv(c, sum, count), rest = tir_sub(c, sum, tir_mul(c, q, count));
    tir_expr_ref twice = tir_add(c, rest, rest), odd = tir_binary(c, TIR_BITAND, q, i32(g, 1));
    tir_expr_ref above = tir_binary(c, TIR_GT, tir_add(c, twice, odd), count);
    return tir_add(c, q, tir_select(c, above, i32(g, 1), i32(g, 0)));
}

/* Of 16 bits, over windows or not: the quotient of the exact sum. */
static tir_expr_ref average_wide(te_graph *g, const te_pool *p, tir_expr_ref sum, tir_expr_ref count)
{
    const average *v = p->more;
    compiler *c = g->c;
    float xs = 0, ys = 1;
    int64_t most = 1;
    const bool known = v->in_integers && qnn_known_scale(v->n, 1, &xs) && qnn_known_scale(v->n, 2, &ys);
    for (uint32_t i = 0; i < p->w->n && most <= INT16_MAX; i++)
        most *= p->w->kernel[i];
    count = tir_cast(c, DT_I32, count);
    if (known && xs == ys)
        return qnn_moved(g, DT_I32, mean_to_even(g, sum, count), v->y_zero);
    tir_expr_ref y = tir_mul(c, tir_cast(c, DT_F64, sum), tir_cast(c, DT_F64, v->x_scale));
    y = tir_binary(c, TIR_DIV, y, tir_mul(c, tir_cast(c, DT_F64, v->y_scale), tir_cast(c, DT_F64, count)));
    y = qnn_rounded_real(g, y);
    tir_expr_ref whole = known ? qnn_mean_real(g, sum, count, most, (double)xs, (double)ys) : NULL;
    return qnn_moved(g, DT_I32, whole ? whole : y, v->y_zero);
}

/* As a convolution: the zero point is added behind the rounding, exactly. */
static tir_expr_ref average_global(te_graph *g, const te_pool *p, tir_expr_ref sum, tir_expr_ref count)
{
    const average *v = p->more;
    compiler *c = g->c;
    dtype dt = p->x->dt;
    float xs = 0, ys = 0;
    int64_t n = 0;
    bool count_is_known = tir_is_int(count, &n);
    count = tir_cast(c, DT_F32, count);
    tir_expr_ref k = tir_binary(c, TIR_DIV, v->x_scale, tir_mul(c, v->y_scale, count));
    if (v->in_integers) {
        bool known = qnn_known_scale(v->n, 1, &xs) && qnn_known_scale(v->n, 2, &ys) && count_is_known;
        volatile float divisor = ys * (float)n;
        float q = known ? xs / divisor : 0;
        k = known ? tir_float(c, DT_F32, (double)q) : k;
        return qnn_saturated(g, qnn_scaled_exactly(g, sum, k, known ? &q : NULL, v->y_zero, false, dt), DT_I32, dt);
    }
    tir_expr_ref y = tir_call1(c, TIR_RINT, tir_mul(c, tir_cast(c, DT_F32, sum), k));
    return qnn_saturated(g, qnn_moved(g, DT_F32, y, v->y_zero), DT_F32, dt);
}

static tir_expr_ref average_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const te_pool *p = ctx;
    const average *v = p->more;
    tir_expr_ref sum = te_read(g, p->sum, idx), count = te_pool_count(g, p, idx);
    if (v->wide)
        return qnn_saturated(g, average_wide(g, p, sum, count), DT_I32, p->x->dt);
    if (v->half_up)
        return qnn_saturated(g, average_half_up(g, p, sum, count), DT_I32, p->x->dt);
    if (v->as_is)
        return qnn_saturated(g, average_as_is(g, v, sum, count), DT_I32, p->x->dt);
    if (v->global)
        return average_global(g, p, sum, count);
    if (v->windows)
        return average_windows(g, p, idx);
    return rounded_mean(g, p, sum, v->y_scale, count);
}

static bool same_scales(const graph_node *n)
{
    float a, b;
    int64_t x, y;
    return qnn_known_scale(n, 1, &a) && qnn_known_scale(n, 2, &b) && a == b && qnn_known_zero(n, 3, &x) &&
           qnn_known_zero(n, 4, &y) && x == y;
}

/* One window, all of the picture: there onnxruntime runs its kernel for global pools. */
static bool is_whole(const graph_node *n, const te_pool *p)
{
    bool whole = !nn_has_border(n) && !graph_attr_int(n, "in_steps");
    int64_t extent = 0;
    for (uint32_t i = 0; whole && i < p->w->n; i++)
        whole = tir_is_int(p->extent[i], &extent) && extent == p->w->kernel[i];
    return whole;
}

/* What the mean is made of, by the pool's method: sums in integers or floats, of windows of other sums, or none at
 * all where scales do not change. */
static void choose_average(const graph_node *n, dtype dt, te_pool *p, average *v)
{
    const char *method = graph_attr_string(n, "method");
    v->half_up = is_half_up(n);
    v->in_integers = strcmp(method, "float") != 0;
    v->as_is = !v->half_up && v->in_integers && strcmp(method, "integer") != 0 && !p->include_pad && same_scales(n);
    v->wide = dtype_bits(dt) == 16 && !v->as_is;
    const bool exact = !v->half_up && !v->as_is && !v->global && !v->wide;
    v->windows = exact && v->in_integers && read_window_sum(n, p, &v->fixed) &&
                 integers_pay(n, p, &v->fixed);
    p->acc = exact && !v->windows ? DT_F32 : DT_I32;
}

static bool average_pool(te_graph *g, const graph_node *n, te_tensor *const *in, bool global, te_tensor **out)
{
    const type *t = te_out_type(n, 0);
    nn_window w;
    te_axis *reduce[NN_MAX_SPATIAL];
    te_pool p;
    tir_expr_ref zero = te_read_one(g, operand(n, in, 3));
    average v = {.n = n, .x_zero = zero};
    v.x_scale = te_read_one(g, in[1]);
    v.y_scale = te_read_one(g, in[2]);
    v.y_zero = te_read_one(g, operand(n, in, 4));
    if (!te_pool_setup(g, n, in[0], zero ? zero : tir_const(g->c, in[0]->dt, 0), &w, reduce, &p))
        return false;
    v.global = global || is_whole(n, &p);
    p.include_pad = !global && graph_attr_int(n, "count_include_pad") != 0;
    choose_average(n, in[0]->dt, &p, &v);
    p.more = &v;
    p.sum = te_pool_reduce(g, n, "avg_pool_sum", &p, TE_SUM, average_term);
    if (v.windows)
        window_stages(g, n, &p, &v);
    out[0] = te_compute(g, "avg_pool", t->dt, p.x->rank, te_shape(g, t), average_body, &p);
    out[0]->node->inline_hint = v.windows;
    return true;
}

bool compute_qnn_avg_pool(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return average_pool(g, n, in, false, out);
}

bool compute_qnn_global_avg_pool(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return average_pool(g, n, in, true, out);
}
