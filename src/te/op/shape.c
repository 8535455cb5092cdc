/* SPDX-License-Identifier: Apache-2.0 */
/* Compute definitions of operators that change shapes and move data. Operands such as starts, pads and indices are read
 * by the kernel when they are not constants; indices from data wrap once when negative, as ONNX says. */
#include "te/op/util.h"

#include <string.h>

typedef struct move_ctx {
    const graph_node *n;
    te_tensor *const *in;
    const type *out;
    uint32_t rank; /* of the output */
    int32_t axis;
    uint32_t part; /* split: which result */
    tir_expr_ref offset;
} move_ctx;

static bool injective(te_graph *g, const graph_node *n, te_tensor *const *in, uint32_t result, te_body_fn body,
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
    return i < v->n->n_inputs && v->in[i];
}

/* Element k of the integer operand i as i64: a literal when it is constant. */
static tir_expr_ref operand(te_graph *g, const move_ctx *v, uint32_t i, int64_t k)
{
    const tensor_data *t = graph_constant(v->n->inputs[i]);
    tir_expr_ref at[1] = {te_i64(g, k)};
    if (t)
        return te_i64(g, tensor_get_i64(t, k));
    return tir_cast(g->c, DT_I64, te_read(g, v->in[i], v->in[i]->rank ? at : NULL));
}

static int64_t operand_length(const move_ctx *v, uint32_t i)
{
    int64_t n = 0;
    return v->in[i]->rank && tir_is_int(v->in[i]->shape[0], &n) ? n : 1;
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

bool compute_reshape(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return injective(g, n, in, 0, reshape_body, &(move_ctx){0}, out);
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
    return injective(g, n, in, 0, transpose_body, &(move_ctx){0}, out);
}

static tir_expr_ref broadcast_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const move_ctx *v = ctx;
    return te_read_broadcast(g, v->in[0], v->rank, idx);
}

bool compute_broadcast_to(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return injective(g, n, in, 0, broadcast_body, &(move_ctx){0}, out);
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
    return injective(g, n, in, 0, concatenate_body, &v, out);
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
    move_ctx v = {0};
    v.offset = te_i64(g, 0);
    if (!infer_axis(g->c, n, graph_attr_int(n, "axis"), (int32_t)in[0]->rank, &v.axis))
        return false;
    for (uint32_t i = 0; i < n->n_outputs; i++) {
        (void)injective(g, n, in, i, split_body, &v, out);
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

/* Whether the result's extent is what the operands give, so that no position can lie outside the data. */
static bool slice_is_known(const move_ctx *v)
{
    for (uint32_t i = 1; i < v->n->n_inputs; i++)
        if (has_input(v, i) && !graph_constant(v->n->inputs[i]))
            return false;
    return true;
}

/* Position i of an axis of the data: where the result's extent was declared, not derived, it may lie outside. */
static tir_expr_ref slice_position(te_graph *g, const move_ctx *v, int64_t a, tir_expr_ref i)
{
    int64_t n = 0;
    tir_expr_ref extent = v->in[0]->shape[a];
    bool derived = slice_is_known(v) && tir_is_int(extent, &n);
    bool whole = tir_expr_equal(extent, te_dim(g, v->out->shape.dims[a])) && i->kind == TIR_VAR;
    return derived || whole ? i : te_clamp_index(g, i, extent);
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
        tir_expr_ref step = has_input(v, 4) ? operand(g, v, 4, k) : te_i64(g, 1);
        tir_expr_ref start = slice_start(g, operand(g, v, 1, k), v->in[0]->shape[a], step);
        at[a] = tir_add(c, start, tir_mul(c, idx[a], step));
    }
    for (uint32_t a = 0; a < v->rank; a++)
        at[a] = slice_position(g, v, a, at[a]);
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
            tir_expr_ref step = has_input(v, 4) ? operand(g, v, 4, k) : te_i64(g, 1);
            tir_expr_ref start = slice_start(g, operand(g, v, 1, k), v->in[0]->shape[a], step);
            tir_expr_ref named = te_wrap_index(g, operand(g, v, 3, k), te_i64(g, v->rank));
            tir_expr_ref moved = tir_add(c, start, tir_mul(c, idx[a], step));
            at[a] = tir_select(c, tir_binary(c, TIR_EQ, named, te_i64(g, a)), moved, at[a]);
        }
        at[a] = slice_position(g, v, a, at[a]);
    }
    return te_read(g, v->in[0], at);
}

bool compute_strided_slice(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    bool runtime_axes = n->n_inputs > 3 && n->inputs[3] && !graph_constant(n->inputs[3]);
    return injective(g, n, in, 0, runtime_axes ? slice_runtime_axes_body : slice_body, &(move_ctx){0}, out);
}

static tir_expr_ref tile_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const move_ctx *v = ctx;
    tir_expr_ref at[TYPE_MAX_RANK];
    for (uint32_t i = 0; i < v->rank; i++)
        at[i] = tir_floormod(g->c, idx[i], v->in[0]->shape[i]);
    return te_read(g, v->in[0], at);
}

bool compute_tile(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return injective(g, n, in, 0, tile_body, &(move_ctx){0}, out);
}

/* --- padding
 * ------------------------------------------------------------------------------------------------------------------ */

/* Begin pad of data axis a: entry k of `pads` where axis k of `axes` is a; zero when no entry names it. */
static tir_expr_ref pad_begin(te_graph *g, const move_ctx *v, uint32_t a)
{
    compiler *c = g->c;
    if (!has_input(v, 3))
        return operand(g, v, 1, a);
    tir_expr_ref begin = te_i64(g, 0);
    for (int64_t k = 0; k < operand_length(v, 3); k++) {
        tir_expr_ref named =
            tir_binary(c, TIR_EQ, te_wrap_index(g, operand(g, v, 3, k), te_i64(g, v->rank)), te_i64(g, a));
        begin = tir_select(c, named, operand(g, v, 1, k), begin);
    }
    return begin;
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
        tir_expr_ref begin = pad_begin(g, v, a), i = tir_sub(c, idx[a], begin), extent = v->in[0]->shape[a];
        if (constant && !(tir_is_const(begin, 0) && tir_expr_equal(extent, te_dim(g, v->out->shape.dims[a]))))
            inside = tir_and(c, inside, te_in_bounds(g, i, extent));
        at[a] = constant ? i : pad_source(g, mode, i, extent);
    }
    tir_expr_ref value = te_read(g, v->in[0], at);
    if (!inside)
        return value;
    tir_expr_ref zero_at[1] = {te_i64(g, 0)};
    tir_expr_ref fill =
        has_input(v, 2) ? te_read(g, v->in[2], v->in[2]->rank ? zero_at : NULL) : tir_const(c, v->out->dt, 0);
    return tir_select(c, inside, value, fill);
}

bool compute_pad(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    static const char *const modes[] = {"constant", "edge", "reflect", "wrap"};
    const char *mode = graph_attr_string(n, "mode");
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(mode, modes[i]) == 0)
            return injective(g, n, in, 0, pad_body, &(move_ctx){0}, out);
    return infer_error(g->c, n, "unknown pad mode '%s'", mode);
}

/* --- indices from data
 * ---------------------------------------------------------------------------------------------------------- */

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

/* The element of x's axis that operand 1 names at `at`; data that names none gets the nearest, never other memory. */
static tir_expr_ref safe_index(te_graph *g, const move_ctx *v, tir_expr_ref const *at, tir_expr_ref extent)
{
    tir_expr_ref i = index_at(g, v->in[1], at, extent);
    return known_indices(v, 1, extent) ? i : te_clamp_index(g, i, extent);
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
    return injective(g, n, in, 0, take_body, &v, out);
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
    return injective(g, n, in, 0, gather_elements_body, &v, out);
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

bool compute_gather_nd(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return injective(g, n, in, 0, gather_nd_body, &(move_ctx){0}, out);
}

/* The update covers [first, first + its extent) of the axis; `circular` goes on from the start at the end. */
static tir_expr_ref tensor_scatter_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const move_ctx *v = ctx;
    compiler *c = g->c;
    const te_tensor *cache = v->in[0], *update = v->in[1];
    tir_expr_ref at[TYPE_MAX_RANK], first = te_i64(g, 0);
    if (has_input(v, 2))
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
    return injective(g, n, in, 0, tensor_scatter_body, &v, out);
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

bool compute_one_hot(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    move_ctx v = {0};
    if (!infer_axis(g->c, n, graph_attr_int(n, "axis"), (int32_t)in[0]->rank + 1, &v.axis))
        return false;
    return injective(g, n, in, 0, one_hot_body, &v, out);
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
    len = tir_min(c, len, v->in[0]->shape[time]);
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
    return injective(g, n, in, 0, reverse_sequence_body, &(move_ctx){0}, out);
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
    return injective(g, n, in, 0, shape_of_body, &(move_ctx){0}, out);
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
    return injective(g, n, in, 0, size_of_body, &(move_ctx){0}, out);
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
    return injective(g, n, in, 0, full_body, &(move_ctx){0}, out);
}

static tir_expr_ref scalar(te_graph *g, const move_ctx *v, uint32_t i)
{
    tir_expr_ref zero[1] = {te_i64(g, 0)};
    return te_read(g, v->in[i], v->in[i]->rank ? zero : NULL);
}

static tir_expr_ref arange_body(te_graph *g, void *ctx, tir_expr_ref const *idx)
{
    const move_ctx *v = ctx;
    dtype acc = te_acc_dtype(v->out->dt);
    tir_expr_ref step = tir_mul(g->c, tir_cast(g->c, acc, idx[0]), tir_cast(g->c, acc, scalar(g, v, 2)));
    return tir_cast(g->c, v->out->dt, tir_add(g->c, tir_cast(g->c, acc, scalar(g, v, 0)), step));
}

bool compute_arange(te_graph *g, const graph_node *n, te_tensor *const *in, te_tensor **out)
{
    return injective(g, n, in, 0, arange_body, &(move_ctx){0}, out);
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
    return injective(g, n, in, 0, eye_like_body, &(move_ctx){0}, out);
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
    return injective(g, n, in, 0, trilu_body, &(move_ctx){0}, out);
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
    return injective(g, n, in, 0, depth_to_space_body, &(move_ctx){0}, out);
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
    return injective(g, n, in, 0, space_to_depth_body, &(move_ctx){0}, out);
}
