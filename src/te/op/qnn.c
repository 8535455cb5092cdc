/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definitions of arithmetic on quantised numbers: requantisation, sums, average pools. Two roundings:
 * nearest_even is what onnxruntime computes on x86-64, step by step in f32; half_up takes scales that are powers of two
 * and is shifts of integers alone, which accelerators have. Convolutions and products are in te/op/nn.c. */
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

/* --- requantize --- */

typedef struct requantize_ctx {
    const graph_node *n;
    const te_tensor *x, *x_scale, *y_scale, *y_zero;
    uint32_t axis;
    bool half_up, in_integers;
    dtype out;
} requantize_ctx;

/* rint(x * xs / ys), the quotient in f32. */
static tir_expr_ref requantized_in_integers(te_graph *g, const requantize_ctx *v, tir_expr_ref x, tir_expr_ref xs,
                                            tir_expr_ref ys, tir_expr_ref zero)
{
    compiler *c = g->c;
    float a = 0, b = 0;
    bool by_known = qnn_known_scale(v->n, 2, &b), known = by_known && qnn_known_scale(v->n, 1, &a);
    float k = known ? a / b : 0;
    tir_expr_ref quotient = known                     ? tir_float(c, DT_F32, (double)k)
                            : by_known && b == 1.0f ? xs
                                                      : tir_binary(c, TIR_DIV, xs, ys);
    return qnn_scaled_exactly(g, x, quotient, known ? &k : NULL, zero, false, v->out);
}

static tir_expr_ref requantize_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const requantize_ctx *v = ctx;
    compiler *c = g->c;
    tir_expr_ref x = te_read(g, v->x, idx), zero = te_read_one(g, v->y_zero), ys = te_read_one(g, v->y_scale);
    tir_expr_ref xs = te_is_one(v->x_scale)   ? te_read_one(g, v->x_scale)
                      : v->x_scale->rank == 1 ? te_read(g, v->x_scale, &idx[v->axis])
                                              : te_read_broadcast(g, v->x_scale, v->x->rank, v->x->shape, idx);
    if (v->half_up) {
        tir_expr_ref y = qnn_shifted(g, x, tir_sub(c, qnn_log2_of(g, v->n, 2, ys), qnn_log2_of(g, v->n, 1, xs)));
        return qnn_saturated(g, qnn_moved(g, DT_I32, y, zero), DT_I32, v->out);
    }
    if (v->in_integers)
        return qnn_saturated(g, requantized_in_integers(g, v, x, xs, ys, zero), DT_I32, v->out);
    tir_expr_ref scaled = tir_mul(c, tir_cast(c, DT_F32, x), tir_binary(c, TIR_DIV, xs, ys));
    return qnn_saturated(g, qnn_moved(g, DT_F32, tir_call1(c, TIR_RINT, scaled), zero), DT_F32, v->out);
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
    v.in_integers = strcmp(graph_attr_string(n, "method"), "integer") == 0;
    v.out = te_out_type(n, 0)->dt;
    out[0] = te_compute(g, "requantize", v.out, in[0]->rank, in[0]->shape, requantize_body, &v);
    out[0]->node->inline_hint = true;
    return true;
}

/* --- table --- */

static tir_expr_ref table_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    te_tensor *const *in = ctx;
    tir_expr_ref at = tir_cast(g->c, DT_I64, tir_cast(g->c, DT_U8, te_read(g, in[0], idx)));
    return te_read(g, in[1], &at);
}

bool compute_qnn_table(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    void *ctx = arena_copy(&g->c->mem, in, 2 * sizeof *in, _Alignof(te_tensor *));
    out[0] = te_compute(g, "table", te_out_type(n, 0)->dt, in[0]->rank, in[0]->shape, table_body, ctx);
    return true;
}

/* --- softmax --- */

typedef struct softmax_ctx {
    const te_tensor *x, *table, *most, *sum;
    tir_expr_ref y_scale, y_zero;
    const te_axis *along;
} softmax_ctx;

/* At idx, whose last index is `at`. */
static tir_expr_ref softmax_number(te_graph *g, const softmax_ctx *v, tir_expr_ref const *idx, tir_expr_ref at)
{
    tir_expr_ref all[TYPE_MAX_RANK];
    memcpy(all, idx, v->x->rank * sizeof *all);
    all[v->x->rank - 1] = at;
    return tir_cast(g->c, DT_I32, te_read(g, v->x, all));
}

static tir_expr_ref softmax_most(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const softmax_ctx *v = ctx;
    return softmax_number(g, v, idx, te_var(g, v->along));
}

static tir_expr_ref softmax_entry(te_graph *g, const softmax_ctx *v, tir_expr_ref const *idx, tir_expr_ref at)
{
    tir_expr_ref first[TYPE_MAX_RANK];
    memcpy(first, idx, v->x->rank * sizeof *first);
    first[v->x->rank - 1] = te_i64(g, 0);
    tir_expr_ref down = tir_sub(g->c, softmax_number(g, v, idx, at), te_read(g, v->most, first));
    tir_expr_ref entry = tir_add(g->c, tir_cast(g->c, DT_I64, down), te_i64(g, 255));
    return te_read(g, v->table, &entry);
}

static tir_expr_ref softmax_sum(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const softmax_ctx *v = ctx;
    return softmax_entry(g, v, idx, te_var(g, v->along));
}

static tir_expr_ref softmax_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const softmax_ctx *v = ctx;
    compiler *c = g->c;
    tir_expr_ref first[TYPE_MAX_RANK];
    memcpy(first, idx, v->x->rank * sizeof *first);
    first[v->x->rank - 1] = te_i64(g, 0);
    tir_expr_ref steps = tir_call1(c, TIR_FLOOR, tir_binary(c, TIR_DIV, tir_float(c, DT_F32, 1), v->y_scale));
    tir_expr_ref y = tir_mul(c, softmax_entry(g, v, idx, idx[v->x->rank - 1]), steps);
    y = tir_call1(c, TIR_RINT, tir_binary(c, TIR_DIV, y, te_read(g, v->sum, first)));
    return qnn_saturated(g, qnn_moved(g, DT_F32, y, v->y_zero), DT_F32, v->x->dt);
}

bool compute_qnn_softmax(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    const uint32_t rank = in[0]->rank;
    softmax_ctx v = {.x = in[0], .table = in[1], .y_scale = te_read_one(g, in[2])};
    tir_expr_ref rows[TYPE_MAX_RANK];
    memcpy(rows, in[0]->shape, rank * sizeof *rows);
    rows[rank - 1] = te_i64(g, 1);
    v.y_zero = te_read_one(g, operand(n, in, 3));
    te_axis *of_most = te_reduce_axis(g, "km", in[0]->shape[rank - 1]);
    v.along = of_most;
    v.most = te_reduce(g, "most", DT_I32, rank, rows, 1, &of_most, TE_MAX, softmax_most, &v);
    te_axis *of_sum = te_reduce_axis(g, "ks", in[0]->shape[rank - 1]);
    v.along = of_sum;
    v.sum = te_reduce(g, "sum", DT_F32, rank, rows, 1, &of_sum, TE_SUM, softmax_sum, &v);
    out[0] = te_compute(g, "qsoftmax", in[0]->dt, rank, in[0]->shape, softmax_body, &v);
    return true;
}

/* --- rescale --- */

typedef struct rescale_ctx {
    const te_tensor *x, *multiplier, *shift, *y_zero;
    uint32_t axis;
    bool twice, up;
    dtype out;
} rescale_ctx;

static tir_expr_ref rescale_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const rescale_ctx *v = ctx;
    const te_tensor *of[2] = {v->multiplier, v->shift};
    tir_expr_ref fixed[2];
    for (uint32_t i = 0; i < 2; i++)
        fixed[i] = te_is_one(of[i]) ? te_read_one(g, of[i]) : te_read(g, of[i], &idx[v->axis]);
    tir_expr_ref y = qnn_scaled_fixed(g, v->twice, v->up, te_read(g, v->x, idx), fixed[0], fixed[1]);
    return qnn_saturated(g, qnn_moved(g, DT_I32, y, te_read_one(g, v->y_zero)), DT_I32, v->out);
}

bool compute_rescale(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    rescale_ctx v = {.x = in[0], .multiplier = in[1], .shift = in[2], .y_zero = operand(n, in, 3)};
    int32_t axis = 0;
    if (!(te_is_one(in[1]) && te_is_one(in[2])) &&
        !infer_axis(g->c, n, graph_attr_int(n, "axis"), (int32_t)in[0]->rank, &axis))
        return false;
    v.axis = (uint32_t)axis;
    v.twice = graph_attr_int(n, "twice") != 0;
    v.up = graph_attr_int(n, "up") != 0;
    v.out = te_out_type(n, 0)->dt;
    out[0] = te_compute(g, "rescale", v.out, in[0]->rank, in[0]->shape, rescale_body, &v);
    return true;
}

/* --- average pools --- */

typedef struct average {
    const graph_node *n;
    tir_expr_ref x_scale, y_scale, x_zero, y_zero;
    bool half_up, global;
    bool as_is; /* one scale and zero point before and behind: the mean of the codes, as TensorFlow Lite has it */
    bool in_integers;
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
    return p->acc == DT_I32 ? x : qnn_product(g, x, v->x_scale);
}

/* How a mean is taken of sums: sum * M >> n, M = 2^k / count. */
typedef struct mean {
    int64_t most, k; /* most: terms of a sum */
    bool wide;       /* the product needs 64 bits */
} mean;

#define WIDE_BITS 40 /* of M by the count; the largest sum has 30 bits */

/* 15 bits for M, more where the count has many itself. They do in 32 bits unless so many terms take them, or the half
 * that rounds has no room beside the product. From n = 31 on the half is 2^29 all the same: the product is less. */
static mean mean_of(const graph_node *n, const te_pool *p)
{
    mean m = {.most = 1, .k = 14};
    float xs, ys;
    for (uint32_t i = 0; i < p->w->n && m.most < INT32_MAX; i++)
        m.most *= p->w->kernel[i];
    while (((int64_t)1 << (m.k - 14)) < m.most && m.k < 23)
        m.k++;
    const bool known = qnn_known_scale(n, 1, &xs) && qnn_known_scale(n, 2, &ys);
    const int64_t shift = known ? m.k + ilogb((double)ys) - ilogb((double)xs) : 31;
    const int64_t product = ((int64_t)255 << m.k) + 128 * m.most;
    const int64_t half = shift > 30 ? (int64_t)1 << 29 : shift > 0 ? (int64_t)1 << (shift - 1) : 0;
    m.wide = ((int64_t)1 << (m.k - 14)) < m.most || product + half > INT32_MAX || (shift > 30 && product >= half);
    m.k = m.wide ? WIDE_BITS : m.k;
    return m;
}

/* The sum, by the number of its terms, at y's scale. */
static tir_expr_ref average_half_up(te_graph *g, const te_pool *p, tir_expr_ref sum, tir_expr_ref count)
{
    const average *v = p->more;
    compiler *c = g->c;
    const mean m = mean_of(v->n, p);
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
    compiler *c = g->c;
    tir_expr_ref sum = te_read(g, p->sum, idx), count = te_pool_count(g, p, idx);
    if (v->half_up)
        return qnn_saturated(g, average_half_up(g, p, sum, count), DT_I32, p->x->dt);
    if (v->as_is)
        return qnn_saturated(g, average_as_is(g, v, sum, count), DT_I32, p->x->dt);
    if (v->global)
        return average_global(g, p, sum, count);
    const int64_t offset = qnn_code_offset(v->n, p->x->dt);
    count = tir_cast(c, DT_F32, count);
    tir_expr_ref y = tir_binary(c, TIR_DIV, tir_binary(c, TIR_DIV, sum, count), v->y_scale);
    y = tir_add(c, y, tir_cast(c, DT_F32, qnn_offset_code(g, offset, v->y_zero)));
    return qnn_rounded_code(g, offset, p->x->dt, y);
}

static bool same_scales(const graph_node *n)
{
    float a, b;
    int64_t x, y;
    return qnn_known_scale(n, 1, &a) && qnn_known_scale(n, 2, &b) && a == b && qnn_known_zero(n, 3, &x) &&
           qnn_known_zero(n, 4, &y) && x == y;
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
    p.include_pad = !global && graph_attr_int(n, "count_include_pad") != 0;
    const char *method = graph_attr_string(n, "method");
    v.in_integers = strcmp(method, "float") != 0;
    v.as_is = !v.half_up && v.in_integers && strcmp(method, "integer") != 0 && !p.include_pad && same_scales(n);
    p.acc = v.half_up || v.as_is || global ? DT_I32 : DT_F32;
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
