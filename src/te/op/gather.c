/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definitions of operators that take positions and lengths from data. Indices wrap once when negative, as ONNX
 * says; what lies out of range ends the kernel with a status. */
#include "te/op/move.h"

#include <string.h>

static tir_expr_ref index_at(te_graph *g, const te_tensor *t, tir_expr_ref const *at, tir_expr_ref extent)
{
    return te_wrap_index(g, tir_cast(g->c, DT_I64, te_read(g, t, at)), extent);
}

/* Whether every element of operand i is known to be an index of the axis, negative ones included. */
static bool known_indices(const move_ctx *v, uint32_t i, tir_expr_ref extent)
{
    const tensor_data *t = graph_constant(v->n->inputs[i]);
    int64_t n = 0;
    if (!t || !tir_is_int(extent, &n))
        return false;
    int64_t count = t->kind == TENSOR_SPLAT && t->count > 0 ? 1 : t->count;
    for (int64_t k = 0; k < count; k++) {
        int64_t at = tensor_get_i64(t, k);
        if (at < -n || at >= n)
            return false;
    }
    return true;
}

/* The element of x's axis that operand 1 names at `at`. Where it names none the kernel ends with a status, but another
 * part of it may find that out: it gets the nearest, never other memory. */
static tir_expr_ref safe_index(te_graph *g, const move_ctx *v, tir_expr_ref const *at, tir_expr_ref extent)
{
    tir_expr_ref i = index_at(g, v->in[1], at, extent);
    return known_indices(v, 1, extent) ? i : te_clamp_index(g, i, extent);
}

/* Every element of the indices names one of the axis. */
static void check_indices(te_graph *g, const graph_node *n, te_tensor *const *in, tir_expr_ref extent)
{
    const move_ctx v = {.n = n, .in = in};
    const te_tensor *ix = in[1];
    te_axis *const *axes = te_data_axes(g, ix->rank, ix->shape);
    tir_expr_ref at[TYPE_MAX_RANK];
    if (known_indices(&v, 1, extent))
        return;
    for (uint32_t i = 0; i < ix->rank; i++)
        at[i] = te_var(g, axes[i]);
    te_check_range(g, n, ix->rank, axes, te_names_element(g, tir_cast(g->c, DT_I64, te_read(g, ix, at)), extent),
                   "an index");
}

static tir_expr_ref take_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const move_ctx *v = ctx;
    const te_tensor *x = v->in[0], *ix = v->in[1];
    uint32_t a = (uint32_t)v->axis;
    tir_expr_ref at[TYPE_MAX_RANK];
    memcpy(at, idx, a * sizeof *at);
    at[a] = safe_index(g, v, idx + a, x->shape[a]);
    for (uint32_t i = a + 1; i < x->rank; i++)
        at[i] = idx[i + ix->rank - 1];
    return te_read(g, x, at);
}

bool compute_take(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    move_ctx v = {0};
    if (!infer_axis(g->c, n, graph_attr_int(n, "axis"), (int32_t)in[0]->rank, &v.axis))
        return false;
    check_indices(g, n, in, in[0]->shape[v.axis]);
    return move_injective(g, n, in, 0, take_body, &v, out);
}

static tir_expr_ref gather_elements_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const move_ctx *v = ctx;
    tir_expr_ref at[TYPE_MAX_RANK];
    memcpy(at, idx, v->rank * sizeof *at);
    at[v->axis] = safe_index(g, v, idx, v->in[0]->shape[v->axis]);
    return te_read(g, v->in[0], at);
}

bool compute_gather_elements(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    move_ctx v = {0};
    if (!infer_axis(g->c, n, graph_attr_int(n, "axis"), (int32_t)in[0]->rank, &v.axis))
        return false;
    check_indices(g, n, in, in[0]->shape[v.axis]);
    return move_injective(g, n, in, 0, gather_elements_body, &v, out);
}

static tir_expr_ref gather_nd_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const move_ctx *v = ctx;
    const te_tensor *x = v->in[0], *ix = v->in[1];
    uint32_t batch = (uint32_t)graph_attr_int(v->n, "batch_dims"), lead = ix->rank - 1;
    int64_t depth = 0;
    tir_expr_ref at[TYPE_MAX_RANK], ia[TYPE_MAX_RANK];
    (void)tir_is_int(ix->shape[lead], &depth);
    memcpy(ia, idx, lead * sizeof *ia);
    memcpy(at, idx, batch * sizeof *at);
    for (uint32_t k = 0; k < (uint32_t)depth; k++) {
        ia[lead] = te_i64(g, k);
        at[batch + k] = safe_index(g, v, ia, x->shape[batch + k]);
    }
    for (uint32_t i = batch + (uint32_t)depth; i < x->rank; i++)
        at[i] = idx[lead + i - batch - (uint32_t)depth];
    return te_read(g, x, at);
}

void te_check_tuples(te_graph *g, const graph_node *n, te_tensor *const *in, uint32_t first)
{
    const te_tensor *ix = in[1];
    uint32_t lead = ix->rank - 1;
    int64_t depth = 0;
    te_axis *const *axes = te_data_axes(g, lead, ix->shape);
    tir_expr_ref at[TYPE_MAX_RANK], holds = NULL;
    (void)tir_is_int(ix->shape[lead], &depth);
    for (uint32_t i = 0; i < lead; i++)
        at[i] = te_var(g, axes[i]);
    for (uint32_t k = 0; k < (uint32_t)depth; k++) {
        at[lead] = te_i64(g, k);
        tir_expr_ref i = tir_cast(g->c, DT_I64, te_read(g, ix, at));
        holds = tir_and(g->c, holds, te_names_element(g, i, in[0]->shape[first + k]));
    }
    if (holds)
        te_check_range(g, n, lead, axes, holds, "an index");
}

bool compute_gather_nd(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    te_check_tuples(g, n, in, (uint32_t)graph_attr_int(n, "batch_dims"));
    return move_injective(g, n, in, 0, gather_nd_body, &(move_ctx){0}, out);
}

/* The update lies within the cache; in a circular one it starts anywhere. */
static void check_first(te_graph *g, const graph_node *n, te_tensor *const *in, int32_t axis, bool circular)
{
    compiler *c = g->c;
    te_axis *const *axes = te_data_axes(g, 1, in[2]->shape);
    tir_expr_ref at[1] = {te_var(g, axes[0])}, first = tir_cast(c, DT_I64, te_read(g, in[2], at));
    tir_expr_ref most = circular ? te_i64(g, TE_MOST_EXTENT) : tir_sub(c, in[0]->shape[axis], in[1]->shape[axis]);
    te_check_range(g, n, 1, axes,
                   tir_and(c, tir_binary(c, TIR_GE, first, te_i64(g, 0)), tir_binary(c, TIR_LE, first, most)),
                   "a first position");
}

/* The update covers [first, first + its extent) of the axis; `circular` goes on from the start at the end. */
static tir_expr_ref tensor_scatter_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const move_ctx *v = ctx;
    compiler *c = g->c;
    const te_tensor *cache = v->in[0], *update = v->in[1];
    tir_expr_ref at[TYPE_MAX_RANK], first = te_i64(g, 0);
    if (te_has_operand(v->n, 2))
        first = tir_cast(c, DT_I64, te_read(g, v->in[2], idx));
    memcpy(at, idx, v->rank * sizeof *at);
    at[v->axis] = tir_sub(c, idx[v->axis], first);
    if (strcmp(graph_attr_string(v->n, "mode"), "circular") == 0)
        at[v->axis] = tir_floormod(c, at[v->axis], cache->shape[v->axis]);
    tir_expr_ref written = te_in_bounds(g, at[v->axis], update->shape[v->axis]);
    return tir_select(c, written, te_read(g, update, at), te_read(g, cache, idx));
}

bool compute_tensor_scatter(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    const char *mode = graph_attr_string(n, "mode");
    move_ctx v = {0};
    if (strcmp(mode, "linear") != 0 && strcmp(mode, "circular") != 0)
        return infer_error(g->c, n, "unknown mode '%s'", mode);
    if (!infer_axis(g->c, n, graph_attr_int(n, "axis"), (int32_t)in[0]->rank, &v.axis))
        return false;
    if (te_has_operand(n, 2))
        check_first(g, n, in, v.axis, strcmp(mode, "circular") == 0);
    return move_injective(g, n, in, 0, tensor_scatter_body, &v, out);
}

static tir_expr_ref one_hot_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const move_ctx *v = ctx;
    compiler *c = g->c;
    tir_expr_ref at[TYPE_MAX_RANK], off[1] = {te_i64(g, 0)}, on[1] = {te_i64(g, 1)};
    for (uint32_t i = 0, o = 0; o < v->rank; o++)
        if (o != (uint32_t)v->axis)
            at[i++] = idx[o];
    tir_expr_ref depth = te_dim(g, v->out->shape.dims[v->axis]);
    tir_expr_ref hit = tir_binary(c, TIR_EQ, index_at(g, v->in[0], at, depth), idx[v->axis]);
    return tir_select(c, hit, te_read(g, v->in[2], on), te_read(g, v->in[2], off));
}

static tir_expr_ref one_hot_extent(te_graph *g, void *ctx, uint32_t result, uint32_t axis)
{
    (void)result;
    (void)axis;
    return move_operand(g, ctx, 1, 0);
}

bool extents_one_hot(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    move_ctx v = move_context(n, in);
    return te_own_extents(g, n, one_hot_extent, &v, out);
}

bool compute_one_hot(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    move_ctx v = {0};
    if (!infer_axis(g->c, n, graph_attr_int(n, "axis"), (int32_t)in[0]->rank + 1, &v.axis))
        return false;
    tir_expr_ref depth = te_dim(g, te_out_type(n, 0)->shape.dims[v.axis]);
    te_check_shape(g, n, tir_binary(g->c, TIR_EQ, te_operand(g, n, in, 1, 0), depth), "depth");
    return move_injective(g, n, in, 0, one_hot_body, &v, out);
}

/* The first lengths[batch] steps in reverse, the rest in place. */
static tir_expr_ref reverse_sequence_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const move_ctx *v = ctx;
    compiler *c = g->c;
    int64_t batch = graph_attr_int(v->n, "batch_axis"), time = graph_attr_int(v->n, "time_axis");
    tir_expr_ref at[TYPE_MAX_RANK];
    memcpy(at, idx, v->rank * sizeof *at);
    tir_expr_ref len = tir_cast(c, DT_I64, te_read(g, v->in[1], &idx[batch])), t = idx[time];
    len = tir_max(c, te_i64(g, 0), tir_min(c, len, v->in[0]->shape[time])); /* see safe_index */
    tir_expr_ref mirrored = tir_sub(c, tir_sub(c, len, te_i64(g, 1)), t);
    at[time] = tir_select(c, tir_binary(c, TIR_LT, t, len), mirrored, t);
    return te_read(g, v->in[0], at);
}

bool compute_reverse_sequence(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    int64_t b = graph_attr_int(n, "batch_axis"), t = graph_attr_int(n, "time_axis");
    if (b < 0 || t < 0 || b > 1 || t > 1 || b == t || in[0]->rank < 2)
        return infer_error(g->c, n, "batch_axis %lld and time_axis %lld must be 0 and 1 in some order", (long long)b,
                           (long long)t);
    te_check_lengths(g, n, in[1], in[0]->shape[t]);
    return move_injective(g, n, in, 0, reverse_sequence_body, &(move_ctx){0}, out);
}
