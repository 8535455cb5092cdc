/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes make each image of a batch by itself, by their rows and attributes, and copies of nodes and functions for
 * fewer images. What is not known to do so counts as one that does not. */
#include "graph/pass/images.h"
#include "base/ptr_map.h"

#include <string.h>

#define MOST_OPERANDS 64u

static bool leads_with(const type *t, int64_t count)
{
    return t->kind == TYPE_TENSOR && t->shape.rank > 0 && shape_is_static(t->shape) && dim_is(t->shape.dims[0], count);
}

bool images_has(const graph_value *v, int64_t count)
{
    return v && !graph_constant(v) && leads_with(&v->type, count);
}

/* --- rules: has[k] says that operand k has images; one of them does, and all results do --- */

typedef bool (*rule)(const graph_node *n, const bool *has);

/* The first operand has images, no other one does. */
static bool first_alone(const graph_node *n, const bool *has)
{
    for (uint32_t i = 1; i < n->n_inputs; i++)
        if (has[i])
            return false;
    return has[0];
}

static bool all(const graph_node *n, const bool *has)
{
    for (uint32_t i = 0; i < n->n_inputs; i++)
        if (!has[i])
            return false;
    return true;
}

static bool is_behind(const graph_node *n, int64_t axis)
{
    return (axis < 0 ? axis + n->inputs[0]->type.shape.rank : axis) > 0;
}

/* Works along one axis, which is not that of the images. */
static bool along_axis(const graph_node *n, const bool *has)
{
    return first_alone(n, has) && is_behind(n, graph_attr_int(n, "axis"));
}

static bool beside_axis(const graph_node *n, const bool *has)
{
    return all(n, has) && is_behind(n, graph_attr_int(n, "axis"));
}

static bool over_axes(const graph_node *n, const bool *has)
{
    const int64_t *axes;
    const uint32_t count = graph_attr_ints(n, "axes", &axes);
    bool ok = first_alone(n, has) && count > 0;
    for (uint32_t i = 0; i < count && ok; i++)
        ok = is_behind(n, axes[i]);
    return ok;
}

static bool moves_others(const graph_node *n, const bool *has)
{
    const int64_t *perm;
    return graph_attr_ints(n, "perm", &perm) > 0 && perm[0] == 0 && has[0];
}

static bool pads_others(const graph_node *n, const bool *has)
{
    int64_t pads[2 * TYPE_MAX_RANK];
    uint32_t count;
    const uint32_t rank = (uint32_t)n->inputs[0]->type.shape.rank;
    return first_alone(n, has) && (n->n_inputs < 4 || !n->inputs[3]) &&
           graph_constant_ints(n->inputs[1], 2 * TYPE_MAX_RANK, pads, &count) && count == 2 * rank && pads[0] == 0 &&
           pads[rank] == 0;
}

/* Of all images the same places. */
static bool slices_others(const graph_node *n, const bool *has)
{
    int64_t axes[TYPE_MAX_RANK];
    uint32_t count = 0;
    bool ok = first_alone(n, has) && n->n_inputs > 3 && n->inputs[3] &&
              graph_constant_ints(n->inputs[3], TYPE_MAX_RANK, axes, &count);
    for (uint32_t i = 0; i < count && ok; i++)
        ok = is_behind(n, axes[i]);
    return ok;
}

/* Layouts are named by their axes: "NCHW16c". */
static bool changes_channels(const graph_node *n, const bool *has)
{
    return first_alone(n, has) && graph_attr_string(n, "src_layout")[0] == 'N' &&
           graph_attr_string(n, "dst_layout")[0] == 'N';
}

/* One matrix for all images, or one for each; a zero point for each row would have to be taken apart. */
static bool multiplies_each(const graph_node *n, const bool *has)
{
    const int32_t a = n->inputs[0]->type.shape.rank, b = n->inputs[1]->type.shape.rank;
    for (uint32_t i = 2; i < n->n_inputs; i++)
        if (has[i] || (i == 2 && n->inputs[i] && shape_count(n->inputs[i]->type.shape) != 1))
            return false;
    if (has[1])
        return has[0] && a > 2 && a == b;
    return has[0] && a >= 2 && b == 2 && !(graph_attr(n, "transpose_a") && graph_attr_int(n, "transpose_a"));
}

/* Element by element: what has fewer axes, or one image, is the same for all images. */
static bool by_element(const graph_node *n, const bool *has)
{
    const int32_t rank = n->outputs[0]->type.shape.rank;
    const attr *axis = graph_attr(n, "axis");
    if ((n->op->flags & OPF_SHAPE_ARGS) || (axis && axis->kind == ATTR_INT && !is_behind(n, axis->u.i)))
        return false;
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        const graph_value *v = n->inputs[i];
        if (!v)
            continue;
        if (v->type.shape.rank > rank || (has[i] && v->type.shape.rank != rank) ||
            (!has[i] && v->type.shape.rank == rank && !dim_is(v->type.shape.dims[0], 1)))
            return false;
    }
    return true;
}

static const struct {
    const char *op;
    rule is_apart;
} rules[] = {
    {"concatenate", beside_axis},      {"transpose", moves_others},  {"reshape", first_alone},
    {"nn.pad", pads_others},           {"nn.softmax", along_axis},   {"nn.log_softmax", along_axis},
    {"nn.layer_norm", along_axis},     {"nn.rms_norm", along_axis},  {"sum", over_axes},
    {"max", over_axes},                {"min", over_axes},           {"mean", over_axes},
    {"layout_transform", changes_channels}, {"nn.matmul", multiplies_each}, {"qnn.matmul", multiplies_each},
    {"strided_slice", slices_others},
};

static rule rule_of(const graph_op *op)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strcmp(op->name, rules[i].op) == 0)
            return rules[i].is_apart;
    if (op->flags & OPF_IMAGES)
        return first_alone;
    return op->cls == CLASS_ELEMENTWISE || op->cls == CLASS_BROADCAST ? by_element : NULL;
}

static bool node_is_apart(const graph_node *n, const bool *has, int64_t count)
{
    const rule r = rule_of(n->op);
    bool ok = r && n->n_outputs > 0 && n->op->effect == EFFECT_PURE;
    for (uint32_t i = 0; i < n->n_inputs && ok; i++)
        ok = !n->inputs[i] || n->inputs[i]->type.shape.rank >= 0;
    for (uint32_t i = 0; i < n->n_outputs && ok; i++)
        ok = leads_with(&n->outputs[i]->type, count);
    return ok && r(n, has);
}

/* Marks: the value has images. */
static bool func_is_apart(const graph_func *f, const graph_node *call, int64_t count)
{
    bool has[MOST_OPERANDS], ok = true;
    for (uint32_t i = 0; i < f->params.len; i++)
        f->params.data[i]->mark = images_has(call->inputs[i], count);
    for (uint32_t i = 0; i < f->nodes.len && ok; i++) {
        const graph_node *n = f->nodes.data[i];
        bool any = false;
        ok = n->n_inputs <= MOST_OPERANDS && !(n->op->flags & OPF_CALL);
        for (uint32_t k = 0; k < n->n_inputs && ok; k++)
            any |= has[k] = n->inputs[k] && n->inputs[k]->mark;
        ok = ok && (!any || node_is_apart(n, has, count));
        for (uint32_t k = 0; k < n->n_outputs; k++)
            n->outputs[k]->mark = any;
    }
    for (uint32_t i = 0; i < f->results.len && ok; i++)
        ok = f->results.data[i]->mark;
    return ok;
}

bool images_are_apart(const graph_node *n, int64_t count)
{
    bool has[MOST_OPERANDS], any = false;
    const graph_func *g = graph_callee(n);
    if (n->n_inputs > MOST_OPERANDS)
        return false;
    for (uint32_t i = 0; i < n->n_inputs; i++)
        any |= has[i] = images_has(n->inputs[i], count);
    if (g)
        return any && graph_is_primitive(g) && !graph_func_text(g, "compiler") && func_is_apart(g, n, count);
    return any && !(n->op->flags & OPF_CALL) && node_is_apart(n, has, count);
}

/* --- copies --- */

static type few_type(compiler *c, const type *t, int64_t few)
{
    dim dims[TYPE_MAX_RANK];
    memcpy(dims, t->shape.dims, (size_t)t->shape.rank * sizeof *dims);
    dims[0] = dim_const(c, few);
    return type_tensor(t->dt, shape_make(c, (uint32_t)t->shape.rank, dims));
}

/* A reshape says its shape by what is declared. */
graph_node *images_few_node(graph_func *f, const graph_node *n, graph_value *const *in, int64_t few, bool has,
                            graph_func *callee)
{
    compiler *c = f->module->c;
    const char **names = arena_array(&c->mem, const char *, n->n_outputs + 1u);
    const attr called = attr_func(c, "callee", callee);
    for (uint32_t i = 0; i < n->n_outputs; i++)
        names[i] = n->outputs[i]->name;
    const bool reshapes = has && strcmp(n->op->name, "reshape") == 0;
    graph_node *k = graph_new_node(f, n->op, reshapes ? 1 : n->n_inputs, in, callee ? 1 : n->n_attrs,
                                   callee ? &called : n->attrs, n->n_outputs, names, n->loc);
    if (reshapes)
        k->outputs[0]->declared = few_type(c, &n->outputs[0]->type, few);
    return graph_infer_node(c, k) ? k : NULL;
}

graph_func *images_few_func(graph_func *g, int64_t count, int64_t few, const graph_node *call)
{
    compiler *c = g->module->c;
    graph_func *f = graph_func_new(g->module, g->name);
    ptr_map at;
    VEC(graph_value *) made = {0};
    VEC(bool) apart = {0}; /* of those made: they have images */
    ptr_map_init(&at, &c->mem);
    for (uint32_t i = 0; i < g->attrs.len; i++)
        vec_push(&c->mem, &f->attrs, g->attrs.data[i]);
    for (uint32_t i = 0; i < g->params.len; i++) {
        const type *t = &g->params.data[i]->type;
        const bool has = images_has(call->inputs[i], count);
        ptr_map_set(&at, g->params.data[i], made.len);
        vec_push(&c->mem, &apart, has);
        vec_push(&c->mem, &made, graph_add_param(f, g->params.data[i]->name, has ? few_type(c, t, few) : *t));
    }
    for (uint32_t i = 0; i < g->nodes.len; i++) {
        const graph_node *n = g->nodes.data[i];
        graph_value **in = arena_array(&c->mem, graph_value *, n->n_inputs + 1u);
        uint32_t k = 0;
        bool any = false;
        for (uint32_t j = 0; j < n->n_inputs; j++) {
            const bool known = n->inputs[j] && ptr_map_get(&at, n->inputs[j], &k);
            in[j] = known ? made.data[k] : NULL;
            any |= known && apart.data[k];
        }
        graph_node *to = images_few_node(f, n, in, few, any, NULL);
        if (!to)
            return NULL;
        vec_push(&c->mem, &f->nodes, to);
        for (uint32_t j = 0; j < n->n_outputs; j++) {
            ptr_map_set(&at, n->outputs[j], made.len);
            vec_push(&c->mem, &apart, any);
            vec_push(&c->mem, &made, to->outputs[j]);
        }
    }
    for (uint32_t i = 0; i < g->results.len; i++) {
        uint32_t k = 0;
        (void)ptr_map_get(&at, g->results.data[i], &k);
        graph_add_result(f, made.data[k]);
    }
    graph_remove_dead(f);
    return f;
}
