/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of operators of com.microsoft that newer decoders have: norms and sums with gates, positions in three
 * streams, convolutions that remember, tokens that must not repeat. Each is composed of the graph's operators. */
#include "frontend/onnx/onnx_import.h"

#include <math.h>
#include <string.h>

/* --- norms and gates --- */

/* x, [.., n * size], in groups of `size` along its last axis: [.., n, size]. */
static graph_value *in_groups(onnx_node *n, graph_value *x, int64_t size)
{
    dim d[TYPE_MAX_RANK];
    const uint32_t rank = onnx_rank(x);
    const int64_t all = rank > 0 ? onnx_static_dim(n, x, rank - 1) : 0;
    if (n->failed || rank == 0 || rank >= TYPE_MAX_RANK || size < 1 || all % size != 0)
        return onnx_refuse(n, DIAG_TYPE, "rows of %lld do not have groups of %lld", (long long)all, (long long)size);
    for (uint32_t i = 0; i + 1 < rank; i++)
        d[i] = onnx_dim(n, x, i);
    d[rank - 1] = dim_const(n->c, all / size);
    d[rank] = dim_const(n->c, size);
    return onnx_reshape(n, x, rank + 1, d);
}

/* In floats of 32 bits, as the kernels compute, each group with its own root mean square. */
static graph_value *root_mean_square(onnx_node *n, graph_value *x, graph_value *scale, int64_t size)
{
    const attr epsilon = attr_float(n->c, "epsilon", onnx_attr_float(n, "epsilon", (double)1e-5f));
    const float one = 1;
    graph_value *ones = onnx_constant(n, tensor_splat(n->c, DT_F32, 1, &size, &one));
    x = onnx_emit(n, ONNX_ARGS("nn.rms_norm", 1, &epsilon, onnx_cast(n, in_groups(n, x, size), DT_F32), ones));
    return scale ? onnx_binary(n, "multiply", x, onnx_cast(n, scale, DT_F32)) : x;
}

static bool result_like(onnx_node *n, uint32_t i, graph_value *y, const graph_value *x)
{
    y = onnx_cast(n, y, onnx_dtype(x));
    return !n->failed && onnx_alias(n, i, onnx_reshape(n, y, onnx_rank(x), x->type.shape.dims));
}

bool onnx_op_gated_rms_norm(onnx_node *n)
{
    graph_value *x = onnx_in(n, 0), *scale = onnx_in(n, 1);
    const int64_t size = onnx_static_dim(n, scale, 0);
    const char *how = onnx_attr_string(n, "activation", "silu");
    const bool sigmoid = strcmp(how, "sigmoid") == 0;
    if (!sigmoid && strcmp(how, "silu") != 0 && strcmp(how, "swish") != 0)
        return onnx_fail(n, DIAG_UNSUPPORTED, "activation is '%.40s', none of silu, swish, sigmoid", how);
    graph_value *gate = onnx_unary(n, sigmoid ? "sigmoid" : "swish",
                                   onnx_cast(n, in_groups(n, onnx_in(n, 2), size), DT_F32));
    return result_like(n, 0, onnx_binary(n, "multiply", root_mean_square(n, x, scale, size), gate), x);
}

/* Branches are the last axis but one, or lie side by side in the last one. */
bool onnx_op_branchwise_rms_norm(onnx_node *n)
{
    graph_value *x = onnx_in(n, 0), *scale = onnx_optional(n, 1);
    const int64_t branches = onnx_attr_int(n, "num_branches", 0);
    const uint32_t rank = onnx_rank(x);
    if (rank < (branches > 0 ? 1u : 2u))
        return onnx_fail(n, DIAG_TYPE, "the data has too few dimensions for branches");
    const int64_t all = onnx_static_dim(n, x, rank - 1), size = branches > 0 ? all / branches : all;
    const int64_t count = branches > 0 ? branches : onnx_static_dim(n, x, rank - 2), grid[2] = {count, size};
    if (scale && !n->failed && shape_count(scale->type.shape) == count * size)
        scale = onnx_reshape_ints(n, scale, 2, grid);
    graph_value *y = onnx_cast(n, x, DT_F32);
    if (branches == 0 && !n->failed) { /* its own axis holds one group */
        dim d[TYPE_MAX_RANK];
        for (uint32_t i = 0; i + 2 < rank; i++)
            d[i] = onnx_dim(n, x, i);
        if (rank > 1)
            d[rank - 2] = dim_const(n->c, count * size);
        y = onnx_reshape(n, y, rank - 1, d);
    }
    return !n->failed && result_like(n, 0, root_mean_square(n, y, scale, size), x);
}

bool onnx_op_gated_add(onnx_node *n)
{
    if (onnx_optional(n, 3))
        return onnx_fail(n, DIAG_UNSUPPORTED, "gate_weight is not supported, because onnxruntime has it only for GPUs");
    graph_value *more = onnx_binary(n, "multiply", onnx_in(n, 1), onnx_in(n, 2));
    onnx_result(n, 0, ONNX_ARGS("add", 0, NULL, onnx_in(n, 0), more));
    return !n->failed;
}

bool onnx_op_scaled_silu(onnx_node *n)
{
    graph_value *x = onnx_in(n, 0), *scale = onnx_optional(n, 1);
    const double alpha = onnx_attr_float(n, "alpha", 1);
    x = onnx_binary(n, "multiply", x, scale ? onnx_cast(n, scale, onnx_dtype(x)) : onnx_const_like(n, x, alpha));
    onnx_result(n, 0, ONNX_ARGS("swish", 0, NULL, x));
    return !n->failed;
}

/* decay_scale * softplus(a + dt_bias), and sigmoid(b). */
bool onnx_op_linear_attention_gate(onnx_node *n)
{
    graph_value *a = onnx_in(n, 0), *b = onnx_optional(n, 3);
    graph_value *soft = onnx_unary(n, "softplus", onnx_binary(n, "add", onnx_cast(n, a, DT_F32), onnx_in(n, 1)));
    onnx_alias(n, 0, onnx_cast(n, onnx_binary(n, "multiply", soft, onnx_in(n, 2)), onnx_dtype(a)));
    if (n->n_out > 1 && n->out_names[1] && !b)
        return onnx_fail(n, DIAG_FORMAT, "the second result needs the operand b");
    return !n->failed && (!b || onnx_alias(n, 1, onnx_unary(n, "sigmoid", b)));
}

/* --- a convolution that remembers --- */

static graph_value *with_past(onnx_node *n, graph_value *x, graph_value *past, int64_t length)
{
    const int64_t pads[6] = {0, 0, length, 0, 0, 0};
    if (past)
        return onnx_concat(n, 2, (graph_value *[]){past, x}, 2);
    return onnx_binary(n, "nn.pad", x, onnx_const_ints(n, 6, pads));
}

bool onnx_op_causal_conv_with_state(onnx_node *n)
{
    graph_value *x = onnx_in(n, 0), *w = onnx_in(n, 1), *bias = onnx_optional(n, 2);
    const char *how = onnx_attr_string(n, "activation", "none");
    const int64_t dilation = onnx_attr_int(n, "dilation", 1), end = INT64_MAX, last = 2;
    if (onnx_attr_int(n, "ndim", 1) != 1 || onnx_attr_int(n, "channels_last", 0) != 0 ||
        onnx_attr_int(n, "state_window", 0) != 0 || onnx_rank(x) != 3 || onnx_rank(w) != 3)
        return onnx_fail(n, DIAG_UNSUPPORTED, "only signals of one dimension behind their channels are supported, "
                                              "without channels_last and state_window");
    const int64_t channels = onnx_static_dim(n, w, 0), length = (onnx_static_dim(n, w, 2) - 1) * dilation;
    const bool silu = strcmp(how, "silu") == 0 || strcmp(how, "swish") == 0;
    if (!silu && strcmp(how, "none") != 0)
        return onnx_fail(n, DIAG_UNSUPPORTED, "activation is '%.40s', none of none, silu, swish", how);
    const attr at[2] = {attr_int(n->c, "groups", channels), attr_ints(n->c, "dilations", 1, &dilation)};
    graph_value *all = n->failed ? x : with_past(n, x, onnx_optional(n, 3), length);
    graph_value *y = onnx_emit(n, ONNX_ARGS("nn.conv1d", 2, at, all, w));
    if (bias)
        y = onnx_binary(n, "add", y, onnx_reshape_ints(n, bias, 2, (int64_t[]){channels, 1}));
    onnx_alias(n, 0, silu ? onnx_unary(n, "swish", y) : y);
    const int64_t from = length > 0 ? -length : end; /* the last ones; none of a kernel of one tap */
    return onnx_alias(n, 1, onnx_emit(n, ONNX_ARGS("strided_slice", 0, NULL, all, onnx_const_ints(n, 1, &from),
                                                   onnx_const_ints(n, 1, &end), onnx_const_ints(n, 1, &last))));
}

/* --- positions in three streams --- */

/* Which stream each column of the caches takes: sections one after the other, or in turns. */
static bool read_streams(onnx_node *n, int64_t half, int64_t *stream)
{
    const int64_t *sections = NULL;
    const uint32_t count = onnx_attr_ints(n, "mrope_section", &sections);
    const bool turns = onnx_attr_int(n, "mrope_layout", 0) == 1;
    if (n->failed || count != 3 || sections[0] < 0 || sections[1] < 0 || sections[2] < 0 ||
        sections[0] > half || sections[1] > half || sections[2] > half ||
        sections[0] + sections[1] + sections[2] != half)
        return onnx_fail(n, DIAG_FORMAT, "mrope_section must be three numbers whose sum is %lld", (long long)half);
    for (int64_t i = 0; i < half; i++) {
        const int64_t in_turn = i % 3 != 0 && i < 3 * sections[i % 3] ? i % 3 : 0;
        stream[i] = turns ? in_turn : i < sections[0] ? 0 : i < sections[0] + sections[1] ? 1 : 2;
    }
    return true;
}

/* [batch, positions, half] of a cache [most, half]: column i by the places of its stream. */
static graph_value *streamed(onnx_node *n, graph_value *cache, graph_value *places, int64_t half, const int64_t *stream)
{
    graph_value *part[3];
    const attr axis = attr_int(n->c, "axis", 0);
    graph_value *y = NULL, *which = onnx_const_ints(n, (uint32_t)half, stream);
    for (int64_t i = 0; i < 3; i++) {
        graph_value *at = onnx_emit(n, ONNX_ARGS("take", 1, &axis, places, onnx_const_int(n, DT_I64, i)));
        part[i] = onnx_emit(n, ONNX_ARGS("take", 1, &axis, cache, at));
        y = y ? onnx_where(n, onnx_binary(n, "equal", which, onnx_const_int(n, DT_I64, i)), part[i], y) : part[i];
    }
    return y;
}

bool onnx_op_m_rotary_embedding(onnx_node *n)
{
    graph_value *places = onnx_in(n, 1), *cos = onnx_in(n, 2), *sin = onnx_in(n, 3);
    const int64_t half = onnx_static_dim(n, cos, 1);
    if (onnx_attr_int(n, "is_packed_batching", 0) != 0)
        return onnx_fail(n, DIAG_UNSUPPORTED, "is_packed_batching = 1; export the model with padded batches");
    (void)onnx_attr_float(n, "scale", 1); /* read and not used, as by RotaryEmbedding */
    if (n->failed || half < 1 || half > 65536 || onnx_rank(places) != 3 || onnx_static_dim(n, places, 0) != 3)
        return onnx_fail(n, DIAG_TYPE, "position_ids must be [3, batch, positions]");
    int64_t *stream = arena_array(&n->c->mem, int64_t, (uint32_t)half);
    if (!read_streams(n, half, stream))
        return false;
    cos = streamed(n, cos, places, half, stream);
    sin = streamed(n, sin, places, half, stream);
    return !n->failed && onnx_rotate_rows(n, cos, sin, half);
}

/* --- tokens --- */

/* Scores of tokens that would end a run of ngram_size tokens that is there already become -infinity. */
bool onnx_op_ngram_repeat_block(onnx_node *n)
{
    graph_value *ids = onnx_in(n, 0), *scores = onnx_in(n, 1);
    const int64_t size = onnx_attr_int(n, "ngram_size", 1), length = onnx_static_dim(n, ids, 1);
    const attr at[2] = {attr_int(n->c, "axis", 1), attr_string(n->c, "reduction", "max")};
    if (n->failed || size < 1)
        return onnx_fail(n, DIAG_FORMAT, "ngram_size must be above 0");
    const int64_t places = length - size + 1;
    if (places < 1)
        return onnx_alias(n, 0, scores);
    graph_value *same = NULL, *next = onnx_slice(n, ids, 1, size - 1, length);
    for (int64_t i = 0; i + 1 < size && !n->failed; i++) {
        graph_value *last = onnx_slice(n, ids, 1, length - size + 1 + i, length - size + 2 + i);
        graph_value *one = onnx_binary(n, "equal", onnx_slice(n, ids, 1, i, i + places), last);
        same = same ? onnx_binary(n, "logical_and", same, one) : one;
    }
    graph_value *none = onnx_binary(n, "multiply", onnx_cast(n, next, DT_F32), onnx_const_float(n, DT_F32, 0));
    graph_value *mark = same ? onnx_cast(n, same, DT_F32)
                             : onnx_binary(n, "add", none, onnx_const_float(n, DT_F32, 1));
    graph_value *zero = onnx_cast(n, onnx_binary(n, "not_equal", scores, scores), DT_F32);
    zero = onnx_binary(n, "multiply", zero, onnx_const_float(n, DT_F32, 0));
    graph_value *hit = onnx_emit(n, ONNX_ARGS("scatter_elements", 2, at, zero, onnx_cast(n, next, DT_I64), mark));
    hit = onnx_binary(n, "greater", hit, onnx_const_float(n, DT_F32, 0));
    return onnx_alias(n, 0, onnx_where(n, hit, onnx_const_like(n, scores, (double)-INFINITY), scores));
}
