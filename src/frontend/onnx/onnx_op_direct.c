/* SPDX-License-Identifier: Apache-2.0 */
/* Importer of rows that map one to one, and their lists of attributes, which other importers use too. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

uint32_t onnx_row_attrs(onnx_node *n, const char *list, const graph_op *op, attr *out)
{
    uint32_t count = 0;
    while (*list && !n->failed) {
        size_t len = strcspn(list, " ");
        const char *word = intern_n(n->c->names, list, len), *lt = strchr(word, '<');
        const char *to = lt ? intern_n(n->c->names, word, (size_t)(lt - word)) : word;
        const char *from = lt ? lt + 1 : word;
        for (uint32_t i = 0; i < op->n_attrs; i++)
            if (strcmp(op->attrs[i].name, to) == 0 && onnx_attr_convert(n, from, to, op->attrs[i].kind, &out[count]))
                count++;
        list += len + (list[len] == ' ');
    }
    return count;
}

/* Attributes that the operator cannot do without. */
static bool has_required(onnx_node *n, const graph_op *op, uint32_t count, const attr *attrs)
{
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        bool found = op->attrs[i].default_text != NULL;
        for (uint32_t k = 0; k < count; k++)
            found |= strcmp(attrs[k].name, op->attrs[i].name) == 0;
        if (!found)
            return onnx_fail(n, DIAG_FORMAT, "attribute '%s' is missing", op->attrs[i].name);
    }
    return true;
}

bool onnx_op_direct(onnx_node *n)
{
    const graph_op *op = graph_find_op(n->c, n->row->target);
    if (!op)
        return onnx_fail(n, DIAG_INTERNAL, "the operator table has no '%s'", n->row->target);
    attr *attrs = arena_array(&n->c->mem, attr, op->n_attrs + 1);
    uint32_t count = onnx_row_attrs(n, n->row->attrs, op, attrs);
    if (n->failed || !has_required(n, op, count, attrs))
        return false;
    onnx_result(n, 0, (onnx_args){n->row->target, n->n_in, n->in, count, attrs});
    return !n->failed;
}
