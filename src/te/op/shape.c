/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definitions of operators that change shapes and move data. Operands such as starts and pads are read by the
 * kernel when they are not constants; where they contradict the result's shape it ends with a status. */
#include "te/op/move.h"
#include "tir/walk.h"

#include <string.h>

bool move_injective(te_graph *g, const graph_node *n, te_tensor *const *in, uint32_t result, te_body_fn body,
                    move_ctx *v, te_tensor **out)
{
    v->n = n;
    v->in = in;
    v->out = te_out_type(n, result);
    v->rank = (uint32_t)v->out->shape.rank;
    out[result] = te_compute(g, n->op->name, v->out->dt, v->rank, te_shape(g, v->out), body, v);
    out[result]->node->inline_hint = true;
    return true;
}

/* --- operands that are numbers
 * ------------------------------------------------------------------------------------------- */

bool move_has(const move_ctx *v, uint32_t i)
{
    return te_has_operand(v->n, i);
}

tir_expr_ref move_operand(te_graph *g, const move_ctx *v, uint32_t i, int64_t k)
{
    return te_operand(g, v->n, v->in, i, k);
}

int64_t move_length(const move_ctx *v, uint32_t i)
{
    return te_operand_length(v->in, i);
}

tir_expr_ref move_scalar(te_graph *g, const move_ctx *v, uint32_t i)
{
    tir_expr_ref zero[TYPE_MAX_RANK];
    for (uint32_t a = 0; a < v->in[i]->rank; a++)
        zero[a] = te_i64(g, 0);
    return te_read(g, v->in[i], zero);
}

tir_expr_ref move_extent(te_graph *g, const move_ctx *v, int64_t a)
{
    return te_dim(g, v->out->shape.dims[a]);
}

tir_expr_ref move_same(te_graph *g, tir_expr_ref a, tir_expr_ref b)
{
    return tir_binary(g->c, TIR_EQ, a, b);
}

tir_expr_ref move_either(te_graph *g, tir_expr_ref a, tir_expr_ref b)
{
    return tir_binary(g->c, TIR_OR, a, b);
}

move_ctx move_context(const graph_node *n, te_tensor *const *in)
{
    const type *out = te_out_type(n, 0);
    return (move_ctx){.n = n, .in = in, .out = out, .rank = (uint32_t)out->shape.rank};
}

tir_expr_ref move_flatten(te_graph *g, uint32_t rank, tir_expr_ref const *extents, tir_expr_ref const *idx)
{
    tir_expr_ref flat = te_i64(g, 0);
    for (uint32_t i = 0; i < rank; i++)
        flat = tir_add(g->c, tir_mul(g->c, flat, extents[i]), idx[i]);
    return flat;
}

/* --- shapes
 * ---------------------------------------------------------------------------------------------------------------- */

/* The shortest groups of axes, from axis `from` of the result and from axis `at` of the data, that hold as many
 * elements: how many axes of the result, and of the data; all that are left where no product is known to be equal. */
static uint32_t group_of_axes(te_graph *g, const move_ctx *v, uint32_t from, uint32_t at, uint32_t *out_data)
{
    const shape data = te_in_type(v->n, 0)->shape, result = v->out->shape;
    dim want = dim_const(g->c, 1);
    for (uint32_t i = from; i < v->rank; i++) {
        dim have = dim_const(g->c, 1);
        want = dim_mul(g->c, want, result.dims[i]);
        for (uint32_t k = at; k < v->in[0]->rank; k++) {
            have = dim_mul(g->c, have, data.dims[k]);
            *out_data = k + 1 - at;
            if (dim_equal(have, want))
                return i + 1 - from;
        }
    }
    *out_data = v->in[0]->rank - at;
    return v->rank - from;
}

/* Group by group, so that no index of open extents is divided where axes stay or are only split or merged. */
static tir_expr_ref reshape_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const move_ctx *v = ctx;
    tir_expr_ref at[TYPE_MAX_RANK];
    tir_expr_ref const *extents = te_shape(g, v->out);
    uint32_t r = 0, d = 0, n_data = 0;
    while (r < v->rank || d < v->in[0]->rank) {
        const uint32_t n = group_of_axes(g, v, r, d, &n_data);
        tir_expr_ref flat = move_flatten(g, n, extents + r, idx + r);
        te_unflatten(g, flat, n_data, v->in[0]->shape + d, at + d);
        r += n;
        d += n_data;
    }
    return te_read(g, v->in[0], at);
}

/* The result has as many elements as the data. */
static void check_count(te_graph *g, const move_ctx *v)
{
    dim have = shape_elements(g->c, te_in_type(v->n, 0)->shape), want = shape_elements(g->c, v->out->shape);
    if (!dim_equal(have, want))
        te_check_shape(g, v->n, move_same(g, te_dim(g, have), te_dim(g, want)), "the number of elements");
}

/* Each entry is the extent of the result, 0 for that of the data, or once -1: the element counts are equal. */
static void check_reshape(te_graph *g, const move_ctx *v)
{
    compiler *c = g->c;
    tir_expr_ref fits = NULL, open = te_i64(g, 0);
    for (uint32_t i = 0; i < v->rank; i++) {
        tir_expr_ref want = move_operand(g, v, 1, i), have = move_extent(g, v, i),
                     left = move_same(g, want, te_i64(g, -1));
        tir_expr_ref ok = move_either(g, move_same(g, want, have), left);
        if (!graph_attr_int(v->n, "allowzero") && i < v->in[0]->rank)
            ok = move_either(g, ok,
                             tir_and(c, move_same(g, want, te_i64(g, 0)), move_same(g, v->in[0]->shape[i], have)));
        open = tir_add(c, open, tir_select(c, left, te_i64(g, 1), te_i64(g, 0)));
        fits = tir_and(c, fits, ok);
    }
    fits = tir_and(c, fits, tir_binary(c, TIR_LE, open, te_i64(g, 1)));
    te_check_shape(g, v->n, fits, "shape");
}

bool compute_reshape(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    move_ctx v = move_context(n, in);
    check_count(g, &v);
    if (move_has(&v, 1) && !graph_constant(n->inputs[1]))
        check_reshape(g, &v);
    return move_injective(g, n, in, 0, reshape_body, &(move_ctx){0}, out);
}

/* Entry a of the shape: 0 stands for the data's extent, -1 for what the other entries leave. */
static tir_expr_ref reshape_extent(te_graph *g, void *ctx, uint32_t result, uint32_t axis)
{
    const move_ctx *v = ctx;
    compiler *c = g->c;
    bool allowzero = graph_attr_int(v->n, "allowzero") != 0;
    tir_expr_ref zero = te_i64(g, 0), one = te_i64(g, 1), left = one, said = NULL;
    (void)result;
    for (uint32_t i = 0; i < v->in[0]->rank; i++)
        left = tir_mul(c, left, v->in[0]->shape[i]);
    for (uint32_t i = 0; i < v->rank; i++) {
        tir_expr_ref want = move_operand(g, v, 1, i);
        if (!allowzero && i < v->in[0]->rank)
            want = tir_select(c, move_same(g, want, zero), v->in[0]->shape[i], want);
        tir_expr_ref part = tir_floordiv(c, left, tir_max(c, want, one));
        if (i == axis)
            said = want;
        else
            left = tir_select(c, tir_binary(c, TIR_GT, want, zero), part,
                              tir_select(c, move_same(g, want, zero), zero, left));
    }
    return tir_select(c, move_same(g, said, te_i64(g, -1)), left, said);
}

bool extents_reshape(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    move_ctx v = move_context(n, in);
    return te_own_extents(g, n, reshape_extent, &v, out);
}

static tir_expr_ref expect_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    return te_read(g, ((const move_ctx *)ctx)->in[0], idx);
}

bool compute_expect(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    const tensor_data *rows = graph_attr(n, "rows")->u.tensor;
    tir_expr_ref any = NULL;
    for (int64_t r = 0; r < rows->dims[0]; r++) {
        tir_expr_ref all = NULL;
        for (int64_t k = 0; k < rows->dims[1]; k++)
            all = tir_and(
                g->c, all,
                move_same(g, te_operand(g, n, in, 1, k), te_i64(g, tensor_get_i64(rows, r * rows->dims[1] + k))));
        any = any && all ? move_either(g, any, all) : all;
    }
    te_check_shape(g, n, any, "the operand that says it");
    return move_injective(g, n, in, 0, expect_body, &(move_ctx){0}, out);
}

static tir_expr_ref transpose_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const move_ctx *v = ctx;
    const int64_t *perm = NULL;
    uint32_t len = graph_attr_ints(v->n, "perm", &perm);
    tir_expr_ref at[TYPE_MAX_RANK];
    for (uint32_t i = 0; i < v->rank; i++) {
        int64_t p = len ? perm[i] : (int64_t)(v->rank - 1 - i);
        at[p < 0 ? p + v->rank : p] = idx[i];
    }
    return te_read(g, v->in[0], at);
}

bool compute_transpose(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return move_injective(g, n, in, 0, transpose_body, &(move_ctx){0}, out);
}

static tir_expr_ref broadcast_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const move_ctx *v = ctx;
    return te_read_broadcast(g, v->in[0], v->rank, te_shape(g, v->out), idx);
}

/* An entry is the extent of the result, or 1 where that is the data's; the data fits already. */
static void check_broadcast(te_graph *g, const move_ctx *v)
{
    compiler *c = g->c;
    tir_expr_ref fits = NULL;
    int64_t len = move_length(v, 1), rank = v->rank, x_rank = v->in[0]->rank;
    for (int64_t k = 0; k < len; k++) {
        int64_t a = rank - len + k, x_axis = a - (rank - x_rank);
        tir_expr_ref want = move_operand(g, v, 1, k), have = move_extent(g, v, a),
                     x = x_axis < 0 ? te_i64(g, 1) : v->in[0]->shape[x_axis];
        tir_expr_ref one = tir_and(c, move_same(g, want, te_i64(g, 1)), move_same(g, x, have));
        fits = tir_and(c, fits, move_either(g, move_same(g, want, have), one));
    }
    te_check_shape(g, v->n, fits, "shape");
}

static tir_expr_ref broadcast_extent(te_graph *g, void *ctx, uint32_t result, uint32_t axis)
{
    const move_ctx *v = ctx;
    int64_t k = (int64_t)axis - v->rank + move_length(v, 1), x_axis = (int64_t)axis - v->rank + v->in[0]->rank;
    (void)result;
    tir_expr_ref one = te_i64(g, 1), x = x_axis < 0 ? one : v->in[0]->shape[x_axis];
    return k < 0 ? x : tir_select(g->c, move_same(g, x, one), move_operand(g, v, 1, k), x);
}

bool extents_broadcast_to(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    move_ctx v = move_context(n, in);
    return te_own_extents(g, n, broadcast_extent, &v, out);
}

bool compute_broadcast_to(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    move_ctx v = move_context(n, in);
    if (move_has(&v, 1) && !graph_constant(n->inputs[1]))
        check_broadcast(g, &v);
    return move_injective(g, n, in, 0, broadcast_body, &(move_ctx){0}, out);
}

static tir_expr_ref concatenate_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const move_ctx *v = ctx;
    compiler *c = g->c;
    tir_expr_ref at[TYPE_MAX_RANK], start = te_i64(g, 0), value = NULL;
    tir_expr_ref starts[256];
    uint32_t n = v->n->n_inputs;
    for (uint32_t i = 0; i < n; i++) {
        starts[i] = start;
        start = tir_add(c, start, v->in[i]->shape[v->axis]);
    }
    memcpy(at, idx, v->rank * sizeof *at);
    for (uint32_t i = n; i-- > 0;) { /* the last operand is the innermost else */
        at[v->axis] = tir_sub(c, idx[v->axis], starts[i]);
        tir_expr_ref x = te_read(g, v->in[i], at);
        value = value ? tir_select(c, tir_binary(c, TIR_LT, idx[v->axis], starts[i + 1]), x, value) : x;
    }
    return value;
}

bool compute_concatenate(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    move_ctx v = {0};
    if (n->n_inputs > 255)
        return infer_error(g->c, n, "%u operands; at most 255 are supported", n->n_inputs);
    if (!infer_axis(g->c, n, graph_attr_int(n, "axis"), (int32_t)in[0]->rank, &v.axis))
        return false;
    return move_injective(g, n, in, 0, concatenate_body, &v, out);
}

/* --- made from nothing
 * -------------------------------------------------------------------------------------------------------- */

static tir_expr_ref shape_of_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const move_ctx *v = ctx;
    compiler *c = g->c;
    int64_t start = graph_attr_int(v->n, "start");
    start = start < 0 ? start + v->in[0]->rank : start;
    start = start < 0 ? 0 : start;
    tir_expr_ref value = te_i64(g, 0);
    for (uint32_t i = (uint32_t)start; i < v->in[0]->rank; i++)
        value = tir_select(c, tir_binary(c, TIR_EQ, idx[0], te_i64(g, i - start)), v->in[0]->shape[i], value);
    return value;
}

bool compute_shape_of(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return move_injective(g, n, in, 0, shape_of_body, &(move_ctx){0}, out);
}

static tir_expr_ref size_of_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    (void)idx;
    const te_tensor *x = ((move_ctx *)ctx)->in[0];
    tir_expr_ref count = te_i64(g, 1);
    for (uint32_t i = 0; i < x->rank; i++)
        count = tir_mul(g->c, count, x->shape[i]);
    return count;
}

bool compute_size_of(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return move_injective(g, n, in, 0, size_of_body, &(move_ctx){0}, out);
}

static tir_expr_ref full_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    (void)idx;
    const tensor_data *t = graph_attr(((move_ctx *)ctx)->n, "value")->u.tensor;
    if (dtype_is_float(t->dt))
        return tir_float(g->c, t->dt, tensor_get_f64(t, 0));
    return tir_int(g->c, t->dt, tensor_get_i64(t, 0));
}

static tir_expr_ref full_extent(te_graph *g, void *ctx, uint32_t result, uint32_t axis)
{
    (void)result;
    return move_operand(g, ctx, 0, axis);
}

bool extents_full(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    move_ctx v = move_context(n, in);
    return te_own_extents(g, n, full_extent, &v, out);
}

bool compute_full(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    const move_ctx v = move_context(n, in);
    tir_expr_ref fits = NULL;
    for (uint32_t i = 0; i < v.rank; i++)
        fits = tir_and(g->c, fits, move_same(g, move_operand(g, &v, 0, i), move_extent(g, &v, i)));
    te_check_shape(g, n, fits, "shape");
    return move_injective(g, n, in, 0, full_body, &(move_ctx){0}, out);
}

static tir_expr_ref arange_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const move_ctx *v = ctx;
    dtype acc = te_acc_dtype(v->out->dt);
    tir_expr_ref step = tir_mul(g->c, tir_cast(g->c, acc, idx[0]), tir_cast(g->c, acc, move_scalar(g, v, 2)));
    return tir_cast(g->c, v->out->dt, tir_add(g->c, tir_cast(g->c, acc, move_scalar(g, v, 0)), step));
}

/* (limit - start) / delta as f64, rounded as the elements' type rounds. */
static tir_expr_ref arange_reach(te_graph *g, const move_ctx *v)
{
    compiler *c = g->c;
    dtype acc = dtype_is_float(v->out->dt) ? te_acc_dtype(v->out->dt) : DT_F64;
    tir_expr_ref way = tir_sub(c, tir_cast(c, acc, move_scalar(g, v, 1)), tir_cast(c, acc, move_scalar(g, v, 0)));
    return tir_binary(c, TIR_DIV, tir_cast(c, DT_F64, way), tir_cast(c, DT_F64, move_scalar(g, v, 2)));
}

static tir_expr_ref arange_extent(te_graph *g, void *ctx, uint32_t result, uint32_t axis)
{
    compiler *c = g->c;
    tir_expr_ref reach = arange_reach(g, ctx), none = tir_float(c, DT_F64, 0), most = tir_float(c, DT_F64, 1e12);
    (void)result;
    (void)axis;
    tir_expr_ref some = tir_cast(c, DT_I64, tir_call1(c, TIR_CEIL, tir_min(c, reach, most)));
    return tir_select(c, tir_binary(c, TIR_GT, reach, none), some, te_i64(g, 0)); /* NaN: none, then the check */
}

bool extents_arange(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    move_ctx v = move_context(n, in);
    return te_own_extents(g, n, arange_extent, &v, out);
}

/* The result has the least number of steps that reach the limit: steps - 1 < (limit - start) / delta <= steps, or none.
 */
static void check_arange(te_graph *g, const move_ctx *v)
{
    compiler *c = g->c;
    tir_expr_ref reach = arange_reach(g, v);
    tir_expr_ref steps = tir_cast(c, DT_F64, move_extent(g, v, 0)), none = tir_float(c, DT_F64, 0);
    tir_expr_ref low = tir_binary(c, TIR_LT, tir_sub(c, steps, tir_float(c, DT_F64, 1)), reach);
    tir_expr_ref empty = tir_and(c, move_same(g, steps, none), tir_binary(c, TIR_LE, reach, none));
    tir_expr_ref moves = tir_not(c, move_same(g, move_scalar(g, v, 2), tir_const(c, v->out->dt, 0)));
    tir_expr_ref some =
        tir_and(c, tir_not(c, move_same(g, steps, none)), tir_and(c, low, tir_binary(c, TIR_LE, reach, steps)));
    te_check_shape(g, v->n, tir_and(c, moves, move_either(g, empty, some)), "start, limit and delta");
}

bool compute_arange(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    const move_ctx v = move_context(n, in);
    if (!graph_constant(n->inputs[0]) || !graph_constant(n->inputs[1]) || !graph_constant(n->inputs[2]))
        check_arange(g, &v);
    return move_injective(g, n, in, 0, arange_body, &(move_ctx){0}, out);
}

static tir_expr_ref eye_like_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const move_ctx *v = ctx;
    compiler *c = g->c;
    tir_expr_ref on = tir_binary(c, TIR_EQ, tir_sub(c, idx[1], idx[0]), te_i64(g, graph_attr_int(v->n, "k")));
    return tir_select(c, on, tir_const(c, v->out->dt, 1), tir_const(c, v->out->dt, 0));
}

bool compute_eye_like(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return move_injective(g, n, in, 0, eye_like_body, &(move_ctx){0}, out);
}

static tir_expr_ref trilu_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const move_ctx *v = ctx;
    compiler *c = g->c;
    tir_expr_ref k = move_has(v, 1) ? move_operand(g, v, 1, 0) : te_i64(g, 0);
    tir_expr_ref diagonal = tir_sub(c, idx[v->rank - 1], idx[v->rank - 2]);
    tir_expr_ref keep = tir_binary(c, graph_attr_int(v->n, "upper") ? TIR_GE : TIR_LE, diagonal, k);
    return tir_select(c, keep, te_read(g, v->in[0], idx), tir_const(c, v->out->dt, 0));
}

bool compute_trilu(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return move_injective(g, n, in, 0, trilu_body, &(move_ctx){0}, out);
}

/* --- depth and space
 * ------------------------------------------------------------------------------------------------------------- */

static tir_expr_ref depth_to_space_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const move_ctx *v = ctx;
    compiler *c = g->c;
    tir_expr_ref b = te_i64(g, graph_attr_int(v->n, "block_size"));
    tir_expr_ref bh = tir_floormod(c, idx[2], b), bw = tir_floormod(c, idx[3], b),
                 block = tir_add(c, tir_mul(c, bh, b), bw), ch;
    if (strcmp(graph_attr_string(v->n, "mode"), "CRD") == 0)
        ch = tir_add(c, tir_mul(c, idx[1], tir_mul(c, b, b)), block);
    else
        ch = tir_add(c, tir_mul(c, block, te_dim(g, v->out->shape.dims[1])), idx[1]);
    tir_expr_ref at[4] = {idx[0], ch, tir_floordiv(c, idx[2], b), tir_floordiv(c, idx[3], b)};
    return te_read(g, v->in[0], at);
}

bool compute_depth_to_space(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return move_injective(g, n, in, 0, depth_to_space_body, &(move_ctx){0}, out);
}

static tir_expr_ref sliding_window_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const move_ctx *v = ctx;
    const uint32_t rank = v->in[0]->rank, count = v->rank - rank, axis = rank - count;
    const int64_t *strides = NULL;
    tir_expr_ref at[TYPE_MAX_RANK];
    (void)graph_attr_ints(v->n, "strides", &strides);
    for (uint32_t i = 0; i < axis; i++)
        at[i] = idx[i];
    for (uint32_t i = 0; i < count; i++)
        at[axis + i] = tir_add(g->c, tir_mul(g->c, idx[axis + i], te_i64(g, strides[i])), idx[rank + i]);
    return te_read(g, v->in[0], at);
}

bool compute_sliding_window(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return move_injective(g, n, in, 0, sliding_window_body, &(move_ctx){0}, out);
}

static tir_expr_ref space_to_depth_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const move_ctx *v = ctx;
    compiler *c = g->c;
    tir_expr_ref b = te_i64(g, graph_attr_int(v->n, "block_size")), channels = v->in[0]->shape[1];
    tir_expr_ref block = tir_floordiv(c, idx[1], channels), ch = tir_floormod(c, idx[1], channels);
    if (strcmp(graph_attr_string(v->n, "mode"), "CRD") == 0) {
        block = tir_floormod(c, idx[1], tir_mul(c, b, b));
        ch = tir_floordiv(c, idx[1], tir_mul(c, b, b));
    }
    tir_expr_ref at[4] = {idx[0], ch,
                          tir_add(c, tir_mul(c, idx[2], b), tir_floordiv(c, block, b)),
                          tir_add(c, tir_mul(c, idx[3], b), tir_floormod(c, block, b))};
    return te_read(g, v->in[0], at);
}

bool compute_space_to_depth(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return move_injective(g, n, in, 0, space_to_depth_body, &(move_ctx){0}, out);
}
