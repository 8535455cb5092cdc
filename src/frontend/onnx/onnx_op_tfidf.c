/* SPDX-License-Identifier: Apache-2.0 */
/* Importer of TfIdfVectorizer: how often each sequence of the pool is found in a row. The items of a
 * sequence stand 1 to max_skip_count + 1 places apart, the same for all; single items are counted once. Each length of
 * sequences is a comparison of shifted rows with columns of the pool, and a sum. Strings are numbers by then: their
 * places in the pool. */
#include "frontend/onnx/onnx_ml.h"

#include <string.h>

enum { MOST_ITEMS = 1 << 16 }; /* of a row, where the data decides how many it has */

typedef struct tfidf {
    onnx_node *n;
    graph_value *x; /* i64[rows, items] */
    int64_t items, least, most, skips;
    const int64_t *pool, *counts, *indexes;
    uint32_t pool_len, n_counts, n_indexes;
    int64_t columns; /* of the result */
    bool is_row;     /* the data has one dimension */
} tfidf;

/* Item k of the sequences of one length, i64[1, 1, sequences]. */
static graph_value *pool_column(const tfidf *v, int64_t from, int64_t length, int64_t sequences, int64_t k)
{
    const int64_t d[3] = {1, 1, sequences};
    int64_t *at = arena_array(&v->n->c->mem, int64_t, (uint32_t)sequences);
    for (int64_t i = 0; i < sequences; i++)
        at[i] = v->pool[from + i * length + k];
    return onnx_constant(v->n, tensor_dense(v->n->c, DT_I64, 3, d, at));
}

/* f32[rows, sequences]: found with items `stride` places apart; NULL: rows are shorter than that. */
static graph_value *found(const tfidf *v, int64_t from, int64_t length, int64_t sequences, int64_t stride)
{
    onnx_node *n = v->n;
    const int64_t places = v->items - (length - 1) * stride, axis = 2, sum = 1;
    graph_value *all = NULL;
    if (places < 1)
        return NULL;
    for (int64_t k = 0; k < length; k++) {
        graph_value *part = onnx_slice(n, v->x, 1, k * stride, k * stride + places);
        graph_value *same = onnx_binary(n, "equal", onnx_expand_dims(n, part, 1, &axis),
                                        pool_column(v, from, length, sequences, k));
        all = all ? onnx_binary(n, "logical_and", all, same) : same;
    }
    return onnx_reduce(n, "sum", onnx_cast(n, all, DT_F32), 1, &sum, false);
}

/* f32[rows, sequences] of one length; NULL: none can be found. */
static graph_value *counted(const tfidf *v, int64_t from, int64_t length, int64_t sequences)
{
    graph_value *all = NULL;
    for (int64_t s = 0; s <= (length == 1 ? 0 : v->skips); s++) {
        graph_value *one = found(v, from, length, sequences, s + 1);
        all = one && all ? onnx_binary(v->n, "add", all, one) : one ? one : all;
    }
    return all;
}

/* Column c of the result is which sequence, counted over all lengths; those that are not counted are the last. */
static graph_value *laid_out(const tfidf *v, graph_value *counts, const int64_t *place)
{
    attr axis = attr_int(v->n->c, "axis", 1);
    return onnx_emit(v->n, ONNX_ARGS("take", 1, &axis, counts, onnx_const_ints(v->n, (uint32_t)v->columns, place)));
}

static graph_value *weights_of(const tfidf *v)
{
    onnx_node *n = v->n;
    const onnx_attr *a = onnx_attr_find(n, "weights");
    float *w = arena_array(&n->c->mem, float, (uint32_t)v->columns);
    const uint32_t len = a ? (uint32_t)(a->pb->floats.len / sizeof(float)) : 0;
    for (int64_t i = 0; i < v->columns; i++)
        w[i] = 1;
    for (uint32_t i = 0; i < len && i < v->n_indexes; i++)
        w[v->indexes[i]] = pb_float(a->pb->floats, i);
    return onnx_constant(n, tensor_dense(n->c, DT_F32, 1, &v->columns, w));
}

/* Each string is the place of the first that equals it in the pool, of the data as well. */
static graph_value *pool_of_strings(tfidf *v, graph_value *x)
{
    onnx_node *n = v->n;
    const ml_strings s = ml_attr_strings(n, "pool_strings");
    int64_t *pool = arena_array(&n->c->mem, int64_t, s.n + 1u);
    onnx_map seen = {0}; /* they are interned */
    for (uint32_t i = 0; i < s.n; i++) {
        const int64_t *first = onnx_map_get(&seen, s.v[i]);
        pool[i] = first ? *first : i;
        if (!first)
            onnx_map_set(&n->c->mem, &seen, s.v[i], &pool[i]);
    }
    v->pool = pool;
    v->pool_len = s.n;
    return onnx_text_find(n, onnx_text(n, x), s.n, s.v);
}

/* Rows of as many items as there can be, where the data decides how many there are: what is not there is -1, which is
 * no place in the pool. */
static graph_value *full_rows(onnx_node *n, graph_value *x)
{
    const int64_t axis = (int64_t)onnx_rank(x) - 1;
    const dim d = onnx_dim(n, x, (uint32_t)axis);
    int64_t known = 0, most = dim_bound(d);
    if (n->failed || dim_is_const(d, &known) || most < 0 || most > MOST_ITEMS)
        return x;
    int64_t *none = arena_array(&n->c->mem, int64_t, (uint32_t)most + 1u);
    for (int64_t i = 0; i < most; i++)
        none[i] = -1;
    graph_value *zero = onnx_reduce(n, "sum", x, 1, &axis, true);
    zero = onnx_binary(n, "multiply", zero, onnx_const_int(n, DT_I64, 0));
    graph_value *parts[2] = {x, onnx_binary(n, "add", zero, onnx_const_ints(n, (uint32_t)most, none))};
    return onnx_slice(n, onnx_concat(n, 2, parts, axis), axis, 0, most);
}

static bool read_tfidf(tfidf *v)
{
    onnx_node *n = v->n;
    graph_value *x = onnx_in(n, 0);
    const bool strings = onnx_is_strings(n->im, x);
    v->least = onnx_attr_int(n, "min_gram_length", 1);
    v->most = onnx_attr_int(n, "max_gram_length", 1);
    v->skips = onnx_attr_int(n, "max_skip_count", 0);
    v->pool_len = onnx_attr_ints(n, "pool_int64s", &v->pool);
    v->n_counts = onnx_attr_ints(n, "ngram_counts", &v->counts);
    v->n_indexes = onnx_attr_ints(n, "ngram_indexes", &v->indexes);
    if (strings != onnx_has_attr(n, "pool_strings"))
        return onnx_fail(n, DIAG_TYPE, "pool_strings is for strings, pool_int64s for integers");
    x = strings ? full_rows(n, pool_of_strings(v, x)) : x;
    if (onnx_rank(x) < 1 || onnx_rank(x) > 2 || !dtype_is_int(onnx_dtype(x)))
        return onnx_fail(n, DIAG_TYPE, "the data must be integers of one or two dimensions");
    v->items = onnx_static_dim(n, x, onnx_rank(x) - 1);
    for (uint32_t i = 0; i < v->n_indexes; i++) {
        if (v->indexes[i] < 0 || v->indexes[i] >= INT32_MAX)
            return onnx_fail(n, DIAG_FORMAT, "column %lld of the result", (long long)v->indexes[i]);
        v->columns = v->indexes[i] + 1 > v->columns ? v->indexes[i] + 1 : v->columns;
    }
    if (!n->failed && (v->least < 1 || v->most < v->least || v->skips < 0 || v->columns == 0))
        return onnx_fail(n, DIAG_FORMAT, "lengths from %lld to %lld with %lld skips", (long long)v->least,
                         (long long)v->most, (long long)v->skips);
    for (uint32_t i = 0; i < v->n_counts; i++)
        if (v->counts[i] < 0 || v->counts[i] > (i + 1 < v->n_counts ? v->counts[i + 1] : (int64_t)v->pool_len))
            return onnx_fail(n, DIAG_FORMAT, "ngram_counts does not fit the pool of %u items", v->pool_len);
    const int64_t axis = 0;
    v->is_row = onnx_rank(x) == 1;
    v->x = onnx_cast(n, onnx_rank(x) == 1 ? onnx_expand_dims(n, x, 1, &axis) : x, DT_I64);
    return !n->failed;
}

/* All counts side by side, and a column of zeros; place: for each column of the result the one of it. */
static graph_value *count_all(tfidf *v, int64_t *place)
{
    onnx_node *n = v->n;
    VEC(graph_value *) parts = {0};
    int64_t at = 0, id = 0;
    for (int64_t c = 0; c < v->columns; c++)
        place[c] = -1;
    for (uint32_t i = 0; i < v->n_counts; i++) {
        const int64_t length = i + 1, from = v->counts[i];
        const int64_t to = i + 1 < v->n_counts ? v->counts[i + 1] : (int64_t)v->pool_len, many = (to - from) / length;
        graph_value *one = length >= v->least && length <= v->most && many ? counted(v, from, length, many) : NULL;
        if (id + many > (int64_t)v->n_indexes)
            return onnx_refuse(n, DIAG_FORMAT, "the pool has more sequences than ngram_indexes");
        for (int64_t k = 0; one && k < many; k++)
            place[v->indexes[id + k]] = at + k;
        if (one)
            vec_push(&n->c->mem, &parts, one);
        at += one ? many : 0;
        id += many;
    }
    const int64_t axis = 1;
    graph_value *none = onnx_reduce(n, "sum", onnx_cast(n, onnx_slice(n, v->x, 1, 0, 0), DT_F32), 1, &axis, true);
    vec_push(&n->c->mem, &parts, none);
    for (int64_t c = 0; c < v->columns; c++)
        place[c] = place[c] < 0 ? at : place[c];
    return parts.len == 1 ? none : onnx_concat(n, parts.len, parts.data, 1);
}

bool onnx_op_tfidf(onnx_node *n)
{
    tfidf v = {.n = n};
    if (!read_tfidf(&v))
        return false;
    const char *mode = onnx_attr_string(n, "mode", "TF");
    int64_t *place = arena_array(&n->c->mem, int64_t, (uint32_t)v.columns);
    graph_value *y = count_all(&v, place);
    y = laid_out(&v, y, place);
    if (strcmp(mode, "IDF") == 0)
        y = onnx_cast(n, onnx_binary(n, "greater", y, onnx_const_like(n, y, 0)), DT_F32);
    if (strcmp(mode, "TF") != 0)
        y = onnx_binary(n, "multiply", y, weights_of(&v));
    else
        (void)onnx_attr_find(n, "weights");
    if (v.is_row)
        y = onnx_reshape_ints(n, y, 1, &v.columns);
    return onnx_alias(n, 0, y);
}
