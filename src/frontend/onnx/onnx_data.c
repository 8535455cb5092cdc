/* SPDX-License-Identifier: Apache-2.0 */
/* Files of values, as test data sets have them: a tensor, a sequence, an optional. */
#include "frontend/onnx/onnx_import.h"

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
    dtype dt;
    *out_is_text = dtype_from_onnx(t->data_type, &dt) && dt == DT_STRING;
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
    for (uint32_t i = 0; i < n && ok; i++)
        ok = (out->items[i] = onnx_tensor_read_packed(&im, list[i], onnx_loc(&im))) != NULL;
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
