/* SPDX-License-Identifier: Apache-2.0 */
/* quantized-ends: on request, an input that is only quantized, and a result that was only dequantized, are handed over
 * as quantized numbers. This takes a quarter of the caller's memory, and needs no floats between a sensor's bytes and
 * the model. Operators in between that move elements then move the numbers. graph_module.ends has the scales and zero
 * points. */
#include "base/ptr_map.h"
#include "graph/pass.h"
#include "graph/pass/rewrite.h"

#include <string.h>

/* An end that is to change: the node that goes, and the values that become numbers, from `first` back to `last`. */
typedef struct cut {
    graph_node *node;
    graph_value *first, *last;
    graph_end end;
    bool done;
} cut;

/* One rewrite for all of them. */
typedef struct ends {
    rewriter r;   /* begun: marks are uses */
    ptr_map user; /* of each value: the last node that reads it */
    ptr_map at;   /* of each node that goes: its cut */
    VEC(cut) cuts;
    arena *tmp;
} ends;

/* The node that alone uses v; NULL: none, several, or v is a result. */
static graph_node *only_user(const ends *e, const graph_value *v)
{
    uint32_t at = 0;
    return v->mark == 1 && ptr_map_get(&e->user, v, &at) ? e->r.f->nodes.data[at] : NULL;
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

static void add_cut(ends *e, graph_node *n, graph_value *first, graph_value *last, graph_end end)
{
    ptr_map_set(&e->at, n, e->cuts.len);
    vec_push(e->tmp, &e->cuts, ((cut){n, first, last, end, false}));
}

static void find_input(ends *e, graph_value *param)
{
    graph_value *v = param;
    graph_node *n = only_user(e, v);
    graph_end end = {.name = param->name, .is_input = true};
    for (; n && moves(n) && n->inputs[0] == v; n = only_user(e, v))
        v = n->outputs[0];
    if (param->type.kind == TYPE_TENSOR && dtype_is_float(param->type.dt) && n && n->inputs[0] == v &&
        strcmp(n->op->name, "qnn.quantize") == 0 && read_end(n, &end))
        add_cut(e, n, v, param, end);
}

static void find_result(ends *e, graph_value *result)
{
    graph_value *v = result;
    graph_end end = {.name = result->name};
    graph_node *n = v->def;
    for (; n && moves(n) && rewrite_uses(v) == 1; n = v->def)
        v = n->inputs[0];
    if (n && strcmp(n->op->name, "qnn.dequantize") == 0 && rewrite_uses(v) == 1 && read_end(n, &end))
        add_cut(e, n, result, v, end);
}

/* The numbers stand for the floats; false: a copy has to stay, because a result of the model would be its input. */
static bool is_replaced(ends *e, const graph_node *n)
{
    uint32_t at = 0;
    if (!ptr_map_get(&e->at, n, &at))
        return false;
    cut *k = &e->cuts.data[at];
    if ((!k->end.is_input && !n->inputs[0]->def) || !rewrite_replace(&e->r, n->outputs[0], n->inputs[0]))
        return false;
    for (graph_value *v = k->first;; v = v->def->inputs[0]) {
        set_dtype(v, k->end.is_input ? n->outputs[0]->type.dt : n->inputs[0]->type.dt);
        if (v == k->last)
            break;
    }
    return k->done = true;
}

bool graph_pass_quantised_ends(compiler *c, graph_module *m, const pass_options *o)
{
    graph_func *f = graph_module_find(m, "main");
    arena tmp;
    if (!o->quantised_ends || !f)
        return true;
    arena_init(&tmp, &c->mem);
    ends e = {.tmp = &tmp};
    rewrite_begin(&e.r, c, f);
    ptr_map_init(&e.user, &tmp);
    ptr_map_init(&e.at, &tmp);
    for (uint32_t i = 0; i < f->nodes.len; i++)
        for (uint32_t k = 0; k < f->nodes.data[i]->n_inputs; k++)
            if (f->nodes.data[i]->inputs[k])
                ptr_map_set(&e.user, f->nodes.data[i]->inputs[k], i);
    for (uint32_t i = 0; i < f->params.len; i++)
        find_input(&e, f->params.data[i]);
    for (uint32_t i = 0; i < f->results.len; i++)
        find_result(&e, f->results.data[i]);
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        rewrite_operands(f->nodes.data[i]);
        if (!is_replaced(&e, f->nodes.data[i]))
            rewrite_keep(&e.r, f->nodes.data[i]);
    }
    rewrite_end(&e.r);
    for (uint32_t i = 0; i < e.cuts.len; i++)
        if (e.cuts.data[i].done)
            vec_push(&c->mem, &m->ends, e.cuts.data[i].end);
    arena_free(&tmp);
    return true;
}
