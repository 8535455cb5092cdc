/* SPDX-License-Identifier: Apache-2.0 */
/* Strings, as far as a model only picks among those that it holds: a value of strings is an i64 index into a table,
 * which stands beside it. What moves elements moves the indices, and encoders look the strings up when the model is
 * read. A result of strings is handed out as the index, with the table in the package's header. Where such a value
 * meets strings that only a run knows, it becomes bytes as these are (onnx_text.c). */
#include "frontend/onnx/onnx_import.h"
#include "graph/op.h"

#include <string.h>

const attr *onnx_strings_of(const onnx_importer *im, const graph_value *v)
{
    return v ? onnx_map_get(&im->strings, (const char *)v) : NULL;
}

void onnx_set_strings(onnx_importer *im, const graph_value *v, uint32_t n, const char *const *strings)
{
    attr *table = arena_new(&im->c->mem, attr);
    *table = attr_strings(im->c, "labels", n, strings);
    onnx_map_set(&im->c->mem, &im->strings, (const char *)v, table);
}

/* A string that is there before has the number of its first place. */
const tensor_data *onnx_read_strings(onnx_importer *im, const char *name, const pb_tensor *pb, const char *const **out)
{
    compiler *c = im->c;
    const uint32_t n = pb->string_data.len;
    int64_t count = 0, *at = arena_array(&c->mem, int64_t, n + 1u);
    const char **strings = arena_array(&c->mem, const char *, n + 1u);
    onnx_map seen = {0};
    *out = strings;
    if (!tensor_count(pb->dims.len, pb->dims.data, &count) || count != n || pb->dims.len > TYPE_MAX_RANK) {
        diag_error(&c->diags, DIAG_FORMAT, onnx_loc(im), "tensor '%s' has %u strings, which do not fill its shape",
                   name, n);
        return NULL;
    }
    for (uint32_t i = 0; i < n; i++) {
        const span one = pb->string_data.data[i];
        if (one.len && memchr(one.data, 0, one.len)) {
            diag_error(&c->diags, DIAG_UNSUPPORTED, onnx_loc(im), "tensor '%s' has a string with a zero byte in it",
                       name);
            return NULL;
        }
        strings[i] = onnx_name(im, one);
        const int64_t *first = onnx_map_get(&seen, strings[i]);
        at[i] = first ? *first : i;
        if (!first)
            onnx_map_set(&c->mem, &seen, strings[i], &at[i]);
    }
    return tensor_dense(c, DT_I64, pb->dims.len, pb->dims.data, at);
}

void onnx_note_labels(onnx_importer *im, const graph_value *v, const char *name)
{
    const attr *table = onnx_strings_of(im, v);
    if (!table)
        table = onnx_map_get(&im->columns, (const char *)v);
    if (!table)
        return;
    attr named = *table;
    named.name = name;
    vec_push(&im->c->mem, &im->module->labels, named);
}
