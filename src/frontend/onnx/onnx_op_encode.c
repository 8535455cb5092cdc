/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of the encoders of ai.onnx.ml: LabelEncoder, CategoryMapper, OneHotEncoder. Each looks a key up in a list
 * that the model holds. Of strings that come from the model, too, this is done here, once for each. */
#include "frontend/onnx/onnx_ml.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* Keys or values: strings, or numbers of a type. */
typedef struct list {
    uint32_t n;
    const char *const *strings; /* NULL: numbers */
    const tensor_data *numbers;
} list;

typedef struct map {
    list keys, values, otherwise; /* otherwise: one element, of the kind of the values */
    bool nan_is_key;              /* a NaN finds a NaN among the keys */
} map;

static list of_strings(ml_strings s)
{
    return (list){s.n, s.v, NULL};
}

static list of_ints(onnx_node *n, ml_ints l)
{
    return (list){l.n, NULL, l.n ? tensor_from_i64s(n->c, l.n, l.v) : NULL};
}

static list of_floats(onnx_node *n, ml_floats l)
{
    return (list){l.n, NULL, l.n ? graph_constant(ml_vector(n, DT_F32, l.n, l.v)) : NULL};
}

static list one_string(onnx_node *n, const char *s)
{
    const char **one = arena_new(&n->c->mem, const char *);
    *one = s;
    return (list){1, one, NULL};
}

/* --- strings --- */

/* The place of the first key that is s; keys.n: there is none. */
static uint32_t find_string(const list *keys, const char *s)
{
    uint32_t i = 0;
    while (i < keys->n && strcmp(keys->strings[i], s) != 0)
        i++;
    return i;
}

/* The values and, behind them, the one for keys that are not there, as a constant. Strings are their own numbers. */
static graph_value *value_table(onnx_node *n, const map *m)
{
    if (m->values.strings)
        return NULL;
    graph_value *parts[2] = {onnx_constant(n, m->values.numbers), onnx_constant(n, m->otherwise.numbers)};
    return onnx_concat(n, 2, parts, 0);
}

/* Of strings that are there twice, the first place stands for both: two numbers would be one label. */
static graph_value *first_places(onnx_node *n, uint32_t count, const char *const *strings, graph_value *at)
{
    int64_t *first = arena_array(&n->c->mem, int64_t, count + 1u);
    bool twice = false;
    onnx_map seen = {0};
    for (uint32_t i = 0; i < count; i++) {
        const char *name = intern(n->c->names, strings[i]);
        const int64_t *before = onnx_map_get(&seen, name);
        first[i] = before ? *before : (int64_t)i;
        twice |= before != NULL;
        if (!before)
            onnx_map_set(&n->c->mem, &seen, name, &first[i]);
    }
    return twice ? ml_take(n, onnx_const_ints(n, count, first), at) : at;
}

/* The values that `at`, places among the values or one behind them, names. */
static bool give_values(onnx_node *n, const map *m, graph_value *at)
{
    if (!m->values.strings)
        return onnx_alias(n, 0, ml_take(n, value_table(n, m), at));
    const char **all = arena_array(&n->c->mem, const char *, m->values.n + 1u);
    memcpy(all, m->values.strings, m->values.n * sizeof *all);
    all[m->values.n] = m->otherwise.strings[0];
    at = first_places(n, m->values.n + 1, all, at);
    if (!n->failed)
        onnx_set_strings(n->im, at, m->values.n + 1, all);
    return onnx_alias(n, 0, at);
}

/* Where x is an index into a table, what each of its strings becomes is known. */
static graph_value *look_up_strings(onnx_node *n, const list *keys, graph_value *x)
{
    if (onnx_is_text(n->im, x))
        return onnx_text_find(n, x, keys->n, keys->strings);
    const attr *table = onnx_strings_of(n->im, x);
    int64_t *at = arena_array(&n->c->mem, int64_t, table->n + 1u);
    for (uint32_t i = 0; i < table->n; i++)
        at[i] = find_string(keys, table->u.strings[i]);
    return ml_take(n, onnx_const_ints(n, table->n, at), x);
}

/* --- numbers --- */

/* Whole keys that lie close together, which a table by key holds. */
static bool is_dense(const list *keys, int64_t *least, int64_t *reach)
{
    int64_t most;
    if (!dtype_is_int(keys->numbers->dt) || !tensor_range(keys->numbers, least, &most))
        return false;
    if (*least <= INT64_MIN / 2 || most >= INT64_MAX / 2 || most - *least >= 4 * (int64_t)keys->n + 16)
        return false;
    *reach = most - *least + 1;
    return true;
}

/* Places by x - (least - 1), clipped to the table, at whose ends stands that of no key. */
static graph_value *look_up_dense(onnx_node *n, const list *keys, graph_value *x, int64_t least, int64_t reach)
{
    int64_t *at = arena_array(&n->c->mem, int64_t, (size_t)reach + 2u);
    for (int64_t i = 0; i < reach + 2; i++)
        at[i] = keys->n;
    for (uint32_t i = keys->n; i-- > 0;) /* of equal keys the first counts */
        at[tensor_get_i64(keys->numbers, i) - least + 1] = i;
    x = onnx_cast(n, x, DT_I64);
    graph_value *lo = onnx_const_int(n, DT_I64, least - 1), *hi = onnx_const_int(n, DT_I64, least + reach);
    graph_value *place = onnx_binary(n, "subtract", onnx_emit(n, ONNX_ARGS("clip", 0, NULL, x, lo, hi)), lo);
    return ml_take(n, onnx_const_ints(n, (uint32_t)reach + 2u, at), place);
}

/* Each element beside all keys: the first that is equal has the largest weight. */
static graph_value *look_up_any(onnx_node *n, const list *keys, graph_value *x, bool nan_is_key)
{
    const uint32_t count = keys->n, rank = onnx_rank(x);
    int64_t *weight = arena_array(&n->c->mem, int64_t, count + 1u);
    int64_t *place = arena_array(&n->c->mem, int64_t, count + 1u), nan_at = -1;
    for (uint32_t i = 0; i < count; i++) {
        weight[i] = count - i;
        place[i + 1] = count - 1 - i;
        if (nan_at < 0 && dtype_is_float(keys->numbers->dt) && isnan(tensor_get_f64(keys->numbers, i)))
            nan_at = i;
    }
    place[0] = count;
    const int64_t last = rank;
    graph_value *wide = onnx_expand_dims(n, x, 1, &last);
    graph_value *same = onnx_binary(n, "equal", wide, onnx_constant(n, keys->numbers));
    graph_value *w = onnx_where(n, same, onnx_const_ints(n, count, weight), onnx_const_int(n, DT_I64, 0));
    graph_value *most = onnx_reduce(n, "max", w, 1, &last, false);
    if (nan_is_key && nan_at >= 0)
        most = onnx_where(n, onnx_unary(n, "isnan", x), onnx_const_int(n, DT_I64, (int64_t)count - nan_at), most);
    return ml_take(n, onnx_const_ints(n, count + 1, place), most);
}

/* For each element of x the place of the first key that equals it, or the number of keys. */
static graph_value *look_up(onnx_node *n, const list *keys, graph_value *x, bool nan_is_key)
{
    int64_t least = 0, reach = 0;
    if (onnx_is_strings(n->im, x))
        return look_up_strings(n, keys, x);
    return is_dense(keys, &least, &reach) ? look_up_dense(n, keys, x, least, reach)
                                         : look_up_any(n, keys, x, nan_is_key);
}

graph_value *ml_find(onnx_node *n, graph_value *x, uint32_t count, const int64_t *ints, const char *const *strings)
{
    const list keys = strings ? (list){count, strings, NULL} : of_ints(n, (ml_ints){count, ints});
    return look_up(n, &keys, x, false);
}

static bool map_values(onnx_node *n, const map *m)
{
    graph_value *x = onnx_in(n, 0);
    const bool strings = onnx_is_strings(n->im, x);
    if (n->failed)
        return false;
    if (m->keys.n == 0 || m->keys.n != m->values.n)
        return onnx_fail(n, DIAG_FORMAT, "there are %u keys and %u values", m->keys.n, m->values.n);
    if (strings != (m->keys.strings != NULL))
        return onnx_fail(n, DIAG_TYPE, strings ? "input 0 is strings, the keys are numbers"
                                               : "the keys are strings, input 0 is numbers");
    if (!strings && m->keys.numbers->dt != onnx_dtype(x))
        return onnx_fail(n, DIAG_TYPE, "input 0 is %s, the keys are %s", dtype_name(onnx_dtype(x)),
                         dtype_name(m->keys.numbers->dt));
    return give_values(n, m, look_up(n, &m->keys, x, m->nan_is_key));
}

/* --- importers --- */

/* A list that is a tensor (version 4). */
static list of_tensor(onnx_node *n, const char *name)
{
    const onnx_attr *a = onnx_attr_find(n, name);
    dtype dt;
    if (!a || !a->pb->t)
        return (list){0};
    if (dtype_from_onnx(a->pb->t->data_type, &dt) && dt == DT_STRING) {
        const uint32_t count = a->pb->t->string_data.len;
        const char **s = arena_array(&n->c->mem, const char *, count + 1u);
        for (uint32_t i = 0; i < count; i++)
            s[i] = onnx_name(n->im, a->pb->t->string_data.data[i]);
        return (list){count, s, NULL};
    }
    const tensor_data *t = onnx_attr_tensor(n, name);
    if (!t)
        return (list){0};
    return (list){(uint32_t)t->count, NULL, tensor_reshape(n->c, t, 1, (int64_t[]){t->count})};
}

/* keys_floats and the like, or keys_tensor. */
static list of_attrs(onnx_node *n, const char *what)
{
    arena *a = &n->c->mem;
    const list s = of_strings(ml_attr_strings(n, arena_printf(a, "%s_strings", what)));
    const list i = of_ints(n, ml_attr_ints(n, arena_printf(a, "%s_int64s", what)));
    const list f = of_floats(n, ml_attr_floats(n, arena_printf(a, "%s_floats", what)));
    const list t = n->version >= 4 ? of_tensor(n, arena_printf(a, "%s_tensor", what)) : (list){0};
    if ((s.n > 0) + (i.n > 0) + (f.n > 0) + (t.n > 0) > 1)
        onnx_fail(n, DIAG_FORMAT, "more than one list of %s is given", what);
    return s.n ? s : i.n ? i : f.n ? f : t;
}

bool onnx_op_label_encoder(onnx_node *n)
{
    map m = {.keys = of_attrs(n, "keys"), .values = of_attrs(n, "values"), .nan_is_key = n->version >= 4};
    const list given = n->version >= 4 ? of_tensor(n, "default_tensor") : (list){0};
    const double f = onnx_attr_float(n, "default_float", -0.0);
    const int64_t i = onnx_attr_int(n, "default_int64", -1);
    const char *s = onnx_attr_string(n, "default_string", "_Unused");
    if (n->failed || m.values.n == 0)
        return onnx_fail(n, DIAG_FORMAT, "there are no values");
    m.otherwise = m.values.strings ? one_string(n, s) : (list){1, NULL, NULL};
    if (!m.values.strings) {
        const dtype dt = m.values.numbers->dt;
        const tensor_data *t = dtype_is_float(dt) ? tensor_scalar_f64(n->c, dt, f) : tensor_scalar_i64(n->c, dt, i);
        m.otherwise.numbers = tensor_reshape(n->c, t, 1, (int64_t[]){1});
    }
    if (given.n == 1 && (given.strings != NULL) == (m.values.strings != NULL) &&
        (given.strings || given.numbers->dt == m.values.numbers->dt))
        m.otherwise = given;
    else if (given.n)
        return onnx_fail(n, DIAG_TYPE, "default_tensor must be one element of the values' type");
    return map_values(n, &m);
}

/* A list of strings and its places, or another list of integers: whichever way the input goes. */
static bool both_ways(onnx_node *n, list strings, list ints)
{
    const list number = of_ints(n, (ml_ints){1, (int64_t[]){onnx_attr_int(n, "default_int64", -1)}});
    const list text = one_string(n, onnx_attr_string(n, "default_string", "_Unused"));
    const bool from_strings = onnx_is_strings(n->im, onnx_in(n, 0));
    const map m = from_strings ? (map){strings, ints, number, false} : (map){ints, strings, text, false};
    return map_values(n, &m);
}

bool onnx_op_label_encoder_1(onnx_node *n)
{
    const list s = of_strings(ml_attr_strings(n, "classes_strings"));
    int64_t *at = arena_array(&n->c->mem, int64_t, s.n + 1u);
    for (uint32_t i = 0; i < s.n; i++)
        at[i] = i;
    return both_ways(n, s, of_ints(n, (ml_ints){s.n, at}));
}

bool onnx_op_category_mapper(onnx_node *n)
{
    return both_ways(n, of_strings(ml_attr_strings(n, "cats_strings")), of_ints(n, ml_attr_ints(n, "cats_int64s")));
}

/* A column for each category, 1 where the element is it; of a category that is there twice the last column. zeros 0:
 * an element that is none ends the run with a status, by an index that is out of range. */
bool onnx_op_one_hot_encoder(onnx_node *n)
{
    graph_value *x = onnx_in(n, 0);
    const bool strings = onnx_is_strings(n->im, x), zeros = onnx_attr_int(n, "zeros", 1) != 0;
    const ml_ints i = ml_attr_ints(n, "cats_int64s");
    const ml_strings s = ml_attr_strings(n, "cats_strings");
    const uint32_t count = strings ? s.n : i.n;
    int64_t *at = arena_array(&n->c->mem, int64_t, count + 1u);
    int64_t *reversed = arena_array(&n->c->mem, int64_t, count + 1u);
    const char **names = arena_array(&n->c->mem, const char *, count + 1u);
    if (count == 0)
        return onnx_fail(n, DIAG_FORMAT, "cats_%s is missing", strings ? "strings" : "int64s");
    for (uint32_t k = 0; k < count; k++) { /* the first that is found, from the end */
        reversed[k] = strings ? 0 : i.v[count - 1 - k];
        names[k] = strings ? s.v[count - 1 - k] : "";
        at[k] = count - 1 - k;
    }
    const list keys = strings ? (list){count, names, NULL} : of_ints(n, (ml_ints){count, reversed});
    at[count] = -1;
    graph_value *place = look_up(n, &keys, strings ? x : onnx_cast(n, x, DT_I64), false);
    double *columns = arena_array(&n->c->mem, double, (size_t)count * (count + 1u));
    for (uint32_t k = 0; k < count; k++)
        columns[(size_t)k * count + (size_t)at[k]] = 1;
    const int64_t dims[2] = {zeros ? count + 1 : count, count};
    return onnx_alias(n, 0, ml_take(n, ml_matrix(n, DT_F32, 2, dims, columns), place));
}
