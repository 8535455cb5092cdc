/* SPDX-License-Identifier: Apache-2.0 */
/* From nodes to a function and a call of it. The nodes are copied with their locations; values keep their names inside
 * the function, and what leaves stays the same value object outside. */
#include "graph/pass/outline.h"
#include "base/ptr_map.h"

#define MAX_SHAPE_ARG 64

typedef struct outliner {
    compiler *c;
    const outline_spec *s;
    graph_func *inner_func;
    arena scratch;
    ptr_map at; /* outer value -> position in inner */
    VEC(graph_value *) inner;
    VEC(graph_value *) operands; /* of the call, one for each parameter */
} outliner;

static void map(outliner *o, const graph_value *outer, graph_value *inner)
{
    ptr_map_set(&o->at, outer, o->inner.len);
    vec_push(&o->scratch, &o->inner, inner);
}

static graph_value *operand(outliner *o, const graph_node *n, uint32_t i)
{
    graph_value *v = n->inputs[i], *inner;
    uint32_t at = 0;
    if (!v)
        return NULL;
    if (ptr_map_get(&o->at, v, &at))
        return o->inner.data[at];
    if (graph_constant(v) && o->s->takes(o->s->context, n, i)) {
        inner = graph_add_constant(o->inner_func, graph_constant(v), v->name, v->def->loc);
    } else {
        inner = graph_add_param(o->inner_func, v->name, v->type);
        vec_push(&o->scratch, &o->operands, v);
    }
    map(o, v, inner);
    return inner;
}

/* The declared type is what a relation falls back on when an operand that was constant outside is a parameter here. */
static void copy_node(outliner *o, const graph_node *n)
{
    graph_value **in = arena_array(&o->scratch, graph_value *, n->n_inputs);
    const char **names = arena_array(&o->scratch, const char *, n->n_outputs);
    for (uint32_t i = 0; i < n->n_inputs; i++)
        in[i] = operand(o, n, i);
    for (uint32_t i = 0; i < n->n_outputs; i++)
        names[i] = n->outputs[i]->name;
    graph_node *k =
        graph_add_node(o->inner_func, n->op, n->n_inputs, in, n->n_attrs, n->attrs, n->n_outputs, names, n->loc);
    for (uint32_t i = 0; i < n->n_outputs; i++) {
        k->outputs[i]->type = n->outputs[i]->type;
        k->outputs[i]->declared =
            n->outputs[i]->declared.kind == TYPE_NONE ? n->outputs[i]->type : n->outputs[i]->declared;
        map(o, n->outputs[i], k->outputs[i]);
    }
}

static graph_node *make_call(outliner *o, graph_func *f)
{
    compiler *c = o->c;
    const outline_spec *s = o->s;
    attr callee = attr_func(c, "callee", o->inner_func);
    graph_node *call =
        graph_new_node(f, graph_find_op(c, "call"), o->operands.len, o->operands.data, 1, &callee, 0, NULL, s->loc);
    call->outputs = arena_array(&c->mem, graph_value *, s->n_results);
    call->n_outputs = s->n_results;
    for (uint32_t i = 0; i < s->n_results; i++) {
        uint32_t at = 0;
        (void)ptr_map_get(&o->at, s->results[i], &at);
        graph_add_result(o->inner_func, o->inner.data[at]);
        call->outputs[i] = s->results[i];
        call->outputs[i]->def = call;
        call->outputs[i]->index = i;
    }
    return call;
}

graph_node *graph_outline(compiler *c, graph_func *f, const outline_spec *s)
{
    outliner o = {.c = c, .s = s};
    arena_init(&o.scratch, &c->mem);
    ptr_map_init(&o.at, &o.scratch);
    o.inner_func = graph_func_new(f->module, s->name);
    for (uint32_t i = 0; i < s->n_attrs; i++)
        vec_push(&c->mem, &o.inner_func->attrs, s->attrs[i]);
    for (uint32_t i = 0; i < s->n_nodes; i++)
        copy_node(&o, s->nodes[i]);
    graph_node *call = make_call(&o, f);
    arena_free(&o.scratch);
    return call;
}

bool graph_is_shape_arg(const graph_node *n, uint32_t i)
{
    const tensor_data *t = graph_constant(n->inputs[i]);
    return t && i > 0 && (n->op->flags & OPF_SHAPE_ARGS) && t->count <= MAX_SHAPE_ARG;
}

bool graph_is_literal(const graph_node *n, uint32_t i)
{
    const tensor_data *t = graph_constant(n->inputs[i]);
    return t && (t->count == 1 || t->kind == TENSOR_SPLAT || graph_is_shape_arg(n, i));
}
