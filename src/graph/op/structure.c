/* SPDX-License-Identifier: Apache-2.0 */
/* Type relations of the operators that hold a graph together: constants, calls, branches. Functions are closed and
 * have one type each, so a call takes its result types from the callee. */
#include "graph/op.h"

bool infer_constant(compiler *c, const graph_node *n, type *out)
{
    out[0] = tensor_type(c, graph_attr(n, "value")->u.tensor);
    return true;
}

/* An operand may know more than the parameter asks for, never something else. */
static bool accepts(const type *param, const type *arg)
{
    int64_t p = 0, a = 0;
    if (param->kind != arg->kind)
        return false;
    if (param->kind != TYPE_TENSOR)
        return type_equal(param, arg);
    if (param->dt != arg->dt)
        return false;
    if (param->shape.rank < 0)
        return true;
    if (param->shape.rank != arg->shape.rank)
        return false;
    for (int32_t i = 0; i < param->shape.rank; i++)
        if (dim_is_const(param->shape.dims[i], &p) && dim_is_const(arg->shape.dims[i], &a) && p != a)
            return false;
    return true;
}

/* Operands from `first` on go to the parameters of f. */
static bool check_call(compiler *c, const graph_node *n, const graph_func *f, uint32_t first)
{
    if (n->n_inputs - first != f->params.len)
        return infer_error(c, n, "@%s has %u parameters, not %u", f->name, f->params.len, n->n_inputs - first);
    if (n->n_outputs != f->results.len)
        return infer_error(c, n, "@%s has %u results, not %u", f->name, f->results.len, n->n_outputs);
    for (uint32_t i = 0; i < f->params.len; i++) {
        const type *arg = infer_in(n, first + i);
        if (!arg)
            return infer_error(c, n, "operand %u of a call is left out", first + i);
        if (!accepts(&f->params.data[i]->type, arg))
            return infer_error(c, n, "operand %u does not have the type of @%s's parameter %%%s", first + i, f->name,
                               f->params.data[i]->name);
    }
    for (uint32_t i = 0; i < f->results.len; i++)
        if (f->results.data[i]->type.kind == TYPE_NONE)
            return infer_error(c, n, "the results of @%s have no types yet", f->name);
    return true;
}

bool infer_call(compiler *c, const graph_node *n, type *out)
{
    const graph_func *f = graph_attr(n, "callee")->u.func;
    if (!check_call(c, n, f, 0))
        return false;
    for (uint32_t i = 0; i < n->n_outputs; i++)
        out[i] = f->results.data[i]->type;
    return true;
}

/* Extent of a result that has the extent a or b: the same symbol when equal, else a new one bounded by both. */
static dim either(compiler *c, dim a, dim b, const type *declared, int32_t i)
{
    int64_t known = 0, ba = dim_bound(a), bb = dim_bound(b);
    if (dim_equal(a, b))
        return a;
    if (declared && dim_is_const(declared->shape.dims[i], &known))
        return declared->shape.dims[i];
    return dim_fresh(c, "if", ba < 0 || bb < 0 ? -1 : ba > bb ? ba : bb);
}

static bool join(compiler *c, const graph_node *n, uint32_t i, const type *a, const type *b, type *out)
{
    *out = *a;
    if (type_equal(a, b))
        return true;
    if (a->kind != TYPE_TENSOR || b->kind != TYPE_TENSOR || a->dt != b->dt)
        return infer_error(c, n, "the branches give result %u different types", i);
    const type *declared = infer_declared(n, i);
    if (a->shape.rank < 0 || a->shape.rank != b->shape.rank) {
        out->shape = declared ? declared->shape : (shape){-1, NULL};
        return true;
    }
    if (declared && declared->shape.rank != a->shape.rank)
        declared = NULL;
    dim d[TYPE_MAX_RANK];
    for (int32_t k = 0; k < a->shape.rank; k++)
        d[k] = either(c, a->shape.dims[k], b->shape.dims[k], declared, k);
    out->shape = shape_make(c, (uint32_t)a->shape.rank, d);
    return true;
}

/* Operands: condition, then what both branches capture. */
bool infer_if(compiler *c, const graph_node *n, type *out)
{
    const type *cond = infer_in(n, 0);
    const graph_func *f = graph_attr(n, "then_branch")->u.func, *g = graph_attr(n, "else_branch")->u.func;
    int64_t count = cond->kind == TYPE_TENSOR ? shape_count(cond->shape) : 0;
    if (cond->kind != TYPE_TENSOR || cond->dt != DT_BOOL || (count >= 0 && count != 1))
        return infer_error(c, n, "the condition must be one bool");
    if (!check_call(c, n, f, 1) || !check_call(c, n, g, 1))
        return false;
    for (uint32_t i = 0; i < n->n_outputs; i++)
        if (!join(c, n, i, &f->results.data[i]->type, &g->results.data[i]->type, &out[i]))
            return false;
    return true;
}
