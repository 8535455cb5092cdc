/* SPDX-License-Identifier: Apache-2.0 */
/* Type relations of the operators that hold a graph together: constants, calls, branches, loops. Functions are closed
 * and have one type each, so a call takes its result types from the callee. Where branches differ, or what a loop
 * carries changes its shape, the extent of the result is an open one, which the program tells when it runs. */
#include "graph/op.h"
#include "graph/shape_value.h"

#include <string.h>

bool infer_constant(compiler *c, const graph_node *n, type *out)
{
    out[0] = tensor_type(c, graph_attr(n, "value")->u.tensor);
    return true;
}

/* Whether the two can be the same: extents that are numbers in both are equal. */
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

/* Whether arg has a number wherever param, which accepts it, has one: the callee's kernels count on it. */
static bool is_known(const type *param, const type *arg)
{
    int64_t value = 0;
    for (int32_t i = 0; param->kind == TYPE_TENSOR && i < param->shape.rank; i++)
        if (dim_is_const(param->shape.dims[i], &value) && !dim_is_const(arg->shape.dims[i], &value))
            return false;
    return true;
}

/* Operands from `first` on go to the parameters of f from `param` on; results to those of f from `result` on. */
static bool check_callee(compiler *c, const graph_node *n, const graph_func *f, uint32_t first, uint32_t param,
                         uint32_t result)
{
    uint32_t args = n->n_inputs > first ? n->n_inputs - first : 0;
    if (args + param != f->params.len)
        return infer_error(c, n, "@%s has %u parameters, not %u", f->name, f->params.len, args + param);
    if (n->n_outputs + result != f->results.len)
        return infer_error(c, n, "@%s has %u results, not %u", f->name, f->results.len, n->n_outputs + result);
    for (uint32_t i = 0; i < args; i++) {
        const type *arg = infer_in(n, first + i);
        if (!arg)
            return infer_error(c, n, "operand %u of a call is left out", first + i);
        const type *p = &f->params.data[param + i]->type;
        if (!accepts(p, arg))
            return infer_error(c, n, "operand %u does not have the type of @%s's parameter %%%s", first + i, f->name,
                               f->params.data[param + i]->name);
        if (!is_known(p, arg))
            return infer_error(c, n, "operand %u may have other extents than @%s's parameter %%%s, whose extents are "
                                     "numbers", first + i, f->name, f->params.data[param + i]->name);
    }
    for (uint32_t i = 0; i < f->results.len; i++)
        if (f->results.data[i]->type.kind == TYPE_NONE)
            return infer_error(c, n, "the results of @%s have no types yet", f->name);
    return true;
}

static bool check_call(compiler *c, const graph_node *n, const graph_func *f, uint32_t first)
{
    return check_callee(c, n, f, first, 0, 0);
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

static bool differs(dim d, int64_t stated)
{
    int64_t v = stated;
    return dim_is_const(d, &v) && v != stated;
}

/* A number that the model states for an extent of result i and that a branch contradicts is dropped, with all else that
 * is stated of the result: the other branch may never be taken. */
static void drop_stated(compiler *c, const graph_node *n, uint32_t i, const type *a, const type *b)
{
    const type *t = infer_declared(n, i);
    int64_t stated = 0;
    for (int32_t k = 0; t && t->shape.rank == a->shape.rank && k < a->shape.rank; k++) {
        dim x = a->shape.dims[k], y = b->shape.dims[k];
        if (dim_equal(x, y) || !dim_is_const(t->shape.dims[k], &stated) || !(differs(x, stated) || differs(y, stated)))
            continue;
        writer w;
        writer_init(&w, &c->mem);
        type_print(&w, a);
        w_str(&w, " and ");
        type_print(&w, b);
        (void)diag_warning(&c->diags, DIAG_TYPE, n->loc,
                           "%%%s is declared with extent %lld on axis %d, but the branches give %s; these are used",
                           n->outputs[i]->name, (long long)stated, k, w.data);
        n->outputs[i]->declared = (type){0};
        return;
    }
}

/* Extent of a result that has the extent a or b: the same symbol when equal, else an open one bounded by both. */
static dim either(compiler *c, const graph_node *n, uint32_t result, dim a, dim b, int32_t rank, int32_t i)
{
    int64_t ba = dim_bound(a), bb = dim_bound(b);
    return dim_equal(a, b) ? a : infer_open(c, n, result, rank, i, "if", ba < 0 || bb < 0 ? -1 : ba > bb ? ba : bb);
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
    dim d[TYPE_MAX_RANK];
    drop_stated(c, n, i, a, b);
    for (int32_t k = 0; k < a->shape.rank; k++)
        d[k] = either(c, n, i, a->shape.dims[k], b->shape.dims[k], a->shape.rank, k);
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

/* --- loops --- */

static bool is_one(const type *t, dtype dt)
{
    int64_t count = t->kind == TYPE_TENSOR ? shape_count(t->shape) : 0;
    return t->kind == TYPE_TENSOR && t->dt == dt && (count < 0 || count == 1);
}

static bool check_loop(compiler *c, const graph_node *n, const graph_func *f, int64_t carried)
{
    const type *trips = infer_in(n, 0), *cond = infer_in(n, 1);
    if ((trips && !is_one(trips, DT_I64)) || (cond && !is_one(cond, DT_BOOL)))
        return infer_error(c, n, "the number of rounds must be one i64, the condition one bool");
    if (!check_callee(c, n, f, 2, 1, 1))
        return false;
    if (!is_one(&f->params.data[0]->type, DT_I64) || !is_one(&f->results.data[0]->type, DT_BOOL))
        return infer_error(c, n, "@%s must have the round, one i64, as first parameter, and a condition, one bool, as "
                                 "first result", f->name);
    if (carried < 0 || carried > n->n_outputs || carried >= f->params.len)
        return infer_error(c, n, "%lld values cannot be carried", (long long)carried);
    bool rows = carried < n->n_outputs;
    if (graph_attr_int(n, "closed") != 0 &&
        (trips || !cond || (rows && (carried == 0 || !is_one(&f->params.data[1]->type, DT_I64)))))
        return infer_error(c, n, "a closed loop has a condition and no number of rounds, and where it has rows it "
                                 "carries the round, one i64, first");
    for (uint32_t i = 0; i < (uint32_t)carried; i++) {
        const type *p = &f->params.data[1 + i]->type, *r = &f->results.data[1 + i]->type;
        if (!accepts(p, r))
            return infer_error(c, n, "carried value %u has another type after a round of @%s than before", i, f->name);
    }
    return true;
}

/* The condition never ends the loop: rounds are counted by the first operand alone. */
static bool always_goes_on(const graph_node *n, const graph_func *f)
{
    const tensor_data *first = n->n_inputs > 1 ? graph_constant(n->inputs[1]) : NULL,
                      *next = graph_constant(f->results.data[0]);
    bool starts = n->n_inputs < 2 || !n->inputs[1] || (first && tensor_get_i64(first, 0) != 0);
    return starts && next && tensor_get_i64(next, 0) != 0;
}

dim graph_most_rounds(compiler *c, const graph_value *v)
{
    shape_value s;
    dim none = dim_const(c, 0);
    if (!v || !graph_shape_value(c, v, &s) || s.n != 1 || !s.at[0])
        return NULL;
    return dim_never_above(c, none, s.at[0]) ? s.at[0] : dim_max(c, none, s.at[0]);
}

/* --- carried values whose shape changes --- */

const char *graph_carried_symbol(const graph_node *n, uint32_t i, int32_t axis)
{
    const type *t = &graph_attr(n, "body")->u.func->params.data[1 + i]->type;
    const char *symbol = t->kind == TYPE_TENSOR && axis < t->shape.rank ? dim_symbol_name(t->shape.dims[axis]) : NULL;
    for (uint32_t k = 0; symbol && k < n->n_inputs; k++)
        if (infer_in(n, k) && type_mentions(infer_in(n, k), symbol))
            symbol = NULL;
    return symbol;
}

int64_t graph_carried_bound(compiler *c, dim d, dim first, dim next, dim trips, dim stated)
{
    int64_t from = dim_bound(first), growth = 0, most = -1, last = stated ? dim_bound(stated) : -1;
    bool regular = dim_is_const(dim_sub(c, next, d), &growth);
    if (stated && dim_is_const(stated, &last) && last < 0)
        last = -1;
    if (from < 0)
        return -1;
    if ((regular && growth <= 0) || dim_never_above(c, next, d))
        return from;
    if (regular && trips && dim_bound(trips) >= 0 &&
        (!i64_mul(growth, dim_bound(trips), &most) || !i64_add(from, most, &most)))
        most = -1;
    if (!regular && dim_bound(next) >= 0)
        most = dim_bound(next) > from ? dim_bound(next) : from;
    if (last >= 0 && (most < 0 || (regular && last < most)))
        most = last > from ? last : from;
    return most;
}

/* An extent that several carried values share must stay the same for all of them. */
static bool check_shared(compiler *c, const graph_node *n, const graph_func *f, uint32_t i, int32_t k, uint32_t carried)
{
    const char *symbol = graph_carried_symbol(n, i, k);
    for (uint32_t j = 0; j < carried; j++)
        for (int32_t m = 0; m < f->params.data[1 + j]->type.shape.rank; m++) {
            const char *other = graph_carried_symbol(n, j, m);
            const type *first = infer_in(n, 2 + j), *next = &f->results.data[1 + j]->type;
            if (other && strcmp(symbol, other) == 0 &&
                !(dim_equal(first->shape.dims[m], infer_in(n, 2 + i)->shape.dims[k]) &&
                  dim_equal(next->shape.dims[m], f->results.data[1 + i]->type.shape.dims[k])))
                return infer_error(c, n, "carried values %u and %u both have the extent %s, but not before or after a "
                                         "round of @%s", i, j, symbol, f->name);
        }
    return true;
}

/* The extent of a result in out[0..i] that is carried in the same symbol; NULL: there is none. */
static dim same_extent(const graph_node *n, uint32_t i, int32_t axis, const type *out, const dim *d)
{
    const char *symbol = graph_carried_symbol(n, i, axis);
    for (uint32_t j = 0; j <= i; j++)
        for (int32_t m = 0; m < (j < i ? out[j].shape.rank : axis); m++) {
            const char *other = graph_carried_symbol(n, j, m);
            if (other && strcmp(symbol, other) == 0)
                return j < i ? out[j].shape.dims[m] : d[m];
        }
    return NULL;
}

/* Result i is carried, and has the extents of the last round. */
static bool infer_carried(compiler *c, const graph_node *n, const graph_func *f, uint32_t i, dim trips, type *all)
{
    type *out = &all[i];
    const type *p = &f->params.data[1 + i]->type, *first = infer_in(n, 2 + i), *next = &f->results.data[1 + i]->type;
    dim d[TYPE_MAX_RANK];
    bool changes = false;
    *out = *p;
    for (int32_t k = 0; p->kind == TYPE_TENSOR && k < p->shape.rank && k < (int32_t)TYPE_MAX_RANK; k++) {
        d[k] = p->shape.dims[k];
        if (!graph_carried_symbol(n, i, k))
            continue;
        if (first->shape.rank != p->shape.rank || next->shape.rank != p->shape.rank)
            return infer_error(c, n, "carried value %u has another rank after a round of @%s", i, f->name);
        if (!check_shared(c, n, f, i, k, (uint32_t)graph_attr_int(n, "carried")))
            return false;
        const type *stated = infer_declared(n, i);
        dim last = stated && stated->shape.rank == p->shape.rank ? stated->shape.dims[k] : NULL,
            same = last ? NULL : same_extent(n, i, k, all, d);
        if (!last && n->outputs[i]->type.kind == TYPE_TENSOR && n->outputs[i]->type.shape.rank == p->shape.rank)
            last = n->outputs[i]->type.shape.dims[k];
        if (dim_bound(d[k]) < 0)
            (void)dim_symbol(c, dim_symbol_name(d[k]),
                             graph_carried_bound(c, d[k], first->shape.dims[k], next->shape.dims[k], trips, last));
        d[k] = same ? same : infer_open(c, n, i, p->shape.rank, k, "last", dim_bound(d[k]));
        changes = true;
    }
    if (changes)
        out->shape = shape_make(c, (uint32_t)p->shape.rank, d);
    return true;
}

/* Rows are of one shape: it cannot change from round to round. */
static bool check_row(compiler *c, const graph_node *n, const graph_func *f, uint32_t row, uint32_t carried)
{
    for (uint32_t i = 0; i < carried; i++)
        for (int32_t k = 0; k < f->params.data[1 + i]->type.shape.rank; k++) {
            const char *symbol = graph_carried_symbol(n, i, k);
            if (symbol && type_mentions(&f->results.data[1 + row]->type, symbol))
                return infer_error(c, n, "rows of result %u, %%%s, have the extent %s, which changes from round to "
                                         "round: all rows must have one shape", row, f->results.data[1 + row]->name,
                                   symbol);
        }
    return true;
}

/* Operands: the most rounds, the first condition, either of which may be left out; what is carried, what the body
 * captures. Results: what was carried last, then rows, one for each round. */
bool infer_loop(compiler *c, const graph_node *n, type *out)
{
    const graph_func *f = graph_attr(n, "body")->u.func;
    int64_t carried = graph_attr_int(n, "carried");
    if (!check_loop(c, n, f, carried))
        return false;
    dim trips = n->n_inputs > 0 ? graph_most_rounds(c, n->inputs[0]) : NULL;
    for (uint32_t i = 0; i < (uint32_t)carried; i++)
        if (!infer_carried(c, n, f, i, trips, out))
            return false;
    for (uint32_t i = (uint32_t)carried; i < n->n_outputs; i++) {
        dim d[TYPE_MAX_RANK];
        out[i] = f->results.data[1 + i]->type;
        if (out[i].kind != TYPE_TENSOR || out[i].shape.rank < 0 || out[i].shape.rank >= (int32_t)TYPE_MAX_RANK)
            return infer_error(c, n, "rows of result %u must be tensors of known rank", i);
        if (!check_row(c, n, f, i, (uint32_t)carried))
            return false;
        d[0] = trips && always_goes_on(n, f)
                   ? trips
                   : infer_open(c, n, i, out[i].shape.rank + 1, 0, "rounds", trips ? dim_bound(trips) : -1);
        for (int32_t k = 0; k < out[i].shape.rank; k++)
            d[k + 1] = out[i].shape.dims[k];
        out[i].shape = shape_make(c, (uint32_t)out[i].shape.rank + 1, d);
    }
    return true;
}
