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

/* Of numbers. */
static bool holds(int64_t a, extent_rule rule, int64_t b)
{
    switch (rule) {
    case EXTENTS_EQUAL: return a == b;
    case EXTENTS_WITHIN: return a <= b;
    case EXTENTS_STRETCHED: return a == 1 || a == b;
    case EXTENTS_MULTIPLE: return b > 0 && a % b == 0;
    }
    return false;
}

static bool always_holds(compiler *c, dim a, extent_rule rule, dim b)
{
    return dim_equal(a, b) || (rule == EXTENTS_STRETCHED && dim_is(a, 1)) ||
           (rule == EXTENTS_WITHIN && dim_never_above(c, a, b)) ||
           (rule == EXTENTS_MULTIPLE && dim_is(dim_mod(c, a, b), 0));
}

bool infer_extents(compiler *c, dim a, extent_rule rule, dim b, const char *what)
{
    int64_t x = 0, y = 0;
    if (dim_is_const(a, &x) && dim_is_const(b, &y))
        return holds(x, rule, y);
    if (c->demands && !always_holds(c, a, rule, b)) {
        const extent_demand d = {a, b, rule, what};
        vec_push(&c->mem, &c->demands->all, d);
    }
    return true;
}

/* Axes are counted from the end. Those that `to` does not have are 1. */
static bool leads_to(compiler *c, shape from, shape to)
{
    for (int32_t i = from.rank > to.rank ? from.rank - to.rank : 0; i < from.rank; i++)
        if (!infer_extents(c, from.dims[i], EXTENTS_STRETCHED, to.dims[i + to.rank - from.rank], "the operands"))
            return false;
    return true;
}

void infer_leads_to(compiler *c, shape from, shape to)
{
    (void)leads_to(c, from, to);
}

bool infer_stretched(compiler *c, const graph_node *n, uint32_t i, shape to)
{
    const type *t = infer_in(n, i), whole = type_tensor(t->dt, to);
    return (t->shape.rank <= to.rank && leads_to(c, t->shape, to)) || infer_no_broadcast_to(c, n, t, &whole);
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
