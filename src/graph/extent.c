/* SPDX-License-Identifier: Apache-2.0 */
/* Extents that operands state. They come from what is known of the operands' values or from what the model declares. If
 * only the data decides, they are symbols. Such a symbol is always an extent by itself, so that a kernel can compute
 * its value (graph_own_symbols). */
#include "graph/op/shape.h"

/* The extent of that axis in a type of that rank; NULL: the type says nothing about it. */
static dim stated(const type *t, int32_t rank, int32_t axis)
{
    return t->kind == TYPE_TENSOR && t->shape.rank == rank ? t->shape.dims[axis] : NULL;
}

static bool is_alone(dim d)
{
    return dim_symbol_name(d) || dim_is_const(d, &(int64_t){0});
}

/* Whether data decides a part of d, so that its value may not be there before the node runs. */
static bool has_fresh(dim d)
{
    const dim *parts = NULL;
    uint32_t count = dim_operands(d, &parts);
    bool found = dim_is_fresh(d);
    for (uint32_t i = 0; i < count && !found; i++)
        found = has_fresh(parts[i]);
    return found;
}

dim infer_open(compiler *c, const graph_node *n, uint32_t i, int32_t rank, int32_t axis, const char *prefix,
               int64_t bound)
{
    const graph_value *v = n->outputs[i];
    dim d = stated(&v->declared, rank, axis);
    if (d && !is_alone(d)) {
        if (dim_bound(d) >= 0 && !has_fresh(d))
            return d; /* as a number would be: what the operands say is compared with it */
        bound = bound < 0 || (dim_bound(d) >= 0 && dim_bound(d) < bound) ? dim_bound(d) : bound;
        d = NULL;
    }
    if (!d) /* of an earlier round: asked again, a relation answers the same */
        d = stated(&v->type, rank, axis);
    if (!d || !is_alone(d))
        return dim_fresh(c, prefix, bound);
    if (dim_symbol_name(d) && dim_bound(d) >= 0 && !dim_is_fresh(d))
        return d; /* others have that extent too, and what they may be stays as it was stated */
    return dim_symbol_name(d) ? dim_symbol(c, dim_symbol_name(d), bound) : d;
}

/* --- operands --- */

bool infer_elements(compiler *c, const graph_node *n, uint32_t i, shape_value *out)
{
    int64_t count = infer_has(n, i) ? shape_count(infer_in(n, i)->shape) : -1;
    if (count < 0 || count > (int64_t)SHAPE_VALUE_MOST)
        return false;
    if (!graph_shape_value(c, n->inputs[i], out))
        *out = (shape_value){.n = (uint32_t)count};
    return true;
}

bool infer_knows_any(const shape_value *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->at[i])
            return true;
    return s->n == 0;
}

bool infer_ints(const graph_node *n, uint32_t i, int64_t *out, uint32_t *len)
{
    *len = 0;
    return i < n->n_inputs && n->inputs[i] && graph_constant_ints(n->inputs[i], TYPE_MAX_RANK, out, len);
}

bool infer_has(const graph_node *n, uint32_t i)
{
    return i < n->n_inputs && n->inputs[i];
}

bool infer_as_declared(compiler *c, const graph_node *n, dtype dt, int32_t rank, const char *operand, type *out)
{
    const type *dec = infer_declared(n, 0);
    if (!dec)
        return infer_error(c, n, "%s is not a constant and the result's shape is not declared", operand);
    if (rank >= 0 && dec->shape.rank != rank)
        return infer_error(c, n, "the result is declared with rank %d, not %d", dec->shape.rank, rank);
    out[0] = type_tensor(dt, dec->shape);
    return true;
}

bool infer_entries(compiler *c, const graph_node *n, uint32_t i, int64_t want)
{
    int64_t have = 0;
    if (!infer_has(n, i))
        return true;
    (void)dim_is_const(infer_in(n, i)->shape.dims[0], &have);
    return infer_extents(c, infer_in(n, i)->shape.dims[0], EXTENTS_EQUAL, dim_const(c, want), "an operand and axes") ||
           infer_error(c, n, "operand %u, %s, has %lld entries; %lld are needed", i, operand_of(n->op, i)->name,
                       (long long)have, (long long)want);
}

bool infer_counted(compiler *c, const graph_node *n, uint32_t i)
{
    int64_t have = 0;
    return !infer_has(n, i) || dim_is_const(infer_in(n, i)->shape.dims[0], &have) ||
           (infer_error(c, n, "how many entries operand %u, %s, has must be known", i, operand_of(n->op, i)->name),
            diag_hint(&c->diags, "fix its extent with --dim or --shape"), false);
}

bool infer_moved_as_declared(compiler *c, const graph_node *n, bool within, const char *operand, type *out)
{
    const type *x = infer_in(n, 0);
    if (!infer_as_declared(c, n, x->dt, x->shape.rank, operand, out))
        return false;
    for (int32_t i = 0; i < x->shape.rank; i++) {
        int64_t a = 0, b = 0;
        if (dim_is_const(x->shape.dims[i], &a) && dim_is_const(out->shape.dims[i], &b) && b > a && (within || a == 0))
            return infer_error(c, n, "the result is declared with extent %lld on axis %d, the data has %lld",
                               (long long)b, i, (long long)a);
    }
    return true;
}
