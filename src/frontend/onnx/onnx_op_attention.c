/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of Attention and RotaryEmbedding, composed as the bodies in the specification say. Shapes inside are
 * [batch, heads, sequence, head size]; all but the batch must be known. */
#include "frontend/onnx/onnx_import.h"

#include <math.h>
#include <string.h>

/* --- attention --- */

typedef struct attention {
    graph_value *q, *k, *v;
    int64_t q_heads, kv_heads, past;
    bool flat; /* inputs are [batch, sequence, heads * size] */
    dtype dt;
} attention;

static graph_value *split_heads(onnx_node *n, graph_value *x, int64_t heads)
{
    static const int64_t perm[4] = {0, 2, 1, 3};
    int64_t hidden = onnx_static_dim(n, x, 2);
    if (!n->failed && (heads < 1 || hidden % heads != 0))
        return onnx_fail(n, DIAG_TYPE, "%lld values do not divide into %lld heads", (long long)hidden,
                         (long long)heads),
               NULL;
    if (n->failed)
        return NULL;
    dim d[4] = {onnx_dim(n, x, 0), onnx_dim(n, x, 1), dim_const(n->c, heads), dim_const(n->c, hidden / heads)};
    return onnx_transpose(n, onnx_reshape(n, x, 4, d), 4, perm);
}

static graph_value *join_heads(onnx_node *n, graph_value *x)
{
    static const int64_t perm[4] = {0, 2, 1, 3};
    dim d[3] = {onnx_dim(n, x, 0), onnx_dim(n, x, 2), dim_mul(n->c, onnx_dim(n, x, 1), onnx_dim(n, x, 3))};
    return onnx_reshape(n, onnx_transpose(n, x, 4, perm), 3, d);
}

static graph_value *with_past(onnx_node *n, uint32_t i, graph_value *now)
{
    graph_value *both[2] = {onnx_in(n, i), now};
    return both[0] ? onnx_concat(n, 2, both, 2) : now;
}

static bool read_attention(onnx_node *n, attention *a)
{
    graph_value *in[3] = {onnx_in(n, 0), onnx_in(n, 1), onnx_in(n, 2)};
    for (uint32_t i = 0; i < 3; i++)
        if (onnx_rank(in[i]) != onnx_rank(in[0]) || (onnx_rank(in[i]) != 3 && onnx_rank(in[i]) != 4))
            return onnx_fail(n, DIAG_TYPE, "Q, K and V must have three or four dimensions alike");
    a->flat = onnx_rank(in[0]) == 3;
    a->dt = onnx_dtype(in[0]);
    int64_t qh = onnx_attr_int(n, "q_num_heads", 0), kvh = onnx_attr_int(n, "kv_num_heads", 0);
    a->q = a->flat ? split_heads(n, in[0], qh) : in[0];
    a->k = with_past(n, 4, a->flat ? split_heads(n, in[1], kvh) : in[1]);
    a->v = with_past(n, 5, a->flat ? split_heads(n, in[2], kvh) : in[2]);
    a->q_heads = onnx_static_dim(n, a->q, 1);
    a->kv_heads = onnx_static_dim(n, a->k, 1);
    a->past = onnx_in(n, 4) ? onnx_static_dim(n, onnx_in(n, 4), 2) : 0;
    onnx_static_dim(n, a->q, 2);
    onnx_static_dim(n, a->k, 2);
    if (!n->failed && (a->kv_heads < 1 || a->q_heads % a->kv_heads != 0))
        return onnx_fail(n, DIAG_TYPE, "%lld query heads over %lld key heads", (long long)a->q_heads,
                         (long long)a->kv_heads);
    return !n->failed;
}

/* Each key head serves several query heads, which stand next to each other. */
static graph_value *repeat_heads(onnx_node *n, graph_value *x, const attention *a)
{
    static const int64_t at = 2;
    int64_t times = n->failed ? 1 : a->q_heads / a->kv_heads, r[5] = {1, 1, times, 1, 1};
    if (times == 1)
        return x;
    dim d[4] = {onnx_dim(n, x, 0), dim_const(n->c, a->q_heads), onnx_dim(n, x, 2), onnx_dim(n, x, 3)};
    graph_value *five = onnx_expand_dims(n, x, 1, &at);
    return onnx_reshape(n, onnx_binary(n, "tile", five, onnx_const_ints(n, 5, r)), 4, d);
}

/* 0 where `keep`, minus infinity elsewhere. */
static graph_value *bias_of(onnx_node *n, graph_value *keep, dtype dt)
{
    graph_value *zero = onnx_const_float(n, dt, 0), *hidden = onnx_const_float(n, dt, -(double)INFINITY);
    return onnx_where(n, keep, zero, hidden);
}

/* Query i sees keys up to i plus what came before. */
static graph_value *causal_bias(onnx_node *n, const attention *a)
{
    int64_t rows = onnx_static_dim(n, a->q, 2), cols = onnx_static_dim(n, a->k, 2), count = 0;
    if (n->failed || !i64_mul(rows, cols, &count) || count > 1 << 26)
        return onnx_fail(n, DIAG_UNSUPPORTED, "the causal mask is too large"), NULL;
    uint8_t *keep = arena_alloc(&n->c->mem, (size_t)count, 64);
    for (int64_t i = 0; i < count; i++)
        keep[i] = cols != 0 && i % cols <= i / cols + a->past;
    return bias_of(n, onnx_constant(n, tensor_dense(n->c, DT_BOOL, 2, (int64_t[]){rows, cols}, keep)), a->dt);
}

/* A mask shorter than the keys hides those beyond it. */
static graph_value *mask_bias(onnx_node *n, const attention *a)
{
    graph_value *mask = onnx_in(n, 3);
    uint32_t rank = onnx_rank(mask);
    bool is_bool = onnx_dtype(mask) == DT_BOOL;
    int64_t pads[2] = {0, 0}, axis = rank - 1;
    if (rank == 0)
        return onnx_fail(n, DIAG_TYPE, "the mask has no dimensions"), NULL;
    pads[1] = onnx_static_dim(n, a->k, 2) - onnx_static_dim(n, mask, rank - 1);
    if (pads[1] > 0) {
        graph_value *fill = is_bool ? onnx_const_int(n, DT_BOOL, 0) : onnx_const_like(n, mask, -(double)INFINITY);
        graph_value *p = onnx_const_ints(n, 2, pads), *ax = onnx_const_ints(n, 1, &axis);
        mask = onnx_emit(n, ONNX_ARGS("nn.pad", 0, NULL, mask, p, fill, ax));
    }
    return is_bool ? bias_of(n, mask, a->dt) : onnx_cast(n, mask, a->dt);
}

/* Keys beyond each sequence's length are hidden. */
static graph_value *length_bias(onnx_node *n, const attention *a)
{
    int64_t len = onnx_static_dim(n, a->k, 2);
    if (n->failed || len > 1 << 24)
        return NULL;
    int64_t *index = arena_array(&n->c->mem, int64_t, (size_t)len);
    for (int64_t i = 0; i < len; i++)
        index[i] = i;
    dim d[4] = {onnx_dim(n, onnx_in(n, 6), 0), dim_const(n->c, 1), dim_const(n->c, 1), dim_const(n->c, 1)};
    graph_value *limit = onnx_reshape(n, onnx_cast(n, onnx_in(n, 6), DT_I64), 4, d);
    graph_value *keys = onnx_constant(n, tensor_dense(n->c, DT_I64, 1, &len, index));
    return bias_of(n, onnx_binary(n, "less", keys, limit), a->dt);
}

static graph_value *plus(onnx_node *n, graph_value *sum, graph_value *v)
{
    return sum && v ? onnx_binary(n, "add", sum, v) : sum ? sum : v;
}

static graph_value *scores(onnx_node *n, const attention *a)
{
    double scale = onnx_attr_float(n, "scale", 0);
    if (!onnx_has_attr(n, "scale"))
        scale = 1 / sqrt((double)onnx_static_dim(n, a->q, 3));
    graph_value *root = onnx_const_float(n, a->dt, sqrt(scale)); /* on both sides: keeps halves in range */
    graph_value *q = onnx_binary(n, "multiply", a->q, root);
    graph_value *k = onnx_binary(n, "multiply", repeat_heads(n, a->k, a), root);
    graph_value *s = onnx_matmul(n, q, k, false, true, DT_NONE);
    double cap = onnx_attr_float(n, "softcap", 0);
    if (cap <= 0)
        return s;
    graph_value *c = onnx_const_float(n, a->dt, cap);
    return onnx_binary(n, "multiply", onnx_unary(n, "tanh", onnx_binary(n, "divide", s, c)), c);
}

bool onnx_op_attention(onnx_node *n)
{
    attention a = {0};
    if (!read_attention(n, &a))
        return false;
    int64_t mode = onnx_attr_int(n, "qk_matmul_output_mode", 0);
    graph_value *s = scores(n, &a), *bias = onnx_in(n, 3) ? mask_bias(n, &a) : NULL;
    if (onnx_attr_int(n, "is_causal", 0) != 0)
        bias = plus(n, bias, causal_bias(n, &a));
    if (onnx_in(n, 6) && onnx_rank(bias) == 3) /* [heads, q, k] becomes [1, heads, q, k] by broadcasting */
        bias = plus(n, bias, length_bias(n, &a));
    else if (onnx_in(n, 6))
        bias = plus(n, length_bias(n, &a), bias);
    graph_value *biased = plus(n, s, bias);
    dtype precise = onnx_attr_dtype(n, "softmax_precision", a.dt);
    attr axis = attr_int(n->c, "axis", -1);
    graph_value *p = onnx_cast(n, onnx_emit(n, ONNX_ARGS("nn.softmax", 1, &axis, onnx_cast(n, biased, precise))), a.dt);
    graph_value *y = onnx_matmul(n, p, repeat_heads(n, a.v, &a), false, false, DT_NONE);
    onnx_alias(n, 0, a.flat ? join_heads(n, y) : y);
    onnx_alias(n, 1, a.k);
    onnx_alias(n, 2, a.v);
    onnx_alias(n, 3, mode == 3 ? p : mode == 2 ? biased : s);
    if (!n->failed && mode == 0 && onnx_attr_float(n, "softcap", 0) > 0 && n->n_out > 3)
        return onnx_fail(n, DIAG_UNSUPPORTED, "the product before the soft cap as a result is not supported yet");
    return !n->failed;
}

/* --- rotary embedding --- */

typedef struct rotary {
    graph_value *x; /* [batch, sequence, heads, size] */
    int64_t size, turned;
    bool interleaved;
} rotary;

static graph_value *slice_step(onnx_node *n, graph_value *x, int64_t from, int64_t to, int64_t step)
{
    static const int64_t axis = 3;
    graph_value *f = onnx_const_ints(n, 1, &from), *t = onnx_const_ints(n, 1, &to);
    graph_value *k = onnx_const_ints(n, 1, &axis), *s = onnx_const_ints(n, 1, &step);
    return onnx_emit(n, ONNX_ARGS("strided_slice", 0, NULL, x, f, t, k, s));
}

/* [batch, sequence, 1, turned / 2] */
static graph_value *rotary_cache(onnx_node *n, uint32_t i)
{
    static const int64_t heads = 2;
    attr axis = attr_int(n->c, "axis", 0);
    graph_value *c = onnx_in(n, i), *at = onnx_in(n, 3);
    if (at)
        c = onnx_emit(n, ONNX_ARGS("take", 1, &axis, c, at));
    if (onnx_rank(c) != 3)
        return onnx_fail(n, DIAG_TYPE, "the caches must give [batch, sequence, size / 2]"), NULL;
    return onnx_expand_dims(n, c, 1, &heads);
}

static graph_value *rotate(onnx_node *n, const rotary *r)
{
    int64_t half = r->turned / 2;
    graph_value *cos = rotary_cache(n, 1), *sin = rotary_cache(n, 2);
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

static bool read_rotary(onnx_node *n, rotary *r)
{
    static const int64_t perm[4] = {0, 2, 1, 3};
    graph_value *x = onnx_in(n, 0);
    uint32_t rank = onnx_rank(x);
    int64_t heads = onnx_attr_int(n, "num_heads", 0), hidden = onnx_static_dim(n, x, rank ? rank - 1 : 0);
    if (rank != 3 && rank != 4)
        return onnx_fail(n, DIAG_TYPE, "the data must have three or four dimensions");
    if (rank == 3 && (heads < 1 || hidden % heads != 0))
        return onnx_fail(n, DIAG_TYPE, "%lld values do not divide into %lld heads", (long long)hidden,
                         (long long)heads);
    r->size = rank == 3 ? hidden / heads : hidden;
    dim d[4] = {onnx_dim(n, x, 0), onnx_dim(n, x, 1), dim_const(n->c, heads), dim_const(n->c, r->size)};
    r->x = rank == 3 ? onnx_reshape(n, x, 4, d) : onnx_transpose(n, x, 4, perm);
    r->turned = onnx_attr_int(n, "rotary_embedding_dim", 0);
    r->turned = r->turned == 0 ? r->size : r->turned;
    r->interleaved = onnx_attr_int(n, "interleaved", 0) != 0;
    if (r->turned < 2 || r->turned > r->size || r->turned % 2 != 0)
        return onnx_fail(n, DIAG_TYPE, "rotary_embedding_dim %lld does not fit heads of %lld", (long long)r->turned,
                         (long long)r->size);
    return !n->failed;
}

bool onnx_op_rotary_embedding(onnx_node *n)
{
    static const int64_t perm[4] = {0, 2, 1, 3};
    rotary r = {0};
    graph_value *x = onnx_in(n, 0);
    if (!read_rotary(n, &r))
        return false;
    graph_value *y = rotate(n, &r);
    if (r.turned < r.size)
        y = onnx_concat(n, 2, (graph_value *[]){y, slice_step(n, r.x, r.turned, r.size, 1)}, 3);
    if (onnx_rank(x) == 3)
        return onnx_alias(n, 0, onnx_reshape(n, y, 3, x->type.shape.dims));
    return onnx_alias(n, 0, onnx_transpose(n, y, 4, perm));
}
