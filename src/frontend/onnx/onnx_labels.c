/* SPDX-License-Identifier: Apache-2.0 */
/* Strings, as far as a model only picks among those that it holds: a value of strings is an i64 index into a table,
 * which stands beside it. What moves elements moves the indices, and encoders look the strings up when the model is
 * read. A result of strings is handed out as the index, with the table in the package's header. */
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
        strings[i] = onnx_name(im, pb->string_data.data[i]);
        const int64_t *first = onnx_map_get(&seen, strings[i]);
        at[i] = first ? *first : i;
        if (!first)
            onnx_map_set(&c->mem, &seen, strings[i], &at[i]);
    }
    return tensor_dense(c, DT_I64, pb->dims.len, pb->dims.data, at);
}

/* Rows that take strings in input `input` and move them as they are (moves), or look them up. */
static const struct {
    const char *op;
    uint32_t input;
    bool moves;
} takers[] = {
    {"ArrayFeatureExtractor", 0, true}, {"Cast", 0, true},        {"CategoryMapper", 0, false},
    {"Flatten", 0, true},               {"Gather", 0, true},      {"GatherElements", 0, true},
    {"Identity", 0, true},              {"LabelEncoder", 0, false}, {"OneHotEncoder", 0, false},
    {"Reshape", 0, true},               {"Slice", 0, true},       {"Squeeze", 0, true},
    {"Transpose", 0, true},             {"Unsqueeze", 0, true},
};

static int32_t find_taker(const onnx_node *n)
{
    for (uint32_t i = 0; i < sizeof takers / sizeof *takers; i++)
        if (strcmp(takers[i].op, n->row->name) == 0)
            return (int32_t)i;
    return -1;
}

/* Cast keeps strings what they are, and makes none of numbers. */
static bool check_cast(onnx_node *n, bool strings)
{
    if (strcmp(n->row->name, "Cast") != 0 || n->version < 6 || *n->row->domain)
        return true;
    const bool to = onnx_attr_dtype(n, "to", DT_NONE) == DT_STRING;
    if (strings == to)
        return true;
    return onnx_fail(n, DIAG_UNSUPPORTED, strings ? "strings as numbers are not supported yet"
                                                  : "numbers as strings are not supported yet");
}

bool onnx_check_strings(onnx_node *n)
{
    const int32_t taker = find_taker(n);
    bool any = false;
    for (uint32_t i = 0; i < n->n_in; i++) {
        const bool strings = onnx_strings_of(n->im, n->in[i]) != NULL;
        any |= strings;
        if (strings && (taker < 0 || takers[taker].input != i))
            return onnx_fail(n, DIAG_UNSUPPORTED, "input %u is strings, which this operator does not take yet", i);
    }
    return check_cast(n, any);
}

void onnx_spread_strings(onnx_node *n)
{
    const int32_t taker = find_taker(n);
    const attr *table = taker >= 0 && takers[taker].moves && n->n_in > takers[taker].input
                            ? onnx_strings_of(n->im, n->in[takers[taker].input])
                            : NULL;
    for (uint32_t i = 0; table && i < n->n_out; i++)
        if (n->out[i])
            onnx_map_set(&n->c->mem, &n->im->strings, (const char *)n->out[i], table);
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
