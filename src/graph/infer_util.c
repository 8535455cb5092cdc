/* SPDX-License-Identifier: Apache-2.0 */
/* What type relations share: reading of operands, axes, messages. */
#include "graph/op.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool infer_error(compiler *c, const graph_node *n, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return diag_error(&c->diags, DIAG_TYPE, n->loc, "%s: %s", n->op->name, text);
}

static const char *type_text(compiler *c, const type *t)
{
    writer w;
    writer_init(&w, &c->mem);
    type_print(&w, t);
    return w.data;
}

bool infer_no_broadcast(compiler *c, const graph_node *n, const type *a, const type *b)
{
    return infer_error(c, n, "%s and %s do not broadcast", type_text(c, a), type_text(c, b));
}

bool infer_no_broadcast_to(compiler *c, const graph_node *n, const type *from, const type *to)
{
    return infer_error(c, n, "%s does not broadcast to %s", type_text(c, from), type_text(c, to));
}

bool infer_axis(compiler *c, const graph_node *n, int64_t axis, int32_t rank, int32_t *out)
{
    *out = 0;
    if (axis < -(int64_t)rank || axis >= (int64_t)rank)
        return infer_error(c, n, "axis %lld is out of range for rank %d", (long long)axis, (int)rank);
    *out = (int32_t)(axis < 0 ? axis + rank : axis);
    return true;
}

const type *infer_in(const graph_node *n, uint32_t i)
{
    return i < n->n_inputs && n->inputs[i] ? &n->inputs[i]->type : NULL;
}

bool infer_same(compiler *c, const graph_node *n, type *out)
{
    (void)c;
    out[0] = *infer_in(n, 0);
    return true;
}

const type *infer_declared(const graph_node *n, uint32_t i)
{
    if (i >= n->n_outputs)
        return NULL;
    const type *t = &n->outputs[i]->declared;
    return t->kind == TYPE_TENSOR && t->shape.rank >= 0 ? t : NULL;
}

/* --- symbols --- */

static bool is_known(const graph_node *n, const char *symbol, uint32_t found, const char *const *so_far)
{
    for (uint32_t i = 0; i < found; i++)
        if (strcmp(so_far[i], symbol) == 0)
            return true;
    for (uint32_t i = 0; i < n->n_inputs; i++)
        if (infer_in(n, i) && type_mentions(infer_in(n, i), symbol))
            return true;
    return false;
}

uint32_t graph_own_symbols(const graph_node *n, uint32_t max, const char **out)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < n->n_outputs; i++) {
        const type *t = &n->outputs[i]->type;
        for (int32_t k = 0; t->kind == TYPE_TENSOR && k < t->shape.rank; k++) {
            const char *symbol = dim_symbol_name(t->shape.dims[k]);
            if (symbol && found < max && !is_known(n, symbol, found, out))
                out[found++] = symbol;
        }
    }
    return found;
}
