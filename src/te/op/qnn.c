/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definitions of arithmetic on quantised numbers: requantisation, sums, average pools. Two roundings:
 * nearest_even is what onnxruntime computes on x86-64, step by step in f32; half_up takes scales that are powers of two
 * and is shifts of integers alone, which accelerators have. Convolutions and products are in te/op/nn.c. */
#include "te/op/nn.h"

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

/* --- steps of both roundings --- */

/* v, which is rounded and has its zero point, within the range of dt. */
static tir_expr_ref saturated(te_graph *g, tir_expr_ref v, dtype from, dtype dt)
{
    compiler *c = g->c;
    bool real = dtype_is_float(from);
    int64_t lo = dtype_min_int(dt), hi = dtype_max_int(dt);
    v = tir_max(c, v, real ? tir_float(c, from, (double)lo) : tir_int(c, from, lo));
    v = tir_min(c, v, real ? tir_float(c, from, (double)hi) : tir_int(c, from, hi));
    return tir_cast(c, dt, v);
}

/* x + zero, where there is one. */
static tir_expr_ref moved(te_graph *g, dtype dt, tir_expr_ref x, tir_expr_ref zero)
{
    return zero ? tir_add(g->c, x, tir_cast(g->c, dt, zero)) : x;
}

/* The product, rounded once: C compilers contract a product of f32 and a sum to one step, but not over a cast. */
static tir_expr_ref product_f32(te_graph *g, tir_expr_ref a, tir_expr_ref b)
{
    compiler *c = g->c;
    return tir_cast(c, DT_F32, tir_mul(c, tir_cast(c, DT_F64, a), tir_cast(c, DT_F64, b)));
}

/* a * b + s, rounded once: a has 8 bits, so that the product is exact in f64. */
static tir_expr_ref fma_f32(te_graph *g, tir_expr_ref a, tir_expr_ref b, tir_expr_ref s)
{
    compiler *c = g->c;
    tir_expr_ref product = tir_mul(c, tir_cast(c, DT_F64, a), tir_cast(c, DT_F64, b));
    return tir_cast(c, DT_F32, tir_add(c, product, tir_cast(c, DT_F64, s)));
}

/* The exponent of operand i, a scale that is a power of two: its bits say it. A constant's is a literal. */
static tir_expr_ref log2_of(te_graph *g, const graph_node *n, uint32_t i, tir_expr_ref scale)
{
    compiler *c = g->c;
    const tensor_data *t = graph_constant(n->inputs[i]);
    if (t && t->count > 0 && (t->count == 1 || t->kind == TENSOR_SPLAT))
        return i32(g, ilogb(tensor_get_f64(t, 0)));
    tir_expr_ref bits = tir_binary(c, TIR_SHR, tir_call1(c, TIR_TO_BITS, scale), tir_int(c, DT_U32, 23));
    return tir_sub(c, tir_cast(c, DT_I32, tir_binary(c, TIR_BITAND, bits, tir_int(c, DT_U32, 255))), i32(g, 127));
}

#define MOST_SHIFT 30 /* so that 1 << n is a number */

static tir_expr_ref within_shift(te_graph *g, tir_expr_ref n, int64_t least)
{
    return tir_max(g->c, i32(g, least), tir_min(g->c, n, i32(g, MOST_SHIFT)));
}

/* (x + 2^(n-1)) >> n, and for n <= 0 x << -n. */
static tir_expr_ref shifted(te_graph *g, tir_expr_ref x, tir_expr_ref n)
{
    compiler *c = g->c;
    tir_expr_ref right = within_shift(g, n, 0), left = within_shift(g, tir_sub(c, i32(g, 0), n), 0);
    tir_expr_ref half = tir_binary(c, TIR_SHR, tir_binary(c, TIR_SHL, i32(g, 1), right), i32(g, 1));
    return tir_binary(c, TIR_SHR, tir_add(c, tir_binary(c, TIR_SHL, x, left), half), right);
}

/* --- requantize --- */

typedef struct requantize_ctx {
    const graph_node *n;
    const te_tensor *x, *x_scale, *y_scale, *y_zero;
    uint32_t axis;
    bool half_up;
    dtype out;
} requantize_ctx;

static tir_expr_ref requantize_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const requantize_ctx *v = ctx;
    compiler *c = g->c;
    tir_expr_ref x = te_read(g, v->x, idx), zero = te_read_one(g, v->y_zero), ys = te_read_one(g, v->y_scale);
    tir_expr_ref xs = te_is_one(v->x_scale)   ? te_read_one(g, v->x_scale)
                      : v->x_scale->rank == 1 ? te_read(g, v->x_scale, &idx[v->axis])
                                              : te_read_broadcast(g, v->x_scale, v->x->rank, v->x->shape, idx);
    if (v->half_up) {
        tir_expr_ref y = shifted(g, x, tir_sub(c, log2_of(g, v->n, 2, ys), log2_of(g, v->n, 1, xs)));
        return saturated(g, moved(g, DT_I32, y, zero), DT_I32, v->out);
    }
    tir_expr_ref scaled = tir_mul(c, tir_cast(c, DT_F32, x), tir_binary(c, TIR_DIV, xs, ys));
    return saturated(g, moved(g, DT_F32, tir_call1(c, TIR_RINT, scaled), zero), DT_F32, v->out);
}

bool compute_requantize(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    requantize_ctx v = {.n = n, .x = in[0], .x_scale = in[1], .y_scale = in[2], .y_zero = operand(n, in, 3)};
    int32_t axis = 0;
    if (in[1]->rank == 1 && !te_is_one(in[1]) &&
        !infer_axis(g->c, n, graph_attr_int(n, "axis"), (int32_t)in[0]->rank, &axis))
        return false;
    v.axis = (uint32_t)axis;
    v.half_up = is_half_up(n);
    v.out = te_out_type(n, 0)->dt;
    out[0] = te_compute(g, "requantize", v.out, in[0]->rank, in[0]->shape, requantize_body, &v);
    return true;
}

/* --- add --- */

typedef struct add_ctx {
    const graph_node *n;
    const te_tensor *a, *b;
    tir_expr_ref a_scale, b_scale, y_scale, a_zero, b_zero, y_zero; /* zero points: NULL for 0 */
    uint32_t rank;
    tir_expr_ref const *extents;
    bool half_up;
} add_ctx;

/* Both at the finer of the two scales, summed in i32. */
static tir_expr_ref add_half_up(te_graph *g, const add_ctx *v, tir_expr_ref a, tir_expr_ref b)
{
    compiler *c = g->c;
    tir_expr_ref ea = log2_of(g, v->n, 1, v->a_scale), eb = log2_of(g, v->n, 3, v->b_scale);
    tir_expr_ref least = tir_min(c, ea, eb);
    a = tir_binary(c, TIR_SHL, te_centred(g, DT_I32, a, v->a_zero), within_shift(g, tir_sub(c, ea, least), 0));
    b = tir_binary(c, TIR_SHL, te_centred(g, DT_I32, b, v->b_zero), within_shift(g, tir_sub(c, eb, least), 0));
    tir_expr_ref y = shifted(g, tir_add(c, a, b), tir_sub(c, log2_of(g, v->n, 4, v->y_scale), least));
    return saturated(g, moved(g, DT_I32, y, v->y_zero), DT_I32, v->a->dt);
}

/* onnxruntime makes u8 of i8 first on x86-64, with zero points that are 128 more. Where a zero point is added before
 * the rounding, sums lie where f32 is coarser, and that shows. */
static int64_t code_offset(dtype dt)
{
    return dt == DT_I8 ? 128 : 0;
}

/* A code or a zero point (NULL: 0) of dt as onnxruntime has it, in i32. */
static tir_expr_ref offset_code(te_graph *g, dtype dt, tir_expr_ref code)
{
    tir_expr_ref x = code ? tir_cast(g->c, DT_I32, code) : i32(g, 0);
    return code_offset(dt) ? tir_add(g->c, x, i32(g, code_offset(dt))) : x;
}

/* y, which has such a zero point, rounded and back as dt. */
static tir_expr_ref rounded_code(te_graph *g, dtype dt, tir_expr_ref y)
{
    compiler *c = g->c;
    y = tir_call1(c, TIR_RINT, y);
    if (code_offset(dt))
        y = tir_sub(c, y, tir_float(c, DT_F32, (double)code_offset(dt)));
    return saturated(g, y, DT_F32, dt);
}

static tir_expr_ref add_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const add_ctx *v = ctx;
    compiler *c = g->c;
    tir_expr_ref a = te_read_broadcast(g, v->a, v->rank, v->extents, idx),
                 b = te_read_broadcast(g, v->b, v->rank, v->extents, idx);
    if (v->half_up)
        return add_half_up(g, v, a, b);
    tir_expr_ref ra = tir_binary(c, TIR_DIV, v->a_scale, v->y_scale),
                 rb = tir_binary(c, TIR_DIV, v->b_scale, v->y_scale);
    dtype dt = v->a->dt;
    tir_expr_ref zeros = product_f32(g, rb, offset_code(g, dt, v->b_zero));
    zeros = fma_f32(g, offset_code(g, dt, v->a_zero), ra, zeros);
    tir_expr_ref offset = /* onnxruntime's compiler contracts the sum of the products, too */
        tir_sub(c, tir_cast(c, DT_F32, offset_code(g, dt, v->y_zero)), zeros);
    tir_expr_ref y = fma_f32(g, offset_code(g, dt, a), ra, fma_f32(g, offset_code(g, dt, b), rb, offset));
    return rounded_code(g, dt, y);
}

bool compute_qnn_add(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    const type *t = te_out_type(n, 0);
    add_ctx v = {.n = n, .a = in[0], .b = in[2], .rank = (uint32_t)t->shape.rank, .half_up = is_half_up(n)};
    v.a_scale = te_read_one(g, in[1]);
    v.b_scale = te_read_one(g, in[3]);
    v.y_scale = te_read_one(g, in[4]);
    v.a_zero = te_read_one(g, operand(n, in, 5));
    v.b_zero = te_read_one(g, operand(n, in, 6));
    v.y_zero = te_read_one(g, operand(n, in, 7));
    v.extents = te_shape(g, t);
    te_check_broadcast(g, n, in[0], v.rank, v.extents);
    te_check_broadcast(g, n, in[2], v.rank, v.extents);
    out[0] = te_compute(g, "qadd", t->dt, v.rank, v.extents, add_body, &v);
    return true;
}

/* --- average pools --- */

typedef struct average {
    const graph_node *n;
    tir_expr_ref x_scale, y_scale, x_zero, y_zero;
    bool half_up, global;
} average;

/* Exact in i32, or as dequantised numbers, which are summed one after the other. */
static tir_expr_ref average_term(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    te_pool *p = ctx, whole = *p;
    const average *v = p->more;
    whole.acc = DT_I32;
    tir_expr_ref x = te_pool_body(g, &whole, idx);
    if (v->x_zero)
        x = tir_sub(g->c, x, tir_cast(g->c, DT_I32, v->x_zero));
    return p->acc == DT_I32 ? x : product_f32(g, x, v->x_scale);
}

/* The bits of what a sum is multiplied by: 15, fewer where the sum has many itself. */
static int64_t factor_bits(const te_pool *p)
{
    int64_t most = 1, bits = 14;
    for (uint32_t i = 0; i < p->w->n && most < INT32_MAX; i++)
        most *= p->w->kernel[i];
    while (((int64_t)1 << (bits - 14)) < most && bits < 23)
        bits++;
    return bits;
}

/* The sum, by the number of its terms, at y's scale: sum * M >> n, M = 2^k / count. */
static tir_expr_ref average_half_up(te_graph *g, const te_pool *p, tir_expr_ref sum, tir_expr_ref count)
{
    const average *v = p->more;
    compiler *c = g->c;
    int64_t k = factor_bits(p);
    count = tir_cast(c, DT_I32, count);
    tir_expr_ref half = tir_binary(c, TIR_SHR, count, i32(g, 1));
    tir_expr_ref factor = tir_binary(c, TIR_DIV, tir_add(c, half, i32(g, (int64_t)1 << k)), count);
    tir_expr_ref n = tir_sub(c, log2_of(g, v->n, 2, v->y_scale), log2_of(g, v->n, 1, v->x_scale));
    n = tir_add(c, n, i32(g, k));
    return moved(g, DT_I32, shifted(g, tir_mul(c, sum, factor), n), v->y_zero);
}

static tir_expr_ref average_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const te_pool *p = ctx;
    const average *v = p->more;
    compiler *c = g->c;
    tir_expr_ref sum = te_read(g, p->sum, idx), count = te_pool_count(g, p, idx);
    if (v->half_up)
        return saturated(g, average_half_up(g, p, sum, count), DT_I32, p->x->dt);
    count = tir_cast(c, DT_F32, count);
    if (v->global) { /* as a convolution: the zero point is added behind the rounding, exactly */
        tir_expr_ref k = tir_binary(c, TIR_DIV, v->x_scale, tir_mul(c, v->y_scale, count));
        tir_expr_ref y = tir_call1(c, TIR_RINT, tir_mul(c, tir_cast(c, DT_F32, sum), k));
        return saturated(g, moved(g, DT_F32, y, v->y_zero), DT_F32, p->x->dt);
    }
    tir_expr_ref y = tir_binary(c, TIR_DIV, tir_binary(c, TIR_DIV, sum, count), v->y_scale);
    y = tir_add(c, y, tir_cast(c, DT_F32, offset_code(g, p->x->dt, v->y_zero)));
    return rounded_code(g, p->x->dt, y);
}

static bool average_pool(te_graph *g, const graph_node *n, te_tensor *const *in, bool global, te_tensor **out)
{
    const type *t = te_out_type(n, 0);
    nn_window w;
    te_axis *reduce[NN_MAX_SPATIAL];
    te_pool p;
    tir_expr_ref zero = te_read_one(g, operand(n, in, 3));
    average v = {.n = n, .x_zero = zero, .half_up = is_half_up(n), .global = global};
    v.x_scale = te_read_one(g, in[1]);
    v.y_scale = te_read_one(g, in[2]);
    v.y_zero = te_read_one(g, operand(n, in, 4));
    if (!te_pool_setup(g, n, in[0], zero ? zero : tir_const(g->c, in[0]->dt, 0), &w, reduce, &p))
        return false;
    p.acc = v.half_up || global ? DT_I32 : DT_F32;
    p.include_pad = !global && graph_attr_int(n, "count_include_pad") != 0;
    p.more = &v;
    p.sum = te_pool_reduce(g, n, "avg_pool_sum", &p, TE_SUM, average_term);
    out[0] = te_compute(g, "avg_pool", t->dt, p.x->rank, te_shape(g, t), average_body, &p);
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
