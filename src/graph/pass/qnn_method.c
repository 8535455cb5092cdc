/* SPDX-License-Identifier: Apache-2.0 */
/* How rows of qnn.* round to the nearest even: in floats, where the target has vectors of them, or
 * instructions; in integers with the same result; or as TensorFlow Lite. The last are multipliers and shifts, made here
 * of scales. */
#include "graph/pass/qnn.h"

#include "graph/op/nn.h"

#include <string.h>

const char *qnn_method(const pass_options *o)
{
    switch (o->requant) {
    case REQUANT_EXACT:
        return o->target && o->target->vector_bytes == 0 && !(o->target->features & TARGET_FPU) ? "integer" : "float";
    case REQUANT_TFLITE: return "tflite";
    case REQUANT_FAST: return "fast";
    }
    return "float";
}

void qnn_fixed_scales(compiler *c, float first, const tensor_data *second, float last, bool is_conv,
                      const tensor_data **out_multiplier, const tensor_data **out_shift)
{
    int64_t count = second->count;
    int32_t *m = arena_array(&c->mem, int32_t, (size_t)count), *s = arena_array(&c->mem, int32_t, (size_t)count);
    for (int64_t i = 0; i < count; i++) {
        float w = (float)tensor_get_f64(second, i);
        double product = is_conv || count > 1 ? (double)first * (double)w : (double)(float)(first * w);
        graph_fixed_scale(product / (double)last, &m[i], &s[i]);
    }
    *out_multiplier = tensor_dense(c, DT_I32, count == 1 ? 0 : 1, &count, m);
    *out_shift = tensor_dense(c, DT_I32, count == 1 ? 0 : 1, &count, s);
}

/* --- rows that an importer made --- */

/* The factors of a scale; a scale that is no product has `first` 1. False: one is not known. */
static bool read_product(const graph_value *v, float *first, const tensor_data **second)
{
    *first = 1;
    *second = graph_constant(v);
    if (*second || !rewrite_is_op(v, "multiply"))
        return *second != NULL;
    const tensor_data *a = graph_constant(v->def->inputs[0]);
    *second = graph_constant(v->def->inputs[1]);
    if (!a || !*second || a->count != 1)
        return false;
    *first = (float)tensor_get_f64(a, 0);
    return true;
}

/* The qnn.rescale that rounds as n, a qnn.requantize, says; NULL: its scales are not known, or not on one axis. */
static graph_value *rescaled(rewriter *r, const graph_node *n, bool twice)
{
    compiler *c = r->c;
    float first;
    const tensor_data *second, *last = graph_constant(n->inputs[2]), *multiplier, *shift;
    if (!read_product(n->inputs[1], &first, &second) || second->rank > 1 || second->dt != DT_F32 || !last)
        return NULL;
    const graph_value *acc = n->inputs[0];
    while (rewrite_is_op(acc, "add"))
        acc = acc->def->inputs[0];
    bool is_conv = acc->def && strncmp(acc->def->op->name, "qnn.conv", 8) == 0;
    qnn_fixed_scales(c, first, second, (float)tensor_get_f64(last, 0), is_conv, &multiplier, &shift);
    graph_value *in[4] = {n->inputs[0], rewrite_constant(r, multiplier, "multiplier", n->loc),
                          rewrite_constant(r, shift, "shift", n->loc), n->n_inputs > 3 ? n->inputs[3] : NULL};
    attr attrs[3] = {attr_int(c, "axis", graph_attr_int(n, "axis")),
                     attr_dtype(c, "out_dtype", n->outputs[0]->type.dt), attr_int(c, "twice", twice)};
    return r->failed ? NULL : rewrite_emit(r, "qnn.rescale", in[3] ? 4 : 3, in, 3, attrs, n->loc);
}

static bool rounds_to_even(const graph_node *n)
{
    return graph_attr(n, "method") &&
           (!graph_attr(n, "rounding") || strcmp(graph_attr_string(n, "rounding"), "nearest_even") == 0);
}

/* TensorFlow Lite's forms ask for scales that are known. */
static bool scales_are_known(const graph_node *n)
{
    for (uint32_t i = 1; i < n->n_inputs; i++)
        if (n->inputs[i] && n->inputs[i]->type.dt == DT_F32 && !graph_constant(n->inputs[i]))
            return false;
    return true;
}

bool qnn_set_methods(compiler *c, graph_func *f, const pass_options *o)
{
    const char *method = qnn_method(o);
    const bool fixed = strcmp(method, "tflite") == 0 || strcmp(method, "fast") == 0;
    const pass_options exact = {.target = o->target};
    rewriter r;
    rewrite_begin(&r, c, f);
    for (uint32_t i = 0; i < f->nodes.len && !r.failed; i++) {
        graph_node *n = f->nodes.data[i];
        rewrite_operands(n);
        bool requantizes = strcmp(n->op->name, "qnn.requantize") == 0;
        if (rounds_to_even(n)) {
            graph_value *y = fixed && requantizes ? rescaled(&r, n, strcmp(method, "tflite") == 0) : NULL;
            if (y && type_equal(&y->type, &n->outputs[0]->type) && rewrite_replace(&r, n->outputs[0], y))
                continue;
            bool as_asked = !fixed || (!requantizes && scales_are_known(n));
            graph_set_attr(f, n, attr_string(c, "method", as_asked ? method : qnn_method(&exact)));
        }
        rewrite_keep(&r, n);
    }
    rewrite_end(&r);
    return !r.failed;
}
