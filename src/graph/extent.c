/* SPDX-License-Identifier: Apache-2.0 */
/* Extents that only the data decides: the symbols that type relations make for them, and which of a node's symbols are
 * its own. Such a symbol is always an extent by itself, so that a kernel can compute its value. */
#include "graph/op.h"

static bool types_mention(uint32_t n, graph_value *const *values, dim symbol)
{
    for (uint32_t i = 0; i < n; i++)
        if (values[i] && shape_mentions(values[i]->type.shape, symbol))
            return true;
    return false;
}

static bool is_known(const graph_node *n, dim d)
{
    return !dim_symbol_name(d) || types_mention(n->n_inputs, n->inputs, d);
}

uint32_t graph_own_symbols(compiler *c, const graph_node *n, const dim **out)
{
    VEC(dim) own = {0};
    for (uint32_t i = 0; i < n->n_outputs; i++) {
        shape s = n->outputs[i]->type.shape;
        for (int32_t a = 0; n->outputs[i]->type.kind == TYPE_TENSOR && a < s.rank; a++) {
            bool seen = is_known(n, s.dims[a]);
            for (uint32_t k = 0; k < own.len && !seen; k++)
                seen = own.data[k] == s.dims[a];
            if (!seen)
                vec_push(&c->mem, &own, s.dims[a]);
        }
    }
    if (out)
        *out = own.data;
    return own.len;
}

bool graph_makes_symbols(const graph_node *n)
{
    for (uint32_t i = 0; i < n->n_outputs; i++) {
        shape s = n->outputs[i]->type.shape;
        for (int32_t a = 0; n->outputs[i]->type.kind == TYPE_TENSOR && a < s.rank; a++)
            if (!is_known(n, s.dims[a]))
                return true;
    }
    return false;
}

/* The extent of that axis in a type of that rank; NULL: the type says nothing about it. */
static dim stated(const type *t, int32_t rank, int32_t axis)
{
    return t->kind == TYPE_TENSOR && t->shape.rank == rank ? t->shape.dims[axis] : NULL;
}

dim infer_open(compiler *c, const graph_node *n, uint32_t i, int32_t rank, int32_t axis, const char *prefix,
               int64_t bound)
{
    const graph_value *v = n->outputs[i];
    dim d = stated(&v->declared, rank, axis);
    if (!d) /* of an earlier round: asked again, a relation answers the same */
        d = stated(&v->type, rank, axis);
    if (!d || (dim_symbol_name(d) == NULL && !dim_is_const(d, &(int64_t){0})))
        return dim_fresh(c, prefix, bound);
    return dim_symbol_name(d) ? dim_symbol(c, dim_symbol_name(d), bound) : d;
}
