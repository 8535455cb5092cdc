/* SPDX-License-Identifier: Apache-2.0 */
/* Finds shape operands that provably say what the result's type says, whatever the values of the symbols are. */
#include "graph/op.h"
#include "graph/pass/simplify.h"
#include "graph/shape_value.h"

#include <string.h>

static const shape *shape_of(const graph_value *v)
{
    return &v->type.shape;
}

static bool names(const shape *s, const char *symbol)
{
    for (int32_t i = 0; i < s->rank; i++)
        if (dim_mentions(s->dims[i], symbol))
            return true;
    return false;
}

/* Whether the symbols of d are those of the function's parameters, or of the value: then they have values before the
 * node runs, even when a shape operand is left out. */
static bool symbols_known(const rewriter *r, dim d, const graph_value *v)
{
    const dim *parts = NULL;
    uint32_t n = dim_operands(d, &parts);
    const char *symbol = dim_symbol_name(d);
    bool known = !symbol || names(shape_of(v), symbol);
    for (uint32_t i = 0; i < r->f->params.len && !known; i++)
        known = names(shape_of(r->f->params.data[i]), symbol);
    for (uint32_t i = 0; i < n && known; i++)
        known = symbols_known(r, parts[i], v);
    return known;
}

static bool is_extent(compiler *c, dim d)
{
    return dim_never_above(c, dim_const(c, 0), d);
}

/* --- what an operand says, by operator: whether the result is just that --- */

static bool reshapes(compiler *c, const shape *x, const shape *y, const shape_value *said)
{
    (void)said; /* may have -1 and 0; the type follows from it, and so the number of elements tells */
    return dim_equal(shape_elements(c, *x), shape_elements(c, *y));
}

static bool broadcasts(compiler *c, const shape *x, const shape *y, const shape_value *said)
{
    for (uint32_t k = 0; k < said->n; k++) {
        int32_t axis = y->rank - (int32_t)said->n + (int32_t)k, at = axis - (y->rank - x->rank);
        bool own = at >= 0 && dim_is(said->at[k], 1) && dim_equal(x->dims[at], y->dims[axis]);
        if (axis < 0 || (!own && !(dim_equal(said->at[k], y->dims[axis]) && is_extent(c, said->at[k]))))
            return false;
    }
    return true;
}

static bool tiles(compiler *c, const shape *x, const shape *y, const shape_value *said)
{
    for (int32_t i = 0; i < y->rank; i++)
        if (!is_extent(c, said->at[i]) || !dim_equal(dim_mul(c, x->dims[i], said->at[i]), y->dims[i]))
            return false;
    return (int32_t)said->n == y->rank;
}

static const struct {
    const char *op;
    bool (*says)(compiler *c, const shape *x, const shape *y, const shape_value *said);
    bool everywhere; /* it becomes a view, which needs no extents: also in the bodies of branches and loops */
} rows[] = {{"reshape", reshapes, true}, {"broadcast_to", broadcasts, false}, {"tile", tiles, false}};

void simplify_leave_out_shape(rewriter *r, graph_node *n)
{
    shape_value said;
    size_t row = 0;
    while (row < sizeof rows / sizeof *rows && strcmp(rows[row].op, n->op->name) != 0)
        row++;
    if (row == sizeof rows / sizeof *rows || n->n_inputs < 2 || graph_constant(n->inputs[1]) ||
        !(rows[row].everywhere || strcmp(r->f->name, "main") == 0) ||
        !graph_shape_value(r->c, n->inputs[1], &said) || !shape_value_is_known(&said))
        return;
    const shape *x = shape_of(n->inputs[0]), *y = shape_of(n->outputs[0]);
    bool sure = rows[row].says(r->c, x, y, &said);
    for (int32_t i = 0; i < y->rank && sure; i++)
        sure = symbols_known(r, y->dims[i], n->inputs[0]);
    if (!sure)
        return;
    n->n_inputs = 1;
    n->outputs[0]->declared = n->outputs[0]->type;
    r->changed = true;
}
