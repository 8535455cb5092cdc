/* SPDX-License-Identifier: Apache-2.0 */
/* Which operands a node must have: the column of onnx_ops.def, checked before the node's importer runs, so that no
 * importer sees NULL where an operand must be, no sequence where it takes a tensor, and no strings where it takes
 * numbers, nor types of less than a byte where it does not know them. */
#include "frontend/onnx/onnx_import.h"

#include <assert.h>
#include <string.h>

/* One entry of the list; of the last one there may be several. */
typedef struct operand {
    const char *name;
    uint32_t len;
    bool optional, repeated, least_one, sequence, map;
    char strings; /* '$', '#' or '@'; 0: it takes none */
    bool small;   /* '%' */
} operand;

/* The entry at *list, which moves to the next one; false at the end. */
static bool next_operand(const char **list, operand *out)
{
    const char *s = *list + strspn(*list, " ");
    *out = (operand){.name = s, .len = (uint32_t)strcspn(s, " ?*+&~$#@%")};
    for (s += out->len; *s && *s != ' '; s++) {
        out->optional |= *s == '?';
        out->repeated |= *s == '*' || *s == '+';
        out->least_one |= *s == '+';
        out->sequence |= *s == '&';
        out->map |= *s == '~';
        out->small |= *s == '%';
        out->strings = *s == '$' || *s == '#' || *s == '@' ? *s : out->strings;
    }
    *list = s;
    return out->len > 0;
}

/* What the row says of operand i; false: there is none. */
static bool find_operand(const onnx_op *row, uint32_t i, operand *out)
{
    const char *list = row->operands;
    for (uint32_t k = 0; next_operand(&list, out); k++)
        if (k == i || out->repeated)
            return true;
    return false;
}

static uint32_t count_listed(const onnx_op *row)
{
    const char *list = row->operands;
    operand o;
    uint32_t n = 0;
    while (next_operand(&list, &o))
        n++;
    return n;
}

static bool check_one(onnx_node *n, uint32_t i)
{
    operand o;
    if (!find_operand(n->row, i, &o))
        return onnx_fail(n, DIAG_FORMAT, "the node has %u inputs; %s", n->n_in,
                         *n->row->operands ? arena_printf(&n->c->mem, "the operator's are: %s", n->row->operands)
                                           : "the operator has none");
    const onnx_list *l = i < n->n_in && n->in[i] ? onnx_map_get(&n->im->sequences, (const char *)n->in[i]) : NULL;
    const bool is_map = l && l->is_map;
    if (is_map != o.map)
        return onnx_fail(n, DIAG_TYPE, is_map ? "input %u is a map, which this operator does not take"
                                              : "input %u is not a map that comes into the model",
                         i);
    if (i < n->n_in && n->in[i] && n->in[i]->type.kind != TYPE_TENSOR && !o.sequence && !o.map)
        return onnx_fail(n, DIAG_UNSUPPORTED, "input %u is a sequence or an optional, which this operator does not "
                                               "take",
                         i);
    if (n->in[i] || o.optional || (i >= n->n_in && o.repeated && !o.least_one))
        return true;
    return onnx_fail(n, DIAG_FORMAT, "input %u ('%.*s') is missing", i, (int)o.len, o.name);
}

bool onnx_check_operands(onnx_node *n)
{
    const uint32_t listed = count_listed(n->row);
    operand o;
    while (n->n_in > 0 && !n->in[n->n_in - 1] && (!find_operand(n->row, n->n_in - 1, &o) || o.optional))
        n->n_in--; /* optional ones at the end, which may be there as empty names */
    for (uint32_t i = 0; i < n->n_in || i < listed; i++)
        if (!check_one(n, i))
            return false;
    return true;
}

char onnx_takes_strings(const onnx_node *n, uint32_t i)
{
    operand o;
    return find_operand(n->row, i, &o) ? o.strings : '\0';
}

char onnx_takes_small(const onnx_node *n, uint32_t i)
{
    operand o;
    if (!find_operand(n->row, i, &o))
        return '\0';
    return o.small ? '%' : o.strings == '@' ? '\0' : o.strings;
}

uint32_t onnx_most_listed(const onnx_op *row)
{
    return row ? count_listed(row) : 0;
}

graph_value *onnx_in(const onnx_node *n, uint32_t i)
{
    operand o;
    assert(find_operand(n->row, i, &o) && !o.optional && i < n->n_in && n->in[i]);
    (void)o;
    return n->in[i];
}

graph_value *onnx_optional(const onnx_node *n, uint32_t i)
{
    return i < n->n_in ? n->in[i] : NULL;
}
