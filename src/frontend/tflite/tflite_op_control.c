/* SPDX-License-Identifier: Apache-2.0 */
/* IF and WHILE: graphs of the model become functions that `if` and `loop` call. What such a function reads comes in as
 * an operand; constants are constants in it too, so that shapes and axes are known. A loop carries what its body
 * changes; what the body hands on as it is, which converters write for all that it reads, is only read. */
#include "frontend/tflite/tflite_import.h"

/* What goes into a function: operands of the node that calls it, and for each input of a graph what it is inside. */
typedef struct region {
    graph_func *f;
    VEC(graph_value *) operands;
    tflite_given *in;
} region;

static graph_func *new_func(tflite_node *n, const char *tail)
{
    return graph_func_new(n->im->module, intern(n->c->names, arena_printf(&n->c->mem, "%.60s.%s", n->loc.node, tail)));
}

/* Input i is operand `operand` of the operator: a parameter, or a constant. */
static void take(tflite_node *n, region *r, uint32_t i, uint32_t operand)
{
    const tflite_tensor *t = tflite_operand(n, operand);
    r->in[i] = (tflite_given){.type = t->type, .data = t->data};
    if (t->data)
        return;
    graph_value *v = tflite_in(n, operand);
    if (n->failed)
        return;
    vec_push(&n->c->mem, &r->operands, v);
    r->in[i].plain = graph_add_param(r->f, t->name, v->type);
    r->in[i].type = v->type;
}

static graph_node *call(tflite_node *n, const char *op, uint32_t n_in, graph_value *const *in, const attr *attrs,
                        uint32_t n_out)
{
    const char **names = arena_array(&n->c->mem, const char *, n_out + 1u);
    for (uint32_t i = 0; i < n_out; i++)
        names[i] = "";
    graph_node *node = n->failed ? NULL
                                 : graph_add_node(n->f, graph_find_op(n->c, op), n_in, in, 2, attrs, n_out, names,
                                                  n->loc);
    n->failed = !node || !graph_infer_node(n->c, node);
    return n->failed ? NULL : node;
}

/* --- IF --- */

static bool import_branch(tflite_node *n, region *r, const tfl_subgraph *g, const char *tail)
{
    graph_value **out = arena_array(&n->c->mem, graph_value *, n->n_out + 1u);
    r->f = new_func(n, tail);
    r->in = arena_array(&n->c->mem, tflite_given, n->n_in);
    for (uint32_t i = 1; i < n->n_in && !n->failed; i++)
        take(n, r, i - 1, i);
    if (n->failed || !n->im->import_inner(n, g, r->f, n->n_in - 1, r->in, n->n_out, out))
        return false;
    for (uint32_t i = 0; i < n->n_out; i++)
        graph_add_result(r->f, out[i]);
    return true;
}

/* The graph that a constant condition chooses, in the place of the operator. */
static bool import_chosen(tflite_node *n, const tfl_subgraph *g)
{
    graph_value **out = arena_array(&n->c->mem, graph_value *, n->n_out + 1u);
    const tflite_given *in = tflite_given_of(n, 1);
    if (n->failed || !n->im->import_inner(n, g, n->f, n->n_in - 1, in, n->n_out, out))
        return false;
    for (uint32_t i = 0; i < n->n_out; i++)
        (void)tflite_result(n, i, out[i]);
    return !n->failed;
}

bool tflite_op_if(tflite_node *n)
{
    const tfl_if_options *o = n->options;
    const tensor_data *known = tflite_constant(n, 0);
    const tfl_subgraph *yes = tflite_graph_at(n, o->then_subgraph_index);
    const tfl_subgraph *no = tflite_graph_at(n, o->else_subgraph_index);
    region a = {0}, b = {0};
    if (n->failed || !tflite_given_of(n, 0))
        return false;
    if (known && known->count == 1)
        return import_chosen(n, tensor_get_i64(known, 0) ? yes : no);
    if (!import_branch(n, &a, yes, "then") || !import_branch(n, &b, no, "else"))
        return false;
    for (uint32_t i = 0; i < n->n_out; i++)
        if (!type_equal(&a.f->results.data[i]->type, &b.f->results.data[i]->type))
            return tflite_fail(n, DIAG_UNSUPPORTED, "result %u has another type or shape in each branch", i);
    VEC(graph_value *) in = {0};
    vec_push(&n->c->mem, &in, tflite_in(n, 0));
    for (uint32_t i = 0; i < a.operands.len; i++)
        vec_push(&n->c->mem, &in, a.operands.data[i]);
    const attr attrs[2] = {attr_func(n->c, "then_branch", a.f), attr_func(n->c, "else_branch", b.f)};
    const graph_node *node = call(n, "if", in.len, in.data, attrs, n->n_out);
    for (uint32_t i = 0; node && i < n->n_out; i++)
        (void)tflite_result(n, i, node->outputs[i]);
    return !n->failed;
}

/* --- WHILE --- */

typedef struct loop {
    region r;
    const tfl_subgraph *goes_on, *body;
    graph_value **next; /* each value behind a round */
    uint32_t carried;
} loop;

static bool is_handed_on(const loop *l, uint32_t i)
{
    return flat_i32(l->body->inputs, i) == flat_i32(l->body->outputs, i);
}

/* Parameters: the round, what is carried, what stays. */
static void open_body(tflite_node *n, loop *l)
{
    l->r.f = new_func(n, "body");
    l->r.in = arena_array(&n->c->mem, tflite_given, n->n_in);
    l->next = arena_array(&n->c->mem, graph_value *, n->n_in);
    (void)graph_add_param(l->r.f, "round", type_static(n->c, DT_I64, 0, NULL));
    for (uint32_t i = 0; i < n->n_in && !n->failed; i++) {
        tflite_tensor *t = tflite_operand(n, i);
        graph_value *v = is_handed_on(l, i) ? NULL : tflite_in(n, i);
        if (!v || n->failed)
            continue;
        vec_push(&n->c->mem, &l->r.operands, v);
        l->r.in[i] = (tflite_given){.type = v->type, .plain = graph_add_param(l->r.f, t->name, v->type)};
        l->carried++;
    }
    for (uint32_t i = 0; i < n->n_in && !n->failed; i++)
        if (is_handed_on(l, i))
            take(n, &l->r, i, i);
}

/* One round, and whether another one follows. */
static bool import_body(tflite_node *n, loop *l)
{
    graph_value *again = NULL;
    open_body(n, l);
    if (n->failed || !n->im->import_inner(n, l->body, l->r.f, n->n_in, l->r.in, n->n_in, l->next))
        return false;
    for (uint32_t i = 0; i < n->n_in; i++) {
        if (is_handed_on(l, i))
            continue;
        if (!type_equal(&l->next[i]->type, &l->r.in[i].type))
            return tflite_fail(n, DIAG_UNSUPPORTED, "value %u has another type or shape behind a round than before", i);
        l->r.in[i].plain = l->next[i];
    }
    if (!n->im->import_inner(n, l->goes_on, l->r.f, n->n_in, l->r.in, 1, &again))
        return false;
    graph_add_result(l->r.f, again);
    for (uint32_t i = 0; i < n->n_in; i++)
        if (!is_handed_on(l, i))
            graph_add_result(l->r.f, l->next[i]);
    return true;
}

bool tflite_op_while(tflite_node *n)
{
    const tfl_while_options *o = n->options;
    loop l = {.goes_on = tflite_graph_at(n, o->cond_subgraph_index)};
    const tflite_given *first = tflite_given_of(n, 0);
    VEC(graph_value *) in = {0};
    graph_value *begins = NULL;
    l.body = tflite_graph_at(n, o->body_subgraph_index);
    if (n->failed)
        return false;
    if (n->n_out != n->n_in || l.body->inputs.len != n->n_in || l.body->outputs.len != n->n_in)
        return tflite_fail(n, DIAG_FORMAT, "it and its body must have as many results as operands");
    if (!n->im->import_inner(n, l.goes_on, n->f, n->n_in, first, 1, &begins) || !import_body(n, &l))
        return false;
    vec_push(&n->c->mem, &in, NULL); /* any number of rounds */
    vec_push(&n->c->mem, &in, begins);
    for (uint32_t i = 0; i < l.r.operands.len; i++)
        vec_push(&n->c->mem, &in, l.r.operands.data[i]);
    const attr attrs[2] = {attr_func(n->c, "body", l.r.f), attr_int(n->c, "carried", l.carried)};
    const graph_node *node = call(n, "loop", in.len, in.data, attrs, l.carried);
    for (uint32_t i = 0, k = 0; node && i < n->n_in; i++)
        (void)tflite_result(n, i, is_handed_on(&l, i) ? tflite_in(n, i) : node->outputs[k++]);
    return !n->failed;
}
