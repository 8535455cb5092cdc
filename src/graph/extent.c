/* SPDX-License-Identifier: Apache-2.0 */
/* Extents that only the data decides: the symbols that type relations make for them. Such a symbol is always an extent
 * by itself, so that a kernel can compute its value (graph_own_symbols). */
#include "graph/op.h"

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
