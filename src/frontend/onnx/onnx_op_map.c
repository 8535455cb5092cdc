/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of what takes maps: CastMap, DictVectorizer. A map is its keys and, beside them, its values, in any order
 * (onnx_border.c). Each column of the result finds its entry: its place, from 1 on, 0 where there is none. */
#include "frontend/onnx/onnx_ml.h"

#include <string.h>

typedef struct entries {
    graph_value *keys, *values;
} entries;

static entries entries_of(onnx_node *n)
{
    const onnx_part *p = onnx_list_of(n->im, onnx_in(n, 0))->parts;
    return (entries){p[0].v, p[1].v};
}

/* The values at places, where place 0 is a value of no entry: one row. */
static bool give_row(onnx_node *n, graph_value *values, graph_value *none, graph_value *places)
{
    const int64_t front = 0;
    const bool text = onnx_is_text(n->im, values);
    graph_value *parts[2] = {none, values};
    graph_value *y = ml_take(n, onnx_concat(n, 2, parts, 0), places);
    y = onnx_expand_dims(n, y, 1, &front);
    return onnx_alias(n, 0, text ? onnx_set_text(n->im, y) : y);
}

/* What stands where no entry is: 0, or the text. */
static graph_value *no_entry(onnx_node *n, graph_value **values, const char *text)
{
    if (!onnx_is_text(n->im, *values))
        return onnx_constant(n, tensor_reshape(n->c, tensor_scalar_f64(n->c, onnx_dtype(*values), 0), 1,
                                               (int64_t[]){1}));
    graph_value *one = onnx_set_text(n->im, onnx_constant(n, onnx_text_table(n, 1, &text)));
    *values = onnx_text_wider(n, *values, onnx_text_width(one));
    return onnx_text_wider(n, one, onnx_text_width(*values));
}

/* The places of the entries in `columns` columns; `column` says which one each is in, `columns` itself: in none. Of two
 * entries in a column the last one counts, as in a map that is filled by them in turn. */
static graph_value *scatter(onnx_node *n, graph_value *column, int64_t columns)
{
    const attr axis = attr_int(n->c, "axis", 0);
    graph_value *one = onnx_const_int(n, DT_I64, 1), *place = onnx_binary(n, "add", onnx_list_places(n, column), one);
    const int64_t dims[1] = {columns + 1};
    graph_value *none = onnx_constant(n, tensor_dense(n->c, DT_I64, 1, dims,
                                                      arena_array(&n->c->mem, int64_t, (size_t)columns + 1u)));
    graph_value *all = onnx_emit(n, ONNX_ARGS("scatter_elements", 1, &axis, none, column, place));
    return onnx_slice(n, all, 0, 0, columns);
}

/* --- DictVectorizer --- */

/* A column for each word of the vocabulary; one that is listed twice has two. */
bool onnx_op_dict_vectorizer(onnx_node *n)
{
    const ml_ints i = ml_attr_ints(n, "int64_vocabulary");
    const ml_strings s = ml_attr_strings(n, "string_vocabulary");
    entries e = entries_of(n);
    const bool strings = onnx_is_text(n->im, e.keys);
    const uint32_t count = strings ? s.n : i.n;
    onnx_map seen = {0};
    if (count == 0)
        return onnx_fail(n, DIAG_FORMAT, "%s_vocabulary is missing", strings ? "string" : "int64");
    int64_t *first = arena_array(&n->c->mem, int64_t, count);
    bool twice = false;
    for (uint32_t k = 0; k < count; k++) {
        const char *word = intern(n->c->names, strings ? s.v[k] : arena_printf(&n->c->mem, "%lld", (long long)i.v[k]));
        const int64_t *before = onnx_map_get(&seen, word);
        first[k] = before ? *before : (int64_t)k;
        twice |= before != NULL;
        if (!before)
            onnx_map_set(&n->c->mem, &seen, word, &first[k]);
    }
    graph_value *places = scatter(n, ml_find(n, e.keys, count, i.v, strings ? s.v : NULL), count);
    if (twice)
        places = ml_take(n, places, onnx_const_ints(n, count, first));
    graph_value *none = no_entry(n, &e.values, "");
    return give_row(n, e.values, none, places);
}

/* --- CastMap --- */

/* The values as cast_to says; *out_none: what stands for an entry that is not there. */
static graph_value *cast_values(onnx_node *n, graph_value *v, graph_value **out_none)
{
    const char *to = onnx_attr_string(n, "cast_to", "TO_FLOAT");
    const bool text = onnx_is_text(n->im, v), is_float = strcmp(to, "TO_FLOAT") == 0;
    if (strcmp(to, "TO_STRING") == 0)
        v = text ? v : onnx_number_fixed(n, v);
    else if (is_float || strcmp(to, "TO_INT64") == 0)
        v = text ? onnx_text_number(n, v, is_float ? DT_F32 : DT_I64) : onnx_cast(n, v, is_float ? DT_F32 : DT_I64);
    else
        return onnx_refuse(n, DIAG_FORMAT, "cast_to is '%s'; it may be TO_FLOAT, TO_STRING or TO_INT64", to);
    *out_none = no_entry(n, &v, "0.f");
    return v;
}

/* The places of all entries by their keys, from the least on. */
static graph_value *sorted_places(onnx_node *n, graph_value *keys)
{
    const dim line[1] = {dim_const(n->c, 1)};
    const attr a[3] = {attr_int(n->c, "axis", 0), attr_int(n->c, "largest", 0), attr_int(n->c, "sorted", 1)};
    graph_value *count = onnx_reshape(n, onnx_extent(n, keys, 0), 1, line), *least[2];
    onnx_emit_all(n, ONNX_ARGS("topk", 3, a, keys, count), 2, least);
    return onnx_binary(n, "add", least[1], onnx_const_int(n, DT_I64, 1));
}

/* DENSE: the values by their keys. SPARSE: max_map columns, of which each takes the value whose key is its number. */
bool onnx_op_cast_map(onnx_node *n)
{
    const char *form = onnx_attr_string(n, "map_form", "DENSE");
    const int64_t columns = onnx_attr_int(n, "max_map", 1);
    const bool sparse = strcmp(form, "SPARSE") == 0;
    const entries e = entries_of(n);
    graph_value *none = NULL, *values = cast_values(n, e.values, &none), *places;
    if (!sparse && strcmp(form, "DENSE") != 0)
        return onnx_fail(n, DIAG_FORMAT, "map_form is '%s'; it may be DENSE or SPARSE", form);
    if (onnx_dtype(e.keys) != DT_I64 || onnx_is_text(n->im, e.keys))
        return onnx_fail(n, DIAG_TYPE, "the keys must be i64");
    if (sparse && (columns < 1 || columns > INT32_MAX))
        return onnx_fail(n, DIAG_FORMAT, "max_map is %lld", (long long)columns);
    if (sparse) {
        graph_value *above = onnx_const_int(n, DT_I64, columns), *below = onnx_const_int(n, DT_I64, 0);
        graph_value *wrong = onnx_binary(n, "less", e.keys, below);
        graph_value *at = onnx_emit(n, ONNX_ARGS("clip", 0, NULL, e.keys, below, above));
        places = scatter(n, onnx_where(n, wrong, above, at), columns);
    } else {
        places = sorted_places(n, e.keys);
    }
    return give_row(n, values, none, places);
}
