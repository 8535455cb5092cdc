/* SPDX-License-Identifier: Apache-2.0 */
/* The operator table: look-up by domain, name and version. */
#include "frontend/onnx/onnx_import.h"

#include <string.h>

static const onnx_op rows[] = {
#define ONNX_OP(domain, name, since, until, operands, import, target, attrs) \
    {domain, name, since, until, operands, import, target, attrs},
#include "frontend/onnx/onnx_ops.def"
#undef ONNX_OP
};
#define N_ROWS (sizeof rows / sizeof rows[0])

/* As onnx_ops.def has them, from the IR's row. */
static const char *list_operands(compiler *c, const graph_op *op)
{
    writer w;
    writer_init(&w, &c->mem);
    w_str(&w, "");
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const operand_def *d = &op->operand_defs[i];
        w_fmt(&w, "%s%s%s", i ? " " : "", d->name, d->optional ? "?" : d->repeated ? "*" : "");
    }
    return w.data;
}

/* An operator of a domain of the user's own: the registered row "domain.name", attributes by the same names. */
static const onnx_op *find_registered(compiler *c, const char *domain, const char *name)
{
    const graph_op *op = *domain ? graph_find_op(c, arena_printf(&c->mem, "%s.%s", domain, name)) : NULL;
    if (!op)
        return NULL;
    writer attrs;
    writer_init(&attrs, &c->mem);
    for (uint32_t i = 0; i < op->n_attrs; i++)
        w_fmt(&attrs, "%s%s", i ? " " : "", op->attrs[i].name);
    onnx_op *row = arena_new(&c->mem, onnx_op);
    *row = (onnx_op){domain, name, 1, 0, list_operands(c, op), onnx_op_direct, op->name, attrs.data};
    return row;
}

const onnx_op *onnx_ops_find(compiler *c, const char *domain, const char *name, int64_t version)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        const onnx_op *r = &rows[i];
        if (strcmp(r->name, name) == 0 && strcmp(r->domain, domain) == 0 && version >= r->since &&
            (r->until == 0 || version <= r->until))
            return r;
    }
    return find_registered(c, domain, name);
}

void onnx_ops_offer(const char *domain, nearest *near)
{
    for (size_t i = 0; i < N_ROWS; i++)
        if (strcmp(rows[i].domain, domain) == 0)
            nearest_offer(near, rows[i].name);
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
