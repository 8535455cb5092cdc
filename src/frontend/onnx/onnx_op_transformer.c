/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of the forms of attention in the domain com.microsoft: Attention, MultiHeadAttention and
 * GroupQueryAttention, as onnxruntime computes them on processors. What only its GPU kernels take is refused. */
#include "frontend/onnx/onnx_import.h"

#include <math.h>
#include <string.h>

/* --- masks --- */

static graph_value *as_column(onnx_node *n, graph_value *v, graph_value *like)
{
    dim d[4] = {onnx_dim(n, like, 0), dim_const(n->c, 1), dim_const(n->c, 1), dim_const(n->c, 1)};
    return onnx_reshape(n, onnx_cast(n, v, DT_I64), 4, d);
}

/* One number for each sequence: keys from there on are hidden; with a second one, those before it too. */
static graph_value *keep_within(onnx_node *n, graph_value *mask, const onnx_attention *a)
{
    static const int64_t twice = 2;
    graph_value *at = onnx_places_of(n, a->k);
    dim numbers = onnx_dim(n, mask, 0), sequences = onnx_dim(n, a->q, 0);
    if (dim_equal(numbers, sequences))
        return onnx_binary(n, "less", at, as_column(n, mask, a->q));
    int64_t batch = 0, count = 0;
    const bool open = !dim_is_const(numbers, &count) || !dim_is_const(sequences, &batch);
    if (open && !dim_equal(numbers, dim_add(n->c, sequences, sequences))) /* a run sees whether they are as many */
        return onnx_binary(n, "less", at, onnx_one_for_each(n, onnx_cast(n, mask, DT_I64), a->q, 0, 3));
    batch = onnx_static_dim(n, a->q, 0);
    count = onnx_static_dim(n, mask, 0);
    if (n->failed || count != twice * batch)
        return onnx_refuse(n, DIAG_UNSUPPORTED, "a mask of %lld numbers for %lld sequences is not supported; give it "
                                                "one number for each key",
                         (long long)count, (long long)batch);
    graph_value *end = as_column(n, onnx_slice(n, mask, 0, 0, batch), a->q);
    graph_value *start = as_column(n, onnx_slice(n, mask, 0, batch, count), a->q);
    return onnx_binary(n, "logical_and", onnx_binary(n, "less", at, end), onnx_binary(n, "greater_equal", at, start));
}

/* The mask of integers as a bias; NULL without an error: it hides nothing. */
static graph_value *mask_bias(onnx_node *n, graph_value *mask, const onnx_attention *a)
{
    static const int64_t middle[2] = {1, 2};
    const double hidden = onnx_attr_float(n, "mask_filter_value", -10000);
    const uint32_t rank = onnx_rank(mask);
    int64_t keys = 0;
    if (rank == 2 && dim_is_const(onnx_dim(n, mask, 1), &keys) && keys == 1 && !dim_is(onnx_dim(n, a->k, 2), 1))
        return NULL;
    if (rank == 1)
        return onnx_hide(n, keep_within(n, mask, a), a->dt, hidden);
    if (rank != 2 && rank != 3)
        return onnx_refuse(n, DIAG_UNSUPPORTED,
                           "a mask with %u dimensions is not supported; it may have one to three", rank);
    graph_value *keep = onnx_binary(n, "greater", mask, onnx_const_like(n, mask, 0));
    return onnx_hide(n, onnx_expand_dims(n, keep, 4 - rank, middle), a->dt, hidden);
}

/* Mask, order of positions behind those of the past along its axis, and what is added beside them. */
static void add_bias(onnx_node *n, onnx_attention *a, graph_value *mask, graph_value *more, graph_value *past,
                     uint32_t axis)
{
    a->bias = mask ? mask_bias(n, mask, a) : NULL;
    if (onnx_attr_int(n, "unidirectional", 0) != 0)
        a->bias = onnx_plus(n, a->bias, onnx_causal(n, a, past, axis));
    a->bias = onnx_plus(n, a->bias, more);
}

static void read_scale(onnx_node *n, onnx_attention *a)
{
    a->dt = onnx_dtype(a->q);
    a->scale = onnx_attr_float(n, "scale", 0);
    a->scale = a->scale != 0 ? a->scale : onnx_usual_scale(n, a);
}

/* Operands and attributes that only kernels of GPUs read. */
static bool refuse_input(onnx_node *n, uint32_t i, const char *name)
{
    return !onnx_optional(n, i) ||
           onnx_fail(n, DIAG_UNSUPPORTED,
                     "the operand %s is not supported, because onnxruntime has it only for GPUs; export the model for "
                     "CPUs", name);
}

static bool refuse_attr(onnx_node *n, const char *name)
{
    return onnx_attr_int(n, name, 0) == 0 ||
           onnx_fail(n, DIAG_UNSUPPORTED,
                     "%s is not supported, because onnxruntime has it only for GPUs; export the model for CPUs",
                     name);
}

/* --- Attention --- */

/* Products of the input with columns [from, from + count) of the weights, as heads. */
static graph_value *projection(onnx_node *n, int64_t from, int64_t count, int64_t heads)
{
    graph_value *w = onnx_slice(n, onnx_in(n, 1), 1, from, from + count);
    graph_value *b = onnx_optional(n, 2) ? onnx_slice(n, onnx_optional(n, 2), 0, from, from + count) : NULL;
    return onnx_split_heads(n, onnx_plus(n, onnx_matmul(n, onnx_in(n, 0), w, false, false, DT_NONE), b), heads);
}

/* [2, batch, heads, positions, size]: keys and values of before, in front of those of now. */
static graph_value *behind_past(onnx_node *n, graph_value *past, int64_t which, graph_value *now)
{
    if (!past)
        return now;
    dim d[4] = {onnx_dim(n, past, 1), onnx_dim(n, past, 2), onnx_dim(n, past, 3), onnx_dim(n, past, 4)};
    graph_value *before = onnx_reshape(n, onnx_slice(n, past, 0, which, which + 1), 4, d);
    return onnx_concat(n, 2, (graph_value *[]){before, now}, 2);
}

static bool read_sizes(onnx_node *n, int64_t heads, int64_t sizes[3])
{
    const int64_t *given = NULL, all = onnx_static_dim(n, onnx_in(n, 1), 1);
    uint32_t count = onnx_attr_ints(n, "qkv_hidden_sizes", &given);
    for (uint32_t i = 0; i < 3; i++)
        sizes[i] = count == 3 ? given[i] : all / 3;
    bool fit = (count == 0 || count == 3) && heads > 0 && sizes[0] > 0 && sizes[0] == sizes[1] && sizes[2] > 0 &&
               sizes[0] <= all && sizes[2] == all - 2 * sizes[0] && sizes[0] % heads == 0 && sizes[2] % heads == 0;
    return !n->failed &&
           (fit || onnx_fail(n, DIAG_TYPE, "%lld columns of weights do not divide into queries, keys and values of "
                             "%lld heads", (long long)all, (long long)heads));
}

/* past, mask and what is added beside it, or NULL; keys and values of `a` are those of now. */
static bool attend_behind(onnx_node *n, onnx_attention *a, graph_value *past, graph_value *mask, graph_value *more)
{
    static const int64_t front[1] = {0};
    if (past && onnx_rank(past) != 5)
        return onnx_fail(n, DIAG_TYPE, "past must be [2, batch, heads, positions, size]");
    a->k = behind_past(n, past, 0, a->k);
    a->v = behind_past(n, past, 1, a->v);
    read_scale(n, a);
    add_bias(n, a, mask, more, past, 3);
    graph_value *y = onnx_attend(n, a);
    onnx_alias(n, 0, onnx_join_heads(n, y));
    if (n->n_out > 1 && n->out_names[1]) {
        graph_value *both[2] = {onnx_expand_dims(n, a->k, 1, front), onnx_expand_dims(n, a->v, 1, front)};
        onnx_alias(n, 1, onnx_concat(n, 2, both, 0));
    }
    return !n->failed;
}

bool onnx_op_attention_ms(onnx_node *n)
{
    const int64_t heads = onnx_attr_int(n, "num_heads", 0);
    int64_t sizes[3];
    if (!refuse_attr(n, "do_rotary") || !refuse_attr(n, "past_present_share_buffer") ||
        !refuse_input(n, 6, "past_sequence_length") || !read_sizes(n, heads, sizes))
        return false;
    (void)onnx_attr_int(n, "rotary_embedding_dim", 0); /* read with do_rotary alone */
    onnx_attention a = {.q = projection(n, 0, sizes[0], heads)};
    a.k = projection(n, sizes[0], sizes[1], heads);
    a.v = projection(n, 2 * sizes[0], sizes[2], heads);
    return attend_behind(n, &a, onnx_optional(n, 4), onnx_optional(n, 3), onnx_optional(n, 5));
}

/* input, weight, bias, their scales, mask, their zero points, past: the products are of integers. */
bool onnx_op_qattention(onnx_node *n)
{
    const int64_t heads = onnx_attr_int(n, "num_heads", 0);
    const attr last = attr_int(n->c, "axis", -1);
    int64_t sizes[3];
    if (!refuse_attr(n, "do_rotary") || !refuse_attr(n, "past_present_share_buffer") || !read_sizes(n, heads, sizes))
        return false;
    graph_value *sums = onnx_emit(n, ONNX_ARGS("qnn.matmul", 0, NULL, onnx_in(n, 0), onnx_in(n, 1),
                                               onnx_optional(n, 6), onnx_optional(n, 7)));
    graph_value *scale = onnx_binary(n, "multiply", onnx_in(n, 3), onnx_in(n, 4));
    graph_value *x = onnx_emit(n, ONNX_ARGS("qnn.dequantize", 1, &last, sums, scale));
    x = onnx_binary(n, "add", x, onnx_in(n, 2));
    onnx_attention a = {.q = onnx_split_heads(n, onnx_slice(n, x, 2, 0, sizes[0]), heads)};
    a.k = onnx_split_heads(n, onnx_slice(n, x, 2, sizes[0], 2 * sizes[0]), heads);
    a.v = onnx_split_heads(n, onnx_slice(n, x, 2, 2 * sizes[0], 2 * sizes[0] + sizes[2]), heads);
    return attend_behind(n, &a, onnx_optional(n, 8), onnx_optional(n, 5), NULL);
}

/* --- MultiHeadAttention --- */

/* Operand i, [batch, positions, heads * size], with its part of the bias; or as it is, as heads already. */
static graph_value *heads_of(onnx_node *n, uint32_t i, int64_t heads, int64_t from)
{
    graph_value *x = onnx_optional(n, i), *bias = onnx_optional(n, 3);
    if (onnx_rank(x) == 4)
        return x;
    if (onnx_rank(x) != 3)
        return onnx_refuse(n, DIAG_UNSUPPORTED, "queries, keys and values packed in one operand are not supported, "
                                                "because onnxruntime has them only for GPUs; export the model for "
                                                "CPUs");
    if (bias)
        x = onnx_binary(n, "add", x, onnx_slice(n, bias, 0, from, from + onnx_static_dim(n, x, 2)));
    return onnx_split_heads(n, x, heads);
}

static graph_value *after(onnx_node *n, uint32_t i, graph_value *now)
{
    return onnx_optional(n, i) ? onnx_concat(n, 2, (graph_value *[]){onnx_optional(n, i), now}, 2) : now;
}

bool onnx_op_multi_head_attention(onnx_node *n)
{
    const int64_t heads = onnx_attr_int(n, "num_heads", 0);
    if (!refuse_input(n, 8, "past_sequence_length") || !refuse_input(n, 9, "cache_indirection"))
        return false;
    if (!onnx_optional(n, 1) || !onnx_optional(n, 2) || onnx_rank(onnx_in(n, 0)) != 3)
        return onnx_fail(n, DIAG_UNSUPPORTED, "queries, keys and values must be three operands, and queries must have "
                                              "three dimensions; onnxruntime has packed ones only for GPUs, so export "
                                              "the model for CPUs");
    const int64_t size = onnx_static_dim(n, onnx_in(n, 0), 2);
    onnx_attention a = {.q = heads_of(n, 0, heads, 0), .all = n->n_out > 3};
    a.k = after(n, 6, heads_of(n, 1, heads, size));
    a.v = after(n, 7, heads_of(n, 2, heads, 2 * size));
    read_scale(n, &a);
    add_bias(n, &a, onnx_optional(n, 4), onnx_optional(n, 5), onnx_optional(n, 6), 2);
    graph_value *y = onnx_attend(n, &a);
    onnx_alias(n, 0, onnx_join_heads(n, y));
    onnx_alias(n, 1, a.k);
    onnx_alias(n, 2, a.v);
    onnx_alias(n, 3, a.products);
    return !n->failed;
}

/* --- GroupQueryAttention --- */

#define MOST_KEYS 16777216

typedef struct group_query {
    int64_t heads, kv_heads, size, rows, keys, before; /* keys: of the results; before: of the past, 0: there is none */
    graph_value *past; /* i64[batch]: how many keys of each sequence stand before the new ones */
    graph_value *seen; /* i64[batch, 1, rows, 1]: the place of each query */
} group_query;

/* How many keys the results have: the run's operand, when it is constant; else what is declared, or the past's. */
static int64_t key_count(onnx_node *n, group_query *g)
{
    int64_t total[TYPE_MAX_RANK] = {0};
    uint32_t count = 1;
    const type *t = onnx_declared(n, 1);
    if (g->before == 0)
        return g->rows;
    if (onnx_ints_of(onnx_in(n, 6), total, &count) && count == 1 && total[0] <= MOST_KEYS)
        return total[0] > g->before ? total[0] : g->before;
    if (t && t->shape.rank == 4 && dim_is_const(t->shape.dims[2], total))
        return total[0];
    if (count == 1 && total[0] > MOST_KEYS)
        return onnx_fail(n, DIAG_UNSUPPORTED, "%lld keys are too many", (long long)total[0]), -1;
    return onnx_fail(n, DIAG_UNSUPPORTED, "the number of keys is known only at run time: make total_sequence_length a "
                                          "constant, or declare the extent of present_key (--dim NAME=N)"),
           -1;
}

/* Heads [from, from + heads) of what is packed in operand 0, or operand i; [batch, rows, heads, size]. */
static graph_value *group_heads(onnx_node *n, const group_query *g, uint32_t i, int64_t from, int64_t heads)
{
    graph_value *x = onnx_optional(n, onnx_optional(n, 1) ? i : 0);
    if (!onnx_optional(n, 1))
        x = onnx_slice(n, x, 2, from * g->size, (from + heads) * g->size);
    dim d[4] = {onnx_dim(n, x, 0), onnx_dim(n, x, 1), dim_const(n->c, heads), dim_const(n->c, g->size)};
    if (!n->failed && onnx_static_dim(n, x, 2) != heads * g->size)
        return onnx_refuse(n, DIAG_TYPE, "operand %u does not divide into %lld heads of %lld", i, (long long)heads,
                         (long long)g->size);
    return onnx_reshape(n, x, 4, d);
}

static graph_value *normed(onnx_node *n, graph_value *x, uint32_t weight)
{
    attr eps = attr_float(n->c, "epsilon", onnx_attr_float(n, "qk_norm_epsilon", (double)1e-6f));
    graph_value *scale = onnx_optional(n, weight);
    return scale ? onnx_emit(n, ONNX_ARGS("nn.rms_norm", 1, &eps, x, scale)) : x;
}

/* Turned by their places, as [batch, heads, rows, size]. */
static graph_value *turned(onnx_node *n, const group_query *g, graph_value *x)
{
    static const int64_t perm[4] = {0, 2, 1, 3};
    if (onnx_attr_int(n, "do_rotary", 0) != 0) {
        dim d[2] = {onnx_dim(n, g->seen, 0), dim_const(n->c, g->rows)};
        onnx_rotary r = {.x = x, .cos = onnx_optional(n, 7), .sin = onnx_optional(n, 8), .at = onnx_optional(n, 9)};
        if (!r.cos || !r.sin)
            return onnx_refuse(n, DIAG_FORMAT, "do_rotary = 1 needs cos_cache and sin_cache");
        r.at = r.at ? r.at : onnx_reshape(n, g->seen, 2, d);
        r.turned = 2 * onnx_static_dim(n, r.cos, 1);
        r.interleaved = onnx_attr_int(n, "rotary_interleaved", 0) != 0;
        x = onnx_rotate(n, &r);
    }
    return onnx_transpose(n, x, 4, perm);
}

/* The past with the new rows at their places. */
static graph_value *cached(onnx_node *n, const group_query *g, uint32_t i, graph_value *now)
{
    static const int64_t axis = 2;
    attr at = attr_int(n->c, "axis", axis);
    graph_value *old = onnx_optional(n, i) ? onnx_optional(n, i) : now;
    int64_t pads[2] = {0, g->keys - (onnx_optional(n, i) ? g->before : g->rows)};
    if (n->failed || !onnx_optional(n, i))
        return now;
    if (pads[1] > 0)
        old = onnx_emit(n, ONNX_ARGS("nn.pad", 0, NULL, old, onnx_const_ints(n, 2, pads), onnx_const_like(n, old, 0),
                                     onnx_const_ints(n, 1, &axis)));
    return onnx_emit(n, ONNX_ARGS("tensor_scatter", 1, &at, old, now, g->past));
}

/* Which keys a query sees: up to its own place, from a window's start on. */
static graph_value *seen_keys(onnx_node *n, const group_query *g, dtype dt)
{
    graph_value *at = onnx_positions(n, g->keys), *last = g->seen, *keep;
    int64_t window = onnx_attr_int(n, "local_window_size", -1);
    if (onnx_attr_int(n, "causal", 1) == 0)
        last = as_column(n, onnx_binary(n, "add", g->past, onnx_const_int(n, DT_I64, g->rows - 1)), g->past);
    keep = onnx_binary(n, "less_equal", at, last);
    if (window > 0) {
        graph_value *first = onnx_binary(n, "subtract", g->seen, onnx_const_int(n, DT_I64, window - 1));
        keep = onnx_binary(n, "logical_and", keep, onnx_binary(n, "greater_equal", at, first));
    }
    return onnx_hide(n, keep, dt, -(double)INFINITY);
}

static bool read_group(onnx_node *n, group_query *g)
{
    static const char *const quant[2] = {"k_quant_type", "v_quant_type"};
    g->heads = onnx_attr_int(n, "num_heads", 0);
    g->kv_heads = onnx_attr_int(n, "kv_num_heads", 0);
    (void)onnx_attr_int(n, "kv_cache_bit_width", 0); /* of quantised caches alone */
    for (uint32_t i = 0; i < 2; i++)
        if (onnx_optional(n, 12 + i) || strcmp(onnx_attr_string(n, quant[i], "NONE"), "NONE") != 0)
            return onnx_fail(n, DIAG_UNSUPPORTED, "quantized caches (%s) are not supported: keep them in float",
                             quant[i]);
    if (onnx_attr_int(n, "qk_output", 0) != 0)
        return onnx_fail(n, DIAG_UNSUPPORTED, "qk_output, the scores as a result, is not supported");
    if (onnx_attr_int(n, "sliding_window_cache", 0) != 0)
        return onnx_fail(n, DIAG_UNSUPPORTED, "sliding_window_cache = 1 is not supported: keep the whole cache");
    if (!onnx_optional(n, 1) != !onnx_optional(n, 2) || !onnx_optional(n, 3) != !onnx_optional(n, 4) ||
        onnx_rank(onnx_in(n, 0)) != 3)
        return onnx_fail(n, DIAG_FORMAT, "query must be [batch, sequence, hidden]; keys and values must come together, "
                                         "and so must both pasts");
    const int64_t hidden = onnx_static_dim(n, onnx_in(n, 0), 2);
    const bool few = g->heads <= INT32_MAX && g->kv_heads <= INT32_MAX && g->heads > 0 && g->kv_heads > 0;
    const int64_t all = few ? g->heads + (onnx_optional(n, 1) ? 0 : 2 * g->kv_heads) : 0;
    if (!n->failed && (!few || g->heads % g->kv_heads != 0 || hidden % all != 0))
        return onnx_fail(n, DIAG_TYPE, "%lld values do not divide into %lld query heads that share %lld key "
                                       "heads", (long long)hidden,
                         (long long)g->heads, (long long)g->kv_heads);
    g->size = n->failed ? 1 : hidden / all;
    g->rows = onnx_static_dim(n, onnx_in(n, 0), 1);
    g->before = onnx_optional(n, 3) ? onnx_static_dim(n, onnx_optional(n, 3), 2) : 0;
    g->keys = n->failed ? 0 : key_count(n, g);
    return !n->failed;
}

/* seqlens_k is the number of all keys of a sequence, less one. Of a first prompt that is shorter than its row, the
 * places begin with 0. */
static void find_places(onnx_node *n, group_query *g)
{
    graph_value *last = onnx_in(n, 5);
    dim batch = onnx_dim(n, onnx_in(n, 0), 0);
    last = onnx_reshape(n, onnx_cast(n, last, DT_I64), 1, &batch);
    g->past = onnx_binary(n, "subtract", last, onnx_const_int(n, DT_I64, g->rows - 1));
    g->past = onnx_binary(n, "maximum", g->past, onnx_const_int(n, DT_I64, 0));
    if (g->before > 0 && g->keys > g->before) { /* as many as the results have room for */
        static const int64_t one = 1;
        graph_value *total = onnx_reshape_ints(n, onnx_cast(n, onnx_in(n, 6), DT_I64), 1, &one);
        g->past = onnx_expect(n, g->past, total, 1, 1, &g->keys);
    }
    graph_value *row = onnx_reshape_ints(n, onnx_positions(n, g->rows), 4, (int64_t[]){1, 1, g->rows, 1});
    g->seen = onnx_binary(n, "add", as_column(n, g->past, g->past), row);
}

bool onnx_op_group_query_attention(onnx_node *n)
{
    group_query g = {0};
    if (!read_group(n, &g))
        return false;
    find_places(n, &g);
    graph_value *q = normed(n, group_heads(n, &g, 0, 0, g.heads), 14);
    graph_value *k = normed(n, group_heads(n, &g, 1, g.heads, g.kv_heads), 15);
    graph_value *v = group_heads(n, &g, 2, g.heads + g.kv_heads, g.kv_heads);
    onnx_attention a = {.q = turned(n, &g, q), .sink = onnx_optional(n, 11)};
    a.k = cached(n, &g, 3, turned(n, &g, k));
    a.v = cached(n, &g, 4, onnx_transpose(n, v, 4, (int64_t[]){0, 2, 1, 3}));
    read_scale(n, &a);
    a.softcap = onnx_attr_float(n, "softcap", 0);
    if (onnx_attr_int(n, "smooth_softmax", 0) > 0 && !a.sink)
        a.sink = onnx_constant(n, tensor_splat(n->c, a.dt, 1, &g.heads, &(uint64_t){0}));
    a.bias = onnx_plus(n, onnx_optional(n, 10), seen_keys(n, &g, a.dt));
    graph_value *y = onnx_attend(n, &a);
    onnx_alias(n, 0, onnx_join_heads(n, y));
    onnx_alias(n, 1, a.k);
    onnx_alias(n, 2, a.v);
    return !n->failed;
}
