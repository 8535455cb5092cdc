/* SPDX-License-Identifier: Apache-2.0 */
/* quantized-ends: on request, an input that is only quantized, and a result that was only dequantized, are handed over
 * as quantized numbers. This takes a quarter of the caller's memory, and needs no floats between a sensor's bytes and
 * the model. Operators in between that move elements then move the numbers. graph_module.ends has the scales and zero
 * points. An end that has to stay in float is an error, because the caller would hand over bytes where floats are read;
 * pass_options.float_ends allows it. */
#include "base/ptr_map.h"
#include "graph/pass.h"
#include "graph/pass/rewrite.h"

#include <string.h>

/* An end that is to change: the node that goes, and the values that become numbers, from `first` back to `last`. */
typedef struct cut {
    graph_node *node;
    graph_value *first, *last;
    model_end end;
    bool done;
} cut;

/* An end that stays in float, and why. */
typedef struct float_end {
    const graph_value *value;
    bool is_input;
    src_loc loc;
    const char *why;
} float_end;

/* One rewrite for all of them. */
typedef struct ends {
    rewriter r;   /* begun: marks are uses */
    ptr_map user; /* of each value: the last node that reads it */
    ptr_map at;   /* of each node that goes: its cut */
    VEC(cut) cuts;
    VEC(float_end) kept;
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

/* Scale and zero point of a quantize or dequantize node; NULL, or why they are not one number each that is known. */
static const char *read_end(const graph_node *n, model_end *out)
{
    const tensor_data *scale = n->n_inputs > 1 ? graph_constant(n->inputs[1]) : NULL;
    const tensor_data *zero = graph_constant(graph_operand(n, 2));
    double z = 0;
    if (!scale || (graph_operand(n, 2) && !zero))
        return "the scale or the zero point of its numbers is computed at run time";
    if (!rewrite_is_uniform(scale, &out->scale) || (zero && !rewrite_is_uniform(zero, &z)))
        return "its numbers have a scale for each channel, not one for all";
    out->zero_point = (int64_t)z;
    return NULL;
}

static void set_dtype(graph_value *v, dtype dt)
{
    v->type.dt = dt;
    if (v->declared.kind == TYPE_TENSOR)
        v->declared.dt = dt;
}

static void add_cut(ends *e, graph_node *n, graph_value *first, graph_value *last, model_end end)
{
    ptr_map_set(&e->at, n, e->cuts.len);
    vec_push(e->tmp, &e->cuts, ((cut){n, first, last, end, false}));
}

/* n: the node that is in the way; NULL: none. */
static void keep_end(ends *e, const graph_value *end, bool is_input, const graph_node *n, const char *why)
{
    vec_push(e->tmp, &e->kept, ((float_end){end, is_input, n ? n->loc : src_loc_none(), why}));
}

static bool is_float(const graph_value *v)
{
    return v->type.kind == TYPE_TENSOR && dtype_is_float(v->type.dt);
}

static void find_input(ends *e, graph_value *param)
{
    graph_value *v = param;
    graph_node *n = only_user(e, v);
    model_end end = {.name = param->name, .is_input = true};
    const char *why;
    uint32_t at = 0;
    if (!is_float(param))
        return;
    for (; n && moves(n) && n->inputs[0] == v; n = only_user(e, v))
        v = n->outputs[0];
    if (n && n->inputs[0] == v && strcmp(n->op->name, "qnn.quantize") == 0) {
        if ((why = read_end(n, &end)) != NULL)
            keep_end(e, param, true, n, why);
        else
            add_cut(e, n, v, param, end);
    } else if (n) {
        keep_end(e, param, true, n, "this operator reads it as a float");
    } else if (rewrite_uses(v) > 1 && ptr_map_get(&e->user, v, &at)) {
        keep_end(e, param, true, e->r.f->nodes.data[at], "this is not the only operator that reads it");
    } else {
        keep_end(e, param, true, NULL, "no operator reads it");
    }
}

static void find_result(ends *e, graph_value *result)
{
    graph_value *v = result;
    model_end end = {.name = result->name};
    const char *why;
    graph_node *n = v->def;
    if (!is_float(result))
        return;
    for (; n && moves(n) && rewrite_uses(v) == 1; n = v->def)
        v = n->inputs[0];
    if (!n)
        keep_end(e, result, false, NULL, "it is an input of the model");
    else if (strcmp(n->op->name, "qnn.dequantize") != 0)
        keep_end(e, result, false, n, "this operator makes it as a float");
    else if (rewrite_uses(v) != 1)
        keep_end(e, result, false, n, "the float that this operator makes is used in several places");
    else if ((why = read_end(n, &end)) != NULL)
        keep_end(e, result, false, n, why);
    else
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

/* Which node reads a value; the last one of several. */
static void find_users(ends *e)
{
    const graph_func *f = e->r.f;
    for (uint32_t i = 0; i < f->nodes.len; i++)
        for (uint32_t k = 0; k < f->nodes.data[i]->n_inputs; k++)
            if (f->nodes.data[i]->inputs[k])
                ptr_map_set(&e->user, f->nodes.data[i]->inputs[k], i);
}

/* allowed: floats may stay, but all did, so that the options have no effect. */
static bool refuse_float_ends(compiler *c, const ends *e, bool allowed)
{
    for (uint32_t i = 0; i < e->kept.len; i++) {
        const float_end *k = &e->kept.data[i];
        diag_error(&c->diags, DIAG_USAGE, k->loc, "--quantized-io%s: the %s '%s' stays %s, because %s",
                   allowed ? " has no effect" : "", k->is_input ? "input" : "output", k->value->name,
                   dtype_name(k->value->type.dt), k->why);
    }
    if (e->kept.len > 0)
        diag_hint(&c->diags, "%s'lathe quantize --quantized-io' makes a model with 8-bit inputs and outputs",
                  allowed ? "" : "add --allow-float-io to keep such inputs and outputs in float; ");
    return e->kept.len == 0;
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
    find_users(&e);
    for (uint32_t i = 0; i < f->params.len; i++)
        if (!graph_state_of_param(f, i)) /* the caller does not see those */
            find_input(&e, f->params.data[i]);
    for (uint32_t i = 0; i < f->results.len; i++)
        if (!graph_state_of_result(f, i))
            find_result(&e, f->results.data[i]);
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        rewrite_operands(f->nodes.data[i]);
        if (!is_replaced(&e, f->nodes.data[i]))
            rewrite_keep(&e.r, f->nodes.data[i]);
    }
    rewrite_end(&e.r);
    for (uint32_t i = 0; i < e.cuts.len; i++) {
        const cut *k = &e.cuts.data[i];
        if (k->done)
            vec_push(&c->mem, &m->ends, k->end);
        else
            keep_end(&e, k->end.is_input ? k->last : k->first, k->end.is_input, k->node,
                     "its numbers are also an input or another output of the model");
    }
    const bool allowed = o->float_ends && m->ends.len > 0;
    bool good = allowed || refuse_float_ends(c, &e, o->float_ends);
    arena_free(&tmp);
    return good;
}
