/* SPDX-License-Identifier: Apache-2.0 */
/* Files of values, as test data sets have them: a tensor, a sequence, an optional. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

static bool is_strings(const pb_tensor *t)
{
    dtype dt;
    return dtype_from_onnx(t->data_type, &dt) && dt == DT_STRING;
}

bool onnx_read_tensor(compiler *c, span bytes, const char *path, const char **out_name, bool *out_is_text,
                      const tensor_data **out)
{
    onnx_importer im = {.c = c, .path = path, .bytes = bytes};
    pb_tensor *t = NULL;
    *out = NULL;
    *out_is_text = false;
    *out_name = "";
    if (!onnx_wire_tensor(c, path, bytes, &t))
        return false;
    *out_name = onnx_name(&im, t->name);
    diags_mark mark = diags_get_mark(&c->diags);
    *out_is_text = is_strings(t);
    *out = *out_is_text ? onnx_text_read(&im, *out_name, t) : onnx_tensor_read_packed(&im, t, onnx_loc(&im));
    return onnx_report_lost(&im, mark) && *out != NULL;
}

enum { OF_TENSORS = 1, OF_SEQUENCE = 3 }; /* elem_type of SequenceProto and OptionalProto; 0: nothing is said */

static bool wrong_kind(compiler *c, const char *path, const char *what, int64_t kind)
{
    src_loc loc = src_loc_none();
    loc.file = path;
    return diag_error(&c->diags, DIAG_UNSUPPORTED, loc, "%s of elements of kind %lld; tensors are read", what,
                      (long long)kind);
}

static bool read_tensors(compiler *c, const char *path, span bytes, uint32_t n, pb_tensor *const *list,
                         onnx_values *out)
{
    onnx_importer im = {.c = c, .path = path, .bytes = bytes};
    diags_mark mark = diags_get_mark(&c->diags);
    bool ok = true;
    out->n = n;
    out->items = arena_array(&c->mem, const tensor_data *, n + 1u);
    out->is_text = arena_array(&c->mem, bool, n + 1u);
    for (uint32_t i = 0; i < n && ok; i++) {
        out->is_text[i] = is_strings(list[i]);
        out->items[i] = out->is_text[i] ? onnx_text_read(&im, onnx_name(&im, list[i]->name), list[i])
                                        : onnx_tensor_read_packed(&im, list[i], onnx_loc(&im));
        ok = out->items[i] != NULL;
    }
    return onnx_report_lost(&im, mark) && ok;
}

static bool read_sequence(compiler *c, const char *path, span bytes, const pb_sequence *s, onnx_values *out)
{
    return s->elem_type == OF_TENSORS || s->elem_type == 0
               ? read_tensors(c, path, bytes, s->tensor_values.len, s->tensor_values.data, out)
               : wrong_kind(c, path, "a sequence", s->elem_type);
}

bool onnx_read_values(compiler *c, span bytes, const char *path, bool is_sequence, bool is_optional, onnx_values *out)
{
    pb_sequence *s = NULL;
    pb_optional *o = NULL;
    *out = (onnx_values){0};
    if (!is_optional)
        return onnx_wire_sequence(c, path, bytes, &s) && read_sequence(c, path, bytes, s, out);
    if (!onnx_wire_optional(c, path, bytes, &o))
        return false;
    if (o->elem_type != 0 && o->elem_type != (is_sequence ? OF_SEQUENCE : OF_TENSORS))
        return wrong_kind(c, path, is_sequence ? "an optional of a sequence" : "an optional of a tensor", o->elem_type);
    out->none = is_sequence ? !o->sequence_value : !o->tensor_value;
    if (out->none)
        return true;
    return is_sequence ? read_sequence(c, path, bytes, o->sequence_value, out)
                       : read_tensors(c, path, bytes, 1, &o->tensor_value, out);
}

/* --- maps --- */

static bool bad_map(compiler *c, const char *path, const char *what)
{
    src_loc loc = src_loc_none();
    loc.file = path;
    return diag_error(&c->diags, DIAG_FORMAT, loc, "%s", what);
}

/* The only elements of all these, in a row: one tensor of the file's. */
static const tensor_data *in_a_row(compiler *c, const onnx_values *v, dtype dt)
{
    const int64_t n = v->n, size = (int64_t)dtype_bytes(dt);
    uint8_t *all = arena_alloc(&c->mem, (size_t)(n * size) + 1u, 16);
    for (int64_t i = 0; i < n; i++) {
        const tensor_data *t = v->items[i];
        const void *one = t->dt == dt && tensor_size(t) == (size_t)size ? tensor_plain_bytes(&c->mem, t) : NULL;
        if (!one)
            return NULL;
        memcpy(all + i * size, one, (size_t)size);
    }
    return tensor_dense(c, dt, 1, &n, all);
}

/* Strings, each in a tensor of its own, as one tensor. */
static bool strings_in_a_row(pb_tensor *const *list, uint32_t n, pb_tensor *out, arena *a)
{
    bool ok = true;
    for (uint32_t i = 0; i < n; i++) {
        ok &= list[i]->string_data.len == 1 && is_strings(list[i]);
        if (ok)
            vec_push(a, &out->string_data, list[i]->string_data.data[0]);
    }
    return ok;
}

bool onnx_read_map(compiler *c, span bytes, const char *path, onnx_values *out)
{
    enum { STRINGS = 8, INTS = 7 }; /* of TensorProto's data types */
    pb_map *m = NULL;
    *out = (onnx_values){0};
    if (!onnx_wire_map(c, path, bytes, &m))
        return false;
    pb_tensor keys = {0}, values = {.data_type = STRINGS}, *list[2] = {&keys, &values};
    const uint32_t n = m->values ? m->values->tensor_values.len : 0;
    pb_tensor *const *given = n ? m->values->tensor_values.data : NULL;
    const bool words = n > 0 && is_strings(given[0]);
    const int64_t count = n;
    keys.data_type = m->string_keys.len ? STRINGS : INTS;
    keys.string_data.data = m->string_keys.data;
    keys.string_data.len = m->string_keys.len;
    keys.int64_data.data = m->keys.data;
    keys.int64_data.len = m->keys.len;
    vec_push(&c->mem, &keys.dims, count);
    vec_push(&c->mem, &values.dims, count);
    if (n == 0)
        return bad_map(c, path, "the map has no entries; a .npz file can say so");
    if (m->string_keys.len + m->keys.len != n)
        return bad_map(c, path, "the map has another number of values than of keys");
    if (words)
        return (strings_in_a_row(given, n, &values, &c->mem) && read_tensors(c, path, bytes, 2, list, out)) ||
               bad_map(c, path, "the values of a map must be of one type, with one element each");
    onnx_values each = {0};
    if (!read_tensors(c, path, bytes, 1, list, out) || !read_tensors(c, path, bytes, n, given, &each))
        return false;
    out->items[1] = in_a_row(c, &each, each.items[0]->dt);
    out->n = 2;
    return out->items[1] || bad_map(c, path, "the values of a map must be of one type, with one element each");
}
