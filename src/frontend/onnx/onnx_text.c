/* SPDX-License-Identifier: Apache-2.0 */
/* Strings that only a run knows. A value of them is u8 with one more axis, the last one: the bytes of a string, and
 * zeros behind them up to the width, which the type states. So all of the compiler moves and keeps strings as it does
 * other tensors, and none grows beyond its width. A zero byte ends a string. What the model sees never has that axis:
 * where an operator moves elements, its importer moves their places, i64 numbers in the shape that the model means, and
 * the bytes are taken by the places behind it. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

bool onnx_is_text(const onnx_importer *im, const graph_value *v)
{
    return v && onnx_map_get(&im->texts, (const char *)v) != NULL;
}

graph_value *onnx_set_text(onnx_importer *im, graph_value *v)
{
    onnx_map_set(&im->c->mem, &im->texts, (const char *)v, "");
    return v;
}

bool onnx_is_strings(const onnx_importer *im, const graph_value *v)
{
    return onnx_strings_of(im, v) || onnx_is_text(im, v);
}

void onnx_keep_strings(onnx_importer *im, const graph_value *from, const graph_value *to)
{
    const attr *table = onnx_strings_of(im, from);
    if (table)
        onnx_map_set(&im->c->mem, &im->strings, (const char *)to, table);
    if (onnx_is_text(im, from))
        onnx_map_set(&im->c->mem, &im->texts, (const char *)to, "");
}

int64_t onnx_text_width(const graph_value *v)
{
    int64_t width = 1;
    if (onnx_rank(v) > 0)
        (void)dim_is_const(v->type.shape.dims[onnx_rank(v) - 1], &width);
    return width;
}

/* --- strings of both kinds --- */

bool onnx_check_strings(onnx_node *n)
{
    for (uint32_t i = 0; i < n->n_in; i++)
        if (onnx_is_strings(n->im, n->in[i]) && !onnx_takes_strings(n, i))
            return onnx_fail(n, DIAG_UNSUPPORTED, "input %u is strings, which this operator does not take yet", i);
    return true;
}

void onnx_spread_strings(onnx_node *n)
{
    const attr *table = NULL;
    for (uint32_t i = 0; i < n->n_in && !table; i++)
        table = onnx_takes_strings(n, i) == '$' ? onnx_strings_of(n->im, n->in[i]) : NULL;
    for (uint32_t i = 0; table && i < n->n_out; i++)
        if (n->out[i] && !onnx_is_text(n->im, n->out[i]))
            onnx_map_set(&n->c->mem, &n->im->strings, (const char *)n->out[i], table);
}

/* --- bytes of strings that the model holds --- */

enum { MOST_TABLE = 1 << 28 }; /* bytes */

static const tensor_data *table_of(onnx_importer *im, uint32_t count, const char *const *strings)
{
    compiler *c = im->c;
    size_t width = 1;
    for (uint32_t i = 0; i < count; i++)
        width = strlen(strings[i]) > width ? strlen(strings[i]) : width;
    if (width > ONNX_MOST_STRING || width * count > MOST_TABLE)
        return diag_error(&c->diags, DIAG_UNSUPPORTED, onnx_loc(im),
                          "%u strings of up to %zu bytes: at most %d bytes each, and %d MiB together, are supported",
                          count, width, ONNX_MOST_STRING, MOST_TABLE >> 20), NULL;
    const int64_t dims[2] = {count ? count : 1, (int64_t)width};
    uint8_t *bytes = arena_array(&c->mem, uint8_t, (size_t)dims[0] * width);
    for (uint32_t i = 0; i < count; i++)
        memcpy(bytes + i * width, strings[i], strlen(strings[i]));
    return tensor_dense(c, DT_U8, 2, dims, bytes);
}

const tensor_data *onnx_text_table(onnx_node *n, uint32_t count, const char *const *strings)
{
    const tensor_data *t = n->failed ? NULL : table_of(n->im, count, strings);
    n->failed |= !t;
    return t;
}

const tensor_data *onnx_text_read(onnx_importer *im, const char *name, const pb_tensor *pb)
{
    const char *const *strings = NULL;
    int64_t dims[TYPE_MAX_RANK];
    if (!onnx_read_strings(im, name, pb, &strings))
        return NULL;
    const tensor_data *rows = table_of(im, pb->string_data.len, strings);
    if (!rows)
        return NULL;
    if (pb->dims.len + 1u > TYPE_MAX_RANK)
        return diag_error(&im->c->diags, DIAG_UNSUPPORTED, onnx_loc(im), "tensor '%s' has too many dimensions", name),
               NULL;
    for (uint32_t i = 0; i < pb->dims.len; i++)
        dims[i] = pb->dims.data[i];
    dims[pb->dims.len] = rows->dims[1];
    return tensor_dense(im->c, DT_U8, pb->dims.len + 1u, dims, rows->data);
}

static graph_value *taken(onnx_node *n, graph_value *rows, graph_value *at)
{
    const attr axis = attr_int(n->c, "axis", 0);
    return onnx_emit(n, ONNX_ARGS("take", 1, &axis, rows, at));
}

graph_value *onnx_text(onnx_node *n, graph_value *v)
{
    const attr *table = onnx_strings_of(n->im, v);
    if (n->failed || !table)
        return v;
    return onnx_set_text(n->im, taken(n, onnx_constant(n, onnx_text_table(n, table->n, table->u.strings)), v));
}

/* --- widths --- */

graph_value *onnx_text_wider(onnx_node *n, graph_value *v, int64_t width)
{
    const int64_t rest = width - onnx_text_width(v);
    uint32_t rank = onnx_rank(v);
    const uint8_t zero[16] = {0};
    graph_value *parts[2] = {v, NULL};
    if (n->failed || rest <= 0)
        return v;
    /* zeros in the shape of v, whatever a run makes of it: v's first bytes by a mask */
    graph_value *first = onnx_slice(n, v, rank - 1, 0, 1);
    const int64_t flat[1] = {rest};
    graph_value *mask = onnx_constant(n, tensor_splat(n->c, DT_U8, 1, flat, arena_copy(&n->c->mem, zero, 1, 1)));
    parts[1] = onnx_binary(n, "bitwise_and", first, mask);
    return onnx_set_text(n->im, onnx_concat(n, 2, parts, (int64_t)rank - 1));
}

/* --- what moves strings --- */

/* The shape without the bytes. */
static shape elements_of(onnx_node *n, const graph_value *v)
{
    return shape_make(n->c, onnx_rank(v) - 1, v->type.shape.dims);
}

static graph_value *count_of(onnx_node *n, graph_value *rows)
{
    const attr at[2] = {attr_int(n->c, "start", 0), attr_int(n->c, "end", 1)};
    return onnx_reshape_ints(n, onnx_emit(n, ONNX_ARGS("shape_of", 2, at, rows)), 0, NULL);
}

enum { MOST_PLACES = 1 << 20 }; /* that a constant holds; a run counts more of them */

/* 0, 1, 2, ... in that shape, which has as many elements as there are rows. */
static graph_value *places_of(onnx_node *n, graph_value *rows, const shape *s)
{
    int64_t dims[TYPE_MAX_RANK], count = shape_count(*s);
    if (count >= 0 && count <= MOST_PLACES && shape_get(*s, dims)) {
        int64_t *at = arena_array(&n->c->mem, int64_t, (size_t)count + 1u);
        for (int64_t i = 0; i < count; i++)
            at[i] = i;
        return onnx_constant(n, tensor_dense(n->c, DT_I64, (uint32_t)s->rank, dims, at));
    }
    graph_value *all = onnx_emit(n, ONNX_ARGS("arange", 0, NULL, onnx_const_int(n, DT_I64, 0), count_of(n, rows),
                                              onnx_const_int(n, DT_I64, 1)));
    return onnx_reshape(n, all, (uint32_t)s->rank, s->dims);
}

/* All strings of the node's inputs, one to a row, and in place of each such input the places of its rows. */
typedef struct moved {
    graph_value *rows;   /* u8[count, width] */
    graph_value *places; /* of the only input of strings; NULL: there are several */
    graph_value *whole;  /* that input */
    int64_t width;
    uint32_t n;
} moved;

graph_value *onnx_text_rows(onnx_node *n, graph_value *v)
{
    const dim d[2] = {shape_elements(n->c, elements_of(n, v)), onnx_dim(n, v, onnx_rank(v) - 1)};
    return onnx_reshape(n, v, 2, d);
}

static moved gather_rows(onnx_node *n)
{
    moved m = {.width = 1};
    VEC(graph_value *) parts = {0};
    graph_value *before = NULL;
    for (uint32_t i = 0; i < n->n_in; i++)
        if (onnx_is_strings(n->im, n->in[i])) {
            n->in[i] = onnx_text(n, n->in[i]);
            m.width = onnx_text_width(n->in[i]) > m.width ? onnx_text_width(n->in[i]) : m.width;
            m.n++;
        }
    for (uint32_t i = 0; i < n->n_in && !n->failed; i++) {
        if (!onnx_is_text(n->im, n->in[i]))
            continue;
        const shape s = elements_of(n, n->in[i]);
        graph_value *rows = onnx_text_wider(n, onnx_text_rows(n, n->in[i]), m.width), *own = places_of(n, rows, &s);
        m.whole = n->in[i];
        m.places = own;
        n->in[i] = before ? onnx_binary(n, "add", own, before) : own;
        before = before ? onnx_binary(n, "add", before, count_of(n, rows)) : m.n > 1 ? count_of(n, rows) : NULL;
        vec_push(&n->c->mem, &parts, rows);
    }
    if (!n->failed)
        m.rows = parts.len > 1 ? onnx_concat(n, parts.len, parts.data, 0) : parts.data[0];
    return m;
}

/* Whether `at` has all places in order: then only the shape changes. */
static bool keeps_order(const moved *m, const graph_value *at)
{
    const tensor_data *t = graph_constant(at);
    if (m->n != 1 || !shape_is_static(m->whole->type.shape))
        return m->n == 1 && at == m->places;
    bool same = t && t->count * m->width == shape_count(m->whole->type.shape);
    for (int64_t i = 0; same && i < t->count; i++)
        same = tensor_get_i64(t, i) == i;
    return same;
}

/* The strings at these places, as result i of the node. */
static bool take_result(onnx_node *n, const moved *m, uint32_t i, graph_value *at)
{
    dim d[TYPE_MAX_RANK + 1];
    const uint32_t rank = onnx_rank(at);
    if (at->type.dt != DT_I64 || rank + 1 > TYPE_MAX_RANK)
        return onnx_fail(n, DIAG_UNSUPPORTED, "strings of this shape cannot be moved");
    for (uint32_t k = 0; k < rank; k++)
        d[k] = at->type.shape.dims[k];
    d[rank] = dim_const(n->c, m->width);
    const attr axis = attr_int(n->c, "axis", 0);
    graph_value *y = at == m->places && m->n == 1 ? m->whole
                     : keeps_order(m, at)         ? onnx_make_reshape(n, (int32_t)i, m->whole, rank + 1, d)
                                                  : onnx_result(n, i, ONNX_ARGS("take", 1, &axis, m->rows, at));
    onnx_set_text(n->im, y);
    return onnx_alias(n, i, y);
}

static bool only_shapes(const onnx_node *n)
{
    bool only = true;
    for (uint32_t i = 0; i < n->n_in; i++)
        only &= !onnx_is_strings(n->im, n->in[i]) || onnx_takes_strings(n, i) == '#';
    return only;
}

/* The names of results are kept for what takes the strings. */
static bool import_places(onnx_node *n)
{
    const char **names = n->out_names, **made = arena_array(&n->c->mem, const char *, n->n_out);
    for (uint32_t i = 0; i < n->n_out; i++)
        made[i] = names[i] ? intern(n->c->names, arena_printf(&n->c->mem, "%s.places", names[i])) : NULL;
    n->out_names = made;
    n->places = true;
    const bool ok = n->row->import(n);
    n->places = false;
    n->out_names = names;
    return ok && !n->failed;
}

bool onnx_moves_text(const onnx_node *n)
{
    uint32_t texts = 0, labels = 0;
    for (uint32_t i = 0; i < n->n_in; i++) {
        const char how = onnx_takes_strings(n, i);
        texts += onnx_is_text(n->im, n->in[i]) && (how == '$' || how == '#');
        labels += how == '$' && onnx_strings_of(n->im, n->in[i]);
    }
    return texts > 0 || labels > 1;
}

bool onnx_move_text(onnx_node *n)
{
    const bool only = only_shapes(n);
    if (onnx_has_attr(n, "reduction") && strcmp(onnx_attr_string(n, "reduction", "none"), "none") != 0)
        return onnx_fail(n, DIAG_TYPE, "there is no arithmetic on strings: reduction must be 'none'");
    const moved m = gather_rows(n);
    if (n->failed || !(only ? n->row->import(n) : import_places(n)))
        return false;
    for (uint32_t i = 0; i < n->n_out && !only; i++)
        if (n->out[i] && !take_result(n, &m, i, n->out[i]))
            return false;
    return !n->failed;
}

/* --- the model's inputs and results --- */

bool onnx_text_input(onnx_importer *im, const char *name, type *t)
{
    dim d[TYPE_MAX_RANK];
    const int64_t width = im->o && im->o->string_bytes ? im->o->string_bytes : FRONTEND_STRING_BYTES;
    t->dt = DT_U8;
    if (t->shape.rank < 0)
        return true;
    if ((uint32_t)t->shape.rank + 1 > TYPE_MAX_RANK)
        return diag_error(&im->c->diags, DIAG_UNSUPPORTED, onnx_loc(im), "'%s': strings of at most %u dimensions", name,
                          TYPE_MAX_RANK - 1);
    for (int32_t i = 0; i < t->shape.rank; i++)
        d[i] = t->shape.dims[i];
    d[t->shape.rank] = dim_const(im->c, width);
    *t = type_tensor(DT_U8, shape_make(im->c, (uint32_t)t->shape.rank + 1, d));
    return true;
}

void onnx_note_text(onnx_importer *im, const graph_value *v, const char *name, bool is_input)
{
    arena *a = &im->c->mem;
    const char *what = arena_printf(a, "%s %s", is_input ? "input" : "output", name);
    vec_push(a, &im->module->texts, ((model_text){name, is_input}));
    vec_push(a, &im->module->facts,
             ((model_fact){what, arena_printf(a, "strings of at most %lld bytes, along the last axis",
                                              (long long)onnx_text_width(v))}));
}
