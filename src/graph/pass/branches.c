/* SPDX-License-Identifier: Apache-2.0 */
/* take-branches: an `if` with a constant condition is replaced by the branch that it takes, a loop of one round by its
 * body, and a loop of no rounds by its initial values. If a captured value has become a constant, the constant is made
 * again inside of the region, so that folding can go on there. */
#include "graph/op.h"
#include "graph/pass.h"
#include "graph/pass/rewrite.h"
#include "base/ptr_map.h"

#include <string.h>

/* 1, 0, or -1: not known. */
static int truth_of(const graph_value *v)
{
    const tensor_data *t = graph_constant(v);
    return t && t->count == 1 ? tensor_get_i64(t, 0) != 0 : -1;
}

static bool take_branch(rewriter *r, const graph_node *n, bool yes)
{
    const graph_func *f = graph_attr(n, yes ? "then_branch" : "else_branch")->u.func;
    graph_value **results = arena_array(&r->c->mem, graph_value *, f->results.len + 1u);
    bool ok = true;
    rewrite_inline(r, f, n->inputs + 1, results);
    for (uint32_t i = 0; ok && i < n->n_outputs; i++)
        ok = rewrite_stand_for(r, n->outputs[i], results[i], n->loc);
    return ok;
}

/* --- loops --- */

/* How often a loop runs where that is 0 or 1; else 2. */
static uint32_t few_rounds(const graph_node *n)
{
    int64_t trips = 2;
    uint32_t len = 0;
    int first = graph_operand(n, 1) ? truth_of(n->inputs[1]) : 1;
    bool counted = n->n_inputs > 0 && graph_constant_ints(n->inputs[0], 1, &trips, &len) && len == 1;
    if (first == 0 || (counted && trips <= 0))
        return 0;
    return counted && trips == 1 && first == 1 ? 1 : 2;
}

static bool rows_are_static(const graph_node *n, uint32_t carried)
{
    const graph_func *f = graph_attr(n, "body")->u.func;
    for (uint32_t i = carried; i < n->n_outputs; i++)
        if (!shape_is_static(f->results.data[1 + i]->type.shape))
            return false;
    return true;
}

static bool take_nothing(rewriter *r, const graph_node *n, uint32_t carried)
{
    const graph_func *f = graph_attr(n, "body")->u.func;
    for (uint32_t i = 0; i < n->n_outputs; i++) {
        graph_value *v = i < carried ? n->inputs[2 + i] : NULL;
        if (!v) {
            const type *row = &f->results.data[1 + i]->type;
            int64_t dims[TYPE_MAX_RANK + 1] = {0};
            (void)shape_get(row->shape, dims + 1);
            v = rewrite_constant(r, tensor_dense(r->c, row->dt, (uint32_t)row->shape.rank + 1, dims, ""),
                                 n->outputs[i]->name, n->loc);
        }
        if (!rewrite_stand_for(r, n->outputs[i], v, n->loc))
            return false;
    }
    return true;
}

static bool take_round(rewriter *r, const graph_node *n, uint32_t carried)
{
    const graph_func *f = graph_attr(n, "body")->u.func;
    graph_value **args = arena_array(&r->c->mem, graph_value *, f->params.len),
                **results = arena_array(&r->c->mem, graph_value *, f->results.len);
    args[0] = rewrite_constant(r, tensor_scalar_i64(r->c, DT_I64, 0), "round", n->loc);
    for (uint32_t i = 1; i < f->params.len; i++)
        args[i] = n->inputs[1 + i];
    bool ok = true;
    rewrite_inline(r, f, args, results);
    for (uint32_t i = 0; ok && i < n->n_outputs; i++) {
        graph_value *v = results[1 + i];
        if (v && i >= carried) {
            int64_t dims[TYPE_MAX_RANK + 1] = {1};
            (void)shape_get(v->type.shape, dims + 1);
            graph_value *in[2] = {v, rewrite_constant(r, tensor_from_i64s(r->c, (uint32_t)v->type.shape.rank + 1, dims),
                                                      "shape", n->loc)};
            attr zero = attr_int(r->c, "allowzero", 1);
            v = rewrite_emit(r, "reshape", 2, in, 1, &zero, n->loc);
        }
        ok = rewrite_stand_for(r, n->outputs[i], v, n->loc);
    }
    return ok;
}

/* --- captures --- */

static uint32_t users_of(const graph_module *m, const graph_func *f)
{
    uint32_t users = 0;
    for (uint32_t i = 0; i < m->funcs.len; i++)
        for (uint32_t k = 0; k < m->funcs.data[i]->nodes.len; k++)
            for (uint32_t a = 0; a < m->funcs.data[i]->nodes.data[k]->n_attrs; a++) {
                const attr *at = &m->funcs.data[i]->nodes.data[k]->attrs[a];
                users += at->kind == ATTR_FUNC && at->u.func == f;
            }
    return users;
}

/* Parameter `param` of f is t. */
static void bind_constant(compiler *c, graph_func *f, uint32_t param, const tensor_data *t, src_loc loc)
{
    attr value = attr_tensor(c, "value", t);
    graph_value *v = f->params.data[param];
    graph_node *n = graph_new_node(f, graph_find_op(c, "constant"), 0, NULL, 1, &value, 1, &v->name, loc);
    n->outputs[0]->type = tensor_type(c, t);
    graph_replace_uses(f, v, n->outputs[0]);
    vec_push(&c->mem, &f->nodes, n); /* in front */
    memmove(f->nodes.data + 1, f->nodes.data, (f->nodes.len - 1) * sizeof *f->nodes.data);
    f->nodes.data[0] = n;
    memmove(f->params.data + param, f->params.data + param + 1, (f->params.len - param - 1) * sizeof *f->params.data);
    f->params.len--;
    for (uint32_t i = param; i < f->params.len; i++)
        f->params.data[i]->index = i;
}

/* Operands from `first` on are what the regions capture: parameters from `param` on. */
static void bind_captures(rewriter *r, graph_node *n, uint32_t first, uint32_t param)
{
    graph_func *regions[2];
    uint32_t n_regions = 0;
    for (uint32_t i = 0; i < n->n_attrs; i++)
        if (n->attrs[i].kind == ATTR_FUNC) {
            regions[n_regions] = (graph_func *)(uintptr_t)n->attrs[i].u.func;
            if (users_of(r->f->module, regions[n_regions++]) != 1)
                return;
        }
    for (uint32_t i = n->n_inputs; i-- > first;) {
        const tensor_data *t = graph_constant(n->inputs[i]);
        if (!t)
            continue;
        for (uint32_t k = 0; k < n_regions; k++)
            bind_constant(r->c, regions[k], param + i - first, t, n->loc);
        memmove(n->inputs + i, n->inputs + i + 1, (n->n_inputs - i - 1) * sizeof *n->inputs);
        n->n_inputs--;
    }
}

/* What is known of an operand by now is known inside, too. */
static bool sharpen_captures(rewriter *r, const graph_node *n, uint32_t first, uint32_t param)
{
    bool ok = true;
    for (uint32_t a = 0; a < n->n_attrs; a++) {
        graph_func *f = n->attrs[a].kind == ATTR_FUNC ? (graph_func *)(uintptr_t)n->attrs[a].u.func : NULL;
        bool changed = false;
        if (!f || users_of(r->f->module, f) != 1)
            continue;
        for (uint32_t i = first; i < n->n_inputs; i++) {
            type *t = &f->params.data[param + i - first]->type;
            changed |= !type_equal(t, &n->inputs[i]->type);
            *t = n->inputs[i]->type;
        }
        for (uint32_t k = 0; changed && k < f->nodes.len; k++)
            ok = graph_infer_node(r->c, f->nodes.data[k]) && ok;
    }
    return ok;
}

/* --- the walk --- */

static bool visit_if(rewriter *r, graph_node *n)
{
    int condition = truth_of(n->inputs[0]);
    if (condition >= 0)
        return take_branch(r, n, condition != 0);
    bind_captures(r, n, 1, 0);
    rewrite_keep(r, n);
    return sharpen_captures(r, n, 1, 0);
}

static bool visit_loop(rewriter *r, graph_node *n)
{
    uint32_t carried = (uint32_t)graph_attr_int(n, "carried"), rounds = few_rounds(n);
    bool closed = graph_attr_int(n, "closed") != 0;
    if (!closed && rounds < 2 && rows_are_static(n, carried))
        return rounds == 0 ? take_nothing(r, n, carried) : take_round(r, n, carried);
    bind_captures(r, n, 2 + carried, 1 + carried);
    rewrite_keep(r, n);
    return sharpen_captures(r, n, 2 + carried, 1 + carried);
}

static bool is_static(const graph_node *n)
{
    for (uint32_t i = 0; i < n->n_outputs; i++)
        if (n->outputs[i]->type.kind != TYPE_TENSOR || !shape_is_static(n->outputs[i]->type.shape))
            return false;
    return true;
}

static bool walk(compiler *c, graph_func *f, bool *again)
{
    rewriter r;
    bool ok = true;
    rewrite_begin(&r, c, f);
    for (uint32_t i = 0; ok && i < f->nodes.len; i++) {
        graph_node *n = f->nodes.data[i];
        rewrite_operands(n);
        if (r.changed && !is_static(n)) /* a branch may know more than both did */
            ok = graph_infer_node(c, n);
        if (strcmp(n->op->name, "if") == 0)
            ok = ok && visit_if(&r, n);
        else if (strcmp(n->op->name, "loop") == 0)
            ok = ok && visit_loop(&r, n);
        else
            rewrite_keep(&r, n);
    }
    if (ok)
        rewrite_end(&r);
    *again = r.changed;
    return ok && !r.failed;
}

bool graph_pass_take_branches(compiler *c, graph_module *m, const pass_options *o)
{
    (void)o;
    for (uint32_t i = 0; i < m->funcs.len; i++)
        for (bool again = !graph_is_fixed(m->funcs.data[i]); again;) /* what comes in may branch, too */
            if (!walk(c, m->funcs.data[i], &again))
                return false;
    return true;
}
