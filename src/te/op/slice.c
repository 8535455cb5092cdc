/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definitions of operators that cut pieces off, repeat them or put a border around (ONNX Split, Slice, Tile,
 * Pad). Operands that are not constants are read by the kernel: it ends with a status where they contradict the
 * result's shape. Where the result's extents are symbols, a kernel before it computes them of the same operands. */
#include "te/op/along.h"
#include "te/op/move.h"
#include "tir/walk.h"

#include <string.h>

static tir_expr_ref split_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const move_ctx *v = ctx;
    tir_expr_ref at[TYPE_MAX_RANK];
    memcpy(at, idx, v->rank * sizeof *at);
    at[v->axis] = tir_add(g->c, idx[v->axis], v->offset);
    return te_read(g, v->in[0], at);
}

static tir_expr_ref split_extent(te_graph *g, void *ctx, uint32_t result, uint32_t axis)
{
    (void)axis;
    return move_operand(g, ctx, 1, result);
}

bool extents_split(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    move_ctx v = move_context(n, in);
    return te_own_extents(g, n, split_extent, &v, out);
}

/* The parts have the sizes that the operand says, and are all of the axis. */
static void check_split(te_graph *g, const move_ctx *v)
{
    compiler *c = g->c;
    tir_expr_ref fits = NULL;
    dim sum = dim_const(c, 0), whole = te_in_type(v->n, 0)->shape.dims[v->axis];
    for (uint32_t i = 0; i < v->n->n_outputs; i++) {
        dim part = te_out_type(v->n, i)->shape.dims[v->axis];
        sum = dim_add(c, sum, part);
        if (move_has(v, 1))
            fits = tir_and(c, fits, move_same(g, move_operand(g, v, 1, i), te_dim(g, part)));
    }
    if (move_has(v, 1) && !dim_equal(sum, whole))
        fits = tir_and(c, fits, move_same(g, te_dim(g, sum), te_dim(g, whole)));
    te_check_shape(g, v->n, fits, "sizes");
}

bool compute_split(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    move_ctx v = {.n = n, .in = in};
    v.offset = te_i64(g, 0);
    if (!infer_axis(g->c, n, graph_attr_int(n, "axis"), (int32_t)in[0]->rank, &v.axis))
        return false;
    check_split(g, &v);
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
    if (!move_has(v, 4))
        return te_i64(g, 1);
    return tir_max(g->c, te_i64(g, -TE_MOST_EXTENT),
                   tir_min(g->c, move_operand(g, v, 4, k), te_i64(g, TE_MOST_EXTENT)));
}

/* Elements that entry k takes of an axis of `extent`. */
static tir_expr_ref slice_count(te_graph *g, const move_ctx *v, int64_t k, tir_expr_ref extent)
{
    compiler *c = g->c;
    tir_expr_ref zero = te_i64(g, 0), one = te_i64(g, 1), step = slice_step(g, v, k), end = move_operand(g, v, 2, k);
    tir_expr_ref back = tir_binary(c, TIR_LT, step, zero),
                 start = slice_start(g, move_operand(g, v, 1, k), extent, step);
    tir_expr_ref low = tir_select(c, back, te_i64(g, -1), zero);
    tir_expr_ref before = tir_binary(c, TIR_LT, end, tir_sub(c, zero, extent));
    tir_expr_ref wrapped = tir_select(c, before, low, tir_add(c, end, extent));
    end = tir_max(c, low, tir_min(c, tir_select(c, tir_binary(c, TIR_LT, end, zero), wrapped, end), extent));
    tir_expr_ref reach = tir_select(c, back, tir_sub(c, start, end), tir_sub(c, end, start));
    tir_expr_ref length = tir_max(c, one, tir_select(c, back, tir_sub(c, zero, step), step));
    tir_expr_ref count = tir_add(c, tir_floordiv(c, tir_sub(c, reach, one), length), one);
    tir_expr_ref none = move_either(g, tir_binary(c, TIR_LE, reach, zero), move_same(g, extent, zero));
    return tir_select(c, none, zero, count);
}

/* Elements that the operands take of axis a. */
static tir_expr_ref slice_taken(te_graph *g, const move_ctx *v, uint32_t a)
{
    compiler *c = g->c;
    const tensor_data *axes = move_has(v, 3) ? graph_constant(v->n->inputs[3]) : NULL;
    bool named = move_has(v, 3) && !axes;
    tir_expr_ref extent = v->in[0]->shape[a], count = extent, rank = te_i64(g, v->rank);
    for (int64_t k = 0; k < move_length(v, 1); k++) {
        int64_t at = axes ? tensor_get_i64(axes, k) : k;
        at = at < 0 ? at + v->rank : at;
        tir_expr_ref here = named ? move_same(g, te_wrap_index(g, move_operand(g, v, 3, k), rank), te_i64(g, a))
                                  : tir_int(c, DT_BOOL, at == (int64_t)a);
        count = tir_select(c, here, slice_count(g, v, k, extent), count);
    }
    return count;
}

static tir_expr_ref slice_extent(te_graph *g, void *ctx, uint32_t result, uint32_t axis)
{
    (void)result;
    return slice_taken(g, ctx, axis);
}

bool extents_strided_slice(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    move_ctx v = move_context(n, in);
    return te_own_extents(g, n, slice_extent, &v, out);
}

/* Every axis of the result has as many elements as the operands take, so that no position lies outside the data. */
static void check_slice(te_graph *g, const move_ctx *v)
{
    compiler *c = g->c;
    tir_expr_ref fits = NULL;
    if (move_has(v, 3) && !graph_constant(v->n->inputs[3]))
        te_check_axes(g, v->n, v->in, 3, v->rank);
    for (uint32_t a = 0; a < v->rank; a++)
        fits = tir_and(c, fits, move_same(g, slice_taken(g, v, a), move_extent(g, v, a)));
    for (int64_t k = 0; move_has(v, 4) && k < move_length(v, 4); k++)
        fits = tir_and(c, fits, tir_binary(c, TIR_NE, move_operand(g, v, 4, k), te_i64(g, 0)));
    te_check_shape(g, v->n, fits, "starts, ends and steps");
}

static tir_expr_ref slice_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const move_ctx *v = ctx;
    compiler *c = g->c;
    tir_expr_ref at[TYPE_MAX_RANK];
    memcpy(at, idx, v->rank * sizeof *at);
    const tensor_data *axes = move_has(v, 3) ? graph_constant(v->n->inputs[3]) : NULL;
    for (int64_t k = 0; k < move_length(v, 1); k++) {
        int64_t a = axes ? tensor_get_i64(axes, k) : k;
        a = a < 0 ? a + v->rank : a;
        tir_expr_ref step = slice_step(g, v, k),
                     start = slice_start(g, move_operand(g, v, 1, k), v->in[0]->shape[a], step);
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
        for (int64_t k = 0; k < move_length(v, 1); k++) {
            tir_expr_ref step = slice_step(g, v, k);
            tir_expr_ref start = slice_start(g, move_operand(g, v, 1, k), v->in[0]->shape[a], step);
            tir_expr_ref named = te_wrap_index(g, move_operand(g, v, 3, k), te_i64(g, v->rank));
            tir_expr_ref moved = tir_add(c, start, tir_mul(c, idx[a], step));
            at[a] = tir_select(c, tir_binary(c, TIR_EQ, named, te_i64(g, a)), moved, at[a]);
        }
    }
    return te_read(g, v->in[0], at);
}

bool compute_strided_slice(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    bool runtime_axes = graph_operand(n, 3) && !graph_constant(n->inputs[3]);
    move_ctx v = move_context(n, in);
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
        tir_expr_ref repeats = move_operand(g, v, 1, i), x = v->in[0]->shape[i], have = move_extent(g, v, i);
        tir_expr_ref times = tir_floordiv(g->c, have, x); /* repeats * x might overflow */
        tir_expr_ref some = tir_and(g->c, move_same(g, repeats, times), move_same(g, tir_mul(g->c, times, x), have));
        tir_expr_ref none = tir_and(g->c, move_same(g, have, zero), tir_binary(g->c, TIR_GE, repeats, zero));
        fits = tir_and(g->c, fits, tir_select(g->c, move_same(g, x, zero), none, some));
    }
    te_check_shape(g, v->n, fits, "repeats");
}

/* So many times the data's extent, as far as that does not overflow: what is above, the check finds. */
static tir_expr_ref tile_extent(te_graph *g, void *ctx, uint32_t result, uint32_t axis)
{
    const move_ctx *v = ctx;
    compiler *c = g->c;
    tir_expr_ref x = v->in[0]->shape[axis], times = move_operand(g, v, 1, axis);
    tir_expr_ref most = tir_floordiv(c, te_i64(g, TE_MOST_EXTENT), tir_max(c, x, te_i64(g, 1)));
    (void)result;
    return tir_mul(c, tir_max(c, te_i64(g, 0), tir_min(c, times, most)), x);
}

bool extents_tile(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    move_ctx v = move_context(n, in);
    return te_own_extents(g, n, tile_extent, &v, out);
}

bool compute_tile(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    move_ctx v = move_context(n, in);
    if (move_has(&v, 1))
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
    int64_t first = behind ? move_length(v, 1) / 2 : 0;
    if (!move_has(v, 3))
        return move_operand(g, v, 1, first + a);
    tir_expr_ref pad = te_i64(g, 0);
    for (int64_t k = 0; k < move_length(v, 3); k++) {
        tir_expr_ref named = move_same(g, te_wrap_index(g, move_operand(g, v, 3, k), te_i64(g, v->rank)), te_i64(g, a));
        pad = tir_select(c, named, move_operand(g, v, 1, first + k), pad);
    }
    return pad;
}

/* The extents of the result are the data's and what the pads add. */
static void check_pad(te_graph *g, const move_ctx *v)
{
    compiler *c = g->c;
    tir_expr_ref fits = NULL, most = te_i64(g, TE_MOST_EXTENT), least = te_i64(g, -TE_MOST_EXTENT);
    if (move_has(v, 3))
        te_check_axes(g, v->n, v->in, 3, v->rank);
    for (uint32_t a = 0; a < v->rank; a++) {
        tir_expr_ref begin = pad_of(g, v, a, false), end = pad_of(g, v, a, true), have = move_extent(g, v, a);
        tir_expr_ref sane = tir_and(c, tir_binary(c, TIR_GE, begin, least), tir_binary(c, TIR_LE, begin, most));
        tir_expr_ref near = tir_max(c, least, tir_min(c, begin, most)); /* differences of it do not overflow */
        tir_expr_ref rest = tir_sub(c, tir_sub(c, have, v->in[0]->shape[a]), near);
        fits = tir_and(c, fits, tir_and(c, sane, move_same(g, end, rest)));
    }
    te_check_shape(g, v->n, fits, "pads");
}

static tir_expr_ref pad_extent(te_graph *g, void *ctx, uint32_t result, uint32_t axis)
{
    const move_ctx *v = ctx;
    compiler *c = g->c;
    tir_expr_ref begin = te_sane(g, pad_of(g, v, axis, false)), end = te_sane(g, pad_of(g, v, axis, true));
    (void)result;
    return tir_add(c, tir_add(c, begin, v->in[0]->shape[axis]), end);
}

bool extents_pad(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    move_ctx v = move_context(n, in);
    return te_own_extents(g, n, pad_extent, &v, out);
}

/* An axis without elements has none that a border could repeat. */
static void check_border(te_graph *g, const move_ctx *v)
{
    compiler *c = g->c;
    tir_expr_ref fits = NULL, zero = te_i64(g, 0);
    for (uint32_t a = 0; a < v->rank; a++) {
        int64_t extent = 0;
        tir_expr_ref x = v->in[0]->shape[a], none = move_same(g, move_extent(g, v, a), zero);
        if (!tir_is_int(x, &extent) || extent == 0)
            fits = tir_and(c, fits, move_either(g, tir_binary(c, TIR_GT, x, zero), none));
    }
    te_check_shape(g, v->n, fits, "an empty axis");
}

/* At most `pads` places before an axis and behind it; INT64_MAX: it is not known. */
static int64_t most_pads(te_graph *g, const move_ctx *v, uint32_t axis)
{
    int64_t before = 0, behind = 0;
    if (!tir_is_int(pad_of(g, v, axis, false), &before) || !tir_is_int(pad_of(g, v, axis, true), &behind))
        return INT64_MAX;
    return before > behind ? before : behind;
}

/* Position in the data of position i relative to its start, under the pad mode. Where the border goes no further than
 * the data, there are three runs, between which conditions choose: loops are cut there, and each run is a copy. */
static tir_expr_ref pad_source(te_graph *g, const move_ctx *v, const char *mode, tir_expr_ref i, uint32_t axis)
{
    compiler *c = g->c;
    int64_t length = 0, pads = most_pads(g, v, axis);
    tir_expr_ref extent = v->in[0]->shape[axis], last = tir_sub(c, extent, te_i64(g, 1));
    bool known = tir_is_int(extent, &length) && length > 0;
    if (strcmp(mode, "edge") == 0)
        return te_nearest_on_axis(g, i, extent);
    if (strcmp(mode, "wrap") == 0)
        return known && pads <= length ? te_on_axis(g, i, extent, tir_add(c, i, extent), tir_sub(c, i, extent))
                                       : tir_floormod(c, i, extent);
    tir_expr_ref twice = tir_mul(c, last, te_i64(g, 2)), zero = te_i64(g, 0); /* reflect: ... 2 1 0 1 2 ... */
    if (known && pads < length)
        return te_on_axis(g, i, extent, tir_sub(c, zero, i), tir_sub(c, twice, i));
    tir_expr_ref period = tir_max(c, te_i64(g, 1), twice), m = tir_floormod(c, i, period);
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
        at[a] = constant ? i : pad_source(g, v, mode, i, a);
    }
    tir_expr_ref value = te_read(g, v->in[0], at);
    if (!inside)
        return value;
    tir_expr_ref fill = move_has(v, 2) ? move_scalar(g, v, 2) : tir_const(c, v->out->dt, 0);
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
    move_ctx v = move_context(n, in);
    check_pad(g, &v);
    if (strcmp(mode, "constant") != 0)
        check_border(g, &v);
    return move_injective(g, n, in, 0, pad_body, &(move_ctx){0}, out);
}
