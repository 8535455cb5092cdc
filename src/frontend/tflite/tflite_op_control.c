/* SPDX-License-Identifier: Apache-2.0 */
/* IF and WHILE: graphs of the model become functions that `if` and `loop` call. What such a function reads comes in as
 * an operand; constants are constants in it too, so that shapes and axes are known. A loop carries what its body
 * changes; what the body hands on as it is, which converters write for all that it reads, is only read. */
#include "frontend/tflite/tflite_import.h"

/* What goes into a function: operands of the node that calls it, and for each input of a graph what it is inside. The
 * variables that it reads and writes follow. */
typedef struct region {
    tflite_region self;
    VEC(graph_value *) operands;
    tflite_given *in;
} region;

static graph_func *new_func(tflite_node *n, const char *tail)
{
    return graph_func_new(n->im->module, intern(n->c->names, arena_printf(&n->c->mem, "%.60s.%s", n->loc.node, tail)));
}

static bool is_handle(const tflite_tensor *t)
{
    return t->variable && !t->t->is_variable;
}

/* Input i is operand `operand` of the operator: a parameter, or a constant. */
static void take(tflite_node *n, region *r, uint32_t i, uint32_t operand)
{
    const tflite_tensor *t = tflite_operand(n, operand);
    r->in[i] = (tflite_given){.type = t->type, .data = t->data, .variable = t->variable};
    if (t->data || is_handle(t))
        return;
    graph_value *v = tflite_in(n, operand);
    if (n->failed)
        return;
    vec_push(&n->c->mem, &r->operands, v);
    r->in[i].plain = graph_add_param(r->self.f, t->name, v->type);
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

static bool is_changed(const tflite_crossing *x)
{
    return x->after != x->param;
}

/* What an operator leaves in the variables that its functions change, from result `from` on. */
static void take_states(tflite_node *n, const graph_node *node, uint32_t from, const region *r, const bool *changed)
{
    for (uint32_t i = 0; node && i < r->self.states.len; i++)
        if (changed[i])
            tflite_set_state(n, r->self.states.data[i].variable, node->outputs[from++]);
}

/* --- IF --- */

/* first: the branch whose variables this one has, too; NULL: none. */
static bool import_branch(tflite_node *n, region *r, const tfl_subgraph *g, const char *tail, const region *first)
{
    graph_value **out = arena_array(&n->c->mem, graph_value *, n->n_out + 1u);
    r->self = (tflite_region){.outer = n->im->region, .f = new_func(n, tail)};
    r->in = arena_array(&n->c->mem, tflite_given, n->n_in);
    for (uint32_t i = 1; i < n->n_in && !n->failed; i++)
        take(n, r, i - 1, i);
    for (uint32_t i = 0; first && i < first->self.states.len; i++) {
        const tflite_crossing *x = &first->self.states.data[i];
        (void)tflite_enter_state(n->im, &r->self, x->variable, x->before->type);
    }
    const bool ok = !n->failed && n->im->import_inner(n, g, &r->self, n->n_in - 1, r->in, n->n_out, out);
    tflite_leave_region(&r->self);
    for (uint32_t i = 0; ok && i < n->n_out; i++)
        graph_add_result(r->self.f, out[i]);
    return ok;
}

/* Both branches take and give the same variables: changed tells which they give, out_n how many. */
static const bool *join_states(tflite_node *n, region *a, region *b, uint32_t *out_n)
{
    bool *changed = arena_array(&n->c->mem, bool, b->self.states.len + 1u);
    *out_n = 0;
    for (uint32_t i = a->self.states.len; i < b->self.states.len; i++) {
        tflite_crossing x = b->self.states.data[i];
        x.param = x.after = graph_add_param(a->self.f, x.variable->name, x.before->type);
        vec_push(&n->c->mem, &a->self.states, x);
    }
    for (uint32_t i = 0; i < b->self.states.len; i++) {
        const tflite_crossing *x = &a->self.states.data[i], *y = &b->self.states.data[i];
        changed[i] = is_changed(x) || is_changed(y);
        if (!changed[i])
            continue;
        graph_add_result(a->self.f, x->after);
        graph_add_result(b->self.f, y->after);
        ++*out_n;
    }
    return changed;
}

/* The graph that a constant condition chooses, in the place of the operator. */
static bool import_chosen(tflite_node *n, const tfl_subgraph *g)
{
    graph_value **out = arena_array(&n->c->mem, graph_value *, n->n_out + 1u);
    const tflite_given *in = tflite_given_of(n, 1);
    if (n->failed || !n->im->import_inner(n, g, NULL, n->n_in - 1, in, n->n_out, out))
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
    if (!import_branch(n, &a, yes, "then", NULL) || !import_branch(n, &b, no, "else", &a))
        return false;
    uint32_t n_states;
    const bool *changed = join_states(n, &a, &b, &n_states);
    const graph_func *f = a.self.f, *g = b.self.f;
    for (uint32_t i = 0; i < f->results.len; i++)
        if (!type_equal(&f->results.data[i]->type, &g->results.data[i]->type))
            return tflite_fail(n, DIAG_UNSUPPORTED, i < n->n_out ? "result %u has another type or shape in each branch"
                               : "variable %u has another type or shape in each branch",
                               i < n->n_out ? i : i - n->n_out);
    VEC(graph_value *) in = {0};
    vec_push(&n->c->mem, &in, tflite_in(n, 0));
    for (uint32_t i = 0; i < a.operands.len; i++)
        vec_push(&n->c->mem, &in, a.operands.data[i]);
    for (uint32_t i = 0; i < a.self.states.len; i++)
        vec_push(&n->c->mem, &in, a.self.states.data[i].before);
    const attr attrs[2] = {attr_func(n->c, "then_branch", a.self.f), attr_func(n->c, "else_branch", b.self.f)};
    const graph_node *node = call(n, "if", in.len, in.data, attrs, n->n_out + n_states);
    take_states(n, node, n->n_out, &a, changed);
    for (uint32_t i = 0; node && i < n->n_out; i++)
        (void)tflite_result(n, i, node->outputs[i]);
    return !n->failed;
}

/* --- WHILE --- */

typedef struct loop {
    region r;
    const tfl_subgraph *goes_on, *body;
    graph_value **next; /* each value behind a round */
    uint32_t carried;   /* of them; variables that the body changes follow */
} loop;

static bool is_handed_on(const tflite_node *n, const loop *l, uint32_t i)
{
    return is_handle(tflite_operand(n, i)) || flat_i32(l->body->inputs, i) == flat_i32(l->body->outputs, i);
}

/* Parameters: the round, what is carried, what stays. */
static void open_body(tflite_node *n, loop *l)
{
    l->r.self = (tflite_region){.outer = n->im->region, .f = new_func(n, "body")};
    l->r.in = arena_array(&n->c->mem, tflite_given, n->n_in);
    l->next = arena_array(&n->c->mem, graph_value *, n->n_in);
    (void)graph_add_param(l->r.self.f, "round", type_static(n->c, DT_I64, 0, NULL));
    for (uint32_t i = 0; i < n->n_in && !n->failed; i++) {
        tflite_tensor *t = tflite_operand(n, i);
        graph_value *v = is_handed_on(n, l, i) ? NULL : tflite_in(n, i);
        if (!v || n->failed)
            continue;
        vec_push(&n->c->mem, &l->r.operands, v);
        l->r.in[i] = (tflite_given){.type = v->type, .plain = graph_add_param(l->r.self.f, t->name, v->type)};
        l->carried++;
    }
    for (uint32_t i = 0; i < n->n_in && !n->failed; i++)
        if (is_handed_on(n, l, i))
            take(n, &l->r, i, i);
}

/* The values behind a round, which have the types of those before. */
static bool import_round(tflite_node *n, loop *l, graph_value **again)
{
    open_body(n, l);
    if (n->failed || !n->im->import_inner(n, l->body, &l->r.self, n->n_in, l->r.in, n->n_in, l->next))
        return false;
    for (uint32_t i = 0; i < n->n_in; i++) {
        if (is_handed_on(n, l, i))
            continue;
        if (!type_equal(&l->next[i]->type, &l->r.in[i].type))
            return tflite_fail(n, DIAG_UNSUPPORTED, "value %u has another type or shape behind a round than before", i);
        l->r.in[i].plain = l->next[i];
    }
    return n->im->import_inner(n, l->goes_on, &l->r.self, n->n_in, l->r.in, 1, again);
}

/* Parameter `from` of f comes in the place `to` in front of it, as the operand does. */
static void move_param(region *r, uint32_t from, uint32_t to)
{
    graph_func *f = r->self.f;
    graph_value *param = f->params.data[from], *operand = r->operands.data[from - 1];
    for (uint32_t i = from; i > to; i--) {
        f->params.data[i] = f->params.data[i - 1];
        f->params.data[i]->index = i;
        r->operands.data[i - 1] = r->operands.data[i - 2];
    }
    f->params.data[to] = param;
    param->index = to;
    r->operands.data[to - 1] = operand;
}

/* Variables that the body changes are carried, and others stay. changed: which are. */
static bool carry_states(tflite_node *n, loop *l, bool *changed, uint32_t *out_n)
{
    const uint32_t first = l->r.operands.len + 1;
    *out_n = 0;
    for (uint32_t i = 0; i < l->r.self.states.len; i++) {
        const tflite_crossing *x = &l->r.self.states.data[i];
        vec_push(&n->c->mem, &l->r.operands, x->before);
        changed[i] = is_changed(x);
        if (!changed[i])
            continue;
        if (!type_equal(&x->after->type, &x->param->type))
            return tflite_fail(n, DIAG_UNSUPPORTED, "the variable '%s' has another type or shape behind a round than "
                               "before", x->variable->name);
        graph_add_result(l->r.self.f, x->after);
        move_param(&l->r, first + i, 1 + l->carried + (*out_n)++);
    }
    return true;
}

/* One round, and whether another one follows. */
static bool import_body(tflite_node *n, loop *l)
{
    graph_value *again = NULL;
    const bool ok = import_round(n, l, &again);
    tflite_leave_region(&l->r.self);
    if (!ok)
        return false;
    graph_add_result(l->r.self.f, again);
    for (uint32_t i = 0; i < n->n_in; i++)
        if (!is_handed_on(n, l, i))
            graph_add_result(l->r.self.f, l->next[i]);
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
    if (!n->im->import_inner(n, l.goes_on, NULL, n->n_in, first, 1, &begins) || !import_body(n, &l))
        return false;
    uint32_t n_states;
    bool *changed = arena_array(&n->c->mem, bool, l.r.self.states.len + 1u);
    if (!carry_states(n, &l, changed, &n_states))
        return false;
    vec_push(&n->c->mem, &in, NULL); /* any number of rounds */
    vec_push(&n->c->mem, &in, begins);
    for (uint32_t i = 0; i < l.r.operands.len; i++)
        vec_push(&n->c->mem, &in, l.r.operands.data[i]);
    const uint32_t carried = l.carried + n_states;
    const attr attrs[2] = {attr_func(n->c, "body", l.r.self.f), attr_int(n->c, "carried", carried)};
    const graph_node *node = call(n, "loop", in.len, in.data, attrs, carried);
    take_states(n, node, l.carried, &l.r, changed);
    for (uint32_t i = 0, k = 0; node && i < n->n_in; i++) {
        tflite_tensor *t = tflite_operand(n, i);
        if (is_handle(t))
            tflite_operand(n, TFLITE_RESULT + i)->variable = t->variable;
        else
            (void)tflite_result(n, i, is_handed_on(n, &l, i) ? tflite_in(n, i) : node->outputs[k++]);
    }
    return !n->failed;
}
