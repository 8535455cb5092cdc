/* SPDX-License-Identifier: Apache-2.0 */
/* Options of custom operators, by their names in a map of FlexBuffers, and custom operators that nobody but the tool
 * that wrote them can read. */
#include "frontend/tflite/tflite_import.h"

#include <inttypes.h>

/* Large options stand outside of the tables, as large constants do. */
static bool find_bytes(tflite_node *n, span *out)
{
    const tfl_operator *op = n->op;
    const uint64_t at = op->large_custom_options_offset, size = op->large_custom_options_size;
    *out = op->custom_options;
    if (at <= 1)
        return true;
    if (at > n->im->bytes.len || size > n->im->bytes.len - at)
        return tflite_fail(n, DIAG_FORMAT, "its options stand outside of the file (byte %" PRIu64 ")", at);
    *out = (span){n->im->bytes.data + at, (size_t)size};
    return true;
}

bool tflite_read_custom(tflite_node *n)
{
    span bytes;
    if (n->row->options == 0)
        return true;
    if (!find_bytes(n, &bytes))
        return false;
    return bytes.len == 0 || (flex_root(bytes, &n->custom) && flex_kind_of(&n->custom) == FLEX_MAP) ||
           tflite_fail(n, DIAG_FORMAT, "its options are damaged: they are no map of FlexBuffers");
}

static bool find(tflite_node *n, const char *name, flex_value *out)
{
    return flex_find(&n->custom, name, out) || tflite_fail(n, DIAG_FORMAT, "its option '%s' is missing", name);
}

bool tflite_custom_has(const tflite_node *n, const char *name)
{
    flex_value v;
    return flex_find(&n->custom, name, &v);
}

bool tflite_custom_int(tflite_node *n, const char *name, int64_t least, int64_t most, int64_t *out)
{
    flex_value v;
    *out = least;
    if (n->failed || !find(n, name, &v))
        return false;
    int64_t number = 0;
    if (!flex_int(&v, &number))
        return tflite_fail(n, DIAG_FORMAT, "its option '%s' is no integer", name);
    if (number < least || number > most)
        return tflite_fail(n, DIAG_FORMAT, "its option '%s' is %" PRId64 "; it must be from %" PRId64 " to %" PRId64,
                           name, number, least, most);
    *out = number;
    return true;
}

bool tflite_custom_float(tflite_node *n, const char *name, double *out)
{
    flex_value v;
    *out = 0;
    return !n->failed && find(n, name, &v) &&
           (flex_float(&v, out) || tflite_fail(n, DIAG_FORMAT, "its option '%s' is no number", name));
}

/* target: what the operator holds, and what to do. */
bool tflite_op_compiled(tflite_node *n)
{
    return tflite_fail(n, DIAG_UNSUPPORTED, "%s", n->row->target);
}
