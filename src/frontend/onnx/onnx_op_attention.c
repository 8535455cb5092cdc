/* SPDX-License-Identifier: Apache-2.0 */
/* Importer of Attention, and what the importers of other forms of it share (onnx_op_transformer.c), composed as the
 * bodies in the specification say. Shapes inside are [batch, heads, positions, head size]; heads and their size must be
 * known. Query heads that share a key head are rows of one product: keys are not repeated. */
#include "frontend/onnx/onnx_import.h"

#include <math.h>
#include <string.h>

/* --- what all forms share --- */

graph_value *onnx_split_heads(onnx_node *n, graph_value *x, int64_t heads)
{
    static const int64_t perm[4] = {0, 2, 1, 3};
    int64_t hidden = onnx_static_dim(n, x, 2);
    if (!n->failed && (heads < 1 || hidden % heads != 0))
        return onnx_refuse(n, DIAG_TYPE, "%lld values do not divide into %lld heads", (long long)hidden,
                         (long long)heads);
    if (n->failed)
        return onnx_nothing(n);
    dim d[4] = {onnx_dim(n, x, 0), onnx_dim(n, x, 1), dim_const(n->c, heads), dim_const(n->c, hidden / heads)};
    return onnx_transpose(n, onnx_reshape(n, x, 4, d), 4, perm);
}

graph_value *onnx_join_heads(onnx_node *n, graph_value *x)
{
    static const int64_t perm[4] = {0, 2, 1, 3};
    dim d[3] = {onnx_dim(n, x, 0), onnx_dim(n, x, 2), dim_mul(n->c, onnx_dim(n, x, 1), onnx_dim(n, x, 3))};
    return onnx_reshape(n, onnx_transpose(n, x, 4, perm), 3, d);
}

graph_value *onnx_hide(onnx_node *n, graph_value *keep, dtype dt, double hidden)
{
    if (n->failed || !dtype_is_float(dt))
        return onnx_refuse(n, DIAG_TYPE, "queries, keys and values are %s; floats are needed", dtype_name(dt));
    return onnx_where(n, keep, onnx_const_float(n, dt, 0), onnx_const_float(n, dt, hidden));
}

graph_value *onnx_plus(onnx_node *n, graph_value *sum, graph_value *v)
{
    return sum && v ? onnx_binary(n, "add", sum, v) : sum ? sum : v;
}

graph_value *onnx_positions(onnx_node *n, int64_t count)
{
    if (n->failed || count < 0 || count > 1 << 24)
        return onnx_refuse(n, DIAG_UNSUPPORTED, "there are too many positions");
    int64_t *index = arena_array(&n->c->mem, int64_t, (size_t)count + 1);
    for (int64_t i = 0; i < count; i++)
        index[i] = i;
    return onnx_constant(n, tensor_dense(n->c, DT_I64, 1, &count, index));
}

#define ALL_KEYS (-1)

/* A query sees the keys from `left` before its own place to `right` behind it; ALL_KEYS: all on that side. */
typedef struct window {
    int64_t left, right;
} window;

/* The bias of a window whose places are numbers: query i has place i + past. */
static graph_value *static_window(onnx_node *n, const onnx_attention *a, int64_t past, window w)
{
    int64_t rows = onnx_static_dim(n, a->q, 2), cols = onnx_static_dim(n, a->k, 2), count = 0;
    if (n->failed || !i64_mul(rows, cols, &count) || count > 1 << 26)
        return onnx_refuse(n, DIAG_UNSUPPORTED, "the causal mask is too large");
    uint8_t *keep = arena_alloc(&n->c->mem, (size_t)count + 1, 64);
    for (int64_t i = 0; i < count; i++) {
        const int64_t behind = i % cols - (i / cols + past);
        keep[i] = (w.right == ALL_KEYS || behind <= w.right) && (w.left == ALL_KEYS || -behind <= w.left);
    }
    graph_value *k = onnx_constant(n, tensor_dense(n->c, DT_BOOL, 2, (int64_t[]){rows, cols}, keep));
    return onnx_hide(n, k, a->dt, -(double)INFINITY);
}

/* How many positions x has, an i64[1]: a number of the model, or of each run. */
static graph_value *length_of(onnx_node *n, graph_value *x)
{
    const attr part[2] = {attr_int(n->c, "start", 2), attr_int(n->c, "end", 3)};
    return onnx_emit(n, ONNX_ARGS("shape_of", 2, part, x));
}

graph_value *onnx_places_of(onnx_node *n, graph_value *x)
{
    int64_t count;
    const dim d = onnx_dim(n, x, 2);
    if (dim_is_const(d, &count))
        return onnx_positions(n, count);
    const shape line = shape_make(n->c, 1, &d);
    graph_value *length = length_of(n, x), *zero = onnx_const_like(n, length, 0), *one = onnx_const_like(n, length, 1);
    n->expect = &line;
    graph_value *at = onnx_emit(n, ONNX_ARGS("arange", 0, NULL, zero, length, one));
    n->expect = NULL;
    return at;
}

/* i64[positions of x, 1] */
static graph_value *column_of(onnx_node *n, graph_value *x)
{
    const dim d[2] = {onnx_dim(n, x, 2), dim_const(n->c, 1)};
    return onnx_reshape(n, onnx_places_of(n, x), 2, d);
}

graph_value *onnx_causal(onnx_node *n, const onnx_attention *a, graph_value *past, uint32_t axis)
{
    int64_t rows, columns, before = 0;
    if (dim_is_const(onnx_dim(n, a->q, 2), &rows) && dim_is_const(onnx_dim(n, a->k, 2), &columns) &&
        (!past || dim_is_const(onnx_dim(n, past, axis), &before)))
        return static_window(n, a, before, (window){ALL_KEYS, 0});
    graph_value *at = column_of(n, a->q);
    if (past)
        at = onnx_binary(n, "add", at, onnx_extent(n, past, axis));
    graph_value *keep = onnx_binary(n, "less_equal", onnx_places_of(n, a->k), at);
    return onnx_hide(n, keep, a->dt, -(double)INFINITY);
}

static bool is_one(dim d)
{
    int64_t extent;
    return dim_is_const(d, &extent) && extent == 1;
}

/* Rows of all query heads of one key head stand together: [batch, heads, rows, cols] over kv heads, and back. */
static graph_value *regroup(onnx_node *n, graph_value *x, int64_t heads, dim rows)
{
    dim d[4] = {onnx_dim(n, x, 0), dim_const(n->c, heads), rows, onnx_dim(n, x, 3)};
    return onnx_reshape(n, x, 4, d);
}

/* A bias for such rows. */
static graph_value *regroup_bias(onnx_node *n, graph_value *b, const onnx_attention *a, dim s)
{
    static const int64_t front[4] = {0, 1, 2, 3};
    int64_t times = a->q_heads / a->kv_heads, r[4] = {1, 1, times, 1};
    uint32_t rank = onnx_rank(b);
    if (rank < 2 || (rank == 2 && is_one(onnx_dim(n, b, 0))))
        return b;
    if (rank < 4)
        b = onnx_expand_dims(n, b, 4 - rank, front);
    if (onnx_static_dim(n, b, 1) == a->q_heads && a->q_heads > 1) {
        if (!dim_equal(onnx_dim(n, b, 2), s)) {
            int64_t by_rows[4] = {1, 1, 1, 1};
            if (!dim_is_const(s, &by_rows[2]))
                return onnx_refuse(n, DIAG_UNSUPPORTED,
                                   "a mask with one row for each head needs a known number of queries");
            b = onnx_binary(n, "tile", b, onnx_const_ints(n, 4, by_rows));
        }
        return regroup(n, b, a->kv_heads, dim_mul(n->c, dim_const(n->c, times), s));
    }
    return is_one(onnx_dim(n, b, 2)) ? b : onnx_binary(n, "tile", b, onnx_const_ints(n, 4, r));
}

/* On both sides where halves would leave their range; else on the query, which is shorter. */
static graph_value *scaled_products(onnx_node *n, const onnx_attention *a)
{
    bool both = dtype_bits(a->dt) < 32;
    graph_value *by = onnx_const_float(n, a->dt, both ? sqrt(a->scale) : a->scale);
    graph_value *q = onnx_binary(n, "multiply", a->q, by), *k = both ? onnx_binary(n, "multiply", a->k, by) : a->k;
    return onnx_matmul(n, q, k, false, true, DT_NONE);
}

static graph_value *capped_products(onnx_node *n, const onnx_attention *a)
{
    graph_value *s = a->products;
    if (a->softcap <= 0)
        return s;
    graph_value *c = onnx_const_float(n, a->dt, a->softcap);
    return onnx_binary(n, "multiply", onnx_unary(n, "tanh", onnx_binary(n, "divide", s, c)), c);
}

/* Softmax of rows; a sink counts as one element more, which is left out. */
static graph_value *softmax(onnx_node *n, graph_value *x, const onnx_attention *a, dim rows)
{
    static const int64_t last = 3;
    attr axis = attr_int(n->c, "axis", -1);
    x = onnx_cast(n, x, a->precise);
    if (!a->sink)
        return onnx_cast(n, onnx_emit(n, ONNX_ARGS("nn.softmax", 1, &axis, x)), a->dt);
    graph_value *sink = onnx_reshape_ints(n, onnx_cast(n, a->sink, a->precise), 4, (int64_t[]){1, a->q_heads, 1, 1});
    sink = regroup_bias(n, sink, a, rows);
    graph_value *most = onnx_binary(n, "maximum", onnx_reduce(n, "max", x, 1, &last, true), sink);
    graph_value *e = onnx_unary(n, "exp", onnx_binary(n, "subtract", x, most));
    graph_value *beside = onnx_unary(n, "exp", onnx_binary(n, "subtract", sink, most));
    graph_value *sum = onnx_binary(n, "add", onnx_reduce(n, "sum", e, 1, &last, true), beside);
    return onnx_cast(n, onnx_binary(n, "divide", e, sum), a->dt);
}

/* x, and 0 in the rows whose keys are all hidden: their softmax is of nothing. */
static graph_value *without_hidden_rows(onnx_node *n, const onnx_attention *a, graph_value *x)
{
    const int64_t keys = (int64_t)onnx_rank(a->bias) - 1;
    if (!a->bias || !a->may_hide_all || a->sink || n->failed)
        return x;
    graph_value *most = onnx_reduce(n, "max", a->bias, 1, &keys, true);
    graph_value *hidden = onnx_binary(n, "equal", most, onnx_const_like(n, most, -(double)INFINITY));
    return onnx_where(n, hidden, onnx_const_like(n, x, 0), x);
}

graph_value *onnx_attend(onnx_node *n, onnx_attention *a)
{
    if (n->failed)
        return onnx_nothing(n);
    a->q_heads = onnx_static_dim(n, a->q, 1);
    a->kv_heads = onnx_static_dim(n, a->k, 1);
    const dim s = onnx_dim(n, a->q, 2);
    if (!n->failed && (a->kv_heads < 1 || a->q_heads % a->kv_heads != 0))
        return onnx_refuse(n, DIAG_TYPE, "%lld query heads cannot share %lld key heads evenly", (long long)a->q_heads,
                         (long long)a->kv_heads);
    if (n->failed)
        return onnx_nothing(n);
    const bool shared = a->q_heads != a->kv_heads;
    const dim rows = dim_mul(n->c, dim_const(n->c, a->q_heads / a->kv_heads), s);
    a->precise = a->precise != DT_NONE ? a->precise : a->dt;
    if (shared) {
        a->q = regroup(n, a->q, a->kv_heads, rows);
        a->bias = a->bias ? regroup_bias(n, a->bias, a, s) : NULL;
    }
    a->products = scaled_products(n, a);
    a->capped = capped_products(n, a);
    a->biased = onnx_plus(n, a->capped, a->bias);
    a->weights = softmax(n, a->biased, a, s);
    graph_value *y = without_hidden_rows(n, a, onnx_matmul(n, a->weights, a->v, false, false, DT_NONE));
    a->weights = a->all ? without_hidden_rows(n, a, a->weights) : a->weights;
    if (shared && a->all) {
        a->products = regroup(n, a->products, a->q_heads, s);
        a->capped = regroup(n, a->capped, a->q_heads, s);
        a->biased = regroup(n, a->biased, a->q_heads, s);
        a->weights = regroup(n, a->weights, a->q_heads, s);
    }
    return shared ? regroup(n, y, a->q_heads, s) : y;
}

double onnx_usual_scale(onnx_node *n, const onnx_attention *a)
{
    int64_t size = onnx_static_dim(n, a->q, 3);
    return size > 0 ? 1 / sqrt((double)size) : 1;
}

/* --- the operator of ONNX --- */

static graph_value *with_past(onnx_node *n, uint32_t i, graph_value *now)
{
    graph_value *both[2] = {onnx_optional(n, i), now};
    return both[0] ? onnx_concat(n, 2, both, 2) : now;
}

static bool read_attention(onnx_node *n, onnx_attention *a)
{
    graph_value *in[3] = {onnx_in(n, 0), onnx_in(n, 1), onnx_in(n, 2)};
    for (uint32_t i = 0; i < 3; i++)
        if (onnx_rank(in[i]) != onnx_rank(in[0]) || (onnx_rank(in[i]) != 3 && onnx_rank(in[i]) != 4))
            return onnx_fail(n, DIAG_TYPE, "Q, K and V must all have three dimensions, or all four");
    const bool flat = onnx_rank(in[0]) == 3;
    int64_t qh = onnx_attr_int(n, "q_num_heads", 0), kvh = onnx_attr_int(n, "kv_num_heads", 0);
    a->dt = onnx_dtype(in[0]);
    a->q = flat ? onnx_split_heads(n, in[0], qh) : in[0];
    a->k = with_past(n, 4, flat ? onnx_split_heads(n, in[1], kvh) : in[1]);
    a->v = with_past(n, 5, flat ? onnx_split_heads(n, in[2], kvh) : in[2]);
    a->softcap = onnx_attr_float(n, "softcap", 0);
    a->precise = onnx_attr_dtype(n, "softmax_precision", DT_NONE);
    a->scale = onnx_has_attr(n, "scale") ? onnx_attr_float(n, "scale", 0) : onnx_usual_scale(n, a);
    a->all = n->n_out > 3;
    return !n->failed;
}

/* A mask shorter than the keys hides those beyond it. */
static graph_value *mask_bias(onnx_node *n, const onnx_attention *a)
{
    graph_value *mask = onnx_optional(n, 3);
    uint32_t rank = onnx_rank(mask);
    bool is_bool = onnx_dtype(mask) == DT_BOOL;
    int64_t pads[2] = {0, 0}, axis = rank - 1;
    if (rank == 0)
        return onnx_refuse(n, DIAG_TYPE, "the mask has no dimensions");
    if (!dim_equal(onnx_dim(n, a->k, 2), onnx_dim(n, mask, (uint32_t)axis)))
        pads[1] = onnx_static_dim(n, a->k, 2) - onnx_static_dim(n, mask, (uint32_t)axis);
    if (pads[1] > 0) {
        graph_value *fill = is_bool ? onnx_const_int(n, DT_BOOL, 0) : onnx_const_like(n, mask, -(double)INFINITY);
        graph_value *p = onnx_const_ints(n, 2, pads), *ax = onnx_const_ints(n, 1, &axis);
        mask = onnx_emit(n, ONNX_ARGS("nn.pad", 0, NULL, mask, p, fill, ax));
    }
    return is_bool ? onnx_hide(n, mask, a->dt, -(double)INFINITY) : onnx_cast(n, mask, a->dt);
}

/* The sequences' numbers of keys as [batch, 1, 1, 1]; operand 6 of the operator. */
static graph_value *key_counts(onnx_node *n)
{
    dim d[4] = {onnx_dim(n, onnx_optional(n, 6), 0), dim_const(n->c, 1), dim_const(n->c, 1), dim_const(n->c, 1)};
    return onnx_reshape(n, onnx_cast(n, onnx_optional(n, 6), DT_I64), 4, d);
}

/* The place of each query among the keys, [queries, 1] or [batch, 1, queries, 1]: behind the keys of the past; where
 * keys are counted, the last of these. */
static graph_value *places(onnx_node *n, const onnx_attention *a)
{
    graph_value *past = onnx_optional(n, 4);
    graph_value *at = column_of(n, a->q);
    if (past)
        return onnx_binary(n, "add", at, length_of(n, past));
    if (!onnx_optional(n, 6))
        return at;
    return onnx_binary(n, "add", at, onnx_binary(n, "subtract", key_counts(n), length_of(n, a->q)));
}

static graph_value *window_bias(onnx_node *n, const onnx_attention *a, window w)
{
    int64_t rows, columns, before = 0;
    graph_value *past = onnx_optional(n, 4), *keep = NULL;
    if (w.left == ALL_KEYS && w.right == ALL_KEYS)
        return NULL;
    if (dim_is_const(onnx_dim(n, a->q, 2), &rows) && dim_is_const(onnx_dim(n, a->k, 2), &columns) &&
        (past ? dim_is_const(onnx_dim(n, past, 2), &before) : !onnx_optional(n, 6)))
        return static_window(n, a, before, w);
    graph_value *keys = onnx_places_of(n, a->k), *at = places(n, a);
    if (w.right != ALL_KEYS)
        keep = onnx_binary(n, "less_equal", keys, onnx_binary(n, "add", at, onnx_const_int(n, DT_I64, w.right)));
    if (w.left != ALL_KEYS) {
        graph_value *first = onnx_binary(n, "subtract", at, onnx_const_int(n, DT_I64, w.left));
        graph_value *kept = onnx_binary(n, "greater_equal", keys, first);
        keep = keep ? onnx_binary(n, "logical_and", keep, kept) : kept;
    }
    return onnx_hide(n, keep, a->dt, -(double)INFINITY);
}

/* The row's attributes are those of the window: version 25 has them. */
static window read_window(onnx_node *n)
{
    const bool has_window = *n->row->attrs, is_causal = onnx_attr_int(n, "is_causal", 0) != 0;
    window w = {has_window ? onnx_attr_int(n, "left_window_size", ALL_KEYS) : ALL_KEYS,
                has_window ? onnx_attr_int(n, "right_window_size", ALL_KEYS) : ALL_KEYS};
    if (w.left < ALL_KEYS || w.right < ALL_KEYS)
        (void)onnx_fail(n, DIAG_FORMAT, "left_window_size and right_window_size are -1 (all keys) or more, not %lld",
                        (long long)(w.left < ALL_KEYS ? w.left : w.right));
    if (is_causal)
        w.right = 0;
    return w;
}

/* Keys beyond each sequence's length are hidden. */
static graph_value *length_bias(onnx_node *n, const onnx_attention *a)
{
    graph_value *keep = onnx_binary(n, "less", onnx_places_of(n, a->k), key_counts(n));
    return onnx_hide(n, keep, a->dt, -(double)INFINITY);
}

bool onnx_op_attention(onnx_node *n)
{
    onnx_attention a = {0};
    if (!read_attention(n, &a))
        return false;
    int64_t mode = onnx_attr_int(n, "qk_matmul_output_mode", 0);
    const window w = read_window(n);
    a.bias = onnx_optional(n, 3) ? mask_bias(n, &a) : NULL;
    a.may_hide_all = onnx_optional(n, 3) || onnx_optional(n, 6) || w.left != ALL_KEYS;
    a.bias = onnx_plus(n, a.bias, window_bias(n, &a, w));
    if (onnx_optional(n, 6) && onnx_rank(a.bias) == 3) /* [heads, q, k] becomes [1, heads, q, k] by broadcasting */
        a.bias = onnx_plus(n, a.bias, length_bias(n, &a));
    else if (onnx_optional(n, 6))
        a.bias = onnx_plus(n, length_bias(n, &a), a.bias);
    graph_value *y = onnx_attend(n, &a);
    onnx_alias(n, 0, onnx_rank(onnx_in(n, 0)) == 3 ? onnx_join_heads(n, y) : y);
    onnx_alias(n, 1, a.k);
    onnx_alias(n, 2, a.v);
    onnx_alias(n, 3, mode == 3 ? a.weights : mode == 2 ? a.biased : mode == 1 ? a.capped : a.products);
    return !n->failed;
}
