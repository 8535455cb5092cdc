/* SPDX-License-Identifier: Apache-2.0 */
/* Building, reading and changing of graphs. Invariants kept here: names are unique, attributes stand in the row's order
 * and differ from their defaults, a value knows the node that makes it. */
#include "graph/graph.h"

#include "base/ptr_map.h"
#include "graph/op.h"
#include "graph/operand.h"

#include <assert.h>
#include <string.h>

/* --- names --- */

static const char *value_name(graph_func *f, const char *want)
{
    compiler *c = f->module->c;
    uint32_t unused = 0;
    if (want && *want)
        return intern_unique(c->names, f->names, want);
    const char *name;
    do
        name = intern(c->names, arena_printf(&c->mem, "%u", f->next_value++));
    while (ptr_map_get(f->names, name, &unused));
    return intern_unique(c->names, f->names, name);
}

static ptr_map *new_names(compiler *c)
{
    ptr_map *m = arena_new(&c->mem, ptr_map);
    ptr_map_init(m, &c->mem);
    return m;
}

/* --- building --- */

graph_module *graph_module_new(compiler *c)
{
    graph_module *m = arena_new(&c->mem, graph_module);
    m->c = c;
    m->names = new_names(c);
    return m;
}

graph_func *graph_func_new(graph_module *m, const char *name)
{
    graph_func *f = arena_new(&m->c->mem, graph_func);
    f->name = intern_unique(m->c->names, m->names, *name ? name : "f");
    f->module = m;
    f->names = new_names(m->c);
    vec_push(&m->c->mem, &m->funcs, f);
    return f;
}

graph_func *graph_module_find(const graph_module *m, const char *name)
{
    for (uint32_t i = 0; i < m->funcs.len; i++)
        if (strcmp(m->funcs.data[i]->name, name) == 0)
            return m->funcs.data[i];
    return NULL;
}

void graph_module_remove(graph_module *m, graph_func *f)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < m->funcs.len; i++)
        if (m->funcs.data[i] != f)
            m->funcs.data[kept++] = m->funcs.data[i];
    m->funcs.len = kept;
}

static graph_value *new_value(graph_func *f, const char *name, graph_node *def, uint32_t index)
{
    graph_value *v = arena_new(&f->module->c->mem, graph_value);
    v->name = value_name(f, name);
    v->def = def;
    v->index = index;
    return v;
}

const char *graph_new_name(graph_func *f, const char *want)
{
    return value_name(f, want);
}

graph_value *graph_add_param(graph_func *f, const char *name, type t)
{
    graph_value *v = new_value(f, name, NULL, f->params.len);
    v->type = t;
    vec_push(&f->module->c->mem, &f->params, v);
    return v;
}

void graph_add_result(graph_func *f, graph_value *v)
{
    assert(v);
    vec_push(&f->module->c->mem, &f->results, v);
}

void graph_add_state(graph_func *f, graph_state s)
{
    vec_push(&f->module->c->mem, &f->states, s);
}

const graph_state *graph_state_of_param(const graph_func *f, uint32_t param)
{
    for (uint32_t i = 0; i < f->states.len; i++)
        if (f->states.data[i].param == param)
            return &f->states.data[i];
    return NULL;
}

const graph_state *graph_state_of_result(const graph_func *f, uint32_t result)
{
    for (uint32_t i = 0; i < f->states.len; i++)
        if (f->states.data[i].result == result)
            return &f->states.data[i];
    return NULL;
}

static const attr *find_attr(uint32_t n, const attr *attrs, const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        if (attrs[i].name == name || strcmp(attrs[i].name, name) == 0)
            return &attrs[i];
    return NULL;
}

static bool is_declared(const graph_op *op, const char *name)
{
    for (uint32_t i = 0; i < op->n_attrs; i++)
        if (strcmp(op->attrs[i].name, name) == 0)
            return true;
    return false;
}

/* Undeclared ones go last, for the verifier to name. */
static void set_attrs(compiler *c, graph_node *n, uint32_t n_attr, const attr *attrs)
{
    attr *kept = arena_array(&c->mem, attr, n_attr);
    uint32_t len = 0;
    for (uint32_t i = 0; i < n->op->n_attrs; i++) {
        const attr *a = find_attr(n_attr, attrs, n->op->attrs[i].name);
        if (a && !attr_equal(a, &n->op->defaults[i]))
            kept[len++] = *a;
    }
    for (uint32_t i = 0; i < n_attr; i++)
        if (!is_declared(n->op, attrs[i].name))
            kept[len++] = attrs[i];
    n->attrs = kept;
    n->n_attrs = len;
}

graph_node *graph_new_node(graph_func *f, const struct graph_op *op, uint32_t n_in, graph_value *const *in,
                           uint32_t n_attr, const attr *attrs, uint32_t n_out, const char *const *out_names,
                           src_loc loc)
{
    compiler *c = f->module->c;
    assert(op);
    graph_node *n = arena_new(&c->mem, graph_node);
    n->op = op;
    n->inputs = arena_copy(&c->mem, in, n_in * sizeof(graph_value *), _Alignof(graph_value *));
    n->n_inputs = n_in;
    n->loc = loc;
    set_attrs(c, n, n_attr, attrs);
    n->outputs = arena_array(&c->mem, graph_value *, n_out);
    n->n_outputs = n_out;
    for (uint32_t i = 0; i < n_out; i++)
        n->outputs[i] = new_value(f, out_names ? out_names[i] : "", n, i);
    return n;
}

graph_node *graph_add_node(graph_func *f, const struct graph_op *op, uint32_t n_in, graph_value *const *in,
                           uint32_t n_attr, const attr *attrs, uint32_t n_out, const char *const *out_names,
                           src_loc loc)
{
    graph_node *n = graph_new_node(f, op, n_in, in, n_attr, attrs, n_out, out_names, loc);
    vec_push(&f->module->c->mem, &f->nodes, n);
    return n;
}

graph_value *graph_add_constant(graph_func *f, const tensor_data *t, const char *name, src_loc loc)
{
    compiler *c = f->module->c;
    attr value = attr_tensor(c, "value", t);
    graph_node *n = graph_add_node(f, graph_find_op(c, "constant"), 0, NULL, 1, &value, 1, &name, loc);
    n->outputs[0]->type = tensor_type(c, t);
    return n->outputs[0];
}

graph_value *graph_detached_constant(compiler *c, const tensor_data *t, const char *name)
{
    attr value = attr_tensor(c, "value", t);
    graph_value *v = arena_new(&c->mem, graph_value);
    graph_node *n = arena_new(&c->mem, graph_node);
    *n = (graph_node){.op = graph_find_op(c, "constant"), .n_outputs = 1, .n_attrs = 1, .loc = src_loc_none()};
    n->attrs = arena_copy(&c->mem, &value, sizeof value, _Alignof(attr));
    n->outputs = arena_copy(&c->mem, &v, sizeof v, _Alignof(graph_value *));
    *v = (graph_value){.name = intern(c->names, name), .def = n, .type = tensor_type(c, t)};
    return v;
}

static graph_value *emit_error(compiler *c, src_loc loc, const char *op, const char *why)
{
    (void)diag_error(&c->diags, DIAG_INTERNAL, loc, "cannot build a node of operator '%s': %s", op, why);
    return NULL;
}

graph_value *graph_emit(graph_func *f, graph_node *before, const char *op, uint32_t n_in, graph_value *const *in,
                        uint32_t n_attr, const attr *attrs, src_loc loc)
{
    compiler *c = f->module->c;
    const graph_op *row = graph_find_op(c, op);
    if (!row)
        return emit_error(c, loc, op, "it is not registered");
    if ((int64_t)n_in < row->min_in || (row->max_in >= 0 && (int64_t)n_in > row->max_in))
        return emit_error(c, loc, op, "wrong number of operands");
    for (uint32_t i = 0; i < n_in; i++)
        if (!in[i] && operand_is_required(row, i))
            return emit_error(c, loc, op, "an operand is missing");
    graph_node *n = graph_new_node(f, row, n_in, in, n_attr, attrs, 1, NULL, loc);
    if (!graph_infer_node(c, n))
        return NULL;
    if (before)
        graph_insert_before(f, before, n);
    else
        vec_push(&c->mem, &f->nodes, n);
    return n->outputs[0];
}

/* --- reading --- */

bool graph_shape_args_known(const graph_node *n)
{
    for (uint32_t i = 1; (n->op->flags & OPF_SHAPE_ARGS) && i < n->n_inputs; i++)
        if (n->inputs[i] && !graph_constant(n->inputs[i]))
            return false;
    return true;
}

/* Takes the factors of the extents apart: the product of the numbers, and the others. false: too many of them. */
#define MOST_FACTORS 64u
static bool factors(shape s, int64_t *product, uint32_t *n, dim *others)
{
    int64_t v = 0;
    for (int32_t i = 0; i < s.rank; i++) {
        const dim *f = NULL;
        uint32_t len = dim_get_kind(s.dims[i]) == DIM_MUL ? dim_operands(s.dims[i], &f) : 0;
        for (uint32_t k = 0; k < (len ? len : 1); k++) {
            dim d = len ? f[k] : s.dims[i];
            if (dim_is_const(d, &v) ? !i64_mul(*product, v, product) : *n == MOST_FACTORS)
                return false;
            if (!dim_is_const(d, &v))
                others[(*n)++] = d;
        }
    }
    return true;
}

/* Whether the factors of both are the same ones. */
static bool same_factors(shape a, shape b)
{
    int64_t x = 1, y = 1;
    dim p[MOST_FACTORS], q[MOST_FACTORS];
    uint32_t np = 0, nq = 0;
    if (!factors(a, &x, &np, p) || !factors(b, &y, &nq, q) || np != nq || x != y)
        return false;
    for (uint32_t i = 0; i < np; i++) { /* of q, what has found its equal goes */
        uint32_t k = 0;
        while (k < nq && q[k] != p[i])
            k++;
        if (k == nq)
            return false;
        q[k] = q[--nq];
    }
    return true;
}

/* The same of the extents' product, as of b (n + 1) elements; what is kept for them is no more than there is. */
static bool same_count(compiler *c, const type *x, const type *y)
{
    if (same_factors(x->shape, y->shape))
        return true;
    const int64_t have = type_most_bytes(x), want = type_most_bytes(y);
    return x->shape.rank >= 0 && y->shape.rank >= 0 && want <= have && (want < 0) == (have < 0) &&
           dim_equal(shape_elements(c, x->shape), shape_elements(c, y->shape));
}

bool graph_is_view(compiler *c, const graph_node *n)
{
    if (!(n->op->flags & OPF_VIEW) || n->n_inputs == 0 || n->n_outputs != 1 || !graph_shape_args_known(n))
        return false;
    const type *x = &n->inputs[0]->type, *y = &n->outputs[0]->type;
    return x->kind != TYPE_TENSOR || y->kind != TYPE_TENSOR || same_count(c, x, y);
}

const attr *graph_attr(const graph_node *n, const char *name)
{
    const attr *a = find_attr(n->n_attrs, n->attrs, name);
    if (a)
        return a;
    for (uint32_t i = 0; i < n->op->n_attrs; i++)
        if (strcmp(n->op->attrs[i].name, name) == 0)
            return n->op->defaults[i].name ? &n->op->defaults[i] : NULL;
    return NULL;
}

static const attr *attr_of_kind(const graph_node *n, const char *name, attr_kind kind)
{
    const attr *a = graph_attr(n, name);
    assert(a && a->kind == kind); /* the verifier has seen to it */
    (void)kind;
    return a;
}

int64_t graph_attr_int(const graph_node *n, const char *name)
{
    return attr_of_kind(n, name, ATTR_INT)->u.i;
}

double graph_attr_float(const graph_node *n, const char *name)
{
    return attr_of_kind(n, name, ATTR_FLOAT)->u.f;
}

const char *graph_attr_string(const graph_node *n, const char *name)
{
    return attr_of_kind(n, name, ATTR_STRING)->u.s;
}

dtype graph_attr_dtype(const graph_node *n, const char *name)
{
    return attr_of_kind(n, name, ATTR_DTYPE)->u.dt;
}

uint32_t graph_attr_ints(const graph_node *n, const char *name, const int64_t **out)
{
    const attr *a = attr_of_kind(n, name, ATTR_INTS);
    *out = a->u.ints;
    return a->n;
}

const tensor_data *graph_constant(const graph_value *v)
{
    if (!v || !v->def || v->def->op->infer != infer_constant)
        return NULL;
    return graph_attr(v->def, "value")->u.tensor;
}

graph_value *graph_operand(const graph_node *n, uint32_t i)
{
    return i < n->n_inputs ? n->inputs[i] : NULL;
}

const tensor_data *graph_dense_constant(const graph_value *v, uint32_t rank)
{
    const tensor_data *t = graph_constant(v);
    return t && t->kind == TENSOR_DENSE && t->count > 0 && t->rank == rank ? t : NULL;
}

bool graph_constant_ints(const graph_value *v, uint32_t max, int64_t *out, uint32_t *out_n)
{
    const tensor_data *t = graph_constant(v);
    *out_n = 0;
    if (!t || !dtype_usable(t->dt) || dtype_is_float(t->dt) || t->count > (int64_t)max)
        return false;
    for (int64_t i = 0; i < t->count; i++)
        out[i] = tensor_get_i64(t, i);
    *out_n = (uint32_t)t->count;
    return true;
}

const attr *graph_func_attr(const graph_func *f, const char *name)
{
    return find_attr(f->attrs.len, f->attrs.data, name);
}

graph_func *graph_callee(const graph_node *n)
{
    return n->op->infer == infer_call ? graph_attr(n, "callee")->u.func : NULL;
}

bool graph_is_primitive(const graph_func *f)
{
    const attr *a = graph_func_attr(f, "primitive");
    return a && a->kind == ATTR_INT && a->u.i != 0;
}

const char *graph_func_text(const graph_func *f, const char *name)
{
    const attr *a = graph_func_attr(f, name);
    return a && a->kind == ATTR_STRING ? a->u.s : NULL;
}

bool graph_is_fixed(const graph_func *f)
{
    return graph_is_primitive(f) || graph_func_text(f, "compiler") || graph_func_text(f, "composite");
}

static graph_effect func_effect(const graph_func *f, ptr_map *seen);

static graph_effect worse(graph_effect a, graph_effect b)
{
    return a > b ? a : b;
}

static graph_effect node_effect(const graph_node *n, ptr_map *seen)
{
    graph_effect effect = n->op->effect;
    for (uint32_t k = 0; k < n->n_attrs; k++)
        if (n->attrs[k].kind == ATTR_FUNC)
            effect = worse(effect, func_effect(n->attrs[k].u.func, seen));
    return effect;
}

/* Calls are not recursive, and each function is looked at once. */
static graph_effect func_effect(const graph_func *f, ptr_map *seen)
{
    uint32_t known = 0;
    graph_effect effect = EFFECT_PURE;
    if (ptr_map_get(seen, f, &known))
        return (graph_effect)known;
    for (uint32_t i = 0; i < f->nodes.len; i++)
        effect = worse(effect, node_effect(f->nodes.data[i], seen));
    ptr_map_set(seen, f, effect);
    return effect;
}

graph_effect graph_effect_of(const graph_node *n)
{
    arena scratch;
    ptr_map seen;
    const graph_func *callee = NULL;
    for (uint32_t k = 0; k < n->n_attrs && !callee; k++)
        callee = n->attrs[k].kind == ATTR_FUNC ? n->attrs[k].u.func : NULL;
    if (!(n->op->flags & OPF_CALL) || !callee)
        return n->op->effect;
    arena_init(&scratch, &callee->module->c->mem);
    ptr_map_init(&seen, &scratch);
    graph_effect effect = node_effect(n, &seen);
    arena_free(&scratch);
    return effect;
}

bool graph_is_pure(const graph_node *n)
{
    return graph_effect_of(n) == EFFECT_PURE;
}

/* --- changing --- */

void graph_set_attr(graph_func *f, graph_node *n, attr a)
{
    compiler *c = f->module->c;
    attr *all = arena_array(&c->mem, attr, n->n_attrs + 1u);
    uint32_t len = 0;
    for (uint32_t i = 0; i < n->n_attrs; i++)
        if (strcmp(n->attrs[i].name, a.name) != 0)
            all[len++] = n->attrs[i];
    all[len++] = a;
    set_attrs(c, n, len, all);
}

void graph_replace_uses(graph_func *f, graph_value *from, graph_value *to)
{
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        graph_node *n = f->nodes.data[i];
        for (uint32_t k = 0; k < n->n_inputs; k++)
            if (n->inputs[k] == from)
                n->inputs[k] = to;
    }
    for (uint32_t i = 0; i < f->results.len; i++)
        if (f->results.data[i] == from)
            f->results.data[i] = to;
}

uint32_t graph_count_uses(const graph_func *f, const graph_value *v)
{
    uint32_t uses = 0;
    for (uint32_t i = 0; i < f->nodes.len; i++)
        for (uint32_t k = 0; k < f->nodes.data[i]->n_inputs; k++)
            uses += f->nodes.data[i]->inputs[k] == v;
    for (uint32_t i = 0; i < f->results.len; i++)
        uses += f->results.data[i] == v;
    return uses;
}

static bool any_output_marked(const graph_node *n)
{
    for (uint32_t i = 0; i < n->n_outputs; i++)
        if (n->outputs[i]->mark)
            return true;
    return false;
}

void graph_remove_dead(graph_func *f)
{
    for (uint32_t i = 0; i < f->nodes.len; i++)
        for (uint32_t k = 0; k < f->nodes.data[i]->n_outputs; k++)
            f->nodes.data[i]->outputs[k]->mark = 0;
    for (uint32_t i = 0; i < f->results.len; i++)
        f->results.data[i]->mark = 1;
    for (uint32_t i = f->nodes.len; i-- > 0;) {
        graph_node *n = f->nodes.data[i];
        n->mark = any_output_marked(n) || graph_effect_of(n) == EFFECT_STATEFUL;
        for (uint32_t k = 0; k < n->n_inputs && n->mark; k++)
            if (n->inputs[k])
                n->inputs[k]->mark = 1;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < f->nodes.len; i++)
        if (f->nodes.data[i]->mark)
            f->nodes.data[kept++] = f->nodes.data[i];
    f->nodes.len = kept;
}

void graph_drop_constants(graph_func *f)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < f->nodes.len; i++)
        for (uint32_t k = 0; k < f->nodes.data[i]->n_outputs; k++)
            f->nodes.data[i]->outputs[k]->mark = 0;
    for (uint32_t i = 0; i < f->nodes.len; i++)
        for (uint32_t k = 0; k < f->nodes.data[i]->n_inputs; k++)
            if (f->nodes.data[i]->inputs[k])
                f->nodes.data[i]->inputs[k]->mark = 1;
    for (uint32_t i = 0; i < f->results.len; i++)
        f->results.data[i]->mark = 1;
    for (uint32_t i = 0; i < f->nodes.len; i++)
        if (f->nodes.data[i]->op->infer != infer_constant || f->nodes.data[i]->outputs[0]->mark)
            f->nodes.data[kept++] = f->nodes.data[i];
    f->nodes.len = kept;
}

void graph_insert_before(graph_func *f, graph_node *at, graph_node *n)
{
    vec_push(&f->module->c->mem, &f->nodes, n);
    uint32_t i = f->nodes.len - 1;
    while (i > 0 && f->nodes.data[i - 1] != at) {
        f->nodes.data[i] = f->nodes.data[i - 1];
        i--;
    }
    assert(i > 0); /* `at` is a node of f */
    f->nodes.data[i] = at;
    f->nodes.data[i - 1] = n;
}

/* mark: 0 not seen, 1 on the stack, 2 placed. A node is placed when all that make its inputs are, which keeps a list
 * that is in order already as it is. An explicit stack: chains are as long as the graph. */
static bool place(arena *a, graph_node *root, graph_node **order, uint32_t *len)
{
    struct frame {
        graph_node *n;
        uint32_t next;
    };
    VEC(struct frame) stack = {0};
    if (root->mark == 2)
        return true;
    root->mark = 1;
    vec_push(a, &stack, (struct frame){root, 0});
    while (stack.len) {
        struct frame *top = &vec_last(&stack);
        if (top->next == top->n->n_inputs) {
            top->n->mark = 2;
            order[(*len)++] = top->n;
            (void)vec_pop(&stack);
            continue;
        }
        const graph_value *v = top->n->inputs[top->next++];
        if (!v || !v->def || v->def->mark == 2)
            continue;
        if (v->def->mark == 1)
            return false;
        v->def->mark = 1;
        vec_push(a, &stack, (struct frame){v->def, 0});
    }
    return true;
}

bool graph_sort(graph_func *f)
{
    arena scratch;
    uint32_t len = 0;
    bool ok = true;
    arena_init(&scratch, &f->module->c->mem);
    graph_node **order = arena_array(&scratch, graph_node *, f->nodes.len);
    for (uint32_t i = 0; i < f->nodes.len; i++)
        f->nodes.data[i]->mark = 0;
    for (uint32_t i = 0; i < f->nodes.len && ok; i++)
        ok = place(&scratch, f->nodes.data[i], order, &len);
    if (ok && len)
        memcpy(f->nodes.data, order, len * sizeof *order);
    arena_free(&scratch);
    return ok;
}
