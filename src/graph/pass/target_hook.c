/* SPDX-License-Identifier: Apache-2.0 */
/* RelayToTIRTargetHook and ExtractPrimFuncConstants: a target may change its regions itself. Its hook may replace nodes
 * and constants of a region, and types are inferred again. Constants that it leaves become parameters, whose operands
 * are constants of the caller, so that a kernel contains only code. The loops of the region then come from the row's
 * `lower`, or from its code generator. */
#include "graph/pass/offload.h"
#include "graph/pass/outline.h"

#include <string.h>

/* --- the hook --- */

static bool rewrite(compiler *c, graph_func *f)
{
    const struct target *row = target_lookup(c, graph_func_text(f, "compiler"));
    uint32_t before = c->diags.errors;
    if (!row || !row->offload || !row->offload->rewrite)
        return true;
    bool ok = row->offload->rewrite(c, f) && c->diags.errors == before;
    if (!ok && c->diags.errors == before)
        diag_error(&c->diags, DIAG_INTERNAL, src_loc_none(),
                   "the hook of target %s failed on @%s without an error message", row->name, f->name);
    return ok;
}

bool graph_pass_target_hook(compiler *c, graph_module *m, const pass_options *o)
{
    uint32_t count = m->funcs.len;
    (void)o;
    for (uint32_t i = 0; i < count; i++)
        if (graph_func_text(m->funcs.data[i], "compiler") && !rewrite(c, m->funcs.data[i]))
            return false;
    offload_drop_composites(m);
    return graph_verify(c, m) && graph_infer(c, m);
}

/* --- constants --- */

/* The constants that became parameters of a function: its last ones. */
typedef struct lifted {
    graph_func *f;
    VEC(graph_node *) constants;
} lifted;

typedef struct lifter {
    compiler *c;
    const struct offload *o;
    VEC(lifted) list; /* the mark of a function: its place here and 1 */
} lifter;

/* Marks values that some node reads as data, not as a literal: one number, or a shape. */
static void mark_data(const graph_func *f)
{
    for (uint32_t i = 0; i < f->nodes.len; i++)
        for (uint32_t k = 0; k < f->nodes.data[i]->n_outputs; k++)
            f->nodes.data[i]->outputs[k]->mark = 0;
    for (uint32_t i = 0; i < f->nodes.len; i++)
        for (uint32_t k = 0; k < f->nodes.data[i]->n_inputs; k++)
            if (f->nodes.data[i]->inputs[k] && !offload_is_literal(f->nodes.data[i], k))
                f->nodes.data[i]->inputs[k]->mark = 1;
    for (uint32_t i = 0; i < f->results.len; i++)
        f->results.data[i]->mark = 1;
}

static void lift(lifter *k, graph_func *f)
{
    uint32_t kept = 0;
    lifted l = {.f = f};
    mark_data(f);
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        graph_node *n = f->nodes.data[i];
        graph_value *v = n->op->infer == infer_constant ? n->outputs[0] : NULL;
        if (!v || !v->mark) {
            f->nodes.data[kept++] = n;
            continue;
        }
        vec_push(&k->c->mem, &l.constants, n);
        v->def = NULL;
        v->index = f->params.len;
        vec_push(&k->c->mem, &f->params, v);
    }
    f->nodes.len = kept;
    if (l.constants.len == 0)
        return;
    vec_push(&k->c->mem, &k->list, l);
    f->mark = k->list.len;
}

/* The constants in front of the call in f. */
static void add_operands(lifter *k, graph_func *f, graph_node *call, const lifted *l, graph_func *to)
{
    uint32_t n = call->n_inputs + l->constants.len;
    graph_value **in = arena_array(&k->c->mem, graph_value *, n);
    for (uint32_t i = 0; i < n; i++) {
        const graph_node *from = i < call->n_inputs ? NULL : l->constants.data[i - call->n_inputs];
        const char *name = l->f->params.data[l->f->params.len - n + i]->name;
        in[i] = from ? NULL : call->inputs[i];
        if (!from)
            continue;
        graph_node *c = graph_new_node(f, from->op, 0, NULL, from->n_attrs, from->attrs, 1, &name, from->loc);
        c->outputs[0]->type = tensor_type(k->c, graph_constant(c->outputs[0]));
        vec_push(&k->c->mem, &to->nodes, c);
        in[i] = c->outputs[0];
    }
    call->inputs = in;
    call->n_inputs = n;
}

static void hand_over(lifter *k, graph_func *f)
{
    graph_func to = {0};
    bool any = false;
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        const graph_func *callee = graph_callee(f->nodes.data[i]);
        any |= callee && callee->mark;
        if (callee && callee->mark)
            add_operands(k, f, f->nodes.data[i], &k->list.data[callee->mark - 1], &to);
        vec_push(&k->c->mem, &to.nodes, f->nodes.data[i]);
    }
    if (!any)
        return;
    f->nodes.data = to.nodes.data;
    f->nodes.len = to.nodes.len;
    f->nodes.cap = to.nodes.cap;
}

static bool wants_parameters(const lifter *k, const graph_func *f)
{
    const char *owner = graph_func_text(f, "compiler");
    const offload_target *t = owner && k->o ? offload_find(k->o, owner) : NULL;
    const struct target *row = owner ? target_lookup(k->c, owner) : NULL;
    return owner && !(t ? t->binds_constants : row && row->offload && row->offload->binds_constants);
}

bool graph_pass_extract_constants(compiler *c, graph_module *m, const pass_options *o)
{
    lifter k = {.c = c, .o = o->offload};
    for (uint32_t i = 0; i < m->funcs.len; i++) {
        m->funcs.data[i]->mark = 0;
        if (wants_parameters(&k, m->funcs.data[i]))
            lift(&k, m->funcs.data[i]);
    }
    for (uint32_t i = 0; i < m->funcs.len && k.list.len; i++)
        hand_over(&k, m->funcs.data[i]);
    return true;
}
