/* SPDX-License-Identifier: Apache-2.0 */
/* Graph to text, as docs/reference/graph-ir.md has it. Order is the order of creation; what equals its default is left
 * out. */
#include "graph/op.h"
#include "graph/text.h"

#include <string.h>

/* --- symbols with bounds: "where n <= 64", in order of appearance --- */

typedef struct bounds {
    arena *a;
    VEC(dim) seen;
} bounds;

static void collect_dim(bounds *b, dim d)
{
    const dim *ops = NULL;
    uint32_t n = dim_operands(d, &ops);
    for (uint32_t i = 0; i < n; i++)
        collect_dim(b, ops[i]);
    if (!dim_symbol_name(d) || dim_bound(d) < 0)
        return;
    for (uint32_t i = 0; i < b->seen.len; i++)
        if (dim_equal(b->seen.data[i], d))
            return;
    vec_push(b->a, &b->seen, d);
}

static void collect_type(bounds *b, const type *t)
{
    if (t->kind == TYPE_SEQUENCE || t->kind == TYPE_OPTIONAL)
        collect_type(b, t->elem);
    else if (t->kind == TYPE_TENSOR)
        for (int32_t i = 0; i < t->shape.rank; i++)
            collect_dim(b, t->shape.dims[i]);
}

static void print_bounds(writer *w, const graph_func *f)
{
    bounds b = {.a = w->a};
    for (uint32_t i = 0; i < f->params.len; i++)
        collect_type(&b, &f->params.data[i]->type);
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        const graph_node *n = f->nodes.data[i];
        for (uint32_t k = 0; k < n->n_outputs; k++) {
            collect_type(&b, &n->outputs[k]->type);
            collect_type(&b, &n->outputs[k]->declared);
        }
    }
    for (uint32_t i = 0; i < b.seen.len; i++)
        w_fmt(w, "%s%s <= %lld", i ? ", " : " where ", dim_symbol_name(b.seen.data[i]),
              (long long)dim_bound(b.seen.data[i]));
}

/* --- nodes --- */

static void print_values(writer *w, uint32_t n, graph_value *const *v)
{
    for (uint32_t i = 0; i < n; i++) {
        w_str(w, i ? ", " : "");
        if (v[i])
            w_name(w, '%', v[i]->name);
        else
            w_str(w, "_");
    }
}

static void print_attrs(writer *w, const graph_node *n)
{
    for (uint32_t i = 0; i < n->n_attrs; i++) {
        w_fmt(w, "%s%s = ", i ? ", " : " {", n->attrs[i].name);
        graph_print_attr(w, &n->attrs[i]);
    }
    if (n->n_attrs)
        w_str(w, "}");
}

static void print_result_types(writer *w, const graph_node *n)
{
    bool any = false;
    for (uint32_t i = 0; i < n->n_outputs; i++)
        any |= n->outputs[i]->type.kind != TYPE_NONE || n->outputs[i]->declared.kind != TYPE_NONE;
    for (uint32_t i = 0; i < n->n_outputs && any; i++) {
        const graph_value *v = n->outputs[i];
        w_str(w, i ? ", " : " : ");
        type_print(w, &v->type);
        if (v->declared.kind == TYPE_NONE || type_equal(&v->declared, &v->type))
            continue;
        w_str(w, " declared ");
        type_print(w, &v->declared);
    }
}

void graph_print_signature(writer *w, const graph_node *n)
{
    w_fmt(w, "%s(", n->op->name);
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        w_str(w, i ? ", " : "");
        if (n->inputs[i])
            type_print(w, &n->inputs[i]->type);
        else
            w_str(w, "_");
    }
    w_str(w, ")");
    print_attrs(w, n);
    print_result_types(w, n);
}

static void print_annotation(writer *w, const graph_node *n)
{
    if (!n->compiler)
        return;
    w_str(w, " on ");
    w_quoted(w, n->compiler, strlen(n->compiler));
    if (n->region)
        w_fmt(w, " region %u", n->region);
}

/* Positions in a text are not printed: they would differ with each printing. */
static void print_loc(writer *w, const src_loc *loc)
{
    if (loc->line || (loc->node_index < 0 && !loc->node))
        return;
    w_str(w, " loc(");
    if (loc->file) {
        w_quoted(w, loc->file, strlen(loc->file));
        w_str(w, ", ");
    }
    w_fmt(w, "%d, ", (int)loc->node_index);
    w_quoted(w, loc->node ? loc->node : "", loc->node ? strlen(loc->node) : 0);
    if (loc->op) {
        w_str(w, ", ");
        w_quoted(w, loc->op, strlen(loc->op));
    }
    w_str(w, ")");
}

void graph_print_call(writer *w, const graph_node *n)
{
    print_values(w, n->n_outputs, n->outputs);
    w_fmt(w, "%s%s", n->n_outputs ? " = " : "", n->op->name);
    if (n->op->infer == infer_constant && n->n_attrs == 1 && n->attrs[0].kind == ATTR_TENSOR) {
        w_str(w, " ");
        graph_print_attr(w, &n->attrs[0]);
    } else {
        w_str(w, "(");
        print_values(w, n->n_inputs, n->inputs);
        w_str(w, ")");
        print_attrs(w, n);
        print_result_types(w, n);
    }
}

static void print_node(writer *w, const graph_node *n)
{
    graph_print_call(w, n);
    print_annotation(w, n);
    print_loc(w, &n->loc);
    w_str(w, "\n");
}

/* --- functions --- */

static void print_head(writer *w, const graph_func *f)
{
    w_str(w, "func ");
    w_name(w, '@', f->name);
    w_str(w, "(");
    for (uint32_t i = 0; i < f->params.len; i++) {
        w_str(w, i ? ", " : "");
        w_name(w, '%', f->params.data[i]->name);
        w_str(w, ": ");
        type_print(w, &f->params.data[i]->type);
    }
    w_str(w, ")");
    for (uint32_t i = 0; i < f->attrs.len; i++) {
        w_fmt(w, "%s%s = ", i ? ", " : " [", f->attrs.data[i].name);
        graph_print_attr(w, &f->attrs.data[i]);
    }
    w_str(w, f->attrs.len ? "]" : "");
    print_bounds(w, f);
}

/* " state of %h from dense [1.0]" */
static void print_state(writer *w, const graph_func *f, const graph_state *s)
{
    if (!s)
        return;
    w_str(w, " state of ");
    w_name(w, '%', f->params.data[s->param]->name);
    if (s->initial) {
        w_str(w, " from ");
        tensor_print(w, s->initial);
    }
}

void graph_print_func(writer *w, const graph_func *f)
{
    print_head(w, f);
    w_open(w, "%s", "");
    for (uint32_t i = 0; i < f->nodes.len; i++)
        print_node(w, f->nodes.data[i]);
    w_str(w, "return");
    for (uint32_t i = 0; i < f->results.len; i++) {
        w_str(w, i ? ", " : " ");
        print_values(w, 1, &f->results.data[i]);
        print_state(w, f, graph_state_of_result(f, i));
    }
    w_str(w, "\n");
    w_close(w, "");
}

void graph_print(writer *w, const graph_module *m)
{
    for (uint32_t i = 0; i < m->funcs.len; i++) {
        if (i)
            w_str(w, "\n");
        graph_print_func(w, m->funcs.data[i]);
    }
}
