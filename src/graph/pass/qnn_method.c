/* SPDX-License-Identifier: Apache-2.0 */
/* How rows of qnn.* round to the nearest even: in floats, where the target has vectors of them, or
 * instructions; in integers with the same result; or as TensorFlow Lite. The last are multipliers and shifts, made here
 * of scales. */
#include "graph/pass/qnn.h"

#include "graph/op/nn.h"

#include <math.h>
#include <string.h>

const char *qnn_method(const pass_options *o)
{
    switch (o->requant) {
    case REQUANT_EXACT:
        return o->target && o->target->vector_bytes == 0 && !(o->target->features & TARGET_FPU) ? "integer" : "float";
    case REQUANT_TFLITE:
    case REQUANT_LITERT: return "tflite";
    case REQUANT_FAST: return "fast";
    }
    return "float";
}

graph_value *qnn_rescale(rewriter *r, const qnn_fixed *x, graph_value *acc, graph_value *zero, src_loc loc)
{
    compiler *c = r->c;
    int64_t count = x->second->count, most = INT32_MIN;
    int32_t *m = arena_array(&c->mem, int32_t, (size_t)count), *s = arena_array(&c->mem, int32_t, (size_t)count);
    for (int64_t i = 0; i < count; i++) {
        float w = (float)tensor_get_f64(x->second, i);
        graph_fixed_scale((double)x->first * (double)w / (double)x->last, &m[i], &s[i]);
        most = s[i] > most ? s[i] : most;
    }
    const uint32_t rank = count == 1 ? 0 : 1;
    graph_value *in[4] = {acc, rewrite_constant(r, tensor_dense(c, DT_I32, rank, &count, m), "multiplier", loc),
                          rewrite_constant(r, tensor_dense(c, DT_I32, rank, &count, s), "shift", loc), zero};
    attr attrs[6] = {attr_int(c, "axis", x->axis),    attr_dtype(c, "out_dtype", x->out),
                     attr_int(c, "twice", x->twice),  attr_int(c, "up", ldexp((double)x->most, (int)most) > 0x1p30),
                     attr_int(c, "most_shift", most), attr_int(c, "most_sum", x->most <= INT32_MAX ? x->most : 0)};
    return r->failed || !acc ? NULL : rewrite_emit(r, "qnn.rescale", zero ? 4 : 3, in, 6, attrs, loc);
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
    float first;
    const tensor_data *second, *last = graph_constant(n->inputs[2]);
    if (!read_product(n->inputs[1], &first, &second) || second->rank > 1 || second->dt != DT_F32 || !last)
        return NULL;
    const qnn_fixed x = {.first = first,
                         .second = second,
                         .last = (float)tensor_get_f64(last, 0),
                         .twice = twice,
                         .axis = graph_attr_int(n, "axis"),
                         .most = (int64_t)1 << 31,
                         .out = n->outputs[0]->type.dt};
    return qnn_rescale(r, &x, n->inputs[0], n->n_inputs > 3 ? n->inputs[3] : NULL, n->loc);
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

/* Of the numbers of operand i; false: only the run knows. */
static bool known_range(const graph_node *n, uint32_t i, int64_t *out_least, int64_t *out_most)
{
    const tensor_data *t = graph_constant(n->inputs[i]);
    return t && tensor_range(t, out_least, out_most);
}

/* What the steps of a qnn.rescale need not ask for then. */
static void note_shifts(compiler *c, graph_func *f, graph_node *n)
{
    int64_t multiplier, least, most;
    if (known_range(n, 1, &multiplier, &most) && multiplier >= 0 && known_range(n, 2, &least, &most) && least >= -31 &&
        most < 31)
        graph_set_attr(f, n, attr_int(c, "most_shift", most));
}

/* A row of a model of TensorFlow Lite rounds twice, unless one rounding is asked for. False: n is none. */
static bool keep_own_method(compiler *c, graph_func *f, graph_node *n, bool once)
{
    const bool rescales = strcmp(n->op->name, "qnn.rescale") == 0;
    if (!rescales && !(graph_attr(n, "method") && strcmp(graph_attr_string(n, "method"), "tflite") == 0))
        return false;
    if (rescales)
        note_shifts(c, f, n);
    if (once)
        graph_set_attr(f, n, rescales ? attr_int(c, "twice", 0) : attr_string(c, "method", "fast"));
    return true;
}

/* Numbers of 16 bits, and the quotients of a softmax, have one rounding, that of f64, with or without floats. */
static bool is_wide(const graph_node *n)
{
    return strcmp(n->op->name, "qnn.softmax") == 0 || dtype_bits(n->inputs[0]->type.dt) == 16 ||
           n->inputs[1]->type.dt == DT_F64;
}

/* n, which requantizes by scales in f64 without floats, with their quotients: a run would divide for each number. NULL:
 * they are not known, or there is nothing to divide. */
static graph_value *with_quotients(rewriter *r, const graph_node *n)
{
    const tensor_data *x = graph_constant(n->inputs[1]), *y = graph_constant(n->inputs[2]);
    if (strcmp(n->op->name, "qnn.requantize") != 0 || !x || !y || x->dt != DT_F64 || x->count < 2 || n->n_inputs > 4 ||
        tensor_get_f64(y, 0) == 1)
        return NULL;
    double *k = arena_array(&r->c->mem, double, (size_t)x->count);
    for (int64_t i = 0; i < x->count; i++)
        k[i] = tensor_get_f64(x, i) / tensor_get_f64(y, 0);
    graph_value *in[5] = {n->inputs[0], n->inputs[1], n->inputs[2], n->n_inputs > 3 ? n->inputs[3] : NULL,
                          rewrite_constant(r, tensor_dense(r->c, DT_F64, x->rank, x->dims, k), "quotient", n->loc)};
    return rewrite_emit(r, n->op->name, 5, in, n->n_attrs, n->attrs, n->loc);
}

/* One window, all of the picture. */
static bool is_global(const graph_node *n)
{
    const int64_t *size = NULL;
    const uint32_t axes = graph_attr_ints(n, "pool_size", &size);
    bool whole = !nn_has_border(n);
    for (uint32_t i = 0; i < axes && whole; i++)
        whole = dim_is(n->inputs[0]->type.shape.dims[2 + i], size[i]);
    return whole;
}

/* Pools over windows: without vectors of floats, bytes are added faster, and several at a time, than floats that are
 * made of them. The sum of all of a picture is an integer anyway, and is rounded once. */
static bool adds_bytes(const graph_node *n, const pass_options *o)
{
    return o->target && o->target->small && o->target->vector_bytes == 0 &&
           strncmp(n->op->name, "qnn.avg_pool", 12) == 0 && !is_global(n);
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
        if (keep_own_method(c, f, n, o->requant == REQUANT_FAST)) {
            /* as it is */
        } else if (rounds_to_even(n) && is_wide(n)) {
            bool floats = !o->target || o->target->vector_bytes > 0;
            graph_set_attr(f, n, attr_string(c, "method", floats ? "float" : "integer"));
            graph_value *y = floats ? NULL : with_quotients(&r, n);
            if (y && rewrite_replace(&r, n->outputs[0], y))
                continue;
        } else if (rounds_to_even(n)) {
            graph_value *y = fixed && requantizes ? rescaled(&r, n, strcmp(method, "tflite") == 0) : NULL;
            if (y && type_equal(&y->type, &n->outputs[0]->type) && rewrite_replace(&r, n->outputs[0], y))
                continue;
            bool as_asked = !fixed || (!requantizes && scales_are_known(n));
            const char *own = as_asked ? method : qnn_method(&exact);
            const bool bytes = strcmp(own, "float") == 0 && adds_bytes(n, o);
            graph_set_attr(f, n, attr_string(c, "method", bytes ? "integer" : own));
            if (bytes)
                graph_set_attr(f, n, attr_int(c, "products", 1));
        }
        rewrite_keep(&r, n);
    }
    rewrite_end(&r);
    return !r.failed;
}
