/* SPDX-License-Identifier: Apache-2.0 */
/* What a compile tells of its model: as it was read, and what passes on the graph had to say. */
#include "driver/describe.h"

#include "driver/html_model.h"
#include "graph/op.h"

#include <stdlib.h>
#include <string.h>

/* The value whose elements v has: what only moves them is on the way. */
static const graph_value *moved_from(const graph_value *v)
{
    while (v && v->def && (v->def->op->flags & OPF_MOVES))
        v = v->def->inputs[0];
    return v;
}

/* The same where that is a parameter; NULL: it is computed. */
static const graph_value *parameter_of(const graph_value *v)
{
    const graph_value *from = moved_from(v);
    return from && !from->def ? from : NULL;
}

static const tensor_data *one_number(const graph_node *n, uint32_t i)
{
    const tensor_data *t = graph_constant(graph_operand(n, i));
    return t && t->count == 1 ? t : NULL;
}

/* Of floats, what the first quantize of an input can say. Random inputs are drawn from this range, so that they reach
 * all of its quantized numbers. */
static void find_spans(compiler *c, const graph_func *f, compile_result *r)
{
    input_span *spans = arena_array(&c->mem, input_span, f->params.len + 1u);
    bool *known = arena_array(&c->mem, bool, f->params.len + 1u); /* by parameter: its span stands in spans */
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        const graph_node *n = f->nodes.data[i];
        if (strcmp(n->op->name, "qnn.quantize") != 0)
            continue;
        const graph_value *x = parameter_of(n->inputs[0]);
        const tensor_data *scale = one_number(n, 1), *zero = one_number(n, 2);
        const dtype dt = n->outputs[0]->type.dt != DT_NONE ? n->outputs[0]->type.dt : zero ? zero->dt : DT_U8;
        if (!x || known[x->index] || !scale || !dtype_is_int(dt) || !dtype_is_float(x->type.dt))
            continue;
        const double step = tensor_get_f64(scale, 0), z = zero ? (double)tensor_get_i64(zero, 0) : 0;
        known[x->index] = true;
        spans[r->n_spans++] = (input_span){x->name, step * ((double)dtype_min_int(dt) - z),
                                           step * ((double)dtype_max_int(dt) - z)};
    }
    r->spans = spans;
}

/* Where n quantizes or dequantizes by one scale. */
static bool read_scale(const graph_node *n, number_end *out)
{
    const bool makes = strcmp(n->op->name, "qnn.quantize") == 0;
    if (!makes && strcmp(n->op->name, "qnn.dequantize") != 0)
        return false;
    const tensor_data *scale = one_number(n, 1), *zero = one_number(n, 2);
    out->dt = makes ? n->outputs[0]->type.dt : n->inputs[0]->type.dt;
    out->end.scale = scale ? tensor_get_f64(scale, 0) : 0;
    out->end.zero_point = zero ? tensor_get_i64(zero, 0) : 0;
    return scale && dtype_is_int(out->dt) && (zero || !graph_operand(n, 2));
}

/* The scales of an end, by its name and its side, in the order in which they were found. */
static int by_end(const void *a, const void *b)
{
    const number_end *x = a, *y = b;
    const int names = strcmp(x->end.name, y->end.name);
    if (x->end.is_input != y->end.is_input)
        return x->end.is_input ? -1 : 1;
    return names ? names : x->found < y->found ? -1 : x->found > y->found;
}

static void add_scale(compile_result *r, number_end *list, number_end x)
{
    x.found = r->n_scales;
    list[r->n_scales++] = x;
}

/* What the front end says of ends; then what nodes say that read an input or make an output. */
static void find_scales(compiler *c, const graph_module *m, const graph_func *f, compile_result *r)
{
    number_end x = {{0}, DT_NONE, 0};
    number_end *list = arena_array(&c->mem, number_end, m->ends.len + f->nodes.len + f->results.len + 1u);
    for (uint32_t i = 0; i < m->ends.len; i++)
        add_scale(r, list, (number_end){m->ends.data[i], DT_NONE, 0});
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        const graph_node *n = f->nodes.data[i];
        const graph_value *p = read_scale(n, &x) ? parameter_of(n->inputs[0]) : NULL;
        if (!p)
            continue;
        x.end.name = p->name;
        x.end.is_input = true;
        add_scale(r, list, x);
    }
    for (uint32_t i = 0; i < f->results.len; i++) {
        const graph_value *from = moved_from(f->results.data[i]);
        if (!from || !from->def || !read_scale(from->def, &x))
            continue;
        x.end.name = f->results.data[i]->name;
        x.end.is_input = false;
        add_scale(r, list, x);
    }
    qsort(list, r->n_scales, sizeof *list, by_end);
    r->scales = list;
}

/* Scales of one end. */
static bool is_end(const number_end *x, const char *name, bool is_input)
{
    return x->end.is_input == is_input && strcmp(x->end.name, name) == 0;
}

static bool are_equal(const model_end *x, const model_end *y)
{
    return x->zero_point == y->zero_point && x->scale <= y->scale && x->scale >= y->scale;
}

const number_end *describe_scale(const compile_result *r, const char *name, bool is_input)
{
    const number_end key = {{.name = name, .is_input = is_input}, DT_NONE, 0}, *end = r->scales + r->n_scales;
    uint32_t first = 0, behind = r->n_scales;
    while (first < behind) {
        const uint32_t middle = first + (behind - first) / 2;
        if (by_end(&r->scales[middle], &key) < 0)
            first = middle + 1;
        else
            behind = middle;
    }
    const number_end *found = r->scales + first;
    if (found == end || !is_end(found, name, is_input))
        return NULL;
    for (const number_end *x = found; x < end && is_end(x, name, is_input); x++)
        if (!are_equal(&found->end, &x->end))
            return NULL;
    return found;
}

static bool is_dequantized(const graph_node *n)
{
    for (uint32_t i = 0; i < n->n_inputs; i++)
        if (n->inputs[i] && n->inputs[i]->def && strcmp(n->inputs[i]->def->op->name, "qnn.dequantize") == 0)
            return true;
    return false;
}

static bool rounds_half_up(const graph_node *n)
{
    return graph_attr(n, "rounding") && strcmp(graph_attr_string(n, "rounding"), "half_up") == 0;
}

/* Arithmetic on quantised numbers, as far as passes made it or the model has it. */
static bool computes_in_integers(const graph_module *m)
{
    for (uint32_t i = 0; i < m->funcs.len; i++)
        for (uint32_t k = 0; k < m->funcs.data[i]->nodes.len; k++) {
            const char *op = m->funcs.data[i]->nodes.data[k]->op->name;
            if (strncmp(op, "qnn.", 4) == 0 && strcmp(op, "qnn.quantize") != 0 && strcmp(op, "qnn.dequantize") != 0)
                return true;
        }
    return false;
}

void describe_passes(compiler *c, const compile_options *o, compile_result *r)
{
    const graph_module *m = r->graph;
    codegen_remark *list = arena_array(&c->mem, codegen_remark, m->notes.len + 1u);
    r->n_quantised = o->opt_level > 0 ? 0 : r->n_quantised;
    for (uint32_t i = 0; i < m->notes.len; i++) {
        const graph_note *n = &m->notes.data[i];
        list[i] = (codegen_remark){n->pass, n->op, n->value, n->text, n->loc.node ? n->loc.node : ""};
        r->n_quantised += o->opt_level > 0 && strcmp(n->pass, "use-integers") == 0;
    }
    r->integers = computes_in_integers(m);
    r->remarks = list;
    r->n_remarks = m->notes.len;
}

static bool is_float_end(const graph_value *v)
{
    return v->type.kind == TYPE_TENSOR && dtype_is_float(v->type.dt);
}

static bool has_float_ends(const graph_func *f)
{
    bool found = false;
    for (uint32_t i = 0; i < f->params.len; i++)
        found |= !graph_state_of_param(f, i) && is_float_end(f->params.data[i]);
    for (uint32_t i = 0; i < f->results.len; i++)
        found |= !graph_state_of_result(f, i) && is_float_end(f->results.data[i]);
    return found;
}

void describe_model(compiler *c, const compile_options *o, compile_result *r)
{
    const graph_func *f = graph_module_find(r->graph, "main");
    if (f)
        find_spans(c, f, r);
    if (f)
        find_scales(c, r->graph, f, r);
    r->float_ends = f && has_float_ends(f);
    if (o->page)
        r->model = html_model_of(c, r->graph);
    r->n_nodes = r->graph->n_operators;
    const bool is_text = r->n_nodes == 0;
    for (uint32_t i = 0; f && i < f->nodes.len; i++) {
        const graph_node *n = f->nodes.data[i];
        r->n_nodes += is_text && (n->n_outputs == 0 || !graph_constant(n->outputs[0]));
        r->n_quantised += is_dequantized(n);
        const char *op = n->loc.op ? n->loc.op : "";
        r->frames |= strcmp(op, "CUSTOM SignalFramer") == 0 || strcmp(op, "CUSTOM SignalStacker") == 0;
        r->ends_early |= strcmp(op, "CUSTOM CIRCULAR_BUFFER") == 0 && strcmp(n->op->name, "equal") == 0;
        r->rounds |= strcmp(n->op->name, "qnn.dequantize") == 0 || strcmp(n->op->name, "qnn.requantize") == 0;
        r->quantised |= strncmp(n->op->name, "qnn.", 4) == 0;
        r->dynamic |= strcmp(n->op->name, "qnn.quantize") == 0 && !graph_constant(n->inputs[1]);
        r->half_up |= rounds_half_up(n);
    }
}
