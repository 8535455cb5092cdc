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

static bool has_input(const move_ctx *v, uint32_t i)
{
    return te_has_operand(v->n, i);
}

static tir_expr_ref operand(te_graph *g, const move_ctx *v, uint32_t i, int64_t k)
{
    return te_operand(g, v->n, v->in, i, k);
}

static int64_t operand_length(const move_ctx *v, uint32_t i)
{
    return te_operand_length(v->in, i);
}

/* The one element of operand i. */
static tir_expr_ref scalar(te_graph *g, const move_ctx *v, uint32_t i)
{
    tir_expr_ref zero[TYPE_MAX_RANK];
    for (uint32_t a = 0; a < v->in[i]->rank; a++)
        zero[a] = te_i64(g, 0);
    return te_read(g, v->in[i], zero);
}

static tir_expr_ref out_extent(te_graph *g, const move_ctx *v, int64_t a)
{
    return te_dim(g, v->out->shape.dims[a]);
}

static tir_expr_ref same(te_graph *g, tir_expr_ref a, tir_expr_ref b)
{
    return tir_binary(g->c, TIR_EQ, a, b);
}

static tir_expr_ref either(te_graph *g, tir_expr_ref a, tir_expr_ref b)
{
    return tir_binary(g->c, TIR_OR, a, b);
}

static move_ctx context(const graph_node *n, te_tensor *const *in)
{
    const type *out = te_out_type(n, 0);
    return (move_ctx){.n = n, .in = in, .out = out, .rank = (uint32_t)out->shape.rank};
}

/* Row-major number of an index. */
static tir_expr_ref flatten(te_graph *g, uint32_t rank, tir_expr_ref const *extents, tir_expr_ref const *idx)
{
    tir_expr_ref flat = te_i64(g, 0);
    for (uint32_t i = 0; i < rank; i++)
        flat = tir_add(g->c, tir_mul(g->c, flat, extents[i]), idx[i]);
    return flat;
}

/* --- shapes
 * ---------------------------------------------------------------------------------------------------------------- */

static tir_expr_ref reshape_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const move_ctx *v = ctx;
    tir_expr_ref at[TYPE_MAX_RANK];
    te_unflatten(g, flatten(g, v->rank, te_shape(g, v->out), idx), v->in[0]->rank, v->in[0]->shape, at);
    return te_read(g, v->in[0], at);
}

/* The result has as many elements as the data. */
static void check_count(te_graph *g, const move_ctx *v)
{
    dim have = shape_elements(g->c, te_in_type(v->n, 0)->shape), want = shape_elements(g->c, v->out->shape);
    if (!dim_equal(have, want))
        te_check_shape(g, v->n, same(g, te_dim(g, have), te_dim(g, want)), "the number of elements");
}

/* Each entry is the extent of the result, 0 for that of the data, or once -1: the element counts are equal. */
static void check_reshape(te_graph *g, const move_ctx *v)
{
    compiler *c = g->c;
    tir_expr_ref fits = NULL, open = te_i64(g, 0);
    for (uint32_t i = 0; i < v->rank; i++) {
        tir_expr_ref want = operand(g, v, 1, i), have = out_extent(g, v, i), left = same(g, want, te_i64(g, -1));
        tir_expr_ref ok = either(g, same(g, want, have), left);
        if (!graph_attr_int(v->n, "allowzero") && i < v->in[0]->rank)
            ok = either(g, ok, tir_and(c, same(g, want, te_i64(g, 0)), same(g, v->in[0]->shape[i], have)));
        open = tir_add(c, open, tir_select(c, left, te_i64(g, 1), te_i64(g, 0)));
        fits = tir_and(c, fits, ok);
    }
    fits = tir_and(c, fits, tir_binary(c, TIR_LE, open, te_i64(g, 1)));
    te_check_shape(g, v->n, fits, "shape");
}

bool compute_reshape(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    move_ctx v = context(n, in);
    check_count(g, &v);
    if (has_input(&v, 1) && !graph_constant(n->inputs[1]))
        check_reshape(g, &v);
    return move_injective(g, n, in, 0, reshape_body, &(move_ctx){0}, out);
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
            all = tir_and(g->c, all,
                          same(g, te_operand(g, n, in, 1, k), te_i64(g, tensor_get_i64(rows, r * rows->dims[1] + k))));
        any = any && all ? either(g, any, all) : all;
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
    return te_read_broadcast(g, v->in[0], v->rank, idx);
}

/* An entry is the extent of the result, or 1 where that is the data's; the data fits already. */
static void check_broadcast(te_graph *g, const move_ctx *v)
{
    compiler *c = g->c;
    tir_expr_ref fits = NULL;
    int64_t len = operand_length(v, 1), rank = v->rank, x_rank = v->in[0]->rank;
    for (int64_t k = 0; k < len; k++) {
        int64_t a = rank - len + k, x_axis = a - (rank - x_rank);
        tir_expr_ref want = operand(g, v, 1, k), have = out_extent(g, v, a),
                     x = x_axis < 0 ? te_i64(g, 1) : v->in[0]->shape[x_axis];
        tir_expr_ref one = tir_and(c, same(g, want, te_i64(g, 1)), same(g, x, have));
        fits = tir_and(c, fits, either(g, same(g, want, have), one));
    }
    te_check_shape(g, v->n, fits, "shape");
}

bool compute_broadcast_to(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    move_ctx v = context(n, in);
    if (!graph_constant(n->inputs[1]))
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

static tir_expr_ref split_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const move_ctx *v = ctx;
    tir_expr_ref at[TYPE_MAX_RANK];
    memcpy(at, idx, v->rank * sizeof *at);
    at[v->axis] = tir_add(g->c, idx[v->axis], v->offset);
    return te_read(g, v->in[0], at);
}

bool compute_split(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    move_ctx v = {.n = n, .in = in};
    tir_expr_ref fits = NULL;
    v.offset = te_i64(g, 0);
    if (!infer_axis(g->c, n, graph_attr_int(n, "axis"), (int32_t)in[0]->rank, &v.axis))
        return false;
    for (uint32_t i = 0; i < n->n_outputs && has_input(&v, 1); i++)
        fits = tir_and(g->c, fits, same(g, operand(g, &v, 1, i), te_dim(g, te_out_type(n, i)->shape.dims[v.axis])));
    te_check_shape(g, n, fits, "sizes");
    for (uint32_t i = 0; i < n->n_outputs; i++) {
        (void)move_injective(g, n, in, i, split_body, &v, out);
        v.offset = tir_add(g->c, v.offset, out[i]->shape[v.axis]);
    }
    return true;
}

/* ONNX Slice-13 with run-time operands: start clamped to [0, extent] (or [0, extent-1] for negative steps). */
static tir_expr_ref slice_start(te_graph *g, tir_expr_ref start, tir_expr_ref extent, tir_expr_ref step)
{
    compiler *c = g->c;
    tir_expr_ref last = tir_sub(c, extent, te_i64(g, 1));
    tir_expr_ref hi = tir_select(c, tir_binary(c, TIR_LT, step, te_i64(g, 0)), last, extent);
    return tir_max(c, te_i64(g, 0), tir_min(c, te_wrap_index(g, start, extent), hi));
}

/* Larger steps reach no second element, and their multiples would overflow. */
static tir_expr_ref slice_step(te_graph *g, const move_ctx *v, int64_t k)
{
    if (!has_input(v, 4))
        return te_i64(g, 1);
    return tir_max(g->c, te_i64(g, -TE_MOST_EXTENT), tir_min(g->c, operand(g, v, 4, k), te_i64(g, TE_MOST_EXTENT)));
}

/* Elements that entry k takes of an axis of `extent`. */
static tir_expr_ref slice_count(te_graph *g, const move_ctx *v, int64_t k, tir_expr_ref extent)
{
    compiler *c = g->c;
    tir_expr_ref zero = te_i64(g, 0), one = te_i64(g, 1), step = slice_step(g, v, k), end = operand(g, v, 2, k);
    tir_expr_ref back = tir_binary(c, TIR_LT, step, zero), start = slice_start(g, operand(g, v, 1, k), extent, step);
    tir_expr_ref low = tir_select(c, back, te_i64(g, -1), zero);
    tir_expr_ref before = tir_binary(c, TIR_LT, end, tir_sub(c, zero, extent));
    tir_expr_ref wrapped = tir_select(c, before, low, tir_add(c, end, extent));
    end = tir_max(c, low, tir_min(c, tir_select(c, tir_binary(c, TIR_LT, end, zero), wrapped, end), extent));
    tir_expr_ref reach = tir_select(c, back, tir_sub(c, start, end), tir_sub(c, end, start));
    tir_expr_ref length = tir_max(c, one, tir_select(c, back, tir_sub(c, zero, step), step));
    tir_expr_ref count = tir_add(c, tir_floordiv(c, tir_sub(c, reach, one), length), one);
    tir_expr_ref none = either(g, tir_binary(c, TIR_LE, reach, zero), same(g, extent, zero));
    return tir_select(c, none, zero, count);
}

/* Every axis of the result has as many elements as the operands take, so that no position lies outside the data. */
static void check_slice(te_graph *g, const move_ctx *v)
{
    compiler *c = g->c;
    const tensor_data *axes = has_input(v, 3) ? graph_constant(v->n->inputs[3]) : NULL;
    bool named = has_input(v, 3) && !axes;
    tir_expr_ref fits = NULL, rank = te_i64(g, v->rank);
    if (named)
        te_check_axes(g, v->n, v->in, 3, v->rank);
    for (uint32_t a = 0; a < v->rank; a++) {
        tir_expr_ref extent = v->in[0]->shape[a], count = extent;
        for (int64_t k = 0; k < operand_length(v, 1); k++) {
            int64_t at = axes ? tensor_get_i64(axes, k) : k;
            at = at < 0 ? at + v->rank : at;
            tir_expr_ref here = named ? same(g, te_wrap_index(g, operand(g, v, 3, k), rank), te_i64(g, a))
                                      : tir_int(c, DT_BOOL, at == (int64_t)a);
            count = tir_select(c, here, slice_count(g, v, k, extent), count);
        }
        fits = tir_and(c, fits, same(g, count, out_extent(g, v, a)));
    }
    for (int64_t k = 0; has_input(v, 4) && k < operand_length(v, 4); k++)
        fits = tir_and(c, fits, tir_binary(c, TIR_NE, operand(g, v, 4, k), te_i64(g, 0)));
    te_check_shape(g, v->n, fits, "starts, ends and steps");
}

static tir_expr_ref slice_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const move_ctx *v = ctx;
    compiler *c = g->c;
    tir_expr_ref at[TYPE_MAX_RANK];
    memcpy(at, idx, v->rank * sizeof *at);
    const tensor_data *axes = has_input(v, 3) ? graph_constant(v->n->inputs[3]) : NULL;
    for (int64_t k = 0; k < operand_length(v, 1); k++) {
        int64_t a = axes ? tensor_get_i64(axes, k) : k;
        a = a < 0 ? a + v->rank : a;
        tir_expr_ref step = slice_step(g, v, k), start = slice_start(g, operand(g, v, 1, k), v->in[0]->shape[a], step);
        at[a] = tir_add(c, start, tir_mul(c, idx[a], step));
    }
    return te_read(g, v->in[0], at);
}

/* With axes known only at run time: for each data axis, the entry that names it (or the whole axis). */
static tir_expr_ref slice_runtime_axes_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const move_ctx *v = ctx;
    compiler *c = g->c;
    tir_expr_ref at[TYPE_MAX_RANK];
    for (uint32_t a = 0; a < v->rank; a++) {
        at[a] = idx[a];
        for (int64_t k = 0; k < operand_length(v, 1); k++) {
            tir_expr_ref step = slice_step(g, v, k);
            tir_expr_ref start = slice_start(g, operand(g, v, 1, k), v->in[0]->shape[a], step);
            tir_expr_ref named = te_wrap_index(g, operand(g, v, 3, k), te_i64(g, v->rank));
            tir_expr_ref moved = tir_add(c, start, tir_mul(c, idx[a], step));
            at[a] = tir_select(c, tir_binary(c, TIR_EQ, named, te_i64(g, a)), moved, at[a]);
        }
    }
    return te_read(g, v->in[0], at);
}

bool compute_strided_slice(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    bool runtime_axes = n->n_inputs > 3 && n->inputs[3] && !graph_constant(n->inputs[3]);
    move_ctx v = context(n, in);
    check_slice(g, &v);
    return move_injective(g, n, in, 0, runtime_axes ? slice_runtime_axes_body : slice_body, &(move_ctx){0}, out);
}

static tir_expr_ref tile_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const move_ctx *v = ctx;
    tir_expr_ref at[TYPE_MAX_RANK];
    for (uint32_t i = 0; i < v->rank; i++)
        at[i] = tir_floormod(g->c, idx[i], v->in[0]->shape[i]);
    return te_read(g, v->in[0], at);
}

static void check_tile(te_graph *g, const move_ctx *v)
{
    tir_expr_ref fits = NULL, zero = te_i64(g, 0);
    for (uint32_t i = 0; i < v->rank; i++) {
        tir_expr_ref repeats = operand(g, v, 1, i), x = v->in[0]->shape[i], have = out_extent(g, v, i);
        tir_expr_ref times = tir_floordiv(g->c, have, x); /* repeats * x might overflow */
        tir_expr_ref some = tir_and(g->c, same(g, repeats, times), same(g, tir_mul(g->c, times, x), have));
        tir_expr_ref none = tir_and(g->c, same(g, have, zero), tir_binary(g->c, TIR_GE, repeats, zero));
        fits = tir_and(g->c, fits, tir_select(g->c, same(g, x, zero), none, some));
    }
    te_check_shape(g, v->n, fits, "repeats");
}

bool compute_tile(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    move_ctx v = context(n, in);
    check_tile(g, &v);
    return move_injective(g, n, in, 0, tile_body, &(move_ctx){0}, out);
}

/* --- padding
 * ------------------------------------------------------------------------------------------------------------------ */

/* Pad of data axis a in front, or behind: entry k of that half of `pads` where axis k of `axes` is a; zero when no
 * entry names it. */
static tir_expr_ref pad_of(te_graph *g, const move_ctx *v, uint32_t a, bool behind)
{
    compiler *c = g->c;
    int64_t first = behind ? operand_length(v, 1) / 2 : 0;
    if (!has_input(v, 3))
        return operand(g, v, 1, first + a);
    tir_expr_ref pad = te_i64(g, 0);
    for (int64_t k = 0; k < operand_length(v, 3); k++) {
        tir_expr_ref named = same(g, te_wrap_index(g, operand(g, v, 3, k), te_i64(g, v->rank)), te_i64(g, a));
        pad = tir_select(c, named, operand(g, v, 1, first + k), pad);
    }
    return pad;
}

/* The extents of the result are the data's and what the pads add. */
static void check_pad(te_graph *g, const move_ctx *v)
{
    compiler *c = g->c;
    tir_expr_ref fits = NULL, most = te_i64(g, TE_MOST_EXTENT), least = te_i64(g, -TE_MOST_EXTENT);
    if (has_input(v, 3))
        te_check_axes(g, v->n, v->in, 3, v->rank);
    for (uint32_t a = 0; a < v->rank; a++) {
        tir_expr_ref begin = pad_of(g, v, a, false), end = pad_of(g, v, a, true), have = out_extent(g, v, a);
        tir_expr_ref sane = tir_and(c, tir_binary(c, TIR_GE, begin, least), tir_binary(c, TIR_LE, begin, most));
        tir_expr_ref near = tir_max(c, least, tir_min(c, begin, most)); /* differences of it do not overflow */
        tir_expr_ref rest = tir_sub(c, tir_sub(c, have, v->in[0]->shape[a]), near);
        fits = tir_and(c, fits, tir_and(c, sane, same(g, end, rest)));
    }
    te_check_shape(g, v->n, fits, "pads");
}

/* Position in the data of position i relative to its start, under the pad mode. */
static tir_expr_ref pad_source(te_graph *g, const char *mode, tir_expr_ref i, tir_expr_ref extent)
{
    compiler *c = g->c;
    tir_expr_ref zero = te_i64(g, 0), last = tir_sub(c, extent, te_i64(g, 1));
    if (strcmp(mode, "edge") == 0)
        return tir_max(c, zero, tir_min(c, i, last));
    if (strcmp(mode, "wrap") == 0)
        return tir_floormod(c, i, extent);
    tir_expr_ref period = tir_max(c, te_i64(g, 1), tir_mul(c, last, te_i64(g, 2))); /* reflect: ... 2 1 0 1 2 ... */
    tir_expr_ref m = tir_floormod(c, i, period);
    return tir_min(c, m, tir_sub(c, period, m));
}

static tir_expr_ref pad_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const move_ctx *v = ctx;
    compiler *c = g->c;
    const char *mode = graph_attr_string(v->n, "mode");
    bool constant = strcmp(mode, "constant") == 0;
    tir_expr_ref at[TYPE_MAX_RANK], inside = NULL;
    for (uint32_t a = 0; a < v->rank; a++) {
        tir_expr_ref begin = pad_of(g, v, a, false), i = tir_sub(c, idx[a], begin), extent = v->in[0]->shape[a];
        if (constant && !(tir_is_const(begin, 0) && tir_expr_equal(extent, te_dim(g, v->out->shape.dims[a]))))
            inside = tir_and(c, inside, te_in_bounds(g, i, extent));
        at[a] = constant ? i : pad_source(g, mode, i, extent);
    }
    tir_expr_ref value = te_read(g, v->in[0], at);
    if (!inside)
        return value;
    tir_expr_ref fill = has_input(v, 2) ? scalar(g, v, 2) : tir_const(c, v->out->dt, 0);
    return tir_select(c, inside, value, fill);
}

bool compute_pad(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    static const char *const modes[] = {"constant", "edge", "reflect", "wrap"};
    const char *mode = graph_attr_string(n, "mode");
    bool known = false;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        known |= strcmp(mode, modes[i]) == 0;
    if (!known)
        return infer_error(g->c, n, "unknown pad mode '%s'", mode);
    move_ctx v = context(n, in);
    check_pad(g, &v);
    return move_injective(g, n, in, 0, pad_body, &(move_ctx){0}, out);
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

bool compute_full(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    const move_ctx v = context(n, in);
    tir_expr_ref fits = NULL;
    for (uint32_t i = 0; i < v.rank; i++)
        fits = tir_and(g->c, fits, same(g, operand(g, &v, 0, i), out_extent(g, &v, i)));
    te_check_shape(g, n, fits, "shape");
    return move_injective(g, n, in, 0, full_body, &(move_ctx){0}, out);
}

static tir_expr_ref arange_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const move_ctx *v = ctx;
    dtype acc = te_acc_dtype(v->out->dt);
    tir_expr_ref step = tir_mul(g->c, tir_cast(g->c, acc, idx[0]), tir_cast(g->c, acc, scalar(g, v, 2)));
    return tir_cast(g->c, v->out->dt, tir_add(g->c, tir_cast(g->c, acc, scalar(g, v, 0)), step));
}

/* The result has the least number of steps that reach the limit: steps - 1 < (limit - start) / delta <= steps, or none.
 */
static void check_arange(te_graph *g, const move_ctx *v)
{
    compiler *c = g->c;
    dtype acc = dtype_is_float(v->out->dt) ? te_acc_dtype(v->out->dt) : DT_F64;
    tir_expr_ref way = tir_sub(c, tir_cast(c, acc, scalar(g, v, 1)), tir_cast(c, acc, scalar(g, v, 0)));
    tir_expr_ref reach = tir_binary(c, TIR_DIV, tir_cast(c, DT_F64, way), tir_cast(c, DT_F64, scalar(g, v, 2)));
    tir_expr_ref steps = tir_cast(c, DT_F64, out_extent(g, v, 0)), none = tir_float(c, DT_F64, 0);
    tir_expr_ref low = tir_binary(c, TIR_LT, tir_sub(c, steps, tir_float(c, DT_F64, 1)), reach);
    tir_expr_ref empty = tir_and(c, same(g, steps, none), tir_binary(c, TIR_LE, reach, none));
    tir_expr_ref moves = tir_not(c, same(g, scalar(g, v, 2), tir_const(c, v->out->dt, 0)));
    tir_expr_ref some =
        tir_and(c, tir_not(c, same(g, steps, none)), tir_and(c, low, tir_binary(c, TIR_LE, reach, steps)));
    te_check_shape(g, v->n, tir_and(c, moves, either(g, empty, some)), "start, limit and delta");
}

bool compute_arange(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    const move_ctx v = context(n, in);
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
    tir_expr_ref k = has_input(v, 1) ? operand(g, v, 1, 0) : te_i64(g, 0);
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

static tir_expr_ref space_to_depth_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const move_ctx *v = ctx;
    compiler *c = g->c;
    tir_expr_ref b = te_i64(g, graph_attr_int(v->n, "block_size")), channels = v->in[0]->shape[1];
    tir_expr_ref block = tir_floordiv(c, idx[1], channels);
    tir_expr_ref at[4] = {idx[0], tir_floormod(c, idx[1], channels),
                          tir_add(c, tir_mul(c, idx[2], b), tir_floordiv(c, block, b)),
                          tir_add(c, tir_mul(c, idx[3], b), tir_floormod(c, block, b))};
    return te_read(g, v->in[0], at);
}

bool compute_space_to_depth(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return move_injective(g, n, in, 0, space_to_depth_body, &(move_ctx){0}, out);
}
