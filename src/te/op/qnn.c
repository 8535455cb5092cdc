/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definitions of arithmetic on quantised numbers: requantisation, tables, softmax. Two roundings:
 * nearest_even is what onnxruntime computes on x86-64, step by step in f32; half_up takes scales that are powers of two
 * and is shifts of integers alone, which accelerators have. Sums are in
 * te/op/qnn_binary.c, average pools in te/op/qnn_pool.c, convolutions and products in te/op/nn.c. */
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

/* --- requantize --- */

typedef struct requantize_ctx {
    const graph_node *n;
    const te_tensor *x, *x_scale, *y_scale, *y_zero, *quotient;
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

/* The same by scales in f64, of x with `bits`; a y_scale of 1 is none. */
static tir_expr_ref requantized_wide(te_graph *g, const requantize_ctx *v, tir_expr_ref x, tir_expr_ref xs,
                                     tir_expr_ref ys, tir_expr_ref quotient)
{
    compiler *c = g->c;
    const tensor_data *by = graph_constant(v->n->inputs[2]), *of = graph_constant(v->n->inputs[1]);
    const bool divides = !by || tensor_get_f64(by, 0) != 1, one = of && (of->count == 1 || of->kind == TENSOR_SPLAT);
    tir_expr_ref y = tir_mul(c, tir_cast(c, DT_F64, x), xs);
    tir_expr_ref slow = qnn_rounded_real(g, divides ? tir_binary(c, TIR_DIV, y, ys) : y);
    if (!v->in_integers)
        return slow;
    const double k = one && by ? tensor_get_f64(of, 0) / tensor_get_f64(by, 0) : 0;
    const bool known = one && by, exact = known ? fma(k, tensor_get_f64(by, 0), -tensor_get_f64(of, 0)) == 0 : !divides;
    if (!quotient)
        quotient = divides ? tir_binary(c, TIR_DIV, xs, ys) : xs;
    return qnn_scaled_real(g, x, x->type.dt == DT_I64 ? 47 : 31, quotient, known ? &k : NULL, exact);
}

/* What t, a scale or a part of it, is for element idx of x: one number, one for each index of the axis, or a tensor. */
static tir_expr_ref read_for(te_graph *g, const te_tensor *t, const te_tensor *x, uint32_t axis,
                             tir_expr_ref const *idx)
{
    return te_is_one(t)   ? te_read_one(g, t)
           : t->rank == 1 ? te_read(g, t, &idx[axis])
                          : te_read_broadcast(g, t, x->rank, x->shape, idx);
}

static tir_expr_ref requantize_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const requantize_ctx *v = ctx;
    compiler *c = g->c;
    tir_expr_ref x = te_read(g, v->x, idx), zero = te_read_one(g, v->y_zero), ys = te_read_one(g, v->y_scale);
    tir_expr_ref xs = read_for(g, v->x_scale, v->x, v->axis, idx);
    tir_expr_ref quotient = v->quotient ? read_for(g, v->quotient, v->x, v->axis, idx) : NULL;
    if (v->x_scale->dt == DT_F64)
        return qnn_saturated(g, qnn_moved(g, DT_I32, requantized_wide(g, v, x, xs, ys, quotient), zero), DT_I32,
                             v->out);
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
    v.quotient = operand(n, in, 4);
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
    const te_tensor *x, *table, *most, *sum, *factor;
    tir_expr_ref y_scale, y_zero;
    uint32_t axis;
    const te_axis *along;
    int64_t steps; /* floor(1 / y_scale), in integers; 0: the quotient is a double */
} softmax_ctx;

/* At idx, whose index of the axis is `at`. */
static tir_expr_ref softmax_number(te_graph *g, const softmax_ctx *v, tir_expr_ref const *idx, tir_expr_ref at)
{
    tir_expr_ref all[TYPE_MAX_RANK];
    memcpy(all, idx, v->x->rank * sizeof *all);
    all[v->axis] = at;
    return tir_cast(g->c, DT_I32, te_read(g, v->x, all));
}

static tir_expr_ref softmax_most(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const softmax_ctx *v = ctx;
    return softmax_number(g, v, idx, te_var(g, v->along));
}

/* Of a table whose last entry is for the largest number of a row; differences beyond the first one have that, too. */
static tir_expr_ref softmax_entry(te_graph *g, const softmax_ctx *v, tir_expr_ref const *idx, tir_expr_ref at)
{
    compiler *c = g->c;
    int64_t entries = 256;
    (void)tir_is_int(v->table->shape[0], &entries);
    tir_expr_ref first[TYPE_MAX_RANK];
    memcpy(first, idx, v->x->rank * sizeof *first);
    first[v->axis] = te_i64(g, 0);
    tir_expr_ref down = tir_sub(c, softmax_number(g, v, idx, at), te_read(g, v->most, first));
    tir_expr_ref entry = tir_add(c, down, tir_int(c, DT_I32, entries - 1));
    entry = tir_cast(c, DT_I64, entries < 256 ? tir_max(c, entry, tir_int(c, DT_I32, 0)) : entry);
    return te_read(g, v->table, &entry);
}

static tir_expr_ref softmax_sum(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const softmax_ctx *v = ctx;
    return softmax_entry(g, v, idx, te_var(g, v->along));
}

static tir_expr_ref f64(te_graph *g, tir_expr_ref x)
{
    return tir_cast(g->c, DT_F64, x);
}

#define SHARE_BITS 13 /* of a fraction: with an integer below 512 all that f32 has */

/* steps / sum, times 2^SHARE_BITS: a division for each row. */
static tir_expr_ref softmax_factor(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const softmax_ctx *v = ctx;
    return tir_binary(g->c, TIR_DIV, tir_float(g->c, DT_F32, ldexp((double)v->steps, SHARE_BITS)),
                      te_read(g, v->sum, idx));
}

/* The same quotient without doubles. */
static tir_expr_ref softmax_in_integers(te_graph *g, const softmax_ctx *v, tir_expr_ref entry,
                                        tir_expr_ref const *first)
{
    compiler *c = g->c;
    tir_expr_ref y = tir_mul(c, entry, te_read(g, v->factor, first));
    if (v->steps >= 512)
        y = tir_min(c, y, tir_float(c, DT_F32, ldexp(511, SHARE_BITS)));
    y = qnn_share(g, y, SHARE_BITS, entry, v->steps, te_read(g, v->sum, first));
    return qnn_saturated(g, qnn_moved(g, DT_I32, y, v->y_zero), DT_I32, v->x->dt);
}

/* onnxruntime's quotient is a double: the product is exact, so that equal elements that end between two steps do so. */
static tir_expr_ref softmax_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const softmax_ctx *v = ctx;
    compiler *c = g->c;
    tir_expr_ref first[TYPE_MAX_RANK];
    memcpy(first, idx, v->x->rank * sizeof *first);
    first[v->axis] = te_i64(g, 0);
    if (v->steps)
        return softmax_in_integers(g, v, softmax_entry(g, v, idx, idx[v->axis]), first);
    tir_expr_ref steps = tir_call1(c, TIR_FLOOR, tir_binary(c, TIR_DIV, tir_float(c, DT_F32, 1), v->y_scale));
    tir_expr_ref y = tir_mul(c, f64(g, softmax_entry(g, v, idx, idx[v->axis])), f64(g, steps));
    y = tir_call1(c, TIR_RINT, tir_binary(c, TIR_DIV, y, f64(g, te_read(g, v->sum, first))));
    y = tir_cast(c, DT_F32, y);
    return qnn_saturated(g, qnn_moved(g, DT_F32, y, v->y_zero), DT_F32, v->x->dt);
}

/* Where they are integers in f32. */
static int64_t softmax_steps(const graph_node *n)
{
    float scale;
    if (strcmp(graph_attr_string(n, "method"), "integer") != 0 || !qnn_known_scale(n, 2, &scale) ||
        !(scale >= 0x1p-24f && scale <= 1))
        return 0;
    return (int64_t)floorf(1 / scale);
}

bool compute_qnn_softmax(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    const uint32_t rank = in[0]->rank;
    const int64_t axis = graph_attr_int(n, "axis");
    softmax_ctx v = {.x = in[0], .table = in[1], .y_scale = te_read_one(g, in[2])};
    v.axis = (uint32_t)(axis < 0 ? axis + rank : axis);
    tir_expr_ref rows[TYPE_MAX_RANK];
    memcpy(rows, in[0]->shape, rank * sizeof *rows);
    rows[v.axis] = te_i64(g, 1);
    v.y_zero = te_read_one(g, operand(n, in, 3));
    te_axis *of_most = te_reduce_axis(g, "km", in[0]->shape[v.axis]);
    v.along = of_most;
    v.most = te_reduce(g, "most", DT_I32, rank, rows, 1, &of_most, TE_MAX, softmax_most, &v);
    te_axis *of_sum = te_reduce_axis(g, "ks", in[0]->shape[v.axis]);
    v.along = of_sum;
    v.sum = te_reduce(g, "sum", DT_F32, rank, rows, 1, &of_sum, TE_SUM, softmax_sum, &v);
    v.steps = softmax_steps(n);
    if (v.steps)
        v.factor = te_compute(g, "factor", DT_F32, rank, rows, softmax_factor, &v);
    out[0] = te_compute(g, "qsoftmax", in[0]->dt, rank, in[0]->shape, softmax_body, &v);
    return true;
}

/* --- softmax of TensorFlow Lite Micro --- */

/* All in fixed point. A row's exponentials are summed in Q12.19; the reciprocal of the sum is the Q0.31 number of three
 * steps of Newton's method and a shift, so that results are whole steps of 1/256. */
typedef struct fixed_softmax {
    softmax_ctx rows; /* table, most, sum */
    const te_tensor *room, *half, *inverse; /* leading zeros of the sum; fixed_half; fixed_first and its steps */
    dtype out;
    int64_t bits, least; /* of the result's type */
} fixed_softmax;

static tir_expr_ref i32(te_graph *g, int64_t v)
{
    return tir_int(g->c, DT_I32, v);
}

/* x * 2^-n in that type, x not below 0, n above 0. */
static tir_expr_ref divided(te_graph *g, dtype dt, tir_expr_ref x, tir_expr_ref n)
{
    compiler *c = g->c;
    tir_expr_ref one = tir_int(c, dt, 1), half;
    n = tir_cast(c, dt, n);
    half = tir_binary(c, TIR_SHL, one, tir_sub(c, n, one));
    return tir_cast(c, DT_I32, tir_binary(c, TIR_SHR, tir_add(c, tir_cast(c, dt, x), half), n));
}

/* The high half of 2 a b, halves up. */
static tir_expr_ref high_product(te_graph *g, tir_expr_ref a, tir_expr_ref b)
{
    return tir_call(g->c, TIR_DOUBLED, 2, (tir_expr_ref[]){a, b});
}

static tir_expr_ref fixed_term(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const fixed_softmax *v = ctx;
    return divided(g, DT_U32, softmax_entry(g, &v->rows, idx, te_var(g, v->rows.along)), i32(g, 12));
}

/* Leading zeros of the sum, which is above 2^18: the largest number of a row has the exponential 1. Without its last
 * bits the sum is a number of f32, whose exponent is its place. */
static tir_expr_ref fixed_room(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const fixed_softmax *v = ctx;
    compiler *c = g->c;
    const int64_t last = 7, bias = 127;
    tir_expr_ref x = tir_binary(c, TIR_SHR, te_read(g, v->rows.sum, idx), i32(g, last));
    tir_expr_ref bits = tir_call1(c, TIR_TO_BITS, tir_cast(c, DT_F32, x));
    bits = tir_cast(c, DT_I32, tir_binary(c, TIR_SHR, bits, tir_int(c, DT_U32, 23)));
    return tir_sub(c, i32(g, 31 - last + bias), bits);
}

/* The middle of a and 1, a the sum without its leading zeros and without its first bit. */
static tir_expr_ref fixed_half(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const fixed_softmax *v = ctx;
    compiler *c = g->c;
    tir_expr_ref sum = tir_cast(c, DT_U32, te_read(g, v->rows.sum, idx));
    tir_expr_ref a = tir_binary(c, TIR_SHL, sum, tir_cast(c, DT_U32, te_read(g, v->room, idx)));
    return tir_cast(c, DT_I32, tir_binary(c, TIR_SHR, a, tir_int(c, DT_U32, 1)));
}

/* 1 / (1 + a) in Q2.29: the first guess, and a step from one to the next. */
static tir_expr_ref fixed_first(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const fixed_softmax *v = ctx;
    return tir_add(g->c, i32(g, 1515870810), high_product(g, te_read(g, v->half, idx), i32(g, -1010580540)));
}

static tir_expr_ref fixed_step(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const fixed_softmax *v = ctx;
    compiler *c = g->c;
    tir_expr_ref x = te_read(g, v->inverse, idx), error = high_product(g, te_read(g, v->half, idx), x);
    error = tir_sub(c, i32(g, 1 << 29), error);
    return tir_add(c, x, tir_binary(c, TIR_SHL, high_product(g, x, error), i32(g, 2)));
}

static tir_expr_ref fixed_inverse(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const fixed_softmax *v = ctx;
    compiler *c = g->c;
    const int64_t most = ((int64_t)1 << 30) - 1;
    tir_expr_ref x = te_read(g, v->inverse, idx);
    tir_expr_ref twice = tir_mul(c, tir_min(c, x, i32(g, most)), i32(g, 2));
    return tir_add(c, twice, tir_cast(c, DT_I32, tir_binary(c, TIR_GT, x, i32(g, most))));
}

static tir_expr_ref fixed_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const fixed_softmax *v = ctx;
    compiler *c = g->c;
    tir_expr_ref first[TYPE_MAX_RANK];
    memcpy(first, idx, v->rows.x->rank * sizeof *first);
    first[v->rows.axis] = te_i64(g, 0);
    tir_expr_ref e = softmax_entry(g, &v->rows, idx, idx[v->rows.axis]);
    tir_expr_ref shift = tir_sub(c, i32(g, 12 + 31 - v->bits), te_read(g, v->room, first));
    int64_t count = INT64_MAX;
    (void)tir_is_int(v->rows.x->shape[v->rows.axis], &count);
    /* `shift` is below 32 where the sum is below 2^28 */
    tir_expr_ref y = divided(g, v->bits > 8 || count < 512 ? DT_U32 : DT_I64,
                             high_product(g, te_read(g, v->inverse, first), e), shift);
    return qnn_saturated(g, tir_add(c, y, i32(g, v->least)), DT_I32, v->out);
}

bool compute_qnn_softmax_fixed(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    const uint32_t rank = in[0]->rank;
    const int64_t axis = graph_attr_int(n, "axis");
    fixed_softmax v = {.rows = {.x = in[0], .table = in[1]}, .out = te_out_type(n, 0)->dt};
    v.bits = dtype_bits(v.out);
    v.least = dtype_min_int(v.out);
    v.rows.axis = (uint32_t)(axis < 0 ? axis + rank : axis);
    tir_expr_ref rows[TYPE_MAX_RANK];
    memcpy(rows, in[0]->shape, rank * sizeof *rows);
    rows[v.rows.axis] = te_i64(g, 1);
    te_axis *of_most = te_reduce_axis(g, "km", in[0]->shape[v.rows.axis]);
    v.rows.along = of_most;
    v.rows.most = te_reduce(g, "most", DT_I32, rank, rows, 1, &of_most, TE_MAX, softmax_most, &v.rows);
    te_axis *of_sum = te_reduce_axis(g, "ks", in[0]->shape[v.rows.axis]);
    v.rows.along = of_sum;
    v.rows.sum = te_reduce(g, "sum", DT_I32, rank, rows, 1, &of_sum, TE_SUM, fixed_term, &v);
    v.room = te_compute(g, "room", DT_I32, rank, rows, fixed_room, &v);
    v.half = te_compute(g, "half", DT_I32, rank, rows, fixed_half, &v);
    v.inverse = te_compute(g, "first", DT_I32, rank, rows, fixed_first, &v);
    for (int i = 0; i < 3; i++)
        v.inverse = te_compute(g, "step", DT_I32, rank, rows, fixed_step, &v);
    v.inverse = te_compute(g, "inverse", DT_I32, rank, rows, fixed_inverse, &v);
    out[0] = te_compute(g, "fixed_softmax", v.out, rank, in[0]->shape, fixed_body, &v);
    return true;
}

/* --- rescale --- */

/* Sums of 64 bits by multipliers of 15 bits, rounded once, halves up; shift: 7 at most. */
static tir_expr_ref rescaled_wide(te_graph *g, tir_expr_ref x, tir_expr_ref multiplier, tir_expr_ref shift)
{
    compiler *c = g->c;
    tir_expr_ref one = tir_int(c, DT_I64, 1), right = tir_sub(c, tir_int(c, DT_I64, 15), tir_cast(c, DT_I64, shift));
    right = tir_min(c, tir_max(c, right, one), tir_int(c, DT_I64, 62));
    tir_expr_ref half = tir_binary(c, TIR_SHL, one, tir_sub(c, right, one));
    tir_expr_ref y = tir_add(c, tir_mul(c, x, tir_cast(c, DT_I64, multiplier)), half);
    return tir_binary(c, TIR_SHR, y, right);
}

#define MOST_SHIFT (1 << 30) /* beyond all that count */

typedef struct rescale_ctx {
    const te_tensor *x, *multiplier, *shift, *y_zero;
    uint32_t axis;
    qnn_fixed_factor by;
    bool is_known; /* no multiplier is -2^31 */
    dtype out;
} rescale_ctx;

static tir_expr_ref rescale_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const rescale_ctx *v = ctx;
    const te_tensor *of[2] = {v->multiplier, v->shift};
    tir_expr_ref fixed[2];
    for (uint32_t i = 0; i < 2; i++)
        fixed[i] = read_for(g, of[i], v->x, v->axis, idx);
    tir_expr_ref x = te_read(g, v->x, idx), zero = te_read_one(g, v->y_zero);
    if (v->x->dt == DT_I64)
        return qnn_saturated(g, qnn_moved(g, DT_I64, rescaled_wide(g, x, fixed[0], fixed[1]), zero), DT_I64, v->out);
    qnn_fixed_factor by = v->by;
    by.multiplier = v->is_known ? fixed[0] : tir_max(g->c, fixed[0], i32(g, -INT32_MAX));
    by.shift = fixed[1];
    tir_expr_ref y = qnn_scaled_fixed(g, &by, x);
    y = qnn_moved(g, DT_I32, y, zero);
    return v->out == DT_I32 ? y : qnn_saturated(g, y, DT_I32, v->out);
}

bool compute_rescale(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    rescale_ctx v = {.x = in[0], .multiplier = in[1], .shift = in[2], .y_zero = operand(n, in, 3)};
    int32_t axis = 0;
    if (((in[1]->rank == 1 && !te_is_one(in[1])) || (in[2]->rank == 1 && !te_is_one(in[2]))) &&
        !infer_axis(g->c, n, graph_attr_int(n, "axis"), (int32_t)in[0]->rank, &axis))
        return false;
    v.axis = (uint32_t)axis;
    const int64_t most = graph_attr_int(n, "most_shift");
    v.is_known = most < 31;
    v.by = (qnn_fixed_factor){.least = v.is_known ? -31 : -MOST_SHIFT,
                              .most = v.is_known ? (int32_t)most : MOST_SHIFT,
                              .twice = graph_attr_int(n, "twice") != 0,
                              .up = graph_attr_int(n, "up") != 0};
    v.out = te_out_type(n, 0)->dt;
    out[0] = te_compute(g, "rescale", v.out, in[0]->rank, in[0]->shape, rescale_body, &v);
    out[0]->node->inline_hint = true;
    return true;
}

/* --- rescale by one word --- */

typedef struct word_ctx {
    const te_tensor *x, *multiplier, *power, *y_zero;
    uint32_t axis;
    qnn_word_factor by;
    dtype out;
} word_ctx;

static tir_expr_ref word_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const word_ctx *v = ctx;
    qnn_word_factor by = v->by;
    by.multiplier = read_for(g, v->multiplier, v->x, v->axis, idx);
    by.power = tir_cast(g->c, DT_I32, read_for(g, v->power, v->x, v->axis, idx));
    tir_expr_ref y = qnn_scaled_by_word(g, &by, te_read(g, v->x, idx), te_read_one(g, v->y_zero));
    return qnn_saturated(g, y, DT_I32, v->out);
}

bool compute_rescale_word(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    word_ctx v = {.x = in[0], .multiplier = in[1], .power = in[2], .y_zero = operand(n, in, 3)};
    int32_t axis = 0;
    int64_t zero;
    if (!te_is_one(in[1]) && !infer_axis(g->c, n, graph_attr_int(n, "axis"), (int32_t)in[0]->rank, &axis))
        return false;
    v.axis = (uint32_t)axis;
    v.out = te_out_type(n, 0)->dt;
    v.by.right = graph_attr_int(n, "right");
    v.by.positive = qnn_known_zero(n, 3, &zero) && zero == dtype_min_int(v.out);
    out[0] = te_compute(g, "rescale", v.out, in[0]->rank, in[0]->shape, word_body, &v);
    out[0]->node->tag = "rescale_word";
    out[0]->node->inline_hint = true;
    return true;
}
