/* SPDX-License-Identifier: Apache-2.0 */
/* The operator table: look-up by domain, name and version, the importer of rows that map one to one, and the list for
 * the documentation. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

static const onnx_op rows[] = {
#define ONNX_OP(domain, name, since, until, import, target, attrs) {domain, name, since, until, import, target, attrs},
#include "frontend/onnx/onnx_ops.def"
#undef ONNX_OP
};
#define N_ROWS (sizeof rows / sizeof rows[0])

const onnx_op *onnx_ops_find(const char *domain, const char *name, int64_t version)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        const onnx_op *r = &rows[i];
        if (strcmp(r->name, name) == 0 && strcmp(r->domain, domain) == 0 && version >= r->since &&
            (r->until == 0 || version <= r->until))
            return r;
    }
    return NULL;
}

int64_t onnx_ops_since(const char *domain, const char *name)
{
    int64_t since = 0;
    for (size_t i = 0; i < N_ROWS; i++)
        if (strcmp(rows[i].name, name) == 0 && strcmp(rows[i].domain, domain) == 0 &&
            (since == 0 || rows[i].since < since))
            since = rows[i].since;
    return since;
}

const onnx_op *onnx_ops_find_registered(compiler *c, const char *domain, const char *name)
{
    const graph_op *op = *domain ? graph_find_op(c, arena_printf(&c->mem, "%s.%s", domain, name)) : NULL;
    if (!op)
        return NULL;
    writer attrs;
    writer_init(&attrs, &c->mem);
    for (uint32_t i = 0; i < op->n_attrs; i++)
        w_fmt(&attrs, "%s%s", i ? " " : "", op->attrs[i].name);
    onnx_op *row = arena_new(&c->mem, onnx_op);
    *row = (onnx_op){domain, name, 1, 0, onnx_op_direct, op->name, attrs.data};
    return row;
}

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
