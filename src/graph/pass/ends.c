/* SPDX-License-Identifier: Apache-2.0 */
/* quantised-ends: where it is asked for, inputs that are only quantised, and results that only were dequantised, are
 * handed over as the quantised numbers: a quarter of the caller's memory, and no float between a sensor's bytes and the
 * model. What lies between, movements, moves the numbers. Scales and zero points are told in graph_module.ends. */
#include "graph/pass.h"
#include "graph/pass/rewrite.h"

#include <string.h>

/* How often v is used, as an operand or a result; the last node that does. */
static uint32_t count_uses(const graph_func *f, const graph_value *v, graph_node **out_node)
{
    uint32_t n = 0;
    *out_node = NULL;
    for (uint32_t i = 0; i < f->results.len; i++)
        n += f->results.data[i] == v;
    for (uint32_t i = 0; i < f->nodes.len; i++)
        for (uint32_t k = 0; k < f->nodes.data[i]->n_inputs; k++)
            if (f->nodes.data[i]->inputs[k] == v) {
                *out_node = f->nodes.data[i];
                n++;
            }
    return n;
}

/* The node that alone uses v; NULL: none, several, or v is a result. */
static graph_node *only_user(const graph_func *f, const graph_value *v)
{
    graph_node *node;
    return count_uses(f, v, &node) == 1 ? node : NULL;
}

/* It is the result, or moved into it, and nothing else. */
static bool ends_alone(const graph_func *f, const graph_value *v)
{
    graph_node *node;
    return count_uses(f, v, &node) == 1;
}

static bool moves(const graph_node *n)
{
    return strcmp(n->op->name, "reshape") == 0 || strcmp(n->op->name, "transpose") == 0;
}

/* Scale and zero point of a quantize or dequantize node, when they are one number each that is known. */
static bool read_end(const graph_node *n, graph_end *out)
{
    const tensor_data *scale = n->n_inputs > 1 ? graph_constant(n->inputs[1]) : NULL;
    const tensor_data *zero = n->n_inputs > 2 && n->inputs[2] ? graph_constant(n->inputs[2]) : NULL;
    double z = 0;
    if (!scale || !rewrite_is_uniform(scale, &out->scale) || (n->n_inputs > 2 && n->inputs[2] && !zero) ||
        (zero && !rewrite_is_uniform(zero, &z)))
        return false;
    out->zero_point = (int64_t)z;
    return true;
}

static void set_dtype(graph_value *v, dtype dt)
{
    v->type.dt = dt;
    if (v->declared.kind == TYPE_TENSOR)
        v->declared.dt = dt;
}

static void change_input(graph_module *m, graph_func *f, graph_value *param)
{
    graph_value *v = param;
    graph_node *n = only_user(f, v);
    graph_end end = {.name = param->name, .is_input = true};
    while (n && moves(n) && n->inputs[0] == v) {
        v = n->outputs[0];
        n = only_user(f, v);
    }
    if (param->type.kind != TYPE_TENSOR || !dtype_is_float(param->type.dt) || !n || n->inputs[0] != v ||
        strcmp(n->op->name, "qnn.quantize") != 0 || !read_end(n, &end))
        return;
    rewriter r;
    rewrite_begin(&r, m->c, f);
    const dtype dt = n->outputs[0]->type.dt;
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        rewrite_operands(f->nodes.data[i]);
        if (f->nodes.data[i] != n || !rewrite_replace(&r, n->outputs[0], v))
            rewrite_keep(&r, f->nodes.data[i]);
        else
            r.changed = true;
    }
    rewrite_end(&r);
    if (!r.changed) /* the result of the model is its input, quantised: there a copy stays */
        return;
    for (v = param; v->type.dt != dt;) {
        set_dtype(v, dt);
        n = only_user(f, v);
        v = n && moves(n) ? n->outputs[0] : v;
    }
    vec_push(&m->c->mem, &m->ends, end);
}

static void change_result(graph_module *m, graph_func *f, uint32_t result)
{
    graph_value *v = f->results.data[result];
    graph_end end = {.name = v->name};
    graph_node *n = v->def;
    for (; n && moves(n) && ends_alone(f, v); n = v->def)
        v = n->inputs[0];
    bool fits = n && strcmp(n->op->name, "qnn.dequantize") == 0 && n->inputs[0]->def && ends_alone(f, v) &&
                read_end(n, &end);
    if (!fits)
        return;
    rewriter r;
    rewrite_begin(&r, m->c, f);
    const dtype dt = n->inputs[0]->type.dt;
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        rewrite_operands(f->nodes.data[i]);
        if (f->nodes.data[i] != n || !rewrite_replace(&r, n->outputs[0], n->inputs[0]))
            rewrite_keep(&r, f->nodes.data[i]);
        else
            r.changed = true;
    }
    rewrite_end(&r);
    if (!r.changed)
        return;
    for (v = f->results.data[result]; v->type.dt != dt; v = v->def->inputs[0])
        set_dtype(v, dt);
    end.name = f->results.data[result]->name;
    vec_push(&m->c->mem, &m->ends, end);
}

bool graph_pass_quantised_ends(compiler *c, graph_module *m, const pass_options *o)
{
    (void)c;
    graph_func *f = graph_module_find(m, "main");
    if (!o->quantised_ends || !f)
        return true;
    for (uint32_t i = 0; i < f->params.len; i++)
        change_input(m, f, f->params.data[i]);
    for (uint32_t i = 0; i < f->results.len; i++)
        change_result(m, f, i);
    return true;
}
