/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definitions of sums and products of quantised numbers, by every method of rounding. Which form they have,
 * graph/pass/qnn_form.c says: that of a kernel of onnxruntime, or step by step in f32. A sum in integers: the kernel
 * has y = fma(a, ra, fma(b, rb, F)) in f32, F = zero - fma(ra, za, rb * zb), ra and rb the scales by that of the
 * result. Here y is a * A + b * B + C in 32 bits, A = ra * 2^p and so on, rounded: a half for each unit of a, b and 1
 * is what A, B and C are off together. The roundings in f32 move it by less than 2^-24 of the inner and the outer sum;
 * those of the steps, by less than that of the operands, their sum and the quotient. Where y is nearer to the middle of
 * two integers than both, the float formula decides, in one of some thousand cases; the kernel's is made of sums of 64
 * bits that are rounded to f32, so that no double is needed. 1.4e8 sums, all codes by 2176 random scales and zero
 * points, powers of two among them, and 5e7 in steps: no difference. */
#include "te/op/qnn_round.h"

#include <math.h>
#include <string.h>

typedef struct binary_ctx {
    const graph_node *n;
    const te_tensor *a, *b;
    tir_expr_ref a_scale, b_scale, y_scale, a_zero, b_zero, y_zero; /* zero points: NULL for 0 */
    uint32_t rank;
    tir_expr_ref const *extents;
    int64_t offset; /* qnn_code_offset */
    const char *method;
    tir_op op; /* of the numbers: TIR_ADD, TIR_SUB or TIR_MUL */
    bool half_up, in_steps;
} binary_ctx;

static tir_expr_ref i32(te_graph *g, int64_t v)
{
    return tir_int(g->c, DT_I32, v);
}

static bool is_method(const binary_ctx *v, const char *name)
{
    return strcmp(v->method, name) == 0;
}

static bool known_scales(const binary_ctx *v, float *a, float *b, float *y)
{
    return qnn_known_scale(v->n, 1, a) && qnn_known_scale(v->n, 3, b) && qnn_known_scale(v->n, 4, y);
}

/* --- sums: halves up, and in floats --- */

/* Both at the finer of the two scales, which the type relation keeps near, summed in i32. */
static tir_expr_ref add_half_up(te_graph *g, const binary_ctx *v, tir_expr_ref a, tir_expr_ref b)
{
    compiler *c = g->c;
    tir_expr_ref ea = qnn_log2_of(g, v->n, 1, v->a_scale), eb = qnn_log2_of(g, v->n, 3, v->b_scale);
    tir_expr_ref least = tir_min(c, ea, eb);
    a = tir_binary(c, TIR_SHL, te_centred(g, DT_I32, a, v->a_zero), qnn_within_shift(g, tir_sub(c, ea, least), 0));
    b = tir_binary(c, TIR_SHL, te_centred(g, DT_I32, b, v->b_zero), qnn_within_shift(g, tir_sub(c, eb, least), 0));
    tir_expr_ref y = qnn_shifted(g, tir_binary(c, v->op, a, b), tir_sub(c, qnn_log2_of(g, v->n, 4, v->y_scale), least));
    return qnn_saturated(g, qnn_moved(g, DT_I32, y, v->y_zero), DT_I32, v->a->dt);
}

/* a * b + s, rounded once: a has 8 bits, so that the product is exact in f64. */
static tir_expr_ref fma_f32(te_graph *g, tir_expr_ref a, tir_expr_ref b, tir_expr_ref s)
{
    compiler *c = g->c;
    tir_expr_ref product = tir_mul(c, tir_cast(c, DT_F64, a), tir_cast(c, DT_F64, b));
    return tir_cast(c, DT_F32, tir_add(c, product, tir_cast(c, DT_F64, s)));
}

static tir_expr_ref dequantised(te_graph *g, tir_expr_ref x, tir_expr_ref scale, tir_expr_ref zero)
{
    compiler *c = g->c;
    return tir_call1(c, TIR_APART, tir_mul(c, tir_cast(c, DT_F32, te_centred(g, DT_I32, x, zero)), scale));
}

static tir_expr_ref f32(te_graph *g, float x)
{
    return tir_float(g->c, DT_F32, (double)x);
}

/* Of b, which a difference adds by a scale below 0: no rounding knows the sign. */
static float signed_scale(const binary_ctx *v, float scale)
{
    return v->op == TIR_SUB ? -scale : scale;
}

/* In fewer steps, with the same codes, before the rounding and without the zero point; NULL: there is no such form. */
static tir_expr_ref merged_steps(te_graph *g, const binary_ctx *v, tir_expr_ref a, tir_expr_ref b)
{
    compiler *c = g->c;
    qnn_steps s = {.dt = v->a->dt, .product = v->op == TIR_MUL, .in_steps = v->in_steps, .offset = v->offset};
    qnn_merged m;
    if (!known_scales(v, &s.a, &s.b, &s.y) || !qnn_known_zero(v->n, 5, &s.a_zero) ||
        !qnn_known_zero(v->n, 6, &s.b_zero) || !qnn_known_zero(v->n, 7, &s.y_zero))
        return NULL;
    s.b = signed_scale(v, s.b);
    if (!qnn_merge_steps(&s, &m))
        return NULL;
    if (s.product) {
        tir_expr_ref p = tir_mul(c, te_centred(g, DT_I32, a, v->a_zero), te_centred(g, DT_I32, b, v->b_zero));
        return tir_mul(c, tir_cast(c, DT_F32, p), f32(g, m.a));
    }
    tir_expr_ref off = f32(g, m.offset), ka = f32(g, m.a), kb = f32(g, m.b);
    a = tir_cast(c, DT_I32, a);
    b = tir_cast(c, DT_I32, b);
    return m.swapped ? fma_f32(g, b, kb, fma_f32(g, a, ka, off)) : fma_f32(g, a, ka, fma_f32(g, b, kb, off));
}

/* As the operators say, each of which rounds to f32: (a + b) / y_scale and the like of dequantised numbers. */
static tir_expr_ref in_steps(te_graph *g, const binary_ctx *v, tir_expr_ref a, tir_expr_ref b)
{
    a = dequantised(g, a, v->a_scale, v->a_zero);
    b = dequantised(g, b, v->b_scale, v->b_zero);
    return tir_binary(g->c, TIR_DIV, tir_binary(g->c, v->op, a, b), v->y_scale);
}

/* y, rounded. */
static tir_expr_ref code_of(te_graph *g, const binary_ctx *v, tir_expr_ref y)
{
    y = tir_call1(g->c, TIR_RINT, y);
    return qnn_saturated(g, qnn_moved(g, DT_F32, y, v->y_zero), DT_F32, v->a->dt);
}

static tir_expr_ref add_in_floats(te_graph *g, const binary_ctx *v, tir_expr_ref a, tir_expr_ref b)
{
    compiler *c = g->c;
    tir_expr_ref merged = merged_steps(g, v, a, b);
    if (merged || v->in_steps)
        return code_of(g, v, merged ? merged : in_steps(g, v, a, b));
    tir_expr_ref ra = tir_binary(c, TIR_DIV, v->a_scale, v->y_scale),
                 rb = tir_binary(c, TIR_DIV, v->b_scale, v->y_scale);
    dtype dt = v->a->dt;
    tir_expr_ref zeros = qnn_product(g, rb, qnn_offset_code(g, v->offset, v->b_zero));
    zeros = fma_f32(g, qnn_offset_code(g, v->offset, v->a_zero), ra, zeros);
    tir_expr_ref offset = /* onnxruntime's compiler contracts the sum of the products, too */
        tir_sub(c, tir_cast(c, DT_F32, qnn_offset_code(g, v->offset, v->y_zero)), zeros);
    tir_expr_ref y = fma_f32(g, qnn_offset_code(g, v->offset, b), rb, offset);
    y = fma_f32(g, qnn_offset_code(g, v->offset, a), ra, y);
    return qnn_rounded_code(g, v->offset, dt, y);
}

/* --- sums in integers --- */

/* a * ra + b * rb + offset as numbers of 32 bits, in 2^-bits, and exactly in 64 bits, in 2^-wide. */
typedef struct fixed_sum {
    int64_t a, b, offset, reach; /* reach: how near to a half the floats may decide otherwise */
    int64_t wide_a, wide_b, wide_offset;
    int bits, wide;
} fixed_sum;

/* Fraction bits of a number of 24 bits of mantissa. */
static int fraction_bits(double x)
{
    int n = 0;
    for (; x != rint(x) && n < 160; n++)
        x *= 2;
    return n;
}

static int most(int a, int b)
{
    return a > b ? a : b;
}

#define LEAST_BITS 14 /* fewer: the floats would have to decide often */

/* The numbers of 32 bits; off: how far the floats are from the exact sum, in 2^-24; most: no code is farther from 0. */
static bool fit_fixed_sum(double ra, double rb, double offset, double off, int64_t most, fixed_sum *out)
{
    const double outer = 255.0 * (fabs(ra) + fabs(rb)) + fabs(offset);
    *out = (fixed_sum){.bits = 30};
    while (out->bits > LEAST_BITS && ldexp(outer + 2, out->bits) > 2147483647.0)
        out->bits--;
    out->a = llrint(ldexp(ra, out->bits));
    out->b = llrint(ldexp(rb, out->bits));
    out->offset = llrint(ldexp(offset, out->bits));
    out->reach = most + 3 + (int64_t)ldexp(off, out->bits - 24);
    return ldexp(outer + 2, out->bits) <= 2147483647.0;
}

static bool ratio_fits(float r)
{
    return r > 0x1p-20f && r < 0x1p20f;
}

static bool read_fixed_sum(const binary_ctx *v, fixed_sum *out)
{
    float as, bs, ys;
    int64_t az, bz, yz, code = v->offset;
    if (!known_scales(v, &as, &bs, &ys) || !qnn_known_zero(v->n, 5, &az) || !qnn_known_zero(v->n, 6, &bz) ||
        !qnn_known_zero(v->n, 7, &yz))
        return false;
    const float ra = as / ys, rb = bs / ys;
    if (!ratio_fits(ra) || !ratio_fits(rb))
        return false;
    if (v->in_steps) { /* each operand is rounded, and what counts of their sum and the quotient is below 257 */
        const double a = (double)as / (double)ys, b = (double)signed_scale(v, bs) / (double)ys;
        const double off = 255.0 * (a + fabs(b)) + 514.0, offset = (double)yz - a * (double)az - b * (double)bz;
        return fit_fixed_sum(a, b, offset, off, v->a->dt == DT_I8 ? 128 : 255, out);
    }
    volatile float product = rb * (float)(bz + code); /* rounded by itself */
    const float zeros = (float)((double)ra * (double)(az + code) + (double)product);
    const float offset = (float)(yz + code) - zeros;
    const double inner = 255.0 * (double)rb + fabs((double)offset), outer = 255.0 * (double)ra + inner;
    const bool fits = fit_fixed_sum((double)ra, (double)rb, (double)offset, inner + 256, 255, out);
    out->wide = most(fraction_bits((double)ra), most(fraction_bits((double)rb), fraction_bits((double)offset)));
    if (!fits || ldexp(outer, out->wide) > 0x1p61)
        return false;
    out->wide_a = (int64_t)ldexp((double)ra, out->wide);
    out->wide_b = (int64_t)ldexp((double)rb, out->wide);
    out->wide_offset = (int64_t)ldexp((double)offset, out->wide);
    return true;
}

static tir_expr_ref i64(te_graph *g, int64_t v)
{
    return tir_int(g->c, DT_I64, v);
}

/* a * factor + s, exact in 64 bits, as f32: rounded once. */
static tir_expr_ref wide_step(te_graph *g, tir_expr_ref a, int64_t factor, tir_expr_ref s)
{
    compiler *c = g->c;
    return tir_cast(c, DT_F32, tir_add(c, tir_mul(c, tir_cast(c, DT_I64, a), i64(g, factor)), s));
}

/* What onnxruntime's kernel makes of codes as it has them. */
static tir_expr_ref add_wide(te_graph *g, const fixed_sum *s, tir_expr_ref a, tir_expr_ref b)
{
    compiler *c = g->c;
    tir_expr_ref inner = wide_step(g, b, s->wide_b, i64(g, s->wide_offset));
    tir_expr_ref outer = wide_step(g, a, s->wide_a, tir_cast(c, DT_I64, inner));
    return qnn_rounded_near(g, tir_mul(c, outer, tir_float(c, DT_F32, ldexp(1, -s->wide))));
}

static tir_expr_ref add_in_integers(te_graph *g, const binary_ctx *v, const fixed_sum *s, tir_expr_ref a,
                                    tir_expr_ref b)
{
    compiler *c = g->c;
    const int64_t offset = v->in_steps ? 0 : v->offset;
    tir_expr_ref slow = NULL;
    if (v->in_steps)
        slow = qnn_moved(g, DT_I32, qnn_rounded_near(g, in_steps(g, v, a, b)), v->y_zero);
    a = qnn_offset_code(g, offset, a);
    b = qnn_offset_code(g, offset, b);
    slow = slow ? slow : add_wide(g, s, a, b);
    tir_expr_ref y = tir_add(c, tir_mul(c, a, i32(g, s->a)), tir_mul(c, b, i32(g, s->b)));
    y = tir_add(c, y, i32(g, s->offset));
    tir_expr_ref rounded = qnn_rounded_fixed(g, y, s->bits, s->reach, slow);
    if (offset)
        rounded = tir_sub(c, rounded, i32(g, offset));
    return qnn_saturated(g, rounded, DT_I32, v->a->dt);
}

/* TensorFlow Lite's: both operands at twice the larger scale, with 20 more bits, or with 15 where they have 16. */
static tir_expr_ref add_fixed(te_graph *g, const binary_ctx *v, tir_expr_ref a, tir_expr_ref b)
{
    compiler *c = g->c;
    float as, bs, ys;
    if (!known_scales(v, &as, &bs, &ys))
        return NULL;
    const bool twice = is_method(v, "tflite");
    const int more = dtype_bits(v->a->dt) == 16 ? 15 : 20;
    const double top = 2.0 * (double)(as > bs ? as : bs);
    const double real[3] = {(double)as / top, (double)bs / top, top / ((double)(1 << more) * (double)ys)};
    qnn_fixed_factor by[3];
    for (uint32_t i = 0; i < 3; i++) {
        int32_t multiplier, shift;
        graph_fixed_scale(real[i], &multiplier, &shift);
        by[i] = qnn_fixed_by(g, twice, i == 2 && shift > 2, multiplier, shift); /* i < 2: by 1/2 at most, below 2^30 */
    }
    a = te_centred(g, DT_I32, a, v->a_zero);
    b = te_centred(g, DT_I32, b, v->b_zero);
    a = tir_mul(c, a, i32(g, 1 << more));
    b = tir_mul(c, b, i32(g, 1 << more));
    a = qnn_scaled_fixed(g, &by[0], a);
    b = qnn_scaled_fixed(g, &by[1], b);
    tir_expr_ref y = qnn_scaled_fixed(g, &by[2], tir_binary(c, v->op, a, b));
    return qnn_saturated(g, qnn_moved(g, DT_I32, y, v->y_zero), DT_I32, v->a->dt);
}

static tir_expr_ref add_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const binary_ctx *v = ctx;
    fixed_sum s;
    tir_expr_ref a = te_read_broadcast(g, v->a, v->rank, v->extents, idx),
                 b = te_read_broadcast(g, v->b, v->rank, v->extents, idx), y = NULL;
    if (v->half_up)
        return add_half_up(g, v, a, b);
    if (is_method(v, "tflite") || is_method(v, "fast"))
        y = add_fixed(g, v, a, b);
    else if (is_method(v, "integer") && read_fixed_sum(v, &s))
        y = add_in_integers(g, v, &s, a, b);
    return y ? y : add_in_floats(g, v, a, b);
}

/* --- products --- */

/* TensorFlow Lite's: the product of the codes, scaled as a convolution's sum. */
static tir_expr_ref mul_fixed(te_graph *g, const binary_ctx *v, tir_expr_ref product)
{
    float as, bs, ys;
    int32_t multiplier, shift;
    if (!known_scales(v, &as, &bs, &ys))
        return NULL;
    graph_fixed_scale((double)as * (double)bs / (double)ys, &multiplier, &shift);
    const bool twice = is_method(v, "tflite");
    const bool up = shift > (dtype_bits(v->a->dt) == 16 ? 0 : 14);
    const qnn_fixed_factor by = qnn_fixed_by(g, twice, up, multiplier, shift);
    tir_expr_ref y = qnn_scaled_fixed(g, &by, product);
    return qnn_moved(g, DT_I32, y, v->y_zero);
}

/* Four roundings to f32 move what is below 2^9 by less than 2^-13; the factor is short by less than 2^-30 of it. */
#define STEPS_REACH ((1 << 19) + (1 << 12))

static tir_expr_ref mul_in_steps(te_graph *g, const binary_ctx *v, tir_expr_ref a, tir_expr_ref b, tir_expr_ref product)
{
    float as, bs, ys;
    if (!is_method(v, "integer") || !known_scales(v, &as, &bs, &ys))
        return code_of(g, v, in_steps(g, v, a, b));
    const double k = (double)as * (double)bs / (double)ys;
    tir_expr_ref y = qnn_moved(g, DT_I32, qnn_rounded_near(g, in_steps(g, v, a, b)), v->y_zero);
    if (k >= 0x1p-126 && k < 0.25)
        y = qnn_scaled_by(g, product, qnn_known_factor(g, k), STEPS_REACH, v->y_zero, y);
    return qnn_saturated(g, y, DT_I32, v->a->dt);
}

static tir_expr_ref mul_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const binary_ctx *v = ctx;
    compiler *c = g->c;
    dtype dt = v->a->dt;
    float as, bs, ys;
    tir_expr_ref a = te_read_broadcast(g, v->a, v->rank, v->extents, idx),
                 b = te_read_broadcast(g, v->b, v->rank, v->extents, idx), y = NULL;
    tir_expr_ref product = tir_mul(c, te_centred(g, DT_I32, a, v->a_zero), te_centred(g, DT_I32, b, v->b_zero));
    tir_expr_ref zero = qnn_offset_code(g, v->offset, v->y_zero);
    if (is_method(v, "tflite") || is_method(v, "fast"))
        y = mul_fixed(g, v, product);
    if (y)
        return qnn_saturated(g, y, DT_I32, dt);
    const bool integer = is_method(v, "integer") && known_scales(v, &as, &bs, &ys);
    y = integer ? NULL : merged_steps(g, v, a, b);
    if (y)
        return code_of(g, v, y);
    if (v->in_steps)
        return mul_in_steps(g, v, a, b, product);
    if (integer) {
        const float k = as * bs / ys;
        y = qnn_scaled_exactly(g, product, tir_float(c, DT_F32, (double)k), &k, zero, true, dt);
        y = v->offset ? tir_sub(c, y, i32(g, v->offset)) : y;
        return qnn_saturated(g, y, DT_I32, dt);
    }
    tir_expr_ref k = tir_binary(c, TIR_DIV, tir_mul(c, v->a_scale, v->b_scale), v->y_scale);
    y = tir_add(c, qnn_product(g, product, k), tir_cast(c, DT_F32, zero));
    return qnn_rounded_code(g, v->offset, dt, y);
}

/* --- both --- */

/* The scales of numbers of 16 bits. */
static qnn_reals reals_of(const binary_ctx *v)
{
    float a = 0, b = 0, y = 1;
    const bool known = known_scales(v, &a, &b, &y);
    return (qnn_reals){v->a_scale, v->b_scale, v->y_scale, (double)a, (double)b, (double)y, known,
                       !is_method(v, "float")};
}

static tir_expr_ref wide_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const binary_ctx *v = ctx;
    const qnn_reals s = reals_of(v);
    tir_expr_ref a = te_centred(g, DT_I32, te_read_broadcast(g, v->a, v->rank, v->extents, idx), v->a_zero),
                 b = te_centred(g, DT_I32, te_read_broadcast(g, v->b, v->rank, v->extents, idx), v->b_zero);
    if (v->op == TIR_SUB)
        b = tir_sub(g->c, i32(g, 0), b);
    tir_expr_ref y = v->op == TIR_MUL ? qnn_product_real(g, &s, a, b) : qnn_sum_real(g, &s, a, b);
    return qnn_saturated(g, qnn_moved(g, DT_I32, y, v->y_zero), DT_I32, v->a->dt);
}

static bool binary(te_graph *g, const graph_node *n, te_tensor *const *in, const char *name, tir_op op,
                   te_body_fn body, te_tensor **out)
{
    const type *t = te_out_type(n, 0);
    tir_expr_ref zeros[3];
    for (uint32_t i = 0; i < 3; i++)
        zeros[i] = te_read_one(g, 5 + i < n->n_inputs ? in[5 + i] : NULL);
    binary_ctx v = {.n = n, .a = in[0], .b = in[2], .op = op, .rank = (uint32_t)t->shape.rank};
    v.half_up = graph_attr(n, "rounding") && strcmp(graph_attr_string(n, "rounding"), "half_up") == 0;
    v.method = graph_attr_string(n, "method");
    v.offset = qnn_code_offset(n, in[0]->dt);
    v.in_steps = op == TIR_SUB || graph_attr_int(n, "in_steps") != 0;
    v.a_scale = te_read_one(g, in[1]);
    v.b_scale = te_read_one(g, in[3]);
    v.y_scale = te_read_one(g, in[4]);
    v.a_zero = zeros[0];
    v.b_zero = zeros[1];
    v.y_zero = zeros[2];
    v.extents = te_shape(g, t);
    if (dtype_bits(in[0]->dt) == 16 && !is_method(&v, "tflite") && !is_method(&v, "fast"))
        body = wide_body;
    out[0] = te_compute(g, name, t->dt, v.rank, v.extents, body, &v);
    out[0]->node->inline_hint = true;
    return true;
}

bool compute_qnn_add(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return binary(g, n, in, "qadd", graph_attr_int(n, "minus") ? TIR_SUB : TIR_ADD, add_body, out);
}

bool compute_qnn_mul(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return binary(g, n, in, "qmul", TIR_MUL, mul_body, out);
}

/* --- sums by words --- */

typedef struct word_sum {
    const te_tensor *a, *b;
    uint32_t rank;
    tir_expr_ref const *extents;
    int64_t of_a, of_b, offset, right;
} word_sum;

static tir_expr_ref word_sum_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const word_sum *v = ctx;
    compiler *c = g->c;
    tir_expr_ref a = te_read_broadcast(g, v->a, v->rank, v->extents, idx),
                 b = te_read_broadcast(g, v->b, v->rank, v->extents, idx);
    tir_expr_ref y = tir_add(c, tir_mul(c, tir_cast(c, DT_I32, a), i32(g, v->of_a)),
                             tir_mul(c, tir_cast(c, DT_I32, b), i32(g, v->of_b)));
    y = tir_binary(c, TIR_SHR, tir_add(c, y, i32(g, v->offset)), i32(g, v->right));
    return qnn_saturated(g, y, DT_I32, v->a->dt);
}

bool compute_qnn_sum_word(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    const type *t = te_out_type(n, 0);
    word_sum v = {.a = in[0],
                        .b = in[1],
                        .rank = (uint32_t)t->shape.rank,
                        .extents = te_shape(g, t),
                        .of_a = graph_attr_int(n, "a_factor"),
                        .of_b = graph_attr_int(n, "b_factor"),
                        .offset = graph_attr_int(n, "offset"),
                        .right = graph_attr_int(n, "right")};
    out[0] = te_compute(g, "sum", t->dt, v.rank, v.extents, word_sum_body, &v);
    out[0]->node->inline_hint = true;
    return true;
}
