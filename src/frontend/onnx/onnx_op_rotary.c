/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of RotaryEmbedding, of ONNX and of com.microsoft, composed as the body in the specification says. */
#include "frontend/onnx/onnx_import.h"

static graph_value *slice_step(onnx_node *n, graph_value *x, int64_t from, int64_t to, int64_t step)
{
    static const int64_t axis = 3;
    graph_value *f = onnx_const_ints(n, 1, &from), *t = onnx_const_ints(n, 1, &to);
    graph_value *k = onnx_const_ints(n, 1, &axis), *s = onnx_const_ints(n, 1, &step);
    return onnx_emit(n, ONNX_ARGS("strided_slice", 0, NULL, x, f, t, k, s));
}

/* [batch, positions, 1, size / 2] of a cache, or its rows at these places. */
static graph_value *cache_rows(onnx_node *n, graph_value *c, graph_value *at)
{
    static const int64_t heads = 2;
    attr axis = attr_int(n->c, "axis", 0);
    if (at)
        c = onnx_emit(n, ONNX_ARGS("take", 1, &axis, c, at));
    if (onnx_rank(c) != 3)
        return onnx_refuse(n, DIAG_TYPE, "the caches must give [batch, sequence, size / 2]");
    return onnx_expand_dims(n, c, 1, &heads);
}

static graph_value *rotate(onnx_node *n, const onnx_rotary *r)
{
    const int64_t half = r->turned / 2;
    graph_value *cos = cache_rows(n, r->cos, r->at), *sin = cache_rows(n, r->sin, r->at);
    graph_value *a = r->interleaved ? slice_step(n, r->x, 0, r->turned, 2) : slice_step(n, r->x, 0, half, 1);
    graph_value *b = r->interleaved ? slice_step(n, r->x, 1, r->turned, 2) : slice_step(n, r->x, half, r->turned, 1);
    graph_value *ca = onnx_binary(n, "multiply", cos, a), *sb = onnx_binary(n, "multiply", sin, b);
    graph_value *sa = onnx_binary(n, "multiply", sin, a), *cb = onnx_binary(n, "multiply", cos, b);
    graph_value *re = onnx_binary(n, "subtract", ca, sb), *im = onnx_binary(n, "add", sa, cb);
    if (!r->interleaved)
        return onnx_concat(n, 2, (graph_value *[]){re, im}, 3);
    static const int64_t last = 4;
    graph_value *pair[2] = {onnx_expand_dims(n, re, 1, &last), onnx_expand_dims(n, im, 1, &last)};
    dim d[4] = {onnx_dim(n, r->x, 0), onnx_dim(n, r->x, 1), onnx_dim(n, r->x, 2), dim_const(n->c, r->turned)};
    return onnx_reshape(n, onnx_concat(n, 2, pair, 4), 4, d);
}

graph_value *onnx_rotate(onnx_node *n, const onnx_rotary *r)
{
    const int64_t size = onnx_static_dim(n, r->x, 3);
    if (!n->failed && (r->turned < 2 || r->turned > size || r->turned % 2 != 0))
        return onnx_refuse(n, DIAG_TYPE, "rotary_embedding_dim %lld does not fit heads of %lld", (long long)r->turned,
                         (long long)size);
    graph_value *y = rotate(n, r);
    if (r->turned == size)
        return y;
    return onnx_concat(n, 2, (graph_value *[]){y, slice_step(n, r->x, r->turned, size, 1)}, 3);
}

/* The data as [batch, positions, heads, size], for three dimensions of `heads` heads. */
static graph_value *data_of(onnx_node *n, int64_t heads)
{
    static const int64_t perm[4] = {0, 2, 1, 3};
    graph_value *x = onnx_in(n, 0);
    uint32_t rank = onnx_rank(x);
    if (rank != 3 && rank != 4)
        return onnx_refuse(n, DIAG_TYPE, "the data must have three or four dimensions");
    if (rank == 4)
        return onnx_transpose(n, x, 4, perm);
    const int64_t hidden = onnx_static_dim(n, x, 2);
    if (n->failed)
        return onnx_nothing(n);
    if (heads < 1 || hidden % heads != 0)
        return onnx_refuse(n, DIAG_TYPE, "%lld values do not divide into %lld heads", (long long)hidden,
                         (long long)heads);
    dim d[4] = {onnx_dim(n, x, 0), onnx_dim(n, x, 1), dim_const(n->c, heads), dim_const(n->c, hidden / heads)};
    return onnx_reshape(n, x, 4, d);
}

/* The turned data in the form of the node's first operand. */
static bool result(onnx_node *n, onnx_rotary *r)
{
    static const int64_t perm[4] = {0, 2, 1, 3};
    graph_value *x = onnx_in(n, 0);
    r->turned = onnx_attr_int(n, "rotary_embedding_dim", 0);
    r->turned = r->turned == 0 ? onnx_static_dim(n, r->x, 3) : r->turned;
    r->interleaved = onnx_attr_int(n, "interleaved", 0) != 0;
    graph_value *y = onnx_rotate(n, r);
    if (n->failed)
        return false;
    return onnx_alias(n, 0, onnx_rank(x) == 3 ? onnx_reshape(n, y, 3, x->type.shape.dims)
                                              : onnx_transpose(n, y, 4, perm));
}

bool onnx_op_rotary_embedding(onnx_node *n)
{
    onnx_rotary r = {.x = data_of(n, onnx_attr_int(n, "num_heads", 0)), .cos = onnx_in(n, 1), .sin = onnx_in(n, 2),
                     .at = onnx_optional(n, 3)};
    return result(n, &r);
}

/* com.microsoft: places are one for each position, or that of the first; without heads the caches say their size. */
bool onnx_op_rotary_embedding_ms(onnx_node *n)
{
    graph_value *x = onnx_in(n, 0), *at = onnx_in(n, 1);
    int64_t heads = onnx_attr_int(n, "num_heads", 0), half = onnx_static_dim(n, onnx_in(n, 2), 1);
    if (onnx_attr_int(n, "is_packed_batching", 0) != 0)
        return onnx_fail(n, DIAG_UNSUPPORTED, "is_packed_batching = 1; export the model with padded batches");
    (void)onnx_attr_float(n, "scale", 1); /* onnxruntime reads it and does nothing with it */
    if (heads == 0 && onnx_rank(x) == 3 && half > 0)
        heads = onnx_static_dim(n, x, 2) / (half * 2);
    onnx_rotary r = {.x = data_of(n, heads), .cos = onnx_in(n, 2), .sin = onnx_in(n, 3)};
    if (onnx_rank(at) != 2) {
        static const int64_t front[1] = {0};
        graph_value *all = onnx_positions(n, onnx_static_dim(n, r.x, 1));
        at = onnx_expand_dims(n, onnx_binary(n, "add", all, onnx_cast(n, at, DT_I64)), 1, front);
    }
    r.at = at;
    return result(n, &r);
}

/* The node's first operand by rows of cosines and sines, [batch, positions, half]. */
bool onnx_rotate_rows(onnx_node *n, graph_value *cos, graph_value *sin, int64_t half)
{
    graph_value *x = onnx_in(n, 0);
    int64_t heads = onnx_attr_int(n, "num_heads", 0);
    if (heads == 0 && onnx_rank(x) == 3 && half > 0)
        heads = onnx_static_dim(n, x, 2) / (half * 2);
    onnx_rotary r = {.x = data_of(n, heads), .cos = cos, .sin = sin};
    return result(n, &r);
}
