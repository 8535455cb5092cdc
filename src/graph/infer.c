/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the types of all values, starting with the parameters. Operands are checked here against the row's text, so
 * type relations see only tensors of known rank and need not check this. A node whose operands are poisoned (they have
 * no type after an error) is skipped without a message. */
#include "graph/op.h"
#include "graph/operand.h"

static bool check_operand(compiler *c, const graph_node *n, uint32_t i)
{
    const graph_value *v = n->inputs[i];
    if (!v)
        return !operand_is_required(n->op, i) || infer_error(c, n, "operand %u is required", i);
    if (v->type.kind == TYPE_NONE) {
        if (c->diags.errors == 0)
            return infer_error(c, n, "operand %%%s has no type", v->name);
        return false;
    }
    if (n->op->flags & OPF_CALL)
        return true;
    if (v->type.kind != TYPE_TENSOR)
        return infer_error(c, n, "operand %%%s is a sequence or an optional", v->name);
    if (v->type.shape.rank < 0) {
        (void)infer_error(c, n, "the rank of operand %%%s is unknown", v->name);
        diag_hint(&c->diags, "give its shape with --shape, or declare it in the model");
        return false;
    }
    return true;
}

/* Constants that contradict each other. */
static bool contradicts(const type *declared, const type *t)
{
    int64_t a = 0, b = 0;
    if (declared->shape.rank < 0 || t->shape.rank < 0)
        return false;
    if (declared->shape.rank != t->shape.rank)
        return true;
    for (int32_t i = 0; i < t->shape.rank; i++)
        if (dim_is_const(declared->shape.dims[i], &a) && dim_is_const(t->shape.dims[i], &b) && a != b)
            return true;
    return false;
}

/* Where nothing bounds an extent that data decides, the model's number does, or what it computes: it can only be too
 * small when the model declares what it does not mean, and then a run says so. */
static void bound_by(compiler *c, const type *declared, const type *t)
{
    for (int32_t i = 0; i < t->shape.rank && declared->shape.rank == t->shape.rank; i++) {
        dim d = declared->shape.dims[i];
        if (dim_is_fresh(t->shape.dims[i]) && dim_bound(t->shape.dims[i]) < 0 && !dim_symbol_name(d))
            (void)dim_symbol(c, dim_symbol_name(t->shape.dims[i]), dim_bound(d));
    }
}

/* Brings what was inferred and what the model declares together. Wrong shapes in a model's value_info are common, and
 * harmless since the inferred one is right: a warning. A wrong dtype means that the model is meant differently. */
static bool settle(compiler *c, const graph_node *n, uint32_t i, type *t)
{
    type *declared = &n->outputs[i]->declared;
    if (declared->kind != TYPE_TENSOR || t->kind != TYPE_TENSOR)
        return true;
    if (declared->dt != t->dt)
        return infer_error(c, n, "%%%s is declared as %s but is %s", n->outputs[i]->name, dtype_name(declared->dt),
                           dtype_name(t->dt));
    if (t->shape.rank < 0 && declared->shape.rank >= 0)
        t->shape = declared->shape;
    bound_by(c, declared, t);
    if (contradicts(declared, t)) {
        writer a, b;
        writer_init(&a, &c->mem);
        writer_init(&b, &c->mem);
        type_print(&a, declared);
        type_print(&b, t);
        (void)diag_warning(&c->diags, DIAG_TYPE, n->loc, "%%%s is declared as %s but is %s", n->outputs[i]->name,
                           a.data, b.data);
        *declared = (type){0};
    }
    return true;
}

/* What no kernel can hold: too many axes, a negative extent, more bytes than an int64 counts. */
static bool storable(compiler *c, const type *t, const char *name, src_loc loc)
{
    int64_t v = 0;
    if (t->kind != TYPE_TENSOR)
        return true;
    if (t->shape.rank > (int32_t)TYPE_MAX_RANK)
        return diag_error(&c->diags, DIAG_TYPE, loc, "%%%s has rank %d; at most %u is supported", name, t->shape.rank,
                          TYPE_MAX_RANK);
    for (int32_t i = 0; i < t->shape.rank; i++)
        if (dim_is_const(t->shape.dims[i], &v) && v < 0)
            return diag_error(&c->diags, DIAG_TYPE, loc, "%%%s has extent %lld on axis %d", name, (long long)v, i);
    if (shape_is_static(t->shape) && (shape_count(t->shape) < 0 || (dtype_bits(t->dt) > 0 && type_bytes(t) < 0)))
        return diag_error(&c->diags, DIAG_TYPE, loc, "%%%s is too large: its size in bytes does not fit 63 bits", name);
    return true;
}

bool graph_relate(compiler *c, const graph_node *n, type *out)
{
    return operands_check(c, n) && n->op->infer(c, n, out);
}

static bool all_static(const graph_node *n)
{
    bool known = true;
    for (uint32_t i = 0; i < n->n_inputs; i++)
        known = known && (!infer_in(n, i) || shape_is_static(infer_in(n, i)->shape));
    for (uint32_t i = 0; i < n->n_outputs; i++)
        known = known && shape_is_static(n->outputs[i]->type.shape);
    return known;
}

bool graph_demands(compiler *c, const graph_node *n, extent_demands *out)
{
    if (all_static(n))
        return true;
    extent_demands *const outer = c->demands;
    c->demands = out;
    const bool ok = graph_relate(c, n, arena_array(&c->mem, type, n->n_outputs));
    c->demands = outer;
    return ok;
}

static uint32_t count_unbounded(const graph_node *n)
{
    uint32_t found = 0;
    for (uint32_t a = 0; a < n->n_attrs && (n->op->flags & OPF_CALL); a++) {
        const graph_func *f = n->attrs[a].kind == ATTR_FUNC ? n->attrs[a].u.func : NULL;
        for (uint32_t i = 0; f && i < f->params.len; i++)
            if (f->params.data[i]->type.kind == TYPE_TENSOR)
                for (int32_t k = 0; k < f->params.data[i]->type.shape.rank; k++)
                    found += dim_bound(f->params.data[i]->type.shape.dims[k]) < 0;
    }
    return found;
}

/* A loop's relation may have found a bound for what the body takes: with it, bounds follow inside. */
static bool infer_bodies(compiler *c, const graph_node *n)
{
    bool ok = true;
    for (uint32_t a = 0; a < n->n_attrs; a++)
        for (uint32_t i = 0; n->attrs[a].kind == ATTR_FUNC && i < n->attrs[a].u.func->nodes.len; i++)
            ok = graph_infer_node(c, n->attrs[a].u.func->nodes.data[i]) && ok;
    return ok;
}

bool graph_infer_node(compiler *c, graph_node *n)
{
    uint32_t unbounded = count_unbounded(n);
    bool ok = true;
    for (uint32_t i = 0; i < n->n_inputs && ok; i++)
        ok = check_operand(c, n, i);
    type few[4] = {{0}}, *out = few;
    if (n->n_outputs > sizeof few / sizeof *few)
        out = arena_array(&c->mem, type, n->n_outputs);
    ok = ok && graph_relate(c, n, out);
    for (uint32_t i = 0; i < n->n_outputs && ok; i++)
        ok = settle(c, n, i, &out[i]) && storable(c, &out[i], n->outputs[i]->name, n->loc);
    for (uint32_t i = 0; i < n->n_outputs; i++)
        n->outputs[i]->type = ok ? out[i] : (type){0};
    if (ok && unbounded > 0 && count_unbounded(n) < unbounded)
        ok = infer_bodies(c, n);
    return ok;
}

/* --- modules --- */

static void infer_func(compiler *c, graph_func *f)
{
    for (uint32_t i = 0; i < f->params.len; i++)
        if (f->params.data[i]->type.kind == TYPE_NONE)
            (void)diag_error(&c->diags, DIAG_TYPE, src_loc_none(), "parameter %%%s of @%s has no type",
                             f->params.data[i]->name, f->name);
        else
            (void)storable(c, &f->params.data[i]->type, f->params.data[i]->name, src_loc_none());
    for (uint32_t i = 0; i < f->nodes.len; i++)
        (void)graph_infer_node(c, f->nodes.data[i]);
}

/* Callees first. The verifier has bounded the depth of calls. */
static void visit(compiler *c, graph_func *f)
{
    if (f->mark)
        return;
    f->mark = 1;
    for (uint32_t i = 0; i < f->nodes.len; i++)
        for (uint32_t k = 0; k < f->nodes.data[i]->n_attrs; k++)
            if (f->nodes.data[i]->attrs[k].kind == ATTR_FUNC)
                visit(c, f->nodes.data[i]->attrs[k].u.func);
    infer_func(c, f);
}

bool graph_infer(compiler *c, graph_module *m)
{
    uint32_t before = c->diags.errors;
    for (uint32_t i = 0; i < m->funcs.len; i++)
        m->funcs.data[i]->mark = 0;
    for (uint32_t i = 0; i < m->funcs.len; i++)
        visit(c, m->funcs.data[i]);
    return c->diags.errors == before;
}
